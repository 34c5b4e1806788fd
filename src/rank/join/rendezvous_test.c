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

static void begin(struct rendezvous *rendezvous)
{
	struct rendezvous_arrival own = arrival_of(0);
	struct error err;
	CHECK(rendezvous_init(rendezvous, &own.info, SETTINGS, 10 * NS_PER_S, 40 * NS_PER_S, &err) == ESP_OK);
}

static void arrive(struct rendezvous *rendezvous, uint32_t rank)
{
	struct rendezvous_arrival arrival = arrival_of(rank);
	rendezvous_on_arrival(rendezvous, rank, &arrival, 11 * NS_PER_S);
}

/* In any order, all node infos make a roster. */
static void complete(struct rng *rng)
{
	for (int i = 0; i < 100; i++) {
		struct rendezvous rendezvous;
		uint32_t order[3] = {1, 2, 3};
		uint8_t roster[SIZE * NODE_INFO_BYTES];

		begin(&rendezvous);
		for (uint32_t k = 0; k < 3; k++) {
			uint64_t other = k + rng_below(rng, 3 - k);
			uint32_t rank = order[other];
			order[other] = order[k];
			CHECK(rendezvous.state == RENDEZVOUS_GATHERS);
			arrive(&rendezvous, rank);
		}
		CHECK(rendezvous.state == RENDEZVOUS_COMPLETE);
		rendezvous_write_roster(&rendezvous, roster);
		for (uint32_t k = 0; k < SIZE; k++) {
			struct node_info info;
			CHECK(node_info_decode(roster + k * NODE_INFO_BYTES, &info));
			CHECK(info.rank == k && info.pid == 100 + k);
		}
		rendezvous_on_tick(&rendezvous, UINT64_MAX);
		CHECK(rendezvous.state == RENDEZVOUS_COMPLETE);
		rendezvous_fini(&rendezvous);
	}
}

static void check_broken(struct rendezvous *rendezvous, enum esp_status status, const char *text)
{
	CHECK(rendezvous->state == RENDEZVOUS_BROKEN && rendezvous->error.status == status);
	CHECK_STR(rendezvous->error.text, text);
	rendezvous_on_tick(rendezvous, UINT64_MAX); /* the first reason stays */
	CHECK_STR(rendezvous->error.text, text);
	rendezvous_fini(rendezvous);
}

static void missing(void)
{
	struct rendezvous rendezvous;

	begin(&rendezvous);
	arrive(&rendezvous, 2);
	rendezvous_on_tick(&rendezvous, 40 * NS_PER_S - 1);
	CHECK(rendezvous.state == RENDEZVOUS_GATHERS);
	rendezvous_on_tick(&rendezvous, 40 * NS_PER_S);
	CHECK(rendezvous.culprit == -1);
	check_broken(&rendezvous, ESP_ETIMEOUT, "after 30.0 s 2 of 4 ranks have not arrived: 1, 3; here: 0 on node0, 2 on "
	                                        "node2");

	begin(&rendezvous);
	CHECK(rendezvous_on_stranger(&rendezvous, "10.0.0.7") && !rendezvous_on_stranger(&rendezvous, "10.0.0.8") &&
	      !rendezvous_on_stranger(&rendezvous, "10.0.0.7"));
	arrive(&rendezvous, 3);
	arrive(&rendezvous, 1);
	rendezvous_on_tick(&rendezvous, 40 * NS_PER_S);
	CHECK(rendezvous.culprit == 2);
	check_broken(&rendezvous, ESP_ETIMEOUT, "after 30.0 s 1 of 4 ranks have not arrived: 2; refused: 3 connections "
	                                        "from 10.0.0.7 10.0.0.8 without the job's key; here: 0 on node0, 1 on "
	                                        "node1, 3 on node3");

	begin(&rendezvous);
	CHECK(rendezvous_on_other(&rendezvous, "node3"));
	CHECK(rendezvous_on_stranger(&rendezvous, "::1"));
	rendezvous_on_tick(&rendezvous, 40 * NS_PER_S);
	check_broken(&rendezvous, ESP_ETIMEOUT, "after 30.0 s 3 of 4 ranks have not arrived: 1-3; refused: 1 connection "
	                                        "from ::1 without the job's key, 1 connection from node3 of another job; "
	                                        "here: 0 on node0");
}

