#include <inttypes.h>
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

static const char *host_of(const struct rank *context, int32_t rank)
{
	return context && rank >= 0 && (uint32_t)rank < context->size ? context->roster.nodes[rank].host_name : "";
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

enum esp_status api_fail(const struct rank *context, const struct failure *failure)
{
	last.failure = *failure;
	last.set = true;
	snprintf(last.host, sizeof(last.host), "%s", host_of(context, failure->rank));
	return failure->status;
}

enum esp_status api_refuse(const char *who, const struct rank *context, const struct failure *failure)
{
	struct failure named = *failure;

	if (failure->operation[0] != '\0') /* a call was made, and has failed: its sentence says which */
		return api_fail(context, failure);
	snprintf(named.text, sizeof(named.text), "%s: %.*s", who, (int)(sizeof(named.text) - strlen(who) - sizeof(": ")),
	         failure->text);
	return api_fail(context, &named);
}

enum esp_status api_refuse_with(const char *who, enum esp_status status, const char *format, ...)
{
	struct failure failure = FAILURE_NONE;
	va_list arguments;

	failure.status = status;
	va_start(arguments, format);
	vsnprintf(failure.text, sizeof(failure.text), format, arguments);
	va_end(arguments);
	return api_refuse(who, NULL, &failure);
}

enum esp_status api_error(const char *who, const struct rank *context, const struct failure *failure,
                          struct esp_error *out)
{
	struct esp_error full;

	fill(failure, host_of(context, failure->rank), &full);
	return api_write(who, out, &full, sizeof(full));
}

enum esp_status esp_last_error(struct esp_error *error)
{
	struct esp_error full;
	struct failure none = FAILURE_NONE;

	if (!error)
		return ESP_EINVAL; /* the error that the caller asks for is not overwritten */
	fill(last.set ? &last.failure : &none, last.set ? last.host : "", &full);
	return api_write(__func__, error, &full, sizeof(full));
}

/* ---- handles ---- */

static enum esp_status refuse_null(const char *who, const char *what, const char *from)
{
	return api_refuse_with(who, ESP_EINVAL, "the %s is NULL: it comes from %s", what, from);
}

static enum esp_status refuse_child(const char *who)
{
	return api_refuse_with(who, ESP_EFORKED,
	                       "this process was made by fork(), and the context is its parent's: call esp_init() "
	                       "in the process that uses it");
}

enum esp_status api_check_context(const char *who, const struct esp_context *context)
{
	if (!context)
		return refuse_null(who, "context", "esp_init()");
	return rank_is_forked((const struct rank *)(const void *)context) ? refuse_child(who) : ESP_OK;
}

enum esp_status api_check_group(const char *who, const struct esp_group *group)
{
	if (!group)
		return refuse_null(who, "group",
		                   "esp_world(), esp_group_create() or esp_group_split(), which give NULL to ranks outside");
	return rank_is_forked(api_group(group)->context) ? refuse_child(who) : ESP_OK;
}

enum esp_status api_check_work(const char *who, struct esp_work *work)
{
	if (!work)
		return refuse_null(who, "work", "esp_start(), esp_prepare(), esp_send_start() or esp_recv_start()");
	return rank_is_forked(api_work(work)->context) ? refuse_child(who) : ESP_OK;
}

enum esp_status api_check_out(const char *who, const void *out, const char *name)
{
	return out ? ESP_OK : api_refuse_with(who, ESP_EINVAL, "%s is NULL: there is no place for the result", name);
}

enum esp_status api_check_deadline(const char *who, int64_t deadline_ns, const char *instead)
{
	if (deadline_ns >= 0)
		return ESP_OK;
	return api_refuse_with(who, ESP_EINVAL,
	                       "deadline_ns is %" PRId64 ": it is a time from now on, or 0 for the setting %s", deadline_ns,
	                       instead);
}
