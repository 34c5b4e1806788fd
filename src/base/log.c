#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[] = {"OFF", "ERROR", "WARN", "INFO", "TRACE"};

const char *log_level_name(enum log_level level)
{
	return (size_t)level < sizeof names / sizeof names[0] ? names[level] : "?";
}

/* One write, so that the lines of several processes do not mix. There is nobody to tell if it fails. */
static void write_to_stderr(void *context, enum log_level level, const char *line)
{
	char whole[1280];
	(void)context;
	(void)level;
	int length = snprintf(whole, sizeof whole - 1, "%s", line);
	if (length < 0)
		return;
	size_t used = (size_t)length < sizeof whole - 2 ? (size_t)length : sizeof whole - 2;
	whole[used++] = '\n';
	if (write(STDERR_FILENO, whole, used) < 0)
		return;
}

void log_init(struct log *log, enum log_level level)
{
	*log = (struct log){level, -1, write_to_stderr, NULL};
}

static void make_harmless(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static size_t write_head(const struct log *log, enum log_level level, char *line, size_t size)
{
	char host[65] = "?";
	char rank[16] = "-";
	gethostname(host, sizeof host - 1);
	if (log->rank >= 0)
		snprintf(rank, sizeof rank, "%d", (int)log->rank);
	int length = snprintf(line, size, "%s:%d:%ld [%s] ESPALIER %s ", host, (int)getpid(), (long)syscall(SYS_gettid),
	                      rank, log_level_name(level));
	return length > 0 ? (size_t)length : 0;
}

void log_write(const struct log *log, enum log_level level, const char *format, ...)
{
	char line[1200]; /* at most 160 bytes of head, then the text */
	if (!log || level > log->level || level == LOG_LEVEL_OFF)
		return;
	size_t head = write_head(log, level, line, sizeof line);
	va_list args;
	va_start(args, format);
	vsnprintf(line + head, 1001, format, args);
	va_end(args);
	make_harmless(line);
	log->sink(log->context, level, line);
}
