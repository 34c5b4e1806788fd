/*
 * options.h - the command line.
 */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OPTIONS_PLANS_MAX 16
#define OPTIONS_DEFAULT_PLAN "default" /* stands for the library's own choice */

struct options {
	uint64_t epochs;
	uint64_t seed;
	uint64_t batch;      /* samples per worker and step          */
	uint64_t samples;    /* of the training set, over all workers */
	uint64_t corrupt;    /* a rank; UINT64_MAX: none             */
	const char *json;    /* a file; "-": stdout; NULL: no JSON   */
	const char *plans[OPTIONS_PLANS_MAX];
	uint32_t plan_count;
	bool help;
	char plan_text[512]; /* what plans[] points into             */
	char error[256];     /* what is wrong; "": nothing           */
};

/* Fills *options; json borrows from argv. False: the command line is wrong, and error says why. */
bool options_parse(struct options *options, int argc, char **argv);

void options_help(FILE *out);

#endif
