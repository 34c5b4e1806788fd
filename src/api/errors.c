#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

/* A struct failure with the name of the culprit's host, as contexts come and go. */
struct last_error {
	struct failure failure;
	char host[64];
	bool set;
};
static _Thread_local struct last_error last;

static const char *host_of(const struct context *context, int32_t rank)
{
	return context && rank >= 0 && (uint32_t)rank < context->size ? context->roster.cards[rank].host_name : "";
}

static void fill(const struct failure *failure, const char *host, struct esp_error *out)
{
	*out = (struct esp_error){
		.struct_size = sizeof(*out),
		.status = failure->status,
		.rank = failure->rank,
		.sequence = failure->sequence,
		.waits_for = failure->waits_for,
		.chunk = failure->chunk,
		.step = failure->step,
	};
	snprintf(out->host, sizeof(out->host), "%s", host);
	snprintf(out->operation, sizeof(out->operation), "%s", failure->operation ? failure->operation : "");
	snprintf(out->text, sizeof(out->text), "%s", failure->text);
}

enum esp_status api_fail(const struct context *context, const struct failure *failure)
{
	last.failure = *failure;
	last.set = true;
	snprintf(last.host, sizeof(last.host), "%s", host_of(context, failure->rank));
	return failure->status;
}

enum esp_status api_fail_with(enum esp_status status, const char *format, ...)
{
	struct failure failure = FAILURE_NONE;
	va_list arguments;

	failure.status = status;
	va_start(arguments, format);
	vsnprintf(failure.text, sizeof(failure.text), format, arguments);
	va_end(arguments);
	return api_fail(NULL, &failure);
}

enum esp_status api_error(const struct context *context, const struct failure *failure, struct esp_error *out)
{
	struct esp_error full;

	fill(failure, host_of(context, failure->rank), &full);
	return api_write(out, &full, sizeof(full));
}

enum esp_status esp_last_error(struct esp_error *error)
{
	struct esp_error full;
	struct failure none = FAILURE_NONE;

	if (!error)
		return ESP_EINVAL;
	fill(last.set ? &last.failure : &none, last.set ? last.host : "", &full);
	return api_write(error, &full, sizeof(full));
}

enum esp_status api_check_context(const struct esp_context *context)
{
	if (!context)
		return api_fail_with(ESP_EINVAL, "the context is NULL");
	if (context_is_forked((const struct context *)(const void *)context))
		return api_fail_with(ESP_EFORKED, "the context belongs to the process that called fork()");
	return ESP_OK;
}

enum esp_status api_check_group(const struct esp_group *group)
{
	if (!group)
		return api_fail_with(ESP_EINVAL, "the group is NULL");
	if (context_is_forked(api_group(group)->context))
		return api_fail_with(ESP_EFORKED, "the group belongs to the process that called fork()");
	return ESP_OK;
}
