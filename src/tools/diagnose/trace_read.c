#include "tools/diagnose/trace_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"

#define NUMBERS_MOST (UINT64_C(1) << 38) /* calls of a communicator that are told apart */

static void skip_blanks(struct trace_reader *reader)
{
	while (reader->at < reader->size && strchr(" \t\r\n", reader->text[reader->at]) && reader->text[reader->at])
		reader->at++;
}

static bool take_char(struct trace_reader *reader, char wanted)
{
	skip_blanks(reader);
	if (reader->at >= reader->size || reader->text[reader->at] != wanted)
		return false;
	reader->at++;
	return true;
}

enum esp_status diagnose_trace_reader_open(struct trace_reader *reader, const char *text, size_t size,
                                           struct error *err)
{
	static const char key[] = "\"traceEvents\"";
	*reader = (struct trace_reader){.text = text, .size = size};
	if (take_char(reader, '[')) /* the usual form */
		return ESP_OK;
	reader->at = 0;
	const char *found = take_char(reader, '{') ? memmem(text, size, key, sizeof key - 1) : NULL;
	if (found) {
		reader->at = (size_t)(found - text) + sizeof key - 1;
		if (take_char(reader, ':') && take_char(reader, '['))
			return ESP_OK;
	}
	return error_set(err, ESP_EPARSE, "it is no trace: neither a list of events, nor an object with traceEvents");
}

enum esp_status diagnose_trace_reader_next(struct trace_reader *reader, json_t **out, struct error *err)
{
	json_error_t where;
	char shown[QUOTE_TEXT];
	*out = NULL;
	if (reader->events > 0 && !take_char(reader, ',')) {
		reader->is_cut = !take_char(reader, ']');
		if (reader->is_cut && reader->at < reader->size)
			return error_set(err, ESP_EPARSE, "event %llu: a comma is missing", (unsigned long long)reader->events);
		return ESP_OK;
	}
	if (take_char(reader, ']'))
		return ESP_OK;
	skip_blanks(reader);
	json_t *event = json_loadb(reader->text + reader->at, reader->size - reader->at, JSON_DISABLE_EOF_CHECK, &where);
	if (!event && json_error_code(&where) == json_error_premature_end_of_input) {
		reader->is_cut = true;
		reader->at = reader->size;
		return ESP_OK;
	}
	if (!json_is_object(event)) {
		json_decref(event);
		return error_set(err, ESP_EPARSE, "event %llu: %s", (unsigned long long)reader->events,
		                 event ? "it is no object" : quote(where.text, strlen(where.text), shown));
	}
	reader->at += (size_t)where.position;
	reader->events++;
	*out = event;
	return ESP_OK;
}

/* ---- fields of events ---- */

static bool has_name(const json_t *event, const char *name)
{
	const char *is = json_string_value(json_object_get(event, "name"));
	return is && strcmp(is, name) == 0;
}

static void copy_text(const json_t *args, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(args, key));
	snprintf(out, size, "%s", text ? text : "");
	for (; *out; out++)
		if ((unsigned char)*out < 0x20 || (unsigned char)*out >= 0x7f)
			*out = '?';
}

static bool copy_hex(const json_t *args, const char *key, uint64_t *out)
{
	const char *text = json_string_value(json_object_get(args, key));
	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	*out = strtoull(text, NULL, 16);
	return true;
}

static bool copy_number(const json_t *args, const char *key, int64_t most, int64_t *out)
{
	const json_t *number = json_object_get(args, key);
	if (!json_is_integer(number) || json_integer_value(number) < 0 || json_integer_value(number) > most)
		return false;
	*out = json_integer_value(number);
	return true;
}

bool diagnose_trace_origin_read(const json_t *event, struct trace_origin *out)
{
	const json_t *args = json_object_get(event, "args");
	int64_t rank, size;
	if (!has_name(event, "espalier_clock") || !copy_hex(args, "instance", &out->instance) ||
	    !copy_hex(args, "host_id", &out->host_id) || !copy_number(args, "size", 65536, &size) ||
	    !copy_number(args, "rank", size - 1, &rank) || !copy_number(args, "now_ns", INT64_MAX / 4, &out->now_ns) ||
	    !copy_number(args, "real_ns", INT64_MAX / 4, &out->real_ns))
		return false;
	out->rank = (uint32_t)rank;
	out->size = (uint32_t)size;
	copy_text(args, "job", out->job, sizeof out->job);
	copy_text(args, "host", out->host, sizeof out->host);
	return true;
}

bool diagnose_trace_times(const json_t *event, int64_t *out_begin_ns, int64_t *out_end_ns)
{
	double begin = json_number_value(json_object_get(event, "ts")) * 1e3,
	    length = json_number_value(json_object_get(event, "dur")) * 1e3;
	/* Sixty days to the nanosecond; more than ten years to the microsecond. */
	if (!json_is_number(json_object_get(event, "ts")) || !(begin >= 0 && begin < 4e17) ||
	    !(length >= 0 && length < 4e17))
		return false;
	*out_begin_ns = llround(begin);
	*out_end_ns = *out_begin_ns + llround(length);
	return true;
}

bool diagnose_trace_meeting(const json_t *event, uint64_t *out_call)
{
	const json_t *args = json_object_get(event, "args");
	int64_t group, first, number;
	if (!json_is_true(json_object_get(args, "meeting")) || !copy_number(args, "group", UINT16_MAX, &group) ||
	    !copy_number(args, "first", 65535, &first) || !copy_number(args, "number", (int64_t)NUMBERS_MOST - 1, &number))
		return false;
	/* Fits: 38 bits, 10 bits of channels (multiples of four that wrap around late), 16 bits. */
	*out_call = (uint64_t)number | ((uint64_t)group / 4 & 1023) << 38 | (uint64_t)first << 48;
	return true;
}
