/*
 * Random jobs with a random culprit: the diagnosis from the ranks' accounts must name it.
 *
 * The model: all ranks run one program, a list of calls in communicators; a call ends when all members have
 * made it. The culprit stops before one of its calls, in one of several ways. Then every rank runs until it is
 * stuck, and accounts are made of that state.
 */
#include "tools/diagnose/verdict.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "espalier/types.h"

#define RANKS_MOST 12u
#define GROUPS_MOST 4u
#define CALLS 24u

struct model_group {
	uint32_t size, ranks[RANKS_MOST];
};

struct model {
	uint32_t size, groups;
	struct model_group group[GROUPS_MOST];
	uint32_t program[CALLS];   /* communicators */
	uint32_t done[RANKS_MOST]; /* by rank: calls of the program that it has completed */
	bool in_call[RANKS_MOST];  /* by rank: it has made the next one */
	uint32_t culprit, stops_at; /* the call of the program that it does not make */
	enum verdict_kind kind;
};

struct rank_notes {
	struct account_group groups[GROUPS_MOST];
	struct account_call calls[CALLS];
	struct account_gone gone[1];
};

static bool has(const struct model_group *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->size; i++)
		if (group->ranks[i] == rank)
			return true;
	return false;
}

static void draw_model(struct model *model, struct rng *rng)
{
	static const enum verdict_kind kinds[] = {VERDICT_DIED, VERDICT_LEFT, VERDICT_MISMATCH, VERDICT_ABSENT,
	                                          VERDICT_SILENT};
	*model = (struct model){.size = 2 + (uint32_t)rng_below(rng, RANKS_MOST - 1)};
	model->groups = 1 + (uint32_t)rng_below(rng, GROUPS_MOST);
	for (uint32_t g = 0; g < model->groups; g++) {
		struct model_group *group = &model->group[g];
		for (uint32_t r = 0; r < model->size; r++)
			if (g == 0 || rng_chance(rng, 1, 2))
				group->ranks[group->size++] = r;
		if (group->size < 2)
			group->size = 2, group->ranks[0] = 0, group->ranks[1] = 1;
	}
	for (uint32_t i = 0; i < CALLS; i++)
		model->program[i] = (uint32_t)rng_below(rng, model->groups);
	model->kind = kinds[rng_below(rng, sizeof kinds / sizeof kinds[0])];
	model->culprit = (uint32_t)rng_below(rng, model->size);
	/* Some rank has to wait for it: the program gets a call of all, and the culprit stops there. */
	model->stops_at = (uint32_t)rng_below(rng, CALLS);
	while (model->stops_at < CALLS && !has(&model->group[model->program[model->stops_at]], model->culprit))
		model->stops_at++;
	if (model->stops_at == CALLS) {
		model->stops_at = CALLS - 1;
		model->program[CALLS - 1] = 0;
	}
}

/* The next call of the program that this rank is part of; CALLS: none. */
static uint32_t next_call(const struct model *model, uint32_t rank)
{
	uint32_t at = model->done[rank];
	while (at < CALLS && !has(&model->group[model->program[at]], rank))
		at++;
	return at;
}

static bool stops(const struct model *model, uint32_t rank, uint32_t at)
{
	return rank == model->culprit && at == model->stops_at && model->kind != VERDICT_MISMATCH;
}

/* Every rank goes as far as it can. */
static void run(struct model *model)
{
	bool moved = true;
	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < model->size; r++) {
			uint32_t at = next_call(model, r);
			if (at < CALLS && !model->in_call[r] && !stops(model, r, at))
				model->in_call[r] = moved = true;
		}
		for (uint32_t at = 0; at < CALLS; at++) {
			const struct model_group *group = &model->group[model->program[at]];
			bool all = !(model->kind == VERDICT_MISMATCH && at == model->stops_at);
			for (uint32_t i = 0; i < group->size; i++)
				all = all && model->in_call[group->ranks[i]] && next_call(model, group->ranks[i]) == at;
			for (uint32_t i = 0; all && i < group->size; i++) {
				model->in_call[group->ranks[i]] = false;
				model->done[group->ranks[i]] = at + 1;
				moved = true;
			}
		}
	}
}

