/*
 * dump.h - the flight recorder's file, written when a call or a group has failed. Private to src/rank.
 *
 * What the rank knows is taken at once and written by a thread that lives only for that and shares nothing with
 * the context: a disk that hangs, is full or is read-only keeps nobody from going on. Whoever is about to return a
 * failure waits a moment for the file, as the program may end right after.
 */
#ifndef RANK_OBSERVE_DUMP_H
#define RANK_OBSERVE_DUMP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "node/observe/account.h"

struct rank;
struct dump_state;

/* What a rank is to be asked for its account. */
struct account_wishes {
	uint32_t ended;       /* calls that have ended, the latest               */
	uint64_t patience_ns; /* for lanes to say what they wait for; 0: they are not asked */
};
typedef enum esp_status account_fn(struct rank *rank, const struct account_wishes *wishes, struct account *out);

struct dump {
	account_fn *take;         /* of the rank: set before dump_open()                    */
	struct dump_state *state; /* shared with the thread; NULL: nothing is to be written */
	atomic_uint seen;         /* failures that a file was asked for                     */
	atomic_bool has_told;     /* that there could be a file                             */
};

/* For rank_open(), before the first call. Without memory, or without the setting, there are no files. */
void dump_open(struct rank *context);
/* Waits a moment for what is being written. */
void dump_close(struct rank *context);

/*
 * If something has failed since the last time: takes down what the rank knows and has it written. Without context->lock, with
 * a lane or a group's lock at most; waits for nobody.
 */
void dump_failures(struct rank *context);
/* The same for a thread that returns a failure to its caller: waits until it is written, or for two seconds. */
void dump_failures_and_wait(struct rank *context);

#endif
