#include "tools/plan/plan_setup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/infile.h"
#include "base/number.h"
#include "network/topo/groups.h"
#include "report/complain.h"

#define CHUNK_BYTES 4096u /* of a chunk, if the size of the buffer is not given */

/* ---- sizes ---- */

/* The fewest chunks for which every node has its part: the picture of such a plan shows the algorithm. */
static uint64_t default_chunks(const struct planner *planner, uint32_t nodes)
{
	static const struct {
		const char *name;
		uint32_t chunks;
	} same_for_all[] = {{"butterfly", 1}, {"exchange", 1}, {"tree", 1},
	                    {"central", 1},   {"twin", 1},     {"double-tree", 2}};

	for (size_t i = 0; i < sizeof(same_for_all) / sizeof(same_for_all[0]); i++) {
		if (strcmp(plan_planner_name(planner), same_for_all[i].name) == 0)
			return same_for_all[i].chunks;
	}
	return nodes;
}

/* Number of blocks in one buffer: a row of them in an all-to-all. */
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

/* Number of buffers with different blocks: each node's in an all-to-all. */
static uint32_t buffers_apart(const struct chunks_spec *spec)
{
	assert(spec->workers > 0); /* checked by check_request() */
	return spec->collective == PLAN_ALLTOALL ? spec->workers : 1;
}

static uint64_t blocks_in_all(const struct chunks_spec *spec)
{
	return (uint64_t)blocks_in_buffer(spec) * buffers_apart(spec);
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

/* Divides a buffer into blocks; if it does not divide evenly, the first ones get one byte more. */
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
		count = blocks > 1 ? blocks : default_chunks(planner, chunks->workers);
	if (!request->given[PLAN_OPTION_BYTES])
		bytes = chunks->collective == PLAN_BARRIER ? 0 : count * CHUNK_BYTES;
	chunks->chunk_bytes = bytes ? (bytes - 1) / count + 1 : 0;
	return share_bytes(setup, bytes, err);
}

/* ---- counts ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Sizes separated by blanks or commas; two commas must have a size between them. */
struct counts_list {
	uint64_t *counts;
	uint64_t wanted, found;
	bool awaited; /* a comma was read, so another size must follow */
	struct error *err;
};

static enum esp_status take_comma(struct counts_list *list)
{
	if (list->awaited || list->found == 0)
		return error_set(list->err, ESP_EPARSE, "--counts: size number %llu is empty",
		                 (unsigned long long)list->found + 1);
	list->awaited = true;
	return ESP_OK;
}

static enum esp_status take_count(struct counts_list *list, const char *word, size_t length)
{
	uint64_t bytes;

	if (!number_parse_bytes(word, length, &bytes))
		return error_set(list->err, ESP_EPARSE,
		                 "--counts: '%.*s' is no number of bytes such as 4096 or 64K (K, M, G and T: powers of 1024)",
		                 (int)(length < 40 ? length : 40), word);
	if (list->found < list->wanted)
		list->counts[list->found] = bytes;
	list->found++;
	list->awaited = false;
	return ESP_OK;
}

static enum esp_status parse_counts(struct plan_setup *setup, const char *text, size_t length, struct error *err)
{
	struct counts_list list = {.counts = setup->counts, .wanted = blocks_in_all(&setup->spec.chunks), .err = err};
	const char *end = text + length;
	enum esp_status status = ESP_OK;

	assert(setup->counts);
	while (status == ESP_OK && text < end) {
		const char *word = text;

		while (text < end && *text != ',' && !is_blank(*text))
			text++;
		if (text > word)
			status = take_count(&list, word, (size_t)(text - word));
		else if (*text++ == ',')
			status = take_comma(&list);
	}
	if (status == ESP_OK && list.awaited)
		status = take_comma(&list); /* the size after the last comma is missing */
	if (status != ESP_OK || list.found == list.wanted)
		return status;
	return error_set(err, ESP_EINVAL, "--counts: %llu size%s for %llu block%s", (unsigned long long)list.found,
	                 plural(list.found), (unsigned long long)list.wanted, plural(list.wanted));
}

