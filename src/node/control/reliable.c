#include "node/control/reliable.h"

#include <stdlib.h>

#define LEAST 8u

static struct control_msg *at(const struct reliable *reliable, uint32_t i)
{
	return &reliable->kept[(reliable->first + i) % reliable->capacity];
}

static bool grow(struct reliable *reliable)
{
	uint32_t capacity = reliable->capacity ? 2 * reliable->capacity : LEAST;
	struct control_msg *kept = capacity > RELIABLE_KEPT_MOST ? NULL : malloc(capacity * sizeof(*kept));

	if (!kept)
		return false;
	for (uint32_t i = 0; i < reliable->count; i++)
		kept[i] = *at(reliable, i);
	free(reliable->kept);
	reliable->kept = kept;
	reliable->capacity = capacity;
	reliable->first = 0;
	return true;
}

const struct control_msg *control_reliable_say(struct reliable *reliable, const struct control_msg *msg)
{
	if (reliable->count == reliable->capacity && !grow(reliable))
		return NULL;
	struct control_msg *kept = at(reliable, reliable->count++);
	*kept = *msg;
	kept->number = ++reliable->said;
	return kept;
}

bool control_reliable_next(struct reliable *reliable, uint64_t after, struct control_msg *out)
{
	uint64_t before_first = reliable->said - reliable->count;
	uint64_t skipped = after > before_first ? after - before_first : 0;

	if (skipped >= reliable->count)
		return false;
	*out = *at(reliable, (uint32_t)skipped);
	out->heard = reliable->told = reliable->heard;
	reliable->is_new = false;
	return true;
}

enum reliable_heard control_reliable_hear(struct reliable *reliable, const struct control_msg *msg)
{
	if (msg->heard > reliable->said || msg->number > reliable->heard + 1)
		return RELIABLE_BROKEN;
	reliable->in_vain = 0;
	while (reliable->count > 0 && at(reliable, 0)->number <= msg->heard) {
		reliable->first = (reliable->first + 1) % reliable->capacity;
		reliable->count--;
	}
	if (msg->number <= reliable->heard)
		return RELIABLE_AGAIN;
	reliable->heard = msg->number;
	return RELIABLE_NEW;
}

void control_reliable_begin(struct reliable *reliable)
{
	reliable->told = 0;
	reliable->is_new = true;
}

uint32_t control_reliable_broke(struct reliable *reliable)
{
	return ++reliable->in_vain;
}

bool control_reliable_owes(struct reliable *reliable, struct control_msg *out)
{
	if (reliable->heard - reliable->told < RELIABLE_OWED && !reliable->is_new)
		return false;
	reliable->told = reliable->heard;
	reliable->is_new = false;
	*out = (struct control_msg){.type = CONTROL_HEARD, .about = UINT32_MAX, .heard = reliable->heard};
	return true;
}

void control_reliable_fini(struct reliable *reliable)
{
	free(reliable->kept);
	*reliable = (struct reliable){0};
}
