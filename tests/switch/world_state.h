/*
 * world_state.h - the parts of a world; private to world*.c.
 */
#ifndef TESTS_SWITCH_WORLD_STATE_H
#define TESTS_SWITCH_WORLD_STATE_H

#include "base/check.h"
#include "world.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define TIME_MAX (7200 * SECOND) /* a job that takes longer hangs: a packet in four may be lost */

#define WORLD_CHECK(world, condition, ...)                                   \
	do {                                                                 \
		if (!(condition)) {                                          \
			fprintf(stderr, "seed %" PRIu64 ": ", (world)->options.seed); \
			CHECK_MSG(condition, __VA_ARGS__);                   \
		}                                                            \
	} while (0)

struct datagram {
	uint8_t bytes[ATP_HEADER_BYTES + 4 * WORLD_WORDS];
	uint32_t length;
};

enum event_kind { TO_NODE, TO_SWITCH, WAKE, CALL, LINGER, REBOOT, SWITCH_DEATH, MEMBER_DEATH, FORGE, KILL, START, SHARE };

struct event {
	uint64_t at, order;
	enum event_kind kind;
	uint16_t job, node; /* of nodes; node is the switch of switch events */
	bool from_member;   /* of TO_SWITCH; sender is the member then */
	uint16_t sender;
	struct datagram datagram;
};

struct node {
	uint16_t job, number;
	bool is_there, is_dead, is_member, has_finished;
	uint16_t home; /* its switch */
	bool owns;
	struct succession stream;
	uint32_t offered, allowed, received; /* elements: offered, of calls that have begun, with their result */
	uint32_t *data;                      /* by element */
	uint8_t *has_result;
	uint64_t wake_at;
	uint64_t progress_at; /* the latest result, or the begin of the call */
};

struct job {
	uint8_t secret[GENERATION_SECRET];
	uint64_t flows[WORLD_GENERATIONS];
	uint32_t members, calls, per_call, words, window;
	uint32_t per_generation, limit; /* elements of a generation, and numbers: less than a call more */
	bool has_server, is_two_level, has_failed, is_over;
	uint16_t group_of[WORLD_MEMBERS]; /* the switch of a member */
	uint16_t next[WORLD_SWITCHES][WORLD_NODES];
	struct shape *shape;
	struct node nodes[WORLD_NODES];
	uint32_t finished; /* members */
};

struct table_slot {
	struct step_slot slot;
	uint32_t words[WORLD_WORDS];
};

struct net_switch {
	bool is_dead;
	uint64_t secret;
	struct table_slot *slots[ATP_HOPS];
	bool is_registered[WORLD_FLOWS][WORLD_NODES];
};

struct world {
	struct world_options options;
	struct rng rng;
	struct world_totals *totals;
	bool faults[WORLD_FAULTS];
	uint32_t loss, repeat, delay, corrupt, mark; /* of 10,000 */
	uint32_t jobs_count, switches_count, slots_count;
	struct step_limits limits;
	struct job jobs[WORLD_JOBS];
	struct net_switch switches[WORLD_SWITCHES];
	uint64_t now, order;
	struct event *heap;
	uint32_t heap_count, heap_max;
	uint64_t contributions, taken; /* of world_totals, 200 ms after the latest start */
};

/* world_net.c: time, the network and switches */
void world_post(struct world *world, const struct event *event);
bool world_take(struct world *world, struct event *out);
void world_send(struct world *world, const struct endpoint_out *out, const struct node *from);
void world_at_switch(struct world *world, const struct event *event);
void world_reboot(struct world *world, uint16_t which);
void world_forge(struct world *world);

/* world_kills.c: a switch that is killed again and again */
void world_begin_kills(struct world *world);
void world_kill(struct world *world, const struct event *event);
void world_progress(struct world *world, struct node *node);

/* world_node.c: members and servers */
void world_open_node(struct world *world, uint16_t job, uint16_t number);
void world_at_node(struct world *world, struct node *node, const struct datagram *datagram);
void world_call(struct world *world, struct node *node);
void world_linger(struct world *world, struct node *node);
void world_pump(struct world *world, struct node *node);
void world_close_node(struct world *world, struct node *node);

static inline uint16_t world_owner_of(const struct job *job, uint32_t sequence)
{
	return (uint16_t)(job->has_server ? job->members : sequence % job->members);
}

/* Numbers begin anew in each generation, and so do owners' turns. */
static inline uint16_t world_owner_of_element(const struct job *job, uint32_t element)
{
	return world_owner_of(job, element % job->per_generation);
}

static inline uint32_t world_elements(const struct job *job)
{
	return job->calls * job->per_call;
}

#endif
