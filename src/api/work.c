#include "api/api.h"
#include "base/clock.h"

static enum esp_status check(struct esp_work *work)
{
	if (!work)
		return api_fail_with(ESP_EINVAL, "the work is NULL");
	if (context_is_forked(api_work(work)->context))
		return api_fail_with(ESP_EFORKED, "the work belongs to the process that called fork()");
	return ESP_OK;
}

/* How it ended, with the reason for esp_last_error(). */
static enum esp_status ended(struct work *work, enum esp_status status)
{
	if (status == ESP_ESTATE)
		return api_fail_with(ESP_ESTATE, "this work was never started");
	if (status < 0)
		api_fail(work->context, &work->failure);
	return status;
}

static uint64_t until(int64_t timeout_ns)
{
	return timeout_ns < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ns;
}

enum esp_status esp_test(struct esp_work *work)
{
	enum esp_status status = check(work);

	return status == ESP_OK ? ended(api_work(work), work_test(api_work(work))) : status;
}

enum esp_status esp_wait(struct esp_work *work, int64_t timeout_ns)
{
	enum esp_status status = check(work);

	return status == ESP_OK ? ended(api_work(work), work_wait(api_work(work), until(timeout_ns))) : status;
}

enum esp_status esp_wait_any(struct esp_work *const *works, uint32_t count, int64_t timeout_ns, uint32_t *out_index)
{
	uint32_t first = count;

	if (!works || !out_index)
		return api_fail_with(ESP_EINVAL, "there is no work, or no place for the index");
	for (uint32_t i = count; i-- > 0;) {
		if (!works[i])
			continue;
		first = i;
		enum esp_status status = check(works[i]);
		if (status != ESP_OK)
			return status;
	}
	if (first == count)
		return api_fail_with(ESP_EINVAL, "all works are NULL");
	uint32_t index = work_wait_any((struct work *const *)(const void *)works, count, until(timeout_ns));
	if (index == count)
		return ESP_PENDING;
	*out_index = index;
	return ended(api_work(works[index]), work_test(api_work(works[index])));
}

enum esp_status esp_work_descriptor(struct esp_work *work, int *out_fd)
{
	enum esp_status status = check(work);

	if (status != ESP_OK)
		return status;
	if (!out_fd)
		return api_fail_with(ESP_EINVAL, "there is no place for the descriptor");
	status = work_descriptor(api_work(work), out_fd);
	return status == ESP_OK ? ESP_OK : api_fail_with(status, "no descriptor is left");
}

enum esp_status esp_work_error(struct esp_work *work, struct esp_error *error)
{
	enum esp_status status = check(work);
	struct failure none = FAILURE_NONE;

	if (status != ESP_OK)
		return status;
	if (!error)
		return api_fail_with(ESP_EINVAL, "there is no place for the error");
	bool failed = (int)work_test(api_work(work)) < 0 && api_work(work)->failure.status != ESP_OK;
	return api_error(api_work(work)->context, failed ? &api_work(work)->failure : &none, error);
}

const char *esp_work_plan(struct esp_work *work)
{
	return work ? work_plan(api_work(work)) : "";
}

void esp_work_free(struct esp_work *work)
{
	if (work && !context_is_forked(api_work(work)->context))
		work_put(api_work(work));
}
