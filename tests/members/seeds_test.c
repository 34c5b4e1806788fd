/*
 * seeds_test.c - random deaths, stops and cuts: all survivors come to one verdict, and none hangs.
 *
 *     members_seeds_test [--seeds N] [--first SEED] [--verbose]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "world.h"

static struct world world;

static bool is_there(const struct world_rank *rank)
{
	return !rank->is_dead && !rank->is_stopped;
}

/* Has decided, and goes on. */
static bool goes_on(const struct world_rank *rank)
{
	return is_there(rank) && !rank->has_freed && rank->agreement.goes_on;
}

static bool same_verdict(const struct agreement *a, const struct agreement *b)
{
	return a->accepted.channel == b->accepted.channel && a->accepted.everywhere == b->accepted.everywhere &&
	       a->accepted.somewhere == b->accepted.somewhere &&
	       memcmp(a->accepted_members, b->accepted_members, verdict_map_bytes(a->config.size)) == 0;
}

/* Was everybody who is still there in reach of everybody else, but for one that was stopped for a while? */
static bool some_were_apart(void)
{
	uint32_t stopped = 0;

	if (world.was_slandered)
		return true;
	for (uint32_t i = 0; i < world.options.size; i++)
		stopped += world.ranks[i].was_stopped;
	for (uint32_t i = 0; stopped < 2 && i < world.options.size; i++) {
		for (uint32_t k = 0; k < world.options.size; k++) {
			if (world.pipes[i][k].was_cut)
				return true;
		}
	}
	return stopped > 1; /* each for the other as if it were cut off */
}

#define FAIL(seed, ...)                                     \
	do {                                                    \
		fprintf(stderr, "seed %" PRIu64 ": ", seed);        \
		CHECK_MSG(false, __VA_ARGS__);                      \
	} while (0)

/* Whoever knows that the group has failed has come to a verdict in the end. */
static void check_nobody_hangs(uint64_t seed)
{
	for (uint32_t i = 0; i < world.options.size; i++) {
		const struct world_rank *rank = &world.ranks[i];

		if (is_there(rank) && !rank->has_freed && rank->has_failed && !rank->agreement.is_decided)
			FAIL(seed, "rank %u has no verdict: round %u, waits for %u", i, rank->agreement.round,
			     agreement_waits_for(&rank->agreement));
	}
}

static void check_one_verdict(uint64_t seed)
{
	for (uint32_t i = 0; i < world.options.size; i++) {
		const struct world_rank *one = &world.ranks[i];

		if (!goes_on(one))
			continue;
		if (one->prepared_channel != one->agreement.accepted.channel)
			FAIL(seed, "rank %u goes on without having prepared for it", i);
		for (uint32_t k = 0; k < world.options.size; k++) {
			const struct world_rank *other = &world.ranks[k];

			if (!goes_on(other) || same_verdict(&one->agreement, &other->agreement))
				continue;
			if (world.options.quorum || !some_were_apart())
				FAIL(seed, "ranks %u and %u have different verdicts", i, k);
		}
	}
}

/* What one sends as soon as it has a verdict finds the others prepared. */
static void check_data(uint64_t seed)
{
	for (uint32_t i = 0; i < world.options.size; i++) {
		const struct world_rank *one = &world.ranks[i];

		for (uint32_t k = 0; goes_on(one) && k < world.options.size; k++) {
			const struct world_rank *other = &world.ranks[k];
			bool has_come = !world.pipes[k][i].first; /* or it is under way still: cut */

			/* Who is known to stay behind has failed the new group. */
			if (k != i && goes_on(other) && same_verdict(&one->agreement, &other->agreement) && agreement_keeps(&one->agreement, k) &&
			    agreement_keeps(&other->agreement, i) && has_come && !(one->data_from >> k & 1))
				FAIL(seed, "rank %u has lost what rank %u sent to it", i, k);
		}
	}
}

/* Nobody is left out without a reason, and nobody is kept who cannot be there. */
static void check_members(uint64_t seed)
{
	bool calm = !some_were_apart();

	for (uint32_t i = 0; i < world.options.size; i++) {
		const struct world_rank *rank = &world.ranks[i];

		if (calm && is_there(rank) && rank->agreement.is_decided && !(rank->agreement.accepted.flags & VERDICT_NO_QUORUM) && !rank->was_stopped &&
		    !goes_on(rank) && rank->taken_channel != rank->agreement.accepted.channel)
			FAIL(seed, "rank %u was left out, and nothing had happened to it", i);
		for (uint32_t k = 0; goes_on(rank) && calm && k < world.options.size; k++) {
			const struct world_rank *other = &world.ranks[k];

			if (agreement_includes(&rank->agreement, k) && is_there(other) && other->agreement.is_decided && !other->was_stopped &&
			    !goes_on(other) && other->taken_channel != rank->agreement.accepted.channel)
				FAIL(seed, "rank %u goes on with rank %u, which does not", i, k);
		}
	}
}

/* Who has freed the group is gone from it; and nobody says anything else of it, so it stays in the job. */
static void check_leavers(uint64_t seed)
{
	for (uint32_t i = 0; i < world.options.size && !some_were_apart(); i++) {
		const struct world_rank *leaver = &world.ranks[i];

		if (!is_there(leaver) || !leaver->has_freed || leaver->was_stopped)
			continue;
		if (leaver->was_accused)
			FAIL(seed, "rank %u has freed the group, and was accused", i);
		for (uint32_t k = 0; k < world.options.size; k++) {
			const struct world_rank *other = &world.ranks[k];

			if (goes_on(other) && !agreement_keeps(&other->agreement, i) && !agreement_has_left(&other->agreement, i))
				FAIL(seed, "rank %u does not know that rank %u has only freed the group", k, i);
		}
	}
}

