#include <time.h>

#include "base/clock.h"
#include "network/probe/probe_parts.h"

#define TRAIN 4u /* consecutive requests; the next train meets other queues */
#define LEAD_NS (4 * NS_PER_MS) /* after a meeting: all hosts have left it */

static void report_progress(struct prober *prober, const char *what)
{
	const struct probe_config *config = prober->config;

	prober->steps++;
	if (config->progress && prober->steps <= prober->steps_all)
		config->progress(config->progress_context, what, prober->steps, prober->steps_all);
}

static void sleep_until(uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		continue;
}

/* SCHEDULE_NONE for a partner that is gone. */
static uint32_t living(const struct prober *prober, uint32_t host)
{
	return host != SCHEDULE_NONE && prober->fates[host] == PROBE_IN ? host : SCHEDULE_NONE;
}

/* ---- latency ---- */

void probe_play_latency(struct prober *prober, const struct schedule *schedule, uint32_t rounds, uint64_t slot_ns,
                        uint64_t patience_ns)
{
	const struct echo_pace pace = {
		.asks = prober->timing.asks,
		.train = TRAIN,
		.gap_ns = slot_ns / ((uint64_t)prober->timing.asks / TRAIN + 1),
		.patience_ns = patience_ns,
	};
	uint64_t start_ns = clock_now_ns() + LEAD_NS;
	uint32_t self = prober->config->self;

	if (prober->measures)
		probe_udp_run(&prober->udp, &prober->echo, prober->config->places, start_ns);
	for (uint32_t r = 0; r < rounds; r++) {
		uint64_t end_ns = start_ns + (r + 1) * slot_ns;
		uint32_t round = prober->round++;
		report_progress(prober, "latency");
		if (!prober->measures)
			continue;
		uint32_t partner = living(prober, probe_schedule_partner(schedule, r, self));
		struct samples *samples = partner == SCHEDULE_NONE ? NULL : &prober->samples[partner];
		probe_echo_begin(&prober->echo, round, partner, &pace, samples);
		probe_udp_run(&prober->udp, &prober->echo, prober->config->places, end_ns);
	}
	probe_echo_begin(&prober->echo, prober->round, SCHEDULE_NONE, NULL, NULL);
}

/* ---- bandwidth ---- */

/* A round in which data was expected and none came counts as 0. */
static void note_round(struct prober *prober, uint32_t target, const struct burst_result *result,
                       const struct play *play, uint32_t round)
{
	uint32_t self = prober->config->self;

	if (target != SCHEDULE_NONE)
		prober->rows[target].sent += result->sent;
	for (uint32_t host = 0; host < prober->config->hosts; host++)
		if (host != self && prober->fates[host] == PROBE_IN && play->target(play->context, round, host) == self)
			prober->rows[host].rate_count++;
	for (uint32_t i = 0; i < result->count; i++) {
		const struct burst_from *from = &result->from[i];
		struct report_row *row = &prober->rows[from->host];
		if (from->host == self || prober->fates[from->host] != PROBE_IN ||
		    play->target(play->context, round, from->host) != self)
			continue;
		row->received += from->bytes;
		row->rate_sum += from->rate;
		row->rate_best = from->rate > row->rate_best ? from->rate : row->rate_best;
	}
}

void probe_play_bandwidth(struct prober *prober, const struct play *play)
{
	const struct probe_config *config = prober->config;
	uint64_t slot_ns = play->slot_ns;
	uint64_t begin_ns = clock_now_ns() + LEAD_NS;
	struct burst_result result;

	double window = (double)(slot_ns - probe_timing_warm_ns(slot_ns)) * 1e-9;
	prober->window = window > prober->window ? window : prober->window;
	for (uint32_t r = play->first; r < play->first + play->rounds; r++, begin_ns += slot_ns) {
		uint32_t number = prober->round++;
		report_progress(prober, play->what);
		if (!prober->measures)
			continue;
		uint32_t target = living(prober, play->target(play->context, r, config->self));
		const struct burst_round round = {
			.session = &prober->session,
			.places = config->places,
			.hosts = config->hosts,
			.self = config->self,
			.round = number,
			.target = target,
			.streams = play->streams,
			.start_ns = begin_ns + probe_timing_connect_ns(slot_ns),
			.count_ns = begin_ns + probe_timing_warm_ns(slot_ns),
			.end_ns = begin_ns + slot_ns,
		};
		if (clock_now_ns() > round.count_ns) /* this process was stopped: the round is over */
			continue;
		sleep_until(begin_ns);
		probe_burst_run(&prober->port, &round, &result);
		note_round(prober, target, &result, play, r);
	}
}

static uint32_t target_by_schedule(const void *schedule, uint32_t round, uint32_t host)
{
	return probe_schedule_partner(schedule, round, host);
}

uint32_t probe_streams_of(const struct prober *prober)
{
	return prober->config->streams ? prober->config->streams : PROBE_STREAMS;
}

void probe_play_schedule(struct prober *prober, const struct schedule *schedule, uint32_t rounds, const char *what)
{
	const struct play play = {target_by_schedule,       schedule, 0, rounds, prober->timing.bandwidth_slot_ns,
	                          probe_streams_of(prober), what};

	probe_play_bandwidth(prober, &play);
}

/* ---- targets ---- */

/* The index of a host in its group, and the size of the group. */
static uint32_t place_in_group(const struct target_groups *groups, uint32_t group, uint32_t host, uint32_t *out_size)
{
	uint32_t place = 0, size = 0;

	for (uint32_t i = 0; i < groups->hosts; i++) {
		if (groups->group_of[i] != group)
			continue;
		if (i == host)
			place = size;
		size++;
	}
	*out_size = size;
	return place;
}

static uint32_t member(const struct target_groups *groups, uint32_t group, uint32_t place)
{
	for (uint32_t i = 0; i < groups->hosts; i++)
		if (groups->group_of[i] == group && place-- == 0)
			return i;
	return SCHEDULE_NONE;
}

uint32_t probe_target_within(const void *context, uint32_t round, uint32_t host)
{
	const struct target_groups *groups = context;
	uint32_t size, group = groups->group_of[host];

	if (group == UINT32_MAX)
		return SCHEDULE_NONE;
	uint32_t place = place_in_group(groups, group, host, &size);
	return size < 2 ? SCHEDULE_NONE : member(groups, group, (place + 1 + round % (size - 1)) % size);
}

uint32_t probe_target_between(const void *context, uint32_t round, uint32_t host)
{
	const struct target_groups *groups = context;
	uint32_t size, group = groups->group_of[host];

	if (group == UINT32_MAX || groups->count < 2)
		return SCHEDULE_NONE;
	uint32_t place = place_in_group(groups, group, host, &size);
	uint32_t other = (group + 1 + round % (groups->count - 1)) % groups->count;
	(void)place_in_group(groups, other, host, &size);
	return size == 0 ? SCHEDULE_NONE : member(groups, other, (place + round) % size);
}
