/*
 * log.h - one line per event, in the shape that log tools of this field parse:
 *
 *   host:pid:tid [rank] ESPALIER WARN NET text
 *
 * The only way in which library code says anything. A log is a plain value that its owner passes on; writing to it is
 * safe from any thread while it is not changed. Text from outside is harmless: control characters become '?', so that
 * one event stays one line.
 *
 * Every line is of a subsystem, the first word of its text. Errors and warnings are always written; less urgent lines
 * only of the subsystems that are asked for.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum log_level {
	LOG_LEVEL_OFF,
	LOG_LEVEL_ERROR, /* something failed for good                  */
	LOG_LEVEL_WARN,  /* it goes on, but a person should know */
	LOG_LEVEL_INFO,  /* a choice and its reason; a few lines a job */
	LOG_LEVEL_TRACE, /* each step; not for production              */
};

enum log_subsystem {
	LOG_CONF,  /* settings                                         */
	LOG_JOIN,  /* identity of this rank, its key, meeting the others */
	LOG_NET,   /* connections, and ranks that are lost             */
	LOG_PLAN,  /* which plan is made for which call                */
	LOG_CALL,  /* groups, and calls that fail                      */
	LOG_WATCH, /* statistics, traces, the flight recorder          */
	LOG_SUBSYSTEMS,
};
#define LOG_ALL ((1u << LOG_SUBSYSTEMS) - 1)

/* line: complete and without a newline; borrowed for the call. May be called from any thread. */
typedef void log_sink_fn(void *context, enum log_level level, const char *line);

struct log_limit;

struct log {
	enum log_level level; /* less urgent lines are dropped */
	uint32_t subsystems;  /* 1u << enum log_subsystem: what is written below WARN   */
	int32_t rank;         /* -1: none yet, written as "-"                           */
	log_sink_fn *sink;
	void *context;
	struct log_limit *limit; /* borrowed; NULL: every line is written               */
};

/* All subsystems to stderr, without a rank and without a limit. */
void log_init(struct log *log, enum log_level level);

/* log may be NULL. Text beyond 1000 bytes is cut off. */
void log_write(const struct log *log, enum log_level level, enum log_subsystem subsystem, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A complete line to a descriptor, with a newline and in one write, so that processes do not mix. False: it failed. */
bool log_write_line(int fd, const char *line);

/*
 * "all", or a comma list such as "JOIN,NET", or what is left out: "^PLAN,CALL". Case does not matter; "" is all.
 * ESP_EINVAL with the word that is none in *err.
 */
ESP_CHECKED enum esp_status log_parse_subsystems(const char *text, uint32_t *out, struct error *err);

/* "WARN"; "OFF" ... */
const char *log_level_name(enum log_level level);

#endif
