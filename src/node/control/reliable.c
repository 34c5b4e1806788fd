#include "node/control/reliable.h"

#include <stdlib.h>

#define LEAST 8u

static struct control_msg *at(const struct talk *talk, uint32_t i)
{
	return &talk->kept[(talk->first + i) % talk->capacity];
}

static bool grow(struct talk *talk)
{
	uint32_t capacity = talk->capacity ? 2 * talk->capacity : LEAST;
	struct control_msg *kept = capacity > TALK_KEPT_MOST ? NULL : malloc(capacity * sizeof(*kept));

	if (!kept)
		return false;
	for (uint32_t i = 0; i < talk->count; i++)
		kept[i] = *at(talk, i);
	free(talk->kept);
	talk->kept = kept;
	talk->capacity = capacity;
	talk->first = 0;
	return true;
}

const struct control_msg *talk_say(struct talk *talk, const struct control_msg *msg)
{
	if (talk->count == talk->capacity && !grow(talk))
		return NULL;
	struct control_msg *kept = at(talk, talk->count++);
	*kept = *msg;
	kept->number = ++talk->said;
	return kept;
}

bool talk_next(struct talk *talk, uint64_t after, struct control_msg *out)
{
	uint64_t before_first = talk->said - talk->count;
	uint64_t skipped = after > before_first ? after - before_first : 0;

	if (skipped >= talk->count)
		return false;
	*out = *at(talk, (uint32_t)skipped);
	out->heard = talk->told = talk->heard;
	talk->is_new = false;
	return true;
}

enum talk_heard talk_hear(struct talk *talk, const struct control_msg *msg)
{
	if (msg->heard > talk->said || msg->number > talk->heard + 1)
		return TALK_BROKEN;
	talk->in_vain = 0;
	while (talk->count > 0 && at(talk, 0)->number <= msg->heard) {
		talk->first = (talk->first + 1) % talk->capacity;
		talk->count--;
	}
	if (msg->number <= talk->heard)
		return TALK_AGAIN;
	talk->heard = msg->number;
	return TALK_NEW;
}

void talk_begin(struct talk *talk)
{
	talk->told = 0;
	talk->is_new = true;
}

uint32_t talk_broke(struct talk *talk)
{
	return ++talk->in_vain;
}

bool talk_owes(struct talk *talk, struct control_msg *out)
{
	if (talk->heard - talk->told < TALK_OWED && !talk->is_new)
		return false;
	talk->told = talk->heard;
	talk->is_new = false;
	*out = (struct control_msg){.type = CONTROL_HEARD, .about = UINT32_MAX, .peer = UINT32_MAX, .heard = talk->heard};
	return true;
}

void talk_fini(struct talk *talk)
{
	free(talk->kept);
	*talk = (struct talk){0};
}
