/*
 * racks_map.c - reads rack maps: lines "host rack". Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "network/topo/racks_parts.h"

struct map {
	struct racks_hosts hosts;
	uint32_t levels; /* 0: no line was read yet */
	uint32_t number; /* of the line             */
	/* hosts * RACKS_LEVELS_MAX, owned; NULL: no place yet. Packed as racks_number() has them at the end */
	char **cells;
	struct error *err;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word before end; returns its length, 0: there is none. */
static size_t read_word(const char **at, const char *end, const char **out)
{
	while (*at < end && is_blank(**at))
		(*at)++;
	*out = *at;
	while (*at < end && !is_blank(**at))
		(*at)++;
	return (size_t)(*at - *out);
}

/* Splits "row1/rack3" or "/row1/rack3". Returns the number of parts; 0 if one is empty or there are too many. */
static uint32_t split_path(const char *path, size_t length, const char *parts[RACKS_LEVELS_MAX],
                           size_t lengths[RACKS_LEVELS_MAX])
{
	const char *end = path + length;
	uint32_t count = 0;

	if (path < end && *path == '/')
		path++;
	for (;;) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		const char *stop = slash ? slash : end;

		if (stop == path || count == RACKS_LEVELS_MAX || memchr(path, 0, (size_t)(stop - path)))
			return 0;
		parts[count] = path;
		lengths[count++] = (size_t)(stop - path);
		if (!slash)
			return count;
		path = slash + 1;
	}
}

static bool is_same_place(char *const *cells, const char *const *parts, const size_t *lengths, uint32_t levels)
{
	for (uint32_t level = 0; level < levels; level++) {
		if (strlen(cells[level]) != lengths[level] || memcmp(cells[level], parts[level], lengths[level]) != 0)
			return false;
	}
	return true;
}

static enum esp_status place_host(struct map *map, uint32_t host, const char *const *parts, const size_t *lengths)
{
	char **cells = map->cells + (size_t)host * RACKS_LEVELS_MAX;
	char shown[QUOTE_TEXT];

	if (cells[0]) {
		if (is_same_place(cells, parts, lengths, map->levels))
			return ESP_OK;
		return error_set(map->err, ESP_EPARSE, "line %u: host %s has a rack already, and this is another", map->number,
		                 quote(map->hosts.names[host], strlen(map->hosts.names[host]), shown));
	}
	for (uint32_t level = 0; level < map->levels; level++) {
		cells[level] = strndup(parts[level], lengths[level]);
		if (!cells[level])
			return error_set(map->err, ESP_ENOMEM, "no memory for a rack map");
	}
	return ESP_OK;
}

static enum esp_status read_line(struct map *map, const char *at, const char *end)
{
	const char *comment = memchr(at, '#', (size_t)(end - at)), *name, *path, *more, *parts[RACKS_LEVELS_MAX];
	size_t lengths[RACKS_LEVELS_MAX];
	char shown[QUOTE_TEXT];

	if (comment)
		end = comment;
	size_t name_length = read_word(&at, end, &name), path_length = read_word(&at, end, &path);
	if (name_length == 0)
		return ESP_OK;
	if (path_length == 0 || read_word(&at, end, &more) > 0)
		return error_set(map->err, ESP_EPARSE, "line %u: a line is a host and its rack, such as: node7 row1/rack3",
		                 map->number);
	uint32_t levels = split_path(path, path_length, parts, lengths);
	if (levels == 0)
		return error_set(map->err, ESP_EPARSE,
		                 "line %u: %s is no rack, such as rack3, and no path to one, such as row1/rack3", map->number,
		                 quote(path, path_length, shown));
	if (map->levels != 0 && levels != map->levels)
		return error_set(map->err, ESP_EPARSE, "line %u: the rack %s has %u levels, and those before it have %u",
		                 map->number, quote(path, path_length, shown), levels, map->levels);
	map->levels = levels;
	enum esp_status status = ESP_OK;
	uint32_t from = 0, host;
	while (status == ESP_OK && (host = racks_hosts_next(&map->hosts, name, name_length, &from)) < map->hosts.count)
		status = place_host(map, host, parts, lengths);
	return status;
}

/* Packs rows of RACKS_LEVELS_MAX cells into rows of `levels` cells; only pointers move. */
static void pack_cells(struct map *map)
{
	for (size_t i = 0; map->levels < RACKS_LEVELS_MAX && i < (size_t)map->hosts.count * map->levels; i++) {
		size_t from = i / map->levels * RACKS_LEVELS_MAX + i % map->levels;

		if (from != i) {
			map->cells[i] = map->cells[from];
			map->cells[from] = NULL;
		}
	}
}

enum esp_status racks_names_map(const char *text, size_t length, struct racks_names *out, struct error *err)
{
	const char *end = text + length, *name;
	enum esp_status status = ESP_OK;

	for (uint32_t number = 1; status == ESP_OK && text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
		const char *comment = memchr(text, '#', (size_t)(stop - text));
		size_t word = read_word(&text, comment ? comment : stop, &name);

		if (word > 0 && memchr(name, 0, word))
			return error_set(err, ESP_EPARSE, "line %u: a byte that is no text", number);
		if (word > 0)
			status = racks_names_add(out, name, word, err);
		text = newline ? newline + 1 : end;
	}
	return status;
}

enum esp_status racks_read_map(const char *text, size_t length, const char *const *hosts, uint32_t count,
                               struct racks *out, struct error *err)
{
	struct map map = {.err = err};
	const char *end = text + length;
	enum esp_status status = racks_hosts_init(&map.hosts, hosts, count, err);

	if (status == ESP_OK)
		map.cells = calloc((size_t)count * RACKS_LEVELS_MAX, sizeof(*map.cells));
	if (status == ESP_OK && !map.cells) {
		(void)error_set(err, ESP_ENOMEM, "no memory for a rack map");
		status = ESP_ENOMEM;
	}
	while (status == ESP_OK && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		map.number++;
		status = read_line(&map, text, newline ? newline : end);
		text = newline ? newline + 1 : end;
	}
	if (status == ESP_OK && map.levels == 0)
		status = error_set(err, ESP_EPARSE, "the rack map is empty: write a line for each host, such as: node7 rack3");
	if (status == ESP_OK) {
		pack_cells(&map);
		status = racks_all_placed(&map.hosts, (const char *const *)map.cells, map.levels, "the rack map", err);
	}
	if (status == ESP_OK)
		status = racks_number((const char *const *)map.cells, count, map.levels, out, err);
	for (size_t i = 0; map.cells && i < (size_t)count * RACKS_LEVELS_MAX; i++)
		free(map.cells[i]);
	free(map.cells);
	racks_hosts_fini(&map.hosts);
	return status;
}
