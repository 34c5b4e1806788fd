#include "tools/plan/plan_options.h"

#include <assert.h>
#include <string.h>

#include "base/infile.h"
#include "base/word.h"
#include "plan/text.h"
#include "report/complain.h"
#include "tools/plan/plan_setup.h"
#include "tools/plan/plan_work.h"

static const char *const collective_names[] = {"allreduce", "reduce-scatter", "allgather", "broadcast", "reduce",
                                               "gather",    "scatter",        "alltoall",  "barrier",   NULL};
static_assert(sizeof(collective_names) / sizeof(collective_names[0]) == PLAN_COLLECTIVE_COUNT + 1,
              "one name per collective, in the order of the enum");
static const char *const placements[] = {"contiguous", "interleaved", NULL};

size_t plan_tool_request_options(struct plan_request *request, struct option_spec *options)
{
	*request = (struct plan_request){0};
	const struct option_spec all[] = {
		{"nodes", 'n', OPTION_U64, &request->nodes, "N", "how many nodes hold data", 1, PLAN_NODES_MAX, NULL},
		{"collective", 'c', OPTION_CHOICE, &request->collective, "NAME", "what to do (default allreduce)", 0, 0,
		 collective_names},
		{"chunks", 'k', OPTION_U64, &request->chunks, "K",
		 "cut the buffer into at most K equal chunks (default: what shows the planner best)", 1, 1u << 30, NULL},
		{"bytes", 'b', OPTION_BYTES, &request->bytes, "B", "size of the whole buffer (default: 4K a chunk)", 0, 0,
		 NULL},
		{"racks", 'C', OPTION_U64, &request->racks, "C", "the nodes stand in C equal racks, which are the groups", 1,
		 PLAN_NODES_MAX, NULL},
		{"place", 0, OPTION_CHOICE, &request->place, "HOW", "how nodes fill the racks (default contiguous)", 0, 0,
		 placements},
		{"groups", 'g', OPTION_STRING, &request->groups, "FILE",
		 "the groups, a line each: nodes and ranges, as in 0-3 7", 0, 0, NULL},
		{"root", 'r', OPTION_U64, &request->root, "R",
		 "root of broadcast, reduce, gather and scatter; server of central (default 0)", 0, PLAN_NODES_MAX, NULL},
		{"fanout", 'f', OPTION_U64, &request->fanout, "F", "tree: children of a node (default 2)", 1, PLAN_NODES_MAX,
		 NULL},
		{"leaves", 0, OPTION_FLAG, &request->leaves, NULL, "tree: all nodes are leaves, and extra nodes add", 0, 0,
		 NULL},
		{"dedicated", 0, OPTION_FLAG, &request->dedicated, NULL, "central: the server is an extra node", 0, 0, NULL},
		{"servers", 0, OPTION_U64, &request->servers, "P",
		 "central, switch, switch-sum, switch-copy: P extra nodes own the chunks in turn", 1, 1u << 20, NULL},
		{"in-place", 0, OPTION_FLAG, &request->in_place, NULL, "input and output are the same memory", 0, 0, NULL},
		{"counts", 0, OPTION_STRING, &request->counts, "LIST",
		 "bytes of each block, as in 4K,0,8K or @FILE, in place of --bytes", 0, 0, NULL},
		{"ordered", 0, OPTION_FLAG, &request->ordered, NULL, "the planner takes the nodes group by group, not by rank",
		 0, 0, NULL},
		{"zones", 0, OPTION_U64, &request->zones, "Z",
		 "three-level: the groups stand in Z equal zones (default: each in its own)", 1, PLAN_NODES_MAX, NULL},
	};
	static_assert(sizeof(all) / sizeof(all[0]) == PLAN_OPTION_PLANNER, "in the order of enum plan_option");
	memcpy(options, all, sizeof(all));
	for (size_t i = 0; i < PLAN_OPTION_PLANNER; i++)
		options[i].given = &request->given[i];
	return PLAN_OPTION_PLANNER;
}

struct option_spec plan_tool_request_planner(struct plan_request *request)
{
	return (struct option_spec){.name = "planner", .short_name = 'p', .kind = OPTION_STRING, .out = &request->planner,
	                            .metavar = "NAME", .help = "the planner",
	                            .given = &request->given[PLAN_OPTION_PLANNER]};
}

