#include "network/probe/probe.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "network/probe/probe_parts.h"
#include "wire/bytes.h"

/* ---- opening ---- */

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static enum esp_status allocate(struct prober *prober, struct error *err)
{
	size_t hosts = prober->config->hosts;

	prober->room = larger(report_bytes((uint32_t)hosts), probe_again_bytes(prober));
	prober->room = larger(prober->room, GREETING_BYTES);
	prober->samples = calloc(hosts, sizeof(*prober->samples));
	prober->rows = calloc(hosts, sizeof(*prober->rows));
	prober->all_rows = calloc(hosts * hosts, sizeof(*prober->all_rows));
	prober->fates = calloc(hosts, sizeof(*prober->fates));
	prober->present = calloc(hosts, sizeof(*prober->present));
	prober->mine = calloc(1, prober->room);
	prober->all = calloc(hosts, prober->room);
	if (!prober->samples || !prober->rows || !prober->all_rows || !prober->fates || !prober->present || !prober->mine ||
	    !prober->all)
		return error_set(err, ESP_ENOMEM, "no memory to probe %zu hosts", hosts);
	return ESP_OK;
}

/* A host that gets no ports takes part in the meetings all the same: the others would wait for it. */
static void open_ports(struct prober *prober)
{
	const struct probe_config *config = prober->config;
	int family = probe_places_settle(config->places, config->hosts);

	prober->measures = config->self != PROBE_OBSERVER &&
	                   probe_udp_open(&prober->udp, family, config->port_first, config->port_last, NULL) == ESP_OK &&
	                   probe_burst_open(&prober->port, family, config->port_first, config->port_last, NULL) == ESP_OK;
}

static void finish(struct prober *prober)
{
	for (uint32_t i = 0; i < prober->config->hosts && prober->samples; i++)
		probe_samples_fini(&prober->samples[i]);
	probe_udp_close(&prober->udp);
	probe_burst_close(&prober->port);
	probe_packet_session_wipe(&prober->session);
	free(prober->samples);
	free(prober->rows);
	free(prober->all_rows);
	free(prober->fates);
	free(prober->present);
	free(prober->mine);
	free(prober->all);
}

/* ---- all pairs ---- */

static enum esp_status probe_pass(struct prober *prober, bool latency, uint32_t pass, struct error *err)
{
	const struct timing *timing = &prober->timing;
	struct schedule schedule;
	enum esp_status status =
		probe_schedule_tournament(prober->config->hosts, prober->config->seed + pass + (latency ? 0 : 1000), &schedule);

	if (status != ESP_OK)
		return error_set(err, status, "no schedule for %u hosts", prober->config->hosts);
	status = probe_wait_for_all(prober, err);
	if (status == ESP_OK && latency)
		probe_play_latency(prober, &schedule, schedule.rounds, timing->latency_slot_ns, timing->patience_ns);
	else if (status == ESP_OK)
		probe_play_schedule(prober, &schedule, schedule.rounds, "bandwidth");
	probe_schedule_fini(&schedule);
	return status;
}

static enum esp_status probe_all_pairs(struct prober *prober, bool latency, struct error *err)
{
	uint32_t passes = latency ? prober->timing.latency_passes : prober->timing.bandwidth_passes;
	enum esp_status status = ESP_OK;

	for (uint32_t pass = 0; pass < passes && status == ESP_OK; pass++)
		status = probe_pass(prober, latency, pass, err);
	if (status == ESP_OK)
		status = probe_exchange_reports(prober, err);
	return status == ESP_OK ? probe_again(prober, latency, err) : status;
}

/* ---- the result ---- */

static enum esp_status list_hosts(struct prober *prober, uint32_t *kept, uint32_t *out_count, struct found *found,
                                  struct error *err)
{
	uint32_t hosts = prober->config->hosts, count = 0;

	found->lost = calloc(hosts, sizeof(*found->lost));
	if (!found->lost)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", hosts);
	for (uint32_t i = 0; i < hosts; i++) {
		if (prober->fates[i] == PROBE_IN) {
			kept[count++] = i;
			continue;
		}
		struct found_lost *lost = &found->lost[found->lost_count++];
		lost->fate = prober->fates[i];
		snprintf(lost->name, sizeof(lost->name), "%s", prober->config->names[i]);
	}
	*out_count = count;
	if (count >= 2)
		return ESP_OK;
	return error_set(err, ESP_EPEER, "fewer than two hosts can be probed: host %s %s", found->lost_count
	                 ? found->lost[0].name : "?", found->lost_count ? probe_fate_text(found->lost[0].fate)
	                                                                : "is alone");
}

static enum esp_status make_survey(struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found,
                                   struct error *err)
{
	const struct probe_config *config = prober->config;
	const struct collect_input input = probe_input_of(prober, config->latency, config->bandwidth);
	struct matrix latency = {0}, inverse = {0};
	const char **names = calloc((size_t)count + 1, sizeof(*names));

	if (!names)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", count);
	enum esp_status status = matrix_init(&latency, config->hosts, err);
	if (status == ESP_OK)
		status = matrix_init(&inverse, config->hosts, err);
	for (uint32_t i = 0; i < count && status == ESP_OK; i++)
		names[i] = config->names[kept[i]];
	if (status == ESP_OK)
		status = survey_init(&found->survey, names, count, err);
	if (status == ESP_OK)
		probe_collect_distances(&input, prober->fates, &latency, &inverse);
	if (status == ESP_OK && config->latency && matrix_known(&latency) > 0)
		status = matrix_select(&latency, kept, count, &found->survey.matrices[SURVEY_LATENCY], err);
	if (status == ESP_OK && config->bandwidth && matrix_known(&inverse) > 0)
		status = matrix_select(&inverse, kept, count, &found->survey.matrices[SURVEY_INVERSE_BANDWIDTH], err);
	free(names);
	matrix_fini(&latency);
	matrix_fini(&inverse);
	return status;
}

