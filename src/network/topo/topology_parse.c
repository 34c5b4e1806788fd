/*
 * topology_parse.c - parses a topology: a statement per line, words between blanks, '#' starts a comment. Pure.
 */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/units.h"
#include "base/utf8.h"
#include "network/topo/topology_build.h"

#define WORDS_MAX 24u
#define WORD_MAX (TOPOLOGY_NAME - 1u)

struct line {
	uint32_t number;
	uint32_t count; /* words */
	char words[WORDS_MAX][WORD_MAX + 1];
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* No control characters: names are printed. */
static bool is_text(const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)word[i] < ' ' || word[i] == 0x7f)
			return false;
	return true;
}

/* Splits the line at *at into words, and moves *at behind it. */
static enum esp_status read_line(const char *text, size_t length, size_t *at, struct line *line, struct error *err)
{
	const char *end = memchr(text + *at, '\n', length - *at);
	size_t stop = end ? (size_t)(end - text) : length, i = *at;
	char shown[QUOTE_TEXT];

	line->number++;
	line->count = 0;
	*at = end ? stop + 1 : length;
	for (;;) {
		while (i < stop && is_blank(text[i]))
			i++;
		if (i == stop || text[i] == '#')
			return ESP_OK;
		size_t begin = i;
		while (i < stop && !is_blank(text[i]) && text[i] != '#')
			i++;
		if (line->count == WORDS_MAX)
			return error_set(err, ESP_EPARSE, "line %u: more than %u words", line->number, WORDS_MAX);
		if (i - begin > WORD_MAX)
			return error_set(err, ESP_EPARSE,
			                 "line %u: %s has %zu letters, and %u is the most: write a host without its domain, or its "
			                 "address", line->number, quote(text + begin, i - begin, shown), i - begin, WORD_MAX);
		if (!is_text(text + begin, i - begin))
			return error_set(err, ESP_EPARSE, "line %u: a byte that is no text", line->number);
		memcpy(line->words[line->count], text + begin, i - begin);
		line->words[line->count++][i - begin] = 0;
	}
}

static enum esp_status fail_line(const struct line *line, struct error *err, const char *what)
{
	return error_set(err, ESP_EPARSE, "line %u: %s", line->number, what);
}

static bool is_word(const struct line *line, uint32_t at, const char *word)
{
	return at < line->count && strcmp(line->words[at], word) == 0;
}

static bool rate_at(const struct line *line, uint32_t at, double *out)
{
	uint64_t bits;

	if (at >= line->count || !units_parse_rate(line->words[at], &bits))
		return false;
	*out = (double)bits / 8;
	return true;
}

static bool time_at(const struct line *line, uint32_t at, double *out)
{
	uint64_t ns;

	if (at >= line->count || !units_parse_time(line->words[at], &ns))
		return false;
	*out = (double)ns * 1e-9;
	return true;
}

static bool count_at(const struct line *line, uint32_t at, uint64_t most, uint32_t *out)
{
	uint64_t value;

	if (at >= line->count || !number_parse_u64(line->words[at], strlen(line->words[at]), &value) || value == 0 ||
	    value > most)
		return false;
	*out = (uint32_t)value;
	return true;
}

static enum esp_status vertex_at(const struct topology *topology, const struct line *line, uint32_t at, uint32_t *out,
                                 struct error *err)
{
	if (at >= line->count)
		return fail_line(line, err, "the name of a host or switch is missing");
	*out = topology_find(topology, line->words[at], strlen(line->words[at]));
	return *out != TOPOLOGY_NONE ? ESP_OK
	                             : error_set(err, ESP_EPARSE, "line %u: there is no host or switch %s above this line",
	                                         line->number, line->words[at]);
}

static bool is_there_twice(const struct line *line, uint32_t first, uint32_t at)
{
	for (uint32_t i = first; i < at; i += 2)
		if (strcmp(line->words[i], line->words[at]) == 0)
			return true;
	return false;
}

