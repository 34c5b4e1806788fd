/* Hosts that measure one network, and some that report wrong numbers. */
#include "network/probe/collect.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define HOSTS_MOST 20u
#define WINDOW 0.05

struct cluster {
	uint32_t hosts;
	struct report_row rows[HOSTS_MOST * HOSTS_MOST];
	double rtt[HOSTS_MOST * HOSTS_MOST], rate[HOSTS_MOST * HOSTS_MOST];
	enum probe_fate fates[HOSTS_MOST];
};

static struct report_row *row(struct cluster *cluster, uint32_t a, uint32_t b)
{
	return &cluster->rows[a * cluster->hosts + b];
}

/* Reports of honest hosts: equal to within a tenth, with byte counts that match. */
static void build(struct cluster *cluster, uint32_t hosts, struct rng *rng)
{
	memset(cluster, 0, sizeof(*cluster));
	cluster->hosts = hosts;
	for (uint32_t a = 0; a < hosts; a++)
		for (uint32_t b = 0; b < a; b++) {
			double rtt = 1e-5 + 1e-3 * rng_unit(rng), rate = 1e7 + 1e9 * rng_unit(rng);
			for (int way = 0; way < 2; way++) {
				struct report_row *it = way ? row(cluster, b, a) : row(cluster, a, b);
				double low = rtt * (1 + 0.1 * rng_unit(rng));
				*it = (struct report_row){.rtt_low = low, .rtt_median = low * 1.2, .rtt_count = 40, .rate_count = 3};
				it->rate_best = rate;
				it->rate_sum = 3 * rate;
				it->received = (uint64_t)(3 * rate * WINDOW * 1.4);
				it->sent = it->received + 100000;
			}
			cluster->rtt[a * hosts + b] = cluster->rtt[b * hosts + a] = rtt;
			cluster->rate[a * hosts + b] = cluster->rate[b * hosts + a] = rate;
		}
}

static void judge(struct cluster *cluster, struct matrix *latency, struct matrix *inverse)
{
	const struct collect_input input = {cluster->hosts, cluster->rows, true, true, WINDOW};
	struct error err;

	CHECK(matrix_init(latency, cluster->hosts, &err) == ESP_OK && matrix_init(inverse, cluster->hosts, &err) == ESP_OK);
	probe_collect_expel(&input, cluster->fates);
	probe_collect_distances(&input, cluster->fates, latency, inverse);
}

static void check_town(struct cluster *cluster, const enum probe_fate *wanted)
{
	struct matrix latency, inverse;
	struct error err;

	judge(cluster, &latency, &inverse);
	CHECK(matrix_check(&latency, &err) == ESP_OK && matrix_check(&inverse, &err) == ESP_OK);
	for (uint32_t i = 0; i < cluster->hosts; i++)
		CHECK_MSG(cluster->fates[i] == wanted[i], "host %u of %u: %s, not %s", i, cluster->hosts,
		          probe_fate_text(cluster->fates[i]), probe_fate_text(wanted[i]));
	for (uint32_t i = 0; i < cluster->hosts; i++)
		for (uint32_t j = 0; j < cluster->hosts; j++) {
			bool in = wanted[i] == PROBE_IN && wanted[j] == PROBE_IN && i != j;
			CHECK(isfinite(matrix_get(&latency, i, j)) == (in || i == j));
			double rtt = cluster->rtt[i * cluster->hosts + j], rate = cluster->rate[i * cluster->hosts + j];
			CHECK(!in || (matrix_get(&latency, i, j) >= rtt * 0.999 && matrix_get(&latency, i, j) <= rtt * 1.101));
			CHECK(!in || fabs(matrix_get(&inverse, i, j) * rate - 1) < 1e-9);
		}
	matrix_fini(&latency);
	matrix_fini(&inverse);
}

typedef void spoil_fn(struct cluster *cluster, uint32_t host);

static void be_absent(struct cluster *cluster, uint32_t host)
{
	cluster->fates[host] = PROBE_ABSENT;
	memset(row(cluster, host, 0), 0, cluster->hosts * sizeof(struct report_row));
}

static void be_silent(struct cluster *cluster, uint32_t host)
{
	for (uint32_t i = 0; i < cluster->hosts; i++)
		*row(cluster, host, i) = *row(cluster, i, host) = (struct report_row){0};
}

static void lie_of_latency(struct cluster *cluster, uint32_t host)
{
	for (uint32_t i = 0; i < cluster->hosts; i++)
		if (i != host)
			row(cluster, host, i)->rtt_low = row(cluster, host, i)->rtt_median = 5;
}

static void lie_of_bytes(struct cluster *cluster, uint32_t host)
{
	for (uint32_t i = 0; i < cluster->hosts; i++)
		row(cluster, host, i)->received *= 10;
}

static void lie_of_rates(struct cluster *cluster, uint32_t host)
{
	for (uint32_t i = 0; i < cluster->hosts; i++) {
		row(cluster, host, i)->rate_sum *= 100;
		row(cluster, host, i)->rate_best *= 100;
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
	static struct cluster cluster;

	for (uint32_t i = 0; i < 400; i++) {
		enum probe_fate wanted[HOSTS_MOST] = {0};
		uint32_t hosts = 3 + (uint32_t)rng_below(rng, HOSTS_MOST - 3),
		    spoilers = (uint32_t)rng_below(rng, (hosts - 1) / 2 + 1);
		build(&cluster, hosts, rng);
		for (uint32_t s = 0; s < spoilers; s++) {
			uint32_t kind = (uint32_t)rng_below(rng, 5), host = (uint32_t)rng_below(rng, hosts);
			if (wanted[host] != PROBE_IN)
				continue;
			wanted[host] = kinds[kind].fate;
			kinds[kind].spoil(&cluster, host);
		}
		check_town(&cluster, wanted);
	}
}

/* UDP is blocked everywhere: no host is at fault, and bandwidth is still known. */
static void test_no_latency_at_all(struct rng *rng)
{
	static struct cluster cluster;
	struct matrix latency, inverse;

	build(&cluster, 6, rng);
	for (uint32_t i = 0; i < 36; i++) {
		cluster.rows[i].rtt_low = cluster.rows[i].rtt_median = 0;
		cluster.rows[i].rtt_count = 0;
	}
	judge(&cluster, &latency, &inverse);
	for (uint32_t i = 0; i < 6; i++)
		CHECK(cluster.fates[i] == PROBE_IN);
	CHECK_U64(matrix_known(&latency), 0);
	CHECK_U64(matrix_known(&inverse), 15);
	matrix_fini(&latency);
	matrix_fini(&inverse);
}

/* Two hosts contradict each other: it is unknown which is wrong, so that pair is unknown. */
static void test_two(struct rng *rng)
{
	static struct cluster cluster;
	struct matrix latency, inverse;

	build(&cluster, 2, rng);
	lie_of_latency(&cluster, 1);
	judge(&cluster, &latency, &inverse);
	CHECK(cluster.fates[0] == PROBE_IN && cluster.fates[1] == PROBE_IN && isnan(matrix_get(&latency, 0, 1)));
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