/* ---- groups ---- */

/*
 * The deciding host sends a group for each host of the survey, or a head other than 1 if it could not.
 * *out_grouped: whether this host could.
 */
static enum esp_status send_groups(struct prober *prober, uint32_t count, size_t bytes, const struct survey *survey,
                                   struct error *out_grouped, struct error *err)
{
	const struct probe_config *config = prober->config;
	struct grouping mine = {0};

	*out_grouped = (struct error){0};
	memset(prober->mine, 0, bytes);
	if (probe_decides(prober)) {
		enum esp_status grouped = config->group(config->group_context, survey, &mine, out_grouped);
		bytes_put32(prober->mine, grouped == ESP_OK && mine.nodes == count ? 1 : 2);
		for (uint32_t i = 0; i < count && grouped == ESP_OK; i++)
			bytes_put32(prober->mine + 4 + (size_t)i * 4, mine.group_of[i]);
		out_grouped->status = grouped;
		grouping_fini(&mine);
	}
	return probe_meet(prober, bytes, err);
}

static enum esp_status agree_on_groups(struct prober *prober, uint32_t count, struct found *found, struct error *err)
{
	const struct probe_config *config = prober->config;
	size_t bytes = 4 + 4 * (size_t)config->hosts;
	struct error grouped = {0};
	enum esp_status status;
	uint32_t first;

	do { /* if the deciding host has died during it, the next one decides */
		first = probe_first_present(prober);
		status = first < config->hosts ? send_groups(prober, count, bytes, &found->survey, &grouped, err)
		                               : error_set(err, ESP_EPEER, "no host is left to group the others");
	} while (status == ESP_OK && !prober->present[first]);
	if (status != ESP_OK)
		return status;
	if (grouped.status != ESP_OK)
		return error_set(err, grouped.status, "%.200s", grouped.text);
	if (bytes_get32(probe_sent_by(prober, first, bytes)) != 1)
		return error_set(err, ESP_EPEER, "the first host could not group the others");
	uint32_t *labels = calloc((size_t)count + 1, sizeof(*labels));
	for (uint32_t i = 0; i < count && labels; i++)
		labels[i] = bytes_get32(probe_sent_by(prober, first, bytes) + 4 + (size_t)i * 4);
	status = labels ? grouping_from(&found->grouping, labels, count, err) : error_set(err, ESP_ENOMEM, "no memory");
	free(labels);
	return status;
}

/* ---- the whole ---- */

static enum esp_status run_prober(struct prober *prober, uint32_t *kept, struct found *found, struct error *err)
{
	const struct probe_config *config = prober->config;
	uint32_t count = 0;

	enum esp_status status = probe_exchange_hello(prober, err);
	if (status == ESP_OK && config->latency)
		status = probe_all_pairs(prober, true, err);
	if (status == ESP_OK && config->bandwidth)
		status = probe_all_pairs(prober, false, err);
	if (status != ESP_OK)
		return status;
	const struct collect_input input = probe_input_of(prober, config->latency, config->bandwidth);
	probe_collect_expel(&input, prober->fates);
	status = list_hosts(prober, kept, &count, found, err);
	if (status == ESP_OK)
		status = make_survey(prober, kept, count, found, err);
	if (status == ESP_OK)
		status = agree_on_groups(prober, count, found, err);
	return status == ESP_OK ? probe_rates(prober, kept, count, found, err) : status;
}

static void count_steps(struct prober *prober)
{
	const struct timing *timing = &prober->timing;

	prober->steps_all = timing->rounds * (timing->latency_passes + timing->bandwidth_passes) + timing->within_rounds +
	                    timing->between_rounds;
}

enum esp_status probe_run(const struct probe_config *config, struct found *out, struct error *err)
{
	struct prober prober = {.config = config, .udp = {.fd = -1}, .port = {.fd = -1}};
	const struct timing_wish wish = {config->hosts, config->latency, config->bandwidth,
	                                 config->seconds > 0 ? config->seconds : PROBE_SECONDS};
	uint64_t begin_ns = clock_now_ns();
	struct found found = {0};

	if (config->hosts < 2 || config->hosts > PROBE_HOSTS_MAX)
		return error_set(err, ESP_EINVAL, "from 2 to %u hosts can be probed, not %u", PROBE_HOSTS_MAX, config->hosts);
	if (!config->latency && !config->bandwidth)
		return error_set(err, ESP_EINVAL, "neither latency nor bandwidth is to be probed");
	if (sodium_init() < 0)
		return error_set(err, ESP_EUNSUPPORTED, "libsodium does not start");
	probe_timing_make(&wish, &prober.timing);
	count_steps(&prober);
	uint32_t *kept = calloc(config->hosts, sizeof(*kept));
	if (!kept)
		return error_set(err, ESP_ENOMEM, "no memory to probe %u hosts", config->hosts);
	enum esp_status status = allocate(&prober, err);
	if (status == ESP_OK) {
		open_ports(&prober);
		status = run_prober(&prober, kept, &found, err);
	}
	finish(&prober);
	free(kept);
	found.seconds = (double)(clock_now_ns() - begin_ns) * 1e-9;
	if (status == ESP_OK)
		*out = found;
	else
		probe_found_fini(&found);
	return status;
}
