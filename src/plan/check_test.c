/*
 * check_test.c - one small plan for every rule of the checker, right but for that rule.
 */
#include "plan/check.h"

#include <stdio.h>

#include "base/check.h"
#include "plan/planner.h"
#include "plan/text.h"

#define HEAD(collective, nodes, in, out) \
	"espalier-plan 1\nplanner custom\ncollective " collective "\nnodes " nodes "\ninput " in "\noutput " out "\n"
#define TWO HEAD("allreduce", "2", "8*2", "8*2") "chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
#define TWO_IN_PLACE \
	"espalier-plan 1\nplanner custom\ncollective allreduce\nnodes 2\nin-place yes\ninput 8*2\noutput 8*2\n" \
	"chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
#define THREE HEAD("allreduce", "3", "8*3", "8*3") "chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
#define FOUR_IN_PLACE \
	"espalier-plan 1\nplanner custom\ncollective allreduce\nnodes 4\nin-place yes\ninput 8*4\noutput 8*4\n" \
	"chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
#define LAP \
	"espalier-plan 1\nplanner custom\ncollective allreduce\nnodes 3\nlap 2\ninput 16*3\noutput 16*3\n" \
	"chunk 0: 8 bytes, in+0, out+0, from *, to *\n" LAP_RIGHT "chunk 1: 8 bytes, in+8, out+8, from *, to *\n"
#define LAP_RIGHT LAP_0 LAP_1 LAP_2
#define LAP_0 "  0: fetch; send in > 1 @0; recv= out < 2; send out > 1 @3; deliver\n"
#define LAP_1 "  1: fetch; recv+ tmp0 < 0 in; send tmp0 > 2 @1; recv= out < 0; deliver\n"
#define LAP_2 "  2: fetch; recv+ out < 1 in; update out; send out > 0 @2; deliver\n"
#define RIGHT_1 "  1: fetch; recv+ out < 0 in; update out; send out > 0; deliver\n"

