#include "studies/reading.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/share.h"
#include "studies/chance.h"

#define PURPOSE_HOSTS UINT64_C(0x686f737473)    /* "hosts": fixed for the run */
#define PURPOSE_ROUNDS UINT64_C(0x726f756e6473) /* "rounds": drawn per probe */
#define PURPOSE_RATES UINT64_C(0x7261746573)    /* "rates" */

static const char *const noise_names[READING_NOISES] = {"cloud", "jitter", "startup", "hot", "outliers", "quiet",
                                                        "busy"};

const char *reading_noise_name(enum reading_noise noise)
{
	return noise < READING_NOISES ? noise_names[noise] : NULL;
}

/* ---- the tournament ---- */

static uint32_t players(uint32_t machines)
{
	return machines + machines % 2;
}

uint32_t reading_rounds(uint32_t machines)
{
	return players(machines) - 1;
}

uint32_t reading_pairs(uint32_t machines)
{
	return players(machines) / 2;
}

/* The last one stays, the others rotate. */
bool reading_pair(uint32_t machines, uint32_t round, uint32_t pair, uint32_t *out_a, uint32_t *out_b)
{
	uint32_t turning = players(machines) - 1;

	*out_a = (round + pair) % turning;
	*out_b = pair == 0 ? turning : (round + turning - pair) % turning;
	return *out_a < machines && *out_b < machines;
}

/* ---- latency ---- */

struct noise {
	enum reading_noise kind;
	double level;
	struct rng rng;
	double *startup; /* by machine; seconds */
	double *wait;    /* by link, in this round; seconds */
	bool *hot;       /* by switch: a rack with a hot uplink */
};

static bool is_mixed(const struct noise *noise)
{
	return noise->kind == READING_CLOUD || noise->kind == READING_BUSY;
}

static bool noise_has(const struct noise *noise, enum reading_noise kind)
{
	return noise->kind == kind || is_mixed(noise);
}

/* The start-up cost of a host; seconds at level 1. */
static double startup_cost(const struct noise *noise, struct rng *rng)
{
	switch (noise->kind) {
	case READING_STARTUP:
		return 2e-6 * chance_lognormal(rng, 1.2);
	case READING_BUSY:
		return 8e-6 * chance_lognormal(rng, 0.7);
	default:
		return 1e-6 * chance_lognormal(rng, 0.7);
	}
}

/* The part that is fixed for the run. */
static void noise_begin(struct noise *noise, const struct region *region, uint64_t seed)
{
	struct rng rng;

	assert(noise->startup && noise->hot);
	chance_init(&rng, seed, PURPOSE_HOSTS);
	for (uint32_t i = 0; i < region->spec.machines; i++) {
		double cost = startup_cost(noise, &rng);

		noise->startup[i] = noise_has(noise, READING_STARTUP) ? noise->level * cost : 0;
	}
	for (uint32_t i = 0; i < region->switch_count; i++)
		noise->hot[i] = region->switches[i].level == REGION_RACK && rng_chance(&rng, 1, 5) &&
		                noise->kind == READING_HOT;
	chance_init(&noise->rng, seed, PURPOSE_ROUNDS);
}

static double crowd_wait(const struct crowd *crowd, uint32_t link, struct rng *rng)
{
	double x = crowd->x[link];

	if (rng_unit(rng) * (1 + x) >= x)
		return 0;
	double wait = 2e-6 * (1 + x) * chance_exponential(rng);
	return rng_chance(rng, 1, 50) ? wait * chance_pareto(rng, 1.5, 100) : wait;
}

/* How long each link delays a packet in this round. */
static void noise_round(struct noise *noise, const struct crowd *crowd)
{
	for (uint32_t i = 2; i < crowd->links; i++) {
		noise->wait[i] = 0;
		if (is_mixed(noise))
			noise->wait[i] = noise->level * crowd_wait(crowd, i, &noise->rng);
		else if (noise->hot[i / 2] && i % 2 == 0)
			noise->wait[i] = noise->level * 4e-6;
	}
}

/* The noise of a single pair: different path lengths, or jitter. links: of switches, both directions. */
static double own_noise(struct noise *noise, uint32_t links)
{
	double sum = 0, each = is_mixed(noise) ? 0.5e-6 : 2e-6;

	for (uint32_t i = 0; i < links && noise_has(noise, READING_JITTER); i++)
		sum += noise->level * each * chance_exponential(&noise->rng);
	return sum;
}

static double outlier(struct noise *noise)
{
	double often = is_mixed(noise) ? 0.01 : noise->kind == READING_OUTLIERS ? noise->level / 50 : 0;

	if (noise->level > 0 && rng_unit(&noise->rng) < often)
		return chance_between(&noise->rng, 2, 10);
	return 1;
}

static double round_trip(struct noise *noise, const struct region *region, uint32_t a, uint32_t b)
{
	uint32_t there[REGION_WAY_MOST], back[REGION_WAY_MOST];
	uint32_t count = region_way(region, a, b, there);
	double seconds = region_round_trip(region, a, b) + noise->startup[a] + noise->startup[b];

	(void)region_way(region, b, a, back);
	for (uint32_t i = 0; i < count; i++)
		seconds += noise->wait[there[i]] + noise->wait[back[i]];
	seconds += own_noise(noise, 2 * count);
	return seconds * outlier(noise);
}

