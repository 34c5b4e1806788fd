/*
 * racks_read.c - detects the kind of a file, and calls its reader. Pure.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "network/topo/racks_parts.h"

enum kind { KIND_MAP, KIND_SLURM, KIND_KUBERNETES };

static bool begins_with(const char *text, size_t length, const char *word)
{
	return length >= strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

static enum kind kind_of(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length && (isspace((unsigned char)text[at]) || text[at] == '#')) {
		const char *newline = text[at] == '#' ? memchr(text + at, '\n', length - at) : text + at;

		at = newline ? (size_t)(newline - text) + 1 : length;
	}
	if (at < length && text[at] == '{')
		return KIND_KUBERNETES;
	if (begins_with(text + at, length - at, "SwitchName=") || begins_with(text + at, length - at, "BlockName=") ||
	    begins_with(text + at, length - at, "BlockSizes="))
		return KIND_SLURM;
	return KIND_MAP;
}

/* Windows editors write a byte order mark before UTF-8, and its shell writes UTF-16. */
static enum esp_status skip_mark(const char **text, size_t *length, struct error *err)
{
	if (utf8_is_utf16(*text, *length))
		return error_set(err, ESP_EPARSE, "line 1: this text is UTF-16; save it as UTF-8");
	size_t mark = utf8_mark(*text, *length);
	*text += mark;
	*length -= mark;
	return ESP_OK;
}

enum esp_status racks_read(const char *text, size_t length, const char *label, const char *const *hosts, uint32_t count,
                           struct racks *out, struct error *err)
{
	enum esp_status status = skip_mark(&text, &length, err);

	if (status != ESP_OK)
		return status;
	switch (kind_of(text, length)) {
	case KIND_KUBERNETES:
		return racks_read_kubernetes(text, length, label, hosts, count, out, err);
	case KIND_SLURM:
		return racks_read_slurm(text, length, hosts, count, out, err);
	case KIND_MAP:
		break;
	}
	return racks_read_map(text, length, hosts, count, out, err);
}

/* ---- names ---- */

static int compare_names(const void *a, const void *b, void *list)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcasecmp(((char **)list)[x], ((char **)list)[y]);

	return order != 0 ? order : (x > y) - (x < y);
}

/* The first of equal names stays; case does not matter, as for all readers. */
static enum esp_status drop_repeats(struct racks_names *names, struct error *err)
{
	uint32_t *sorted = calloc((size_t)names->count + 1, sizeof(*sorted)), kept = 0;
	bool *is_repeat = calloc((size_t)names->count + 1, sizeof(*is_repeat));
	bool has_memory = sorted && is_repeat;

	for (uint32_t i = 0; has_memory && i < names->count; i++)
		sorted[i] = i;
	if (has_memory && names->count > 1)
		qsort_r(sorted, names->count, sizeof(*sorted), compare_names, names->list);
	for (uint32_t i = 1; has_memory && i < names->count; i++)
		is_repeat[sorted[i]] = strcasecmp(names->list[sorted[i - 1]], names->list[sorted[i]]) == 0;
	for (uint32_t i = 0; has_memory && i < names->count; i++) {
		if (is_repeat[i])
			free(names->list[i]);
		else
			names->list[kept++] = names->list[i];
	}
	if (has_memory)
		names->count = kept;
	free(sorted);
	free(is_repeat);
	return has_memory ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for the names of hosts");
}

enum esp_status racks_names_read(const char *text, size_t length, struct racks_names *out, struct error *err)
{
	static enum esp_status (*const readers[])(const char *text, size_t length, struct racks_names *out,
	                                          struct error *err) = {
		[KIND_MAP] = racks_names_map, [KIND_SLURM] = racks_names_slurm, [KIND_KUBERNETES] = racks_names_kubernetes,
	};
	struct racks_names names = {0};
	enum esp_status status = skip_mark(&text, &length, err);

	if (status == ESP_OK)
		status = readers[kind_of(text, length)](text, length, &names, err);
	if (status == ESP_OK && names.count == 0)
		status = error_set(err, ESP_EPARSE, "there is no host in it: it is a rack map (lines such as: node7 rack3), "
		                                    "Slurm's topology.conf, or what kubectl get nodes -o json prints");
	if (status == ESP_OK)
		status = drop_repeats(&names, err);
	if (status != ESP_OK) {
		racks_names_fini(&names);
		return status;
	}
	*out = names;
	return ESP_OK;
}
