/*
 * sim_pace.h - how far something is that takes long, and how much longer it will take, on the standard error.
 *
 * A terminal has a line that changes. Where nobody watches there is nothing, unless it turns out that it will take more than a minute: one line says so.
 */
#ifndef TOOLS_SIM_SIM_PACE_H
#define TOOLS_SIM_SIM_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_pace {
	const char *command; /* "sim sweep" */
	uint64_t all, done; /* parts that take about as long as each other */
	uint64_t begun_ns;
	bool is_terminal, is_told;
};

void sim_pace_begin(struct sim_pace *pace, const char *command, uint64_t all);
/* One more is done. void *: a struct sim_pace, as struct discover_watch has it. */
void sim_pace_step(void *user);
/* The line goes away; also after an error. */
void sim_pace_end(const struct sim_pace *pace);

/* "40 s", "12 min", "3.5 h", for that many seconds. Returns text. */
#define SIM_PACE_TEXT 24
const char *sim_pace_text(double seconds, char text[SIM_PACE_TEXT]);

#endif
