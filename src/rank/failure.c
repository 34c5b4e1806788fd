#include "rank/failure.h"

#include <stdarg.h>

#include "base/clip.h"

enum esp_status rank_failure_set(struct failure *failure, enum esp_status status, int32_t rank, const char *format, ...)
{
	va_list arguments;

	if (!failure)
		return status;
	*failure = FAILURE_NONE;
	failure->status = status;
	failure->rank = rank;
	va_start(arguments, format);
	clip_list(failure->text, sizeof(failure->text), format, arguments);
	va_end(arguments);
	return status;
}