/* rate R [in R] [delay D] [nics N] [local R], in any order, from word `first` on. */
static enum esp_status read_link(const struct line *line, uint32_t first, struct build_vertex *vertex,
                                 struct error *err)
{
	vertex->nics = 1;
	for (uint32_t at = first; at < line->count; at += 2) {
		if (is_there_twice(line, first, at)) {
			return error_set(err, ESP_EPARSE, "line %u: %s is there twice", line->number, line->words[at]);
		} else if (is_word(line, at, "rate")) {
			if (!rate_at(line, at + 1, &vertex->rate_out))
				return fail_line(line, err, "rate wants a rate, such as 25gbit");
		} else if (is_word(line, at, "in")) {
			if (!rate_at(line, at + 1, &vertex->rate_in))
				return fail_line(line, err, "in wants a rate, such as 25gbit");
		} else if (is_word(line, at, "delay")) {
			if (!time_at(line, at + 1, &vertex->delay))
				return fail_line(line, err, "delay wants a time, such as 5us");
		} else if (is_word(line, at, "nics")) {
			if (!count_at(line, at + 1, TOPOLOGY_NICS_MAX, &vertex->nics))
				return fail_line(line, err, "nics wants a number from 1 to 16");
		} else if (is_word(line, at, "local") && vertex->is_host) {
			if (!rate_at(line, at + 1, &vertex->local))
				return fail_line(line, err, "local wants a rate, such as 400gbit");
		} else {
			return error_set(err, ESP_EPARSE, "line %u: '%s' is not known here; known are rate, in, delay, nics%s",
			                 line->number, line->words[at], vertex->is_host ? ", local" : "");
		}
	}
	if (vertex->rate_out == 0)
		return fail_line(line, err, "a link needs a rate");
	if (vertex->rate_in == 0)
		vertex->rate_in = vertex->rate_out;
	return ESP_OK;
}

/* Parses "under NAME" and the rest of the line, from word `at` on. */
static enum esp_status read_under(const struct topology *topology, const struct line *line, uint32_t at,
                                  struct build_vertex *vertex, struct error *err)
{
	if (!is_word(line, at, "under"))
		return fail_line(line, err, "'under' and the name of a switch are missing");
	enum esp_status status = vertex_at(topology, line, at + 1, &vertex->parent, err);
	if (status != ESP_OK)
		return status;
	if (topology->vertices[vertex->parent].is_host)
		return error_set(err, ESP_EPARSE, "line %u: %s is a host: only switches have something under them",
		                 line->number, line->words[at + 1]);
	return read_link(line, at + 2, vertex, err);
}

static enum esp_status at_line(enum esp_status status, const struct line *line, struct error *err)
{
	if (status != ESP_OK && status != ESP_ENOMEM && err) {
		struct error why = *err;

		return error_set(err, ESP_EPARSE, "line %u: %s", line->number, why.text);
	}
	return status;
}

static enum esp_status read_switch(struct topology_builder *builder, const struct line *line, struct error *err)
{
	struct build_vertex vertex = {.name = line->words[1], .length = line->count > 1 ? strlen(line->words[1]) : 0,
	                              .parent = TOPOLOGY_NONE};
	bool is_root = builder->topology->vertex_count == 0;

	if (line->count < 2)
		return fail_line(line, err, "a switch needs a name");
	if (is_root && line->count > 2)
		return fail_line(line, err, "the first switch is the root: it has nothing above it and no link");
	enum esp_status status = is_root ? ESP_OK : read_under(builder->topology, line, 2, &vertex, err);
	return status == ESP_OK ? at_line(topology_build_add(builder, &vertex, err), line, err) : status;
}

static enum esp_status read_host(struct topology_builder *builder, const struct line *line, struct error *err)
{
	struct build_vertex vertex = {.name = line->words[1], .is_host = true};

	if (line->count < 2)
		return fail_line(line, err, "a host needs a name");
	vertex.length = strlen(line->words[1]);
	enum esp_status status = read_under(builder->topology, line, 2, &vertex, err);
	return status == ESP_OK ? at_line(topology_build_add(builder, &vertex, err), line, err) : status;
}

static enum esp_status read_hosts(struct topology_builder *builder, const struct line *line, struct error *err)
{
	struct build_vertex vertex = {.is_host = true};
	char name[TOPOLOGY_NAME];
	uint32_t count;

	if (!count_at(line, 1, TOPOLOGY_VERTICES_MAX, &count))
		return fail_line(line, err, "hosts wants their number, from 1 up");
	enum esp_status status = read_under(builder->topology, line, 2, &vertex, err);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
		vertex.name = topology_build_host_name(builder, name);
		vertex.length = strlen(name);
		status = at_line(topology_build_add(builder, &vertex, err), line, err);
	}
	return status;
}

/* at TIME NAME rate R */
static enum esp_status read_change(struct topology_builder *builder, const struct line *line, struct error *err)
{
	struct topology_change change = {0};

