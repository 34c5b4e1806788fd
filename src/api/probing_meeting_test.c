/*
 * Ranks in threads that meet, and die at the worst times: the remaining ones have all heard the same at every meeting.
 *
 * The job is made of a lock and a condition. A call ends when all of the group have come. A rank dies before it has
 * come, or after: then the call ends well for some of the others and fails for the rest, as chance has it. A group that
 * has failed stays failed. Every seed is another story.
 */
#include "api/probing_meeting.h"

#include <pthread.h>

#include "base/check.h"
#include "base/rng.h"

#define RANKS 6u
#define MEETINGS 12u
#define SAID 5u

/* One group, with the call that is under way. Groups are made anew by shrinking; old ones stay. */
struct survivors {
	bool members[RANKS];
	bool failed;
	bool came[RANKS];
	uint64_t generation;              /* of calls that have ended  */
	bool well[RANKS];                 /* how the last one ended    */
	uint8_t said[RANKS][256];         /* of the one under way      */
	uint8_t heard[RANKS][256];        /* of the last one           */
	bool shrinks[RANKS], left[RANKS];
	struct survivors *next;
};

struct job {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct rng rng;
	bool dead[RANKS];
	struct survivors *first;
};

struct member {
	struct job *job;
	uint32_t rank;
	struct survivors *survivors;
	uint32_t calls_left; /* until it dies; UINT32_MAX: never */
	bool after;          /* it has come to the call in which it dies */
	bool is_dead;
	enum esp_status status;
	struct meeting meeting;
	uint8_t all[MEETINGS][RANKS * SAID];
	bool present[MEETINGS][RANKS];
	uint32_t meetings;
};

static const uint32_t host_of[RANKS] = {0, 1, 2, 3, 4, 0}; /* the last one does not speak */
static const uint32_t speaker[RANKS] = {0, 1, 2, 3, 4};
#define HOSTS 5u

static uint32_t count(const struct survivors *survivors)
{
	uint32_t members = 0;

	for (uint32_t i = 0; i < RANKS; i++)
		members += survivors->members[i];
	return members;
}

static uint32_t size(void *context)
{
	return count(((struct member *)context)->survivors);
}

static uint32_t rank_at(void *context, uint32_t place)
{
	const struct survivors *survivors = ((struct member *)context)->survivors;
	uint32_t rank = 0;

	for (;; rank++)
		if (survivors->members[rank] && place-- == 0)
			return rank;
}

/* With the lock held: the call ends, for living ranks, if all have come or one never will. */
static void end_call(struct job *job, struct survivors *survivors)
{
	bool all_came = true, somebody_died = false;

	for (uint32_t i = 0; i < RANKS; i++) {
		if (!survivors->members[i])
			continue;
		all_came = all_came && survivors->came[i];
		somebody_died = somebody_died || job->dead[i] || survivors->left[i] || survivors->shrinks[i];
	}
	if (!all_came && !somebody_died)
		return;
	survivors->failed = survivors->failed || somebody_died;
	for (uint32_t i = 0; i < RANKS; i++)
		survivors->well[i] = all_came && (!somebody_died || rng_chance(&job->rng, 1, 2));
	memcpy(survivors->heard, survivors->said, sizeof(survivors->said));
	memset(survivors->came, 0, sizeof(survivors->came));
	survivors->generation++;
	pthread_cond_broadcast(&job->changed);
}

/* It does nothing any more: its call ends with a value that no rank goes on from. */
static enum esp_status die(struct member *member)
{
	member->is_dead = true;
	member->job->dead[member->rank] = true;
	end_call(member->job, member->survivors);
	pthread_cond_broadcast(&member->job->changed);
	return ESP_ESTATE;
}

/* Comes with some bytes, and waits for the end. The lock is held before and after. */
static enum esp_status come(struct member *member, const void *mine, size_t bytes)
{
	struct survivors *survivors = member->survivors;
	bool dies = member->calls_left != UINT32_MAX && member->calls_left-- == 0;

	CHECK(bytes <= sizeof(survivors->said[0]));
	if (dies && !member->after)
		return die(member);
	if (survivors->failed)
		return ESP_EPEER;
	if (mine)
		memcpy(survivors->said[member->rank], mine, bytes);
	survivors->came[member->rank] = true;
	uint64_t generation = survivors->generation;
	if (dies)
		return die(member);
	end_call(member->job, survivors);
	while (survivors->generation == generation && !survivors->failed)
		pthread_cond_wait(&member->job->changed, &member->job->lock);
	return survivors->generation > generation && survivors->well[member->rank] ? ESP_OK : ESP_EPEER;
}

static enum esp_status gather(void *context, const void *mine, void *all, size_t bytes)
{
	struct member *member = context;
	uint8_t *out = all;

	pthread_mutex_lock(&member->job->lock);
	enum esp_status status = come(member, mine, bytes);
	for (uint32_t i = 0; i < RANKS && status == ESP_OK; i++)
		if (member->survivors->members[i]) {
			memcpy(out, member->survivors->heard[i], bytes);
			out += bytes;
		}
	pthread_mutex_unlock(&member->job->lock);
	return status;
}

static enum esp_status broadcast(void *context, void *data, size_t bytes, uint32_t place)
{
	struct member *member = context;

