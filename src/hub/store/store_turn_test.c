#include "hub/store/store_turn.h"

#include "base/check.h"
#include "base/rng.h"

#define JOBS 4u
#define FAIR 0.9 /* of the weighted share: the least */
#define ENOUGH UINT64_C(20000000000) /* nanoseconds of a run */

/* A job of a lane in virtual time. */
struct job {
	struct store_turn turn;
	uint32_t weight;
	uint64_t least_ns, most_ns; /* of a turn */
	uint64_t gap_ns;            /* between the end of a turn and more work */
	uint64_t ready_ns, used_ns;
	uint64_t bytes;             /* that its turns have moved */
};

static uint64_t draw_turn(const struct job *job, struct rng *rng)
{
	return job->least_ns + rng_below(rng, job->most_ns - job->least_ns + 1);
}

/* As a lane's thread does it; a round without a turn takes a little time too. Returns the time. */
static uint64_t run_lane(struct job *jobs, uint32_t count, uint64_t until_ns, struct rng *rng)
{
	uint64_t now = 0;

	while (now < until_ns) {
		bool is_over = true;

		for (uint32_t i = 0; i < count; i++) {
			struct job *job = &jobs[i];

			if (now < job->ready_ns || !store_turn_may(&job->turn))
				continue;
			uint64_t took = draw_turn(job, rng);
			now += took;
			job->used_ns += took;
			job->bytes += 65536;
			job->ready_ns = now + job->gap_ns;
			store_turn_end(&job->turn, took);
			is_over = false;
		}
		for (uint32_t i = 0; is_over && i < count; i++)
			store_turn_next_round(&jobs[i].turn, jobs[i].weight);
		now += 100;
	}
	return now;
}

/* All others always have work: none has less than its share, whatever one job's optimizer takes, and however it pauses.
 */
static void slow_optimizer(struct rng *rng)
{
	struct job jobs[JOBS] = {0};
	uint32_t weights = 0, count = (uint32_t)rng_below(rng, JOBS - 1) + 2;

	for (uint32_t i = 0; i < count; i++) {
		jobs[i] = (struct job){.weight = (uint32_t)rng_below(rng, 4) + 1, .least_ns = 5000, .most_ns = 80000};
		weights += jobs[i].weight;
	}
	jobs[0].least_ns = 1000000;
	jobs[0].most_ns = 20000000;
	jobs[0].gap_ns = rng_chance(rng, 1, 2) ? rng_below(rng, 3000000) : 0;
	uint64_t took = run_lane(jobs, count, ENOUGH, rng);
	for (uint32_t i = 1; i < count; i++) {
		double share = (double)jobs[i].used_ns / (double)took, fair = (double)jobs[i].weight / weights;

		CHECK_MSG(share >= FAIR * fair, "job %u of %u has %.3f of the time, and its share is %.3f", i, count, share,
		          fair);
	}
}

/* With equal optimizers bytes are in proportion to weights. */
static void weights(struct rng *rng)
{
	struct job jobs[JOBS] = {0};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < JOBS; i++)
		jobs[i] = (struct job){.weight = i + 1, .least_ns = 20000, .most_ns = 60000};
	(void)run_lane(jobs, JOBS, ENOUGH, rng);
	for (uint32_t i = 0; i < JOBS; i++)
		bytes += jobs[i].bytes;
	for (uint32_t i = 0; i < JOBS; i++) {
		double share = (double)jobs[i].bytes / (double)bytes, fair = (i + 1) / 10.0;

		CHECK_MSG(share > 0.98 * fair && share < 1.02 * fair, "weight %u has %.3f of the bytes", i + 1, share);
	}
}

/* A job alone is held up by no more than rounds; time that a job did not use is not saved up. */
static void alone(struct rng *rng)
{
	struct job jobs[2] = {{.weight = 1, .least_ns = 1000000, .most_ns = 20000000}, {.weight = 1}};

	jobs[1].ready_ns = UINT64_MAX;
	uint64_t took = run_lane(jobs, 2, ENOUGH, rng);
	CHECK((double)jobs[0].used_ns > 0.99 * (double)took);
	CHECK(store_turn_may(&jobs[1].turn) && jobs[1].turn.left <= STORE_TURN_QUANTUM);
}

/* A thread that was stopped for a day costs its job no day. */
static void stopped(void)
{
	struct store_turn turn = {0};
	uint32_t rounds = 0;

	CHECK(!store_turn_may(&turn));
	store_turn_next_round(&turn, 1);
	store_turn_end(&turn, UINT64_C(86400) * 1000000000);
	for (; !store_turn_may(&turn); rounds++)
		store_turn_next_round(&turn, 1);
	CHECK(rounds <= STORE_TURN_MOST / STORE_TURN_QUANTUM + 1);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (int i = 0; i < 20; i++)
		slow_optimizer(&rng);
	weights(&rng);
	alone(&rng);
	stopped();
	return 0;
}
