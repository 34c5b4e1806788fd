#include "world.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define DELAY_MOST (20 * NS_PER_MS)
#define INTERVALS_PLAYED 24u

/* ---- the network ---- */

static struct world_pipe *pipe_to(struct world_rank *rank, uint32_t to)
{
	return &rank->world->pipes[rank->number][to];
}

static void post(struct world_rank *rank, uint32_t to, struct world_message message)
{
	struct world *world = rank->world;
	struct world_pipe *pipe = pipe_to(rank, to);
	struct world_message *copy = malloc(sizeof(*copy));

	CHECK(copy != NULL);
	*copy = message;
	copy->next = NULL;
	copy->due_ns = world->now_ns + 1 + rng_below(&world->rng, DELAY_MOST);
	if (copy->due_ns <= pipe->last_due_ns)
		copy->due_ns = pipe->last_due_ns + 1;
	pipe->last_due_ns = copy->due_ns;
	if (pipe->first)
		pipe->last->next = copy;
	else
		pipe->first = copy;
	pipe->last = copy;
}

/* Connections open both ways, and both ends hear of it. */
static void dial(void *context, uint32_t to)
{
	struct world_rank *rank = context;
	struct world *world = rank->world;

	if (pipe_to(rank, to)->is_open || world->ranks[to].is_dead)
		return;
	pipe_to(rank, to)->is_open = world->pipes[to][rank->number].is_open = true;
	post(rank, to, (struct world_message){.kind = WORLD_CONNECTED});
	post(&world->ranks[to], rank->number, (struct world_message){.kind = WORLD_CONNECTED});
}

static void plan_fault(struct world *world, struct world_fault fault)
{
	CHECK(world->fault_count < WORLD_FAULTS);
	world->faults[world->fault_count++] = fault;
}

/* What one sends another takes its time, just now: after this message, or with it. */
static void stall(struct world_rank *rank, uint32_t to, uint64_t num, uint64_t den)
{
	struct world *world = rank->world;
	struct world_fault cut = {world->now_ns + rng_below(&world->rng, DELAY_MOST), FAULT_CUT, rank->number, to};

	if (!world->options.stalls || !rng_chance(&world->rng, num, den) || world->fault_count >= WORLD_FAULTS / 2)
		return;
	plan_fault(world, cut);
	cut.kind = FAULT_HEAL;
	cut.due_ns += 1 + rng_below(&world->rng, 2 * world->options.interval_ns);
	plan_fault(world, cut);
}

static void send(void *context, uint32_t to, const struct control_msg *msg)
{
	dial(context, to);
	post(context, to, (struct world_message){.kind = WORLD_CONTROL, .msg = *msg});
	if (msg->type == CONTROL_SILENT) /* then some go on without knowing whom others have given up */
		stall(context, to, 1, 3);
}

/* ---- a rank ---- */

/* What has not arrived yet may never do: the last messages to some are lost. */
static void lose_some(struct world *world, struct world_pipe *pipe)
{
	struct world_message **at = &pipe->first;

	pipe->last = NULL;
	while (*at && !rng_chance(&world->rng, 1, 3)) {
		pipe->last = *at;
		at = &(*at)->next;
	}
	while (*at) {
		struct world_message *lost = *at;

		*at = lost->next;
		free(lost);
	}
}

static void die(struct world *world, uint32_t number)
{
	struct world_rank *rank = &world->ranks[number];
	bool loses = rng_chance(&world->rng, 1, 2);

	if (rank->is_dead)
		return;
	rank->is_dead = true;
	for (uint32_t i = 0; i < world->options.size; i++) {
		struct world_pipe *pipe = &world->pipes[number][i];

		if (i == number || !pipe->is_open)
			continue;
		if (loses)
			lose_some(world, pipe);
		post(rank, i, (struct world_message){.kind = WORLD_CLOSED});
	}
}

