#include "api/api.h"
#include "api/hub_work.h"
#include "base/clock.h"
#include "rank/comm/work.h"

/* How it ended, with the reason for esp_last_error(). */
static enum esp_status ended(const char *who, struct work *work, enum esp_status status)
{
	if (status == ESP_ESTATE)
		return api_refuse_with(who, ESP_ESTATE, "the work was prepared and never started: call esp_restart() first");
	if (status < 0)
		api_fail(work->context, &work->failure);
	return status;
}

/* A function that calls on a hub do not have. */
static enum esp_status refuse_hub(const char *who)
{
	return api_refuse_with(who, ESP_EUNSUPPORTED, "the work is a call on a hub, which esp_test() and esp_wait() take");
}

static uint64_t until(int64_t timeout_ns)
{
	return timeout_ns < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ns;
}

enum esp_status esp_test(struct esp_work *work)
{
	if (api_is_hub_work(work))
		return hub_work_wait(__func__, work, 0);
	enum esp_status status = api_check_work(__func__, work);

	return status == ESP_OK ? ended(__func__, api_work(work), work_test(api_work(work))) : status;
}

enum esp_status esp_wait(struct esp_work *work, int64_t timeout_ns)
{
	if (api_is_hub_work(work))
		return hub_work_wait(__func__, work, until(timeout_ns));
	enum esp_status status = api_check_work(__func__, work);

	return status == ESP_OK ? ended(__func__, api_work(work), work_wait(api_work(work), until(timeout_ns))) : status;
}

enum esp_status esp_wait_any(struct esp_work *const *works, uint32_t count, int64_t timeout_ns, uint32_t *out_index)
{
	uint32_t first = count;

	if (!works || !out_index)
		return api_refuse_with(__func__, ESP_EINVAL, "%s is NULL", !works ? "works" : "out_index");
	for (uint32_t i = count; i-- > 0;) {
		if (!works[i])
			continue;
		first = i;
		if (api_is_hub_work(works[i]))
			return refuse_hub(__func__);
		enum esp_status status = api_check_work(__func__, works[i]);
		if (status != ESP_OK)
			return status;
	}
	if (first == count)
		return api_refuse_with(__func__, ESP_EINVAL, "all %u works are NULL: there is nothing to wait for", count);
	uint32_t index = work_wait_any((struct work *const *)(const void *)works, count, until(timeout_ns));
	if (index == count)
		return ESP_PENDING;
	*out_index = index;
	return ended(__func__, api_work(works[index]), work_test(api_work(works[index])));
}

enum esp_status esp_work_descriptor(struct esp_work *work, int *out_fd)
{
	if (api_is_hub_work(work))
		return refuse_hub(__func__);
	enum esp_status status = api_check_work(__func__, work);

	if (status == ESP_OK)
		status = api_check_out(__func__, out_fd, "out_fd");
	if (status != ESP_OK)
		return status;
	status = work_descriptor(api_work(work), out_fd);
	return status == ESP_OK ? ESP_OK : api_refuse_with(__func__, status, "no descriptor is left (ulimit -n)");
}

enum esp_status esp_work_no_callback(struct esp_work *work)
{
	if (api_is_hub_work(work))
		return refuse_hub(__func__);
	enum esp_status status = api_check_work(__func__, work);

	if (status != ESP_OK)
		return status;
	if (work_forgo_callback(api_work(work)))
		return ESP_OK;
	return api_refuse_with(__func__, ESP_ESTATE, "the work has ended, or has no callback");
}

enum esp_status esp_work_error(struct esp_work *work, struct esp_error *error)
{
	if (api_is_hub_work(work))
		return error ? hub_work_error(__func__, work, error) : api_check_out(__func__, error, "error");
	enum esp_status status = api_check_work(__func__, work);
	struct failure none = FAILURE_NONE;

	if (status == ESP_OK)
		status = api_check_out(__func__, error, "error");
	if (status != ESP_OK)
		return status;
	bool failed = (int)work_test(api_work(work)) < 0 && api_work(work)->failure.status != ESP_OK;
	return api_error(__func__, api_work(work)->context, failed ? &api_work(work)->failure : &none, error);
}

const char *esp_work_plan(struct esp_work *work)
{
	return work && !api_is_hub_work(work) ? work_plan(api_work(work)) : "";
}

void esp_work_free(struct esp_work *work)
{
	if (api_is_hub_work(work))
		hub_work_free(work);
	else if (work && !rank_is_forked(api_work(work)->context))
		work_put(api_work(work));
}
