#include "probe/probe.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "probe/probe_parts.h"
#include "topo/clean.h"
#include "topo/embed.h"
#include "wire/bytes.h"

#define HELLO_BYTES_ (PACKET_NONCE_BYTES + 4u)
#define AGAIN_TIMES 2u      /* a pair that is suspicious */
#define AGAIN_DIMENSIONS 2u /* of the space in which it is */
#define AGAIN_HEAD 4u
#define AGAIN_PAIR 8u
#define RTT_LOW 0.1         /* quantile of the samples that counts as the distance */

/* ---- opening ---- */

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static uint32_t again_most(const struct prober *prober)
{
	return 2 * prober->config->hosts;
}

static enum esp_status allocate(struct prober *prober, struct error *err)
{
	size_t hosts = prober->config->hosts;

	prober->room = larger(report_bytes((uint32_t)hosts), AGAIN_HEAD + (size_t)AGAIN_PAIR * again_most(prober));
	prober->room = larger(prober->room, HELLO_BYTES_);
	prober->samples = calloc(hosts, sizeof(*prober->samples));
	prober->rows = calloc(hosts, sizeof(*prober->rows));
	prober->all_rows = calloc(hosts * hosts, sizeof(*prober->all_rows));
	prober->fates = calloc(hosts, sizeof(*prober->fates));
	prober->present = calloc(hosts, sizeof(*prober->present));
	prober->mine = calloc(1, prober->room);
	prober->all = calloc(hosts, prober->room);
	if (!prober->samples || !prober->rows || !prober->all_rows || !prober->fates || !prober->present || !prober->mine || !prober->all)
		return error_set(err, ESP_ENOMEM, "no memory to probe %zu hosts", hosts);
	return ESP_OK;
}

/* A host that gets no ports is at the meetings all the same: the others would wait for it. */
static void open_ports(struct prober *prober)
{
	const struct probe_config *config = prober->config;
	int family = places_settle(config->places, config->hosts);

	prober->measures = config->self != PROBE_OBSERVER &&
	                   udp_open(&prober->udp, family, config->port_first, config->port_last, NULL) == ESP_OK &&
	                   burst_open(&prober->port, family, config->port_first, config->port_last, NULL) == ESP_OK;
}

static void finish(struct prober *prober)
{
	for (uint32_t i = 0; i < prober->config->hosts && prober->samples; i++)
		samples_fini(&prober->samples[i]);
	udp_close(&prober->udp);
	burst_close(&prober->port);
	packet_session_wipe(&prober->session);
	free(prober->samples);
	free(prober->rows);
	free(prober->all_rows);
	free(prober->fates);
	free(prober->present);
	free(prober->mine);
	free(prober->all);
}

/* ---- meetings ---- */

static const uint8_t *said_by(const struct prober *prober, uint32_t host, size_t bytes)
{
	return prober->all + (size_t)host * bytes;
}

/* prober->mine is said, prober->all heard. */
static enum esp_status meet(struct prober *prober, size_t bytes, struct error *err)
{
	const struct probe_config *config = prober->config;

	assert(bytes <= prober->room);
	enum esp_status status = config->exchange(config->exchange_context, config->self == PROBE_OBSERVER ? NULL : prober->mine, bytes,
	                                          prober->all, prober->present, err);
	for (uint32_t i = 0; i < config->hosts && status == ESP_OK; i++)
		if (!prober->present[i] && prober->fates[i] != PROBE_NONSENSE)
			prober->fates[i] = PROBE_ABSENT;
	return status;
}

/* The host whose word counts where one has to decide. */
static uint32_t first_present(const struct prober *prober)
{
	uint32_t first = 0;

	while (first < prober->config->hosts && !prober->present[first])
		first++;
	return first;
}

static bool decides(const struct prober *prober)
{
	return prober->config->self == first_present(prober);
}

static enum esp_status say_hello(struct prober *prober, struct error *err)
{
	const struct probe_config *config = prober->config;

	randombytes_buf(prober->mine, PACKET_NONCE_BYTES);
	bytes_put16(prober->mine + PACKET_NONCE_BYTES, prober->measures ? prober->udp.port : 0);
	bytes_put16(prober->mine + PACKET_NONCE_BYTES + 2, prober->measures ? prober->port.port : 0);
	enum esp_status status = meet(prober, HELLO_BYTES_, err);
	if (status != ESP_OK)
		return status;
	uint32_t first = first_present(prober);
	if (first == config->hosts)
		return error_set(err, ESP_EPEER, "no host is there to be probed");
	packet_session_init(&prober->session, config->key, said_by(prober, first, HELLO_BYTES_));
	for (uint32_t i = 0; i < config->hosts; i++) {
		const uint8_t *said = said_by(prober, i, HELLO_BYTES_) + PACKET_NONCE_BYTES;
		config->places[i].udp_port = prober->present[i] ? bytes_get16(said) : 0;
		config->places[i].tcp_port = prober->present[i] ? bytes_get16(said + 2) : 0;
	}
	echo_init(&prober->echo, &prober->session, config->hosts, config->self);
	return ESP_OK;
}

