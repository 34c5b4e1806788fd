#include "rank/join/rendezvous.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"

#define SIZE 4u
#define SETTINGS "chunk_bytes=64K credits=16 lanes=2 transport=auto small_bytes=8K buffer_bytes=64M"

static struct rendezvous_arrival arrival_of(uint32_t rank)
{
	struct rendezvous_arrival arrival = {.patience_ms = 60000};
	arrival.info = (struct node_info){.rank = rank, .size = SIZE, .version = 1, .pid = 100 + rank, .port = 7};
	snprintf(arrival.info.host_name, sizeof(arrival.info.host_name), "node%u", rank);
	return arrival;
}

static void begin(struct rendezvous *store)
{
	struct rendezvous_arrival own = arrival_of(0);
	struct error err;
	CHECK(rendezvous_init(store, &own.info, SETTINGS, 10 * NS_PER_S, 40 * NS_PER_S, &err) == ESP_OK);
}

static void arrive(struct rendezvous *store, uint32_t rank)
{
	struct rendezvous_arrival arrival = arrival_of(rank);
	rendezvous_on_arrival(store, rank, &arrival, 11 * NS_PER_S);
}

/* In any order, all cards make a roster. */
static void complete(struct rng *rng)
{
	for (int i = 0; i < 100; i++) {
		struct rendezvous store;
		uint32_t order[3] = {1, 2, 3};
		uint8_t roster[SIZE * NODE_INFO_BYTES];

		begin(&store);
		for (uint32_t k = 0; k < 3; k++) {
			uint64_t other = k + rng_below(rng, 3 - k);
			uint32_t rank = order[other];
			order[other] = order[k];
			CHECK(store.state == RENDEZVOUS_GATHERS);
			arrive(&store, rank);
		}
		CHECK(store.state == RENDEZVOUS_COMPLETE);
		rendezvous_write_roster(&store, roster);
		for (uint32_t k = 0; k < SIZE; k++) {
			struct node_info info;
			CHECK(node_info_decode(roster + k * NODE_INFO_BYTES, &info));
			CHECK(info.rank == k && info.pid == 100 + k);
		}
		rendezvous_on_tick(&store, UINT64_MAX);
		CHECK(store.state == RENDEZVOUS_COMPLETE);
		rendezvous_fini(&store);
	}
}

static void check_broken(struct rendezvous *store, enum esp_status status, const char *text)
{
	CHECK(store->state == RENDEZVOUS_BROKEN && store->error.status == status);
	CHECK_STR(store->error.text, text);
	rendezvous_on_tick(store, UINT64_MAX); /* the first reason stays */
	CHECK_STR(store->error.text, text);
	rendezvous_fini(store);
}

static void missing(void)
{
	struct rendezvous store;

	begin(&store);
	arrive(&store, 2);
	rendezvous_on_tick(&store, 40 * NS_PER_S - 1);
	CHECK(store.state == RENDEZVOUS_GATHERS);
	rendezvous_on_tick(&store, 40 * NS_PER_S);
	CHECK(store.culprit == -1);
	check_broken(&store, ESP_ETIMEOUT, "after 30.0 s 2 of 4 ranks have not arrived: 1, 3; here: 0 on node0, 2 on node2");

	begin(&store);
	CHECK(rendezvous_on_stranger(&store, "10.0.0.7") && !rendezvous_on_stranger(&store, "10.0.0.8") && !rendezvous_on_stranger(&store, "10.0.0.7"));
	arrive(&store, 3);
	arrive(&store, 1);
	rendezvous_on_tick(&store, 40 * NS_PER_S);
	CHECK(store.culprit == 2);
	check_broken(&store, ESP_ETIMEOUT, "after 30.0 s 1 of 4 ranks have not arrived: 2; refused: 3 connections from 10.0.0.7 "
	             "10.0.0.8 without the job's key; here: 0 on node0, 1 on node1, 3 on node3");

	begin(&store);
	CHECK(rendezvous_on_other(&store, "node3"));
	CHECK(rendezvous_on_stranger(&store, "::1"));
	rendezvous_on_tick(&store, 40 * NS_PER_S);
	check_broken(&store, ESP_ETIMEOUT, "after 30.0 s 3 of 4 ranks have not arrived: 1-3; refused: 1 connection from ::1 without "
	             "the job's key, 1 connection from node3 of another job; here: 0 on node0");
}