/* However many origins refused connections have, the sentence is short and complete. */
static void many_refused(void)
{
	struct rendezvous rendezvous;
	char origin[RENDEZVOUS_ORIGIN];

	begin(&rendezvous);
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(origin, sizeof(origin), "fd00:1111:2222:3333:4444:5555:6666:%x", i % 50);
		rendezvous_on_stranger(&rendezvous, origin);
		rendezvous_on_other(&rendezvous, origin);
	}
	rendezvous_on_tick(&rendezvous, 40 * NS_PER_S);
	CHECK_U64(rendezvous.strangers.count, 100000);
	check_broken(&rendezvous, ESP_ETIMEOUT, "after 30.0 s 3 of 4 ranks have not arrived: 1-3; refused: 100000 "
	                                        "connections from ... without the job's key, 100000 connections from ... "
	                                        "of another job; here: 0 on node0");
}

/* By host, as far as there is room. */
static void here(void)
{
	struct rendezvous rendezvous;
	char text[64];

	begin(&rendezvous);
	arrive(&rendezvous, 1);
	arrive(&rendezvous, 3);
	CHECK_STR(rendezvous_here_text(&rendezvous, text, sizeof(text)), "0 on node0, 1 on node1, 3 on node3");
	snprintf(rendezvous.nodes[1].host_name, sizeof(rendezvous.nodes[1].host_name), "node0");
	CHECK_STR(rendezvous_here_text(&rendezvous, text, sizeof(text)), "0, 1 on node0, 3 on node3");
	snprintf(rendezvous.nodes[3].host_name, sizeof(rendezvous.nodes[3].host_name), "node0");
	CHECK_STR(rendezvous_here_text(&rendezvous, text, sizeof(text)), "0, 1, 3 on node0");
	snprintf(rendezvous.nodes[3].host_name, sizeof(rendezvous.nodes[3].host_name),
	         "a-host-with-a-very-long-name-indeed-yes");
	CHECK_STR(rendezvous_here_text(&rendezvous, text, 48), "0, 1 on node0 ...");
	for (size_t size = 8; size < sizeof(text); size++)
		CHECK(strlen(rendezvous_here_text(&rendezvous, text, size)) < size);
	rendezvous_fini(&rendezvous);
}

/* Why a joiner is not admitted, with both values. */
static void joiner(void)
{
	struct rendezvous_arrival arrival = {.info = {.pid = 71, .host_name = "b"}, .job = "rose",
	                                     .settings = "chunk_bytes=256K credits=16"};
	struct error err;

	CHECK(rendezvous_explain_joiner(&arrival, 2, "rose", "chunk_bytes=64K credits=16", &err) == ESP_EMISMATCH);
	CHECK_STR(err.text, "the newcomer, process 71 on b, has chunk_bytes=256K, but rank 2 at the door has "
	                    "chunk_bytes=64K: they must be the same on all ranks");
	CHECK(rendezvous_explain_joiner(&arrival, 2, "tulip", "chunk_bytes=64K credits=16", &err) == ESP_EMISMATCH);
	CHECK_STR(err.text, "the newcomer, process 71 on b, belongs to the job 'rose', but rank 2 at the door to the job "
	                    "'tulip': set ESP_JOB to that (espalier run --job)");
}

static void rivals(void)
{
	struct rendezvous rendezvous;
	struct rendezvous_arrival second = arrival_of(0);
	struct error reason;

	begin(&rendezvous);
	second.info.pid = 7;
	rendezvous_on_arrival(&rendezvous, 0, &second, 11 * NS_PER_S);
	CHECK(rendezvous.culprit == 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "two processes say that they are rank 0: process 100 on node0 and process "
	                                         "7 on node0");
	begin(&rendezvous);
	error_set(&reason, ESP_EMISMATCH, "replaced");
	rendezvous_on_rival(&rendezvous, &reason);
	CHECK(rendezvous.culprit == 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "replaced");
}

