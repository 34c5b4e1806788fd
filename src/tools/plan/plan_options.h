/*
 * plan_options.h - the options that describe a plan, shared by all commands of espalier plan, and the way from these
 * options or a plan file to a plan. Main thread; reads files, prints errors on stderr.
 *
 *       struct plan_request request;
 *       struct option_spec options[PLAN_OPTION_MAX];
 *       size_t count = plan_tool_request_options(&request, options);
 *       options[count++] = (struct option_spec){"json", ...};    the command's own options
 *       options[count] = (struct option_spec){0};
 *       ... options_parse() ...
 *       int exit_status = plan_tool_from(&request, "plan show", file, NULL, &plan);
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

/* The options' values as given. */
struct plan_request {
	const char *planner; /* NULL: not given */
	uint64_t nodes;      /* 0: not given */
	int collective;      /* enum plan_collective */
	uint64_t chunks;     /* of the whole buffer; 0: the planner's default */
	uint64_t bytes;      /* of the whole buffer, if given */
	const char *groups;  /* file name, or NULL */
	uint64_t racks;      /* 0: not given */
	int place;           /* enum placement */
	uint64_t root, fanout, servers, zones;
	bool leaves, dedicated, in_place, ordered;
	const char *counts; /* list, or @FILE; or NULL */
	bool given[PLAN_OPTION_COUNT]; /* by enum plan_option: whether the option was given */
};

/* Sets the defaults and fills the first options of the table (all but --planner); returns their number. */
size_t plan_tool_request_options(struct plan_request *request, struct option_spec *options);
/* The option --planner NAME. */
struct option_spec plan_tool_request_planner(struct plan_request *request);

/* Writes the text of --help: the sentence, then a list of all planners. Returns text. */
#define PLAN_ABOUT_TEXT 2048
const char *plan_tool_about(const char *sentence, char text[PLAN_ABOUT_TEXT]);

/* The planner of that name; NULL, with "did you mean" in err, if there is none. */
const struct planner *plan_tool_find(const char *name, struct error *err);
/* The same among planners whose plans ranks alone can run. also: a further word that the error lists. */
const struct planner *plan_tool_find_runnable(const char *name, const char *also, struct error *err);

/*
 * ESP_EINVAL if an option was given that has no effect on the planner. If no planner is named, commands compare all
 * of them, and every option has an effect on one.
 */
ESP_CHECKED enum esp_status plan_tool_request_check(const struct plan_request *request, struct error *err);

/* Prints the error on stderr and returns its exit status. */
int plan_tool_complain(const char *command, const struct error *err);

/*
 * Makes a plan from the file (NULL: none was named) or from the request. Returns -1 to go on with *out, which the
 * caller closes; otherwise the exit status, after printing the error. work: for commands that walk the whole plan;
 * the plan is added and, if it takes long, announced before the walk begins. May be NULL.
 */
int plan_tool_from(const struct plan_request *request, const char *command, const char *file, struct plan_work *work,
                   struct plan **out);
/* The same, but a malformed file is a result: returns -1 with *out NULL and the reason in *malformed. */
int plan_tool_try(const struct plan_request *request, const char *command, const char *file, struct plan_work *work,
                  struct plan **out, struct error *malformed);

/* The planner's name, or "hand-written" for a plan file that names no known planner. */
const char *plan_tool_origin(const struct plan *plan);

#endif
