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

/* words: ends with NULL. */
void bench_child_add_all(struct child_words *words, const char *const *more);

/*
 * From now on SIGINT, SIGTERM and SIGHUP do not end this process, but the command that runs: bench_child_run() returns
 * ESP_EABORTED, at once also when it is called later, until bench_child_ignore_signals(). Before threads are started.
 * ESP_EIO.
 */
ESP_CHECKED enum esp_status bench_child_heed_signals(struct error *err);
/* Commands that tidy up run to their end. */
void bench_child_ignore_signals(void);

/*
 * Runs the command to its end. out_text: what it printed, which the caller frees; "" if nothing. ESP_EIO: it cannot be
 * started, or ended with another status than 0; ESP_ETIMEOUT: it was ended after so many seconds; ESP_EABORTED.
 */
ESP_CHECKED enum esp_status bench_child_run(const struct child_words *words, double seconds, char **out_text,
                                            struct error *err);

/* The same, of a command whose output is not wanted. */
ESP_CHECKED enum esp_status bench_child_do(const struct child_words *words, double seconds, struct error *err);

/* Starts a command that serves in the background; its stderr goes to the file. ESP_EIO. */
ESP_CHECKED enum esp_status bench_child_start(const struct child_words *words, const char *log, pid_t *out_pid,
                                              struct error *err);
/* SIGTERM, and waits for its end. 0 is fine. */
void bench_child_stop(pid_t pid);

#endif
