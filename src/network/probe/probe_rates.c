/*
 * probe_rates.c - measures the rates of hosts and groups, once the groups are known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/probe/probe_parts.h"

static double most_of(const struct prober *prober, uint32_t from, uint32_t to, double least)
{
	double rate = prober->all_rows[(size_t)to * prober->config->hosts + from].rate_best;

	return rate > least ? rate : least;
}

/* The highest rate of each host to and from another one. Results of longer rounds replace earlier ones. */
static void note_rates(const struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found)
{
	for (uint32_t i = 0; i < count; i++) {
		double out = 0, in = 0;
		for (uint32_t j = 0; j < count; j++) {
			out = most_of(prober, kept[i], kept[j], out);
			in = most_of(prober, kept[j], kept[i], in);
		}
		found->rate_out[i] = out > 0 ? out : found->rate_out[i];
		found->rate_in[i] = in > 0 ? in : found->rate_in[i];
	}
}

/* The best of several rounds counts: a rate that TCP does not reach in one of them is no limit of the network. */
static enum esp_status note_uplinks(const struct prober *prober, const uint32_t *kept, uint32_t count,
                                    struct found *found, struct error *err)
{
	uint32_t hosts = prober->config->hosts, groups = found->grouping.count;
	struct report_row *rows = calloc((size_t)count * count + 1, sizeof(*rows));
	double *rates = calloc(2 * (size_t)groups + 1, sizeof(*rates));

	if (!rows || !rates) {
		free(rows);
		free(rates);
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", hosts);
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < count; j++)
			rows[(size_t)i * count + j] = prober->all_rows[(size_t)kept[i] * hosts + kept[j]];
	probe_found_uplinks(rows, count, &found->grouping, rates, rates + groups);
	for (uint32_t g = 0; g < groups; g++) {
		found->uplink_out[g] = fmax(found->uplink_out[g], rates[g]);
		found->uplink_in[g] = fmax(found->uplink_in[g], rates[groups + g]);
	}
	free(rows);
	free(rates);
	return ESP_OK;
}

/* Earlier reports are in `found`; the next report covers the next rounds only. */
static void forget_rows(struct prober *prober)
{
	memset(prober->rows, 0, prober->config->hosts * sizeof(*prober->rows));
	for (uint32_t i = 0; i < prober->config->hosts; i++)
		prober->samples[i].count = 0;
}

/* From meeting to report. */
static enum esp_status play_and_report(struct prober *prober, const struct play *play, struct error *err)
{
	forget_rows(prober);
	enum esp_status status = probe_wait_for_all(prober, err);
	if (status == ESP_OK)
		probe_play_bandwidth(prober, play);
	return status == ESP_OK ? probe_exchange_reports(prober, err) : status;
}

/*
 * All hosts send within their groups, then all of them to other groups: with one connection each, as many on
 * one path push each other out of its queue, but once with as many as elsewhere, for networks that limit single
 * connections.
 */
static enum esp_status play_rates(struct prober *prober, const struct target_groups *groups, const uint32_t *kept,
                                  uint32_t count, struct found *found, struct error *err)
{
	const struct timing *timing = &prober->timing;
	struct play play = {probe_target_within,      groups,          0, timing->within_rounds, timing->within_slot_ns,
	                    probe_streams_of(prober), "rates of hosts"};

	note_rates(prober, kept, count, found);
	enum esp_status status = play_and_report(prober, &play, err);
	if (status == ESP_OK)
		note_rates(prober, kept, count, found);
	for (uint32_t r = 0; r < timing->between_rounds && status == ESP_OK; r++) {
		play = (struct play){
			probe_target_between, groups, r, 1, timing->between_slot_ns, r == 1 ? probe_streams_of(prober) : 1,
			"rates of groups"};
		status = play_and_report(prober, &play, err);
		if (status == ESP_OK)
			status = note_uplinks(prober, kept, count, found, err);
	}
	if (status == ESP_OK)
		probe_found_estimate_rates(found);
	return status;
}

enum esp_status probe_rates(struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found,
                            struct error *err)
{
	uint32_t hosts = prober->config->hosts, *group_of = calloc(hosts, sizeof(*group_of));
	const struct target_groups groups = {hosts, found->grouping.count, group_of};

	if (!group_of)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", hosts);
	memset(group_of, 0xff, hosts * sizeof(*group_of));
	for (uint32_t i = 0; i < count; i++)
		group_of[kept[i]] = found->grouping.group_of[i];
	enum esp_status status = probe_found_rates_init(found, err);
	if (status == ESP_OK)
		status = play_rates(prober, &groups, kept, count, found, err);
	free(group_of);
	return status;
}