static enum esp_status read_counts(struct plan_setup *setup, const char *list, struct error *err)
{
	struct infile file;

	if (list[0] != '@')
		return parse_counts(setup, list, strlen(list), err);
	enum esp_status status = infile_open(&file, list + 1, err);
	if (status != ESP_OK)
		return status;
	status = parse_counts(setup, file.text, file.length, err);
	infile_close(&file);
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
		total += setup->counts[b] / buffers_apart(chunks);
	chunks->chunk_bytes = total ? (total - 1) / request->chunks + 1 : 0;
	return ESP_OK;
}

/* ---- groups ---- */

static enum esp_status read_groups(struct plan_setup *setup, const char *name, struct error *err)
{
	struct infile file;
	struct error inner;
	enum esp_status status = infile_open(&file, name, err);

	if (status != ESP_OK)
		return status;
	status = groups_parse(file.text, file.length, setup->spec.chunks.workers, setup->group_of, &inner);
	if (status != ESP_OK)
		error_set(err, status, "%.100s: %.140s", name, inner.text);
	infile_close(&file);
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
		return error_set(err, ESP_EINVAL, "--racks: %llu racks are too many for %u node%s",
		                 (unsigned long long)request->racks, nodes, plural(nodes));
	assert(nodes > 0); /* checked by check_request() */
	setup->group_of = malloc(nodes * sizeof(*setup->group_of));
	if (!setup->group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", nodes);
	setup->spec.group_of = setup->group_of;
	if (request->groups)
		return read_groups(setup, request->groups, err);
	groups_racks(nodes, (uint32_t)request->racks, (enum placement)request->place, setup->group_of);
	return ESP_OK;
}

/* The order of nodes: group by group, by rank within each. */
static enum esp_status fill_order(struct plan_setup *setup, struct error *err)
{
	uint32_t nodes = setup->spec.chunks.workers, at = 0;
	uint32_t *first = calloc((size_t)nodes + 1, sizeof(*first));

	setup->order = calloc(nodes, sizeof(*setup->order));
	if (!first || !setup->order) {
		free(first);
		return error_set(err, ESP_ENOMEM, "no memory for the order of %u nodes", nodes);
	}
	for (uint32_t i = 0; i < nodes; i++)
		first[setup->group_of[i] + 1]++;
	for (; at + 1 < nodes; at++)
		first[at + 1] += first[at];
	for (uint32_t i = 0; i < nodes; i++)
		setup->order[first[setup->group_of[i]]++] = i;
	free(first);
	setup->spec.order = setup->order;
	return ESP_OK;
}

static enum esp_status fill_zones(struct plan_setup *setup, uint64_t zones, struct error *err)
{
	uint32_t groups = 0;

