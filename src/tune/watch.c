#include "tune/watch.h"

#define PAUSE_LEAST 4u

void tune_watch_init(struct tune_watch *watch)
{
	/* The first window opens connections. */
	*watch = (struct tune_watch){.skip = 1, .doubt = TUNE_STEADY};
}

static enum tune_verdict compare(const struct tune_watch *watch, uint64_t cost, bool shifted)
{
	unsigned __int128 now = (unsigned __int128)cost * 100, then = (unsigned __int128)watch->reference * 100;

	if (now > then + then / 100 * TUNE_TRIGGER_PERCENT)
		return TUNE_SLOWER;
	if (then > now + now / 100 * TUNE_TRIGGER_PERCENT)
		return TUNE_FASTER;
	return shifted ? TUNE_SHIFTED : TUNE_STEADY;
}

/* Triggers that follow each other soon make the next ones wait. */
static void note_trigger(struct tune_watch *watch)
{
	bool is_soon = watch->pause > 0 && watch->since < 4 * watch->pause;

	watch->pause = is_soon ? 2 * watch->pause : PAUSE_LEAST;
	watch->pause = watch->pause > TUNE_PAUSE_MOST ? TUNE_PAUSE_MOST : watch->pause;
	watch->since = 0;
	watch->doubts = 0;
}

enum tune_verdict tune_watch_step(struct tune_watch *watch, uint64_t cost, bool shifted)
{
	watch->since += watch->since < UINT32_MAX;
	if (watch->skip > 0) {
		watch->skip--;
		return TUNE_SETTLING;
	}
	if (watch->reference == 0) {
		watch->reference = cost;
		watch->doubts = 0;
	}
	enum tune_verdict now = compare(watch, cost, shifted);
	if (now == TUNE_STEADY) {
		/* Slow changes are followed. */
		watch->reference = (7 * watch->reference + cost) / 8;
		watch->doubts = 0;
		return TUNE_STEADY;
	}
	/* A shift goes with both; slower and faster steps contradict each other. */
	bool is_other =
		(now == TUNE_SLOWER && watch->doubt == TUNE_FASTER) || (now == TUNE_FASTER && watch->doubt == TUNE_SLOWER);
	watch->doubts = watch->doubts > 0 && is_other ? 1 : watch->doubts + 1;
	watch->doubt = now;
	if (watch->since < watch->pause)
		return TUNE_PAUSED;
	if (watch->doubts < TUNE_CONFIRM)
		return TUNE_DOUBT;
	note_trigger(watch);
	return now;
}

void tune_watch_changed(struct tune_watch *watch)
{
	watch->skip = 1;
	watch->doubts = 0;
	watch->reference = 0;
}

void tune_watch_accept(struct tune_watch *watch)
{
	watch->doubts = 0;
	watch->reference = 0;
}
