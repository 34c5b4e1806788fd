/*
 * dump.h - the flight recorder's file, written when a call or a communicator has failed. Any thread; private to
 * src/rank.
 *
 * The account is taken at once. A thread that lives only for that, and shares nothing with the rank, writes it: a disk
 * that hangs, is full or is read-only delays no other thread. A thread that is about to return a failure waits a moment
 * for the file, as the program may end right after.
 */
#ifndef RANK_OBSERVE_DUMP_H
#define RANK_OBSERVE_DUMP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "node/observe/account.h"

struct rank;
struct dump_state;

/* The extent of an account. */
struct account_wishes {
	uint32_t ended;       /* number of ended calls, the latest */
	uint64_t patience_ns; /* for lanes to report their waits; 0: they are not asked */
};
typedef enum esp_status account_fn(struct rank *rank, const struct account_wishes *wishes, struct account *out);

struct dump {
	account_fn *take;         /* takes the rank's account: set before dump_open() */
	struct dump_state *state; /* shared with the thread; NULL: nothing is to be written */
	atomic_uint seen;         /* number of failures that dump_failures() has handled */
	atomic_bool is_hint_logged;     /* it was logged that there could be files */
};

/* For rank_open(), before the first call. Without memory, or without the setting, there are no files. */
void dump_open(struct rank *context);
/* Waits a moment for the file that is being written. */
void dump_close(struct rank *context);

/*
 * If a call has failed since the last time: takes the account and has it written. Called without context->lock, with at
 * most a lane's token or a communicator's lock. Does not wait.
 */
void dump_failures(struct rank *context);
/* The same for a thread that returns a failure to its caller: waits for the file, two seconds at most. */
void dump_failures_and_wait(struct rank *context);

#endif
