/*
 * probe_again.c - probes pairs again that do not fit the rest, or that are unknown.
 */
#include <stdlib.h>
#include <string.h>

#include "network/discover/clean.h"
#include "network/discover/embed.h"
#include "network/probe/probe_parts.h"
#include "wire/bytes.h"

#define AGAIN_TIMES 2u      /* probes of a suspicious pair */
#define AGAIN_DIMENSIONS 2u /* of the embedding that finds it */
#define AGAIN_HEAD 4u
#define AGAIN_PAIR 8u

static uint32_t again_most(const struct prober *prober)
{
	return 2 * prober->config->hosts;
}

size_t probe_again_bytes(const struct prober *prober)
{
	return AGAIN_HEAD + (size_t)AGAIN_PAIR * again_most(prober);
}

/* The pairs that do not fit the rest, the worst first; *out_count: their number. */
static enum esp_status find_suspects(const struct matrix *matrix, uint64_t seed, struct suspect *suspects,
                                     uint32_t room, uint32_t *out_count, struct error *err)
{
	const struct embed_options options = {.dimensions = AGAIN_DIMENSIONS, .restarts = 2, .steps = 150, .seed = seed};
	struct embedding embedding = {0};
	struct matrix model = {0};

	enum esp_status status = discover_embed(matrix, &options, &embedding, err);
	if (status == ESP_OK)
		status = discover_embedding_matrix(&embedding, true, &model, err);
	if (status == ESP_OK)
		status = discover_clean_suspects(matrix, &model, 0, suspects, room, out_count, err);
	discover_embedding_fini(&embedding);
	matrix_fini(&model);
	return status;
}

/* Suspects among the remaining hosts, with the numbers of all hosts. */
static enum esp_status list_suspects(struct prober *prober, bool latency, struct suspect *suspects, uint32_t room,
                                     uint32_t *out_count, struct error *err)
{
	uint32_t hosts = prober->config->hosts, count = 0;
	uint32_t *there = calloc(hosts, sizeof(*there));
	struct matrix all = {0}, some = {0};
	const struct collect_input input = probe_input_of(prober, latency, !latency);

	if (!there)
		return error_set(err, ESP_ENOMEM, "no memory to probe %u hosts", hosts);
	enum esp_status status = matrix_init(&all, hosts, err);
	for (uint32_t i = 0; i < hosts && status == ESP_OK; i++)
		if (prober->fates[i] == PROBE_IN)
			there[count++] = i;
	if (status == ESP_OK && count >= 3) {
		probe_collect_distances(&input, prober->fates, latency ? &all : NULL, latency ? NULL : &all);
		status = matrix_select(&all, there, count, &some, err);
		if (status == ESP_OK && matrix_known(&some) > 0)
			status = find_suspects(&some, prober->config->seed, suspects, room, out_count, err);
	}
	for (uint32_t i = 0; i < *out_count && status == ESP_OK; i++) {
		suspects[i].a = there[suspects[i].a];
		suspects[i].b = there[suspects[i].b];
	}
	matrix_fini(&all);
	matrix_fini(&some);
	free(there);
	return status;
}

/* Without memory, or on an error, there are no suspects: probing again is only an improvement. */
static void write_suspects(struct prober *prober, bool latency)
{
	uint32_t room = again_most(prober), count = 0;
	struct suspect *suspects = calloc(room, sizeof(*suspects));

	if (!suspects || list_suspects(prober, latency, suspects, room, &count, NULL) != ESP_OK)
		count = 0;
	bytes_put32(prober->mine, count);
	for (uint32_t i = 0; i < count; i++) {
		bytes_put32(prober->mine + AGAIN_HEAD + (size_t)i * AGAIN_PAIR, suspects[i].a);
		bytes_put32(prober->mine + AGAIN_HEAD + (size_t)i * AGAIN_PAIR + 4, suspects[i].b);
	}
	free(suspects);
}

/* False: there are no suspects, or the bytes are invalid. */
static bool read_suspects(const uint8_t *sent, uint32_t most, uint32_t hosts, struct schedule_pair *pairs,
                          uint32_t *out_count)
{
	uint32_t count = bytes_get32(sent);

	if (count == 0 || count > most)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		pairs[i].a = bytes_get32(sent + AGAIN_HEAD + (size_t)i * AGAIN_PAIR);
		pairs[i].b = bytes_get32(sent + AGAIN_HEAD + (size_t)i * AGAIN_PAIR + 4);
		if (pairs[i].a >= pairs[i].b || pairs[i].b >= hosts)
			return false;
	}
	*out_count = count;
	return true;
}

static enum esp_status play_again(struct prober *prober, const struct schedule_pair *pairs, uint32_t count,
                                  bool latency, struct error *err)
{
	const struct timing *timing = &prober->timing;
	uint32_t hosts = prober->config->hosts, most = latency ? timing->latency_again : timing->bandwidth_again;
	struct schedule schedule;
	bool *usable = calloc(hosts, sizeof(*usable));
	enum esp_status status = ESP_ENOMEM;

	for (uint32_t i = 0; i < hosts && usable; i++)
		usable[i] = prober->fates[i] == PROBE_IN;
	if (usable)
		status = probe_schedule_pairs(hosts, pairs, count, AGAIN_TIMES, usable, prober->config->seed + prober->round,
		                              &schedule);
	free(usable);
	if (status != ESP_OK)
		return error_set(err, status, "no schedule for the pairs that are probed again");
	uint32_t rounds = schedule.rounds < most ? schedule.rounds : most;
	if (latency)
		probe_play_latency(prober, &schedule, rounds, timing->latency_again_ns, timing->latency_again_ns / 2);
	else
		probe_play_schedule(prober, &schedule, rounds, "bandwidth again");
	probe_schedule_fini(&schedule);
	return ESP_OK;
}

enum esp_status probe_again(struct prober *prober, bool latency, struct error *err)
{
	uint32_t hosts = prober->config->hosts, most = again_most(prober), count = 0;
	size_t bytes = probe_again_bytes(prober);
	struct schedule_pair *pairs = calloc(most, sizeof(*pairs));

	if (!pairs)
		return error_set(err, ESP_ENOMEM, "no memory to probe %u hosts", hosts);
	memset(prober->mine, 0, bytes);
	if (probe_decides(prober))
		write_suspects(prober, latency);
	enum esp_status status = probe_meet(prober, bytes, err);
	uint32_t first = probe_first_present(prober);
	if (status == ESP_OK && first < hosts &&
	    read_suspects(probe_sent_by(prober, first, bytes), most, hosts, pairs, &count))
		status = play_again(prober, pairs, count, latency, err);
	free(pairs);
	return status == ESP_OK ? probe_exchange_reports(prober, err) : status;
}