/* However many places refused connections come from, what is said of them has an end and all of it can be read. */
static void many_refused(void)
{
	struct rendezvous store;
	char origin[RENDEZVOUS_ORIGIN];

	begin(&store);
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(origin, sizeof(origin), "fd00:1111:2222:3333:4444:5555:6666:%x", i % 50);
		rendezvous_on_stranger(&store, origin);
		rendezvous_on_other(&store, origin);
	}
	rendezvous_on_tick(&store, 40 * NS_PER_S);
	CHECK_U64(store.strangers.count, 100000);
	check_broken(&store, ESP_ETIMEOUT, "after 30.0 s 3 of 4 ranks have not arrived: 1-3; refused: 100000 connections from ... "
	             "without the job's key, 100000 connections from ... of another job; here: 0 on node0");
}

/* By host, as far as there is room. */
static void here(void)
{
	struct rendezvous store;
	char text[64];

	begin(&store);
	arrive(&store, 1);
	arrive(&store, 3);
	CHECK_STR(rendezvous_here_text(&store, text, sizeof(text)), "0 on node0, 1 on node1, 3 on node3");
	snprintf(store.nodes[1].host_name, sizeof(store.nodes[1].host_name), "node0");
	CHECK_STR(rendezvous_here_text(&store, text, sizeof(text)), "0, 1 on node0, 3 on node3");
	snprintf(store.nodes[3].host_name, sizeof(store.nodes[3].host_name), "node0");
	CHECK_STR(rendezvous_here_text(&store, text, sizeof(text)), "0, 1, 3 on node0");
	snprintf(store.nodes[3].host_name, sizeof(store.nodes[3].host_name), "a-host-with-a-very-long-name-indeed-yes");
	CHECK_STR(rendezvous_here_text(&store, text, 48), "0, 1 on node0 ...");
	for (size_t size = 8; size < sizeof(text); size++)
		CHECK(strlen(rendezvous_here_text(&store, text, size)) < size);
	rendezvous_fini(&store);
}

/* Why a newcomer is not let in, with both values. */
static void newcomer(void)
{
	struct rendezvous_arrival arrival = {.info = {.pid = 71, .host_name = "b"}, .job = "rose", .settings = "chunk_bytes=256K credits=16"};
	struct error err;

	CHECK(rendezvous_explain_joiner(&arrival, 2, "rose", "chunk_bytes=64K credits=16", &err) == ESP_EMISMATCH);
	CHECK_STR(err.text, "the newcomer, process 71 on b, has chunk_bytes=256K, but rank 2 at the door has chunk_bytes=64K: they must be the same on all "
	          "ranks");
	CHECK(rendezvous_explain_joiner(&arrival, 2, "tulip", "chunk_bytes=64K credits=16", &err) == ESP_EMISMATCH);
	CHECK_STR(err.text, "the newcomer, process 71 on b, belongs to the job 'rose', but rank 2 at the door to the job 'tulip': set ESP_JOB to that "
	          "(espalier run --job)");
}

static void rivals(void)
{
	struct rendezvous store;
	struct rendezvous_arrival second = arrival_of(0);
	struct error reason;

	begin(&store);
	second.info.pid = 7;
	rendezvous_on_arrival(&store, 0, &second, 11 * NS_PER_S);
	CHECK(store.culprit == 0);
	check_broken(&store, ESP_EMISMATCH, "two processes say that they are rank 0: process 100 on node0 and process 7 on node0");
	begin(&store);
	error_set(&reason, ESP_EMISMATCH, "replaced");
	rendezvous_on_rival(&store, &reason);
	CHECK(store.culprit == 0);
	check_broken(&store, ESP_EMISMATCH, "replaced");
}

