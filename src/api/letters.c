#include "api/api.h"

/* *out is NULL unless it returns ESP_OK. */
static enum esp_status start(struct esp_group *group, enum work_kind kind, void *data, uint64_t bytes, uint32_t peer,
                             uint64_t tag, int64_t deadline_ns, struct work **out)
{
	enum esp_status status = api_check_group(group);
	struct failure failure;

	*out = NULL;
	if (status != ESP_OK)
		return status;
	struct group *inner = api_group(group);
	bool is_any = kind == WORK_RECEIVE && peer == ESP_ANY_RANK;
	if (peer >= inner->size && !is_any)
		return api_fail_with(ESP_EINVAL, "rank %u is not in the group, which has %u ranks", peer, inner->size);
	if (bytes > 0 && !data)
		return api_fail_with(ESP_EINVAL, "data is NULL");
	if (bytes > INT64_MAX)
		return api_fail_with(ESP_EINVAL, "a message of %llu bytes is larger than memory can be", (unsigned long long)bytes);
	if (deadline_ns < 0)
		return api_fail_with(ESP_EINVAL, "the deadline is in the past");
	struct work *work =
		work_new(inner, &(struct call){.in = data, .out = data}, &(struct work_options){.deadline_ns = deadline_ns});
	if (!work)
		return api_fail_with(ESP_ENOMEM, "no memory for a message");
	work->kind = kind;
	work->letter = data;
	work->peer = peer;
	work->tag = tag;
	work->room_bytes = bytes;
	*out = work;
	if (letters_start(work, &failure) == ESP_OK)
		return ESP_OK;
	*out = NULL;
	work_put(work);
	return api_fail(inner->context, &failure);
}

static enum esp_status finish(struct work *work)
{
	enum esp_status status = work_wait(work, UINT64_MAX);

	if (status != ESP_OK)
		api_fail(work->group->context, &work->failure);
	return status;
}

static void received(const struct work *work, uint64_t *out_bytes, uint32_t *out_from)
{
	if (out_bytes)
		*out_bytes = work->note.count;
	if (out_from)
		*out_from = work->peer;
}

enum esp_status esp_send(struct esp_group *group, const void *data, uint64_t bytes, uint32_t to, uint64_t tag)
{
	struct work *work;
	enum esp_status status = start(group, WORK_SEND, (void *)(uintptr_t)data, bytes, to, tag, 0, &work);

	if (!work)
		return status;
	status = finish(work);
	work_put(work);
	return status;
}

enum esp_status esp_recv(struct esp_group *group, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                         uint64_t *out_bytes, uint32_t *out_from)
{
	struct work *work;
	enum esp_status status = start(group, WORK_RECEIVE, data, bytes, from, tag, 0, &work);

	if (!work)
		return status;
	status = finish(work);
	if (status == ESP_OK)
		received(work, out_bytes, out_from);
	work_put(work);
	return status;
}

static enum esp_status start_work(struct esp_group *group, enum work_kind kind, void *data, uint64_t bytes, uint32_t peer,
                                  uint64_t tag, int64_t deadline_ns, struct esp_work **out)
{
	struct work *work;

	if (!out)
		return api_fail_with(ESP_EINVAL, "there is no place for the work");
	enum esp_status status = start(group, kind, data, bytes, peer, tag, deadline_ns, &work);
	if (work)
		*out = (struct esp_work *)(void *)work;
	return status;
}

enum esp_status esp_send_start(struct esp_group *group, const void *data, uint64_t bytes, uint32_t to, uint64_t tag,
                               int64_t deadline_ns, struct esp_work **out)
{
	return start_work(group, WORK_SEND, (void *)(uintptr_t)data, bytes, to, tag, deadline_ns, out);
}

enum esp_status esp_recv_start(struct esp_group *group, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                               int64_t deadline_ns, struct esp_work **out)
{
	return start_work(group, WORK_RECEIVE, data, bytes, from, tag, deadline_ns, out);
}

enum esp_status esp_work_received(struct esp_work *work, uint64_t *out_bytes, uint32_t *out_from)
{
	if (!work)
		return api_fail_with(ESP_EINVAL, "the work is NULL");
	if (api_work(work)->kind != WORK_RECEIVE || !work_is_done(work))
		return api_fail_with(ESP_ESTATE, "this is no receive, or it has not ended");
	received(api_work(work), out_bytes, out_from);
	return ESP_OK;
}
