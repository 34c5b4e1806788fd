/*
 * context_ends.h - the two ends of a context's life: connecting to the others, and leaving them.
 */
#ifndef RUNTIME_CONTEXT_ENDS_H
#define RUNTIME_CONTEXT_ENDS_H

#include "runtime/context.h"

/* Connects to the ranks of this host, and to those that word is passed on by. */
ESP_CHECKED enum esp_status context_meet(struct context *context, struct failure *failure);

/* Ends what is unfinished, here only: ESP_EABORTED. */
void context_end_work(struct context *context);

/* Says good-bye and waits until all have, or for so long. */
void context_leave(struct context *context, uint64_t patience_ns);

#endif
