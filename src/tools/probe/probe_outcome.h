/*
 * probe_outcome.h - espalier probe: its options, its outcome, and the ways to show it. Main thread; writes to a FILE
 * only.
 */
#ifndef TOOLS_PROBE_PROBE_OUTCOME_H
#define TOOLS_PROBE_PROBE_OUTCOME_H

#include <stdio.h>

#include "network/discover/judge_groups.h"
#include "network/probe/found.h"
#include "network/topo/racks.h"
#include "report/json.h"

#define PROBE_TABLE_HOSTS 16u /* a matrix of more hosts is summarized */

struct probe_options {
	bool latency, bandwidth; /* at least one */
	const char *hosts, *hostfile, *rsh;
	uint64_t ranks, port; /* 0: not given */
	double seconds, wait, elasticity; /* elasticity 0: not given */
	uint64_t streams, seed, groups; /* 0: the default number */
	const char *out, *html, *matrix, *save_matrix, *racks, *rack_label;
	const char *absent; /* a,b: hosts on which no rank could be started; NULL: espalier probe did not start the ranks */
	bool json, each_rank;
};

/* Returns -1 to go on, otherwise the exit status. */
int probe_tool_options_parse(struct probe_options *options, int argc, char **argv);

/* How the outcome compares with racks that the user has given. */
struct probe_truth {
	bool known;
	struct racks racks;
	struct grouping grouping;
	double ami;                 /* of the groups */
	double paia[SURVEY_KINDS];  /* of the distances; NAN: not known */
};

struct probe_outcome {
	const struct probe_options *options;
	struct found found;
	struct verdict verdict;
	struct probe_truth truth;
	bool stored;           /* read from --matrix: no probing took place */
	bool has_rates;        /* a topology can be written */
	char rates_missing[256]; /* the reason, if has_rates is false */
	char plan[96];           /* for large sums, in that topology: "ring, in the order of the topology"; "": not known */
	bool has_out, has_html;  /* whether these files are written */
};

/* The outcome for people, for programs and for a browser. ESP_EIO. */
ESP_CHECKED enum esp_status probe_tool_print(const struct probe_outcome *outcome, FILE *file, struct error *err);
ESP_CHECKED enum esp_status probe_tool_print_json(const struct probe_outcome *outcome, FILE *file);
ESP_CHECKED enum esp_status probe_tool_print_html(const struct probe_outcome *outcome, FILE *file, struct error *err);

/* Puts the keys of the JSON document into an object that was begun; and the key of a matrix. */
void probe_tool_put_keys(const struct probe_outcome *outcome, bool with_matrices, struct json *json);
const char *probe_tool_matrix_key(enum survey_kind kind);

/* Sentences that all of them contain. Each returns text. */
#define PROBE_SENTENCE 400u
/* "sure: hosts of one group are 3.1 times nearer to each other than to others." */
const char *probe_tool_say_sure(const struct probe_outcome *outcome, char text[PROBE_SENTENCE]);
/* "average linkage, then swaps and moves; ...": where the groups are from; "" if there is one. */
const char *probe_tool_say_source(const struct probe_outcome *outcome, char text[PROBE_SENTENCE]);
/* Advice about the i-th lost host. */
const char *probe_tool_say_lost(const struct probe_outcome *outcome, uint32_t i, char text[PROBE_SENTENCE]);
/* A sentence about the uplinks; "" if there is one group. */
const char *probe_tool_say_uplinks(const struct probe_outcome *outcome, char text[PROBE_SENTENCE]);
/* "37.2 us", "941 Mbit/s" as this kind of distance is read; "-" for NAN. */
#define PROBE_NUMBER 24u
const char *probe_tool_distance_text(enum survey_kind kind, double distance, char text[PROBE_NUMBER]);
const char *probe_tool_rate_text(double rate, char text[PROBE_NUMBER]);

/*
 * Names the plan that a job with one rank on each of these hosts would take for a large sum, chosen by the runtime's
 * own code. Leaves text as it is if that cannot be known.
 */
#define PROBE_PLAN_MIB 64u
void probe_tool_find_plan(const struct topology *topology, char *text, size_t size);

/* The hosts in the order of their groups: found.survey.count of them. */
void probe_tool_order(const struct probe_outcome *outcome, uint32_t *out);

/*
 * Fills truth by comparing found and verdict with the file options->racks; does nothing without that option. Errors
 * of reading the file.
 */
ESP_CHECKED enum esp_status probe_compare(struct probe_outcome *outcome, struct error *err);

#endif