/* All start together. */
static enum esp_status line_up(struct prober *prober, struct error *err)
{
	prober->mine[0] = 1;
	return meet(prober, 1, err);
}

static void sum_up_samples(struct prober *prober)
{
	for (uint32_t i = 0; i < prober->config->hosts; i++) {
		struct samples *samples = &prober->samples[i];
		prober->rows[i].rtt_count = samples->count;
		if (samples->count == 0)
			continue;
		prober->rows[i].rtt_low = samples_quantile(samples, RTT_LOW);
		prober->rows[i].rtt_median = samples_quantile(samples, 0.5);
	}
}

static enum esp_status hand_in(struct prober *prober, struct error *err)
{
	uint32_t hosts = prober->config->hosts;
	size_t bytes = report_bytes(hosts);

	sum_up_samples(prober);
	report_encode(prober->rows, hosts, prober->mine);
	enum esp_status status = meet(prober, bytes, err);
	for (uint32_t i = 0; i < hosts && status == ESP_OK; i++) {
		struct report_row *rows = prober->all_rows + (size_t)i * hosts;
		if (prober->fates[i] == PROBE_IN && !report_decode(said_by(prober, i, bytes), hosts, i, rows))
			prober->fates[i] = PROBE_NONSENSE;
		if (prober->fates[i] != PROBE_IN)
			memset(rows, 0, hosts * sizeof(*rows));
	}
	return status;
}

static struct collect_input input_of(const struct prober *prober, bool latency, bool bandwidth)
{
	return (struct collect_input){prober->config->hosts, prober->all_rows, latency, bandwidth, prober->window};
}

/* ---- once more ---- */

/* The pairs that do not fit the rest, the worst first. Returns how many. */
static enum esp_status find_suspects(const struct matrix *matrix, uint64_t seed, struct suspect *suspects, uint32_t room, uint32_t *out_count,
                                     struct error *err)
{
	const struct embed_options options = {.dimensions = AGAIN_DIMENSIONS, .restarts = 2, .steps = 150, .seed = seed};
	struct embedding embedding = {0};
	struct matrix model = {0};

	enum esp_status status = embed(matrix, &options, &embedding, err);
	if (status == ESP_OK)
		status = embedding_matrix(&embedding, true, &model, err);
	if (status == ESP_OK)
		status = clean_suspects(matrix, &model, 0, suspects, room, out_count, err);
	embedding_fini(&embedding);
	matrix_fini(&model);
	return status;
}

/* Suspects among the hosts that are there, as hosts of all. */
static enum esp_status doubt(struct prober *prober, bool latency, struct suspect *suspects, uint32_t room, uint32_t *out_count,
                             struct error *err)
{
	uint32_t hosts = prober->config->hosts, count = 0;
	uint32_t *there = calloc(hosts, sizeof(*there));
	struct matrix all = {0}, some = {0};
	const struct collect_input input = input_of(prober, latency, !latency);

