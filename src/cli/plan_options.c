#include "cli/plan_options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/word.h"
#include "cli/cli.h"
#include "cli/plan_file.h"
#include "topo/groups.h"
#include "plan/text.h"

#define CHUNK_BYTES 4096u /* of a chunk, where nobody says how large the buffer is */
#define NODES_MAX (1u << 24)

static const char *const collective_names[] = {"allreduce", "reduce-scatter", "allgather", "broadcast", "reduce",
                                               "gather",    "scatter",        "alltoall",  "barrier",   NULL};
static_assert(sizeof(collective_names) / sizeof(collective_names[0]) == PLAN_COLLECTIVE_COUNT + 1,
              "one name per collective, in the order of the enum");
static const char *const placements[] = {"contiguous", "interleaved", NULL};

size_t plan_request_options(struct plan_request *request, struct cli_option *options)
{
	*request = (struct plan_request){.bytes = PLAN_UNSET};
	const struct cli_option all[] = {
		{"nodes", 'n', CLI_U64, &request->nodes, "N", "how many nodes hold data", 1, NODES_MAX, NULL},
		{"collective", 'c', CLI_CHOICE, &request->collective, "NAME", "what to do (default allreduce)", 0, 0,
		 collective_names},
		{"chunks", 'k', CLI_U64, &request->chunks, "K",
		 "cut the buffer into at most K equal chunks (default: what shows the planner best)", 1, 1u << 30, NULL},
		{"bytes", 'b', CLI_BYTES, &request->bytes, "B", "size of the whole buffer (default: 4K a chunk)", 0, 0, NULL},
		{"racks", 'C', CLI_U64, &request->racks, "C", "the nodes stand in C equal racks, which are the groups", 1,
		 NODES_MAX, NULL},
		{"place", 0, CLI_CHOICE, &request->place, "HOW", "how nodes fill the racks (default contiguous)", 0, 0,
		 placements},
		{"groups", 'g', CLI_STRING, &request->groups, "FILE", "the groups, a line each: nodes and ranges, as in 0-3 7",
		 0, 0, NULL},
		{"root", 'r', CLI_U64, &request->root, "R",
		 "root of broadcast, reduce, gather and scatter; server of central (default 0)", 0, NODES_MAX, NULL},
		{"fanout", 'f', CLI_U64, &request->fanout, "F", "tree: children of a node (default 2)", 1, NODES_MAX, NULL},
		{"leaves", 0, CLI_FLAG, &request->leaves, NULL, "tree: all nodes are leaves, and extra nodes add", 0, 0, NULL},
		{"dedicated", 0, CLI_FLAG, &request->dedicated, NULL, "central: the server is an extra node", 0, 0, NULL},
		{"in-place", 0, CLI_FLAG, &request->in_place, NULL, "input and output are the same memory", 0, 0, NULL},
		{"counts", 0, CLI_STRING, &request->counts, "LIST",
		 "bytes of each block, as in 4K,0,8K or @FILE, in place of --bytes", 0, 0, NULL},
	};
	memcpy(options, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

struct cli_option plan_request_planner(struct plan_request *request)
{
	return (struct cli_option){"planner", 'p', CLI_STRING, &request->planner, "NAME", "who makes the plan", 0, 0, NULL};
}

/* ---- planners ---- */

const char *plan_about(const char *sentence, char text[PLAN_ABOUT_TEXT])
{
	size_t used = (size_t)snprintf(text, PLAN_ABOUT_TEXT, "%s\n\nplanners:", sentence);

	for (unsigned i = 0; plan_planner(i) && used < PLAN_ABOUT_TEXT; i++)
		used += (size_t)snprintf(text + used, PLAN_ABOUT_TEXT - used, "\n  %-16s  %s", planner_name(plan_planner(i)),
		                         planner_summary(plan_planner(i)));
	return text;
}

static const char *planner_name_at(const void *list, size_t index)
{
	const struct planner *planner = plan_planner((unsigned)index);
	(void)list;

	return planner ? planner_name(planner) : NULL;
}

const struct planner *plan_find(const char *name, struct error *err)
{
	const struct planner *planner = plan_planner_find(name);
	char names[160] = "";
	size_t used = 0;

	if (planner)
		return planner;
	const char *near = word_nearest(name, planner_name_at, NULL);
	if (near) {
		error_set(err, ESP_EINVAL, "unknown planner '%.64s'; did you mean '%s'?", name, near);
		return NULL;
	}
	for (unsigned i = 0; plan_planner(i) && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
		                         planner_name(plan_planner(i)));
	error_set(err, ESP_EINVAL, "unknown planner '%.64s'; there are %s", name, names);
	return NULL;
}

/* The fewest chunks with which every node has its part: then the picture is the algorithm. */
static uint64_t habitual_chunks(const struct planner *planner, uint32_t nodes)
{
	static const struct {
		const char *name;
		uint32_t chunks;
	} same_for_all[] = {{"butterfly", 1}, {"tree", 1}, {"central", 1}, {"double-tree", 2}};

	for (size_t i = 0; i < sizeof(same_for_all) / sizeof(same_for_all[0]); i++) {
		if (strcmp(planner_name(planner), same_for_all[i].name) == 0)
			return same_for_all[i].chunks;
	}
	return nodes;
}

/* ---- sizes ---- */

/* Blocks that make up one buffer: a row of them in an all-to-all. */
static uint32_t blocks_in_buffer(const struct chunks_spec *spec)
{
	switch (spec->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_BROADCAST:
	case PLAN_REDUCE:
	case PLAN_BARRIER:
		return 1;
	default:
		return spec->workers;
	}
}

static uint64_t blocks_in_all(const struct chunks_spec *spec)
{
	return spec->collective == PLAN_ALLTOALL ? (uint64_t)spec->workers * spec->workers : blocks_in_buffer(spec);
}

static enum esp_status allocate_counts(struct plan_setup *setup, struct error *err)
{
	uint64_t count = blocks_in_all(&setup->spec.chunks);

	setup->counts = calloc(count, sizeof(*setup->counts));
	setup->spec.chunks.counts = setup->counts;
	return setup->counts ? ESP_OK
	                     : error_set(err, ESP_ENOMEM, "no memory for the sizes of %llu blocks",
	                                 (unsigned long long)count);
}

/* A buffer that does not divide by its blocks: the first ones get a byte more. */
static enum esp_status share_bytes(struct plan_setup *setup, uint64_t bytes, struct error *err)
{
	uint64_t blocks = blocks_in_buffer(&setup->spec.chunks), all = blocks_in_all(&setup->spec.chunks);

	if (bytes % blocks == 0) {
		setup->spec.chunks.bytes = bytes / blocks;
		return ESP_OK;
	}
	enum esp_status status = allocate_counts(setup, err);
	for (uint64_t b = 0; status == ESP_OK && b < all; b++)
		setup->counts[b] = bytes / blocks + (b % blocks < bytes % blocks);
	return status;
}

static enum esp_status size_buffer(struct plan_setup *setup, const struct plan_request *request,
                                   const struct planner *planner, struct error *err)
{
	struct chunks_spec *chunks = &setup->spec.chunks;
	uint64_t blocks = blocks_in_buffer(chunks);
	uint64_t count = request->chunks, bytes = request->bytes;

	if (!count)
		count = blocks > 1 ? blocks : habitual_chunks(planner, chunks->workers);
	if (bytes == PLAN_UNSET)
		bytes = chunks->collective == PLAN_BARRIER ? 0 : count * CHUNK_BYTES;
	chunks->chunk_bytes = bytes ? (bytes - 1) / count + 1 : 0;
	return share_bytes(setup, bytes, err);
}

/* ---- counts ---- */

static bool is_separator(char c)
{
	return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static enum esp_status parse_counts(struct plan_setup *setup, const char *text, size_t length, struct error *err)
{
	uint64_t wanted = blocks_in_all(&setup->spec.chunks), found = 0;
	const char *end = text + length;

	while (text < end) {
		const char *word = text;

		while (text < end && !is_separator(*text))
			text++;
		if (text > word) {
			uint64_t bytes;

			if (!number_parse_bytes(word, (size_t)(text - word), &bytes))
				return error_set(err, ESP_EPARSE, "--counts: '%.*s' is no number of bytes",
				                 (int)(text - word < 40 ? text - word : 40), word);
			if (found < wanted)
				setup->counts[found] = bytes;
			found++;
		}
		text++;
	}
	if (found == wanted)
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "--counts: %llu sizes for %llu blocks", (unsigned long long)found,
	                 (unsigned long long)wanted);
}

static enum esp_status read_counts(struct plan_setup *setup, const char *list, struct error *err)
{
	struct plan_file file;

	if (list[0] != '@')
		return parse_counts(setup, list, strlen(list), err);
	enum esp_status status = plan_file_open(&file, list + 1, err);
	if (status != ESP_OK)
		return status;
	status = parse_counts(setup, file.text, file.length, err);
	plan_file_close(&file);
	return status;
}

static enum esp_status size_blocks(struct plan_setup *setup, const struct plan_request *request, struct error *err)
{
	enum esp_status status = allocate_counts(setup, err);
	struct chunks_spec *chunks = &setup->spec.chunks;
	uint64_t total = 0;

	if (status == ESP_OK)
		status = read_counts(setup, request->counts, err);
	if (status != ESP_OK || !request->chunks)
		return status;
	for (uint64_t b = 0; b < blocks_in_all(chunks); b++)
		total += setup->counts[b] / (blocks_in_all(chunks) / blocks_in_buffer(chunks));
	chunks->chunk_bytes = total ? (total - 1) / request->chunks + 1 : 0;
	return ESP_OK;
}

/* ---- groups ---- */

static enum esp_status read_groups(struct plan_setup *setup, const char *name, struct error *err)
{
	struct plan_file file;
	struct error inner;
	enum esp_status status = plan_file_open(&file, name, err);

	if (status != ESP_OK)
		return status;
	status = groups_parse(file.text, file.length, setup->spec.chunks.workers, setup->group_of, &inner);
	if (status != ESP_OK)
		error_set(err, status, "%.100s: %.140s", name, inner.text);
	plan_file_close(&file);
	return status;
}

static enum esp_status fill_groups(struct plan_setup *setup, const struct plan_request *request, struct error *err)
{
	uint32_t nodes = setup->spec.chunks.workers;

	if (request->groups && request->racks)
		return error_set(err, ESP_EINVAL, "--groups and --racks both say what the groups are: give one of them");
	if (!request->groups && !request->racks)
		return ESP_OK;
	if (request->racks > nodes)
		return error_set(err, ESP_EINVAL, "--racks: %llu racks are too many for %u nodes",
		                 (unsigned long long)request->racks, nodes);
	assert(nodes > 0); /* check_request() has seen to it */
	setup->group_of = malloc(nodes * sizeof(*setup->group_of));
	if (!setup->group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", nodes);
	setup->spec.group_of = setup->group_of;
	if (request->groups)
		return read_groups(setup, request->groups, err);
	groups_racks(nodes, (uint32_t)request->racks, (enum placement)request->place, setup->group_of);
	return ESP_OK;
}

/* ---- setups and plans ---- */

static enum esp_status check_request(const struct plan_request *request, const struct planner *planner,
                                     struct error *err)
{
	if (request->nodes == 0)
		return error_set(err, ESP_EINVAL, "how many nodes? Give --nodes N");
	if (request->nodes > NODES_MAX)
		return error_set(err, ESP_EINVAL, "%llu nodes are too many: at most %u", (unsigned long long)request->nodes,
		                 NODES_MAX);
	if (planner_needs_groups(planner) && !request->groups && !request->racks)
		return error_set(err, ESP_EINVAL, "%s sums within groups: say which node is in which, with --racks C or "
		                 "--groups FILE", planner_name(planner));
	if (request->counts && request->bytes != PLAN_UNSET)
		return error_set(err, ESP_EINVAL, "--counts and --bytes both say how large the buffer is: give one of them");
	return ESP_OK;
}

enum esp_status plan_setup_init(struct plan_setup *setup, const struct plan_request *request,
                                const struct planner *planner, struct error *err)
{
	enum esp_status status = check_request(request, planner, err);

	*setup = (struct plan_setup){
		.spec = {
			.chunks = {
				.collective = (enum plan_collective)request->collective,
				.workers = (uint32_t)request->nodes,
				.root = (uint32_t)request->root,
			},
			.in_place = request->in_place,
			.fanout = (uint32_t)request->fanout,
			.leaves = request->leaves,
			.dedicated = request->dedicated,
		},
	};
	if (status == ESP_OK)
		status = fill_groups(setup, request, err);
	if (status == ESP_OK)
		status = request->counts ? size_blocks(setup, request, err) : size_buffer(setup, request, planner, err);
	if (status != ESP_OK)
		plan_setup_fini(setup);
	return status;
}

void plan_setup_fini(struct plan_setup *setup)
{
	free(setup->group_of);
	free(setup->counts);
	*setup = (struct plan_setup){0};
}

enum esp_status plan_request_open(const struct plan_request *request, struct plan **out, struct error *err)
{
	const struct planner *planner = plan_find(request->planner, err);
	struct plan_setup setup;

	if (!planner)
		return ESP_EINVAL;
	enum esp_status status = plan_setup_init(&setup, request, planner, err);
	if (status != ESP_OK)
		return status;
	status = plan_open(planner, &setup.spec, out, err);
	plan_setup_fini(&setup);
	return status;
}

static enum esp_status read_plan(const char *name, struct plan **out, struct error *err)
{
	struct plan_file file;
	struct error inner;
	enum esp_status status = plan_file_open(&file, name, err);

	if (status != ESP_OK)
		return status;
	status = plan_parse(file.text, file.length, out, &inner);
	if (status != ESP_OK)
		error_set(err, status, "%.100s: %.140s", name, inner.text);
	plan_file_close(&file);
	return status;
}

int plan_complain(const char *command, const struct error *err)
{
	/* Nothing is wrong with what was typed where memory or the disk ran out. */
	if (err->status == ESP_ENOMEM)
		return cli_fail("%s: %s", command, err->text);
	return cli_usage_error("%s: %s", command, err->text);
}

int plan_from(const struct plan_request *request, const char *command, const char *file, struct plan **out)
{
	struct error err = {0};
	enum esp_status status;

	if (file && (request->planner || request->nodes))
		return cli_usage_error("%s: a FILE holds its plan already; --planner and --nodes make another", command);
	if (!file && !request->planner)
		return cli_usage_error("%s: which plan? Give a FILE (- is the standard input), or --planner NAME and --nodes N",
		                       command);
	status = file ? read_plan(file, out, &err) : plan_request_open(request, out, &err);
	err.status = status;
	return status == ESP_OK ? -1 : plan_complain(command, &err);
}

const char *plan_origin(const struct plan *plan)
{
	return plan->planner ? planner_name(plan->planner) : "hand-written";
}
