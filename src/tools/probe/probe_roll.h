/*
 * probe_roll.h - which hosts can be started on: each is asked through its remote shell which version of this program it has.
 *
 * Hosts are asked side by side, so one that is down costs its patience once, and none of the others waits for it any longer.
 */
#ifndef TOOLS_PROBE_PROBE_ROLL_H
#define TOOLS_PROBE_PROBE_ROLL_H

#include <stdbool.h>

#include "tools/launcher/run_hosts.h"

struct roll_question {
	const struct run_hosts *hosts;
	const char *rsh;      /* as given; NULL: ssh                     */
	const char *program;  /* the path of this program, here and there */
	uint64_t patience_ns; /* for each host                            */
};

#define ROLL_WHY 240u

struct roll_answer {
	bool is_present;
	char why[ROLL_WHY]; /* it is not: "ssh: connect to host c port 22: No route to host (ssh returned 255)" */
};

/* out: by host of the list; those without a place for a rank are not asked. ESP_EINVAL (rsh), ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status roll_call(const struct roll_question *question, struct roll_answer *out, struct error *err);

/* How an answer is judged, once the shell has ended: its wait status, all that it has printed, the shell's name. */
void roll_judge(int wait_status, const char *heard, const char *shell, struct roll_answer *out);

#endif
