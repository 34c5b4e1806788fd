#include "network/topo/racks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/quote.h"
#include "base/vec.h"
#include "network/topo/racks_parts.h"

void racks_fini(struct racks *racks)
{
	for (size_t i = 0; racks->names && i < (size_t)racks->nodes * racks->levels; i++)
		free(racks->names[i]);
	free(racks->names);
	free(racks->place);
	*racks = (struct racks){0};
}

enum esp_status racks_grouping(const struct racks *racks, struct grouping *out, struct error *err)
{
	uint32_t *labels = calloc(racks->nodes, sizeof(*labels));

	if (!labels)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", racks->nodes);
	for (uint32_t i = 0; i < racks->nodes; i++)
		labels[i] = racks->place[(size_t)i * racks->levels + racks->levels - 1];
	enum esp_status status = grouping_from(out, labels, racks->nodes, err);
	free(labels);
	return status;
}

uint32_t racks_common(const struct racks *racks, uint32_t a, uint32_t b)
{
	const uint32_t *x = racks->place + (size_t)a * racks->levels, *y = racks->place + (size_t)b * racks->levels;
	uint32_t level = 0;

	while (level < racks->levels && x[level] == y[level])
		level++;
	return level;
}

/* ---- hosts by name ---- */

/* An address has no domain: 10.0.0.1 is no host 10. */
static size_t short_length(const char *name, size_t length)
{
	size_t digits = 0;

	while (digits < length && (isdigit((unsigned char)name[digits]) || name[digits] == '.'))
		digits++;
	if (digits == length)
		return length;
	const char *dot = memchr(name, '.', length);

	return dot ? (size_t)(dot - name) : length;
}

/* Compares up to the first dot, ignoring case. */
static int compare_short(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t x = short_length(a, a_length), y = short_length(b, b_length);
	int order = strncasecmp(a, b, x < y ? x : y);

	return order != 0 ? order : (x > y) - (x < y);
}

static int compare_hosts(const void *a, const void *b, void *names)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const char *x_name = ((const char *const *)names)[x], *y_name = ((const char *const *)names)[y];
	int order = compare_short(x_name, strlen(x_name), y_name, strlen(y_name));

	return order != 0 ? order : (x > y) - (x < y);
}

enum esp_status racks_hosts_init(struct racks_hosts *hosts, const char *const *names, uint32_t count, struct error *err)
{
	*hosts = (struct racks_hosts){.names = names, .count = count};
	if (count == 0 || count > RACKS_HOSTS_MAX)
		return error_set(err, ESP_ELIMIT, "the racks of %u hosts: there can be 1 to %u", count, RACKS_HOSTS_MAX);
	hosts->sorted = calloc(count, sizeof(*hosts->sorted));
	if (!hosts->sorted)
		return error_set(err, ESP_ENOMEM, "no memory for the names of %u hosts", count);
	for (uint32_t i = 0; i < count; i++)
		hosts->sorted[i] = i;
	qsort_r(hosts->sorted, count, sizeof(*hosts->sorted), compare_hosts, (void *)names);
	return ESP_OK;
}

void racks_hosts_fini(struct racks_hosts *hosts)
{
	free(hosts->sorted);
	*hosts = (struct racks_hosts){0};
}

/* The names agree up to the first dot: if both have a domain, it must agree too. */
static bool is_same(const char *a, size_t a_length, const char *b, size_t b_length)
{
	if (!memchr(a, '.', a_length) || !memchr(b, '.', b_length))
		return true;
	return a_length == b_length && strncasecmp(a, b, a_length) == 0;
}

uint32_t racks_hosts_next(const struct racks_hosts *hosts, const char *name, size_t length, uint32_t *at)
{
	if (*at == 0) { /* binary search: the first that is not below the name */
		uint32_t low = 0, high = hosts->count;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			const char *other = hosts->names[hosts->sorted[middle]];

			if (compare_short(other, strlen(other), name, length) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		*at = low;
	}
	while (*at < hosts->count) {
		uint32_t host = hosts->sorted[(*at)++];
		const char *other = hosts->names[host];

		if (compare_short(other, strlen(other), name, length) != 0)
			break;
		if (is_same(other, strlen(other), name, length))
			return host;
	}
	*at = hosts->count;
	return hosts->count;
}

enum esp_status racks_all_placed(const struct racks_hosts *hosts, const char *const *cells, uint32_t levels,
                                 const char *what, struct error *err)
{
	char shown[QUOTE_TEXT];

	for (uint32_t i = 0; i < hosts->count; i++) {
		if (!cells[(size_t)i * levels])
			return error_set(err, ESP_EPARSE, "%s says nothing of host %s", what,
			                 quote(hosts->names[i], strlen(hosts->names[i]), shown));
	}
	return ESP_OK;
}

/* ---- numbers ---- */

struct cell {
	const char *name;
	uint32_t above; /* number of its place on the level above */
	uint32_t node;
};

static int compare_cells(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	if (x->above != y->above)
		return x->above < y->above ? -1 : 1;
	int order = strcmp(x->name, y->name);
	return order != 0 ? order : (x->node > y->node) - (x->node < y->node);
}

/* Equal names below one place are one place. False: no memory for its name. */
static bool number_level(struct racks *racks, const char *const *cells, uint32_t level, struct cell *sorted)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < racks->nodes; i++)
		sorted[i] = (struct cell){.name = cells[(size_t)i * racks->levels + level],
		                          .above = level > 0 ? racks->place[(size_t)i * racks->levels + level - 1] : 0,
		                          .node = i};
	qsort(sorted, racks->nodes, sizeof(*sorted), compare_cells);
	for (uint32_t i = 0; i < racks->nodes; i++) {
		if (i > 0 && (sorted[i].above != sorted[i - 1].above || strcmp(sorted[i].name, sorted[i - 1].name) != 0))
			number++;
		racks->place[(size_t)sorted[i].node * racks->levels + level] = number;
		char **name = &racks->names[(size_t)level * racks->nodes + number];
		if (!*name && !(*name = strdup(sorted[i].name)))
			return false;
	}
	return true;
}

enum esp_status racks_number(const char *const *cells, uint32_t count, uint32_t levels, struct racks *out,
                             struct error *err)
{
	struct racks racks = {.nodes = count, .levels = levels};
	struct cell *sorted = calloc(count, sizeof(*sorted));

	racks.place = calloc((size_t)count * levels, sizeof(*racks.place));
	racks.names = calloc((size_t)count * levels, sizeof(*racks.names));
	bool has_memory = sorted && racks.place && racks.names;
	for (uint32_t level = 0; has_memory && level < levels; level++)
		has_memory = number_level(&racks, cells, level, sorted);
	free(sorted);
	if (!has_memory) {
		racks_fini(&racks);
		return error_set(err, ESP_ENOMEM, "no memory for the racks of %u hosts", count);
	}
	*out = racks;
	return ESP_OK;
}

/* ---- names ---- */

void racks_names_fini(struct racks_names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct racks_names){0};
}

enum esp_status racks_names_add(struct racks_names *names, const char *name, size_t length, struct error *err)
{
	if (names->count == RACKS_HOSTS_MAX)
		return error_set(err, ESP_ELIMIT, "more than %u hosts", RACKS_HOSTS_MAX);
	if (!vec_reserve(&names->list, &names->capacity, (size_t)names->count + 1, sizeof(*names->list)))
		return error_set(err, ESP_ENOMEM, "no memory for the names of hosts");
	names->list[names->count] = strndup(name, length);
	if (!names->list[names->count])
		return error_set(err, ESP_ENOMEM, "no memory for the names of hosts");
	names->count++;
	return ESP_OK;
}
