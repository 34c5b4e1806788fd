/* All in virtual time: frames arrive at times that the seed chooses, and leave when they are due. */
#include "tools/lab/fault.h"

#include "base/check.h"

#define FRAMES 20000u

/* The outcome for a sequence of frames. */
struct tally {
	uint32_t lost, late, duplicated, corrupted, overtaken;
	uint64_t least_ns, most_ns; /* between arrival and departure */
	double delay_ns;            /* mean of the chosen delays */
	uint64_t digest; /* of all fates */
};

static struct tally play(const struct lab_faults *faults, uint64_t seed)
{
	struct fault fault;
	struct queue queue = {0};
	struct tally tally = {.least_ns = UINT64_MAX};
	static uint64_t arrived_ns[FRAMES];
	uint64_t now_ns = 0, newest = 0;
	struct rng times;
	rng_init(&times, seed + 1);
	lab_fault_init(&fault, seed, 3, LAB_TO);
	for (uintptr_t number = 1; number <= FRAMES || queue.count; number++) {
		struct fate fate = {.lost = true};
		if (number <= FRAMES) {
			now_ns += rng_below(&times, 100000);
			arrived_ns[number - 1] = now_ns;
			fate = lab_fault_draw(&fault, faults, 64 + (uint32_t)rng_below(&times, 1400), now_ns);
		} else {
			now_ns = lab_queue_next_ns(&queue);
		}
		tally.lost += number <= FRAMES && fate.lost;
		if (!fate.lost) {
			CHECK(fate.leave_ns >= now_ns);
			CHECK(!fate.corrupted || (fate.bit >= FAULT_HEADER * 8 && fate.bit < (64 + 1400) * 8));
			tally.late += fate.late;
			tally.duplicated += fate.duplicated;
			tally.corrupted += fate.corrupted;
			CHECK(lab_queue_push(&queue, fate.leave_ns, (void *)number, SIZE_MAX));
			if (fate.duplicated)
				CHECK(lab_queue_push(&queue, fate.leave_ns, (void *)number, SIZE_MAX));
			tally.delay_ns += (double)(fate.leave_ns - now_ns) / FRAMES;
		}
		for (void *frame; (frame = lab_queue_pop(&queue, now_ns));) {
			uint64_t which = (uintptr_t)frame, delay_ns = now_ns - arrived_ns[which - 1];
			tally.overtaken += which < newest;
			newest = which > newest ? which : newest;
			tally.least_ns = delay_ns < tally.least_ns ? delay_ns : tally.least_ns;
			tally.most_ns = delay_ns > tally.most_ns ? delay_ns : tally.most_ns;
			tally.digest = tally.digest * 31 + which;
		}
	}
	lab_queue_fini(&queue);
	return tally;
}

static bool is_about(uint32_t count, double expected)
{
	return count > expected * 0.8 && count < expected * 1.2;
}

static void test_nothing_set(uint64_t seed)
{
	const struct lab_faults none = {0};
	struct tally tally = play(&none, seed);
	CHECK(!tally.lost && !tally.late && !tally.duplicated && !tally.corrupted && !tally.overtaken);
	CHECK_U64(tally.most_ns, 0);
}

static void test_shares(uint64_t seed)
{
	const struct lab_faults faults = {.loss = 50000, .reorder = 100000, .duplicate = 100000, .corrupt = 100000,
	                                  .hold_ns = 2000000};
	struct tally tally = play(&faults, seed);
	double kept = FRAMES - tally.lost;
	CHECK_MSG(is_about(tally.lost, FRAMES * 0.05), "%u lost", tally.lost);
	CHECK_MSG(is_about(tally.late, kept * 0.1), "%u late", tally.late);
	CHECK_MSG(is_about(tally.duplicated, kept * 0.1), "%u duplicated", tally.duplicated);
	CHECK_MSG(is_about(tally.corrupted, kept * 0.1), "%u corrupted", tally.corrupted);
	CHECK_MSG(tally.overtaken > kept * 0.05, "only %u were overtaken", tally.overtaken);
}

/* Jitter varies the delay but never the order. */
static void test_delay_and_jitter(uint64_t seed)
{
	struct lab_faults faults = {.delay_ns = 5000000, .jitter_ns = 1000000};
	struct tally tally = play(&faults, seed);
	CHECK_U64(tally.overtaken, 0);
	CHECK_MSG(tally.least_ns >= 4000000 && tally.least_ns < 4300000, "%" PRIu64, tally.least_ns);
	CHECK_MSG(tally.most_ns > 5700000 && tally.most_ns <= 6100000, "%" PRIu64, tally.most_ns);
	CHECK_MSG(tally.delay_ns > 4900000 && tally.delay_ns < 5100000, "%g", tally.delay_ns);
	faults.jitter_ns = 9000000; /* more than the delay: no frame leaves before it has arrived */
	CHECK_U64(play(&faults, seed).overtaken, 0);
}

static void test_seeds(uint64_t seed)
{
	const struct lab_faults faults = {.loss = 50000, .reorder = 100000, .duplicate = 100000, .hold_ns = 2000000};
	struct lab_faults more = faults;
	CHECK_U64(play(&faults, seed).digest, play(&faults, seed).digest);
	CHECK(play(&faults, seed).digest != play(&faults, seed + 2).digest);
	/* Another setting does not change the other draws. */
	more.corrupt = 500000;
	CHECK_U64(play(&faults, seed).digest, play(&more, seed).digest);
}

static void test_cut(uint64_t seed)
{
	const struct lab_faults faults = {.cut = true};
	CHECK_U64(play(&faults, seed).lost, FRAMES);
}

static void test_queue(struct rng *rng)
{
	struct queue queue = {0};
	uint64_t last_ns = 0;
	uintptr_t last = 0;
	for (uintptr_t i = 1; i <= 5000; i++)
		CHECK(lab_queue_push(&queue, rng_below(rng, 300), (void *)i, 5000));
	CHECK(!lab_queue_push(&queue, 0, NULL, 5000));
	while (queue.count) {
		uint64_t next_ns = lab_queue_next_ns(&queue);
		CHECK(next_ns >= last_ns);
		CHECK(next_ns == 0 || lab_queue_pop(&queue, next_ns - 1) == NULL);
		uintptr_t frame = (uintptr_t)lab_queue_pop(&queue, next_ns);
		CHECK(next_ns > last_ns || frame > last); /* at the same time: in the order of arrival */
		last_ns = next_ns;
		last = frame;
	}
	CHECK_U64(lab_queue_next_ns(&queue), UINT64_MAX);
	lab_queue_fini(&queue);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;
	rng_init(&rng, seed);
	test_nothing_set(seed);
	test_shares(seed);
	test_delay_and_jitter(seed);
	test_seeds(seed);
	test_cut(seed);
	test_queue(&rng);
	return 0;
}