/* why is a part of the reason that must be given; NULL: the plan is right. */
static const struct rule {
	const char *text, *why;
} rules[] = {
	{TWO "  0: fetch; send in > 1; recv= out < 1; deliver\n" RIGHT_1 "end\n", NULL},
	{TWO_IN_PLACE "  0: fetch; send in > 1; recv= out < 1; deliver\n" RIGHT_1 "end\n", NULL},

	/* messages */
	{TWO "  0: fetch; recv= out < 1; deliver\n" RIGHT_1 "end\n", "a deadlock"},
	{TWO "  0: fetch; deliver\n" RIGHT_1 "end\n", "never written"},
	{TWO "  0: fetch; send in > 1; recv= out < 1; recv= out < 1; deliver\n" RIGHT_1 "end\n", "never sends"},
	{TWO "  0: fetch; send in > 1; send in > 1; recv= out < 1; deliver\n" RIGHT_1 "end\n", "never receives"},
	{TWO "  0: fetch; recv= out < 1; send in > 1; deliver\n" RIGHT_1 "end\n", "a deadlock"},

	/* turns, as the text has them; a text in which a node's second message to another comes before its first is none */
	{LAP LAP_RIGHT "end\n", NULL},
	{LAP LAP_0 LAP_1 "  2: fetch; recv+ out < 1 in; update out; send out > 0 @1; deliver\nend\n",
     "chunk 1, node 2, step 4 (send out > 0): has turn 1, but what the row waited for before has turn 1"},
	{LAP LAP_0 "  1: fetch; recv+ tmp0 < 0 in; send tmp0 > 2 @0; recv= out < 0; deliver\n" LAP_2 "end\n",
     "chunk 1, node 1, step 3 (send tmp0 > 2): has turn 0, but what the row waited for before has turn 0"},
	{LAP "  0: fetch; send in > 1 @1073741823; recv= out < 2; send out > 1 @1073741823; deliver\n" LAP_1 LAP_2 "end\n",
     "has turn 1, but what the row waited for before has turn 1073741823"},
	{LAP "  0: fetch; send in > 2 @1; recv= out < 2; deliver\n"
         "  1: fetch; send in > 2 @0; recv= out < 2; deliver\n"
         "  2: fetch; recv+ out < 0 1 in; update out; send out > 0 1 @2; deliver\nend\n",
     "chunk 1, node 2, step 2 (recv+ out < 0 1 in): takes a message of turn 0 after one of a later turn"},
	{LAP "  0: fetch; send in > 1 @0; recv= out < 2; deliver\n" LAP_1 LAP_2 "end\n", "never sends"},

	/* deliveries */
	{TWO "  0: fetch; send in > 1; recv= out < 1\n" RIGHT_1 "end\n", "never delivers"},
	{TWO "  0: fetch; send in > 1; recv= out < 1; deliver; deliver\n" RIGHT_1 "end\n", "delivered twice"},
	{TWO "  0: fetch; send in > 1; copy out < in; recv= tmp0 < 1; deliver\n" RIGHT_1 "end\n",
     "contribution of node 1 is missing"},
	{TWO "  0: fetch; send in > 1; recv+ out < in 1; deliver\n" RIGHT_1 "end\n", "updated"},
	{TWO "  0: fetch; send in > 1 1; recv= out < 1; deliver\n"
         "  1: fetch; recv+ out < 0 in 0; update out; send out > 0; deliver\nend\n",
     "contribution of node 0 is counted twice"},
	{TWO "  0: fetch; send in > 1; recv= out < 1; deliver\n"
         "  1: fetch; recv+ out < 0 in; send out > 0; deliver\nend\n",
     "without having been updated"},
	{TWO "  0: fetch; send in > 1; recv= out < 1; deliver\n"
         "  1: fetch; recv+ out < 0 in; update out; update out; send out > 0; deliver\nend\n",
     "updated twice"},
	{TWO "  0: fetch; send in > 1; recv= out < 1; deliver\n"
         "  1: fetch; copy out < in; update out; recv+ out < 0 in; send out > 0; deliver\nend\n",
     "contribution of node 0 is missing"},
	{HEAD("reduce", "2", "8*2", "8 0") "chunk 0: 8 bytes, in+0, out+0, from *, to 0\n"
                                       "  0: fetch; recv+ out < in 1; update out; send out > 1; deliver\n"
                                       "  1: fetch; send in > 0; recv= tmp0 < 0; deliver\nend\n",
     "does not want the chunk"},
	{HEAD("reduce", "2", "8*2", "8 0") "chunk 0: 8 bytes, in+0, out+0, from *, to 0\n"
                                       "  0: fetch; recv+ out < in 1; update out; send out > 1; deliver\n"
                                       "  1: fetch; send in > 0; recv= out < 0\nend\n",
     "does not want the chunk"},
	{HEAD("broadcast", "2", "8 0", "8*2") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                                          "  0: fetch; send in > 1; copy out < in; update out; deliver\n"
                                          "  1: recv= out < 0; deliver\nend\n",
     "takes no sum"},
	{HEAD("broadcast", "2", "8 0", "8*2") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                                          "  0: fetch; send in > 1; copy out < in; deliver\n"
                                          "  1: fetch; recv= out < 0; deliver\nend\n",
     "nothing to give"},

	/* places */
	{TWO "  0: send in > 1; fetch; recv= out < 1; deliver\n" RIGHT_1 "end\n", "before it is fetched"},
	{TWO "  0: fetch; fetch; send in > 1; recv= out < 1; deliver\n" RIGHT_1 "end\n", "fetched twice"},
	{TWO "  0: fetch; send in > 1; recv= in < 1; copy out < in; deliver\n" RIGHT_1 "end\n", "input is written"},
	{TWO "  0: fetch; send tmp0 > 1; recv= out < 1; deliver\n" RIGHT_1 "end\n", "never written"},
	{TWO "  0: fetch; send in > 1; recv= tmp0 < 1; copy out < tmp0; deliver; copy out < tmp0\n" RIGHT_1 "end\n",
     "after it was delivered"},
	{THREE "  0: fetch; send in > 2; recv= out < 2; deliver\n"
           "  1: fetch; send in > 2; recv= out < 2; deliver\n"
           "  2: fetch; copy out < in; recv+ out < 0 1 out; update out; send out > 0 1; deliver\nend\n",
     "overwritten before it is added"},

	/* data that is still being sent */
	{TWO_IN_PLACE "  0: fetch; send in > 1; recv+ out < in 1; update out; deliver\n"
                  "  1: fetch; send in > 0; recv+ out < 0 in; update out; deliver\nend\n",
     "may still be on its way to node"},
	{TWO "  0: fetch; send in > 1; recv+ out < in 1; update out; deliver\n"
         "  1: fetch; send in > 0; recv+ out < 0 in; update out; deliver\nend\n",
     NULL},
	{TWO_IN_PLACE "  0: fetch; send in > 1; recv= out < 1; deliver\n"
                  "  1: fetch; recv+ out < 0 in; send out > 0; update out; deliver\nend\n",
     "may still be on its way to node 0"},
	/* Node 0 hears from 2, which heard from 1, which has it: known through others, without its own part in the news. */
	{HEAD("broadcast", "3", "8 0 0",
          "8*3") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                 "  0: fetch; copy tmp0 < in; send tmp0 > 1; recv= tmp0 < 2; copy out < in; deliver\n"
                 "  1: recv= out < 0; send out > 2; deliver\n"
                 "  2: recv= out < 1; send out > 0; deliver\nend\n",
     NULL},
	{HEAD("broadcast", "3", "8 0 0",
          "8*3") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                 "  0: fetch; copy tmp0 < in; send tmp0 > 1 2; recv= tmp0 < 2; copy out < in; deliver\n"
                 "  1: recv= out < 0; deliver\n"
                 "  2: recv= out < 0; send out > 0; deliver\nend\n",
     "may still be on its way to node 1"},

	/* the order of addition */
	{THREE "  0: fetch; send in > 1 2; recv+ out < in 1 2; update out; deliver\n"
           "  1: fetch; send in > 0 2; recv+ out < 0 in 2; update out; deliver\n"
           "  2: fetch; send in > 0 1; recv+ out < 0 1 in; update out; deliver\nend\n",
     NULL},
	{THREE "  0: fetch; send in > 1 2; recv+ out < in 1 2; update out; deliver\n"
           "  1: fetch; send in > 0 2; recv+ out < 0 in 2; update out; deliver\n"
           "  2: fetch; send in > 0 1; recv+ out < in 0 1; update out; deliver\nend\n",
     "another order"},

	/* pieces */
	{HEAD("broadcast", "2", "8 0",
          "12*2") "chunk 0: 8 bytes, in+0, out+4, from 0, to *\n"
                  "  0: fetch; send in > 1; copy out < in; deliver\n  1: recv= out < 0; deliver\nend\n",
     "same place in input and output"},
	{HEAD("broadcast", "2", "0 8",
          "8*2") "chunk 0: 8 bytes, in+0, out+0, from 1, to *\n"
                 "  0: recv= out < 1; deliver\n  1: fetch; send in > 0; copy out < in; deliver\nend\n",
     "not those of the collective"},
	{HEAD("allgather", "2", "8*2",
          "20*2") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                  "  0: fetch; send in > 1; copy out < in; deliver\n  1: recv= out < 0; deliver\n"
                  "chunk 1: 8 bytes, in+0, out+12, from 1, to *\n"
                  "  0: recv= out < 1; deliver\n  1: fetch; send in > 0; copy out < in; deliver\nend\n",
     "a gap"},
	{HEAD("allgather", "2", "8*2",
          "12*2") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                  "  0: fetch; send in > 1; copy out < in; deliver\n  1: recv= out < 0; deliver\n"
                  "chunk 1: 8 bytes, in+0, out+4, from 1, to *\n"
                  "  0: recv= out < 1; deliver\n  1: fetch; send in > 0; copy out < in; deliver\nend\n",
     "overlaps"},
	{HEAD("allreduce", "2", "8*2", "8*2") "end\n", "input of node 0 has 8 bytes, of which chunks use 0"},
	{HEAD("barrier", "2", "0*2", "0*2") "end\n", "a barrier has one chunk"},
	{HEAD("allreduce", "2", "12*2", "12*2") "chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
                                            "  0: fetch; send in > 1; recv= out < 1; deliver\n" RIGHT_1 "end\n",
     "bytes 8 to 11 of the input are in no chunk"},
	{HEAD("allgather", "2", "8*2",
          "8*2") "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
                 "  0: fetch; send in > 1; copy out < in; deliver\n  1: recv= out < 0; deliver\nend\n",
     "input of node 1 has 8 bytes, of which chunks use 0"},
	{HEAD("allgather", "2", "8*2",
          "16*2") "chunk 0: 8 bytes, in+0, out+8, from 0, to *\n"
                  "  0: fetch; send in > 1; copy out < in; deliver\n  1: recv= out < 0; deliver\n"
                  "chunk 1: 8 bytes, in+0, out+0, from 1, to *\n"
                  "  0: recv= out < 1; deliver\n  1: fetch; send in > 0; copy out < in; deliver\nend\n",
     "order of the nodes"},
	{HEAD("scatter", "2", "16 0", "8*2") "chunk 0: 8 bytes, in+0, out+0, from 0, to 0\n"
                                         "  0: fetch; copy out < in; deliver\n"
                                         "chunk 1: 8 bytes, in+0, out+0, from 0, to 1\n"
                                         "  0: fetch; send in > 1\n  1: recv= out < 0; deliver\nend\n",
     "overlaps another in the input"},
	/* Halves of two blocks swapped, the chunks of the blocks taking turns. */
	{HEAD("scatter", "2", "16 0", "8*2") "chunk 0: 4 bytes, in+0, out+4, from 0, to 0\n"
                                         "  0: fetch; copy out < in; deliver\n"
                                         "chunk 1: 4 bytes, in+8, out+0, from 0, to 1\n"
                                         "  0: fetch; send in > 1\n  1: recv= out < 0; deliver\n"
                                         "chunk 2: 4 bytes, in+4, out+0, from 0, to 0\n"
                                         "  0: fetch; copy out < in; deliver\n"
                                         "chunk 3: 4 bytes, in+12, out+4, from 0, to 1\n"
                                         "  0: fetch; send in > 1\n  1: recv= out < 0; deliver\nend\n",
     "same place in input and output"},
	{FOUR_IN_PLACE "  0: fetch; copy tmp0 < in; send tmp0 > 1; recv+ tmp0 < tmp0 1; send tmp0 > 2; recv+ out < tmp0 2; "
                   "update out; deliver\n"
                   "  1: fetch; copy tmp0 < in; send tmp0 > 0; recv+ tmp1 < 0 tmp0; send tmp1 > 3; recv+ out < tmp1 3; "
                   "update out; deliver\n"
                   "  2: fetch; copy tmp0 < in; send tmp0 > 3; recv+ tmp1 < tmp0 3; send tmp1 > 0; recv+ out < 0 tmp1; "
                   "update out; deliver\n"
                   "  3: fetch; copy tmp0 < in; send tmp0 > 2; recv+ tmp1 < 2 tmp0; send tmp1 > 1; recv+ out < 1 tmp1; "
                   "update out; deliver\n"
                   "end\n",
     "may still be on its way to node 1"},
};

