#include <inttypes.h>

#include "api/api.h"
#include "rank/comm/p2p.h"
#include "rank/comm/work.h"

/* *out is NULL unless it returns ESP_OK. */
static enum esp_status start(const char *who, struct esp_group *group, enum work_kind kind, void *data, uint64_t bytes,
                             uint32_t peer, uint64_t tag, int64_t deadline_ns, struct work **out)
{
	enum esp_status status = api_check_group(who, group);
	struct failure failure;

	*out = NULL;
	if (status != ESP_OK)
		return status;
	struct comm *inner = api_group(group);
	bool is_any = kind == WORK_RECEIVE && peer == ESP_ANY_RANK;
	if (peer >= inner->size && !is_any)
		return api_refuse_with(who, ESP_EINVAL, "rank %u is not in the group, whose last rank is %u", peer,
		                       inner->size - 1);
	if (bytes > 0 && !data)
		return api_refuse_with(who, ESP_EINVAL, "data is NULL, and there are %" PRIu64 " bytes", bytes);
	if (bytes > INT64_MAX)
		return api_refuse_with(who, ESP_EINVAL, "a message of %" PRIu64 " bytes is larger than memory can be", bytes);
	status = api_check_deadline(who, deadline_ns, "deadline_seconds");
	if (status != ESP_OK)
		return status;
	struct work *work =
		work_new(inner, &(struct call){.in = data, .out = data}, &(struct work_options){.deadline_ns = deadline_ns});
	if (!work)
		return api_refuse_with(who, ESP_ENOMEM, "no memory for a message");
	work->kind = kind;
	work->ops = &p2p_ops;
	work->msg.data = data;
	work->msg.peer = peer;
	work->msg.tag = tag;
	work->msg.room_bytes = bytes;
	*out = work;
	if (p2p_start(work, &failure) == ESP_OK)
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
		*out_from = work->msg.peer;
}

enum esp_status esp_send(struct esp_group *group, const void *data, uint64_t bytes, uint32_t to, uint64_t tag)
{
	struct work *work;
	enum esp_status status = start(__func__, group, WORK_SEND, (void *)(uintptr_t)data, bytes, to, tag, 0, &work);

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
	enum esp_status status = start(__func__, group, WORK_RECEIVE, data, bytes, from, tag, 0, &work);

	if (!work)
		return status;
	status = finish(work);
	if (status == ESP_OK)
		received(work, out_bytes, out_from);
	work_put(work);
	return status;
}

static enum esp_status start_work(const char *who, struct esp_group *group, enum work_kind kind, void *data,
                                  uint64_t bytes, uint32_t peer, uint64_t tag, int64_t deadline_ns,
                                  struct esp_work **out)
{
	struct work *work = NULL;
	enum esp_status status = api_check_out(who, out, "out");

	if (status == ESP_OK)
		status = start(who, group, kind, data, bytes, peer, tag, deadline_ns, &work);
	if (work)
		*out = (struct esp_work *)(void *)work;
	return status;
}

enum esp_status esp_send_start(struct esp_group *group, const void *data, uint64_t bytes, uint32_t to, uint64_t tag,
                               int64_t deadline_ns, struct esp_work **out)
{
	return start_work(__func__, group, WORK_SEND, (void *)(uintptr_t)data, bytes, to, tag, deadline_ns, out);
}

enum esp_status esp_recv_start(struct esp_group *group, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                               int64_t deadline_ns, struct esp_work **out)
{
	return start_work(__func__, group, WORK_RECEIVE, data, bytes, from, tag, deadline_ns, out);
}

enum esp_status esp_work_received(struct esp_work *work, uint64_t *out_bytes, uint32_t *out_from)
{
	enum esp_status status = api_check_work(__func__, work);

	if (status != ESP_OK)
		return status;
	if (api_work(work)->kind != WORK_RECEIVE)
		return api_refuse_with(__func__, ESP_ESTATE, "the work is no receive: esp_recv_start() makes those");
	if (!work_is_done(work))
		return api_refuse_with(__func__, ESP_ESTATE, "the receive has not ended: wait for it first");
	received(api_work(work), out_bytes, out_from);
	return ESP_OK;
}
