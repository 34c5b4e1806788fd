/*
 * parse_head.c - reads the head of a plan: a table of keys in a fixed order, so that what a
 * key needs to know always stands before it.
 */
#include <stdlib.h>

#include "plan/parse.h"
#include "plan/planner.h"

#define WORKERS_MAX (1u << 24)

/* No planner of ours made the plan; and a planner of ours would not make these rows again. */
static const struct planner planner_custom = {
	.name = "custom",
	.summary = "read from a text",
};

/* ---- lists ---- */

static bool take_run(struct parser *parser, const char *what, struct parse_list *list, uint64_t total)
{
	uint64_t before = list->count ? list->runs[list->count - 1].end : 0;
	uint64_t value, count = 1;

	if (!scan_number(&parser->scan, what, &value))
		return false;
	if (scan_sign(&parser->scan, '*') && !scan_number(&parser->scan, "how often the value repeats", &count))
		return false;
	if (count == 0 || count > total - before)
		return plan_scan_fail(&parser->scan,
		                      "%llu times %llu: the list holds one value for each of %llu nodes, %llu more",
		                      (unsigned long long)count, (unsigned long long)value, (unsigned long long)total,
		                      (unsigned long long)(total - before));
	if (!plan_parse_grow(parser, &list->runs, list->count + 1, &list->capacity, sizeof(*list->runs)))
		return false;
	if (list->count == 0 || value < list->runs[list->least].value)
		list->least = list->count;
	list->runs[list->count++] = (struct parse_run){.value = value, .end = before + count};
	return true;
}

static bool take_list(struct parser *parser, const char *what, struct parse_list *list, uint64_t total)
{
	do {
		if (!take_run(parser, what, list, total))
			return false;
	} while (scan_more(&parser->scan));
	uint64_t count = list->runs[list->count - 1].end;
	return count == total ||
	       plan_scan_fail(&parser->scan, "the list holds %llu values, one for each of %llu nodes is needed",
	                      (unsigned long long)count, (unsigned long long)total);
}

/* ---- the head ---- */

static bool take_planner(struct parser *parser)
{
	char name[32] = "";
	const char *word;
	size_t length;

	if (!plan_scan_word(&parser->scan, "the name of a planner", &word, &length))
		return false;
	if (length < sizeof(name))
		memcpy(name, word, length);
	const struct planner *planner = plan_planner_find(name);
	if (planner)
		parser->plan->planner = planner;
	return true;
}

static bool take_collective(struct parser *parser)
{
	struct scan *scan = &parser->scan;

	for (unsigned i = 0; i < PLAN_COLLECTIVE_COUNT; i++) {
		if (scan_is(scan, plan_collective_name((enum plan_collective)i))) {
			parser->plan->chunks.collective = (enum plan_collective)i;
			return true;
		}
	}
	return plan_scan_expected(scan, "allreduce, reduce-scatter, allgather, broadcast, reduce, gather, scatter, "
	                                "alltoall or barrier");
}

static bool take_root(struct parser *parser)
{
	uint64_t root;

	if (!scan_number(&parser->scan, "the number of a node", &root))
		return false;
	if (root >= WORKERS_MAX)
		return plan_scan_fail(&parser->scan, "root %llu: there are at most %u nodes", (unsigned long long)root,
		                      WORKERS_MAX);
	parser->plan->chunks.root = (uint32_t)root;
	parser->root_line = parser->scan.line;
	return true;
}

static bool take_nodes(struct parser *parser)
{
	struct scan *scan = &parser->scan;
	struct plan *plan = parser->plan;
	uint64_t workers;

	if (!scan_number(scan, "how many nodes there are", &workers))
		return false;
	if (workers == 0 || workers > WORKERS_MAX)
		return plan_scan_fail(scan, "%llu nodes: there are 1 to %u", (unsigned long long)workers, WORKERS_MAX);
	plan->workers = plan->nodes = (uint32_t)workers;
	if (plan->chunks.root >= workers) {
		scan->line = parser->root_line;
		return plan_scan_fail(scan, "root %u is not among the %u nodes", plan->chunks.root, plan->workers);
	}
	return plan_parse_rows_fit(parser, 1);
}

static bool take_extra(struct parser *parser)
{
	struct plan *plan = parser->plan;
	uint64_t extra;

	if (!scan_number(&parser->scan, "how many nodes hold no data", &extra))
		return false;
	if (extra > PLANNER_NODES_MAX - plan->workers)
		return plan_scan_fail(&parser->scan, "%llu extra nodes: there are at most %u nodes in all",
		                      (unsigned long long)extra, PLANNER_NODES_MAX);
	plan->nodes += (uint32_t)extra;
	return plan_parse_rows_fit(parser, 1);
}

static bool take_switches(struct parser *parser)
{
	struct plan *plan = parser->plan;
	uint64_t switches;

	if (!scan_number(&parser->scan, "how many of the extra nodes are switches", &switches))
		return false;
	if (switches > plan->nodes - plan->workers)
		return plan_scan_fail(&parser->scan, "%llu switches: there are %u extra nodes", (unsigned long long)switches,
		                      plan->nodes - plan->workers);
	plan->switches = (uint32_t)switches;
	return true;
}

static bool take_in_place(struct parser *parser)
{
	struct scan *scan = &parser->scan;

	if (scan_is(scan, "no"))
		return true;
	if (!scan_is(scan, "yes"))
		return plan_scan_expected(scan, "yes or no");
	if (parser->plan->chunks.collective == PLAN_ALLTOALL)
		return plan_scan_fail(scan,
		                      "alltoall cannot be done in place: what is sent to a node lies where its answer goes");
	parser->plan->in_place = true;
	return true;
}