static void check_rule(const struct rule *rule)
{
	struct plan *plan;
	struct plan_report report;
	struct error err = {0};

	CHECK_MSG(plan_parse(rule->text, strlen(rule->text), &plan, &err) == ESP_OK, "%s\n%s", err.text, rule->text);
	enum esp_status status = plan_check(plan, NULL, &report, NULL, &err);
	if (!rule->why)
		CHECK_MSG(status == ESP_OK, "refused: %s\n%s", err.text, rule->text);
	else
		CHECK_MSG(status == ESP_EPLAN && strstr(err.text, rule->why), "\"%s\" does not say \"%s\"\n%s",
		          status == ESP_OK ? "passed" : err.text, rule->why, rule->text);
	plan_close(plan);
}

/* The fault names the place, and an observer sees every message with its round. */
static void count_message(void *context, uint64_t chunk, uint32_t from, uint32_t to, uint32_t round, uint64_t bytes,
                          bool is_final)
{
	uint64_t *seen = context;

	CHECK(chunk == 0 && bytes == 8 && from != to);
	CHECK_U64(round, is_final ? 2 : 1);
	(*seen)++;
}

static void reports(void)
{
	uint64_t seen = 0;
	struct plan_observer observer = {count_message, &seen};
	struct plan *plan;
	struct plan_report report;
	struct plan_fault fault;

	CHECK(plan_parse(rules[0].text, strlen(rules[0].text), &plan, NULL) == ESP_OK);
	CHECK(plan_check(plan, &observer, &report, NULL, NULL) == ESP_OK);
	CHECK_U64(seen, 2);
	CHECK_U64(report.messages, 2);
	CHECK_U64(report.rounds, 2);
	CHECK_U64(report.wire_bytes, 16);
	CHECK_U64(report.busiest_bytes, 16);
	CHECK_U64(report.rows, 2);
	plan_close(plan);
	CHECK(plan_parse(rules[2].text, strlen(rules[2].text), &plan, NULL) == ESP_OK);
	CHECK(plan_check(plan, NULL, &report, &fault, NULL) == ESP_EPLAN);
	CHECK_U64(fault.chunk, 0);
	CHECK(fault.node < 2);
	CHECK_U64(fault.step, 2); /* its recv=, or its recv+ */
	plan_close(plan);
}

