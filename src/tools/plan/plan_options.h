/*
 * plan_options.h - the options that say what to plan for, shared by all of espalier plan,
 * and the way from them, or from a plan file, to a plan.
 *
 *     struct plan_request request;
 *     struct option_spec options[PLAN_OPTION_MAX];
 *     size_t count = plan_request_options(&request, options);
 *     options[count++] = (struct option_spec){"json", ...};    more of one's own
 *     options[count] = (struct option_spec){0};
 *     ... options_parse() ...
 *     int exit_status = plan_from(&request, "plan show", file, NULL, &plan);
 */
#ifndef TOOLS_PLAN_PLAN_OPTIONS_H
#define TOOLS_PLAN_PLAN_OPTIONS_H

#include "plan/plan.h"
#include "report/options.h"

#define PLAN_OPTION_MAX 32
#define PLAN_NODES_MAX (1u << 24)

struct plan_work;

/* The options in the order of their table. */
enum plan_option {
	PLAN_OPTION_NODES,
	PLAN_OPTION_COLLECTIVE,
	PLAN_OPTION_CHUNKS,
	PLAN_OPTION_BYTES,
	PLAN_OPTION_RACKS,
	PLAN_OPTION_PLACE,
	PLAN_OPTION_GROUPS,
	PLAN_OPTION_ROOT,
	PLAN_OPTION_FANOUT,
	PLAN_OPTION_LEAVES,
	PLAN_OPTION_DEDICATED,
	PLAN_OPTION_SERVERS,
	PLAN_OPTION_IN_PLACE,
	PLAN_OPTION_COUNTS,
	PLAN_OPTION_ORDERED,
	PLAN_OPTION_ZONES,
	PLAN_OPTION_PLANNER,
};
#define PLAN_OPTION_COUNT 17

/* What was asked for, as it was typed. */
struct plan_request {
	const char *planner; /* NULL: not given                              */
	uint64_t nodes;      /* 0: not given                                 */
	int collective;      /* enum plan_collective                         */
	uint64_t chunks;     /* over the whole buffer; 0: the planner's habit */
	uint64_t bytes;      /* of the whole buffer, if it was given         */
	const char *groups;  /* file name, or NULL                           */
	uint64_t racks;      /* 0: not given                                 */
	int place;           /* enum placement                          */
	uint64_t root, fanout, servers, zones;
	bool leaves, dedicated, in_place, ordered;
	const char *counts; /* list, or @FILE; or NULL                      */
	bool given[PLAN_OPTION_COUNT]; /* by enum plan_option: stood on the command line */
};

/* Sets the defaults and fills the first options of the table (all but --planner); returns how many. */
size_t plan_request_options(struct plan_request *request, struct option_spec *options);
/* One more: --planner NAME. */
struct option_spec plan_request_planner(struct plan_request *request);

/* The text of --help: the sentence, and what planners there are. Returns text. */
#define PLAN_ABOUT_TEXT 2048
const char *plan_about(const char *sentence, char text[PLAN_ABOUT_TEXT]);

/* The planner of that name; NULL, with "did you mean" in err. */
const struct planner *plan_find(const char *name, struct error *err);
/* The same, of those whose plans ranks alone can run. also: a word that stands for no planner, for the list of all. */
const struct planner *plan_find_runnable(const char *name, const char *also, struct error *err);

/*
 * Does every option that was given mean something to the planner? Where none is named,
 * all are compared, and each option means something to one of them.
 */
ESP_CHECKED enum esp_status plan_request_check(const struct plan_request *request, struct error *err);

/* Says on stderr why, and returns the exit status that fits. */
int plan_complain(const char *command, const struct error *err);

/*
 * A plan from the file (NULL: none was named), or from the request. Returns -1 to go on
 * with *out, which the caller closes, or the exit status after having said what is wrong.
 * For those who walk all of the plan, work (or NULL) is added to and announced, if it is
 * long, before any time is spent.
 */
int plan_from(const struct plan_request *request, const char *command, const char *file, struct plan_work *work,
              struct plan **out);
/* As above, but a file that holds no plan is an answer: -1, with *out NULL and the reason in *malformed. */
int plan_try(const struct plan_request *request, const char *command, const char *file, struct plan_work *work,
             struct plan **out, struct error *malformed);

/* The name of the planner, or "hand-written" for a plan file that names none that is known. */
const char *plan_origin(const struct plan *plan);

#endif
