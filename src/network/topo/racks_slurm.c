/*
 * racks_slurm.c - reads Slurm's topology.conf: switches, the nodes and switches below them; blocks. Pure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/quote.h"
#include "base/vec.h"
#include "network/topo/nodelist.h"
#include "network/topo/racks_parts.h"

#define NONE UINT32_MAX
#define SWITCHES_MAX 65536u

/* A line: a switch or a block. */
struct leaf {
	char *name;
	char *nodes;    /* a list of hosts, or NULL    */
	char *switches; /* a list of switches, or NULL */
	uint32_t line;
	uint32_t parent; /* NONE: at the top            */
	uint32_t depth;  /* 1 at the top */
};

struct slurm {
	struct leaf *all;
	uint32_t count;
	size_t capacity;
	uint32_t line;
	struct error *err;
};

/* ---- lines ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static enum esp_status add_leaf(struct slurm *slurm)
{
	if (slurm->count == SWITCHES_MAX) {
		(void)error_set(slurm->err, ESP_EPARSE, "line %u: more than %u switches", slurm->line, SWITCHES_MAX);
		return ESP_EPARSE;
	}
	if (!vec_reserve(&slurm->all, &slurm->capacity, (size_t)slurm->count + 1, sizeof(*slurm->all))) {
		(void)error_set(slurm->err, ESP_ENOMEM, "no memory for the switches of a topology.conf");
		return ESP_ENOMEM;
	}
	slurm->all[slurm->count++] = (struct leaf){.line = slurm->line, .parent = NONE};
	return ESP_OK;
}

static char **field_of(struct leaf *leaf, const char *key, size_t length)
{
	static const char *const names[] = {"SwitchName", "BlockName", "Nodes", "Switches"};
	char **fields[] = {&leaf->name, &leaf->name, &leaf->nodes, &leaf->switches};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == length && strncasecmp(names[i], key, length) == 0)
			return fields[i];
	}
	return NULL;
}

/* Keys that do not concern the tree. */
static bool is_ignored(const char *key, size_t length)
{
	static const char *const names[] = {"LinkSpeed", "BlockSizes"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == length && strncasecmp(names[i], key, length) == 0)
			return true;
	}
	return false;
}

/* One "Key=value". */
static enum esp_status read_pair(struct slurm *slurm, struct leaf *leaf, const char *word, size_t length)
{
	const char *equals = memchr(word, '=', length);
	char shown[QUOTE_TEXT];

	if (!equals || equals == word || equals + 1 == word + length || memchr(word, 0, length))
		return error_set(slurm->err, ESP_EPARSE, "line %u: %s is not Key=value", slurm->line,
		                 quote(word, length, shown));
	size_t key = (size_t)(equals - word);
	if (is_ignored(word, key))
		return ESP_OK;
	char **field = field_of(leaf, word, key);
	if (!field)
		return error_set(slurm->err, ESP_EPARSE,
		                 "line %u: %s is not known; SwitchName, BlockName, Nodes and Switches are", slurm->line,
		                 quote(word, key, shown));
	if (*field)
		return error_set(slurm->err, ESP_EPARSE, "line %u: %s is there a second time", slurm->line,
		                 quote(word, key, shown));
	*field = strndup(equals + 1, length - key - 1);
	return *field ? ESP_OK : error_set(slurm->err, ESP_ENOMEM, "no memory for the switches of a topology.conf");
}

/* Checks a list for nodelist.h; *out_count: its number of names. */
static enum esp_status check_list(const struct slurm *slurm, const struct leaf *leaf, const char *list, const char *key,
                                  uint64_t *out_count)
{
	char what[48];
	struct error reason;

	snprintf(what, sizeof(what), "line %u: %s", leaf->line, key);
	if (nodelist_count(list, what, out_count, &reason) != ESP_OK)
		return error_set(slurm->err, ESP_EPARSE, "%s", reason.text);
	return ESP_OK;
}

static enum esp_status check_leaf(const struct slurm *slurm, const struct leaf *leaf)
{
	uint64_t count;

	if (!leaf->name)
		return error_set(slurm->err, ESP_EPARSE, "line %u: SwitchName= is missing", leaf->line);
	if (!leaf->nodes == !leaf->switches)
		return error_set(slurm->err, ESP_EPARSE, "line %u: a switch has either Nodes= or Switches=", leaf->line);
	return check_list(slurm, leaf, leaf->nodes ? leaf->nodes : leaf->switches, leaf->nodes ? "Nodes" : "Switches",
	                  &count);
}