static void group_failed(struct world_rank *rank)
{
	struct world *world = rank->world;

	if (rank->has_failed)
		return;
	rank->has_failed = true;
	rank->failed_ns = world->now_ns;
	rank->shrinks_ns = world->now_ns + rng_below(&world->rng, world->options.interval_ns / 2);
	rank->patience_ns = UINT64_MAX;
	if (world->options.frees && rng_chance(&world->rng, 1, 3))
		rank->patience_ns = rng_chance(&world->rng, 1, 2) ? 0 : rng_below(&world->rng, world->options.interval_ns);
}

/* When its caller frees the group. */
static uint64_t frees_ns(const struct world_rank *rank)
{
	return rank->patience_ns == UINT64_MAX || rank->agreement.is_decided ? UINT64_MAX : rank->shrinks_ns + rank->patience_ns;
}

static void on_fate(void *context, uint32_t who, enum fate fate, uint32_t by, const char *how)
{
	struct world_rank *rank = context;

	(void)by;
	(void)how;
	group_failed(rank);
	if ((fate == FATE_DEAD || fate == FATE_LEFT) && !rank->has_freed)
		agreement_gone(&rank->agreement, who, rank->world->now_ns);
}

static void on_accused(void *context, uint32_t by, const char *how)
{
	struct world_rank *rank = context;

	(void)by;
	(void)how;
	rank->was_accused = true;
	group_failed(rank);
}

static void on_accusation(void *context, uint32_t who, uint32_t by)
{
	struct world_rank *rank = context;

	if (!rank->has_freed)
		agreement_accused(&rank->agreement, who, by, rank->world->now_ns);
}

/* What has arrived, and was not read; and data. */
static uint64_t last_sign(void *context, uint32_t of)
{
	const struct world_rank *rank = context, *other = &rank->world->ranks[of];
	const struct world_pipe *pipe = &rank->world->pipes[of][rank->number];
	bool has_data = pipe->is_starved && !other->is_dead && !other->is_stopped;
	bool has_word = pipe->first && !pipe->is_starved && pipe->first->due_ns <= rank->world->now_ns;

	return (has_data || has_word) && !pipe->is_cut ? rank->world->now_ns : 0;
}

static const struct presence_events presence_events = {
	.send = send,
	.dial = dial,
	.fate = on_fate,
	.accused = on_accused,
	.accusation = on_accusation,
	.last_sign = last_sign,
};

/* One rank hears nothing of the others and they nothing of it, from then on, perhaps for a while. */
static void isolate(struct world *world, uint32_t one, uint64_t at)
{
	uint32_t size = world->options.size;
	uint64_t end = at + 1 + rng_below(&world->rng, 4 * world->options.interval_ns);

	if (world->fault_count + 4 * size > WORLD_FAULTS)
		return;
	for (uint32_t i = 0; i < 2 * size; i++) {
		struct world_fault cut = {at, FAULT_CUT, i % 2 ? one : i / 2, i % 2 ? i / 2 : one};

		if (cut.rank == cut.other)
			continue;
		plan_fault(world, cut);
		cut.kind = FAULT_HEAL;
		cut.due_ns = end;
		if (world->options.heals)
			plan_fault(world, cut);
	}
}

/* The leader has told one more. Those who know, and they alone, are cut off, and those who do not know have lost their leader. */
static void betray(struct world_rank *rank, uint32_t to)
{
	struct world *world = rank->world;

	if (!world->options.betrays || (world->betrayer != UINT32_MAX && world->betrayer != rank->number))
		return;
	if (world->betrayer == UINT32_MAX)
		world->words_left = 1 + (uint32_t)rng_below(&world->rng, world->options.size);
	world->betrayer = rank->number;
	if (rng_chance(&world->rng, 3, 4))
		isolate(world, to, pipe_to(rank, to)->last_due_ns + 1);
	if (--world->words_left == 0)
		die(world, rank->number);
}

