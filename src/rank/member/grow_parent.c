#include "rank/member/grow_parent.h"

#include <string.h>

#include "base/clip.h"
#include "rank/comm/comm.h"

#define ELDER_LOOK (20 * NS_PER_MS)

/* A member's place, which is its rank in the new job; -1: it is none. */
static int32_t place_of(const struct group *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->size; i++) {
		if (group->ranks[i] == rank)
			return (int32_t)i;
	}
	return -1;
}

static bool is_about(const struct control_msg *off, uint64_t number)
{
	return off->type == CONTROL_OFF && off->sequence == number;
}

void elder_hear_off(struct group *group, const struct control_msg *off)
{
	if (group->off.type != CONTROL_OFF || group->off.sequence < off->sequence)
		group->off = *off;
}

void elder_newcomers_lost(void *argument, uint32_t channel, uint32_t count, const char *why)
{
	struct context *context = argument;

	pthread_mutex_lock(&context->lock);
	for (struct group *group = context->groups; group; group = group->next) {
		if (group->channel != channel)
			continue;
		group->lost += count;
		clip(group->lost_text, sizeof(group->lost_text), "%s", why);
	}
	pthread_mutex_unlock(&context->lock);
}

uint32_t elder_lost(struct group *group)
{
	pthread_mutex_lock(&group->context->lock);
	uint32_t lost = group->lost;
	pthread_mutex_unlock(&group->context->lock);
	return lost;
}

/* culprit: by rank in the elder's job, or -1. All ranks are told; we are one of them. */
static void say_off(const struct elder *elder, enum esp_status status, int32_t culprit, const char *text)
{
	struct group *group = elder->group;
	struct context *context = group->context;
	struct control_msg msg = {
		.type = CONTROL_OFF,
		.from = context->rank,
		.about = (uint32_t)elder->number,
		.channel = group->channel,
		.first = group->ranks[0],
		.status = status,
		.sequence = elder->number,
		.peer = culprit >= 0 ? (uint32_t)culprit : UINT32_MAX,
	};

	clip(msg.text, sizeof(msg.text), "%s", text);
	pthread_mutex_lock(&context->lock);
	elder_hear_off(group, &msg);
	pthread_mutex_unlock(&context->lock);
	steward_send_all(context->steward, &msg);
}

/* A member has called it off; or does now, as one whom it has let in is gone. */
static bool is_off(const struct elder *elder, int32_t *out_culprit, struct error *why)
{
	struct context *context = elder->group->context;
	const struct control_msg *off = &elder->group->off;
	char text[CONTROL_TEXT];

	pthread_mutex_lock(&context->lock);
	bool is_told = is_about(off, elder->number), has_lost = elder->group->lost != elder->lost;
	memcpy(text, elder->group->lost_text, sizeof(text));
	if (is_told) {
		*out_culprit = place_of(elder->group, off->peer);
		error_set(why, off->status < 0 ? (enum esp_status)off->status : ESP_EPEER, "%s", off->text);
	}
	pthread_mutex_unlock(&context->lock);
	if (is_told || !has_lost)
		return is_told;
	say_off(elder, ESP_EPEER, -1, text);
	error_set(why, ESP_EPEER, "%s", text);
	return true;
}

bool elder_has_failed(void *argument, int32_t *out_culprit, struct error *why)
{
	const struct elder *about = argument;
	struct group *elder = about->group;
	struct call_note none = {0};
	enum esp_status status = (enum esp_status)atomic_load(&elder->failed);

	*out_culprit = -1;
	if (status == ESP_OK)
		return is_off(about, out_culprit, why);
	pthread_mutex_lock(&elder->context->lock);
	int32_t rank = group_culprit(elder, &none);
	error_set(why, status, "%s", elder->reason.text);
	pthread_mutex_unlock(&elder->context->lock);
	if (rank >= 0)
		*out_culprit = place_of(elder, (uint32_t)rank);
	return true;
}

void elder_call_off(const struct elder *elder, const struct failure *failure)
{
	struct group *group = elder->group;
	struct error unused;
	int32_t culprit;
	bool is_place = failure->rank >= 0 && (uint32_t)failure->rank < group->size;

	if (!elder_has_failed((void *)(uintptr_t)elder, &culprit, &unused))
		say_off(elder, failure->status, is_place ? (int32_t)group->ranks[failure->rank] : -1, failure->text);
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
