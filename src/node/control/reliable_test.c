#include "node/control/reliable.h"

#include "base/check.h"
#include "base/rng.h"

#define PIPE 256u
#define MESSAGES 300u

/* One direction of a connection: messages in order, some of which have arrived. */
struct pipe {
	struct control_msg queue[PIPE];
	uint32_t at, count;
};

struct end {
	struct talk talk;
	uint64_t queued; /* the last number that the connection was given */
	uint64_t said, heard;
	struct pipe out, before; /* the current connection; the one before may still deliver */
};

static void put(struct pipe *pipe, const struct control_msg *msg)
{
	if (pipe->count == PIPE) {
		memmove(pipe->queue, pipe->queue + pipe->at, (pipe->count - pipe->at) * sizeof(*msg));
		pipe->count -= pipe->at;
		pipe->at = 0;
	}
	CHECK(pipe->count < PIPE);
	pipe->queue[pipe->count++] = *msg;
}

static void queue_all(struct end *end)
{
	struct control_msg msg;

	while (talk_next(&end->talk, end->queued, &msg)) {
		CHECK_U64(msg.number, end->queued < end->talk.said - end->talk.count ? msg.number : end->queued + 1);
		end->queued = msg.number;
		put(&end->out, &msg);
	}
}

static void deliver(struct end *from, struct end *to, struct pipe *pipe)
{
	struct control_msg owed;

	if (pipe->at == pipe->count)
		return;
	const struct control_msg *msg = &pipe->queue[pipe->at++];
	enum talk_heard heard = talk_hear(&to->talk, msg);
	CHECK(heard != TALK_BROKEN);
	if (heard == TALK_NEW) /* in order, each once */
		CHECK_U64(msg->sequence, ++to->heard);
	CHECK(to->heard <= from->said);
	if (talk_owes(&to->talk, &owed))
		put(&to->out, &owed);
}

/* Connections break at any moment, with anything under way; what is under way on the old one may arrive all the same, or not. */
static void survives_breaks(uint64_t seed)
{
	static struct end ends[2];
	struct control_msg owed;
	struct rng rng;

	rng_init(&rng, seed);
	memset(ends, 0, sizeof(ends));
	while (ends[0].heard < MESSAGES || ends[1].heard < MESSAGES) {
		struct end *end = &ends[rng_below(&rng, 2)], *other = end == ends ? ends + 1 : ends;
		bool is_chatty = seed % 3 != 0 || end == ends; /* in every third only one of them has something to say, until the end */

		if (end->said < MESSAGES && (is_chatty || ends[1].heard == MESSAGES) && rng_chance(&rng, 1, 3)) {
			CHECK(talk_say(&end->talk, &(struct control_msg){.type = CONTROL_ASK, .sequence = ++end->said}));
			queue_all(end);
		}
		deliver(end, other, &end->out);
		if (rng_chance(&rng, 1, 2))
			deliver(end, other, &end->before);
		if (rng_chance(&rng, 1, 40)) {
			for (unsigned i = 0; i < 2; i++) {
				ends[i].before = ends[i].out;
				ends[i].out.at = ends[i].out.count = 0;
				ends[i].queued = 0;
				talk_begin(&ends[i].talk);
				queue_all(&ends[i]);
				if (talk_owes(&ends[i].talk, &owed))
					put(&ends[i].out, &owed);
			}
		}
		CHECK(end->talk.count < PIPE / 2);
	}
	talk_fini(&ends[0].talk);
	talk_fini(&ends[1].talk);
}

static void nonsense_is_noticed(void)
{
	struct talk talk = {0};

	CHECK(talk_hear(&talk, &(struct control_msg){.number = 2}) == TALK_BROKEN);
	CHECK(talk_hear(&talk, &(struct control_msg){.number = 1, .heard = 1}) == TALK_BROKEN);
	CHECK(talk_hear(&talk, &(struct control_msg){.number = 1}) == TALK_NEW);
	CHECK(talk_hear(&talk, &(struct control_msg){.number = 1}) == TALK_AGAIN);
	CHECK(talk_hear(&talk, &(struct control_msg){.number = 0}) == TALK_AGAIN);
	CHECK(talk_hear(&talk, &(struct control_msg){.number = UINT64_MAX}) == TALK_BROKEN);
	talk_fini(&talk);
}

/* A new connection begins with a word, whoever has something to say or not. */
static void tells_what_works(void)
{
	struct talk one = {0}, other = {0};
	struct control_msg msg;

	CHECK(!talk_owes(&one, &msg));
	talk_begin(&one);
	CHECK(talk_owes(&one, &msg) && msg.number == 0);
	CHECK(talk_broke(&other) == 1 && talk_broke(&other) == 2);
	CHECK(talk_hear(&other, &msg) == TALK_AGAIN && talk_broke(&other) == 1);
	CHECK(!talk_owes(&one, &msg));
	talk_begin(&one);
	CHECK(talk_say(&one, &(struct control_msg){.type = CONTROL_ASK}) && talk_next(&one, 0, &msg));
	CHECK(!talk_owes(&one, &(struct control_msg){0}));
	talk_fini(&one);
}

static void gives_up_who_does_not_read(void)
{
	struct talk talk = {0};
	struct control_msg msg = {.type = CONTROL_ASK};
	uint32_t kept = 0;

	while (talk_say(&talk, &msg))
		kept++;
	CHECK_U64(kept, TALK_KEPT_MOST);
	CHECK(talk_hear(&talk, &(struct control_msg){.heard = kept}) == TALK_AGAIN);
	CHECK_U64(talk.count, 0);
	talk_fini(&talk);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		survives_breaks(seed);
	nonsense_is_noticed();
	tells_what_works();
	gives_up_who_does_not_read();
	return 0;
}
