/*
 * Plans survive the way through text: every planner, every collective, 1 to 17 nodes and random sizes, groups and
 * options (--seed N). Text that is no plan is refused with its line.
 */
#include "plan/text.h"

#include "base/check.h"
#include "base/rng.h"
#include "plan/check.h"

#define NODES_MAX 17u

struct text {
	char *bytes;
	size_t length;
};

static struct text print(const struct plan *plan)
{
	struct text text = {0};
	struct error err = {0};
	FILE *file = open_memstream(&text.bytes, &text.length);

	CHECK(file);
	CHECK_MSG(plan_print(plan, file, &err) == ESP_OK, "%s", err.text);
	CHECK(fclose(file) == 0);
	return text;
}

static struct plan *parse(const char *bytes, size_t length)
{
	struct plan *plan = NULL;
	struct error err = {0};

	CHECK_MSG(plan_parse(bytes, length, &plan, &err) == ESP_OK, "%s\nof:\n%.*s", err.text, (int)length, bytes);
	return plan;
}

static struct plan_report check(const struct plan *plan, const struct text *text)
{
	struct plan_report report = {0};
	struct error err = {0};

	CHECK_MSG(plan_check(plan, NULL, &report, NULL, &err) == ESP_OK, "%s\n%s", err.text, text->bytes);
	return report;
}

/* ---- equal plans ---- */

static void same_reports(const struct plan_report *a, const struct plan_report *b)
{
	CHECK_U64(a->chunks, b->chunks);
	CHECK_U64(a->rows, b->rows);
	CHECK_U64(a->steps, b->steps);
	CHECK_U64(a->messages, b->messages);
	CHECK_U64(a->rounds, b->rounds);
	CHECK_U64(a->wire_bytes, b->wire_bytes);
	CHECK_U64(a->cross_bytes, b->cross_bytes);
	CHECK_U64(a->busiest_node, b->busiest_node);
	CHECK_U64(a->busiest_bytes, b->busiest_bytes);
	CHECK_U64(a->busiest_sent, b->busiest_sent);
	CHECK_U64(a->busiest_received, b->busiest_received);
	CHECK_U64(a->scratch_slots, b->scratch_slots);
	CHECK_U64(a->row_steps, b->row_steps);
}

static void same_heads(const struct plan *a, const struct plan *b)
{
	CHECK_STR(plan_planner_name(a->planner), plan_planner_name(b->planner));
	CHECK_U64(a->chunks.collective, b->chunks.collective);
	CHECK_U64(a->chunks.root, b->chunks.root);
	CHECK_U64(a->chunks.workers, b->chunks.workers);
	CHECK_U64(a->chunks.chunk_count, b->chunks.chunk_count);
	CHECK_U64(a->workers, b->workers);
	CHECK_U64(a->nodes, b->nodes);
	CHECK_U64(a->in_place, b->in_place);
	CHECK_U64(plan_lap(a), plan_lap(b));
	CHECK_U64(a->abreast, b->abreast);
	CHECK_U64(a->group_count, b->group_count);
	CHECK(!a->group_of == !b->group_of);
	for (uint32_t i = 0; a->group_of && i < a->nodes; i++)
		CHECK_U64(a->group_of[i], b->group_of[i]);
	for (uint32_t i = 0; i < a->workers; i++) {
		CHECK_U64(plan_chunks_input_bytes(&a->chunks, i), plan_chunks_input_bytes(&b->chunks, i));
		CHECK_U64(plan_chunks_output_bytes(&a->chunks, i), plan_chunks_output_bytes(&b->chunks, i));
	}
}

/* Of the k-th message from each node to each other, for as many as there can be. */
static void same_turns(const struct plan *a, const struct plan *b, uint64_t chunk, uint32_t node,
                       const struct plan_row *row)
{
	for (uint32_t i = 0; i < row->count; i++) {
		uint32_t nth = 0;

		if (row->steps[i].verb != PLAN_SEND)
			continue;
		for (uint32_t before = 0; before < i; before++)
			nth += row->steps[before].verb == PLAN_SEND && row->steps[before].node == row->steps[i].node;
		CHECK_U64(plan_turn(a, chunk, node, row->steps[i].node, nth),
		          plan_turn(b, chunk, node, row->steps[i].node, nth));
	}
}

