/*
 * api.h - between the public header and the rank: structs in, errors out. Private to src/api.
 *
 * Functions that get a name as their first argument get that of the public function that was called: sentences about
 * its arguments begin with it.
 */
#ifndef API_API_H
#define API_API_H

#include <stdbool.h>

#include "espalier/espalier.h"
#include "rank/comm/comm.h"
#include "rank/observe/recorder.h"
#include "rank/rank.h"
#include "rank/rank_info.h"

/* A handle is the runtime's object by another name. */
static inline struct rank *api_context(struct esp_context *context)
{
	return (struct rank *)(void *)context;
}

static inline struct comm *api_group(const struct esp_group *group)
{
	return (struct comm *)(uintptr_t)group;
}

static inline struct work *api_work(struct esp_work *work)
{
	return (struct work *)(void *)work;
}

/*
 * Reads a struct that begins with its size, as a caller of any version wrote it, into one of ours of `bytes` bytes.
 * Fields that the caller does not know become zero; fields that we do not know must be zero.
 */
ESP_CHECKED enum esp_status api_read(const char *who, const void *from, void *to, size_t bytes, const char *name);

/* Writes as much of one as the caller has room for. */
enum esp_status api_write(const char *who, void *to, const void *from, size_t bytes);

/* Remembers a failure for esp_last_error(), and returns its status. */
enum esp_status api_fail(const struct rank *context, const struct failure *failure);
/* The same of what was refused before a call was made: begins with the function. */
enum esp_status api_refuse(const char *who, const struct rank *context, const struct failure *failure);
enum esp_status api_refuse_with(const char *who, enum esp_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* As a caller wants it. */
enum esp_status api_error(const char *who, const struct rank *context, const struct failure *failure,
                          struct esp_error *out);

/* ESP_EINVAL for NULL, ESP_EFORKED in a child. */
ESP_CHECKED enum esp_status api_check_context(const char *who, const struct esp_context *context);
ESP_CHECKED enum esp_status api_check_group(const char *who, const struct esp_group *group);
ESP_CHECKED enum esp_status api_check_work(const char *who, struct esp_work *work);
/* Of an argument that the function writes to. */
ESP_CHECKED enum esp_status api_check_out(const char *who, const void *out, const char *name);

/* Of a time from now on; 0: the setting `instead`. */
ESP_CHECKED enum esp_status api_check_deadline(const char *who, int64_t deadline_ns, const char *instead);

/* A call and how it is to be run, from what the caller wrote. *parts: to be freed. */
struct api_call {
	struct call call;
	struct work_options options;
	struct memory_part *parts;
};
ESP_CHECKED enum esp_status api_call_read(const char *who, const struct comm *group, const struct esp_call *from,
                                          struct api_call *out);
void api_call_fini(struct api_call *call);

/* How a call of this group adds: as was asked for, or as the setting says. A keyed call: as was asked for only. */
enum esp_numerics api_numerics(const struct comm *group, enum esp_numerics asked, bool is_keyed);

/* Checks a call and runs it. */
enum esp_status api_run(const char *who, struct esp_group *group, struct call *call);

#endif
