/*
 * sim_pace.h - progress of long work, and an estimate of the time that is left, on stderr. Main thread.
 *
 * On a terminal a line is updated. Without a terminal nothing is shown, except one line if the work turns out to take
 * more than a minute.
 */
#ifndef TOOLS_SIM_SIM_PACE_H
#define TOOLS_SIM_SIM_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_pace {
	const char *command; /* "sim sweep" */
	uint64_t all, done; /* parts of about the same duration */
	uint64_t begun_ns;
	bool is_terminal, is_announced;
};

void sim_tool_pace_begin(struct sim_pace *pace, const char *command, uint64_t all);
/* A part is done. user: a struct sim_pace; the type is that of struct discover_watch. */
void sim_tool_pace_step(void *user);
/* Removes the line; call it after an error, too. */
void sim_tool_pace_end(const struct sim_pace *pace);

/* "40 s", "12 min", "3.5 h". Returns text. */
#define SIM_PACE_TEXT 24
const char *sim_tool_pace_text(double seconds, char text[SIM_PACE_TEXT]);

#endif
