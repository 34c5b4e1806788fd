#include "network/probe/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "base/rng.h"

static void shuffle(uint32_t *list, uint32_t count, struct rng *rng)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)rng_below(rng, i), kept = list[i - 1];
		list[i - 1] = list[j];
		list[j] = kept;
	}
}

enum esp_status probe_schedule_tournament(uint32_t hosts, uint64_t seed, struct schedule *out)
{
	struct rng rng;

	*out = (struct schedule){.hosts = hosts, .rounds = hosts < 2 ? 0 : hosts - 1 + hosts % 2};
	if (hosts > SCHEDULE_HOSTS_MAX)
		return ESP_ELIMIT;
	out->host_at = calloc((size_t)hosts + 1, sizeof(*out->host_at));
	out->position_of = calloc((size_t)hosts + 1, sizeof(*out->position_of));
	if (!out->host_at || !out->position_of) {
		probe_schedule_fini(out);
		return ESP_ENOMEM;
	}
	for (uint32_t i = 0; i < hosts; i++)
		out->host_at[i] = i;
	rng_init(&rng, seed);
	shuffle(out->host_at, hosts, &rng);
	for (uint32_t i = 0; i < hosts; i++)
		out->position_of[out->host_at[i]] = i;
	return ESP_OK;
}

/*
 * The rotation method: one position is fixed, the others rotate around it, and in round r those meet whose
 * positions add up to 2 r. As the number of moving positions is odd, exactly one of them would meet itself: it
 * meets the fixed one, or none.
 */
static uint32_t tournament_partner(const struct schedule *schedule, uint32_t round, uint32_t host)
{
	uint32_t moving = schedule->rounds, position = schedule->position_of[host];
	uint32_t other;

	if (position == moving)
		other = round;
	else if (position == round)
		other = moving;
	else
		other = (uint32_t)((2 * (uint64_t)round + moving - position) % moving);
	return other < schedule->hosts ? schedule->host_at[other] : SCHEDULE_NONE;
}

uint32_t probe_schedule_partner(const struct schedule *schedule, uint32_t round, uint32_t host)
{
	assert(round < schedule->rounds && host < schedule->hosts);
	if (schedule->partner)
		return schedule->partner[(size_t)round * schedule->hosts + host];
	return tournament_partner(schedule, round, host);
}

void probe_schedule_fini(struct schedule *schedule)
{
	free(schedule->position_of);
	free(schedule->host_at);
	free(schedule->partner);
	*schedule = (struct schedule){0};
}

/* ---- given pairs ---- */

static bool is_usable(const bool *usable, uint32_t host)
{
	return !usable || usable[host];
}

static bool add_round(struct schedule *schedule)
{
	size_t hosts = schedule->hosts, have = hosts * schedule->rounds;
	uint32_t *grown = realloc(schedule->partner, (have + hosts) * sizeof(*grown));

	if (!grown)
		return false;
	schedule->partner = grown;
	schedule->rounds++;
	for (size_t i = 0; i < hosts; i++)
		grown[have + i] = SCHEDULE_NONE;
	return true;
}

static bool is_free(const struct schedule *schedule, uint32_t round, const struct schedule_pair *pair)
{
	return probe_schedule_partner(schedule, round, pair->a) == SCHEDULE_NONE &&
	       probe_schedule_partner(schedule, round, pair->b) == SCHEDULE_NONE;
}

static bool place_pair(struct schedule *schedule, const struct schedule_pair *pair)
{
	uint32_t round = 0;

	while (round < schedule->rounds && !is_free(schedule, round, pair))
		round++;
	if (round == schedule->rounds && !add_round(schedule))
		return false;
	uint32_t *row = schedule->partner + (size_t)round * schedule->hosts;
	row[pair->a] = pair->b;
	row[pair->b] = pair->a;
	return true;
}

/* Free hosts are paired at random. */
static void fill_round(uint32_t *row, uint32_t hosts, const bool *usable, uint32_t *waiting, struct rng *rng)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < hosts; i++)
		if (row[i] == SCHEDULE_NONE && is_usable(usable, i))
			waiting[count++] = i;
	shuffle(waiting, count, rng);
	for (uint32_t i = 0; i + 1 < count; i += 2) {
		row[waiting[i]] = waiting[i + 1];
		row[waiting[i + 1]] = waiting[i];
	}
}

static enum esp_status place_pairs(struct schedule *schedule, const struct schedule_pair *pairs, uint32_t count,
                                   const bool *usable)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct schedule_pair *pair = &pairs[i];
		if (pair->a >= pair->b || pair->b >= schedule->hosts)
			return ESP_EINVAL;
		if (is_usable(usable, pair->a) && is_usable(usable, pair->b) && !place_pair(schedule, pair))
			return ESP_ENOMEM;
	}
	return ESP_OK;
}

enum esp_status probe_schedule_pairs(uint32_t hosts, const struct schedule_pair *pairs, uint32_t count, uint32_t times,
                                     const bool *usable, uint64_t seed, struct schedule *out)
{
	struct rng rng;
	enum esp_status status = hosts <= SCHEDULE_HOSTS_MAX ? ESP_OK : ESP_ELIMIT;

	*out = (struct schedule){.hosts = hosts};
	uint32_t *waiting = malloc(((size_t)hosts + 1) * sizeof(*waiting));
	if (!waiting)
		return ESP_ENOMEM;
	for (uint32_t i = 0; i < times && status == ESP_OK; i++)
		status = place_pairs(out, pairs, count, usable);
	rng_init(&rng, seed);
	for (uint32_t r = 0; r < out->rounds && status == ESP_OK; r++)
		fill_round(out->partner + (size_t)r * hosts, hosts, usable, waiting, &rng);
	free(waiting);
	if (status != ESP_OK)
		probe_schedule_fini(out);
	return status;
}
