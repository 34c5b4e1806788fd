#include "base/error.h"

#include <stdarg.h>

#include "base/clip.h"

enum esp_status error_set(struct error *err, enum esp_status status, const char *format, ...)
{
	if (!err)
		return status;
	err->status = status;
	va_list args;
	va_start(args, format);
	clip_list(err->text, sizeof err->text, format, args);
	va_end(args);
	return status;
}

void error_clear(struct error *err)
{
	if (!err)
		return;
	err->status = ESP_OK;
	err->text[0] = '\0';
}
