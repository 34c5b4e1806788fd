/*
 * world.h - a job's membership in virtual time: ranks that die, stop and thaw, and a network that is cut and heals.
 *
 * Each rank has the members and the agreement of src/rank/join, and a caller that shrinks the group some time after
 * it has failed. Control connections are as TCP's: in order, delayed while they are cut, closed when a process dies.
 */
#ifndef TESTS_MEMBERS_WORLD_H
#define TESTS_MEMBERS_WORLD_H

#include "base/rng.h"
#include "rank/member/agreement.h"
#include "rank/member/presence.h"

#define WORLD_MOST 16u

struct world_options {
	uint32_t size;
	uint64_t interval_ns;
	bool quorum;
	uint32_t kills, stops, cuts; /* at most so many of each              */
	bool thaws, heals;           /* what is stopped or cut does so later */
	bool stalls;                 /* messages of the agreement are delayed for long */
	bool betrays;                /* the first to tell a verdict dies while it does, and those who were told are cut off  */
	uint32_t slanders;           /* at most so many ranks are accused by one that hears them well enough */
	uint32_t resets;             /* at most so many connections break, and are made anew */
	bool frees;                  /* some callers free the group, instead of shrinking it or while they do */
	bool starves;                /* words are held up for long again and again, while data of the same ranks comes */
	bool naps;                   /* every rank is stopped again and again, for as long as nobody may mind; then it may look at the clock before it reads */
	bool is_calm;                /* nothing happens at all               */
};

struct world_message {
	struct world_message *next;
	uint64_t due_ns;
	enum { WORLD_CONTROL, WORLD_VERDICT, WORLD_CLOSED, WORLD_CONNECTED, WORLD_DATA } kind;
	uint32_t channel; /* of data */
	struct control_msg msg;
	size_t n;
	uint8_t bytes[VERDICT_HEAD_BYTES + 4 * ((WORLD_MOST + 7) / 8)];
};

/* One direction of a pair. */
struct world_pipe {
	struct world_message *first, *last;
	uint64_t last_due_ns;
	bool is_cut;
	bool is_starved; /* as if it were cut, but data comes */
	bool was_cut;
	bool is_open; /* somebody has dialled */
};

struct world_rank {
	struct world *world;
	uint32_t number;
	bool is_dead, is_stopped, was_stopped;
	struct presence presence;
	struct agreement agreement;
	uint64_t due_ns;        /* of members and agreement                     */
	bool has_failed;        /* the group, as far as this rank knows         */
	uint64_t shrinks_ns;    /* when its caller will                         */
	uint64_t patience_ns;   /* after which its caller frees the group       */
	bool has_freed;         /* before there was a verdict                   */
	uint64_t failed_ns, decided_ns;
	uint32_t taken_channel; /* one that is not free here                    */
	uint32_t prepared_channel;
	uint32_t data_from;     /* bits: whose first message on that channel has come since it was prepared */
	bool was_accused;
	uint32_t verdicts_left; /* it dies when it has sent so many messages of the agreement; 0: it does not */
};

/* Something that will happen to a rank, or to a pair. */
struct world_fault {
	uint64_t due_ns;
	enum { FAULT_KILL, FAULT_STOP, FAULT_THAW, FAULT_CUT, FAULT_HEAL, FAULT_SLANDER, FAULT_RESET, FAULT_STARVE, FAULT_FEED } kind;
	uint32_t rank, other; /* cuts, starving: from rank to other; slander: by rank, of other; resets: between the two */
};
#define WORLD_FAULTS 2048u

struct world {
	struct world_options options;
	struct rng rng;
	uint64_t now_ns;
	struct world_rank ranks[WORLD_MOST];
	struct world_pipe pipes[WORLD_MOST][WORLD_MOST];
	struct world_fault faults[WORLD_FAULTS];
	uint32_t fault_count;
	uint32_t betrayer;           /* UINT32_MAX: nobody yet                */
	uint32_t words_left;         /* that it tells before it dies          */
	bool was_slandered;          /* somebody                              */
};

/* Plays it until nothing more can happen. */
void world_play(struct world *world, const struct world_options *options, uint64_t seed);
void world_fini(struct world *world);

#endif
