/*
 * topology_binding_test.c - a group plans by a topology if all its members have it: as after a rank died while others
 * were being told of it.
 *
 * Ranks are threads. Some are given a topology and others not, or another one; groups that are made then have one on
 * all members, or on none.
 */
#include "rank/placement.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "rank/comm/comm.h"
#include "rank/member/shrink.h"
#include "rank/rank.h"
#include "rank/state.h"

enum { RANKS = 4, COUNT = 50000 };

/* The topology of a rank. */
enum kind { NONE, ONE, OTHER };

struct fellow {
	uint32_t number;
	enum kind kind;
	bool agrees; /* all tell each other, instead of being told */
	bool doubts; /* the last rank is not sure of it, so all try it */
	struct rank *context;
	pthread_t thread;
};

static pthread_barrier_t barrier;
static uint8_t *shared;
static bool has_topology[3][RANKS]; /* of the world, of what is left of it, of a part of that */

static enum esp_status gather(void *argument, const void *mine, void *all, size_t bytes)
{
	const struct fellow *member = argument;

	int turn = pthread_barrier_wait(&barrier);
	if (turn == PTHREAD_BARRIER_SERIAL_THREAD)
		shared = malloc(bytes * RANKS);
	pthread_barrier_wait(&barrier);
	memcpy(shared + bytes * member->number, mine, bytes);
	pthread_barrier_wait(&barrier);
	memcpy(all, shared, bytes * RANKS);
	turn = pthread_barrier_wait(&barrier);
	if (turn == PTHREAD_BARRIER_SERIAL_THREAD)
		free(shared);
	return ESP_OK;
}

static void check_ok(enum esp_status status, const struct failure *failure)
{
	CHECK_MSG(status == ESP_OK, "%s: %s", status_name(status), failure->text);
}

/* Two racks, or one. */
static const char *make_text(const struct fellow *member, char text[512])
{
	const char *name = member->context->roster.nodes[0].host_name;

	snprintf(text, 512,
	         member->kind == ONE
	             ? "topology 1\nswitch core\nhost %s under core rate 1gbit\nhost other under core rate 1gbit\n"
	             : "topology 1\nswitch core\nhost %s under core rate 2gbit\n",
	         name);
	return member->kind == NONE ? NULL : text;
}

static void check_sum(struct comm *group)
{
	struct failure failure = FAILURE_NONE;
	uint64_t *data = calloc(COUNT, sizeof(*data));
	struct call call = {
		.collective = PLAN_ALLREDUCE, .type = ESP_U64, .op = ESP_SUM, .count = COUNT, .in = data, .out = data};

	CHECK(data != NULL);
	for (uint32_t i = 0; i < COUNT; i++)
		data[i] = i;
	check_ok(call_check(&call, group->rank, group->size, &failure), &failure);
	check_ok(comm_run(group, &call, &(struct work_options){0}, &failure), &failure);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK(data[i] == (uint64_t)i * group->size);
	free(data);
}

/* One doubts it, and all have tried it; what is kept is kept by all (run()). */
static void try_topology(const struct fellow *member)
{
	struct placement_trial trial;
	struct failure failure = FAILURE_NONE;

	check_ok(rank_try_topology(member->context, member->doubts && member->number == RANKS - 1, &trial, &failure),
	         &failure);
	CHECK(trial.was_made == member->doubts);
	CHECK(trial.is_kept == (member->context->world->net.layout.topology != NULL));
	CHECK(member->doubts ? trial.is_kept == (trial.with_ns < trial.without_ns) : trial.is_kept);
	CHECK_U64(comm_calls(member->context->world), 0);
}

static void take_topology(struct fellow *member)
{
	char buffer[512];
	const struct placement_text text = {make_text(member, buffer), strlen(buffer), "of a test", NULL};
	struct failure failure = FAILURE_NONE;
	bool is_used;

	if (member->agrees) {
		check_ok(rank_agree_on_topology(member->context, text.text ? &text : NULL, &is_used, &failure), &failure);
		CHECK(is_used == (member->context->world->net.layout.topology != NULL));
		CHECK_U64(comm_calls(member->context->world), 0);
		if (is_used)
			try_topology(member);
		check_sum(member->context->world);
	} else if (text.text) {
		check_ok(rank_use_topology(member->context, &text, &failure), &failure);
	}
}

static void note(const struct fellow *member, unsigned which, const struct comm *group)
{
	has_topology[which][member->number] = group->net.layout.topology != NULL;
	CHECK((group->net.place != NULL) == (group->net.layout.topology != NULL));
}

static void *be_rank(void *argument)
{
	static const char *const settings[] = {"transport=tcp", "log=off", NULL};
	struct fellow *member = argument;
	struct rank_options options = {
		.rank = member->number, .size = RANKS, .gather = gather, .gather_context = member, .settings = settings};
	struct failure failure = FAILURE_NONE;
	struct shrink_report report = {0};
	struct comm *left = NULL, *part = NULL;

	check_ok(rank_open(&options, &member->context, &failure), &failure);
	take_topology(member);
	note(member, 0, member->context->world);
	/* the world has failed for some, and others have not noticed: calls are no use any more */
	pthread_barrier_wait(&barrier);
	check_ok(comm_shrink(member->context->world, 0, &left, &report, &failure), &failure);
	note(member, 1, left);
	check_sum(left);
	check_ok(comm_split(left, member->number / 2, 0, &part, &failure), &failure);
	note(member, 2, part);
	check_sum(part);
	check_sum(left);
	pthread_barrier_wait(&barrier);
	check_ok(rank_close(member->context, &failure), &failure);
	return NULL;
}

static void run(const enum kind *kinds, bool agrees, bool doubts)
{
	struct fellow ranks[RANKS];
	bool is_same = kinds[0] != NONE;

	pthread_barrier_init(&barrier, NULL, RANKS);
	for (uint32_t i = 0; i < RANKS; i++) {
		is_same = is_same && kinds[i] == kinds[0];
		ranks[i] = (struct fellow){.number = i, .kind = kinds[i], .agrees = agrees, .doubts = doubts};
		CHECK(pthread_create(&ranks[i].thread, NULL, be_rank, &ranks[i]) == 0);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK(pthread_join(ranks[i].thread, NULL) == 0);
	pthread_barrier_destroy(&barrier);
	for (unsigned which = agrees ? 0 : 1; which < 3; which++)
		for (uint32_t i = 0; i < RANKS; i++)
			CHECK_MSG(has_topology[which][i] == (doubts ? has_topology[0][0] : is_same), "group %u, rank %u", which, i);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 6);
	struct rng rng;

	rng_init(&rng, seed);
	run((enum kind[]){ONE, ONE, ONE, ONE}, true, false);
	run((enum kind[]){ONE, ONE, ONE, ONE}, true, true);
	run((enum kind[]){ONE, ONE, ONE, ONE}, false, false);
	run((enum kind[]){ONE, ONE, NONE, ONE}, true, false);
	run((enum kind[]){ONE, ONE, NONE, ONE}, false, false);
	for (uint64_t i = 0; i < count; i++) {
		enum kind kinds[RANKS];

		for (uint32_t j = 0; j < RANKS; j++)
			kinds[j] = (enum kind)rng_below(&rng, 3);
		run(kinds, rng_chance(&rng, 1, 2), false);
	}
	return 0;
}
