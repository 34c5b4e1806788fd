/* Hosts that see one network, and some who do not say what they see. */
#include "network/probe/collect.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define HOSTS_MOST 20u
#define WINDOW 0.05

struct town {
	uint32_t hosts;
	struct report_row rows[HOSTS_MOST * HOSTS_MOST];
	double rtt[HOSTS_MOST * HOSTS_MOST], rate[HOSTS_MOST * HOSTS_MOST];
	enum probe_fate fates[HOSTS_MOST];
};

static struct report_row *row(struct town *town, uint32_t a, uint32_t b)
{
	return &town->rows[a * town->hosts + b];
}

/* What honest hosts report: the same to within a tenth, and bytes that add up. */
static void build(struct town *town, uint32_t hosts, struct rng *rng)
{
	memset(town, 0, sizeof(*town));
	town->hosts = hosts;
	for (uint32_t a = 0; a < hosts; a++)
		for (uint32_t b = 0; b < a; b++) {
			double rtt = 1e-5 + 1e-3 * rng_unit(rng), rate = 1e7 + 1e9 * rng_unit(rng);
			for (int way = 0; way < 2; way++) {
				struct report_row *it = way ? row(town, b, a) : row(town, a, b);
				double low = rtt * (1 + 0.1 * rng_unit(rng));
				*it = (struct report_row){.rtt_low = low, .rtt_median = low * 1.2, .rtt_count = 40, .rate_count = 3};
				it->rate_best = rate;
				it->rate_sum = 3 * rate;
				it->received = (uint64_t)(3 * rate * WINDOW * 1.4);
				it->sent = it->received + 100000;
			}
			town->rtt[a * hosts + b] = town->rtt[b * hosts + a] = rtt;
			town->rate[a * hosts + b] = town->rate[b * hosts + a] = rate;
		}
}

static void judge(struct town *town, struct matrix *latency, struct matrix *inverse)
{
	const struct collect_input input = {town->hosts, town->rows, true, true, WINDOW};
	struct error err;

	CHECK(matrix_init(latency, town->hosts, &err) == ESP_OK && matrix_init(inverse, town->hosts, &err) == ESP_OK);
	collect_expel(&input, town->fates);
	collect_distances(&input, town->fates, latency, inverse);
}

static void check_town(struct town *town, const enum probe_fate *wanted)
{
	struct matrix latency, inverse;
	struct error err;

	judge(town, &latency, &inverse);
	CHECK(matrix_check(&latency, &err) == ESP_OK && matrix_check(&inverse, &err) == ESP_OK);
	for (uint32_t i = 0; i < town->hosts; i++)
		CHECK_MSG(town->fates[i] == wanted[i], "host %u of %u: %s, not %s", i, town->hosts, probe_fate_text(town->fates[i]),
		          probe_fate_text(wanted[i]));
	for (uint32_t i = 0; i < town->hosts; i++)
		for (uint32_t j = 0; j < town->hosts; j++) {
			bool in = wanted[i] == PROBE_IN && wanted[j] == PROBE_IN && i != j;
			CHECK(isfinite(matrix_get(&latency, i, j)) == (in || i == j));
			double rtt = town->rtt[i * town->hosts + j], rate = town->rate[i * town->hosts + j];
			CHECK(!in || (matrix_get(&latency, i, j) >= rtt * 0.999 && matrix_get(&latency, i, j) <= rtt * 1.101));
			CHECK(!in || fabs(matrix_get(&inverse, i, j) * rate - 1) < 1e-9);
		}
	matrix_fini(&latency);
	matrix_fini(&inverse);
}

typedef void spoil_fn(struct town *town, uint32_t host);

static void be_absent(struct town *town, uint32_t host)
{
	town->fates[host] = PROBE_ABSENT;
	memset(row(town, host, 0), 0, town->hosts * sizeof(struct report_row));
}

static void be_silent(struct town *town, uint32_t host)
{
	for (uint32_t i = 0; i < town->hosts; i++)
		*row(town, host, i) = *row(town, i, host) = (struct report_row){0};
}

static void lie_of_latency(struct town *town, uint32_t host)
{
	for (uint32_t i = 0; i < town->hosts; i++)
		if (i != host)
			row(town, host, i)->rtt_low = row(town, host, i)->rtt_median = 5;
}

static void lie_of_bytes(struct town *town, uint32_t host)
{
	for (uint32_t i = 0; i < town->hosts; i++)
		row(town, host, i)->received *= 10;
}

static void lie_of_rates(struct town *town, uint32_t host)
{
	for (uint32_t i = 0; i < town->hosts; i++) {
		row(town, host, i)->rate_sum *= 100;
		row(town, host, i)->rate_best *= 100;
	}
}

static void test_spoilers(struct rng *rng)
{
	static const struct {
		spoil_fn *spoil;
		enum probe_fate fate;
	} kinds[] = {
		{be_absent, PROBE_ABSENT}, {be_silent, PROBE_SILENT}, {lie_of_latency, PROBE_LIES}, {lie_of_bytes, PROBE_LIES},
		{lie_of_rates, PROBE_LIES},
	};
	static struct town town;

	for (uint32_t i = 0; i < 400; i++) {
		enum probe_fate wanted[HOSTS_MOST] = {0};
		uint32_t hosts = 3 + (uint32_t)rng_below(rng, HOSTS_MOST - 3), spoilers = (uint32_t)rng_below(rng, (hosts - 1) / 2 + 1);
		build(&town, hosts, rng);
		for (uint32_t s = 0; s < spoilers; s++) {
			uint32_t kind = (uint32_t)rng_below(rng, 5), host = (uint32_t)rng_below(rng, hosts);
			if (wanted[host] != PROBE_IN)
				continue;
			wanted[host] = kinds[kind].fate;
			kinds[kind].spoil(&town, host);
		}
		check_town(&town, wanted);
	}
}

/* UDP is closed everywhere: nobody is to blame, and bandwidth is still known. */
static void test_no_latency_at_all(struct rng *rng)
{
	static struct town town;
	struct matrix latency, inverse;

	build(&town, 6, rng);
	for (uint32_t i = 0; i < 36; i++) {
		town.rows[i].rtt_low = town.rows[i].rtt_median = 0;
		town.rows[i].rtt_count = 0;
	}
	judge(&town, &latency, &inverse);
	for (uint32_t i = 0; i < 6; i++)
		CHECK(town.fates[i] == PROBE_IN);
	CHECK_U64(matrix_known(&latency), 0);
	CHECK_U64(matrix_known(&inverse), 15);
	matrix_fini(&latency);
	matrix_fini(&inverse);
}

/* Two hosts that contradict each other: nobody can tell who is wrong, so that pair is not known. */
static void test_two(struct rng *rng)
{
	static struct town town;
	struct matrix latency, inverse;

	build(&town, 2, rng);
	lie_of_latency(&town, 1);
	judge(&town, &latency, &inverse);
	CHECK(town.fates[0] == PROBE_IN && town.fates[1] == PROBE_IN && isnan(matrix_get(&latency, 0, 1)));
	matrix_fini(&latency);
	matrix_fini(&inverse);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_spoilers(&rng);
	test_no_latency_at_all(&rng);
	test_two(&rng);
	return 0;
}
