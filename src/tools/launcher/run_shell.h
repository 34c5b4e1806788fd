/*
 * run_shell.h - what a shell on another host is told, so that it runs one rank.
 *
 * Pure. The remote shell (ssh) is given run_shell_bootstrap as its command, which holds nothing of
 * the job, and reads the rest from its standard input: variables, folder and command, then one
 * word per line for each signal (INT, TERM, KILL). So neither key nor arguments are seen in lists
 * of processes, and no argument meets a shell that could take it for something else.
 *
 *     espalier run          ssh            on the other host
 *        | ---- argv ----> | ------------> login shell: exec /bin/sh -c BOOTSTRAP
 *        | ---- stdin ---> | ------------> script ...... setsid COMMAND, a group of its own
 *        | ---- "TERM" --> | ------------> kill -s TERM -- -GROUP
 *        | ---- end -----> | ------------> TERM, and KILL after two seconds
 *
 * The end of the input comes when espalier run dies or the connection breaks: no rank stays behind.
 */
#ifndef TOOLS_LAUNCHER_RUN_SHELL_H
#define TOOLS_LAUNCHER_RUN_SHELL_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Reads a number and so many lines, and runs them. Means the same to all login shells, csh and fish included. */
/* It never asks for a password, and a host that does not answer for five minutes is given up: otherwise it would be for hours. */
#define RUN_SHELL_DEFAULT "ssh -o BatchMode=yes -o ServerAliveInterval=30 -o ServerAliveCountMax=10"

extern const char run_shell_bootstrap[];

struct run_shell_job {
	char *const *command; /* ends with NULL */
	char *const *words;   /* NAME=VALUE, ends with NULL; names are made of letters, digits and _ */
	const char *folder;   /* where the command starts */
	const char *host;     /* for complaints */
};

/*
 * The words of a remote shell's command, split at blanks: behind them a place for the host, the bootstrap and NULL. rsh NULL: ssh.
 * *out_host: which of them is the place. ESP_EINVAL: there is no word; ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status run_shell_words(const char *rsh, char ***out, size_t *out_host, struct error *err);
/* host: what run_shell_words() said. What stands in that place is not freed. NULL is fine. */
void run_shell_words_free(char **words, size_t host);

/* 'text', quoted so that a POSIX shell gives back every byte. */
void run_shell_quote(FILE *out, const char *text);

/* The input of the bootstrap. The caller frees *out. ESP_ENOMEM. */
ESP_CHECKED enum esp_status run_shell_script(const struct run_shell_job *job, char **out, size_t *out_length,
                                             struct error *err);

#endif
