/*
 * probe_roll.h - finds out on which hosts ranks can be started: asks each through its remote shell which version of
 * this program it has. Main thread; starts processes and waits for them.
 *
 * Hosts are asked side by side, so a host that is down costs its timeout once, and the other hosts do not wait for
 * it.
 */
#ifndef TOOLS_PROBE_PROBE_ROLL_H
#define TOOLS_PROBE_PROBE_ROLL_H

#include <stdbool.h>

#include "tools/launcher/launcher_hosts.h"

struct roll_question {
	const struct run_hosts *hosts;
	const char *rsh;      /* as on the command line; NULL: ssh */
	const char *program;  /* path of this program, on this host and the others */
	uint64_t patience_ns; /* for each host */
};

#define ROLL_WHY 240u

struct roll_answer {
	bool is_present;
	char why[ROLL_WHY]; /* the reason, if not: "ssh: connect to host c port 22: No route to host (ssh returned 255)" */
};

/* out: one answer per host of the list; hosts without a slot are not asked. ESP_EINVAL (rsh), ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status probe_tool_roll_call(const struct roll_question *question, struct roll_answer *out,
                                                 struct error *err);

/* Turns the end of a shell into an answer: its wait status, all that it has printed, the shell's name. */
void probe_tool_roll_judge(int wait_status, const char *heard, const char *shell, struct roll_answer *out);

#endif
