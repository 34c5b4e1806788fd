#include "tools/sim/sim_pace.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/complain.h"

#define WORTH_A_LINE 60.0 /* seconds: longer work is announced */
#define KNOWN_AFTER 5.0   /* seconds: earlier estimates are guesses */

void sim_tool_pace_begin(struct sim_pace *pace, const char *command, uint64_t all)
{
	*pace = (struct sim_pace){
		.command = command, .all = all, .begun_ns = clock_now_ns(), .is_terminal = isatty(STDERR_FILENO) == 1};
}

const char *sim_tool_pace_text(double seconds, char text[SIM_PACE_TEXT])
{
	if (seconds < 100)
		snprintf(text, SIM_PACE_TEXT, "%.0f s", fmax(seconds, 1));
	else if (seconds < 100 * 60)
		snprintf(text, SIM_PACE_TEXT, "%.0f min", seconds / 60);
	else
		snprintf(text, SIM_PACE_TEXT, "%.1f h", fmin(seconds / 3600, 99999));
	return text;
}

void sim_tool_pace_step(void *user)
{
	struct sim_pace *pace = user;
	char text[SIM_PACE_TEXT];

	pace->done++;
	double taken = 1e-9 * (double)(clock_now_ns() - pace->begun_ns),
		   left = taken / (double)pace->done * ((double)pace->all - (double)pace->done);
	if (pace->is_terminal) {
		fprintf(stderr, "\r\033[K%s: %.0f %% is done, about %s left", pace->command,
		        100 * (double)pace->done / (double)pace->all, sim_tool_pace_text(left, text));
		fflush(stderr);
	} else if (!pace->is_announced && taken > KNOWN_AFTER && left > WORTH_A_LINE) {
		complain_note("%s: this will take about %s more", pace->command, sim_tool_pace_text(left, text));
		pace->is_announced = true;
	}
}

void sim_tool_pace_end(const struct sim_pace *pace)
{
	if (pace->is_terminal && pace->done > 0)
		fputs("\r\033[K", stderr);
}
