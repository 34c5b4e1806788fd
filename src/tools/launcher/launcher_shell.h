/*
 * launcher_shell.h - the script that makes a shell on another host run one rank.
 *
 * Pure. The remote shell (ssh) gets run_shell_bootstrap as its command, which has nothing of the job, and reads
 * the rest from its standard input: variables, folder and command, then one word per line for each signal (INT,
 * TERM, KILL). So neither key nor arguments appear in lists of processes, and no argument is interpreted by a
 * shell.
 *
 *     espalier run          ssh            on the other host
 *        | ---- argv ----> | ------------> login shell: exec /bin/sh -c BOOTSTRAP
 *        | ---- stdin ---> | ------------> script ...... setsid COMMAND, a group of its own
 *        | ---- "TERM" --> | ------------> kill -s TERM -- -GROUP
 *        | ---- end -----> | ------------> TERM, and KILL after two seconds
 *
 * The input ends when espalier run dies or the connection breaks: no rank stays behind.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_SHELL_H
#define TOOLS_LAUNCHER_LAUNCHER_SHELL_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Reads a number and so many lines, and runs them. Works in all login shells, csh and fish included. */
/*
 * Never asks for a password, and gives up a host that does not answer for five minutes, which TCP would not for
 * hours.
 */
#define RUN_SHELL_DEFAULT "ssh -o BatchMode=yes -o ServerAliveInterval=30 -o ServerAliveCountMax=10"

extern const char run_shell_bootstrap[];

struct run_shell_job {
	char *const *command; /* ends with NULL */
	char *const *words;   /* NAME=VALUE, ends with NULL; names have ASCII alphanumerics and _ only */
	const char *folder;   /* the folder of the command */
	const char *host;     /* for messages */
};

/*
 * The words of a remote shell's command, split at blanks, followed by a place for the host, the bootstrap and
 * NULL. rsh NULL: ssh. *out_host: index of that place. ESP_EINVAL: there is no word; ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status launcher_shell_words(const char *rsh, char ***out, size_t *out_host, struct error *err);
/* host: from launcher_shell_words(); the word in that place is not freed. Accepts NULL. */
void launcher_shell_words_free(char **words, size_t host);

/* Writes 'text', quoted so that a POSIX shell gives back every byte. */
void launcher_shell_quote(FILE *out, const char *text);

/* The input for the bootstrap. The caller frees *out. ESP_ENOMEM. */
ESP_CHECKED enum esp_status launcher_shell_script(const struct run_shell_job *job, char **out, size_t *out_length,
                                                  struct error *err);

#endif
