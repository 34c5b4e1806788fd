#include "rank/member/grow_parent.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "rank/comm/comm.h"

static void hear(struct comm *group, uint64_t number, const char *text)
{
	struct control_msg off = {.type = CONTROL_OFF, .off.call = number};

	strcpy(off.off.text, text);
	grow_parent_hear_off(group, &off);
}

/*
 * Of one turn the first message counts; and a message about an earlier one, which has been around longer, does not hide
 * it.
 */
static void test_off(void)
{
	struct comm *group = calloc(1, sizeof(*group));

	CHECK(group != NULL);
	hear(group, 0, "at the very first");
	CHECK_STR(group->change.off.off.text, "at the very first");
	hear(group, 5, "first");
	hear(group, 5, "second");
	CHECK_STR(group->change.off.off.text, "first");
	hear(group, 7, "third");
	hear(group, 5, "late");
	CHECK_STR(group->change.off.off.text, "third");
	CHECK_U64(group->change.off.off.call, 7);
	free(group);
}

int main(void)
{
	test_off();
	return 0;
}
