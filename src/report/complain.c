#include <stdarg.h>
#include <stdio.h>

#include "report/complain.h"

static const char *program = "espalier";

void complain_as(const char *name)
{
	program = name;
}

const char *complain_program(void)
{
	return program;
}

__attribute__((format(printf, 1, 0)))
static void say(const char *format, va_list args)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", program);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int complain_usage(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
	return EXIT_USAGE;
}

int complain(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
	return EXIT_NO;
}

int complain_end(const char *command, enum esp_status status, const struct error *err)
{
	if (status == ESP_OK)
		return EXIT_OK;
	return complain("%s: %s", command, err->text[0] ? err->text : "cannot write to the standard output");
}

void complain_note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}
