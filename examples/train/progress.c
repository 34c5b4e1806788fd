#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "watch.h"

#define INTERVAL_NS 100000000

void progress_open(struct progress *progress, bool speaks)
{
	progress->speaks = speaks;
	progress->terminal = speaks && isatty(STDERR_FILENO);
	progress->last = 0;
}

__attribute__((format(printf, 1, 0)))
static void rewrite(const char *format, va_list args)
{
	char line[160];
	vsnprintf(line, sizeof line, format, args);
	/* To the beginning of the line; the rest of the old one is erased. */
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
}

void progress_step(struct progress *progress, const char *format, ...)
{
	if (!progress->terminal || watch_now() - progress->last < INTERVAL_NS)
		return;
	va_list args;
	va_start(args, format);
	rewrite(format, args);
	va_end(args);
	progress->last = watch_now();
}

void progress_line(struct progress *progress, const char *format, ...)
{
	if (!progress->speaks)
		return;
	va_list args;
	va_start(args, format);
	if (progress->terminal) {
		rewrite(format, args);
		progress->last = watch_now();
	} else {
		vfprintf(stderr, format, args);
		fputc('\n', stderr);
	}
	va_end(args);
}

void progress_clear(struct progress *progress)
{
	if (progress->terminal && progress->last != 0)
		fputs("\r\033[K", stderr);
	progress->last = 0;
}
