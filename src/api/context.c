#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/exit.h"
#include "api/probing_start.h"
#include "rank/comm/work.h"
#include "rank/member/grow.h"
#include "transport/shm/annex.h"

static void log_line(void *argument, enum log_level level, const char *line)
{
	const struct esp_options *options = argument;

	options->log(options->log_context, (int)level - (int)LOG_LEVEL_ERROR, line);
}

/* The part of a context beside the rank's: found by the sink of its log. */
static enum esp_status keep_log(const struct esp_options *options, struct esp_options **out)
{
	*out = NULL;
	if (!options->log)
		return ESP_OK;
	*out = malloc(sizeof(**out));
	if (!*out)
		return api_refuse_with("esp_init", ESP_ENOMEM, "no memory for a context");
	**out = *options;
	return ESP_OK;
}

enum esp_status esp_init(const struct esp_options *given, struct esp_context **out)
{
	struct esp_options options = {sizeof(options)}, *kept;
	struct failure failure = FAILURE_NONE;
	struct rank *context;
	enum esp_status status = api_check_out(__func__, out, "out");

	if (status == ESP_OK && given)
		status = api_read(__func__, given, &options, sizeof(options), "esp_options");
	if (status == ESP_OK)
		status = keep_log(&options, &kept);
	if (status != ESP_OK)
		return status;
	struct rank_options inner = {
		.rank = options.size ? (int64_t)options.rank : -1,
		.size = options.size ? (int64_t)options.size : -1,
		.leader = options.leader,
		.job = options.job,
		.gather = options.allgather,
		.gather_context = options.allgather_context,
		.settings = options.settings,
		.log = kept ? log_line : NULL,
		.log_context = kept,
		.idle = options.idle,
		.idle_context = options.idle_context,
	};
	status = rank_open(&inner, &context, &failure);
	if (status != ESP_OK) {
		free(kept);
		return api_fail(NULL, &failure);
	}
	exit_watch(context);
	*out = (struct esp_context *)(void *)context;
	probing_at_start(*out);
	return ESP_OK;
}

/* A program that leaves with work under way has forgotten to wait, most likely; its data is not where it should be. */
static void tell_dropped(struct rank *context)
{
	uint32_t count = 0;
	struct work *first = NULL;
	char text[WORK_TEXT];

	pthread_mutex_lock(&context->lock);
	for (struct work *work = context->comms.live; work; work = work->link.live_next) {
		first = work; /* the list has the latest first */
		count++;
	}
	if (first)
		work_describe(first, text);
	pthread_mutex_unlock(&context->lock);
	if (count == 1)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_CALL, "esp_fini: a call has not ended, and is dropped: %s", text);
	else if (count > 1)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_CALL,
		          "esp_fini: %u calls have not ended, and are dropped, the oldest: %s", count, text);
}

enum esp_status esp_fini(struct esp_context *context)
{
	if (!context)
		return ESP_OK;
	struct failure failure = FAILURE_NONE;
	enum esp_status status = api_check_context(__func__, context);
	if (status != ESP_OK)
		return status;
	void *kept = api_context(context)->log.sink == log_line ? api_context(context)->log.context : NULL;
	exit_forget(api_context(context));
	tell_dropped(api_context(context));
	status = rank_close(api_context(context), &failure);
	free(kept);
	return status == ESP_OK ? ESP_OK : api_refuse(__func__, NULL, &failure);
}

enum esp_status esp_door(struct esp_context *context, char *text, size_t size)
{
	struct failure failure = FAILURE_NONE;
	char door[JOIN_ADDRESS_TEXT];
	enum esp_status status = api_check_context(__func__, context);

	if (status == ESP_OK)
		status = api_check_out(__func__, text, "text");
	if (status != ESP_OK)
		return status;
	if (rank_join_address(api_context(context), door, &failure) != ESP_OK)
		return api_refuse(__func__, api_context(context), &failure);
	if (strlen(door) >= size)
		return api_refuse_with(__func__, ESP_ELIMIT, "the text has %zu bytes, and %zu are needed", size,
		                       strlen(door) + 1);
	memcpy(text, door, strlen(door) + 1);
	return ESP_OK;
}

uint32_t esp_newcomers(struct esp_context *context)
{
	return context && !rank_is_forked(api_context(context)) ? control_joiners(api_context(context)->control) : 0;
}

enum esp_status esp_grow(struct esp_group *group, uint32_t most, int64_t deadline_ns, struct esp_context **out)
{
	struct failure failure = FAILURE_NONE;
	struct rank *grown = NULL;
	struct grow_options options = {.most = most, .deadline_ns = deadline_ns};
	struct esp_options *kept = NULL;
	enum esp_status status = api_check_group(__func__, group);