enum esp_status reading_latency(const struct region *region, const struct crowd *crowd, enum reading_noise kind,
                                double level, uint64_t seed, struct matrix *out, struct error *err)
{
	uint32_t machines = region->spec.machines, a, b;
	struct noise noise = {
		.kind = kind,
		.level = kind == READING_QUIET ? 0 : level,
		.startup = calloc(machines, sizeof(*noise.startup)),
		.wait = calloc(crowd->links, sizeof(*noise.wait)),
		.hot = calloc(region->switch_count, sizeof(*noise.hot)),
	};
	enum esp_status status = ESP_OK;

	if (!noise.startup || !noise.wait || !noise.hot)
		status = error_set(err, ESP_ENOMEM, "no memory for the noise of %u machines", machines);
	if (status == ESP_OK)
		status = matrix_init(out, machines, err);
	if (status == ESP_OK)
		noise_begin(&noise, region, seed);
	for (uint32_t round = 0; status == ESP_OK && round < reading_rounds(machines); round++) {
		noise_round(&noise, crowd);
		for (uint32_t pair = 0; pair < reading_pairs(machines); pair++) {
			if (reading_pair(machines, round, pair, &a, &b))
				matrix_set(out, a, b, round_trip(&noise, region, a, b));
		}
	}
	free(noise.startup);
	free(noise.wait);
	free(noise.hot);
	return status;
}

/* ---- bandwidth ---- */

/* All flows of a round and the other traffic; links of switches first, then those of hosts. */
struct rates {
	struct share share;
	struct share_flow *others;
	struct share_flow *probes; /* two per pair: there, back */
};

static uint32_t host_link(const struct region *region, uint32_t machine, bool down)
{
	return 2 * region->switch_count + 2 * machine + down;
}

static enum esp_status rates_init(struct rates *rates, const struct region *region, const struct crowd *crowd,
                                  struct error *err)
{
	uint32_t machines = region->spec.machines, count = 0, done = 0;

	for (uint32_t i = 2; i < crowd->links; i++)
		count += crowd->flows[i];
	enum esp_status status = sim_share_init(&rates->share, crowd->links + 2 * machines, err);
	if (status != ESP_OK)
		return status;
	rates->others = calloc(count + 1, sizeof(*rates->others));
	rates->probes = calloc(2 * (size_t)reading_pairs(machines), sizeof(*rates->probes));
	if (!rates->others || !rates->probes)
		return error_set(err, ESP_ENOMEM, "no memory for %u flows", count);
	for (uint32_t i = 2; i < crowd->links; i++)
		sim_share_set_capacity(&rates->share, i, region->switches[i / 2].rate);
	for (uint32_t i = 0; i < 2 * machines; i++)
		sim_share_set_capacity(&rates->share, crowd->links + i, region->spec.host_rate * crowd->host_share[i / 2]);
	for (uint32_t i = 2; i < crowd->links; i++) {
		for (uint32_t k = 0; k < crowd->flows[i]; k++) {
			struct share_flow *flow = &rates->others[done++];

			*flow = (struct share_flow){.hops = 1, .link = {i}, .bottleneck = TOPOLOGY_NONE};
			sim_share_add(&rates->share, flow);
		}
	}
	return ESP_OK;
}

static void rates_fini(struct rates *rates)
{
	sim_share_fini(&rates->share);
	free(rates->others);
	free(rates->probes);
}

static void begin_probe(struct rates *rates, const struct region *region, uint32_t from, uint32_t to,
                        struct share_flow *flow)
{
	*flow = (struct share_flow){.bottleneck = TOPOLOGY_NONE};
	flow->link[0] = host_link(region, from, false);
	flow->hops = 1 + region_way(region, from, to, &flow->link[1]);
	flow->link[flow->hops++] = host_link(region, to, true);
	sim_share_add(&rates->share, flow);
}

static double rate_read(const struct share_flow *flow, struct rng *rng)
{
	double rate = flow->rate * chance_lognormal(rng, 0.15);

	return rng_chance(rng, 1, 100) ? rate / chance_between(rng, 2, 10) : rate;
}

static void rate_changed(void *user, struct share_flow *flow, double before)
{
	(void)user, (void)flow, (void)before;
}

static void rates_round(struct rates *rates, const struct region *region, uint32_t round, struct rng *rng,
                        struct matrix *out)
{
	uint32_t machines = region->spec.machines, pairs = reading_pairs(machines), a, b;

	for (uint32_t pair = 0; pair < pairs; pair++) {
		if (!reading_pair(machines, round, pair, &a, &b))
			continue;
		begin_probe(rates, region, a, b, &rates->probes[2 * pair]);
		begin_probe(rates, region, b, a, &rates->probes[2 * pair + 1]);
	}
	sim_share_solve(&rates->share, rate_changed, NULL);
	for (uint32_t pair = 0; pair < pairs; pair++) {
		if (!reading_pair(machines, round, pair, &a, &b))
			continue;
		double there = rate_read(&rates->probes[2 * pair], rng), back = rate_read(&rates->probes[2 * pair + 1], rng);

		matrix_set(out, a, b, (1 / there + 1 / back) / 2);
		sim_share_remove(&rates->share, &rates->probes[2 * pair]);
		sim_share_remove(&rates->share, &rates->probes[2 * pair + 1]);
	}
}

enum esp_status reading_bandwidth(const struct region *region, const struct crowd *crowd, uint64_t seed,
                                  struct matrix *out, struct error *err)
{
	struct rates rates = {0};
	struct rng rng;
	enum esp_status status = rates_init(&rates, region, crowd, err);

	if (status == ESP_OK)
		status = matrix_init(out, region->spec.machines, err);
	chance_init(&rng, seed, PURPOSE_RATES);
	for (uint32_t round = 0; status == ESP_OK && round < reading_rounds(region->spec.machines); round++)
		rates_round(&rates, region, round, &rng, out);
	if (status == ESP_OK && rates.share.failed) {
		matrix_fini(out);
		status = error_set(err, ESP_ENOMEM, "no memory for the shares of %u machines", region->spec.machines);
	}
	rates_fini(&rates);
	return status;
}