static void same_chunks(const struct plan *a, const struct plan *b)
{
	struct plan_row x = {0}, y = {0};

	for (uint64_t c = 0; c < a->chunks.chunk_count; c++) {
		struct plan_piece p = plan_chunks_piece(&a->chunks, c), q = plan_chunks_piece(&b->chunks, c);

		CHECK_U64(p.bytes, q.bytes);
		CHECK_U64(p.in_at, q.in_at);
		CHECK_U64(p.out_at, q.out_at);
		CHECK_U64(p.from, q.from);
		CHECK_U64(p.to, q.to);
		for (uint32_t node = 0; node < a->nodes; node++) {
			CHECK(plan_row(a, node, c, &x) == ESP_OK && plan_row(b, node, c, &y) == ESP_OK);
			CHECK_U64(x.count, y.count);
			CHECK_U64(x.tmp_count, y.tmp_count);
			CHECK(x.count == 0 || memcmp(x.steps, y.steps, x.count * sizeof(*x.steps)) == 0);
			same_turns(a, b, c, node, &x);
		}
	}
	plan_row_fini(&x);
	plan_row_fini(&y);
}

static void round_trip(const struct plan *plan)
{
	struct text text = print(plan);
	struct plan *copy = parse(text.bytes, text.length);
	struct text again = print(copy);
	struct plan_report before = check(plan, &text), after = check(copy, &text);

	CHECK_MSG(text.length == again.length && memcmp(text.bytes, again.bytes, text.length) == 0,
	          "printed again, the text differs:\n%s\n%s", text.bytes, again.bytes);
	same_heads(plan, copy);
	same_chunks(plan, copy);
	same_reports(&before, &after);
	plan_close(copy);
	free(text.bytes);
	free(again.bytes);
}

/* ---- random plans ---- */

struct draw {
	struct plan_spec spec;
	uint32_t groups[NODES_MAX];
	uint64_t counts[NODES_MAX * NODES_MAX];
};

/* Without gaps: each new group is the next number. */
static void draw_groups(struct draw *draw, struct rng *rng, uint32_t workers)
{
	uint32_t count = 0, most = (uint32_t)rng_below(rng, workers) + 1;

	for (uint32_t i = 0; i < workers; i++) {
		uint32_t group = (uint32_t)rng_below(rng, most);

		draw->groups[i] = group < count ? group : count++;
	}
	draw->spec.group_of = draw->groups;
}

static void draw_sizes(struct draw *draw, struct rng *rng)
{
	struct chunks_spec *chunks = &draw->spec.chunks;

	if (chunks->collective == PLAN_BARRIER)
		return;
	chunks->chunk_bytes = rng_below(rng, 400);
	chunks->align = (uint32_t)rng_below(rng, 9);
	if (rng_chance(rng, 1, 2)) {
		chunks->bytes = rng_below(rng, 1000);
		return;
	}
	for (uint32_t i = 0; i < NODES_MAX * NODES_MAX; i++)
		draw->counts[i] = rng_chance(rng, 1, 4) ? 0 : rng_below(rng, 1000);
	chunks->counts = draw->counts;
}

static void draw_spec(struct draw *draw, struct rng *rng, const struct planner *planner,
                      enum plan_collective collective, uint32_t workers)
{
	*draw = (struct draw){
		.spec = {
			.chunks = {.collective = collective, .workers = workers, .root = (uint32_t)rng_below(rng, workers)},
			.in_place = collective != PLAN_ALLTOALL && rng_chance(rng, 1, 2),
			.leaves = rng_chance(rng, 1, 2),
			.servers = (uint32_t)rng_below(rng, 4),
		},
	};
	draw->spec.fanout = (uint32_t)rng_below(rng, 4) + (draw->spec.leaves ? 2 : 1);
	if (plan_planner_needs_groups(planner) || rng_chance(rng, 1, 2))
		draw_groups(draw, rng, workers);
	draw_sizes(draw, rng);
}

static void test_round_trips(uint64_t seed, const struct planner *planner, enum plan_collective collective)
{
	for (uint32_t workers = 1; workers <= NODES_MAX; workers++) {
		struct rng rng;
		struct draw draw;
		struct plan *plan;
		struct error err = {0};

		rng_init(&rng, seed * 1000003 + (uint64_t)collective * 100 + workers);
		draw_spec(&draw, &rng, planner, collective, workers);
		CHECK_MSG(plan_open(planner, &draw.spec, &plan, &err) == ESP_OK, "%s", err.text);
		round_trip(plan);
		plan_close(plan);
	}
}

