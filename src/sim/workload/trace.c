#include "sim/workload/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/vec.h"

#define HEADER "time_s,parameter,bytes,source,destination"
#define TIME_MAX 1e9 /* seconds */
#define FIELD_MAX 1024
#define FIELDS 5

struct reader {
	const char *file;
	const char *at, *end;
	uint32_t line;
	struct error *err;
	char fields[FIELDS][FIELD_MAX + 1];
	size_t lengths[FIELDS];
	unsigned field_count;
};

__attribute__((format(printf, 2, 3)))
static enum esp_status fail_line(const struct reader *reader, const char *format, ...)
{
	char reason[160];
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	return error_set(reader->err, ESP_EPARSE, "%.80s:%" PRIu32 ": %s", reader->file, reader->line, reason);
}

/* ---- fields ---- */

/* One character of a field. A quote inside quotes is doubled. */
static enum esp_status put_char(struct reader *reader, unsigned field, char c)
{
	if ((unsigned char)c < 0x20 || c == 0x7f)
		return fail_line(reader, "field %u has a control character", field + 1);
	if (reader->lengths[field] == FIELD_MAX)
		return fail_line(reader, "field %u is longer than %d bytes", field + 1, FIELD_MAX);
	reader->fields[field][reader->lengths[field]++] = c;
	return ESP_OK;
}

static bool at_line_end(const struct reader *reader)
{
	return reader->at == reader->end || *reader->at == '\n' ||
	       (*reader->at == '\r' && reader->at + 1 < reader->end && reader->at[1] == '\n');
}

static enum esp_status quoted_field(struct reader *reader, unsigned field)
{
	enum esp_status status = ESP_OK;
	for (reader->at++; status == ESP_OK; reader->at++) {
		if (at_line_end(reader))
			return fail_line(reader, "field %u has no closing quote", field + 1);
		if (*reader->at == '"') {
			if (reader->at + 1 == reader->end || reader->at[1] != '"')
				break;
			reader->at++;
		}
		status = put_char(reader, field, *reader->at);
	}
	if (status == ESP_OK) {
		reader->at++;
		if (!at_line_end(reader) && *reader->at != ',')
			status = fail_line(reader, "field %u goes on behind its closing quote", field + 1);
	}
	return status;
}

static enum esp_status plain_field(struct reader *reader, unsigned field)
{
	enum esp_status status = ESP_OK;
	for (; status == ESP_OK && !at_line_end(reader) && *reader->at != ','; reader->at++)
		status = *reader->at == '"' ? fail_line(reader, "field %u has a quote inside; put the whole field in quotes",
		                                        field + 1)
		                            : put_char(reader, field, *reader->at);
	return status;
}

/* Reads the fields of a line; moves behind it. */
static enum esp_status read_line(struct reader *reader)
{
	enum esp_status status = ESP_OK;
	bool more = true;
	memset(reader->lengths, 0, sizeof reader->lengths);
	reader->field_count = 0;
	while (status == ESP_OK && more) {
		if (reader->field_count == FIELDS)
			return fail_line(reader, "more than %d fields", FIELDS);
		unsigned field = reader->field_count++;
		status = reader->at < reader->end && *reader->at == '"' ? quoted_field(reader, field)
		                                                        : plain_field(reader, field);
		more = status == ESP_OK && !at_line_end(reader);
		if (more)
			reader->at++; /* the comma */
	}
	if (status != ESP_OK)
		return status;
	for (unsigned i = 0; i < reader->field_count; i++)
		reader->fields[i][reader->lengths[i]] = '\0';
	if (reader->at < reader->end)
		reader->at += *reader->at == '\r' ? 2 : 1;
	return ESP_OK;
}

/* ---- events ---- */

static enum esp_status read_event(struct reader *reader, struct trace *trace)
{
	char shown[QUOTE_TEXT];
	struct trace_event event = {.line = reader->line};
	if (reader->field_count != FIELDS)
		return fail_line(reader, "%u field%s instead of %d: " HEADER, reader->field_count, reader->field_count == 1
		                 ? "" : "s", FIELDS);
	if (!number_parse_double(reader->fields[0], reader->lengths[0], &event.time_s) ||
	    !(event.time_s >= 0 && event.time_s <= TIME_MAX))
		return fail_line(reader, "the time %s is no number of seconds from 0 to %g",
		                 quote(reader->fields[0], reader->lengths[0], shown), TIME_MAX);
	if (reader->lengths[1] == 0)
		return fail_line(reader, "the parameter has no name");
	if (!number_parse_u64(reader->fields[2], reader->lengths[2], &event.bytes) || event.bytes == 0 ||
	    event.bytes > TRACE_BYTES_MAX)
		return fail_line(reader, "%s is no number of bytes from 1 to %" PRIu64,
		                 quote(reader->fields[2], reader->lengths[2], shown), TRACE_BYTES_MAX);
	event.parameter = reader->fields[1];
	event.source = reader->fields[3];
	event.destination = reader->fields[4];
	struct error reason = {0};
	enum esp_status status = workload_trace_add(trace, &event, &reason);
	return status == ESP_ELIMIT ? fail_line(reader, "%s", reason.text) : status == ESP_OK
	       ? ESP_OK : error_set(reader->err, status, "%s", reason.text);
}