	if (!time_at(line, 1, &change.at))
		return fail_line(line, err, "at wants a time, such as 2s");
	enum esp_status status = vertex_at(builder->topology, line, 2, &change.vertex, err);
	if (status != ESP_OK)
		return status;
	if (builder->topology->vertices[change.vertex].parent == TOPOLOGY_NONE)
		return fail_line(line, err, "the root has no link of its own: name what hangs from it");
	if (!is_word(line, 3, "rate") || !rate_at(line, 4, &change.rate) || line->count > 5)
		return fail_line(line, err, "what changes is missing: at 2s rack0 rate 10gbit");
	return topology_build_change(builder, change, err);
}

/* from TIME [to TIME] NAME > NAME rate R | flows N */
static enum esp_status read_background(struct topology_builder *builder, const struct line *line, struct error *err)
{
	struct topology_background background = {.to = INFINITY};
	uint32_t at = 2;

	if (!time_at(line, 1, &background.from))
		return fail_line(line, err, "from wants a time, such as 1s");
	if (is_word(line, at, "to")) {
		if (!time_at(line, at + 1, &background.to) || background.to <= background.from)
			return fail_line(line, err, "to wants a time that is later than from");
		at += 2;
	}
	enum esp_status status = vertex_at(builder->topology, line, at, &background.source, err);
	if (status == ESP_OK && !is_word(line, at + 1, ">"))
		return fail_line(line, err, "'>' is missing: from 1s node00 > node17 rate 2gbit");
	if (status == ESP_OK)
		status = vertex_at(builder->topology, line, at + 2, &background.target, err);
	if (status != ESP_OK)
		return status;
	if (background.source == background.target)
		return fail_line(line, err, "traffic to itself takes no link");
	bool is_rate = is_word(line, at + 3, "rate") && rate_at(line, at + 4, &background.rate);
	bool is_flows = is_word(line, at + 3, "flows") && count_at(line, at + 4, 1000, &background.flows);
	if ((!is_rate && !is_flows) || line->count > at + 5)
		return fail_line(line, err, "how much? rate 2gbit, or flows N, from 1 to 1000");
	return topology_build_background(builder, background, err);
}

static enum esp_status read_statement(struct topology_builder *builder, const struct line *line, struct error *err)
{
	static const struct {
		const char *word;
		enum esp_status (*read)(struct topology_builder *builder, const struct line *line, struct error *err);
	} statements[] = {
		{"switch", read_switch}, {"host", read_host}, {"hosts", read_hosts}, {"at", read_change},
		    {"from", read_background},
	};

	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (is_word(line, 0, statements[i].word))
			return statements[i].read(builder, line, err);
	}
	return error_set(err, ESP_EPARSE, "line %u: '%s' is not known; a line begins with switch, host, hosts, at or from",
	                 line->number, line->words[0]);
}

static enum esp_status read_all(struct topology_builder *builder, const char *text, size_t length, struct error *err)
{
	struct line line = {0};
	bool has_title = false;
	size_t at = utf8_mark(text, length);

	if (utf8_is_utf16(text, length))
		return error_set(err, ESP_EPARSE, "line 1: this text is UTF-16; save it as UTF-8");
	while (at < length) {
		enum esp_status status = read_line(text, length, &at, &line, err);

		if (status == ESP_OK && !has_title && is_word(&line, 0, "survey"))
			return fail_line(&line, err, "this is a measurement: espalier probe --matrix FILE --out makes a topology "
			                             "of it");
		if (status == ESP_OK && line.count > 0 && !has_title) {
			if (!is_word(&line, 0, "topology") || !is_word(&line, 1, "1") || line.count > 2)
				return fail_line(&line, err, "a topology begins with the line: topology 1");
			has_title = true;
		} else if (status == ESP_OK && line.count > 0) {
			status = read_statement(builder, &line, err);
		}
		if (status != ESP_OK)
			return status;
	}
	line.number++;
	if (!has_title)
		return fail_line(&line, err, "a topology begins with the line: topology 1");
	if (builder->topology->host_count == 0)
		return fail_line(&line, err, "there is no host");
	return ESP_OK;
}

enum esp_status topology_parse(const char *text, size_t length, struct topology **out, struct error *err)
{
	struct topology_builder builder = {0};
	enum esp_status status = topology_build_begin(&builder, err);

	if (status == ESP_OK)
		status = read_all(&builder, text, length, err);
	if (status != ESP_OK) {
		topology_build_abandon(&builder);
		return status;
	}
	*out = topology_build_end(&builder);
	return ESP_OK;
}
