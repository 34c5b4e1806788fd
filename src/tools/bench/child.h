/*
 * child.h - runs a command of a benchmark and takes its output. Main thread; blocks.
 *
 * A child ends with this process (PR_SET_PDEATHSIG).
 */
#ifndef TOOLS_BENCH_CHILD_H
#define TOOLS_BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define CHILD_WORDS 48u

struct child_words {
	const char *word[CHILD_WORDS + 1]; /* borrowed; ends with NULL */
	size_t count;
};
/* Asserts that there is room. */
void bench_child_add(struct child_words *words, const char *word);

/*
 * Runs the command to its end. out_text: what it printed, which the caller frees; "" if nothing. ESP_EIO: it cannot be
 * started, or ended with another status than 0; ESP_ETIMEOUT: it was ended after so many seconds.
 */
ESP_CHECKED enum esp_status bench_child_run(const struct child_words *words, double seconds, char **out_text,
                                            struct error *err);

/* Starts a command that serves in the background; its stderr goes to the file. ESP_EIO. */
ESP_CHECKED enum esp_status bench_child_start(const struct child_words *words, const char *log, pid_t *out_pid,
                                              struct error *err);
/* SIGTERM, and waits for its end. 0 is fine. */
void bench_child_stop(pid_t pid);

#endif
