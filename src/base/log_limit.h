/*
 * log_limit.h - how many lines a log writes: no flood of one line, and so many warnings in all.
 *
 * A line is known by its format, an address that stays. Of each there are LOG_LIMIT_BURST at first,
 * then one in LOG_LIMIT_AGAIN, which says how many were left out. Warnings and errors together are at
 * most LOG_LIMIT_LINES. Pure but for its lock; any thread.
 */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define LOG_LIMIT_BURST 10u
#define LOG_LIMIT_AGAIN UINT64_C(10000000000) /* ns */
#define LOG_LIMIT_LINES 90u                   /* one that says so follows; 100 is what is promised */
#define LOG_LIMIT_KINDS 64u                   /* formats that are told apart */

struct log_limit_kind {
	const char *format; /* NULL: unused */
	uint32_t written, left_out;
	uint64_t written_ns; /* the last one */
};

struct log_limit {
	pthread_mutex_t lock;
	uint32_t lines; /* warnings and errors that were written */
	struct log_limit_kind kinds[LOG_LIMIT_KINDS];
};

struct log_verdict {
	bool admitted;
	bool is_last;      /* of all warnings and errors           */
	uint32_t left_out; /* lines like it, since the last one    */
};

void log_limit_init(struct log_limit *limit);
void log_limit_fini(struct log_limit *limit);

/* May this line be written? It counts as written then. */
struct log_verdict log_limit_ask(struct log_limit *limit, const char *format, enum log_level level, uint64_t now_ns);

#endif