	enum esp_status status = there ? matrix_init(&all, hosts, err) : error_set(err, ESP_ENOMEM, "no memory to probe %u hosts", hosts);
	for (uint32_t i = 0; i < hosts && status == ESP_OK; i++)
		if (prober->fates[i] == PROBE_IN)
			there[count++] = i;
	if (status == ESP_OK && count >= 3) {
		collect_distances(&input, prober->fates, latency ? &all : NULL, latency ? NULL : &all);
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

/* Without memory, or if it cannot be told, nobody is suspected: it is an improvement, no more. */
static void write_suspects(struct prober *prober, bool latency)
{
	uint32_t room = again_most(prober), count = 0;
	struct suspect *suspects = calloc(room, sizeof(*suspects));

	if (!suspects || doubt(prober, latency, suspects, room, &count, NULL) != ESP_OK)
		count = 0;
	bytes_put32(prober->mine, count);
	for (uint32_t i = 0; i < count; i++) {
		bytes_put32(prober->mine + AGAIN_HEAD + (size_t)i * AGAIN_PAIR, suspects[i].a);
		bytes_put32(prober->mine + AGAIN_HEAD + (size_t)i * AGAIN_PAIR + 4, suspects[i].b);
	}
	free(suspects);
}

/* False: nobody is suspected, or what was said makes no sense. */
static bool read_suspects(const uint8_t *said, uint32_t most, uint32_t hosts, struct schedule_pair *pairs, uint32_t *out_count)
{
	uint32_t count = bytes_get32(said);

	if (count == 0 || count > most)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		pairs[i].a = bytes_get32(said + AGAIN_HEAD + (size_t)i * AGAIN_PAIR);
		pairs[i].b = bytes_get32(said + AGAIN_HEAD + (size_t)i * AGAIN_PAIR + 4);
		if (pairs[i].a >= pairs[i].b || pairs[i].b >= hosts)
			return false;
	}
	*out_count = count;
	return true;
}

static uint32_t streams_of(const struct prober *prober)
{
	return prober->config->streams ? prober->config->streams : PROBE_STREAMS;
}

/* A schedule from its first round on. */
static void play_schedule(struct prober *prober, const struct schedule *schedule, uint32_t rounds, const char *what)
{
	const struct play play = {target_by_schedule, schedule, 0, rounds, prober->timing.bandwidth_slot_ns, streams_of(prober), what};

	play_bandwidth(prober, &play);
}

static enum esp_status play_again(struct prober *prober, const struct schedule_pair *pairs, uint32_t count, bool latency, struct error *err)
{
	const struct timing *timing = &prober->timing;
	uint32_t hosts = prober->config->hosts, most = latency ? timing->latency_again : timing->bandwidth_again;
	struct schedule schedule;
	bool *usable = calloc(hosts, sizeof(*usable));
	enum esp_status status = ESP_ENOMEM;

	for (uint32_t i = 0; i < hosts && usable; i++)
		usable[i] = prober->fates[i] == PROBE_IN;
	if (usable)
		status = schedule_pairs(hosts, pairs, count, AGAIN_TIMES, usable, prober->config->seed + prober->round, &schedule);
	free(usable);
	if (status != ESP_OK)
		return error_set(err, status, "no schedule for the pairs that are probed again");
	uint32_t rounds = schedule.rounds < most ? schedule.rounds : most;
	if (latency)
		play_latency(prober, &schedule, rounds, timing->latency_again_ns, timing->latency_again_ns / 2);
	else
		play_schedule(prober, &schedule, rounds, "bandwidth again");
	schedule_fini(&schedule);
	return ESP_OK;
}

/* Meets twice, whether there is anybody to be probed again or not. */
static enum esp_status probe_again(struct prober *prober, bool latency, struct error *err)
{
	uint32_t hosts = prober->config->hosts, most = again_most(prober), count = 0;
	size_t bytes = AGAIN_HEAD + (size_t)AGAIN_PAIR * most;
	struct schedule_pair *pairs = calloc(most, sizeof(*pairs));

	memset(prober->mine, 0, bytes);
	if (decides(prober))
		write_suspects(prober, latency);
	enum esp_status status = pairs ? meet(prober, bytes, err) : error_set(err, ESP_ENOMEM, "no memory to probe %u hosts", hosts);
	uint32_t first = first_present(prober);
	if (status == ESP_OK && first < hosts && read_suspects(said_by(prober, first, bytes), most, hosts, pairs, &count))
		status = play_again(prober, pairs, count, latency, err);
	free(pairs);
	return status == ESP_OK ? hand_in(prober, err) : status;
}

/* ---- all pairs ---- */

static enum esp_status probe_pass(struct prober *prober, bool latency, uint32_t pass, struct error *err)
{
	const struct timing *timing = &prober->timing;
	struct schedule schedule;
	enum esp_status status = schedule_tournament(prober->config->hosts, prober->config->seed + pass + (latency ? 0 : 1000), &schedule);

	if (status != ESP_OK)
		return error_set(err, status, "no schedule for %u hosts", prober->config->hosts);
	status = line_up(prober, err);
	if (status == ESP_OK && latency)
		play_latency(prober, &schedule, schedule.rounds, timing->latency_slot_ns, timing->patience_ns);
	else if (status == ESP_OK)
		play_schedule(prober, &schedule, schedule.rounds, "bandwidth");
	schedule_fini(&schedule);
	return status;
}

static enum esp_status probe_all_pairs(struct prober *prober, bool latency, struct error *err)
{
	uint32_t passes = latency ? prober->timing.latency_passes : prober->timing.bandwidth_passes;
	enum esp_status status = ESP_OK;