static void draw_options(uint64_t seed, struct world_options *options)
{
	struct rng rng;

	rng_init(&rng, seed);
	*options = (struct world_options){
		.size = rng_chance(&rng, 1, 2) ? 3 + (uint32_t)rng_below(&rng, 3) : 2 + (uint32_t)rng_below(&rng, 8),
		.interval_ns = NS_PER_S,
		.quorum = rng_chance(&rng, 1, 2),
	};
	options->kills = rng_chance(&rng, 2, 3) ? options->size : 0;
	options->stops = rng_chance(&rng, 1, 2) ? 2 : 0;
	options->cuts = rng_chance(&rng, 1, 2) ? 2 : 0;
	options->thaws = rng_chance(&rng, 2, 3);
	options->heals = rng_chance(&rng, 2, 3);
	options->stalls = rng_chance(&rng, 1, 3);
	options->betrays = rng_chance(&rng, 1, 3);
	options->slanders = rng_chance(&rng, 1, 3) ? 4 : 0;
	options->frees = rng_chance(&rng, 1, 3);
	options->resets = rng_chance(&rng, 1, 3) ? 8 : 0;
}

/* Whom one without a verdict waits for: of each member, is it gone, accused (A: by this one), accuses it, has joined, has accepted. */
static void describe_wait(uint32_t number)
{
	const struct world_rank *rank = &world.ranks[number];
	const struct agreement *agreement = &rank->agreement;

	if (agreement->is_decided || !agreement->is_started || !is_there(rank))
		return;
	printf("    %s, waits for %d:", agreement->round % world.options.size == number ? "leads" : "follows",
	       (int)agreement_waits_for(agreement));
	for (uint32_t i = 0; i < world.options.size; i++) {
		const struct agreement_place *at = &agreement->places[i];

		printf(" %u[%s%s%s%s%s]", i, at->is_gone ? "g" : "", at->is_accused_by_us ? "A" : at->is_accused ? "a" : "",
		       at->accuses_us ? "u" : "", at->has_joined ? "j" : "", at->has_accepted ? "+" : "");
	}
	printf("\n");
}

static void describe(uint64_t seed)
{
	printf("seed %" PRIu64 ": %u ranks%s\n", seed, world.options.size, world.options.quorum ? ", quorum" : "");
	for (uint32_t i = 0; i < world.options.size; i++) {
		const struct world_rank *rank = &world.ranks[i];

		printf("  rank %u:%s%s%s%s round %u", i, rank->is_dead ? " dead" : "", rank->is_stopped ? " stopped" : "",
		       rank->was_stopped ? " was stopped" : "", rank->was_accused ? " accused" : "", rank->agreement.round);
		if (rank->agreement.is_decided) {
			printf(", decided %s:", rank->agreement.accepted.flags & VERDICT_NO_QUORUM ? "no quorum" : "");
			for (uint32_t k = 0; k < world.options.size; k++) {
				if (agreement_includes(&rank->agreement, k))
					printf(" %u", k);
			}
		}
		printf("\n");
		describe_wait(i);
	}
}

/* If nothing happens nobody is accused, however long. */
static void calm(void)
{
	for (uint32_t size = 1; size <= WORLD_MOST; size++) {
		struct world_options options = {.size = size, .interval_ns = NS_PER_S, .is_calm = true};

		world_play(&world, &options, size);
		for (uint32_t i = 0; i < size; i++)
			CHECK(!world.ranks[i].has_failed && !world.ranks[i].agreement.is_started);
		world_fini(&world);
	}
}

/* Nor if they are slow: their words are held up while data comes, or they get no processor for a while, they and those who listen to them. */
static void slow(uint64_t seeds)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct world_options options = {.size = 2 + (uint32_t)(seed % 15), .interval_ns = NS_PER_S, .starves = seed % 2, .naps = !(seed % 2)};

		world_play(&world, &options, seed);
		for (uint32_t i = 0; i < options.size; i++) {
			if (world.ranks[i].has_failed)
				FAIL(seed, "rank %u of %u says that somebody is gone, and all are there: they are %s", i, options.size,
				     options.naps ? "stopped for moments" : "heard in other ways");
		}
		world_fini(&world);
	}
}

static void play(uint64_t seed, bool is_verbose)
{
	struct world_options options;

	draw_options(seed, &options);
	world_play(&world, &options, seed);
	if (is_verbose)
		describe(seed);
	check_nobody_hangs(seed);
	check_one_verdict(seed);
	check_members(seed);
	check_data(seed);
	check_leavers(seed);
	world_fini(&world);
}

int main(int argc, char **argv)
{
	/*
	 * Each has failed once: ranks that waited for each other in a ring; a group that was prepared twice; one that was prepared late; two of
	 * whom each knew itself to be accused, and left it to the other to lead, for ever.
	 */
	static const uint64_t kept[] = {4013, 257, 4483, 1794852006283};
	uint64_t seeds = 2000, first = 1;
	bool is_verbose = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
			seeds = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc)
			first = strtoull(argv[++i], NULL, 10);
		else
			is_verbose = strcmp(argv[i], "--verbose") == 0;
	}
	calm();
	slow(seeds / 10);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		play(kept[i], false);
	for (uint64_t seed = first; seed < first + seeds; seed++)
		play(seed, is_verbose);
	return 0;
}