/* The rank that a call waits for: any member that has not made it; any member, if all have. */
static uint32_t waited_for(const struct model *model, uint32_t rank, uint32_t at, struct rng *rng)
{
	const struct model_group *group = &model->group[model->program[at]];
	for (int tries = 0; tries < 100; tries++) {
		uint32_t other = group->ranks[rng_below(rng, group->size)];
		bool is_in = next_call(model, other) == at && model->in_call[other];
		if (other != rank && (!is_in || tries > 50))
			return other;
	}
	return RECORD_NONE;
}

static void give_account(const struct model *model, uint32_t rank, bool live, struct rng *rng, struct rank_notes *notes,
                         struct account *out)
{
	uint64_t counts[GROUPS_MOST] = {0};
	*notes = (struct rank_notes){0};
	*out = (struct account){.rank = rank, .size = model->size, .host = "node",
	                        .now_ns = 1000000000 + rng_below(rng, 1000),
	                        .real_ns = UINT64_C(1700000000000000000), .groups = notes->groups, .calls = notes->calls,
	                        .gone = notes->gone};
	uint32_t at_now = next_call(model, rank);
	for (uint32_t at = 0; at < CALLS && (at < at_now || (at == at_now && model->in_call[rank])); at++) {
		uint32_t g = model->program[at];
		if (!has(&model->group[g], rank))
			continue;
		bool is_open = at == at_now, is_odd = model->kind == VERDICT_MISMATCH && rank == model->culprit &&
		               at == model->stops_at;
		struct account_call *call = &notes->calls[out->call_count++];
		*call = (struct account_call){
			.record = {.note.sequence = ++counts[g], .started_ns = 1000000 * (at + 1) + rng_below(rng, 20000000),
			           .channel = 4 * g,
			           .first = model->group[g].ranks[0], .members = model->group[g].size, .waits_for = RECORD_NONE,
			           .peer = RECORD_NONE, .chunk = RECORD_NO_CHUNK, .step = RECORD_NONE},
			.digest = is_odd ? 99 : 7, .words = "allreduce"};
		if (!is_open || !live)
			call->record.ended_ns = call->record.started_ns + (is_open ? 500000000 : 1000);
		if (is_open) {
			call->record.status = live ? ESP_OK : ESP_ETIMEOUT;
			call->record.waits_for = waited_for(model, rank, at, rng);
		}
	}
	for (uint32_t g = 0; g < model->groups; g++) {
		if (!has(&model->group[g], rank))
			continue;
		struct account_group *group = &notes->groups[out->group_count++];
		*group = (struct account_group){.channel = 4 * g, .first = model->group[g].ranks[0],
		                                .size = model->group[g].size,
		                                .ranks = g == 0 ? NULL : (uint32_t *)model->group[g].ranks, .calls = counts[g],
		                                .culprit = -1};
		/* Deadlines pass where a rank is in a call, in any order. */
		bool is_stuck = false;
		for (uint32_t r = 0; r < model->size; r++)
			is_stuck |= model->in_call[r] && model->program[next_call(model, r)] == g;
		if (!live && is_stuck) {
			bool is_dead = model->kind == VERDICT_DIED && has(&model->group[g], model->culprit);
			bool is_odd = model->kind == VERDICT_MISMATCH && g == model->program[model->stops_at];
			group->failed = is_dead ? ESP_EPEER : is_odd ? ESP_EMISMATCH : ESP_ETIMEOUT;
			/* Failures that are detected at once come first. */
			group->failed_ns = out->now_ns - 1 - rng_below(rng, 1000) - (is_dead || is_odd ? 1000 : 0);
			group->culprit = is_dead ? (int32_t)model->culprit : -1;
		}
	}
	if (model->kind == VERDICT_DIED || model->kind == VERDICT_LEFT) {
		notes->gone[0] = (struct account_gone){model->culprit, model->kind == VERDICT_DIED
		                                       ? ACCOUNT_DIED : ACCOUNT_LEFT, 1000, "node"};
		out->gone_count = rank != model->culprit;
	}
}

static uint32_t found[VERDICT_OTHER + 1], runs;