static void test_all_round_trips(uint64_t seed)
{
	for (unsigned i = 0; plan_planner(i); i++) {
		for (unsigned c = 0; c < PLAN_COLLECTIVE_COUNT; c++)
			test_round_trips(seed, plan_planner(i), (enum plan_collective)c);
	}
}

/* So many chunks that planners with laps use them; workers in any order, laps of any length. */
static void test_laps(uint64_t seed, const char *name)
{
	const struct planner *planner = plan_planner_find(name);
	bool takes_order = !plan_planner_needs_groups(planner) && !plan_planner_has_extra(planner);
	unsigned laps = 0;

	for (uint32_t workers = 1; workers <= NODES_MAX; workers++) {
		struct rng rng;
		struct draw draw = {0};
		uint32_t order[NODES_MAX];
		struct plan *plan;
		struct error err = {0};

		rng_init(&rng, seed * 1000003 + workers);
		draw_groups(&draw, &rng, workers);
		draw.spec.chunks = (struct chunks_spec){
			.workers = workers, .bytes = 8 * (17 + rng_below(&rng, 60)), .chunk_bytes = 8, .align = 8};
		draw.spec.lap_chunks = (uint32_t)rng_below(&rng, 5);
		for (uint32_t i = 0; i < workers; i++) {
			uint32_t other = (uint32_t)rng_below(&rng, i + 1);

			order[i] = order[other];
			order[other] = i;
		}
		draw.spec.order = takes_order ? order : NULL;
		CHECK_MSG(plan_open(planner, &draw.spec, &plan, &err) == ESP_OK, "%s", err.text);
		round_trip(plan);
		laps += plan_lap(plan) > 1;
		plan_close(plan);
	}
	CHECK_MSG(laps >= NODES_MAX - 1, "%s had laps %u times only", name, laps);
}