/* ---- planners ---- */

const char *plan_tool_about(const char *sentence, char text[PLAN_ABOUT_TEXT])
{
	size_t used = (size_t)snprintf(text, PLAN_ABOUT_TEXT, "%s\n\nplanners:", sentence);

	for (unsigned i = 0; plan_planner(i) && used < PLAN_ABOUT_TEXT; i++)
		used += (size_t)snprintf(text + used, PLAN_ABOUT_TEXT - used, "\n  %-16s  %s",
		                         plan_planner_name(plan_planner(i)), plan_planner_summary(plan_planner(i)));
	return text;
}

/* The planner number `index` among all planners, or among runnable ones; NULL: there are fewer. */
static const struct planner *planner_at(size_t index, bool is_runnable)
{
	const struct planner *planner;
	for (unsigned i = 0; (planner = plan_planner(i)); i++) {
		if ((!is_runnable || !plan_planner_has_extra(planner)) && index-- == 0)
			return planner;
	}
	return NULL;
}

/* A name function for word lists; list: const bool *is_runnable. */
static const char *planner_name_at(const void *list, size_t index)
{
	const struct planner *planner = planner_at(index, *(const bool *)list);

	return planner ? plan_planner_name(planner) : NULL;
}

static const struct planner *find(const char *name, bool is_runnable, const char *also, struct error *err)
{
	const struct planner *planner = plan_planner_find(name);
	char names[192] = "";
	size_t used = (size_t)snprintf(names, sizeof(names), "%s", also);

	if (planner)
		return planner;
	const char *near = word_nearest(name, planner_name_at, &is_runnable);
	if (near) {
		error_set(err, ESP_EINVAL, "unknown planner '%.64s'; did you mean '%s'?", name, near);
		return NULL;
	}
	for (unsigned i = 0; planner_at(i, is_runnable) && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
		                         plan_planner_name(planner_at(i, is_runnable)));
	error_set(err, ESP_EINVAL, "unknown planner '%.32s'; there are %s", name, names);
	return NULL;
}

const struct planner *plan_tool_find(const char *name, struct error *err)
{
	return find(name, false, "", err);
}

const struct planner *plan_tool_find_runnable(const char *name, const char *also, struct error *err)
{
	const struct planner *planner = find(name, true, also, err);

	if (!planner || !plan_planner_has_extra(planner))
		return planner;
	error_set(err, ESP_EINVAL, "%s needs hubs or switches beside the ranks: it is for espalier plan and espalier sim",
	          name);
	return NULL;
}

/* ---- options and planners ---- */

static enum esp_status only_for(const struct plan_request *request, enum plan_option option, const char *name,
                                const char *planner, struct error *err)
{
	if (!request->given[option] || strcmp(request->planner, planner) == 0)
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "--%s is for the planner %s, and means nothing to %s", name, planner,
	                 request->planner);
}

static bool takes_servers(const char *planner)
{
	static const char *const names[] = {"central", "switch", "switch-sum", "switch-copy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(planner, names[i]) == 0)
			return true;
	}
	return false;
}

enum esp_status plan_tool_request_check(const struct plan_request *request, struct error *err)
{
	enum plan_collective collective = (enum plan_collective)request->collective;
	enum esp_status status = ESP_OK;

	if (request->given[PLAN_OPTION_PLACE] && !request->given[PLAN_OPTION_RACKS])
		return error_set(err, ESP_EINVAL, "--place says how nodes fill the racks: give --racks C with it");
	if (request->ordered && !request->racks && !request->groups)
		return error_set(err, ESP_EINVAL,
		                 "--ordered takes the nodes group by group: give --racks C or --groups FILE with it");
	if (!request->planner)
		return ESP_OK;
	if (request->given[PLAN_OPTION_ROOT] && !plan_collective_has_root(collective) &&
	    strcmp(request->planner, "central") != 0)
		return error_set(err, ESP_EINVAL, "--root is for broadcast, reduce, gather and scatter and for the planner "
		                 "central: %s of %s has none", plan_collective_name(collective), request->planner);
	const struct planner *planner = plan_planner_find(request->planner);
	if (request->ordered && planner && (plan_planner_needs_groups(planner) || plan_planner_has_extra(planner)))
		return error_set(err, ESP_EINVAL,
		                 "--ordered means nothing to %s: its groups say which nodes are near each other",
		                 request->planner);
	status = only_for(request, PLAN_OPTION_FANOUT, "fanout", "tree", err);
	if (status == ESP_OK)
		status = only_for(request, PLAN_OPTION_ZONES, "zones", "three-level", err);
	if (status == ESP_OK)
		status = only_for(request, PLAN_OPTION_LEAVES, "leaves", "tree", err);
	if (status == ESP_OK)
		status = only_for(request, PLAN_OPTION_DEDICATED, "dedicated", "central", err);
	if (status == ESP_OK && request->given[PLAN_OPTION_SERVERS] && !takes_servers(request->planner))
		status = error_set(err, ESP_EINVAL,
		                   "--servers is for the planners central, switch, switch-sum and switch-copy, and "
		                   "means nothing to %s",
		                   request->planner);
	return status;
}

