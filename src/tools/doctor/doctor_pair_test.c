#include "tools/doctor/doctor_pair.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define RANKS 4 /* on hosts a, a, b, c */

static struct node_info nodes[RANKS];
static uint32_t host_of[RANKS] = {0, 0, 1, 2}, host_ranks[3] = {2, 1, 1};
static struct roster roster = {RANKS, nodes, 3, host_of, host_ranks};
static struct doctor_way table[RANKS][RANKS * NODE_ADDRESSES];
static struct doctor_way *ways[RANKS];

static struct doctor_way *way(uint32_t from, uint32_t to, uint32_t at)
{
	return &table[from][to * NODE_ADDRESSES + at];
}

/* All is well, with two addresses each. */
static void clear(void)
{
	memset(nodes, 0, sizeof(nodes));
	memset(table, 0, sizeof(table));
	for (uint32_t i = 0; i < RANKS; i++) {
		nodes[i].port = (uint16_t)(7000 + i);
		nodes[i].address_count = 2;
		snprintf(nodes[i].host_name, sizeof(nodes[i].host_name), "%c", 'a' + (int)host_of[i]);
		for (uint8_t at = 0; at < 2; at++)
			nodes[i].addresses[at] = (struct node_address){NODE_IPV4, {10, at, 0, (uint8_t)(1 + host_of[i])}, 24, at};
		ways[i] = table[i];
		for (uint32_t to = 0; to < RANKS; to++)
			for (uint32_t at = 0; at < 2; at++)
				*way(i, to, at) = (struct doctor_way){WAY_FINE, 50 + i, -20, 9000, 0};
	}
}

static struct doctor_findings findings;
static bool all_reached;

static void judge(void)
{
	doctor_findings_fini(&findings);
	all_reached = doctor_judge_pairs(&roster, ways, &findings);
	for (uint32_t i = 0; i < findings.count; i++)
		CHECK_MSG(findings.list[i].verdict == DOCTOR_OK || findings.list[i].advice[0] ||
		          strstr(findings.list[i].what, "and "), "%s", findings.list[i].what);
}

static bool has(enum doctor_verdict verdict, const char *check, const char *what, const char *advice)
{
	for (uint32_t i = 0; i < findings.count; i++) {
		const struct doctor_finding *at = &findings.list[i];

		if (at->verdict == verdict && strcmp(at->check, check) == 0 && strstr(at->what, what) &&
		    strstr(at->advice, advice))
			return true;
	}
	(void)!doctor_print(&findings, stderr);
	return false;
}

static uint32_t count_warnings(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < findings.count; i++)
		count += findings.list[i].verdict == DOCTOR_WARN;
	return count;
}

static void all_well(void)
{
	clear();
	judge();
	CHECK(all_reached && doctor_worst(&findings) == DOCTOR_OK);
	CHECK(has(DOCTOR_OK, "reach", "all 10 pairs of ranks on different hosts reach each other", ""));
	CHECK(has(DOCTOR_OK, "round trip", "52 us in the middle, 53 us at most, between rank 3 on c and", ""));
	CHECK(has(DOCTOR_OK, "path MTU", "9000 everywhere", ""));
	CHECK(has(DOCTOR_OK, "clock offset", "0.020 ms at most", ""));
	CHECK(has(DOCTOR_OK, "rails", "2 networks that every host is in", ""));
}

static void unreached(void)
{
	clear();
	for (uint32_t at = 0; at < 2; at++)
		way(0, 2, at)->outcome = WAY_SILENT;
	judge();
	CHECK(!all_reached);
	CHECK(has(DOCTOR_FAIL, "reach", "rank 0 on a does not reach rank 2 on b (10.0.0.2 port 7002: no answer; 10.1.0.2 "
	                                "port 7002: no answer)", "let TCP to port 7002"));
	way(0, 2, 0)->outcome = WAY_REFUSED;
	judge();
	CHECK(has(DOCTOR_FAIL, "reach", "refused", "rejects TCP to port 7002"));
	way(0, 2, 0)->outcome = WAY_NO_ROUTE;
	judge();
	CHECK(has(DOCTOR_FAIL, "reach", "no route", "ip route get 10.0.0.2"));
	way(0, 2, 0)->outcome = WAY_STRANGER;
	judge();
	CHECK(has(DOCTOR_FAIL, "reach", "another process answers", "used twice"));
	nodes[2].address_count = 0;
	judge();
	CHECK(has(DOCTOR_FAIL, "reach", "it has no address", ""));
}

/* Ten pairs fail: eight are named. */
static void many(void)
{
	clear();
	for (uint32_t from = 0; from < RANKS; from++)
		for (uint32_t to = 0; to < RANKS; to++)
			way(from, to, 0)->outcome = way(from, to, 1)->outcome = WAY_SILENT;
	judge();
	CHECK(has(DOCTOR_FAIL, "reach", "and 2 more pairs", ""));
	CHECK_U64(findings.count, 8 + 1 + 1);
}

static void in_part(void)
{
	clear();
	way(3, 0, 1)->outcome = WAY_SILENT;
	judge();
	CHECK(!all_reached && doctor_worst(&findings) == DOCTOR_WARN);
	CHECK(has(DOCTOR_WARN, "reach", "rank 3 on c reaches rank 0 on a, but not at 10.1.0.1: no answer",
	          "ESP_INTERFACES"));
	way(3, 1, 1)->outcome = WAY_SILENT; /* the same host has two ranks */
	judge();
	CHECK(has(DOCTOR_WARN, "reach", "2 of 10 pairs of ranks reach each other, but not in 10.1.0.0/24: no answer; the "
	                                "first are rank 3 on c and rank 0 on a", "the switch of that network"));
	way(3, 1, 1)->outcome = WAY_FINE;
	way(3, 0, 1)->outcome = WAY_NO_ROUTE; /* networks of their own */
	judge();
	CHECK(all_reached && doctor_worst(&findings) == DOCTOR_OK);
}