static void test_all_laps(uint64_t seed)
{
	static const char *const names[] = {"ring", "halving-doubling", "two-level", "three-level", "ring-switch"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		test_laps(seed, names[i]);
}

/* ---- texts that people wrote ---- */

#define HEAD "espalier-plan 1\ncollective allreduce\nnodes 2\ninput 8*2\noutput 8*2\n"
#define CHUNK HEAD "chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
#define ROWS \
	"  0: fetch; send in > 1; recv= out < 1; deliver\n  1: fetch; recv+ out < 0 in; update out; send out > 0; " \
	"deliver\n"
#define CANON "espalier-plan 1\nplanner custom\ncollective allreduce\nnodes 2\ninput 8*2\noutput 8*2\n" \
	"chunk 0: 8 bytes, in+0, out+0, from *, to *\n" ROWS "end\n"

#define LAP_HEAD \
	"espalier-plan 1\nplanner custom\ncollective broadcast\nnodes 3\nlap 2\nabreast 5\ninput 16 0*2\noutput 16*3\n"
#define LAP_REST \
	"  1: recv= out < 0; send out > 2 @4; deliver\n  2: recv= tmp0 < 0; recv= tmp0 < 0; recv= out < 1; deliver\n"
#define LAP_ROWS "  0: fetch; send in > 1 2 @0 2 @2; copy out < in; deliver\n" LAP_REST
#define LAP_CHUNK(number, at) "chunk " number ": 8 bytes, in+" at ", out+" at ", from 0, to *\n"
#define LAP_CANON LAP_HEAD LAP_CHUNK("0", "0") LAP_ROWS LAP_CHUNK("1", "8") LAP_ROWS "end\n"

/* The turn stands behind those that it is for, and may stand behind each of them. */
static const char *const ways_to_write_turns[] = {
	LAP_CANON,
	LAP_HEAD LAP_CHUNK("0", "0") "0: fetch; send in > 1 @ 0 2@0 2 @ 02; copy out < in; deliver\n" LAP_REST
		LAP_CHUNK("1", "8") "0: fetch; send in>1 2@0; send in > 2@2; copy out < in; deliver\n" LAP_REST "end",
};

static const char *const ways_to_write[] = {
	CANON,
	CHUNK ROWS "end",
	CHUNK ROWS "end # no newline",
	CHUNK ROWS "end\n\n# nothing\n\t \n",
	"# a comment first\n\n" CHUNK "# and between\n\n" ROWS "end\n",
	"espalier-plan 1\r\nplanner somebody-else_2\r\ncollective allreduce\r\nroot 0\r\nnodes 02\r\nextra 0\r\n"
	"in-place no\r\ninput 8 8\r\noutput 8 8\r\nchunk 0: 8 bytes, in+0, out+0, from *, to *\r\n" ROWS "\r\nend\r\n",
	CHUNK "0:fetch;send in>1;recv=out<1;deliver#like this\n1 :\tfetch ; recv + out < 0 in ; update out;send "
          "out>0;deliver\nend",
};

static struct plan *same_text(const char *way, const char *canon)
{
	struct plan *plan = parse(way, strlen(way));
	struct text text = print(plan);

	CHECK_STR(text.bytes, canon);
	(void)check(plan, &text);
	free(text.bytes);
	return plan;
}

static void test_ways_to_write(void)
{
	for (size_t i = 0; i < sizeof(ways_to_write) / sizeof(ways_to_write[0]); i++)
		plan_close(same_text(ways_to_write[i], CANON));
	for (size_t i = 0; i < sizeof(ways_to_write_turns) / sizeof(ways_to_write_turns[0]); i++) {
		struct plan *plan = same_text(ways_to_write_turns[i], LAP_CANON);

		CHECK_U64(plan_lap(plan), 2);
		CHECK_U64(plan->abreast, 5);
		CHECK_U64(plan_turn(plan, 1, 0, 2, 0), 0);
		CHECK_U64(plan_turn(plan, 1, 0, 2, 1), 2);
		CHECK_U64(plan_turn(plan, 1, 1, 2, 0), 4);
		CHECK_U64(plan_turn(plan, 1, 1, 2, 1), 0); /* it sends one */
		CHECK_U64(plan->row_at[0], plan->row_at[3]); /* equal rows, with equal turns */
		plan_close(plan);
	}
}

/* Rows that differ in their turns alone are two; and a lap of one chunk is none. */
static void test_rows_by_turn(void)
{
	static const char other[] = LAP_HEAD LAP_CHUNK("0", "0")
		LAP_ROWS LAP_CHUNK("1", "8") "  0: fetch; send in > 1 @0 2 2 @1; copy out < in; deliver\n" LAP_REST "end\n";
	static const char one[] =
		"espalier-plan 1\ncollective broadcast\nnodes 2\nlap 1\nabreast 0\ninput 8 0\noutput 8*2\n"
		"chunk 0: 8 bytes, in+0, out+0, from 0, to *\n 0: fetch; send in > 1; copy out < in; deliver\n 1: recv= out < "
	    "0; deliver\nend\n";
	struct plan *plan = same_text(other, other);

	CHECK(plan->row_at[0] != plan->row_at[3] && plan->row_at[1] == plan->row_at[4]);
	CHECK_U64(plan_turn(plan, 0, 0, 2, 0), 0);
	CHECK_U64(plan_turn(plan, 1, 0, 2, 0), 1);
	plan_close(plan);
	plan = parse(one, strlen(one));
	CHECK(plan_lap(plan) == 1 && plan->abreast == 0 && !plan->turns);
	round_trip(plan);
	plan_close(plan);
}

/* Keys of the head are printed again, though one abreast asks for no more than none does. */
static void test_one_abreast(void)
{
	static const char text[] =
		"espalier-plan 1\nplanner custom\ncollective barrier\nnodes 1\nabreast 1\ninput 0\noutput 0\nend\n";
	struct plan *plan = parse(text, strlen(text)), *copy;
	struct text printed = print(plan);

	CHECK_STR(printed.bytes, text);
	copy = parse(printed.bytes, printed.length);
	CHECK_U64(plan->abreast, 1);
	same_heads(plan, copy);
	plan_close(plan);
	plan_close(copy);
	free(printed.bytes);
}

static void test_sends_merge(void)
{
	static const char text[] = "espalier-plan 1\ncollective broadcast\nnodes 4\ninput 8*4\noutput 8*4\n"
				   "chunk 0: 8 bytes, in+0, out+0, from 0, to *\n"
				   "0: fetch; send in > 1; send in > 2 3; send tmp31 > 1; send in > 1 1\nend";
	struct plan *plan = parse(text, strlen(text));
	struct text printed = print(plan);
	struct plan_row row = {0};

	CHECK(strstr(printed.bytes, "\n  0: fetch; send in > 1 2 3; send tmp31 > 1; send in > 1 1\nend\n"));
	CHECK(plan_row(plan, 0, 0, &row) == ESP_OK);
	CHECK_U64(row.count, 7);
	plan_row_fini(&row);
	plan_close(plan);
	free(printed.bytes);
}

/* A text may declare more than its pieces use (the checker objects); extra nodes may have a group of their own. */
static void test_extra_groups(void)
{
	static const char text[] = "espalier-plan 1\nplanner two-level\ncollective reduce\nroot 1\nnodes 2\nextra 2\n"
				   "in-place yes\ngroups 0 1*2 2\ninput 100*2\noutput 0 18446744073709551615\nend\n";
	struct plan *plan = parse(text, strlen(text));

	CHECK_U64(plan->nodes, 4);
	CHECK_U64(plan->workers, 2);
	CHECK_U64(plan->group_count, 3);
	CHECK_U64(plan->group_of[2], 1);
	CHECK_U64(plan->group_of[3], 2);
	CHECK_U64(plan->chunks.root, 1);
	CHECK(plan->in_place);
	CHECK_STR(plan_planner_name(plan->planner), "two-level");
	CHECK_U64(plan_chunks_input_bytes(&plan->chunks, 0), 100);
	CHECK_U64(plan_chunks_output_bytes(&plan->chunks, 1), UINT64_MAX);
	plan_close(plan);
}

/* ---- texts that are no plans ---- */

static const struct refusal {
	const char *text;
	const char *why;
} refusals[] = {
	{"", "line 1: this is not a plan"},
	{"\n\n# only a comment", "line 3: this is not a plan"},
	{"espalier-plans 1\n", "line 1: this is not a plan"},
	{"\x7f"
     "ELF",
     "line 1: this is not a plan"},
	{"espalier-plan\n", "line 1: expected the version of the language, not the end of the line"},
	{"espalier-plan 2\n", "line 1: version 2 of the plan language is unknown"},
	{"espalier-plan 1 2\n", "line 1: expected the end of the line, not '2'"},
	{"espalier-plan 1\n", "line 2: the text ends before its 'end'"},
	{"espalier-plan 1\nend", "line 2: 'collective' is missing before this line"},
	{"espalier-plan 1\nplanner\n", "line 2: expected the name of a planner, not the end of the line"},
	{"espalier-plan 1\ncollective sum\n", "line 2: expected allreduce, reduce-scatter"},
	{"espalier-plan 1\ncollective reduces\n", "not 'reduces'"},
	{"espalier-plan 1\nnodes 2\n", "line 2: 'collective' is missing before this line"},
	{"espalier-plan 1\ncollective reduce\ncollective reduce\n", "line 3: 'collective' is repeated or too late"},
	{"espalier-plan 1\ncollective reduce\nplanner ring\n", "line 3: 'planner' is repeated or too late"},
	{"espalier-plan 1\ncollective reduce\nroot 2\n\nnodes 2\n", "line 3: root 2 is not among the 2 nodes"},
	{"espalier-plan 1\ncollective reduce\nroot 16777216\n", "line 3: root 16777216: there are at most 16777216"},
	{"espalier-plan 1\ncollective reduce\nnodes 0\n", "line 3: 0 nodes: there are 1 to 16777216"},
	{"espalier-plan 1\ncollective reduce\nnodes 16777217\n", "line 3: 16777217 nodes: there are 1 to 16777216"},
	{"espalier-plan 1\ncollective reduce\nnodes 2x\n", "line 3: expected how many nodes there are, not '2x'"},
	{"espalier-plan 1\ncollective reduce\nnodes 18446744073709551616\n",
     "line 3: 18446744073709551616 is too large for how many nodes there are"},
	{"espalier-plan 1\ncollective reduce\nnodes 99999999999999999999999999999\n",
     "line 3: 999999999999999999999999... is too large"},
	{"espalier-plan 1\ncollective reduce\nnodes -1\n", "line 3: expected how many nodes there are, not '-1'"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nextra 67108863\n",
     "line 4: 67108863 extra nodes: there are at most"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nin-place maybe\n", "line 4: expected yes or no, not 'maybe'"},
	{"espalier-plan 1\ncollective alltoall\nnodes 2\nin-place yes\n", "line 4: alltoall cannot be done in place"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups 0 2\n", "line 4: group 2: groups are numbered from 0"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups 1*2\n", "line 4: group 0 of 2 has no node"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nextra 1\ngroups 0 1\n", "line 5: the list holds 2 values"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups 0 1 1\n", "line 4: 1 times 1: the list holds one value"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups 0*3\n", "line 4: 3 times 0: the list holds one value"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups 0*0\n", "line 4: 0 times 0: the list holds one value"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups 0* 18446744073709551615\n",
     "line 4: 18446744073709551615 times"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ngroups\n", "line 4: expected the number of a group"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\noutput 8*2\n", "line 4: 'input' is missing"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ninput 8*\n", "line 4: expected how often the value repeats"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ninput 8*2\nend\n", "line 5: 'output' is missing"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\ninput 8*2\noutput 8*2\ncolour red\n",
     "line 6: expected a key of the head, chunk, or end, not 'colour'"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nlap 0\n", "line 4: lap 0: a lap has 1 to 4294967295 chunks"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nlap 4294967296\n", "line 4: lap 4294967296: a lap has 1 to"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nlap\n", "line 4: expected how many chunks are numbered together"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nlap 2\nlap 2\n", "line 5: 'lap' is repeated or too late"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nabreast 4294967296\n",
     "line 4: abreast 4294967296: there are at most"},
	{"espalier-plan 1\ncollective reduce\nnodes 2\nabreast all\n", "line 4: expected how many chunks are under way"},
	{LAP_HEAD LAP_CHUNK("0", "0") LAP_ROWS "end\n", "line 5: lap 2: the plan has 1 chunks"},
	{LAP_HEAD "end\n", "line 5: lap 2: the plan has 0 chunks"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 1\n",
     "line 10: expected '@' and a turn: the plan has laps, not the end of the line"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 1 @0 2; fetch\n",
     "line 10: expected '@' and a turn: the plan has laps, not ';'"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > @0\n", "line 10: expected the number of a node, not '@'"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 1 @\n", "line 10: expected a turn, not the end of the line"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 1 @-1\n", "line 10: expected a turn, not '-1'"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 1 @1 @2\n", "line 10: expected ';' or the end of the line, not '@'"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 1 @1073741824\n",
     "line 10: turn 1073741824: turns are numbered from 0 to 1073741823"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: send in > 2 @3 1 @0; send tmp0 > 2 @2\n",
     "line 10: node 0 sends node 2 a message of turn 2 after one of turn 3"},
	{LAP_HEAD LAP_CHUNK("0", "0") "0: recv= out < 1 @1\n", "line 10: expected ';' or the end of the line, not '@'"},
	{CHUNK "0: send in > 1 @0\n", "line 7: a message has a turn, but the head has no 'lap' of 2 chunks or more"},
	{HEAD "0: fetch\n", "line 6: a row stands before the first chunk"},
	{HEAD "chunk 1: 8 bytes, in+0, out+0, from *, to *\n", "line 6: chunk 1 stands where chunk 0 belongs"},
	{HEAD "chunk 0 8 bytes\n", "line 6: expected ':', not '8'"},
	{HEAD "chunk 0: 8 octets\n", "line 6: expected 'bytes', not 'octets'"},
	{HEAD "chunk 0: 8 bytes, out+0", "line 6: expected 'in', not 'out'"},
	{HEAD "chunk 0: 8 bytes, in+0, out+0, from *, to * 1\n", "line 6: expected the end of the line, not '1'"},
	{HEAD "chunk 0: 8 bytes, in+0, out+0, from 2, to *\n", "line 6: node 2 is not among the 2 nodes that hold data"},
	{HEAD "chunk 0: 9 bytes, in+0, out+0, from *, to *\n", "line 6: 9 bytes at in+0 are beyond the 8 bytes of node 1"},
	{HEAD "chunk 0: 8 bytes, in+0, out+1, from *, to *\n", "line 6: 8 bytes at out+1 are beyond the 8 bytes of node 1"},
	{HEAD "chunk 0: 8 bytes, in+18446744073709551615, out+0, from 1, to *\n", "at in+18446744073709551615 are beyond"},
	{"espalier-plan 1\ncollective gather\nnodes 3\ninput 8 16 4\noutput 99*3\n"
     "chunk 0: 16 bytes, in+0, out+0, from 1, to 0\nchunk 1: 5 bytes, in+0, out+0, from 2, to 0\n",
     "line 7: 5 bytes at in+0 are beyond the 4 bytes of node 2"},
	{"espalier-plan 1\ncollective reduce\nnodes 3\ninput 8 4 6\noutput 99*3\n"
     "chunk 0: 5 bytes, in+0, out+0, from *, to 0\n",
     "line 6: 5 bytes at in+0 are beyond the 4 bytes of node 1"},
	{CHUNK "2: fetch\n", "line 7: node 2 is not among the 2 nodes (0 to 1)"},
	{CHUNK "1: fetch\n0: fetch\n", "line 8: node 0 comes after node 1"},
	{CHUNK "0: fetch\n0: fetch\n", "line 8: node 0 comes after node 0"},
	{CHUNK "0 fetch\n", "line 7: expected ':', not 'fetch'"},
	{CHUNK "0:\n", "line 7: expected fetch, send, recv=, recv+, copy, update or deliver, not the end of the line"},
	{CHUNK "0: fetch;\n", "line 7: expected fetch, send"},
	{CHUNK "0: fetch fetch\n", "line 7: expected ';' or the end of the line, not 'fetch'"},
	{CHUNK "0: Fetch\n", "not 'Fetch'"},
	{CHUNK "0: send in 1\n", "line 7: expected '>', not '1'"},
	{CHUNK "0: send in >\n", "line 7: expected the number of a node, not the end of the line"},
	{CHUNK "0: send in > 0\n", "line 7: node 0 sends to or receives from itself"},
	{CHUNK "0: send in > 1 2\n", "line 7: node 2 is not among the 2 nodes"},
	{CHUNK "0: send in > 1 in\n", "line 7: expected ';' or the end of the line, not 'in'"},
	{CHUNK "0: send tmp32 > 1\n", "line 7: expected a place (in, out, tmp0 to tmp31), not 'tmp32'"},
	{CHUNK "0: send tmp > 1\n", "not 'tmp'"},
	{CHUNK "0: send tmp001 > 1\n", "not 'tmp001'"},
	{CHUNK "0: send tmpx > 1\n", "not 'tmpx'"},
	{CHUNK "0: send inn > 1\n", "not 'inn'"},
	{CHUNK "0: recv out < 1\n", "line 7: expected '=' or '+' after recv, not 'out'"},
	{CHUNK "0: recv= out < in\n", "line 7: expected the number of a node, not 'in'"},
	{CHUNK "0: recv= out < 0\n", "line 7: node 0 sends to or receives from itself"},
	{CHUNK "0: recv+ out < 1\n", "line 7: recv+ adds 2 terms or more, not 1"},
	{CHUNK "0: recv+ out <; fetch\n", "line 7: recv+ adds 2 terms or more, not 0"},
	{CHUNK "0: recv+ out < 1 0\n", "line 7: node 0 sends to or receives from itself"},
	{CHUNK "0: copy out < 1\n", "line 7: expected a place"},
	{CHUNK "0: update\n", "line 7: expected a place (in, out, tmp0 to tmp31), not the end of the line"},
	{CHUNK ROWS, "line 9: the text ends before its 'end'"},
	{CHUNK ROWS "end\nend\n", "line 10: expected nothing after 'end', not 'end'"},
	{CHUNK ROWS "end 1\n", "line 9: expected the end of the line, not '1'"},
	{CHUNK ROWS "nodes 3\n", "line 9: expected chunk, end, or the number of a node, not 'nodes'"},
	{CHUNK "\x01\x80\n", "line 7: expected chunk, end, or the number of a node, not '?'"},
};

static void refuse(const char *bytes, size_t length, enum esp_status expected, const char *why)
{
	struct plan *plan = NULL;
	struct error err = {0};
	/* In memory of its own, so that the sanitizer sees a read beyond its end. */
	char *copy = malloc(length ? length : 1);

	CHECK(copy);
	memcpy(copy, bytes, length);
	enum esp_status status = plan_parse(copy, length, &plan, &err);
	CHECK_MSG(status == expected && strstr(err.text, why), "status %d \"%s\", expected %d \"%s\" of:\n%s", status,
	          err.text, expected, why, bytes);
	CHECK(plan == NULL && err.status == expected);
	CHECK(plan_parse(copy, length, &plan, NULL) == expected);
	free(copy);
}

static void test_refusals(void)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		refuse(refusals[i].text, strlen(refusals[i].text), ESP_EPARSE, refusals[i].why);
	refuse(CHUNK "\0" ROWS "end\n", strlen(CHUNK) + 1 + strlen(ROWS) + 4, ESP_EPARSE, "line 7: expected chunk");
	for (size_t length = 0; length < strlen(CANON) - 1; length++)
		refuse(CANON, length, ESP_EPARSE, "line ");
	for (size_t length = 0; length < strlen(LAP_CANON) - 1; length++)
		refuse(LAP_CANON, length, ESP_EPARSE, "line ");
}

/* A few bytes of text may not ask for a table of gigabytes. */
static void test_limits(void)
{
	static const char many_nodes[] = "espalier-plan 1\ncollective reduce\nnodes 4194560\n";
	static const char many_extra[] = "espalier-plan 1\ncollective reduce\nnodes 1\nextra 4194560\n";
	static const char many_rows[] = "espalier-plan 1\ncollective barrier\nnodes 4194304\ninput 0*4194304\n"
					"output 0*4194304\nchunk 0: 0 bytes, in+0, out+0, from *, to *\n"
					"chunk 1: 0 bytes, in+0, out+0, from *, to *\nend\n";

	refuse(many_nodes, strlen(many_nodes), ESP_ELIMIT, "line 3: 4194560 nodes times 1 chunks");
	refuse(many_extra, strlen(many_extra), ESP_ELIMIT, "line 4: 4194561 nodes times 1 chunks");
	refuse(many_rows, strlen(many_rows), ESP_ELIMIT, "line 7: 4194304 nodes times 2 chunks");
}

/* Mutated texts are either refused with a line, or plans that print and parse again. */
static void test_mutations(uint64_t seed, const char *canon)
{
	static const char bytes[] = "0123456789 ;:<>=+*,@#\n\r\tinouttmpsendrecvcopy-\0\xff";
	struct rng rng;
	char text[sizeof(LAP_CANON)];
	size_t length = strlen(canon);
	unsigned good = 0;

	CHECK(length < sizeof(text));

	rng_init(&rng, seed);
	for (int round = 0; round < 20000; round++) {
		struct plan *plan;
		struct error err = {0};

		memcpy(text, canon, length);
		for (uint64_t i = rng_below(&rng, 3); i < 3; i++)
			text[rng_below(&rng, length)] = bytes[rng_below(&rng, sizeof(bytes))];
		enum esp_status status = plan_parse(text, length, &plan, &err);
		CHECK_MSG(status == ESP_OK || strncmp(err.text, "line ", 5) == 0, "%s", err.text);
		if (status != ESP_OK)
			continue;
		struct text once = print(plan);
		struct plan *copy = parse(once.bytes, once.length);
		struct text twice = print(copy);
		CHECK_STR(twice.bytes, once.bytes);
		struct plan_report report;
		CHECK(plan_check(plan, NULL, &report, NULL, NULL) == plan_check(copy, NULL, &report, NULL, NULL));
		plan_close(plan);
		plan_close(copy);
		free(once.bytes);
		free(twice.bytes);
		good++;
	}
	CHECK_MSG(good > 100, "only %u of the mutated texts were plans: too few to test anything", good);
}

static void test_full_disk(void)
{
	FILE *full = fopen("/dev/full", "w");
	struct plan *plan = parse(CANON, strlen(CANON));
	struct error err = {0};

	if (full) {
		CHECK(plan_print(plan, full, &err) == ESP_EIO);
		CHECK_STR(err.text, "cannot write the plan");
		fclose(full);
	}
	plan_close(plan);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint64_t i = 0; i < 4; i++)
		test_all_round_trips(seed + i);
	for (uint64_t i = 0; i < 4; i++)
		test_all_laps(seed + i);
	test_ways_to_write();
	test_rows_by_turn();
	test_one_abreast();
	test_sends_merge();
	test_extra_groups();
	test_refusals();
	test_limits();
	test_mutations(seed, CANON);
	test_mutations(seed, LAP_CANON);
	test_full_disk();
	return 0;
}
