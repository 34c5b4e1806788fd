#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "rank/member/shrink.h"

uint32_t esp_rank(const struct esp_group *group)
{
	return group ? api_group(group)->rank : UINT32_MAX;
}

uint32_t esp_size(const struct esp_group *group)
{
	return group ? api_group(group)->size : 0;
}

uint32_t esp_world_rank(const struct esp_group *group, uint32_t rank)
{
	return group && rank < api_group(group)->size ? api_group(group)->ranks[rank] : UINT32_MAX;
}

const char *esp_host(const struct esp_group *group, uint32_t rank)
{
	uint32_t world = esp_world_rank(group, rank);

	return world == UINT32_MAX ? NULL : api_group(group)->context->roster.nodes[world].host_name;
}

static enum esp_status made(const char *who, struct esp_group *parent, enum esp_status status,
                            const struct failure *failure, struct comm *group, struct esp_group **out)
{
	if (status != ESP_OK)
		return api_refuse(who, api_group(parent)->context, failure);
	*out = (struct esp_group *)(void *)group;
	return ESP_OK;
}

enum esp_status esp_group_create(struct esp_group *parent, const uint32_t *ranks, uint32_t count,
                                 struct esp_group **out)
{
	enum esp_status status = api_check_group(__func__, parent);
	struct failure failure = FAILURE_NONE;
	struct comm *group = NULL;

	if (status == ESP_OK)
		status = api_check_out(__func__, out, "out");
	if (status != ESP_OK)
		return status;
	status = comm_create(api_group(parent), ranks, count, &group, &failure);
	return made(__func__, parent, status, &failure, group, out);
}

enum esp_status esp_group_split(struct esp_group *parent, int64_t color, int64_t key, struct esp_group **out)
{
	enum esp_status status = api_check_group(__func__, parent);
	struct failure failure = FAILURE_NONE;
	struct comm *group = NULL;

	if (status == ESP_OK)
		status = api_check_out(__func__, out, "out");
	if (status != ESP_OK)
		return status;
	status = comm_split(api_group(parent), color, key, &group, &failure);
	return made(__func__, parent, status, &failure, group, out);
}

uint64_t esp_group_calls(struct esp_group *group)
{
	return group ? comm_calls(api_group(group)) : 0;
}

enum esp_status esp_group_shrink(struct esp_group *group, struct esp_shrink *shrink, struct esp_group **out)
{
	enum esp_status status = api_check_group(__func__, group);
	struct esp_shrink full = ESP_SHRINK_INIT;
	struct failure failure = FAILURE_NONE;
	struct comm *left = NULL;

	if (status == ESP_OK)
		status = api_check_out(__func__, out, "out");
	if (status == ESP_OK && shrink)
		status = api_read(__func__, shrink, &full, sizeof(full), "esp_shrink");
	if (status == ESP_OK)
		status = api_check_deadline(__func__, full.deadline_ns, "deadline_seconds");
	if (status == ESP_OK && !full.lost && full.lost_room > 0)
		status = api_refuse_with(__func__, ESP_EINVAL, "lost is NULL, and lost_room is %u", full.lost_room);
	if (status != ESP_OK)
		return status;
	struct shrink_report report = {.lost = full.lost, .lost_room = full.lost_room};
	status = comm_shrink(api_group(group), full.deadline_ns, &left, &report, &failure);
	full.lost_count = report.lost_count;
	full.completed_everywhere = report.completed_everywhere;
	full.completed_somewhere = report.completed_somewhere;
	if (shrink)
		(void)api_write(__func__, shrink, &full, sizeof(full));
	return made(__func__, group, status, &failure, left, out);
}

enum esp_status esp_group_free(struct esp_group *group)
{
	struct failure failure = FAILURE_NONE;

	if (!group)
		return ESP_OK;
	enum esp_status status = api_check_group(__func__, group);
	if (status != ESP_OK)
		return status;
	struct rank *context = api_group(group)->context;
	return comm_free(api_group(group), &failure) == ESP_OK ? ESP_OK : api_refuse(__func__, context, &failure);
}

enum esp_status esp_group_error(struct esp_group *group, struct esp_error *error)
{
	struct failure failure = FAILURE_NONE;
	enum esp_status status = api_check_group(__func__, group);

	if (status == ESP_OK)
		status = api_check_out(__func__, error, "error");
	if (status != ESP_OK)
		return status;
	(void)comm_check(api_group(group), NULL, &failure);
	return api_error(__func__, api_group(group)->context, &failure, error);
}

/*
 * Whatever would break a line, or do something to a terminal, becomes a space: also the control characters U+0080 to
 * U+009F.
 */
static void make_harmless(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at; at++) {
		if (*at < 0x20 || *at == 0x7f)
			*at = ' ';
		else if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
			memset(at, ' ', 2);
	}
}

enum esp_status esp_abort(struct esp_group *group, const char *reason)
{
	enum esp_status status = api_check_group(__func__, group);
	char why[CONTROL_TEXT];

	if (status != ESP_OK)
		return status;
	snprintf(why, sizeof(why), "rank %u aborted the group%s%s", api_group(group)->context->rank, reason ? ": " : "",
	         reason ? reason : "");
	make_harmless(why);
	comm_fail(api_group(group), ESP_EABORTED, (int32_t)api_group(group)->context->rank, why, true);
	return ESP_OK;
}