static bool is_header(const struct reader *reader)
{
	static const char *const names[FIELDS] = {"time_s", "parameter", "bytes", "source", "destination"};
	if (reader->field_count != FIELDS)
		return false;
	for (unsigned i = 0; i < FIELDS; i++)
		if (strcmp(reader->fields[i], names[i]) != 0)
			return false;
	return true;
}

static enum esp_status read_all(struct reader *reader, struct trace *trace)
{
	reader->line = 1;
	enum esp_status status = read_line(reader);
	if (status != ESP_OK || !is_header(reader))
		return fail_line(reader, "the first line is not " HEADER);
	while (status == ESP_OK && reader->at < reader->end) {
		reader->line++;
		status = read_line(reader);
		if (status == ESP_OK && (reader->field_count > 1 || reader->lengths[0] > 0)) /* empty lines are skipped */
			status = read_event(reader, trace);
	}
	if (status == ESP_OK && trace->count == 0)
		status = fail_line(reader, "there is no event");
	return status;
}

enum esp_status workload_trace_parse(struct trace *trace, const char *file, const char *text, size_t size,
                                     struct error *err)
{
	*trace = (struct trace){0};
	struct reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return error_set(err, ESP_ENOMEM, "no memory to read %.100s", file);
	*reader = (struct reader){.file = file, .at = text, .end = text + size, .err = err};
	enum esp_status status = read_all(reader, trace);
	free(reader);
	return status;
}

enum esp_status workload_trace_add(struct trace *trace, const struct trace_event *event, struct error *err)
{
	if (trace->count == TRACE_EVENTS_MAX)
		return error_set(err, ESP_ELIMIT, "more than %u events", TRACE_EVENTS_MAX);
	if (!vec_reserve(&trace->events, &trace->capacity, (size_t)trace->count + 1, sizeof(*trace->events)))
		return error_set(err, ESP_ENOMEM, "no memory for %" PRIu32 " events", trace->count + 1);
	struct trace_event *copy = &trace->events[trace->count];
	*copy = *event;
	copy->parameter = strdup(event->parameter);
	copy->source = strdup(event->source);
	copy->destination = strdup(event->destination);
	trace->count++; /* workload_trace_fini() frees the copies that exist */
	if (!copy->parameter || !copy->source || !copy->destination)
		return error_set(err, ESP_ENOMEM, "no memory for an event");
	return ESP_OK;
}

void workload_trace_fini(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->count; i++) {
		free(trace->events[i].parameter);
		free(trace->events[i].source);
		free(trace->events[i].destination);
	}
	free(trace->events);
	*trace = (struct trace){0};
}

struct placed {
	struct trace_event event;
	uint32_t index;
};

static int by_time(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->event.time_s != y->event.time_s)
		return x->event.time_s < y->event.time_s ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

enum esp_status workload_trace_sort(struct trace *trace, struct error *err)
{
	struct placed *placed = calloc((size_t)trace->count + 1, sizeof(*placed));
	if (!placed)
		return error_set(err, ESP_ENOMEM, "no memory to sort %" PRIu32 " events", trace->count);
	for (uint32_t i = 0; i < trace->count; i++)
		placed[i] = (struct placed){trace->events[i], i};
	qsort(placed, trace->count, sizeof(*placed), by_time);
	for (uint32_t i = 0; i < trace->count; i++)
		trace->events[i] = placed[i].event;
	free(placed);
	return ESP_OK;
}

/* ---- writing ---- */

static void write_field(const char *text, FILE *out)
{
	bool quotes = strpbrk(text, ",\"") != NULL;
	if (quotes)
		fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	if (quotes)
		fputc('"', out);
}

enum esp_status workload_trace_write(const struct trace *trace, FILE *out, struct error *err)
{
	char number[NUMBER_DOUBLE_TEXT];
	fputs(HEADER "\n", out);
	for (uint32_t i = 0; i < trace->count; i++) {
		const struct trace_event *event = &trace->events[i];
		fprintf(out, "%s,", number_format_double(event->time_s, number));
		write_field(event->parameter, out);
		fprintf(out, ",%" PRIu64 ",", event->bytes);
		write_field(event->source, out);
		fputc(',', out);
		write_field(event->destination, out);
		fputc('\n', out);
	}
	return ferror(out) ? error_set(err, ESP_EIO, "a trace could not be written") : ESP_OK;
}