/* ---- turns ---- */

/* The messages that follow from a message leave in the same turn. */
static uint32_t same_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	(void)plan, (void)chunk, (void)from, (void)to, (void)nth;
	return 0;
}

/* A node's second message to another comes before its first. */
static uint32_t second_first(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	(void)plan, (void)chunk, (void)from, (void)to;
	return 1 - nth;
}

/* An owner takes the parts of the others by rank, but they leave the other way round; sums leave last. */
static uint32_t last_first(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	(void)to, (void)nth;
	return from == plan->owner[chunk] ? plan->workers : plan->workers - 1 - from;
}

static uint32_t first_first(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	(void)to, (void)nth;
	return from == plan->owner[chunk] ? plan->workers : from;
}

/* Node 0 has two messages for node 1. */
static bool twice(const struct plan *plan, uint32_t node, const struct plan_piece *piece, struct plan_row *row)
{
	(void)plan, (void)piece;
	if (node == 0) {
		plan_row_fetch(row);
		plan_row_send(row, PLAN_IN, 1);
		plan_row_send(row, PLAN_IN, 1);
		plan_row_copy(row, PLAN_OUT, PLAN_IN);
	} else {
		plan_row_recv(row, plan_row_tmp(row), 0);
		plan_row_recv(row, PLAN_OUT, 0);
	}
	plan_row_deliver(row);
	return true;
}

