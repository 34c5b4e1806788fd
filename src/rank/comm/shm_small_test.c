/*
 * shm_small_test.c - a member that was given up still reads the small paths of the others, which are cleared and become
 * another group's meanwhile: what it works out is right, or it is not worked out.
 */
#include "rank/comm/shm_small.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"

enum { MEMBERS = 3, LATE = 0, CHANNEL = 5, VALUES = 8192 };

struct member {
	struct segment *segment;
	const struct segment_view *views[MEMBERS];
	struct shm_small *small;
	struct call call;
	struct shm_small_call op;
	int64_t in[VALUES], out[MEMBERS * VALUES];
};

static struct member members[MEMBERS];
static pthread_barrier_t both;
static _Atomic bool is_over;
static _Atomic unsigned spins; /* a moment is so many of them, between the one thread and the other */

static void open_house(void)
{
	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct segment_config config = {.lanes = 1, .peers = MEMBERS, .self = i, .slot_bytes = 64, .slots = 1,
		                                .small_shm_bytes = SHM_SMALL_HEAD_BYTES + sizeof(members[i].in)};

		CHECK(shm_segment_open(&config, &members[i].segment, NULL) == ESP_OK);
	}
	for (uint32_t i = 0; i < MEMBERS; i++) {
		for (uint32_t k = 0; k < MEMBERS; k++) {
			struct segment_view *view = NULL;

			CHECK(k == i ||
			      shm_segment_view_open(members[i].segment, k, dup(shm_segment_descriptor(members[k].segment)), &view,
			                            NULL) == ESP_OK);
			members[i].views[k] = view;
		}
	}
}

static void close_house(void)
{
	for (uint32_t i = 0; i < MEMBERS; i++) {
		for (uint32_t k = 0; k < MEMBERS; k++)
			shm_segment_view_close((struct segment_view *)(uintptr_t)members[i].views[k]);
		shm_segment_close(members[i].segment);
	}
}

static int64_t input(uint32_t member, uint32_t i, uint32_t mark)
{
	return (int64_t)(mark % 1000 + 1) * 1000000 + (int64_t)member * 10000 + i;
}

/* The call of a group, which goes by its mark; pinned. */
static void begin(struct member *member, uint32_t number, uint32_t mark, enum plan_collective collective,
                  uint32_t count)
{
	struct failure failure;

	CHECK(shm_small_open(member->segment, CHANNEL, mark, sizeof(member->in), number, MEMBERS, member->views,
	                     &member->small) == ESP_OK);
	for (uint32_t i = 0; i < count; i++)
		member->in[i] = input(number, i, mark);
	member->call = (struct call){.collective = collective,
	                             .type = ESP_I64,
	                             .op = ESP_SUM,
	                             .root = 1,
	                             .count = count,
	                             .in = collective == PLAN_BROADCAST && number != 1 ? NULL : member->in,
	                             .out = member->out};
	if (collective == PLAN_BROADCAST)
		member->call.in = member->call.out = number == 1 ? member->in : member->out;
	CHECK_MSG(call_check(&member->call, number, MEMBERS, &failure) == ESP_OK, "%s", failure.text);
	member->op = (struct shm_small_call){
		.call = &member->call,
		.rounds = shm_small_rounds(&member->call, MEMBERS, &(struct shm_small_limits){sizeof(member->in), 2048})};
	CHECK(member->op.rounds > 0);
	call_note(&member->call, MEMBERS, 1, &member->op.note);
	member->op.digest = call_note_digest(&member->op.note) ^ mark;
	shm_small_begin(member->small, &member->op);
}

static enum esp_status go_on(struct member *member)
{
	struct call_note mine, other;

	return shm_small_go_on(member->small, &member->op, &mine, &other);
}

/*
 * Runs the late one, as its thread does once it is thawed. Returns its status when the others are through with what
 * they do.
 */
static void *be_late(void *unused)
{
	static enum esp_status status;

	(void)unused;
	status = ESP_PENDING;
	pthread_barrier_wait(&both);
	for (bool was_over = false; status == ESP_PENDING && !was_over;) {
		was_over = atomic_load(&is_over);
		status = go_on(&members[LATE]);
	}
	return &status;
}

static void check_result(enum plan_collective collective, uint32_t count, uint32_t mark)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t sum = 0;

		for (uint32_t k = 0; k < MEMBERS; k++) {
			sum += input(k, i, mark);
			CHECK(collective != PLAN_ALLGATHER || members[LATE].out[k * count + i] == input(k, i, mark));
		}
		CHECK(collective != PLAN_ALLREDUCE || members[LATE].out[i] == sum);
		CHECK(collective != PLAN_BROADCAST || members[LATE].out[i] == input(1, i, mark));
	}
}

static void trial(struct rng *rng, uint32_t *out_done, uint32_t *out_stuck)
{
	static const enum plan_collective collectives[] = {PLAN_ALLREDUCE, PLAN_ALLREDUCE, PLAN_ALLGATHER, PLAN_BROADCAST};
	enum plan_collective collective = collectives[rng_below(rng, 4)];
	uint32_t mark = (uint32_t)rng_next(rng), count = 1 + (uint32_t)rng_below(rng, rng_below(rng, 2) ? VALUES : 100);
	pthread_t thread;
	void *status;

	for (uint32_t i = 0; i < MEMBERS; i++)
		begin(&members[i], i, mark, collective, count);
	for (uint32_t i = 0; i < MEMBERS; i++)
		CHECK(i == LATE || go_on(&members[i]) != ESP_EMISMATCH);
	atomic_store(&is_over, false);
	CHECK(pthread_create(&thread, NULL, be_late, NULL) == 0);
	pthread_barrier_wait(&both);
	for (uint64_t left = rng_below(rng, 40000); left > 0; left--)
		atomic_fetch_add(&spins, 1);
	bool is_used_again = rng_below(rng, 2);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (i == LATE)
			continue;
		shm_small_close(members[i].small);
		members[i].small = NULL;
		if (is_used_again)
			begin(&members[i], i, mark + 1, collective, count);
	}
	atomic_store(&is_over, true);
	CHECK(pthread_join(thread, &status) == 0);
	CHECK(*(enum esp_status *)status == ESP_OK || *(enum esp_status *)status == ESP_PENDING);
	if (*(enum esp_status *)status == ESP_OK)
		check_result(collective, count, mark);
	*out_done += *(enum esp_status *)status == ESP_OK;
	*out_stuck += *(enum esp_status *)status == ESP_PENDING;
	for (uint32_t i = 0; i < MEMBERS; i++)
		shm_small_close(members[i].small);
}

int main(int argc, char **argv)
{
	struct rng rng;
	uint32_t done = 0, stuck = 0;

	rng_init(&rng, test_seed(argc, argv, 1));
	CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
	open_house();
	for (int i = 0; i < 3000; i++)
		trial(&rng, &done, &stuck);
	close_house();
	pthread_barrier_destroy(&both);
	printf("%u were worked out, %u were not\n", done, stuck);
	return 0;
}
