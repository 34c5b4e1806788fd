#include "rank/member/grow_time.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void grow_time_begin(struct grow_time *time, int64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	*time = (struct grow_time){
		.whole_ns = deadline_ns > 0 ? (uint64_t)deadline_ns : 0,
		.interval_ns = interval_ns,
	};
	time->end_ns = now_ns + time->whole_ns;
}

int64_t grow_time_to_come(const struct grow_time *time, uint64_t now_ns)
{
	if (time->whole_ns == 0)
		return 0;
	return now_ns < time->end_ns ? (int64_t)(time->end_ns - now_ns) : 1;
}

uint64_t grow_time_to_count(const struct grow_time *time, uint64_t usual_ns, uint64_t now_ns)
{
	return time->whole_ns == 0 ? usual_ns : least(usual_ns, (uint64_t)grow_time_to_come(time, now_ns) / 4);
}

void grow_time_all_here(struct grow_time *time, uint64_t join_ns, uint64_t now_ns)
{
	if (time->whole_ns > 0)
		return;
	time->whole_ns = join_ns;
	time->end_ns = now_ns + join_ns;
}

/*
 * Time that is kept for a part. A rank that is stopped is noticed within an interval, and then the remaining ones can
 * agree. A rank that could not join needs some tenths of an interval to close what it has opened, before it votes.
 */
static uint64_t kept_for(const struct grow_time *time, enum grow_part part)
{
	switch (part) {
	case GROW_JOIN:
		return 0;
	case GROW_VOTE:
		return least(time->interval_ns / 2, time->whole_ns / 8);
	case GROW_ENTER:
		return least(time->interval_ns / 4, time->whole_ns / 16);
	case GROW_AGREE:
		return least(time->interval_ns, time->whole_ns / 4);
	}
	return 0;
}

static uint64_t end_of(const struct grow_time *time, enum grow_part part)
{
	uint64_t end = time->end_ns;

	for (int later = GROW_AGREE; later > (int)part; later--)
		end -= kept_for(time, (enum grow_part)later);
	return end;
}

/* Of one part that begins when its time is over. */
static uint64_t grace(const struct grow_time *time)
{
	return least(time->interval_ns / 10, time->whole_ns / 16);
}

uint64_t grow_time_left(const struct grow_time *time, enum grow_part part, uint64_t now_ns)
{
	uint64_t end = end_of(time, part), left = end > now_ns ? end - now_ns : 0,
	         least_ns = part == GROW_JOIN ? 0 : grace(time);

	left = left > least_ns ? left : least_ns;
	return left > 0 ? left : 1;
}

/* If all came at the last moment they cannot join, and there is a vote and an agreement about that. */
uint64_t grow_time_slack(const struct grow_time *time)
{
	return 2 * grace(time) + 1;
}
