/*
 * retune.h - a group's masters follow the network: Autotune at run time.
 *
 * Calls of a group that run by a two-level plan, or could, are counted as they are launched, which is in the same order
 * on all members. When so many bytes have gone by, a window closes, on all members at the same call:
 *
 *     call      n                    m                              k
 *               | window closes:     | window closes:               |
 *               | sum of what all    | masters from what was        |
 *               | have measured is   | measured before n; the next  |
 *               | begun, beside      | sum is begun                 |
 *               | calls n, n + 1 ... |                              |
 *
 * The sum is a call of its own, on a stream of its own; it is waited for only by a call that would be launched at the
 * end of the next window before the sum is known. Such a call has to wait for all members to come to call n anyway:
 * calls that need not, of which only a root knows the end, are planned with the same masters and not counted. Its
 * result goes into tune/tuner.h, alike on all members; so all have the same masters from call m on, without a message.
 * Plans are made anew when they are next used. Where a plan without masters was the fastest, a ring perhaps, and a host
 * becomes slow, large allreduces are given to a plan with masters until it has recovered: a ring is as fast as its
 * slowest host. A window takes as long as the setting autotune_ms says, half a second, or one call.
 *
 * Everything is done under the group's lock, but where it is said otherwise.
 */
#ifndef RANK_COMM_RETUNE_H
#define RANK_COMM_RETUNE_H

#include <stdbool.h>

#include "base/error.h"

struct rank;
struct comm;
struct work;
struct comm_tuner;

/* The three functions below, for a communicator whose calls can be retuned. */
extern const struct comm_tuner retune_tuner;

/* Can its calls ever be retuned? Then it needs a stream for that. Known once its layout is; the same on all members. */
bool comm_retune_can(const struct comm *group);

/* The work is the next to be launched: may it be, as far as masters are concerned? */
bool comm_retune_admits(struct comm *group, const struct work *work);
/*
 * It is launched now: closes a window, installs masters, plans anew what was planned with others. ESP_ENOMEM: the group
 * has failed, and the work is to be ended.
 */
ESP_CHECKED enum esp_status comm_retune_before(struct comm *group, struct work *work);

/* With context->lock held, without the group's: a counted call has ended. */
void comm_retune_landed(struct work *work);

/* Waits for the sum that is under way, if any: before the group goes. No lock is held, and no call is under way. */
void comm_retune_settle(struct comm *group);
/* The same for all groups of a context that is being closed, for a moment at the most. */
void comm_retune_settle_all(struct rank *context);
/* No driver runs its streams any more. */
void comm_retune_fini(struct comm *group);

#endif