/* Who came early and will leave early is told before that. */
static void impatient(void)
{
	struct rendezvous store;
	struct rendezvous_arrival arrival = arrival_of(1);

	begin(&store);
	arrival.patience_ms = 10000;
	rendezvous_on_arrival(&store, 1, &arrival, 12 * NS_PER_S);
	CHECK_U64(store.deadline_ns, 22 * NS_PER_S - 500 * NS_PER_MS);
	arrival = arrival_of(2);
	arrival.patience_ms = 1000;
	rendezvous_on_arrival(&store, 2, &arrival, 12 * NS_PER_S);
	CHECK_U64(store.deadline_ns, 12 * NS_PER_S + 750 * NS_PER_MS);
	rendezvous_on_tick(&store, 13 * NS_PER_S);
	check_broken(&store, ESP_ETIMEOUT, "after 3.0 s 1 of 4 ranks have not arrived: 3; here: 0 on node0, 1 on node1, 2 on node2");
	begin(&store);
	arrival.patience_ms = 0;
	rendezvous_on_arrival(&store, 2, &arrival, 12 * NS_PER_S);
	CHECK_U64(store.deadline_ns, 12 * NS_PER_S);
	rendezvous_fini(&store);
}

static void unfit(void)
{
	struct rendezvous store;
	struct rendezvous_arrival arrival = arrival_of(2);

	begin(&store);
	arrive(&store, 2);
	arrival.info.pid = 999;
	snprintf(arrival.info.host_name, sizeof(arrival.info.host_name), "node9");
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "two processes say that they are rank 2: process 102 on node2 and process 999 on node9");

	begin(&store);
	rendezvous_on_arrival(&store, 3, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 3 sent the node info of rank 2");

	begin(&store);
	arrival.info.size = 5;
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 was started for 5 ranks, rank 0 for 4");

	begin(&store);
	arrival.info.version = 2;
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 speaks version 2 of the protocol, rank 0 version 1");

	begin(&store);
	arrival = arrival_of(2);
	arrival.info.settings[31] = 1;
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 has other settings than rank 0: compare what `espalier conf` prints on both");

	begin(&store);
	snprintf(arrival.settings, sizeof(arrival.settings), "%s", SETTINGS);
	rendezvous_on_arrival(&store, 2, &arrival, 0); /* another digest of the same: nothing to name */
	check_broken(&store, ESP_EMISMATCH, "rank 2 has other settings than rank 0: compare what `espalier conf` prints on both");

	begin(&store);
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=256K credits=16 lanes=4 transport=auto small_bytes=8K buffer_bytes=64M");
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 on node2 has chunk_bytes=256K lanes=4, but the leader, rank 0 on node0, has "
	                                    "chunk_bytes=64K lanes=2");

	begin(&store);
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=1M credits=1 lanes=1 transport=tcp small_bytes=1K buffer_bytes=1M");
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 on node2 has chunk_bytes=1M credits=1 lanes=1 ..., but the leader, rank 0 on node0, "
	                                    "has chunk_bytes=64K credits=16 lanes=2 ...");

	begin(&store); /* one does not fit, and the next one would: dots are the end */
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=1M credits=16 lanes=4 transport=a_transport_with_a_long_name small_bytes=1K buffer_bytes=64M");
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 on node2 has chunk_bytes=1M lanes=4 ..., but the leader, rank 0 on node0, has "
	                                    "chunk_bytes=64K lanes=2 transport=auto ...");

	begin(&store); /* none fits */
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=a_long_text_that_nobody_would_write_there credits=1 lanes=4 transport=auto small_bytes=8K "
	         "buffer_bytes=64M");
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	check_broken(&store, ESP_EMISMATCH, "rank 2 on node2 has ..., but the leader, rank 0 on node0, has "
	                                    "chunk_bytes=64K credits=16 lanes=2");

	begin(&store);
	snprintf(arrival.settings, sizeof(arrival.settings), "  x");
	rendezvous_on_arrival(&store, 2, &arrival, 0);
	CHECK(store.state == RENDEZVOUS_BROKEN);
	rendezvous_fini(&store);

	begin(&store);
	arrive(&store, 2);
	rendezvous_on_left(&store, 2);
	check_broken(&store, ESP_EPEER, "rank 2 (process 102 on node2) went away while the group was joining");

	begin(&store);
	for (uint32_t rank = 1; rank + 1 < store.size; rank++)
		arrive(&store, rank);
	rendezvous_unseat(&store, 2);
	arrive(&store, store.size - 1);
	CHECK(store.state == RENDEZVOUS_GATHERS);
	rendezvous_on_left(&store, 2);
	check_broken(&store, ESP_EPEER, "rank 2 (process 102 on node2) went away while the group was joining");
}

