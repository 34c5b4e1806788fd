#include "network/topo/groups.h"

#include <stdbool.h>
#include <string.h>

#include "base/number.h"

#define UNKNOWN UINT32_MAX
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* some editors write it before UTF-8 */

struct groups {
	uint32_t *of;
	uint32_t nodes;
	uint32_t count;
	unsigned line;
	struct error *err;
};

static bool is_separator(char c)
{
	return c == ' ' || c == '\t' || c == ',' || c == '\r';
}

static enum esp_status add_node(struct groups *groups, uint32_t node)
{
	uint32_t *of = &groups->of[node];

	if (*of == groups->count)
		return error_set(groups->err, ESP_EPARSE, "line %u: node %u stands in it twice", groups->line, node);
	if (*of != UNKNOWN)
		return error_set(groups->err, ESP_EPARSE, "line %u: node %u is in group %u already", groups->line, node, *of);
	*of = groups->count;
	return ESP_OK;
}

/* "7" or "4-6" */
static enum esp_status read_word(struct groups *groups, const char *word, size_t length)
{
	const char *dash = memchr(word, '-', length);
	size_t head = dash ? (size_t)(dash - word) : length;
	uint64_t first = 0, last;
	bool good = number_parse_u64(word, head, &first);

	last = first;
	if (good && dash)
		good = number_parse_u64(dash + 1, length - head - 1, &last);
	if (!good)
		return error_set(groups->err, ESP_EPARSE, "line %u: '%.*s' is no node, such as 7, and no range, such as 4-6",
		                 groups->line, (int)(length < 40 ? length : 40), word);
	if (last < first)
		return error_set(groups->err, ESP_EPARSE, "line %u: the range %.*s ends before it begins", groups->line,
		                 (int)(length < 40 ? length : 40), word);
	if (last >= groups->nodes)
		return error_set(groups->err, ESP_EPARSE, "line %u: node %llu is not among the nodes 0 to %u", groups->line,
		                 (unsigned long long)last, groups->nodes - 1);
	enum esp_status status = ESP_OK;
	for (uint64_t node = first; status == ESP_OK && node <= last; node++)
		status = add_node(groups, (uint32_t)node);
	return status;
}

static enum esp_status read_line(struct groups *groups, const char *text, const char *end)
{
	const char *comment = memchr(text, '#', (size_t)(end - text));
	bool empty = true;

	if (comment)
		end = comment;
	while (text < end) {
		const char *word = text;

		while (text < end && !is_separator(*text))
			text++;
		if (text > word) {
			enum esp_status status = read_word(groups, word, (size_t)(text - word));

			if (status != ESP_OK)
				return status;
			empty = false;
		}
		text++;
	}
	groups->count += !empty;
	return ESP_OK;
}

static enum esp_status check_all(const struct groups *groups)
{
	if (groups->count == 0)
		return error_set(groups->err, ESP_EPARSE, "there is no group in it: write a line for each, such as 0-3 7");
	for (uint32_t node = 0; node < groups->nodes; node++) {
		if (groups->of[node] == UNKNOWN)
			return error_set(groups->err, ESP_EPARSE, "line %u: the groups end, and node %u is in none of them",
			                 groups->line, node);
	}
	return ESP_OK;
}

enum esp_status groups_parse(const char *text, size_t length, uint32_t nodes, uint32_t *group_of,
                                  struct error *err)
{
	struct groups groups = {.of = group_of, .nodes = nodes, .err = err};
	const char *end = text + length;
	enum esp_status status = ESP_OK;

	if (length >= sizeof(BYTE_ORDER_MARK) - 1 && memcmp(text, BYTE_ORDER_MARK, sizeof(BYTE_ORDER_MARK) - 1) == 0)
		text += sizeof(BYTE_ORDER_MARK) - 1;
	for (uint32_t node = 0; node < nodes; node++)
		group_of[node] = UNKNOWN;
	while (status == ESP_OK && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		groups.line++;
		status = read_line(&groups, text, line_end);
		text = newline ? newline + 1 : end;
	}
	return status == ESP_OK ? check_all(&groups) : status;
}

void groups_racks(uint32_t nodes, uint32_t racks, enum placement placement, uint32_t *group_of)
{
	for (uint32_t node = 0; node < nodes; node++)
		group_of[node] = placement == PLACE_INTERLEAVED ? node % racks : (uint32_t)((uint64_t)node * racks / nodes);
}