	for (uint32_t pass = 0; pass < passes && status == ESP_OK; pass++)
		status = probe_pass(prober, latency, pass, err);
	if (status == ESP_OK)
		status = hand_in(prober, err);
	return status == ESP_OK ? probe_again(prober, latency, err) : status;
}

/* ---- what was found ---- */

static enum esp_status list_hosts(struct prober *prober, uint32_t *kept, uint32_t *out_count, struct found *found, struct error *err)
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
	return error_set(err, ESP_EPEER, "fewer than two hosts can be probed: host %s %s", found->lost_count ? found->lost[0].name : "?",
	                 found->lost_count ? probe_fate_text(found->lost[0].fate) : "is alone");
}

static enum esp_status make_survey(struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found, struct error *err)
{
	const struct probe_config *config = prober->config;
	const struct collect_input input = input_of(prober, config->latency, config->bandwidth);
	struct matrix latency = {0}, inverse = {0};
	const char **names = calloc(count, sizeof(*names));

	enum esp_status status = names ? matrix_init(&latency, config->hosts, err) : error_set(err, ESP_ENOMEM, "no memory");
	if (status == ESP_OK)
		status = matrix_init(&inverse, config->hosts, err);
	for (uint32_t i = 0; i < count && status == ESP_OK; i++)
		names[i] = config->names[kept[i]];
	if (status == ESP_OK)
		status = survey_init(&found->survey, names, count, err);
	if (status == ESP_OK)
		collect_distances(&input, prober->fates, &latency, &inverse);
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

/* Said by the host that decides: a group for each host of the survey. Anything that is none means that it could not. */
static enum esp_status agree_on_groups(struct prober *prober, uint32_t count, struct found *found, struct error *err)
{
	const struct probe_config *config = prober->config;
	size_t bytes = 4 + 4 * (size_t)config->hosts;
	struct grouping mine = {0};
	struct error reason = {0};
	enum esp_status grouped = ESP_OK;

	memset(prober->mine, 0, bytes);
	if (decides(prober)) {
		grouped = config->group(config->group_context, &found->survey, &mine, &reason);
		bytes_put32(prober->mine, grouped == ESP_OK && mine.nodes == count ? 1 : 2);
		for (uint32_t i = 0; i < count && grouped == ESP_OK; i++)
			bytes_put32(prober->mine + 4 + (size_t)i * 4, mine.group_of[i]);
		grouping_fini(&mine);
	}
	enum esp_status status = meet(prober, bytes, err);
	if (status != ESP_OK)
		return status;
	if (grouped != ESP_OK)
		return error_set(err, grouped, "%.200s", reason.text);
	uint32_t first = first_present(prober);
	if (first == config->hosts || bytes_get32(said_by(prober, first, bytes)) != 1)
		return error_set(err, ESP_EPEER, "the first host could not group the others");
	uint32_t *labels = calloc(count, sizeof(*labels));
	for (uint32_t i = 0; i < count && labels; i++)
		labels[i] = bytes_get32(said_by(prober, first, bytes) + 4 + (size_t)i * 4);
	status = labels ? grouping_from(&found->grouping, labels, count, err) : error_set(err, ESP_ENOMEM, "no memory");
	free(labels);
	return status;
}

/* ---- rates ---- */

static double most_of(const struct prober *prober, uint32_t from, uint32_t to, double least)
{
	double rate = prober->all_rows[(size_t)to * prober->config->hosts + from].rate_best;

	return rate > least ? rate : least;
}

/* The most that each host has sent to, and received from, another one. Longer rounds than before count in their place. */
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

/* Of several rounds the best counts: what TCP does not fill in one of them is no limit of the network. */
static enum esp_status note_uplinks(const struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found, struct error *err)
{
	uint32_t hosts = prober->config->hosts, groups = found->grouping.count;
	struct report_row *rows = calloc((size_t)count * count, sizeof(*rows));
	double *rates = calloc(2 * (size_t)groups, sizeof(*rates));
	enum esp_status status = rows && rates ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u hosts", hosts);

	for (uint32_t i = 0; i < count && status == ESP_OK; i++)
		for (uint32_t j = 0; j < count; j++)
			rows[(size_t)i * count + j] = prober->all_rows[(size_t)kept[i] * hosts + kept[j]];
	if (status == ESP_OK)
		found_uplinks(rows, count, &found->grouping, rates, rates + groups);
	for (uint32_t g = 0; g < groups && status == ESP_OK; g++) {
		found->uplink_out[g] = fmax(found->uplink_out[g], rates[g]);
		found->uplink_in[g] = fmax(found->uplink_in[g], rates[groups + g]);
	}
	free(rows);
	free(rates);
	return status;
}

/* What was reported so far is in `found`; the next report is of the next rounds alone. */
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
	enum esp_status status = line_up(prober, err);
	if (status == ESP_OK)
		play_bandwidth(prober, play);
	return status == ESP_OK ? hand_in(prober, err) : status;
}

