/*
 * launcher_given.h - the options of all commands that start a job, and the way from them to a request.
 *
 * Errors are printed on stderr in the name of the command. Functions that return int return RUN_GO_ON, or the
 * exit status to return at once.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_GIVEN_H
#define TOOLS_LAUNCHER_LAUNCHER_GIVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "report/options.h"
#include "tools/launcher/launcher_request.h"

#define RUN_GO_ON (-1)
#define RUN_GIVEN_OPTIONS 11u /* rows that launcher_given_options() writes */

enum run_prefix { RUN_PREFIX_RANK, RUN_PREFIX_NONE };

struct run_given {
	const char *command; /* as typed behind "espalier" */
	const char *job, *env, *cwd, *output, *topology;
	double grace, timeout; /* seconds; timeout 0: none */
	uint64_t lose;
	int prefix;
	bool prefix_given, no_prefix;
	bool json;
};

/* The rows of the table of options, without the terminating one. */
void launcher_given_options(struct run_given *given, struct option_spec out[RUN_GIVEN_OPTIONS]);

/* Parses the options before "--", and stores the command behind it in the request. */
int launcher_given_parse(const struct options_usage *usage, int argc, char **argv, struct run_request *request);

/* Completes a request that has its ranks, its hosts and its leader. */
int launcher_given_understand(const struct run_given *given, struct run_request *request);

/* Prints err, as a usage error or as a failure, and returns the exit status. */
int launcher_given_status(const char *command, enum esp_status status, const struct error *err);

/* Runs the job to its end. Returns the exit status. */
int launcher_given_run(const struct run_given *given, struct run_request *request);

/* Frees the parts of a request. */
void launcher_given_forget(struct run_request *request);

#endif