static void test_seed_of(uint64_t seed)
{
	static struct rank_notes notes[RANKS_MOST];
	struct account accounts[RANKS_MOST];
	struct model model;
	struct rng rng;
	uint32_t count = 0, waiting = 0;
	rng_init(&rng, seed);
	draw_model(&model, &rng);
	run(&model);
	bool live = rng_chance(&rng, 1, 2);
	for (uint32_t r = 0; r < model.size; r++) {
		bool is_gone = r == model.culprit &&
		               (model.kind == VERDICT_DIED || model.kind == VERDICT_LEFT || model.kind == VERDICT_SILENT);
		waiting += model.in_call[r];
		if (!is_gone)
			give_account(&model, r, live, &rng, &notes[r], &accounts[count++]);
	}
	/* the runtime detects a mismatch by itself and fails */
	if (waiting == 0 || (live && model.kind == VERDICT_MISMATCH))
		return;
	for (uint32_t i = count; i > 1; i--) { /* shuffled */
		uint32_t other = (uint32_t)rng_below(&rng, i);
		struct account one = accounts[i - 1];
		accounts[i - 1] = accounts[other];
		accounts[other] = one;
	}
	struct verdict verdict = diagnose_verdict_find(accounts, count, live);
	runs++;
	found[verdict.kind]++;
	CHECK_MSG(verdict.rank == (int32_t)model.culprit ||
	              /* Of two ranks neither is in the minority. */
	              (model.kind == VERDICT_MISMATCH && model.group[model.program[model.stops_at]].size == 2),
	          "seed %" PRIu64 ": rank %d instead of %u: %s", seed, verdict.rank, model.culprit, verdict.text);
	CHECK_MSG(verdict.kind == model.kind, "seed %" PRIu64 ": %s instead of %s: %s", seed,
	          diagnose_verdict_kind_name(verdict.kind), diagnose_verdict_kind_name(model.kind), verdict.text);
	size_t length = strlen(verdict.text);
	CHECK(length > 10 && verdict.text[length - 1] == '.' && !strchr(verdict.text, '\n'));
}

/* A rank that leaves after the failure has not caused it. */
static void test_late_leave(void)
{
	struct account_group groups[2] = {{.size = 2, .calls = 3, .culprit = -1, .failed = ESP_ETIMEOUT, .failed_ns = 50},
	                                  {.size = 2, .calls = 2, .culprit = -1, .failed = ESP_ETIMEOUT, .failed_ns = 50}};
	struct account_call call = {.record = {.note.sequence = 3, .started_ns = 5, .ended_ns = 60, .status = ESP_ETIMEOUT,
	                                       .waits_for = 1},
	                            .words = "barrier"};
	struct account_gone gone = {1, ACCOUNT_LEFT, 40, "n"};
	struct account accounts[2];
	for (uint32_t i = 0; i < 2; i++)
		accounts[i] = (struct account){.rank = i, .size = 2, .host = "n", .now_ns = 100, .real_ns = 1000,
		                               .groups = &groups[i],
		                               .group_count = 1, .calls = &call, .call_count = i == 0, .gone = &gone,
		                               .gone_count = i == 0};
	struct verdict verdict = diagnose_verdict_find(accounts, 2, false);
	CHECK(verdict.kind == VERDICT_LEFT && verdict.rank == 1);
	gone.at_ns = 51;
	verdict = diagnose_verdict_find(accounts, 2, false);
	CHECK(verdict.kind == VERDICT_ABSENT && verdict.rank == 1);
}

/* Two communicators, two ranks, each waits for the other one in its own call. */
static void test_deadlock(void)
{
	struct account_group groups[2][2] = {{{.channel = 4, .size = 2, .calls = 1, .culprit = -1},
	                                      {.channel = 8, .size = 2, .culprit = -1}},
	                                     {{.channel = 4, .size = 2, .culprit = -1},
	                                      {.channel = 8, .size = 2, .calls = 1, .culprit = -1}}};
	struct account_call calls[2] = {
		{.record = {.note.sequence = 1, .started_ns = 5, .channel = 4, .waits_for = 1}, .words = "barrier"},
		{.record = {.note.sequence = 1, .started_ns = 6, .channel = 8, .waits_for = 0}, .words = "allreduce"},
	};
	struct account accounts[2];
	for (uint32_t i = 0; i < 2; i++)
		accounts[i] = (struct account){.rank = i, .size = 2, .host = "n", .now_ns = 100, .real_ns = 1000,
		                               .groups = groups[i],
		                               .group_count = 2, .calls = &calls[i], .call_count = 1};
	struct verdict verdict = diagnose_verdict_find(accounts, 2, true);
	CHECK(verdict.kind == VERDICT_DEADLOCK && verdict.rank == 0 && verdict.other == 1);
	CHECK_STR(verdict.text, "Rank 0 and rank 1 wait for each other: rank 0 is in call 1 (barrier) of group 4, rank 1 "
	                        "in call 1 (allreduce) of group 8.");
}

