/*
 * load_replay.c - replaces the times of a model by recorded ones. Pure.
 */
#include "sim/workload/load_replay.h"

#include <stdlib.h>

static uint32_t iterations_of(const struct replay *replay)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < replay->file_count; i++)
		most = replay->files[i].iteration >= most ? replay->files[i].iteration + 1 : most;
	return most;
}

static void fill_rows(struct load *load, const struct replay *replay)
{
	for (uint32_t row = 0; row < replay->file_count; row++) {
		double latest = 0;

		for (uint32_t i = 0; i < load->gradient_count; i++) {
			double ready_s = replay->files[row].ready_s[load->gradients[i].source];

			latest = ready_s > latest ? ready_s : latest;
			load->seen_s[(size_t)row * load->gradient_count + i] = latest;
		}
	}
}

enum esp_status workload_load_init_replay(struct load *load, const struct replay *replay, uint32_t workers,
                                          uint64_t seed, struct error *err)
{
	enum esp_status status = workload_load_init(load, &replay->model, workers, 0, err);

	if (status != ESP_OK)
		return status;
	load->iterations = iterations_of(replay);
	load->seen_s = calloc((size_t)replay->file_count * load->gradient_count, sizeof(*load->seen_s));
	load->row_of = calloc((size_t)load->iterations * workers, sizeof(*load->row_of));
	if (!load->seen_s || !load->row_of)
		return error_set(err, ESP_ENOMEM, "no memory for what %u workers did", workers);
	fill_rows(load, replay);
	for (uint32_t k = 0; k < load->iterations; k++) {
		for (uint32_t w = 0; w < workers; w++)
			load->row_of[(size_t)k * workers + w] =
				(uint32_t)(workload_replay_pick(replay, w, k, seed) - replay->files);
	}
	return ESP_OK;
}