/*
 * All hosts within their groups, then all of them to other groups: there with one connection each, as many of them on one
 * way push each other out of its queue, but once with as many as elsewhere, for networks that bound single ones.
 */
static enum esp_status play_rates(struct prober *prober, const struct target_groups *groups, const uint32_t *kept, uint32_t count,
                                  struct found *found, struct error *err)
{
	const struct timing *timing = &prober->timing;
	struct play play = {target_within, groups, 0, timing->within_rounds, timing->within_slot_ns, streams_of(prober), "rates of hosts"};

	note_rates(prober, kept, count, found);
	enum esp_status status = play_and_report(prober, &play, err);
	if (status == ESP_OK)
		note_rates(prober, kept, count, found);
	for (uint32_t r = 0; r < timing->between_rounds && status == ESP_OK; r++) {
		play = (struct play){target_between, groups, r, 1, timing->between_slot_ns, r == 1 ? streams_of(prober) : 1, "rates of groups"};
		status = play_and_report(prober, &play, err);
		if (status == ESP_OK)
			status = note_uplinks(prober, kept, count, found, err);
	}
	if (status == ESP_OK)
		found_estimate_rates(found);
	return status;
}

static enum esp_status probe_rates(struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found, struct error *err)
{
	uint32_t hosts = prober->config->hosts, *group_of = calloc(hosts, sizeof(*group_of));
	const struct target_groups groups = {hosts, found->grouping.count, group_of};

	if (!group_of)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", hosts);
	memset(group_of, 0xff, hosts * sizeof(*group_of));
	for (uint32_t i = 0; i < count; i++)
		group_of[kept[i]] = found->grouping.group_of[i];
	enum esp_status status = found_rates_init(found, err);
	if (status == ESP_OK)
		status = play_rates(prober, &groups, kept, count, found, err);
	free(group_of);
	return status;
}

/* ---- the story ---- */

static enum esp_status run(struct prober *prober, uint32_t *kept, struct found *found, struct error *err)
{
	const struct probe_config *config = prober->config;
	uint32_t count = 0;

	enum esp_status status = say_hello(prober, err);
	if (status == ESP_OK && config->latency)
		status = probe_all_pairs(prober, true, err);
	if (status == ESP_OK && config->bandwidth)
		status = probe_all_pairs(prober, false, err);
	if (status != ESP_OK)
		return status;
	const struct collect_input input = input_of(prober, config->latency, config->bandwidth);
	collect_expel(&input, prober->fates);
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

	prober->steps_all = timing->rounds * (timing->latency_passes + timing->bandwidth_passes) + timing->within_rounds + timing->between_rounds;
}

enum esp_status probe_run(const struct probe_config *config, struct found *out, struct error *err)
{
	struct prober prober = {.config = config, .udp = {.fd = -1}, .port = {.fd = -1}};
	const struct timing_wish wish = {config->hosts, config->latency, config->bandwidth, config->seconds > 0 ? config->seconds : PROBE_SECONDS};
	uint64_t begin_ns = clock_now_ns();
	struct found found = {0};

	if (config->hosts < 2 || config->hosts > PROBE_HOSTS_MAX)
		return error_set(err, ESP_EINVAL, "from 2 to %u hosts can be probed, not %u", PROBE_HOSTS_MAX, config->hosts);
	if (!config->latency && !config->bandwidth)
		return error_set(err, ESP_EINVAL, "neither latency nor bandwidth is to be probed");
	if (sodium_init() < 0)
		return error_set(err, ESP_EUNSUPPORTED, "libsodium does not start");
	timing_make(&wish, &prober.timing);
	count_steps(&prober);
	uint32_t *kept = calloc(config->hosts, sizeof(*kept));
	enum esp_status status = allocate(&prober, err);
	if (status == ESP_OK && !kept)
		status = error_set(err, ESP_ENOMEM, "no memory to probe %u hosts", config->hosts);
	if (status == ESP_OK) {
		open_ports(&prober);
		status = run(&prober, kept, &found, err);
	}
	finish(&prober);
	free(kept);
	found.seconds = (double)(clock_now_ns() - begin_ns) * 1e-9;
	if (status == ESP_OK)
		*out = found;
	else
		found_fini(&found);
	return status;
}
