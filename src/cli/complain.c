#include <stdarg.h>
#include <stdio.h>

#include "cli/cli.h"

__attribute__((format(printf, 1, 0)))
static void say(const char *format, va_list args)
{
	fflush(stdout);
	fputs("espalier: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int cli_usage_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
	return CLI_EXIT_USAGE;
}

int cli_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
	return CLI_EXIT_NO;
}

void cli_note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

const char *cli_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}