static void send_verdict(void *context, uint32_t to, const uint8_t *bytes, size_t n)
{
	struct world_message message = {.kind = WORLD_VERDICT, .n = n};

	struct world_rank *rank = context;

	CHECK(n <= sizeof(message.bytes));
	if (rank->is_dead) /* in the middle of telling all */
		return;
	memcpy(message.bytes, bytes, n);
	dial(context, to);
	post(context, to, message);
	if (bytes[0] == VERDICT_DECIDED)
		betray(rank, to);
	stall(rank, to, 1, 20);
	if (rank->verdicts_left > 0 && --rank->verdicts_left == 0) {
		die(rank->world, rank->number);
		if (rank->world->options.cuts && rng_chance(&rank->world->rng, 1, 2))
			isolate(rank->world, (uint32_t)rng_below(&rank->world->rng, rank->world->options.size), rank->world->now_ns);
	}
}

static bool prepare(void *context, const struct verdict_terms *terms, const uint8_t *members, uint32_t *out_channel)
{
	struct world_rank *rank = context;

	CHECK(verdict_bit(members, rank->number));
	rank->prepared_channel = 0;
	rank->data_from = 0;
	if (terms->channel == rank->taken_channel) {
		*out_channel = terms->channel + 1;
		return false;
	}
	rank->prepared_channel = terms->channel;
	return true;
}

static void accuse(void *context, uint32_t place)
{
	struct world_rank *rank = context;

	presence_accuse(&rank->presence, place, "does not answer", rank->world->now_ns);
}

static const struct agreement_events agreement_events = {.send = send_verdict, .prepare = prepare, .accuse = accuse};

/* Whoever goes on sends to all others at once: they have prepared for it. */
static void note_decision(struct world_rank *rank)
{
	struct world_message data = {.kind = WORLD_DATA, .channel = rank->agreement.accepted.channel};

	if (!rank->agreement.is_decided || rank->decided_ns != 0)
		return;
	rank->decided_ns = rank->world->now_ns;
	for (uint32_t i = 0; rank->agreement.goes_on && i < rank->world->options.size; i++) {
		if (i == rank->number || !agreement_includes(&rank->agreement, i))
			continue;
		dial(rank, i);
		post(rank, i, data);
	}
}

/* What a rank does that has no such group any more. */
static void answer_left(struct world_rank *rank, uint32_t to, const struct world_message *message)
{
	struct world_message answer = {.kind = WORLD_VERDICT};
	struct verdict_msg left = {.type = VERDICT_LEFT};

	if (!verdict_msg_asks(message->bytes, message->n, &left.size))
		return;
	answer.n = verdict_msg_encode(&left, answer.bytes);
	dial(rank, to);
	post(rank, to, answer);
}

static void deliver(struct world_rank *rank, uint32_t from, const struct world_message *message)
{
	uint64_t now = rank->world->now_ns;

	switch (message->kind) {
	case WORLD_CONTROL:
		agreement_heard(&rank->agreement, from, now);
		CHECK(presence_message(&rank->presence, from, &message->msg, now));
		break;
	case WORLD_VERDICT:
		presence_heard(&rank->presence, from, now);
		if (rank->has_freed) {
			answer_left(rank, from, message);
			break;
		}
		group_failed(rank); /* as a rank does that hears of it in this way first */
		agreement_message(&rank->agreement, from, message->bytes, message->n, now);
		break;
	case WORLD_CLOSED:
		presence_closed(&rank->presence, from, "its connection was closed", now);
		break;
	case WORLD_DATA:
		if (rank->prepared_channel == message->channel)
			rank->data_from |= 1u << from;
		break;
	case WORLD_CONNECTED:
		presence_connected(&rank->presence, from, now);
		break;
	}
	note_decision(rank);
	rank->due_ns = now; /* there may be something to do at once */
}

