/*
 * log.h - one line per event, in the shape that log tools of this field parse:
 *
 *   host:pid:tid [rank] ESPALIER WARN text
 *
 * The only way in which library code says anything. A log is a plain value that its owner
 * passes on; writing to it is safe from any thread while nobody changes it. Text from
 * outside is harmless: control characters become '?', so that one event stays one line.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level {
	LOG_LEVEL_OFF,
	LOG_LEVEL_ERROR, /* something failed for good                  */
	LOG_LEVEL_WARN,  /* it goes on, but somebody should know       */
	LOG_LEVEL_INFO,  /* what was chosen and why; a few lines a job */
	LOG_LEVEL_TRACE, /* each step; not for production              */
};

/* line: complete and without a newline; borrowed for the call. May be called from any thread. */
typedef void log_sink_fn(void *context, enum log_level level, const char *line);

struct log {
	enum log_level level; /* what is less urgent is dropped */
	int32_t rank;         /* -1: none yet, written as "-"   */
	log_sink_fn *sink;
	void *context;
};

/* To stderr, without a rank. */
void log_init(struct log *log, enum log_level level);

/* log may be NULL. Text beyond 1000 bytes is cut off. */
void log_write(const struct log *log, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "WARN"; "OFF" ... */
const char *log_level_name(enum log_level level);

#endif
