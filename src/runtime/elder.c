#include "runtime/elder.h"

#include "runtime/group.h"

#define ELDER_LOOK (20 * NS_PER_MS)

/* One whom we have let in is gone, or another rank says so of one of its own; all ranks are told. */
static bool is_off(const struct elder *elder, struct error *why)
{
	struct group *group = elder->group;
	struct context *context = group->context;
	struct control_msg msg = {
		.type = CONTROL_OFF,
		.from = context->rank,
		.about = (uint32_t)elder->number,
		.channel = group->channel,
		.first = group->ranks[0],
		.sequence = elder->number,
		.peer = UINT32_MAX,
	};

	pthread_mutex_lock(&context->lock);
	const struct control_msg *off = &context->off;
	bool is_told = off->type == CONTROL_OFF && off->channel == msg.channel && off->first == msg.first && off->sequence == msg.sequence;
	if (is_told)
		error_set(why, ESP_EPEER, "%s", off->text);
	pthread_mutex_unlock(&context->lock);
	if (is_told || steward_lost_newcomers(context->steward) == elder->lost)
		return is_told;
	steward_lost_text(context->steward, msg.text);
	steward_send_all(context->steward, &msg);
	error_set(why, ESP_EPEER, "%s", msg.text);
	return true;
}

/* Its ranks are ours, by their places. */
bool elder_has_failed(void *argument, int32_t *out_culprit, struct error *why)
{
	const struct elder *about = argument;
	struct group *elder = about->group;
	struct call_note none = {0};
	enum esp_status status = (enum esp_status)atomic_load(&elder->failed);

	*out_culprit = -1;
	if (status == ESP_OK)
		return is_off(about, why);
	pthread_mutex_lock(&elder->context->lock);
	int32_t rank = group_culprit(elder, &none);
	error_set(why, status, "%s", elder->reason.text);
	pthread_mutex_unlock(&elder->context->lock);
	for (uint32_t i = 0; rank >= 0 && i < elder->size; i++) {
		if (elder->ranks[i] == (uint32_t)rank)
			*out_culprit = (int32_t)i;
	}
	return true;
}

void context_forget_elder(struct context *context)
{
	pthread_mutex_lock(&context->lock);
	context->elder = NULL;
	pthread_mutex_unlock(&context->lock);
}

uint64_t context_look_at_elder(struct context *context, uint64_t now)
{
	struct error why;
	int32_t culprit = -1;

	pthread_mutex_lock(&context->lock);
	bool has_elder = context->elder != NULL, has_failed = has_elder && elder_has_failed((void *)(uintptr_t)context->elder, &culprit, &why);
	if (has_failed) {
		context->elder = NULL;
		if (context->open_failure.status == ESP_OK)
			failure_set(&context->open_failure, why.status, culprit, "%s", why.text);
		context_changed(context);
	}
	pthread_mutex_unlock(&context->lock);
	if (has_failed) { /* newcomers hear of it from us */
		group_fail(context->world, why.status, culprit, why.text, true);
		group_fail(context->entry, why.status, culprit, why.text, true);
	}
	return has_elder && !has_failed ? now + ELDER_LOOK : UINT64_MAX;
}

enum esp_status context_enter(struct context *context, uint64_t patience_ns, struct failure *failure)
{
	struct call meet = {.collective = PLAN_BARRIER};
	struct work_options options = {.deadline_ns = (int64_t)patience_ns};
	enum esp_status status = call_check(&meet, context->rank, context->size, failure);

	return status == ESP_OK ? group_run(context->entry, &meet, &options, failure) : status;
}
