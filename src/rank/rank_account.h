/*
 * rank_account.h - the state of a rank at this moment, for its user: calls under way, the ranks that they wait for,
 * ranks that are gone.
 */
#ifndef RANK_RANK_ACCOUNT_H
#define RANK_RANK_ACCOUNT_H

#include "node/observe/account.h"
#include "node/observe/metrics.h"
#include "rank/observe/dump.h"
#include "rank/state.h"

/*
 * Any thread, without context->lock; a group's lock may be held. With patience: no lane, and no group's lock.
 * ESP_ENOMEM. The caller calls account_fini().
 */
ESP_CHECKED enum esp_status rank_account(struct rank *context, const struct account_wishes *wishes,
                                         struct account *out);

/* Its first part: which rank this is, and what time it is. Also before there is a roster. */
void rank_account_who(const struct rank *context, struct account *out);

/* A number that all ranks of this run of the job have, and no others. */
uint64_t rank_instance(const struct rank *context);

/* All of struct metrics but for version and tally, of an account. */
void rank_metrics(struct rank *context, const struct account *account, uint64_t patience_ns, struct metrics *out);

#endif