static void turn(struct world_rank *rank)
{
	uint64_t now = rank->world->now_ns;

	if (rank->has_failed && now >= frees_ns(rank)) {
		rank->has_freed = true;
		rank->prepared_channel = 0;
	}
	if (rank->has_failed && !rank->has_freed && !rank->agreement.is_started && now >= rank->shrinks_ns)
		agreement_start(&rank->agreement, 10 + rank->number % 2, 11, 4 * (1 + rank->number), now);
	uint64_t next = presence_turn(&rank->presence, now);
	if (!rank->has_freed) {
		uint64_t other = agreement_turn(&rank->agreement, now);

		next = other < next ? other : next;
		if (rank->has_failed && !rank->agreement.is_started && rank->shrinks_ns < next)
			next = rank->shrinks_ns;
		if (rank->has_failed && frees_ns(rank) < next)
			next = frees_ns(rank);
	}
	note_decision(rank);
	rank->due_ns = next > now ? next : now + 1;
}

/* ---- faults ---- */

/*
 * Of what is on its way, in both directions, some arrives on the old connection, perhaps long before word of the new one, on which
 * the rest is said again in order.
 */
static void reset(struct world *world, uint32_t one, uint32_t other)
{
	const uint32_t ends[2] = {one, other};

	if (one == other || !world->pipes[one][other].is_open || world->ranks[one].is_dead || world->ranks[other].is_dead)
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct world_pipe *pipe = &world->pipes[ends[i]][ends[1 - i]];
		uint64_t again_ns = world->now_ns + rng_below(&world->rng, world->options.interval_ns / 10);
		struct world_message *at = pipe->first;

		while (at && !rng_chance(&world->rng, 1, 3))
			at = at->next;
		for (; at; at = at->next)
			at->due_ns = at->due_ns > again_ns ? at->due_ns : again_ns;
		pipe->last_due_ns = pipe->last_due_ns > again_ns ? pipe->last_due_ns : again_ns;
		post(&world->ranks[ends[i]], ends[1 - i], (struct world_message){.kind = WORLD_CONNECTED});
	}
}

static void happen(struct world *world, const struct world_fault *fault)
{
	struct world_rank *rank = &world->ranks[fault->rank];

	switch (fault->kind) {
	case FAULT_KILL:
		die(world, fault->rank);
		break;
	case FAULT_STOP:
		rank->is_stopped = rank->was_stopped = true;
		break;
	case FAULT_THAW:
		rank->is_stopped = false;
		/* Its timers may be looked at before its messages, or after. */
		rank->due_ns = rng_below(&world->rng, 2 * DELAY_MOST);
		rank->due_ns = world->options.naps && rank->due_ns % 2 ? 0 : world->now_ns + rank->due_ns;
		break;
	case FAULT_CUT:
		world->pipes[fault->rank][fault->other].is_cut = true;
		world->pipes[fault->rank][fault->other].was_cut = true;
		break;
	case FAULT_HEAL:
		world->pipes[fault->rank][fault->other].is_cut = false;
		break;
	case FAULT_STARVE:
	case FAULT_FEED:
		world->pipes[fault->rank][fault->other].is_starved = fault->kind == FAULT_STARVE;
		break;
	case FAULT_RESET:
		reset(world, fault->rank, fault->other);
		break;
	case FAULT_SLANDER:
		if (!rank->is_dead && !rank->is_stopped && fault->rank != fault->other) {
			world->was_slandered = true;
			presence_accuse(&rank->presence, fault->other, "slander", world->now_ns);
		}
		break;
	}
}

/* Most faults come close together: while others are being dealt with. */
static uint64_t draw_time(struct world *world)
{
	uint64_t interval = world->options.interval_ns;
	uint64_t range = rng_chance(&world->rng, 1, 2) ? interval / 8 : rng_chance(&world->rng, 1, 2) ? interval : 4 * interval;

	return interval / 2 + rng_below(&world->rng, range);
}