/* The words of a logical line. BlockSizes= alone makes no switch. */
static enum esp_status read_words(struct slurm *slurm, const char *at, const char *end)
{
	enum esp_status status = ESP_OK;
	struct leaf leaf = {.line = slurm->line, .parent = NONE};
	bool is_any = false;

	while (status == ESP_OK) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end || *at == '#')
			break;
		const char *word = at;
		while (at < end && !is_blank(*at) && *at != '#')
			at++;
		status = read_pair(slurm, &leaf, word, (size_t)(at - word));
		is_any = is_any || leaf.name || leaf.nodes || leaf.switches;
	}
	if (status == ESP_OK && is_any)
		status = check_leaf(slurm, &leaf);
	if (status == ESP_OK && is_any)
		status = add_leaf(slurm);
	if (status == ESP_OK && is_any) {
		slurm->all[slurm->count - 1] = leaf;
		return ESP_OK;
	}
	free(leaf.name);
	free(leaf.nodes);
	free(leaf.switches);
	return status;
}

/* A backslash at the end of a line continues it; lines are joined in a copy, where the backslash becomes a blank. */
static enum esp_status read_lines(struct slurm *slurm, const char *text, size_t length)
{
	char *copy = malloc(length + 1);
	enum esp_status status = ESP_OK;

	if (!copy)
		return error_set(slurm->err, ESP_ENOMEM, "no memory for a topology.conf");
	for (size_t at = 0; status == ESP_OK && at < length;) {
		size_t used = 0;
		uint32_t lines = 0;
		bool again = true;

		while (again && at < length) {
			const char *newline = memchr(text + at, '\n', length - at);
			size_t end = newline ? (size_t)(newline - text) : length, stop = end;

			while (stop > at && is_blank(text[stop - 1]))
				stop--;
			again = stop > at && text[stop - 1] == '\\';
			memcpy(copy + used, text + at, stop - at);
			used += stop - at;
			if (again)
				copy[used - 1] = ' ';
			at = newline ? end + 1 : length;
			lines++;
		}
		slurm->line++;
		status = read_words(slurm, copy, copy + used);
		slurm->line += lines - 1;
	}
	free(copy);
	return status;
}

/* ---- the tree ---- */

static int compare_leaves(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static enum esp_status check_names(struct slurm *slurm)
{
	char shown[QUOTE_TEXT];

	if (slurm->count == 0)
		return error_set(slurm->err, ESP_EPARSE, "line %u: there is no switch: SwitchName=s0 Nodes=n[0-3]",
		                 slurm->line > 0 ? slurm->line : 1);
	qsort(slurm->all, slurm->count, sizeof(*slurm->all), compare_leaves);
	for (uint32_t i = 1; i < slurm->count; i++) {
		const struct leaf *leaf = &slurm->all[i];

		if (strcmp(leaf[-1].name, leaf->name) == 0)
			return error_set(slurm->err, ESP_EPARSE, "line %u: switch %s is on line %u already", leaf->line,
			                 quote(leaf->name, strlen(leaf->name), shown), leaf[-1].line);
	}
	return ESP_OK;
}

/* Sets the parent of all switches in one switch's list. */
static enum esp_status set_parents(struct slurm *slurm, uint32_t above)
{
	const struct leaf *upper = &slurm->all[above];
	char shown[QUOTE_TEXT];
	uint64_t wanted = 0, found = 0;

	for (uint32_t i = 0; i < slurm->count; i++) {
		struct leaf *leaf = &slurm->all[i];

		if (!nodelist_has(upper->switches, leaf->name, strlen(leaf->name)))
			continue;
		if (leaf->parent != NONE || i == above)
			return error_set(slurm->err, ESP_EPARSE, "line %u: switch %s is %s", upper->line,
			                 quote(leaf->name, strlen(leaf->name), shown),
			                 i == above ? "below itself" : "below another one already");
		leaf->parent = above;
		found++;
	}
	enum esp_status status = check_list(slurm, upper, upper->switches, "Switches", &wanted);
	if (status == ESP_OK && found != wanted)
		return error_set(slurm->err, ESP_EPARSE,
		                 "line %u: Switches names %llu switches, and %llu of them are in the file", upper->line,
		                 (unsigned long long)wanted, (unsigned long long)found);
	return status;
}

static enum esp_status set_depths(struct slurm *slurm, uint32_t *out_levels)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < slurm->count; i++) {
		if (slurm->all[i].switches)
			status = set_parents(slurm, i);
	}
	*out_levels = 1;
	for (uint32_t i = 0; status == ESP_OK && i < slurm->count; i++) {
		uint32_t depth = 1;

		for (uint32_t up = slurm->all[i].parent; up != NONE && depth <= RACKS_LEVELS_MAX; up = slurm->all[up].parent)
			depth++;
		if (depth > RACKS_LEVELS_MAX)
			return error_set(slurm->err, ESP_EPARSE,
			                 "line %u: more than %u switches are above each other, or they go round in a ring",
			                 slurm->all[i].line, RACKS_LEVELS_MAX);
		slurm->all[i].depth = depth;
		*out_levels = depth > *out_levels ? depth : *out_levels;
	}
	return status;
}