/* A rank with an early deadline is told before that. */
static void impatient(void)
{
	struct rendezvous rendezvous;
	struct rendezvous_arrival arrival = arrival_of(1);

	begin(&rendezvous);
	arrival.patience_ms = 10000;
	rendezvous_on_arrival(&rendezvous, 1, &arrival, 12 * NS_PER_S);
	CHECK_U64(rendezvous.deadline_ns, 22 * NS_PER_S - 500 * NS_PER_MS);
	arrival = arrival_of(2);
	arrival.patience_ms = 1000;
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 12 * NS_PER_S);
	CHECK_U64(rendezvous.deadline_ns, 12 * NS_PER_S + 750 * NS_PER_MS);
	rendezvous_on_tick(&rendezvous, 13 * NS_PER_S);
	check_broken(&rendezvous, ESP_ETIMEOUT, "after 3.0 s 1 of 4 ranks have not arrived: 3; here: 0 on node0, 1 on "
	                                        "node1, 2 on node2");
	begin(&rendezvous);
	arrival.patience_ms = 0;
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 12 * NS_PER_S);
	CHECK_U64(rendezvous.deadline_ns, 12 * NS_PER_S);
	rendezvous_fini(&rendezvous);
}

static void unfit(void)
{
	struct rendezvous rendezvous;
	struct rendezvous_arrival arrival = arrival_of(2);

	begin(&rendezvous);
	arrive(&rendezvous, 2);
	arrival.info.pid = 999;
	snprintf(arrival.info.host_name, sizeof(arrival.info.host_name), "node9");
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "two processes say that they are rank 2: process 102 on node2 and process "
	                                         "999 on node9");

	begin(&rendezvous);
	rendezvous_on_arrival(&rendezvous, 3, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 3 sent the node info of rank 2");

	begin(&rendezvous);
	arrival.info.size = 5;
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 was started for 5 ranks, rank 0 for 4");

	begin(&rendezvous);
	arrival.info.version = 2;
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 speaks version 2 of the protocol, rank 0 version 1");

	begin(&rendezvous);
	arrival = arrival_of(2);
	arrival.info.settings[31] = 1;
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 has other settings than rank 0: compare what `espalier conf` "
	                                         "prints on both");

	begin(&rendezvous);
	snprintf(arrival.settings, sizeof(arrival.settings), "%s", SETTINGS);
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0); /* another digest of the same text: nothing to name */
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 has other settings than rank 0: compare what `espalier conf` "
	                                         "prints on both");

	begin(&rendezvous);
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=256K credits=16 lanes=4 transport=auto small_bytes=8K buffer_bytes=64M");
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 on node2 has chunk_bytes=256K lanes=4, but the leader, rank 0 on "
	                                         "node0, has chunk_bytes=64K lanes=2");

	begin(&rendezvous);
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=1M credits=1 lanes=1 transport=tcp small_bytes=1K buffer_bytes=1M");
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 on node2 has chunk_bytes=1M credits=1 lanes=1 ..., but the "
	                                         "leader, rank 0 on node0, has chunk_bytes=64K credits=16 lanes=2 ...");

	begin(&rendezvous); /* one does not fit, and the next one would: dots are the end */
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=1M credits=16 lanes=4 transport=a_transport_with_a_long_name small_bytes=1K "
	         "buffer_bytes=64M");
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 on node2 has chunk_bytes=1M lanes=4 ..., but the leader, rank 0 "
	                                         "on node0, has chunk_bytes=64K lanes=2 transport=auto ...");

	begin(&rendezvous); /* none fits */
	snprintf(arrival.settings, sizeof(arrival.settings),
	         "chunk_bytes=a_long_text_that_is_in_no_real_setting_here credits=1 lanes=4 transport=auto small_bytes=8K "
	         "buffer_bytes=64M");
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	check_broken(&rendezvous, ESP_EMISMATCH, "rank 2 on node2 has ..., but the leader, rank 0 on node0, has "
	                                    "chunk_bytes=64K credits=16 lanes=2");

	begin(&rendezvous);
	snprintf(arrival.settings, sizeof(arrival.settings), "  x");
	rendezvous_on_arrival(&rendezvous, 2, &arrival, 0);
	CHECK(rendezvous.state == RENDEZVOUS_BROKEN);
	rendezvous_fini(&rendezvous);

	begin(&rendezvous);
	arrive(&rendezvous, 2);
	rendezvous_on_left(&rendezvous, 2);
	check_broken(&rendezvous, ESP_EPEER, "rank 2 (process 102 on node2) went away while the group was joining");

	begin(&rendezvous);
	for (uint32_t rank = 1; rank + 1 < rendezvous.size; rank++)
		arrive(&rendezvous, rank);
	rendezvous_withdraw(&rendezvous, 2);
	arrive(&rendezvous, rendezvous.size - 1);
	CHECK(rendezvous.state == RENDEZVOUS_GATHERS);
	rendezvous_on_left(&rendezvous, 2);
	check_broken(&rendezvous, ESP_EPEER, "rank 2 (process 102 on node2) went away while the group was joining");
}