	pthread_mutex_lock(&member->job->lock);
	uint32_t root = rank_at(context, place);
	enum esp_status status = come(member, root == member->rank ? data : NULL, bytes);
	if (status == ESP_OK)
		memcpy(data, member->survivors->heard[root], bytes);
	pthread_mutex_unlock(&member->job->lock);
	return status;
}

static bool all_shrink(const struct job *job, const struct survivors *survivors)
{
	for (uint32_t i = 0; i < RANKS; i++)
		if (survivors->members[i] && !job->dead[i] && !survivors->left[i] && !survivors->shrinks[i])
			return false;
	return true;
}

/* Waits for all that are alive and have not left. */
static enum esp_status shrink(void *context)
{
	struct member *member = context;
	struct job *job = member->job;
	struct survivors *survivors = member->survivors;

	pthread_mutex_lock(&job->lock);
	survivors->failed = true;
	survivors->shrinks[member->rank] = true;
	pthread_cond_broadcast(&job->changed);
	while (!survivors->next && !all_shrink(job, survivors))
		pthread_cond_wait(&job->changed, &job->lock);
	if (!survivors->next) {
		survivors->next = calloc(1, sizeof(*survivors));
		CHECK(survivors->next);
		for (uint32_t i = 0; i < RANKS; i++)
			survivors->next->members[i] = survivors->members[i] && !job->dead[i] && survivors->shrinks[i];
		pthread_cond_broadcast(&job->changed);
	}
	member->survivors = survivors->next;
	pthread_mutex_unlock(&job->lock);
	return ESP_OK;
}

static void leave(struct member *member)
{
	pthread_mutex_lock(&member->job->lock);
	member->survivors->left[member->rank] = true;
	pthread_cond_broadcast(&member->job->changed);
	pthread_mutex_unlock(&member->job->lock);
}

/*
 * The bytes of a rank depend on those heard before, as they do in probing: one wrong byte and all that follows is
 * different.
 */
static void *take_part(void *argument)
{
	struct member *member = argument;
	uint8_t mine[SAID] = {(uint8_t)member->rank};

	for (uint32_t i = 0; i < MEETINGS && member->status == ESP_OK; i++) {
		member->status = meeting_hold(&member->meeting, speaker[host_of[member->rank]] == member->rank ? mine : NULL,
		                              SAID, member->all[i], member->present[i]);
		for (uint32_t b = 0; b < HOSTS * SAID; b++)
			mine[b % SAID] = (uint8_t)(mine[b % SAID] * 31 + member->all[i][b] + i);
		member->meetings++;
	}
	if (member->status == ESP_OK)
		meeting_leave(&member->meeting);
	if (!member->is_dead)
		leave(member);
	return NULL;
}

static void check_alike(const struct member *members, uint64_t seed)
{
	const struct member *first = NULL;

	for (uint32_t i = 0; i < RANKS; i++) {
		const struct member *member = &members[i];
		if (member->is_dead)
			continue;
		CHECK_MSG(member->status == ESP_OK && member->meetings == MEETINGS, "seed %" PRIu64 ": rank %u ended with %d",
		          seed, i, member->status);
		first = first ? first : member;
		for (uint32_t m = 0; m < MEETINGS; m++)
			CHECK_MSG(memcmp(member->all[m], first->all[m], sizeof(member->all[m])) == 0 &&
			          memcmp(member->present[m], first->present[m], HOSTS * sizeof(bool)) == 0,
			          "seed %" PRIu64 ": ranks %u and %u were at different meetings %u", seed, first->rank, i, m);
		for (uint32_t m = 0; m < MEETINGS; m++)
			CHECK(i >= HOSTS || member->present[m][i]); /* no living rank is missed */
	}
}

static void test(uint64_t seed)
{
	struct survivors *whole = calloc(1, sizeof(*whole));
	struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .first = whole};
	struct member *members = calloc(RANKS, sizeof(*members));
	pthread_t threads[RANKS];
	struct rng rng;

	CHECK(whole && members);
	rng_init(&rng, seed);
	rng_init(&job.rng, ~seed);
	uint32_t deaths = (uint32_t)rng_below(&rng, RANKS - 1);
	for (uint32_t i = 0; i < RANKS; i++) {
		whole->members[i] = true;
		members[i] = (struct member){
			.job = &job, .rank = i, .survivors = whole, .calls_left = UINT32_MAX, .after = rng_chance(&rng, 1, 2)};
		members[i].meeting = (struct meeting){
			.calls = {&members[i], size, rank_at, gather, broadcast, shrink},
			.hosts = HOSTS,
			.host_of = host_of,
			.speaker = speaker,
		};
	}
	for (uint32_t i = 0; i < deaths; i++)
		members[rng_below(&rng, RANKS)].calls_left = (uint32_t)rng_below(&rng, MEETINGS + 4);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK(pthread_create(&threads[i], NULL, take_part, &members[i]) == 0);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	check_alike(members, seed);
	for (uint32_t i = 0; i < RANKS; i++)
		meeting_fini(&members[i].meeting);
	free(members);
	for (struct survivors *next; whole; whole = next) {
		next = whole->next;
		free(whole);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count_of_tests = test_option(argc, argv, "--count", 400);

	for (uint64_t i = 0; i < count_of_tests; i++)
		test(seed + i);
	return 0;
}