/* Two chunks are numbered together, by a planner with these turns. */
static void check_turns(const struct planner *like, enum plan_collective collective, uint32_t workers,
                        uint32_t (*turn)(const struct plan *, uint64_t, uint32_t, uint32_t, uint32_t), const char *why)
{
	struct planner planner = *like;
	struct plan_spec spec = {
		.chunks = {.collective = collective, .workers = workers, .bytes = 16, .chunk_bytes = 8, .align = 8}};
	struct plan *plan;
	struct plan_report report;
	struct error err = {0};

	planner.turn = turn;
	CHECK(plan_open(&planner, &spec, &plan, &err) == ESP_OK);
	plan->lap = 2;
	enum esp_status status = plan_check(plan, NULL, &report, NULL, &err);
	if (why)
		CHECK_MSG(status == ESP_EPLAN && strstr(err.text, why), "%s", status == ESP_OK ? "passed" : err.text);
	else
		CHECK_MSG(status == ESP_OK, "%s", err.text);
	plan_close(plan);
}

static void turns(void)
{
	static const struct planner sends_twice = {.name = "twice", .row = twice};

	check_turns(&planner_ring, PLAN_ALLREDUCE, 4, planner_ring.turn, NULL);
	check_turns(&planner_ring, PLAN_ALLREDUCE, 4, same_turn, "what the row waited for before has turn 0");
	check_turns(&planner_halving_doubling, PLAN_ALLREDUCE, 4, planner_halving_doubling.turn, NULL);
	check_turns(&planner_halving_doubling, PLAN_ALLREDUCE, 11, planner_halving_doubling.turn, NULL);
	check_turns(&planner_halving_doubling, PLAN_ALLREDUCE, 4, same_turn, "what the row waited for before has turn 0");
	check_turns(&planner_flat, PLAN_ALLREDUCE, 4, first_first, NULL);
	check_turns(&planner_flat, PLAN_ALLREDUCE, 4, last_first, "after one of a later turn");
	check_turns(&sends_twice, PLAN_BROADCAST, 2, same_turn, NULL);
	check_turns(&sends_twice, PLAN_BROADCAST, 2, second_first, "the message before it turn 1");
}

int main(void)
{
	turns();
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		check_rule(&rules[i]);
	reports();
	return 0;
}