/* Whoever started the ranks sees one end that has never come. */
static void ended(void)
{
	struct rendezvous store;

	begin(&store);
	arrive(&store, 2);
	rendezvous_on_ended(&store, 2, 0); /* has come: its connection tells */
	rendezvous_on_ended(&store, SIZE, 0);
	CHECK(store.state == RENDEZVOUS_GATHERS);
	rendezvous_on_ended(&store, 3, 0);
	check_broken(&store, ESP_EPEER, "rank 3 has ended with status 0 before it joined");
}

/* What belongs to another job is turned away and changes nothing. */
static void verdicts(void)
{
	static const enum hello_verdict harmless[] = {HELLO_OTHER_JOB, HELLO_OTHER_EPOCH, HELLO_NOT_ME, HELLO_OTHER_PURPOSE,
	                                              HELLO_OTHER_LANE};
	static const enum hello_verdict fatal[] = {HELLO_OTHER_VERSION, HELLO_OTHER_SIZE, HELLO_OTHER_SETTINGS, HELLO_NOT_YOU};
	struct error reason;

	error_set(&reason, ESP_EMISMATCH, "because");
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		struct rendezvous store;
		begin(&store);
		CHECK(!rendezvous_on_mismatch(&store, harmless[i], 2, &reason));
		CHECK(store.state == RENDEZVOUS_GATHERS);
		rendezvous_fini(&store);
	}
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
		struct rendezvous store;
		begin(&store);
		CHECK(rendezvous_on_mismatch(&store, fatal[i], 2, &reason));
		CHECK(store.culprit == 2);
		CHECK(rendezvous_on_mismatch(&store, fatal[i], 3, &reason)); /* one more that is to be told */
		CHECK(store.culprit == 2);
		check_broken(&store, ESP_EMISMATCH, "because");
	}
}

static void missing_texts(void)
{
	static const uint8_t marks[] = {1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0};
	uint8_t every_other[1000];
	char text[60];

	CHECK_STR(rendezvous_missing_text(marks, sizeof(marks), text, sizeof(text)), "1, 3, 4, 6-8, 10");
	CHECK_STR(rendezvous_missing_text(marks, 1, text, sizeof(text)), "");
	for (unsigned i = 0; i < sizeof(every_other); i++)
		every_other[i] = i % 2;
	CHECK_STR(rendezvous_missing_text(every_other, sizeof(every_other), text, 20), "0, 2, 4, 6, 8 ...");
	for (size_t size = 6; size < sizeof(text); size++)
		CHECK(strlen(rendezvous_missing_text(every_other, sizeof(every_other), text, size)) < size);
}

static void alone(void)
{
	struct rendezvous store;
	struct error err;
	struct node_info own = {.size = 1};

	CHECK(rendezvous_init(&store, &own, "", 0, 0, &err) == ESP_OK && store.state == RENDEZVOUS_COMPLETE);
	rendezvous_fini(&store);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	complete(&rng);
	missing();
	many_refused();
	here();
	newcomer();
	rivals();
	impatient();
	unfit();
	ended();
	verdicts();
	missing_texts();
	alone();
	return 0;
}
