/*
 * rank.h - a worker of a job: opens and closes all of its parts (state.h). The composition root.
 */
#ifndef RANK_RANK_H
#define RANK_RANK_H

#include "rank/state.h"

struct rank_options {
	int64_t rank, size;        /* below 0: from the environment */
	const char *leader, *job;  /* NULL: from the environment    */
	join_gather_fn *gather;    /* NULL: through the leader      */
	void *gather_context;
	const char *const *settings;
	log_sink_fn *log;
	void *log_context;
	void (*idle)(void *); /* runs while waiting: see rank_idle(). NULL: sleep */
	void *idle_context;
	/* the context whose key, settings, log and idle work it has, in the next start of its job; NULL: none */
	const struct rank *heir_of;
	/* until rank_forget_grow_parent(), or until opening fails; NULL: it does not grow out of a group */
	const struct grow_parent *grow_parent;
	uint64_t patience_ns;          /* to join; 0: the setting join_seconds */
	/* the most that rank_word_ns() is; 0: as ever. For tests that must hold on a slow machine, too */
	uint64_t word_most_ns;
	int *listening;                /* as in struct join_config; NULL: none */
};

ESP_CHECKED enum esp_status rank_open(const struct rank_options *options, struct rank **out,
                                         struct failure *failure);
/*
 * Leaves in good order, if it can. ESP_EMISMATCH: all is as ever, but another rank that leaves has made another last
 * call of the world than this one.
 */
enum esp_status rank_close(struct rank *context, struct failure *failure);

#endif
