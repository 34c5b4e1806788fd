/*
 * survey.h - measurements between named hosts, as text: a matrix of latencies, of inverse bandwidths, or both.
 *
 *     survey 1
 *     latency
 *     node00 0 3.1e-05 3.6e-05
 *     node01 3.1e-05 0 -
 *     node02 3.6e-05 - 0
 *     inverse-bandwidth
 *     node00 0 8e-09 3.2e-08
 *     ...
 *
 * A line per host, with a value for each host in the same order; '-' is unknown, '#' starts a comment. If the
 * two values of a pair differ, their mean is used. All matrices of a survey have the same hosts in the same
 * order. Pure but for printing.
 */
#ifndef NETWORK_TOPO_SURVEY_H
#define NETWORK_TOPO_SURVEY_H

#include <stdio.h>

#include "network/topo/matrix.h"

#define SURVEY_NAME_MAX 255u /* characters of a host's name */

enum survey_kind {
	SURVEY_LATENCY,           /* seconds of a round trip       */
	SURVEY_INVERSE_BANDWIDTH, /* seconds per byte, one way     */
	SURVEY_KINDS,
};
/* "latency", "inverse-bandwidth". */
const char *survey_kind_name(enum survey_kind kind);

struct survey {
	uint32_t count;                      /* hosts                                  */
	char **names;                        /* owned                                  */
	struct matrix matrices[SURVEY_KINDS]; /* size 0: not measured */
	uint64_t uneven;                     /* pairs of a text whose two values differ by more than a tenth */
};

/* Copies the names: unique, without blanks or '#'. The caller adds the matrices (matrix_init()). */
ESP_CHECKED enum esp_status survey_init(struct survey *survey, const char *const *names, uint32_t count,
                                        struct error *err);
void survey_fini(struct survey *survey); /* frees names and matrices; accepts a zeroed struct */

/* Any bytes. ESP_EPARSE with "line 3: ..." in err: a repeated name, too few or too many values, negative, infinite. */
ESP_CHECKED enum esp_status survey_parse(const char *text, size_t length, struct survey *out, struct error *err);

/* Prints text from which survey_parse() makes the same survey, to the last bit. ESP_EIO. */
ESP_CHECKED enum esp_status survey_print(const struct survey *survey, FILE *file, struct error *err);

#endif