/* All are in the call: the rank at the end of the chain. */
static void test_slow(void)
{
	static const uint32_t waits_for[4] = {1, 2, RECORD_NONE, 1};
	struct account_group group = {.size = 4, .calls = 3, .culprit = -1};
	struct account_call calls[4];
	struct account accounts[4];
	for (uint32_t i = 0; i < 4; i++) {
		calls[i] = (struct account_call){.record = {.note.sequence = 3, .started_ns = i == 2 ? 2000000005 : 5,
		                                            .waits_for = waits_for[i]},
		                                 .words = "allreduce"};
		accounts[i] = (struct account){.rank = i, .size = 4, .host = "n", .now_ns = 3000000000,
		                               .real_ns = UINT64_C(1700000000000000000),
		                               .groups = &group, .group_count = 1, .calls = &calls[i], .call_count = 1};
	}
	struct verdict verdict = diagnose_verdict_find(accounts, 4, true);
	CHECK(verdict.kind == VERDICT_SLOW && verdict.rank == 2 && verdict.number == 3);
	CHECK_STR(verdict.text, "All ranks that are known are in call 3 (allreduce), and rank 2 on n is the one that is "
	                        "waited for, for 3.0 s (it came 2.000 s after the first).");
	calls[2].record.waits_for = 0; /* a cycle: the rank that came last */
	verdict = diagnose_verdict_find(accounts, 4, true);
	CHECK(verdict.kind == VERDICT_SLOW && verdict.rank == 2);
}

/* A rank that does not answer may be on another host, unless it was asked here. */
static void test_silent(void)
{
	static const uint32_t mute[] = {2, 1};
	struct account_group group = {.size = 2, .calls = 3, .culprit = -1};
	struct account_call call = {.record = {.note.sequence = 3, .started_ns = 5, .waits_for = 1}, .words = "barrier"};
	struct account account = {.size = 2, .host = "n", .now_ns = 2000000000, .real_ns = UINT64_C(1700000000000000000),
	                          .groups = &group,
	                          .group_count = 1, .calls = &call, .call_count = 1};
	struct verdict verdict = diagnose_verdict_find(&account, 1, true);
	CHECK(verdict.kind == VERDICT_SILENT && verdict.rank == 1);
	CHECK_STR(verdict.text, "Rank 1 is not heard of here, and 1 rank waits for it in call 3 (barrier) for 2.0 s: it is "
	                        "stopped, cut off, or on another host.");
	verdict = diagnose_verdict_find_live(&account, 1, mute, 1);
	CHECK(verdict.kind == VERDICT_SILENT && strstr(verdict.text, "on another host"));
	verdict = diagnose_verdict_find_live(&account, 1, mute, 2);
	CHECK(verdict.kind == VERDICT_SILENT && verdict.rank == 1);
	CHECK_STR(verdict.text, "Rank 1 is on this host and does not answer, and 1 rank waits for it in call 3 (barrier) "
	                        "for 2.0 s: it is stopped, or has no time on a processor.");
}

/*
 * The accounts do not tell which rank is waited for, or the ranks wait in a cycle: the rank that does not
 * answer is at fault, not the one that came last.
 */
