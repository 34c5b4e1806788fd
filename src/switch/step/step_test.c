/*
 * The rules of the step one by one, with words. That they hold together is explored in tests/switch.
 */
#include "switch/step/step_text.h"

#include "base/check.h"
#include "base/rng.h"

#define WORDS 4u
#define AGE_NS 1000u

static const struct step_limits limits = {.age_ns = AGE_NS, .words_max = WORDS};

struct bench {
	struct step_slot slot;
	uint32_t sum[WORDS];
	struct atp_packet packet;
	uint32_t words[WORDS];
	uint64_t now;
};

/* Child `child` of three, with words that tell it from others. */
static void prepare(struct bench *bench, uint32_t sequence, uint32_t child, uint8_t flags)
{
	bench->packet = (struct atp_packet){
		.type = ATP_GRADIENT, .flags = flags, .kind = ATP_FIXED_32, .fan_in = {3, 0}, .words = WORDS,
		.next = ATP_NO_NEXT,
		.sequence = sequence, .flow = 77, .bitmap = UINT64_C(1) << child, .tag = UINT64_C(1) << (16 * child),
	};
	for (uint32_t i = 0; i < WORDS; i++)
		bench->words[i] = 1u << (8 * child);
}

static enum step_event run(struct bench *bench, bool is_child)
{
	CHECK(atp_packet_valid(&bench->packet));
	enum step_event event = step_run(&limits, &bench->slot, &bench->packet, is_child, bench->now);
	step_run_words(event, bench->sum, bench->words, bench->packet.words);
	return event;
}

static enum step_event give(struct bench *bench, uint32_t sequence, uint32_t child, uint8_t flags)
{
	prepare(bench, sequence, child, flags);
	return run(bench, true);
}

/* Tag and words show which children are in; the bitmap must say the same. */
static void check_leaves(const struct bench *bench, uint64_t bitmap)
{
	uint64_t tag = 0;
	uint32_t word = 0;

	for (uint32_t child = 0; child < 3; child++)
		if (bitmap >> child & 1) {
			tag += UINT64_C(1) << (16 * child);
			word += 1u << (8 * child);
		}
	CHECK_U64(bench->packet.bitmap, bitmap);
	CHECK_U64(bench->packet.tag, tag);
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK_U64(bench->words[i], word);
}

static void test_complete(void)
{
	struct bench bench = {.now = 5};

	CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
	CHECK_U64(give(&bench, 9, 1, 0), STEP_REPEATED);
	CHECK_U64(give(&bench, 9, 0, ATP_MARK), STEP_ADDED);
	CHECK_U64(give(&bench, 9, 2, 0), STEP_COMPLETED);
	check_leaves(&bench, 7);
	CHECK((bench.packet.flags & ATP_MARK) && bench.packet.hop == 0);
	/* The slot stays: late originals are dropped, one resend fetches the sum again. */
	CHECK_U64(give(&bench, 9, 2, 0), STEP_REPEATED);
	CHECK_U64(give(&bench, 9, 0, ATP_RESEND), STEP_RELEASED);
	check_leaves(&bench, 7);
	CHECK(!bench.slot.is_used);
	CHECK_U64(give(&bench, 9, 0, ATP_RESEND), STEP_RESEND_UNKNOWN);
	check_leaves(&bench, 1);
	CHECK(!bench.slot.is_used);
}

static void test_resend(void)
{
	struct bench bench = {.now = 5};

	CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
	CHECK_U64(give(&bench, 9, 2, ATP_RESEND), STEP_RELEASED_ADDED);
	check_leaves(&bench, 6);
	CHECK(bench.packet.flags & ATP_RESEND);
	CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
	CHECK_U64(give(&bench, 9, 1, ATP_RESEND), STEP_RELEASED);
	check_leaves(&bench, 2);
	CHECK(!bench.slot.is_used);
}

static void test_collision(void)
{
	struct bench bench = {.now = 5};

	CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
	CHECK_U64(give(&bench, 10, 0, 0), STEP_COLLIDED);
	check_leaves(&bench, 1);
	CHECK_U64(bench.packet.flags, ATP_COLLISION | ATP_RESEND);
	CHECK_U64(give(&bench, 9, 0, 0), STEP_ADDED);
	bench.now += AGE_NS;
	CHECK_U64(give(&bench, 10, 0, 0), STEP_COLLIDED);
	bench.now++;
	CHECK_U64(give(&bench, 10, 0, ATP_RESEND), STEP_RESEND_UNKNOWN);
	CHECK(!bench.slot.is_used);
	CHECK_U64(give(&bench, 9, 0, 0), STEP_CLAIMED);
	bench.now += AGE_NS + 1;
	CHECK_U64(give(&bench, 10, 0, 0), STEP_RECLAIMED);
	CHECK_U64(give(&bench, 10, 1, 0), STEP_ADDED);
	CHECK_U64(give(&bench, 10, 2, 0), STEP_COMPLETED);
	check_leaves(&bench, 7);
	/* A clock that is behind another core's makes nothing old. */
	bench.now -= 10;
	CHECK_U64(give(&bench, 11, 0, 0), STEP_COLLIDED);
}