/* Some ranks hear nothing of the others, in both directions or in one. */
static void plan_cut(struct world *world, bool heals)
{
	uint64_t at = draw_time(world), end = at + 1 + rng_below(&world->rng, 2 * world->options.interval_ns);
	uint64_t sides = rng_next(&world->rng);
	bool single = rng_chance(&world->rng, 1, 3), both_ways = rng_chance(&world->rng, 3, 4);
	uint32_t size = world->options.size, one = (uint32_t)rng_below(&world->rng, size),
	         other = (uint32_t)rng_below(&world->rng, size);

	for (uint32_t i = 0; i < size; i++) {
		for (uint32_t k = 0; k < size; k++) {
			bool apart = single ? i == one && k == other : (sides >> i & 1) == 1 && (sides >> k & 1) == 0;

			if (i == k || !apart)
				continue;
			for (unsigned way = 0; way < 1u + both_ways; way++) {
				struct world_fault cut = {at, FAULT_CUT, way ? k : i, way ? i : k};

				plan_fault(world, cut);
				cut.kind = FAULT_HEAL;
				cut.due_ns = end;
				if (heals)
					plan_fault(world, cut);
			}
		}
	}
}

/* Some words of a rank to another are late by up to one and a half intervals. */
static void plan_hunger(struct world *world)
{
	uint32_t size = world->options.size;

	for (uint32_t i = 0; i < size * size; i++) {
		struct world_fault starve = {draw_time(world), FAULT_STARVE, i / size, i % size};

		if (i / size == i % size || !rng_chance(&world->rng, 1, 2))
			continue;
		plan_fault(world, starve);
		starve.kind = FAULT_FEED;
		starve.due_ns += 1 + rng_below(&world->rng, 3 * world->options.interval_ns / 2);
		plan_fault(world, starve);
	}
}

/*
 * A rank may be stopped for three quarters of the interval, less the time that words take; and be kept from
 * running for less than a quarter, which is too short to be noticed as that.
 */
static void plan_naps(struct world *world)
{
	uint64_t interval = world->options.interval_ns;

	for (uint32_t i = 0; i < world->options.size; i++) {
		uint64_t at = rng_below(&world->rng, interval);

		while (at < (INTERVALS_PLAYED - 1) * interval) {
			uint64_t most = rng_chance(&world->rng, 1, 2) ? interval / 4 : interval * 3 / 4 - 5 * DELAY_MOST;
			struct world_fault stop = {at, FAULT_STOP, i, 0};

			plan_fault(world, stop);
			at += 1 + rng_below(&world->rng, most);
			plan_fault(world, (struct world_fault){at, FAULT_THAW, i, 0});
			at += interval / 2 + rng_below(&world->rng, interval);
		}
	}
}

static void plan_faults(struct world *world)
{
	const struct world_options *options = &world->options;

	if (options->starves)
		plan_hunger(world);
	if (options->naps)
		plan_naps(world);

	for (uint64_t i = options->kills ? rng_below(&world->rng, options->kills + 1) : 0; i > 0; i--)
		plan_fault(world, (struct world_fault){draw_time(world), FAULT_KILL, (uint32_t)rng_below(&world->rng, options->size), 0});
	for (uint64_t i = options->stops ? rng_below(&world->rng, options->stops + 1) : 0; i > 0; i--) {
		struct world_fault stop = {draw_time(world), FAULT_STOP, (uint32_t)rng_below(&world->rng, options->size), 0};

		plan_fault(world, stop);
		stop.kind = FAULT_THAW;
		stop.due_ns += 1 + rng_below(&world->rng, 3 * options->interval_ns);
		if (options->thaws)
			plan_fault(world, stop);
	}
	for (uint64_t i = options->slanders ? rng_below(&world->rng, options->slanders + 1) : 0; i > 0; i--)
		plan_fault(world, (struct world_fault){draw_time(world), FAULT_SLANDER, (uint32_t)rng_below(&world->rng, options->size),
		                                       (uint32_t)rng_below(&world->rng, options->size)});
	for (uint64_t i = options->resets ? rng_below(&world->rng, options->resets + 1) : 0; i > 0; i--)
		plan_fault(world, (struct world_fault){draw_time(world), FAULT_RESET, (uint32_t)rng_below(&world->rng, options->size),
		                                       (uint32_t)rng_below(&world->rng, options->size)});
	for (uint64_t i = options->cuts ? rng_below(&world->rng, options->cuts + 1) : 0; i > 0; i--)
		plan_cut(world, options->heals);
}

/* ---- time ---- */

