/*
 * hub_op.c - calls on the tensors of a hub: started, waited for, ended, freed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "hub/worker/link_state.h"
#include "wire/hub_frame.h"

const char hub_op_kind = 0;

/* ---- lists ---- */

void op_list_append(struct hub_op_list *list, struct hub_op *op)
{
	op->next = NULL;
	op->previous = list->last;
	if (list->last)
		list->last->next = op;
	else
		list->first = op;
	list->last = op;
}

void op_list_insert(struct hub_op_list *list, struct hub_op *op)
{
	struct hub_op *before = list->last;

	while (before && before->until_ns > op->until_ns)
		before = before->previous;
	op->previous = before;
	op->next = before ? before->next : list->first;
	if (op->next)
		op->next->previous = op;
	else
		list->last = op;
	if (before)
		before->next = op;
	else
		list->first = op;
}

void op_list_remove(struct hub_op_list *list, struct hub_op *op)
{
	if (op->previous)
		op->previous->next = op->next;
	else
		list->first = op->next;
	if (op->next)
		op->next->previous = op->previous;
	else
		list->last = op->previous;
	op->next = op->previous = NULL;
}

/* ---- life ---- */

static struct hub_op *new_op(struct hub_link *link, const struct hub_op_call *call)
{
	struct hub_op *op = calloc(1, sizeof(*op) + link->lane_count * sizeof(op->parts[0]));

	if (!op)
		return NULL;
	op->kind = &hub_op_kind;
	atomic_init(&op->references, 2);
	atomic_init(&op->status, ESP_PENDING);
	op->link = link;
	op->call = *call;
	uint64_t now = clock_now_ns();
	op->until_ns = call->deadline_ns < UINT64_MAX - now ? now + call->deadline_ns : UINT64_MAX;
	return op;
}

void hub_op_put(struct hub_op *op)
{
	if (op && atomic_fetch_sub_explicit(&op->references, 1, memory_order_acq_rel) == 1)
		free(op);
}

void op_end_locked(struct hub_link *link, struct hub_op *op, enum esp_status status)
{
	assert(status != ESP_PENDING);
	if (op->call.kind != HUB_HYPER) {
		assert(link->unfinished > 0);
		link->unfinished--;
		link->stats.calls += status == ESP_OK;
	}
	if (status < 0) {
		op->failure = link->failure;
		op->failure.status = status;
	}
	if (op->call.ended)
		op->call.ended(op->call.context, status);
	atomic_store_explicit(&op->status, status, memory_order_release);
}

/* ---- starting ---- */

static enum esp_status refuse_failed(const struct hub_link *link, struct error *err)
{
	if (err)
		*err = link->failure;
	return link->failure.status;
}

/* The next version of the group's tensors that this worker pushes for. */
static uint64_t version_of_group(const struct hub_link *link, uint16_t group)
{
	uint64_t version = 0;

	for (uint32_t i = 0; i < link->layout.tensors; i++) {
		if (link->layout.tensor[i].group == group && link->next_version[i] > version)
			version = link->next_version[i];
	}
	return version;
}

/* Puts it into the queue; the thread takes it from there. A change holds from the version of the next push, with no
 * push of another thread in between. */
static enum esp_status submit(struct hub_link *link, struct hub_op *op, struct error *err)
{
	pthread_mutex_lock(&link->lock);
	enum esp_status status = link->failure.status == ESP_OK ? ESP_OK : refuse_failed(link, err);
	if (status == ESP_OK) {
		bool is_empty = link->queue.first == NULL;

		if (op->call.kind == HUB_HYPER)
			op->version = *op->told = version_of_group(link, (uint16_t)op->call.tensor);
		op_list_append(&link->queue, op);
		link->unfinished += op->call.kind != HUB_HYPER;
		if (op->call.kind == HUB_PUSH || op->call.kind == HUB_PUSHPULL)
			link->next_version[op->call.tensor]++;
		pthread_mutex_unlock(&link->lock);
		if (is_empty)
			poller_wake(&link->poller);
		return ESP_OK;
	}
	pthread_mutex_unlock(&link->lock);
	return status;
}

enum esp_status hub_op_start(struct hub_link *link, const struct hub_op_call *call, struct hub_op **out,
                             struct error *err)
{
	if (!link->is_declared)
		return error_set(err, ESP_ESTATE, "no tensors are declared: call esp_hub_init() first");
	assert(call->tensor < link->layout.tensors);
	struct hub_op *op = new_op(link, call);
	if (!op)
		return error_set(err, ESP_ENOMEM, "no memory for a call");
	enum esp_status status = submit(link, op, err);
	if (status != ESP_OK) {
		free(op);
		return status;
	}
	*out = op;
	return ESP_OK;
}

bool hub_link_has_pushed(struct hub_link *link, uint32_t tensor)
{
	assert(link->is_declared && tensor < link->layout.tensors);
	pthread_mutex_lock(&link->lock);
	bool has = link->next_version[tensor] > 0;
	pthread_mutex_unlock(&link->lock);
	return has;
}

static bool has_group(const struct hub_link *link, uint16_t group)
{
	uint32_t tensor = 0;

	while (tensor < link->layout.tensors && link->layout.tensor[tensor].group != group)
		tensor++;
	return tensor < link->layout.tensors;
}

enum esp_status hub_link_set_optimizer(struct hub_link *link, uint16_t group, const struct optimizer *optimizer,
                                       uint64_t *out_version, struct error *err)
{
	const struct hub_op_call call = {.kind = HUB_HYPER, .tensor = group, .deadline_ns = UINT64_MAX};

	if (!link->is_declared)
		return error_set(err, ESP_ESTATE, "no tensors are declared: call esp_hub_init() first");
	if (optimizer->kind != link->optimizer.kind)
		return error_set(err, ESP_EINVAL,
		                 "the job was created with another optimizer: its values may change, the kind may not");
	if (!has_group(link, group))
		return error_set(err, ESP_EINVAL, "no tensor belongs to parameter group %u", group);
	struct hub_op *op = new_op(link, &call);
	if (!op)
		return error_set(err, ESP_ENOMEM, "no memory for a change of the optimizer");
	op->optimizer = *optimizer;
	op->told = out_version;
	atomic_init(&op->references, 1); /* the thread's alone */
	enum esp_status status = submit(link, op, err);
	if (status != ESP_OK)
		free(op);
	return status;
}

/* ---- waiting ---- */

enum esp_status hub_op_test(const struct hub_op *op)
{
	return (enum esp_status)atomic_load_explicit(&op->status, memory_order_acquire);
}

uint64_t hub_op_version(const struct hub_op *op)
{
	assert(hub_op_test(op) == ESP_OK && op->call.kind == HUB_PULL);
	return op->version;
}

enum esp_status hub_op_wait(struct hub_op *op, uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
	enum esp_status status = hub_op_test(op);
	struct hub_link *link = op->link;

	if (status != ESP_PENDING)
		return status;
	pthread_mutex_lock(&link->lock);
	while ((status = hub_op_test(op)) == ESP_PENDING) {
		if (until_ns == UINT64_MAX)
			pthread_cond_wait(&link->changed, &link->lock);
		else if (pthread_cond_timedwait(&link->changed, &link->lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&link->lock);
	return status == ESP_PENDING ? hub_op_test(op) : status;
}

enum esp_status hub_op_failure(const struct hub_op *op, struct error *out)
{
	enum esp_status status = hub_op_test(op);

	if (status < 0)
		*out = op->failure;
	else
		error_clear(out);
	return status < 0 ? status : ESP_OK;
}
