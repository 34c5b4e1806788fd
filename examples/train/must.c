#include "must.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char name[32] = "train";

void must_name(uint32_t rank)
{
	snprintf(name, sizeof name, "train: rank %u", (unsigned)rank);
}

void must_stop(const char *format, ...)
{
	char line[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	fflush(stdout);
	/* In one piece, as other ranks may be writing to the same terminal. */
	fprintf(stderr, "%s: %s\n", name, line);
	exit(1);
}

void must(enum esp_status status, const char *what)
{
	if (status == ESP_OK)
		return;
	struct esp_error error = ESP_ERROR_INIT;
	if (esp_last_error(&error) == ESP_OK && error.status == status)
		must_stop("%s: %s", what, error.text);
	must_stop("%s: %s", what, esp_status_text(status));
}

void *must_have(void *memory)
{
	if (!memory)
		must_stop("out of memory");
	return memory;
}
