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
	struct reliable reliable;
	uint64_t queued; /* number of the last message queued on the connection */
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

	while (control_reliable_next(&end->reliable, end->queued, &msg)) {
		CHECK_U64(msg.number, end->queued < end->reliable.said - end->reliable.count ? msg.number : end->queued + 1);
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
	enum reliable_heard heard = control_reliable_hear(&to->reliable, msg);
	CHECK(heard != RELIABLE_BROKEN);
	if (heard == RELIABLE_NEW) /* in order, each once */
		CHECK_U64(msg->dials.at_ns, ++to->heard);
	CHECK(to->heard <= from->said);
	if (control_reliable_owes(&to->reliable, &owed))
		put(&to->out, &owed);
}

/* Connections break at any moment with messages under way, which may still arrive on the old connection, or not. */
static void survives_breaks(uint64_t seed)
{
	static struct end ends[2];
	struct control_msg owed;
	struct rng rng;

	rng_init(&rng, seed);
	memset(ends, 0, sizeof(ends));
	while (ends[0].heard < MESSAGES || ends[1].heard < MESSAGES) {
		struct end *end = &ends[rng_below(&rng, 2)], *other = end == ends ? ends + 1 : ends;
		bool is_chatty = seed % 3 != 0 || end == ends; /* in every third only one end has messages, until it is done */

		if (end->said < MESSAGES && (is_chatty || ends[1].heard == MESSAGES) && rng_chance(&rng, 1, 3)) {
			CHECK(control_reliable_say(&end->reliable,
			                           &(struct control_msg){.type = CONTROL_DIALS, .dials.at_ns = ++end->said}));
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
				control_reliable_begin(&ends[i].reliable);
				queue_all(&ends[i]);
				if (control_reliable_owes(&ends[i].reliable, &owed))
					put(&ends[i].out, &owed);
			}
		}
		CHECK(end->reliable.count < PIPE / 2);
	}
	control_reliable_fini(&ends[0].reliable);
	control_reliable_fini(&ends[1].reliable);
}

static void nonsense_is_noticed(void)
{
	struct reliable reliable = {0};

	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.number = 2}) == RELIABLE_BROKEN);
	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.number = 1, .heard = 1}) == RELIABLE_BROKEN);
	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.number = 1}) == RELIABLE_NEW);
	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.number = 1}) == RELIABLE_AGAIN);
	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.number = 0}) == RELIABLE_AGAIN);
	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.number = UINT64_MAX}) == RELIABLE_BROKEN);
	control_reliable_fini(&reliable);
}

/* A new connection begins with a message, if only an acknowledgement. */
static void tells_what_works(void)
{
	struct reliable one = {0}, other = {0};
	struct control_msg msg;

	CHECK(!control_reliable_owes(&one, &msg));
	control_reliable_begin(&one);
	CHECK(control_reliable_owes(&one, &msg) && msg.number == 0);
	CHECK(control_reliable_broke(&other) == 1 && control_reliable_broke(&other) == 2);
	CHECK(control_reliable_hear(&other, &msg) == RELIABLE_AGAIN && control_reliable_broke(&other) == 1);
	CHECK(!control_reliable_owes(&one, &msg));
	control_reliable_begin(&one);
	CHECK(control_reliable_say(&one, &(struct control_msg){.type = CONTROL_ASK}) &&
	      control_reliable_next(&one, 0, &msg));
	CHECK(!control_reliable_owes(&one, &(struct control_msg){0}));
	control_reliable_fini(&one);
}

static void gives_up_who_does_not_read(void)
{
	struct reliable reliable = {0};
	struct control_msg msg = {.type = CONTROL_ASK};
	uint32_t kept = 0;

	while (control_reliable_say(&reliable, &msg))
		kept++;
	CHECK_U64(kept, RELIABLE_KEPT_MOST);
	CHECK(control_reliable_hear(&reliable, &(struct control_msg){.heard = kept}) == RELIABLE_AGAIN);
	CHECK_U64(reliable.count, 0);
	control_reliable_fini(&reliable);
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
