/*
 * plan_options.h - the options that say what to plan for, shared by all of espalier plan,
 * and the way from them, or from a plan file, to a plan.
 *
 *     struct plan_request request;
 *     struct cli_option options[PLAN_OPTION_MAX];
 *     size_t count = plan_request_options(&request, options);
 *     options[count++] = (struct cli_option){"json", ...};    more of one's own
 *     options[count] = (struct cli_option){0};
 *     ... cli_parse() ...
 *     int exit_status = plan_from(&request, "plan check", file, &plan);
 */
#ifndef CLI_PLAN_OPTIONS_H
#define CLI_PLAN_OPTIONS_H

#include "cli/options.h"
#include "plan/plan.h"

#define PLAN_OPTION_MAX 32
#define PLAN_UNSET UINT64_MAX

/* What was asked for, as it was typed. */
struct plan_request {
	const char *planner; /* NULL: not given                              */
	uint64_t nodes;      /* 0: not given                                 */
	int collective;      /* enum plan_collective                         */
	uint64_t chunks;     /* over the whole buffer; 0: the planner's habit */
	uint64_t bytes;      /* of the whole buffer; PLAN_UNSET              */
	const char *groups;  /* file name, or NULL                           */
	uint64_t racks;      /* 0: not given                                 */
	int place;           /* enum placement                          */
	uint64_t root, fanout;
	bool leaves, dedicated, in_place;
	const char *counts; /* list, or @FILE; or NULL                      */
};

/* Sets the defaults and fills the first options of the table (all but --planner); returns how many. */
size_t plan_request_options(struct plan_request *request, struct cli_option *options);
/* One more: --planner NAME. */
struct cli_option plan_request_planner(struct plan_request *request);

/* The text of --help: the sentence, and what planners there are. Returns text. */
#define PLAN_ABOUT_TEXT 2048
const char *plan_about(const char *sentence, char text[PLAN_ABOUT_TEXT]);

/* A request with its files read and its sizes worked out. Owns what the spec borrows. */
struct plan_setup {
	struct plan_spec spec;
	uint32_t *group_of;
	uint64_t *counts;
};

/* For one planner, whose habits fill in what was left open. ESP_EINVAL, ESP_EPARSE, ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status plan_setup_init(struct plan_setup *setup, const struct plan_request *request,
                                            const struct planner *planner, struct error *err);
void plan_setup_fini(struct plan_setup *setup);

/* The planner of that name; NULL, with "did you mean" in err. */
const struct planner *plan_find(const char *name, struct error *err);

/* Makes the plan that the request asks for. */
ESP_CHECKED enum esp_status plan_request_open(const struct plan_request *request, struct plan **out, struct error *err);

/* Says on stderr why, and returns the exit status that fits. */
int plan_complain(const char *command, const struct error *err);

/*
 * A plan from the file (NULL: none was named), or from the request. Returns -1 to go on
 * with *out, which the caller closes, or the exit status after having said what is wrong.
 */
int plan_from(const struct plan_request *request, const char *command, const char *file, struct plan **out);

/* The name of the planner, or "hand-written" for a plan file that names none that is known. */
const char *plan_origin(const struct plan *plan);

#endif