/* The launcher reports the end of a rank that has not arrived. */
static void ended(void)
{
	struct rendezvous rendezvous;

	begin(&rendezvous);
	arrive(&rendezvous, 2);
	rendezvous_on_ended(&rendezvous, 2, 0); /* it has arrived: its connection tells */
	rendezvous_on_ended(&rendezvous, SIZE, 0);
	CHECK(rendezvous.state == RENDEZVOUS_GATHERS);
	rendezvous_on_ended(&rendezvous, 3, 0);
	check_broken(&rendezvous, ESP_EPEER, "rank 3 has ended with status 0 before it joined");
}

/* A process of another job is refused and changes nothing. */
static void verdicts(void)
{
	static const enum hello_verdict harmless[] = {HELLO_OTHER_JOB, HELLO_OTHER_EPOCH, HELLO_NOT_ME, HELLO_OTHER_PURPOSE,
	                                              HELLO_OTHER_LANE};
	static const enum hello_verdict fatal[] = {HELLO_OTHER_VERSION, HELLO_OTHER_SIZE, HELLO_OTHER_SETTINGS,
	                                           HELLO_NOT_YOU};
	struct error reason;

	error_set(&reason, ESP_EMISMATCH, "because");
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		struct rendezvous rendezvous;
		begin(&rendezvous);
		CHECK(!rendezvous_on_mismatch(&rendezvous, harmless[i], 2, &reason));
		CHECK(rendezvous.state == RENDEZVOUS_GATHERS);
		rendezvous_fini(&rendezvous);
	}
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
		struct rendezvous rendezvous;
		begin(&rendezvous);
		CHECK(rendezvous_on_mismatch(&rendezvous, fatal[i], 2, &reason));
		CHECK(rendezvous.culprit == 2);
		CHECK(rendezvous_on_mismatch(&rendezvous, fatal[i], 3, &reason)); /* one more to be told */
		CHECK(rendezvous.culprit == 2);
		check_broken(&rendezvous, ESP_EMISMATCH, "because");
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
	struct rendezvous rendezvous;
	struct error err;
	struct node_info own = {.size = 1};

	CHECK(rendezvous_init(&rendezvous, &own, "", 0, 0, &err) == ESP_OK && rendezvous.state == RENDEZVOUS_COMPLETE);
	rendezvous_fini(&rendezvous);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	complete(&rng);
	missing();
	many_refused();
	here();
	joiner();
	rivals();
	impatient();
	unfit();
	ended();
	verdicts();
	missing_texts();
	alone();
	return 0;
}
