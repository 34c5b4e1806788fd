#include "rank/member/grow_parent.h"

#include <string.h>

#include "base/clip.h"
#include "rank/comm/comm.h"

#define GROW_PARENT_LOOK (20 * NS_PER_MS)

/* A member's place, which is its rank in the new job; -1: it is none. */
static int32_t place_of(const struct comm *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->size; i++) {
		if (group->ranks[i] == rank)
			return (int32_t)i;
	}
	return -1;
}

static bool is_about(const struct control_msg *off, uint64_t number)
{
	return off->type == CONTROL_OFF && off->off.call == number;
}

void grow_parent_hear_off(struct comm *group, const struct control_msg *off)
{
	if (group->change.off.type != CONTROL_OFF || group->change.off.off.call < off->off.call)
		group->change.off = *off;
}

void grow_parent_joiners_lost(void *argument, uint32_t channel, uint32_t count, const char *why)
{
	struct rank *context = argument;

	pthread_mutex_lock(&context->lock);
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (group->channel != channel)
			continue;
		group->change.lost += count;
		clip(group->change.lost_text, sizeof(group->change.lost_text), "%s", why);
	}
	pthread_mutex_unlock(&context->lock);
}

uint32_t grow_parent_lost(struct comm *group)
{
	pthread_mutex_lock(&group->context->lock);
	uint32_t lost = group->change.lost;
	pthread_mutex_unlock(&group->context->lock);
	return lost;
}

/* culprit: by rank in the parent's job, or -1. All ranks are told; we are one of them. */
static void say_off(const struct grow_parent *parent, enum esp_status status, int32_t culprit, const char *text)
{
	struct comm *group = parent->group;
	struct rank *context = group->context;
	struct control_msg msg = {
		.type = CONTROL_OFF,
		.from = context->rank,
		.about = (uint32_t)parent->number,
		.channel = group->channel,
		.first = group->ranks[0],
		.off = {.call = parent->number, .status = status, .culprit = culprit >= 0 ? (uint32_t)culprit : UINT32_MAX},
	};

	clip(msg.off.text, sizeof(msg.off.text), "%s", text);
	pthread_mutex_lock(&context->lock);
	grow_parent_hear_off(group, &msg);
	pthread_mutex_unlock(&context->lock);
	control_send_all(context->control, &msg);
}

/* A member has called it off; or does now, as a joiner that it has let in is gone. */
static bool is_off(const struct grow_parent *parent, int32_t *out_culprit, struct error *why)
{
	struct rank *context = parent->group->context;
	const struct control_msg *off = &parent->group->change.off;
	char text[CONTROL_TEXT];

	pthread_mutex_lock(&context->lock);
	bool is_told = is_about(off, parent->number), has_lost = parent->group->change.lost != parent->lost;
	memcpy(text, parent->group->change.lost_text, sizeof(text));
	if (is_told) {
		*out_culprit = place_of(parent->group, off->off.culprit);
		error_set(why, off->off.status < 0 ? (enum esp_status)off->off.status : ESP_EPEER, "%s", off->off.text);
	}
	pthread_mutex_unlock(&context->lock);
	if (is_told || !has_lost)
		return is_told;
	say_off(parent, ESP_EPEER, -1, text);
	error_set(why, ESP_EPEER, "%s", text);
	return true;
}

bool grow_parent_has_failed(void *argument, int32_t *out_culprit, struct error *why)
{
	const struct grow_parent *about = argument;
	struct comm *parent = about->group;
	struct call_note none = {0};
	enum esp_status status = (enum esp_status)atomic_load(&parent->fail.status);

	*out_culprit = -1;
	if (status == ESP_OK)
		return is_off(about, out_culprit, why);
	pthread_mutex_lock(&parent->context->lock);
	int32_t rank = comm_culprit(parent, &none);
	error_set(why, status, "%s", parent->fail.reason.failed.text);
	pthread_mutex_unlock(&parent->context->lock);
	if (rank >= 0)
		*out_culprit = place_of(parent, (uint32_t)rank);
	return true;
}

void grow_parent_call_off(const struct grow_parent *parent, const struct failure *failure)
{
	struct comm *group = parent->group;
	struct error unused;
	int32_t culprit;
	bool is_place = failure->rank >= 0 && (uint32_t)failure->rank < group->size;

	if (!grow_parent_has_failed((void *)(uintptr_t)parent, &culprit, &unused))
		say_off(parent, failure->status, is_place ? (int32_t)group->ranks[failure->rank] : -1, failure->text);
}

void rank_forget_grow_parent(struct rank *context)
{
	pthread_mutex_lock(&context->lock);
	context->opening.grow_parent = NULL;
	pthread_mutex_unlock(&context->lock);
}

uint64_t rank_check_grow_parent(struct rank *context, uint64_t now)
{
	struct error why;
	int32_t culprit = -1;

	pthread_mutex_lock(&context->lock);
	bool has_parent = context->opening.grow_parent != NULL;
	bool has_failed =
		has_parent && grow_parent_has_failed((void *)(uintptr_t)context->opening.grow_parent, &culprit, &why);
	if (has_failed) {
		context->opening.grow_parent = NULL;
		if (context->opening.failure.status == ESP_OK)
			rank_failure_set(&context->opening.failure, why.status, culprit, "%s", why.text);
		rank_changed(context);
	}
	pthread_mutex_unlock(&context->lock);
	if (has_failed) { /* joiners hear of it from us */
		comm_fail(context->world, why.status, culprit, why.text, true);
		comm_fail(context->entry, why.status, culprit, why.text, true);
	}
	return has_parent && !has_failed ? now + GROW_PARENT_LOOK : UINT64_MAX;
}

enum esp_status rank_enter(struct rank *context, uint64_t patience_ns, struct failure *failure)
{
	struct call meet = {.collective = PLAN_BARRIER};
	struct work_options options = {.deadline_ns = (int64_t)patience_ns};
	enum esp_status status = call_check(&meet, context->rank, context->size, failure);

	return status == ESP_OK ? comm_run(context->entry, &meet, &options, failure) : status;
}