	for (uint32_t i = 0; i < setup->spec.chunks.workers; i++)
		groups = setup->group_of[i] >= groups ? setup->group_of[i] + 1 : groups;
	if (zones > groups)
		return error_set(err, ESP_EINVAL, "--zones: %llu zones are too many for %u group%s", (unsigned long long)zones,
		                 groups, plural(groups));
	setup->zone_of = calloc(groups, sizeof(*setup->zone_of));
	if (!setup->zone_of)
		return error_set(err, ESP_ENOMEM, "no memory for the zones of %u groups", groups);
	groups_racks(groups, (uint32_t)zones, PLACE_CONTIGUOUS, setup->zone_of);
	setup->spec.zone_of = setup->zone_of;
	return ESP_OK;
}

/* ---- limits ---- */

static unsigned log2_above(uint64_t value)
{
	unsigned bits = 0;

	while (bits < 63 && (uint64_t)1 << bits < value)
		bits++;
	return bits;
}

/*
 * The most bytes of a buffer, as a power of two, for which the checker's counts of all messages fit into 64 bits. A
 * byte travels to every node and back at most, over at most two hops each if a tree has extra nodes; a butterfly
 * sends it log N times, an exchange N times; in an all-to-all each of N buffers may go once around.
 */
static uint64_t countable_bytes(const struct chunks_spec *spec, const struct planner *planner)
{
	unsigned nodes = log2_above(spec->workers), times = 2;

	if (spec->collective == PLAN_ALLTOALL || planner == &planner_exchange)
		times = nodes;
	else if (planner == &planner_butterfly)
		times = 1 + log2_above(nodes);
	return (uint64_t)1 << (63 - nodes - times);
}

/* True if the counts add up to at most `left`. */
static bool counts_fit(const uint64_t *counts, uint64_t blocks, uint64_t left)
{
	for (uint64_t b = 0; b < blocks; b++) {
		if (counts[b] > left)
			return false;
		left -= counts[b];
	}
	return true;
}

static enum esp_status check_size(const struct plan_setup *setup, const struct plan_request *request,
                                  const struct planner *planner, struct error *err)
{
	const struct chunks_spec *spec = &setup->spec.chunks;
	uint64_t most = countable_bytes(spec, planner);
	uint32_t parts = blocks_in_buffer(spec);
	char text[NUMBER_BYTES_TEXT];

	assert(parts > 0);
	if (setup->counts ? counts_fit(setup->counts, blocks_in_all(spec), most * buffers_apart(spec))
	                  : spec->bytes <= most / parts)
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "--%s: so many bytes cannot be counted on %u node%s: at most %s",
	                 request->counts ? "counts" : "bytes", spec->workers, plural(spec->workers),
	                 number_format_bytes(most, text));
}

static enum esp_status count_chunks(struct plan_setup *setup, struct error *err)
{
	struct chunks chunks;
	enum esp_status status = plan_chunks_init(&chunks, &setup->spec.chunks, err);

	if (status != ESP_OK)
		return status;
	setup->chunk_count = chunks.chunk_count;
	plan_chunks_fini(&chunks);
	return ESP_OK;
}

/* ---- the setup ---- */

static enum esp_status check_request(const struct plan_request *request, const struct planner *planner,
                                     struct error *err)
{
	if (request->nodes == 0)
		return error_set(err, ESP_EINVAL, "how many nodes? Give --nodes N");
	if (request->nodes > PLAN_NODES_MAX)
		return error_set(err, ESP_EINVAL, "%llu nodes are too many: at most %u", (unsigned long long)request->nodes,
		                 PLAN_NODES_MAX);
	if (plan_planner_needs_groups(planner) && !request->groups && !request->racks)
		return error_set(err, ESP_EINVAL,
		                 "%s sums within groups: say which node is in which, with --racks C or "
		                 "--groups FILE",
		                 plan_planner_name(planner));
	if (request->counts && request->given[PLAN_OPTION_BYTES])
		return error_set(err, ESP_EINVAL, "--counts and --bytes both say how large the buffer is: give one of them");
	return ESP_OK;
}

enum esp_status plan_tool_setup_init(struct plan_setup *setup, const struct plan_request *request,
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
			.servers = request->dedicated ? 1 : (uint32_t)request->servers,
		},
	};
	if (status == ESP_OK)
		status = fill_groups(setup, request, err);
	bool takes_order = !plan_planner_needs_groups(planner) && !plan_planner_has_extra(planner);
	if (status == ESP_OK && request->ordered && setup->group_of && takes_order)
		status = fill_order(setup, err);
	if (status == ESP_OK && request->zones && setup->group_of)
		status = fill_zones(setup, request->zones, err);
	if (status == ESP_OK)
		status = request->counts ? size_blocks(setup, request, err) : size_buffer(setup, request, planner, err);
	if (status == ESP_OK)
		status = check_size(setup, request, planner, err);
	if (status == ESP_OK)
		status = count_chunks(setup, err);
	if (status != ESP_OK)
		plan_tool_setup_fini(setup);
	return status;
}

void plan_tool_setup_fini(struct plan_setup *setup)
{
	free(setup->group_of);
	free(setup->order);
	free(setup->zone_of);
	free(setup->counts);
	*setup = (struct plan_setup){0};
}