	if (status == ESP_OK)
		status = api_check_out(__func__, out, "out");
	if (status == ESP_OK)
		status = api_check_deadline(__func__, deadline_ns, "join_seconds");
	if (status != ESP_OK)
		return status;
	const struct log *log = &api_group(group)->context->log;
	if (log->sink == log_line) { /* each context frees its own */
		status = keep_log(log->context, &kept);
		options.log = log_line;
		options.log_context = kept;
	}
	if (status == ESP_OK)
		status = comm_grow(api_group(group), &options, &grown, &failure);
	if (!grown)
		free(kept);
	if (status != ESP_OK)
		return api_refuse(__func__, api_group(group)->context, &failure);
	*out = (struct esp_context *)(void *)grown;
	if (grown) {
		exit_watch(grown);
		probing_at_start(*out); /* as joiners do in esp_init() */
	}
	return ESP_OK;
}

struct esp_group *esp_world(struct esp_context *context)
{
	return context ? (struct esp_group *)(void *)api_context(context)->world : NULL;
}

const char *esp_setting(struct esp_context *context, const char *name)
{
	return context && name ? rank_setting(api_context(context), name) : NULL;
}

enum esp_status esp_get_stats(struct esp_context *context, struct esp_stats *stats)
{
	enum esp_status status = api_check_context(__func__, context);
	struct rank_stats inner;

	if (status == ESP_OK)
		status = api_check_out(__func__, stats, "stats");
	if (status != ESP_OK)
		return status;
	rank_stats(api_context(context), &inner);
	struct esp_stats full = {
		.struct_size = sizeof(full),
		.calls = inner.calls,
		.sent_bytes = inner.sent_bytes,
		.received_bytes = inner.received_bytes,
		.sent_messages = inner.sent_messages,
		.shared_bytes = inner.shared_bytes,
		.network_bytes = inner.network_bytes,
		.small_calls = inner.small_calls,
		.retunes = inner.retunes,
		.moved_masters = inner.moved_masters,
	};
	return api_write(__func__, stats, &full, sizeof(full));
}

/* ---- memory ---- */

enum esp_status esp_alloc(struct esp_context *context, size_t bytes, void **out)
{
	enum esp_status status = api_check_context(__func__, context);

	if (status == ESP_OK)
		status = api_check_out(__func__, out, "out");
	if (status != ESP_OK)
		return status;
	void *memory = shm_segment_alloc(api_context(context)->near.segment, bytes ? bytes : 1);
	if (!memory)
		return api_refuse_with(__func__, ESP_ENOMEM,
		                       "no shared memory for %zu bytes: the host or its cgroup has too little", bytes);
	*out = memory;
	return ESP_OK;
}

enum esp_status esp_keep(struct esp_context *context, void *memory)
{
	enum esp_status status = api_check_context(__func__, context);

	if (status != ESP_OK || !memory)
		return status;
	if (!shm_segment_keep(api_context(context)->near.segment, memory))
		return api_refuse_with(__func__, ESP_EINVAL, "%p is not from esp_alloc() of this context", memory);
	return ESP_OK;
}

enum esp_status esp_share(struct esp_context *context, void *memory, size_t bytes)
{
	struct error err;
	enum esp_status status = api_check_context(__func__, context);

	if (status == ESP_OK && bytes > 0)
		status = api_check_out(__func__, memory, "memory");
	if (status != ESP_OK || bytes == 0)
		return status;
	status = shm_annex_make(api_context(context)->near.segment, memory, bytes, &err);
	return status == ESP_OK ? ESP_OK : api_refuse_with(__func__, status, "%s", err.text);
}

enum esp_status esp_unshare(struct esp_context *context, void *memory)
{
	struct error err;
	enum esp_status status = api_check_context(__func__, context);

	if (status != ESP_OK || !memory)
		return status;
	status = shm_annex_end(api_context(context)->near.segment, memory, &err);
	return status == ESP_OK ? ESP_OK : api_refuse_with(__func__, status, "%s", err.text);
}

static enum esp_status free_kept(void *memory)
{
	if (memory && !shm_segment_free_kept(memory))
		return api_refuse_with("esp_free", ESP_EINVAL,
		                       "%p is not memory that was kept with esp_keep(), and there is no context", memory);
	return ESP_OK;
}

enum esp_status esp_free(struct esp_context *context, void *memory)
{
	if (!context)
		return free_kept(memory);
	enum esp_status status = api_check_context(__func__, context);

	if (status != ESP_OK || !memory)
		return status;
	if (!shm_segment_free(api_context(context)->near.segment, memory))
		return api_refuse_with(__func__, ESP_EINVAL, "%p is not from esp_alloc() of this context", memory);
	return ESP_OK;
}