/* Groups are numbered 0 .. G-1 and none is empty; counted in `seen`, a byte per node. */
static bool count_groups(struct parser *parser, const struct parse_list *groups, uint8_t *seen)
{
	struct plan *plan = parser->plan;

	for (uint64_t i = 0; i < groups->count; i++) {
		uint64_t group = groups->runs[i].value;

		if (group >= plan->nodes)
			return plan_scan_fail(&parser->scan, "group %llu: groups are numbered from 0 up to at most %u",
			                      (unsigned long long)group, plan->nodes - 1);
		seen[group] = 1;
		if (group >= plan->group_count)
			plan->group_count = (uint32_t)group + 1;
	}
	for (uint32_t g = 0; g < plan->group_count; g++) {
		if (!seen[g])
			return plan_scan_fail(&parser->scan, "group %u of %u has no node", g, plan->group_count);
	}
	return true;
}

static bool set_groups(struct parser *parser, const struct parse_list *groups)
{
	struct plan *plan = parser->plan;
	uint8_t *seen = calloc(plan->nodes, 1);
	uint32_t node = 0;

	plan->group_of = malloc(plan->nodes * sizeof(*plan->group_of));
	if (!seen || !plan->group_of) {
		free(seen);
		return plan_scan_stop(&parser->scan, ESP_ENOMEM, "no memory for groups");
	}
	bool good = count_groups(parser, groups, seen);
	for (uint64_t i = 0; good && i < groups->count; i++) {
		while (node < groups->runs[i].end)
			plan->group_of[node++] = (uint32_t)groups->runs[i].value;
	}
	free(seen);
	return good;
}

static bool take_groups(struct parser *parser)
{
	struct parse_list groups = {0};
	bool good = take_list(parser, "the number of a group", &groups, parser->plan->nodes) &&
	            set_groups(parser, &groups);

	free(groups.runs);
	return good;
}

static bool take_lap(struct parser *parser)
{
	uint64_t lap;

	if (!scan_number(&parser->scan, "how many chunks are numbered together", &lap))
		return false;
	if (lap == 0 || lap > UINT32_MAX)
		return plan_scan_fail(&parser->scan, "lap %llu: a lap has 1 to %u chunks", (unsigned long long)lap, UINT32_MAX);
	parser->plan->lap = (uint32_t)lap;
	parser->lap_line = parser->scan.line;
	return plan_parse_turns_init(parser);
}

static bool take_abreast(struct parser *parser)
{
	uint64_t abreast;

	if (!scan_number(&parser->scan, "how many chunks are under way at least", &abreast))
		return false;
	if (abreast > UINT32_MAX)
		return plan_scan_fail(&parser->scan, "abreast %llu: there are at most %u", (unsigned long long)abreast,
		                      UINT32_MAX);
	parser->plan->abreast = (uint32_t)abreast;
	return true;
}

static bool take_input(struct parser *parser)
{
	return take_list(parser, "the bytes of a node's input", &parser->input, parser->plan->workers);
}

static bool take_output(struct parser *parser)
{
	return take_list(parser, "the bytes of a node's output", &parser->output, parser->plan->workers);
}

static const struct key {
	const char *word;
	bool required;
	bool (*take)(struct parser *parser);
} keys[] = {
	{"planner", false, take_planner},   {"collective", true, take_collective}, {"root", false, take_root},
	{"nodes", true, take_nodes},        {"extra", false, take_extra},          {"switches", false, take_switches},
	{"in-place", false, take_in_place}, {"groups", false, take_groups},        {"lap", false, take_lap},
	{"abreast", false, take_abreast},   {"input", true, take_input},           {"output", true, take_output},
};
#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static size_t take_key(struct parser *parser)
{
	size_t key = 0;

	while (key < KEY_COUNT && !scan_is(&parser->scan, keys[key].word))
		key++;
	return key;
}

/* May keys[key] follow, if keys[next] is the first that may? */
static bool key_in_order(struct parser *parser, size_t next, size_t key)
{
	if (key < next)
		return plan_scan_fail(&parser->scan,
		                      "'%s' is repeated or too late: the order is planner, collective, root, nodes, "
		                      "extra, switches, in-place, groups, lap, abreast, input, output",
		                      keys[key].word);
	for (size_t i = next; i < key; i++) {
		if (keys[i].required)
			return plan_scan_fail(&parser->scan, "'%s' is missing before this line", keys[i].word);
	}
	return true;
}

static bool take_version(struct parser *parser)
{
	struct scan *scan = &parser->scan;
	uint64_t version;

	if (!plan_scan_line(scan) || !scan_is(scan, "espalier-plan"))
		return plan_scan_fail(scan, "this is not a plan: the first line has to be 'espalier-plan 1'");
	if (!scan_number(scan, "the version of the language", &version))
		return false;
	if (version != 1)
		return plan_scan_fail(scan, "version %llu of the plan language is unknown: this program reads version 1",
		                      (unsigned long long)version);
	return plan_scan_end_line(scan);
}

bool plan_parse_head(struct parser *parser)
{
	parser->plan->planner = &planner_custom;
	if (!take_version(parser))
		return false;
	for (size_t next = 0;;) {
		if (!plan_scan_line(&parser->scan))
			return plan_scan_fail(&parser->scan, "the text ends before its 'end'");
		size_t key = take_key(parser);
		if (!key_in_order(parser, next, key))
			return false;
		if (key == KEY_COUNT)
			return true; /* the caller sees which key it is instead */
		if (!keys[key].take(parser) || !plan_scan_end_line(&parser->scan))
			return false;
		next = key + 1;
	}
}