/* The same number with other contents is not added. */
static void test_contents(void)
{
	for (int i = 0; i < 6; i++) {
		struct bench bench = {.now = 5};
		CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
		prepare(&bench, 9, 0, 0);
		switch (i) {
		case 0: bench.packet.call = 1; break;
		case 1: bench.packet.scale = 1; break;
		case 2: bench.packet.kind = ATP_FIXED_16; break;
		case 3: bench.packet.words = WORDS - 1; break;
		case 4: bench.packet.fan_in[0] = 4; break;
		default: bench.packet.group = 1; break;
		}
		CHECK_U64(run(&bench, true), STEP_COLLIDED);
		CHECK_U64(bench.slot.bitmap, 2);
	}
}

static void test_untouched(void)
{
	struct bench bench = {.now = 5};

	CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
	CHECK_U64(give(&bench, 9, 0, ATP_RESEND | ATP_BYPASS), STEP_BYPASSED);
	prepare(&bench, 9, 0, ATP_RESEND);
	CHECK_U64(run(&bench, false), STEP_NOT_CHILD);
	prepare(&bench, 9, 0, ATP_RESEND);
	bench.packet.bitmap = 5;
	CHECK_U64(run(&bench, true), STEP_NOT_CHILD);
	CHECK(bench.slot.is_used && bench.slot.bitmap == 2);
	prepare(&bench, 12, 0, 0);
	bench.packet.words = WORDS + 1;
	CHECK_U64(step_run(&limits, &bench.slot, &bench.packet, true, bench.now), STEP_TOO_LONG);
}

static void test_result(void)
{
	struct bench bench = {.now = 5};

	CHECK_U64(give(&bench, 9, 1, 0), STEP_CLAIMED);
	bench.packet = (struct atp_packet){.type = ATP_RESULT, .flow = 77, .sequence = 10, .kind = 1, .words = WORDS};
	CHECK_U64(run(&bench, false), STEP_RESULT_PASSED);
	CHECK(bench.slot.is_used);
	bench.packet.sequence = 9;
	CHECK_U64(run(&bench, false), STEP_RESULT_FREED);
	CHECK(!bench.slot.is_used);
	bench.packet.flags = ATP_BYPASS;
	CHECK_U64(run(&bench, false), STEP_BYPASSED);
	bench.packet = (struct atp_packet){.type = ATP_HELLO, .words = WORDS};
	CHECK_U64(run(&bench, false), STEP_NOT_MINE);
}

/* A complete group is one original of the second level, also if a resend completed it. */
static void test_levels(void)
{
	struct bench bench = {.now = 5};

	for (int resend = 0; resend < 2; resend++) {
		for (uint32_t child = 0; child < 3; child++) {
			prepare(&bench, 9, child, child == 2 && resend ? ATP_RESEND : 0);
			bench.packet.fan_in[1] = 4;
			bench.packet.group = 3;
			CHECK_U64(run(&bench, true), child == 0 ? STEP_CLAIMED : child == 1 ? STEP_ADDED :
			          resend ? STEP_RELEASED_ADDED : STEP_COMPLETED);
		}
		CHECK(bench.packet.hop == 1 && bench.packet.bitmap == 8 && bench.packet.group == 0 && bench.packet.flags == 0);
		CHECK(atp_packet_valid(&bench.packet));
		bench.slot.is_used = 0;
	}
	prepare(&bench, 9, 0, ATP_RESEND);
	bench.packet.fan_in[0] = 1;
	bench.packet.fan_in[1] = 4;
	bench.packet.group = 2;
	CHECK_U64(run(&bench, true), STEP_ALONE);
	CHECK(bench.packet.hop == 1 && bench.packet.bitmap == 4 && bench.packet.flags == 0 && !bench.slot.is_used);
	/* Hop 0 and hop 1 of a number never share a slot. */
	CHECK_U64(give(&bench, 9, 0, 0), STEP_CLAIMED);
	prepare(&bench, 9, 1, 0);
	bench.packet.hop = 1;
	bench.packet.fan_in[0] = 0;
	bench.packet.fan_in[1] = 3;
	CHECK_U64(run(&bench, true), STEP_COLLIDED);
}

/* Numbers of a window have slots of their own; flows start anywhere. */
static void test_index(struct rng *rng)
{
	uint32_t starts[64] = {0};

	for (int i = 0; i < 6400; i++) {
		uint64_t flow = rng_next(rng), first = step_index(flow, 5, 64);
		for (uint32_t number = 6; number < 5 + 64; number++)
			CHECK(step_index(flow, number, 64) == (first + number - 5) % 64);
		starts[first]++;
	}
	for (int i = 0; i < 64; i++)
		CHECK_MSG(starts[i] > 40 && starts[i] < 180, "slot %d is the first of %u of 6400 flows", i, starts[i]);
}

static void test_names(void)
{
	for (int event = 0; event < STEP_EVENTS; event++) {
		CHECK(step_event_name((enum step_event)event) && step_event_rule((enum step_event)event));
		CHECK(step_leaves((enum step_event)event) || step_words_of((enum step_event)event) != STEP_WORDS_TAKE);
	}
	CHECK_STR(step_event_rule(STEP_RELEASED), "S5");
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_complete();
	test_resend();
	test_collision();
	test_contents();
	test_untouched();
	test_result();
	test_levels();
	test_index(&rng);
	test_names();
	return 0;
}