/* A dead rail is reported once, and names the host with the broken cable, if it is one host's. */
static void dead_rail(void)
{
	clear();
	for (uint32_t from = 0; from < RANKS; from++)
		for (uint32_t to = 0; to < RANKS; to++)
			if (host_of[from] != host_of[to])
				way(from, to, 1)->outcome = WAY_SILENT;
	judge();
	CHECK(has(DOCTOR_WARN, "reach", "10 of 10 pairs of ranks reach each other, but not in 10.1.0.0/24: no answer",
	          "the switch of that network"));
	CHECK_U64(count_warnings(), 1);
	/* a and b reach each other */
	way(0, 2, 1)->outcome = way(1, 2, 1)->outcome = way(2, 0, 1)->outcome = way(2, 1, 1)->outcome = WAY_FINE;
	judge();
	CHECK(has(DOCTOR_WARN, "reach", "6 of 10 pairs of ranks reach each other, but not in 10.1.0.0/24: no answer; the "
	                                "first are rank 0 on a and rank 3 on c; all have a rank on c", "the cable of c"));
	CHECK_U64(count_warnings(), 1);
	way(0, 3, 1)->outcome = WAY_REFUSED; /* for another reason */
	judge();
	CHECK(has(DOCTOR_WARN, "reach", "rank 0 on a reaches rank 3 on c, but not at 10.1.0.3: refused",
	          "rejects TCP to port 7003"));
	CHECK(has(DOCTOR_WARN, "reach", "5 of 10 pairs of ranks reach", "the cable of c"));
	CHECK_U64(count_warnings(), 2);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		nodes[rank].addresses[1].prefix = 0; /* unknown network: by address */
	way(0, 3, 1)->outcome = WAY_SILENT;
	judge();
	CHECK(has(DOCTOR_WARN, "reach", "3 of 10 pairs of ranks reach each other, but not at 10.1.0.3: no answer",
	          "the cable of c"));
}

static void sizes(void)
{
	clear();
	*way(0, 2, 0) = (struct doctor_way){WAY_LARGE_LOST, 50, 0, 9000, 1500};
	judge();
	CHECK(has(DOCTOR_FAIL, "path MTU", "from rank 0 on a to rank 2 on b (10.0.0.2) large packets get lost: up to 1500 "
	                                   "bytes arrive, but 9000 are sent", "ESP_SEGMENT_BYTES=1460"));
	way(0, 2, 0)->largest = 0;
	judge();
	CHECK(has(DOCTOR_FAIL, "path MTU", "from rank 0 on a to rank 2 on b (10.0.0.2) what is small arrives, and no "
	                                   "packet", "no matter of a smaller MTU"));
	for (uint32_t i = 0; i < findings.count; i++)
		CHECK(!strstr(findings.list[i].advice, "mtu 0") && !strstr(findings.list[i].what, "up to 0"));
	clear();
	way(2, 0, 0)->path_mtu = 1500;
	judge();
	CHECK(has(DOCTOR_WARN, "path MTU", "1500 to 9000; the least from rank 2 on b to rank 0 on a", "same MTU"));
}

static void clocks_and_reports(void)
{
	clear();
	way(2, 3, 0)->offset_us = -3600000000;
	judge();
	CHECK(has(DOCTOR_WARN, "clock offset", "3600000.000 ms at most, between rank 2 on b and rank 3 on c",
	          "time service"));
	clear();
	ways[3] = NULL;
	judge();
	CHECK(!all_reached && has(DOCTOR_FAIL, "report", "rank 3 on c has joined, but", "printed"));
}

static void on_the_wire(struct rng *rng)
{
	static struct doctor_report report, back;
	static struct doctor_way back_ways[RANKS * NODE_ADDRESSES];
	uint32_t bytes = doctor_report_bytes(RANKS);
	uint8_t *one = malloc(bytes), *two = malloc(bytes);

	CHECK(one && two);
	report.ways = table[0];
	back.ways = back_ways;
	report.finding_count = (uint32_t)rng_below(rng, DOCTOR_REPORT_FINDINGS + 1);
	for (uint32_t i = 0; i < report.finding_count; i++)
		report.findings[i] = (struct doctor_finding){.verdict = (uint8_t)rng_below(rng, 3), .check = "x", .what = "y"};
	for (uint32_t i = 0; i < RANKS * NODE_ADDRESSES; i++)
		table[0][i] = (struct doctor_way){(uint8_t)rng_below(rng, WAY_OUTCOMES), (uint32_t)rng_next(rng),
		                                  (int64_t)rng_next(rng),
		                                  (uint32_t)rng_next(rng), (uint32_t)rng_next(rng)};
	doctor_report_encode(&report, RANKS, one);
	CHECK(doctor_report_decode(one, RANKS, &back) && back.finding_count == report.finding_count);
	doctor_report_encode(&back, RANKS, two);
	CHECK(memcmp(one, two, bytes) == 0);
	one[rng_below(rng, bytes)] ^= (uint8_t)(1 + rng_below(rng, 255));
	if (doctor_report_decode(one, RANKS, &back)) {
		doctor_report_encode(&back, RANKS, two);
		CHECK(memcmp(one, two, bytes) == 0);
	}
	free(one);
	free(two);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	all_well();
	unreached();
	many();
	in_part();
	dead_rail();
	sizes();
	clocks_and_reports();
	doctor_findings_fini(&findings);
	for (unsigned i = 0; i < 300; i++)
		on_the_wire(&rng);
	return 0;
}