/* Slurm's nodes usually have names without a domain, hosts may have one. */
static bool has_host(const struct leaf *leaf, const char *name)
{
	size_t length = strlen(name);
	const char *dot = strchr(name, '.');

	return leaf->nodes &&
	       (nodelist_has(leaf->nodes, name, length) || (dot && nodelist_has(leaf->nodes, name, (size_t)(dot - name))));
}

/* Writes the names of the switches from the top down to the host's; on further levels, the last one again. */
static enum esp_status place_host(const struct slurm *slurm, const char *name, uint32_t levels, const char **cells)
{
	const struct leaf *found = NULL;
	char shown[QUOTE_TEXT];

	for (uint32_t i = 0; i < slurm->count; i++) {
		if (!has_host(&slurm->all[i], name))
			continue;
		if (found)
			return error_set(slurm->err, ESP_EPARSE, "line %u: host %s is below the switch of line %u as well",
			                 slurm->all[i].line, quote(name, strlen(name), shown), found->line);
		found = &slurm->all[i];
	}
	for (uint32_t level = levels; found && level > found->depth; level--)
		cells[level - 1] = found->name;
	while (found) {
		cells[found->depth - 1] = found->name;
		found = found->parent == NONE ? NULL : &slurm->all[found->parent];
	}
	return ESP_OK;
}

static void slurm_fini(struct slurm *slurm)
{
	for (uint32_t i = 0; i < slurm->count; i++) {
		free(slurm->all[i].name);
		free(slurm->all[i].nodes);
		free(slurm->all[i].switches);
	}
	free(slurm->all);
}

static enum esp_status list_nodes(const struct slurm *slurm, const struct leaf *leaf, struct racks_names *out)
{
	char name[NODELIST_NAME + 1];
	uint64_t count = 0;
	enum esp_status status = check_list(slurm, leaf, leaf->nodes, "Nodes", &count);

	if (status == ESP_OK && count > RACKS_HOSTS_MAX - out->count)
		return error_set(slurm->err, ESP_ELIMIT, "line %u: more than %u hosts", leaf->line, RACKS_HOSTS_MAX);
	for (uint64_t i = 0; status == ESP_OK && i < count; i++) {
		status = nodelist_name(leaf->nodes, "Nodes", i, name, sizeof(name), slurm->err);
		if (status == ESP_OK)
			status = racks_names_add(out, name, strlen(name), slurm->err);
	}
	return status;
}

enum esp_status racks_names_slurm(const char *text, size_t length, struct racks_names *out, struct error *err)
{
	struct slurm slurm = {.err = err};
	enum esp_status status = read_lines(&slurm, text, length);

	for (uint32_t i = 0; status == ESP_OK && i < slurm.count; i++) {
		if (slurm.all[i].nodes)
			status = list_nodes(&slurm, &slurm.all[i], out);
	}
	slurm_fini(&slurm);
	return status;
}

enum esp_status racks_read_slurm(const char *text, size_t length, const char *const *hosts, uint32_t count,
                                 struct racks *out, struct error *err)
{
	struct slurm slurm = {.err = err};
	struct racks_hosts asked = {0};
	const char **cells = NULL;
	uint32_t levels = 1;
	enum esp_status status = racks_hosts_init(&asked, hosts, count, err);

	if (status == ESP_OK)
		status = read_lines(&slurm, text, length);
	if (status == ESP_OK)
		status = check_names(&slurm);
	if (status == ESP_OK)
		status = set_depths(&slurm, &levels);
	if (status == ESP_OK && !(cells = calloc((size_t)count * levels, sizeof(*cells))))
		status = error_set(err, ESP_ENOMEM, "no memory for the racks of %u hosts", count);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++)
		status = place_host(&slurm, hosts[i], levels, cells + (size_t)i * levels);
	if (status == ESP_OK)
		status = racks_all_placed(&asked, cells, levels, "topology.conf", err);
	if (status == ESP_OK)
		status = racks_number(cells, count, levels, out, err);
	slurm_fini(&slurm);
	free(cells);
	racks_hosts_fini(&asked);
	return status;
}