/* The first given option that describes the plan; NULL if there is none. */
static const char *first_given(const struct plan_request *request)
{
	struct plan_request unused;
	struct option_spec options[PLAN_OPTION_MAX];
	size_t count = plan_tool_request_options(&unused, options);

	options[count++] = plan_tool_request_planner(&unused);
	for (size_t i = 0; i < count; i++) {
		if (request->given[i])
			return options[i].name;
	}
	return NULL;
}

/* ---- plans ---- */

static enum esp_status make_plan(const struct plan_request *request, const char *command, struct plan_work *work,
                                 struct plan **out, struct error *err)
{
	const struct planner *planner = plan_tool_find(request->planner, err);
	struct plan_setup setup;

	if (!planner)
		return ESP_EINVAL;
	enum esp_status status = plan_tool_request_check(request, err);
	if (status == ESP_OK)
		status = plan_tool_setup_init(&setup, request, planner, err);
	if (status != ESP_OK)
		return status;
	if (work) {
		plan_tool_work_add(work, planner, &setup);
		plan_tool_work_announce(work, command);
	}
	status = plan_open(planner, &setup.spec, out, err);
	plan_tool_setup_fini(&setup);
	return status;
}

static enum esp_status read_plan(const char *name, struct plan **out, struct error *err, struct error *malformed)
{
	struct infile file;
	enum esp_status status = infile_open(&file, name, err);

	if (status != ESP_OK)
		return status;
	status = plan_parse(file.text, file.length, out, malformed);
	infile_close(&file);
	if (status == ESP_OK)
		return ESP_OK;
	*out = NULL;
	return status == ESP_ENOMEM ? error_set(err, status, "%.100s: %.140s", name, malformed->text) : ESP_OK;
}

int plan_tool_complain(const char *command, const struct error *err)
{
	/* ESP_ENOMEM and a full disk are no mistakes of the command line. */
	if (err->status == ESP_ENOMEM)
		return complain("%s: %s", command, err->text);
	return complain_usage("%s: %s", command, err->text);
}

int plan_tool_try(const struct plan_request *request, const char *command, const char *file, struct plan_work *work,
                  struct plan **out, struct error *malformed)
{
	struct error err = {0};

	if (file && first_given(request))
		return complain_usage("%s: a FILE holds its plan already; --%s is for a plan that is made", command,
		                      first_given(request));
	if (!file && !request->planner)
		return complain_usage("%s: which plan? Give a FILE (- is the standard input), or --planner NAME and --nodes N",
		                      command);
	if (file)
		err.status = read_plan(file, out, &err, malformed);
	else
		err.status = make_plan(request, command, work, out, &err);
	if (err.status != ESP_OK)
		return plan_tool_complain(command, &err);
	if (file && work && *out) {
		plan_tool_work_add_plan(work, *out);
		plan_tool_work_announce(work, command);
	}
	return -1;
}

int plan_tool_from(const struct plan_request *request, const char *command, const char *file, struct plan_work *work,
                   struct plan **out)
{
	struct error malformed = {0};
	int exit_status = plan_tool_try(request, command, file, work, out, &malformed);

	if (exit_status < 0 && !*out)
		return complain("%s: %s: %s", command, file, malformed.text);
	return exit_status;
}

const char *plan_tool_origin(const struct plan *plan)
{
	return plan->planner ? plan_planner_name(plan->planner) : "hand-written";
}