/* The next thing that happens, and when. */
struct next {
	uint64_t due_ns;
	struct world_fault *fault;
	uint32_t rank;         /* whose turn it is, or who gets the message */
	uint32_t from;
	bool is_message;
};

static void consider(struct next *next, uint64_t due, struct next other)
{
	if (due < next->due_ns) {
		*next = other;
		next->due_ns = due;
	}
}

static struct next find_next(struct world *world)
{
	struct next next = {.due_ns = UINT64_MAX};

	for (uint32_t i = 0; i < world->fault_count; i++)
		consider(&next, world->faults[i].due_ns, (struct next){.fault = &world->faults[i]});
	for (uint32_t i = 0; i < world->options.size; i++) {
		const struct world_rank *rank = &world->ranks[i];

		if (rank->is_dead || rank->is_stopped)
			continue;
		consider(&next, rank->due_ns, (struct next){.rank = i});
		for (uint32_t k = 0; k < world->options.size; k++) {
			const struct world_pipe *pipe = &world->pipes[k][i];

			if (pipe->first && !pipe->is_cut && !pipe->is_starved)
				consider(&next, pipe->first->due_ns, (struct next){.rank = i, .from = k, .is_message = true});
		}
	}
	return next;
}

static void take_step(struct world *world, const struct next *next)
{
	if (next->fault) {
		happen(world, next->fault);
		next->fault->due_ns = UINT64_MAX;
	} else if (next->is_message) {
		struct world_pipe *pipe = &world->pipes[next->from][next->rank];
		struct world_message *message = pipe->first;

		pipe->first = message->next;
		deliver(&world->ranks[next->rank], next->from, message);
		free(message);
	} else {
		turn(&world->ranks[next->rank]);
	}
}

void world_play(struct world *world, const struct world_options *options, uint64_t seed)
{
	memset(world, 0, sizeof(*world));
	world->options = *options;
	world->now_ns = NS_PER_S;
	world->betrayer = UINT32_MAX;
	rng_init(&world->rng, seed);
	for (uint32_t i = 0; i < options->size; i++) {
		struct world_rank *rank = &world->ranks[i];
		struct agreement_config config = {
			.self = i,
			.size = options->size,
			.interval_ns = options->interval_ns,
			.quorum = options->quorum,
			.events = &agreement_events,
			.context = rank,
		};

		rank->world = world;
		rank->number = i;
		if (options->kills && rng_chance(&world->rng, 1, 4))
			rank->verdicts_left = 1 + (uint32_t)rng_below(&world->rng, 3 * options->size);
		rank->taken_channel = rng_chance(&world->rng, 1, 3) ? 4 * options->size : 0;
		CHECK(presence_init(&rank->presence, i, options->size, options->interval_ns, world->now_ns, &presence_events, rank) == ESP_OK);
		CHECK(agreement_init(&rank->agreement, &config) == ESP_OK);
	}
	for (uint32_t i = 0; i < options->size; i++)
		presence_begin(&world->ranks[i].presence, world->now_ns);
	if (!options->is_calm)
		plan_faults(world);
	for (uint32_t i = 0; i < world->fault_count; i++)
		world->faults[i].due_ns += world->now_ns;
	uint64_t end = world->now_ns + INTERVALS_PLAYED * options->interval_ns;
	for (;;) {
		struct next next = find_next(world);

		if (next.due_ns >= end)
			break;
		world->now_ns = next.due_ns > world->now_ns ? next.due_ns : world->now_ns;
		take_step(world, &next);
	}
}

void world_fini(struct world *world)
{
	for (uint32_t i = 0; i < world->options.size; i++) {
		presence_fini(&world->ranks[i].presence);
		agreement_fini(&world->ranks[i].agreement);
		for (uint32_t k = 0; k < world->options.size; k++) {
			while (world->pipes[i][k].first) {
				struct world_message *next = world->pipes[i][k].first->next;

				free(world->pipes[i][k].first);
				world->pipes[i][k].first = next;
			}
		}
	}
}