static void test_mute(void)
{
	static const uint32_t mute[] = {3}, busy[3] = {RECORD_NONE, RECORD_NONE, RECORD_NONE},
	    chain[3] = {1, RECORD_NONE, 1}, cycle[3] = {1, 2, 0};
	static const uint32_t *const waits_for[] = {busy, chain, cycle};
	uint32_t members[] = {0, 1, 2};
	struct account_group group = {.size = 4, .calls = 3, .culprit = -1};
	struct account_call calls[3];
	struct account accounts[3];
	for (uint32_t k = 0; k < 3; k++) {
		for (uint32_t i = 0; i < 3; i++) {
			calls[i] = (struct account_call){.record = {.note.sequence = 3, .started_ns = 5 + 12000000 * i,
			                                            .waits_for = waits_for[k][i]},
			                                 .words = "allreduce"};
			accounts[i] = (struct account){.rank = i, .size = 4, .host = "n", .now_ns = 2000000005,
			                               .real_ns = UINT64_C(1700000000000000000),
			                               .groups = &group, .group_count = 1, .calls = &calls[i], .call_count = 1};
		}
		struct verdict verdict = diagnose_verdict_find_live(accounts, 3, mute, 1);
		CHECK(verdict.kind == VERDICT_SILENT && verdict.rank == 3 && verdict.number == 3);
		CHECK_STR(verdict.text, "Rank 3 is on this host and does not answer, and 3 ranks wait for it in call 3 "
		                        "(allreduce) for 2.0 s: it is stopped, or has no time on a processor.");
	}
	group.size = 3; /* a communicator without that rank is not concerned */
	group.ranks = members;
	struct verdict verdict = diagnose_verdict_find_live(accounts, 3, mute, 1);
	CHECK(verdict.kind == VERDICT_SLOW && verdict.rank == 2);
}

/* Given up, or left, while all others were computing. */
static void test_idle(void)
{
	struct account_gone gone = {.rank = 1, .host = "m", .fate = ACCOUNT_SILENT, .at_ns = 50};
	struct account_group group = {.size = 2, .calls = 3, .culprit = 1, .failed = ESP_EPEER, .failed_ns = 60};
	struct account account = {.size = 2, .host = "n", .now_ns = 100, .real_ns = 1000, .groups = &group,
	                          .group_count = 1, .gone = &gone, .gone_count = 1};
	struct verdict verdict = diagnose_verdict_find(&account, 1, false);
	CHECK(verdict.kind == VERDICT_SILENT && verdict.rank == 1);
	CHECK_STR(verdict.text, "Rank 1 on m left no account, and was given up while no rank that is known was in a call "
	                        "with it: it is stopped, cut off, or its account is elsewhere.");
	gone.fate = ACCOUNT_LEFT;
	verdict = diagnose_verdict_find(&account, 1, false);
	CHECK(verdict.kind == VERDICT_LEFT && verdict.rank == 1);
	CHECK_STR(verdict.text, "Rank 1 on m left the job by esp_fini(); no rank that is known was in a call with it.");
}

static void test_messages(void)
{
	struct account_group group = {.size = 2, .calls = 0, .culprit = -1};
	struct account_call calls[2] = {
		{.record = {.note = {.flags = CALL_LETTER, .key = 7}, .kind = RECORD_RECEIVE, .started_ns = 5, .waits_for = 1,
		            .peer = 1},
		 .words = "receive from rank 1 with tag 7"},
		{.record = {.note = {.flags = CALL_LETTER, .key = 7}, .kind = RECORD_SEND, .started_ns = 6,
		            .waits_for = RECORD_NONE, .peer = 0},
		 .words = "send to rank 0 with tag 7"},
	};
	struct account accounts[2];
	for (uint32_t i = 0; i < 2; i++)
		accounts[i] = (struct account){.rank = i, .size = 2, .host = "n", .now_ns = 100, .real_ns = 1000,
		                               .groups = &group,
		                               .group_count = 1, .calls = &calls[i], .call_count = i == 0};
	struct verdict verdict = diagnose_verdict_find(accounts, 2, true);
	CHECK(verdict.kind == VERDICT_ABSENT && verdict.rank == 1);
	accounts[1].call_count = 1; /* now it sends */
	verdict = diagnose_verdict_find(accounts, 2, true);
	CHECK(verdict.kind == VERDICT_SLOW && verdict.rank == 1);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 20000);
	for (uint64_t i = 0; i < count; i++)
		test_seed_of(seed + i);
	if (count >= 1000)
		CHECK(runs > count / 2 && found[VERDICT_DIED] && found[VERDICT_LEFT] && found[VERDICT_MISMATCH] &&
		      found[VERDICT_ABSENT] && found[VERDICT_SILENT]);
	test_late_leave();
	test_deadlock();
	test_slow();
	test_silent();
	test_mute();
	test_idle();
	test_messages();
	struct verdict verdict = diagnose_verdict_find(NULL, 0, false);
	CHECK(verdict.kind == VERDICT_NONE && verdict.rank == -1);
	return 0;
}
