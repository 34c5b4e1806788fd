#include "hub/server/hub_state.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE 512u

void hub_log(struct hub *hub, const char *format, ...)
{
	char line[LINE];
	va_list args;

	if (!hub->config.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	hub->config.log(hub->config.log_context, line);
}
