/*
 * shm_small.h - small calls between ranks that share a host, in one round or two through shared memory.
 *
 * One round is the fast path of the plan `exchange`: every rank pins its input in its own memory of the small path,
 * where all others read it, and works out its result by itself, in rank order. Two rounds are that of `flat`, for sums
 * that are too long to be worked out by each rank: each rank sums a slice, in rank order, puts it in the place of its
 * own input, where no other rank reads that slice, and copies the other slices from their owners.
 *
 * The memory of a rank has two cells, used in turn: a rank ends call k + 1 only when all others have pinned it, and
 * thus are done with k, whose cell it then uses again. So every call is also a barrier, and one that does not fit is
 * noticed by all. No rank writes into another rank's memory, and nothing is acknowledged.
 *
 * A cell says whose call it is by the call's digest and, for error messages, by its note. Short data lies in the same
 * cache line as the number that says that it is there.
 *
 * The small path is used by one thread at a time, but for shm_small_other(): under the group's lock, or by the thread
 * that holds it (comm.h).
 */
#ifndef RANK_COMM_SHM_SMALL_H
#define RANK_COMM_SHM_SMALL_H

#include "rank/comm/call.h"
#include "transport/shm/segment.h"

#define SHM_SMALL_HEAD_BYTES 192u /* of a cell, before data that is not short */

struct shm_small;

/*
 * bytes: of data that a call can pin; so much memory is taken twice, with a head of SHM_SMALL_HEAD_BYTES. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status shm_small_open(struct segment *own, uint16_t channel, uint32_t mark, uint32_t bytes,
                                           uint32_t rank, uint32_t size, const struct segment_view *const *views,
                                           struct shm_small **out);
void shm_small_close(struct shm_small *small); /* NULL is fine */

/* Sizes up to which calls go over the small path: at all, and in one round although all ranks work out the same. */
struct shm_small_limits {
	uint64_t bytes, redundant_bytes;
};

/* Rounds that this call takes on the small path: 1 or 2, the same on all ranks; 0: it does not go there. */
unsigned shm_small_rounds(const struct call *call, uint32_t size, const struct shm_small_limits *limits);

/* A call on the small path; the caller's storage. */
struct shm_small_call {
	const struct call *call;
	struct call_note note;
	uint32_t digest;
	unsigned rounds;    /* shm_small_rounds()                                   */
	uint64_t started;   /* ticks of the recorder: for people                */
	bool has_summed;    /* our slice: the second round has begun            */
	uint32_t seen;      /* members that were looked at, in this round       */
	uint32_t waits_for; /* the member that it waits for                     */
};

/* The next call; the one before has ended. */
void shm_small_begin(struct shm_small *small, struct shm_small_call *op);

/*
 * Goes on: ESP_OK: the result is there. ESP_PENDING: waits for op->waits_for. ESP_EMISMATCH: that
 * member has made another call, *out_other says which, and *out_mine what we have made.
 */
enum esp_status shm_small_go_on(struct shm_small *small, struct shm_small_call *op, struct call_note *out_mine,
                            struct call_note *out_other);

/* Sleeps until the member that op waits for has gone on, or for timeout_ns. */
void shm_small_sleep(struct shm_small *small, const struct shm_small_call *op, uint64_t timeout_ns);

/*
 * The member that op waits for may share this thread's core, while others are idle: then this thread moves to another
 * one of those that it is allowed. For a thread that spins: the kernel leaves it where it is, as it looks busy.
 */
void shm_small_step_aside(struct shm_small *small, const struct shm_small_call *op);

/*
 * Has a member pinned another call than this one under the same number (note->sequence)? *out_member is that member,
 * *out_other its call. For calls that do not go over the small path, whose members would wait for each other here and
 * there; from any thread.
 */
bool shm_small_other(const struct shm_small *small, const struct call_note *note, uint32_t *out_member,
                     struct call_note *out_other);

/* The calls that were pinned last, for error messages. Zeroed: none. */
void shm_small_notes(const struct shm_small *small, struct call_note out[2]);

#endif
