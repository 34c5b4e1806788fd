#include "report/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

void json_init(struct json *json, FILE *out)
{
	memset(json, 0, sizeof *json);
	json->out = out;
}

enum esp_status json_fini(struct json *json)
{
	assert(json->depth == 0 && json->done);
	fputc('\n', json->out);
	return fflush(json->out) != 0 || ferror(json->out) ? ESP_EIO : ESP_OK;
}

static void new_line(const struct json *json)
{
	fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

static bool is_flat(const struct json *json, uint32_t depth)
{
	return json->flat_depth > 0 && depth > json->flat_depth;
}

/* The comma and the line break in front of a key or of an array's element. */
static void separate(struct json *json)
{
	uint32_t top = json->depth - 1;
	bool flat = is_flat(json, json->depth);
	if (!json->empty[top])
		fputs(flat ? ", " : ",", json->out);
	json->empty[top] = false;
	if (!flat)
		new_line(json);
}

static void before_value(struct json *json)
{
	assert(!json->done);
	if (json->depth == 0)
		return;
	if (json->in_object[json->depth - 1])
		assert(json->keyed);
	else
		separate(json);
	json->keyed = false;
}

static void after_value(struct json *json)
{
	json->done = json->depth == 0;
}

static void begin(struct json *json, bool object)
{
	before_value(json);
	assert(json->depth < JSON_DEPTH);
	json->in_object[json->depth] = object;
	json->empty[json->depth] = true;
	json->depth++;
	fputc(object ? '{' : '[', json->out);
}

static void end(struct json *json, bool object)
{
	assert(json->depth > 0 && json->in_object[json->depth - 1] == object && !json->keyed);
	json->depth--;
	if (!json->empty[json->depth] && !is_flat(json, json->depth + 1))
		new_line(json);
	fputc(object ? '}' : ']', json->out);
	after_value(json);
}

void json_object_begin(struct json *json)
{
	begin(json, true);
}

void json_object_end(struct json *json)
{
	end(json, true);
}

void json_array_begin(struct json *json)
{
	begin(json, false);
}

void json_array_end(struct json *json)
{
	end(json, false);
}

static void write_ascii(FILE *out, char c)
{
	switch (c) {
	case '"':
		fputs("\\\"", out);
		return;
	case '\\':
		fputs("\\\\", out);
		return;
	case '\n':
		fputs("\\n", out);
		return;
	case '\r':
		fputs("\\r", out);
		return;
	case '\t':
		fputs("\\t", out);
		return;
	default:
		break;
	}
	if ((unsigned char)c < 0x20 || c == 0x7f)
		fprintf(out, "\\u%04x", (unsigned)c);
	else
		fputc(c, out);
}

static void write_string(FILE *out, const char *text, size_t length)
{
	fputc('"', out);
	while (length > 0) {
		size_t bytes = utf8_character(text, length);
		if (bytes == 1)
			write_ascii(out, text[0]);
		else if (bytes > 1)
			fwrite(text, 1, bytes, out);
		else
			fputs("\\ufffd", out);
		bytes += bytes == 0; /* step over the byte that is not UTF-8 */
		text += bytes;
		length -= bytes;
	}
	fputc('"', out);
}

void json_key(struct json *json, const char *key)
{
	assert(json->depth > 0 && json->in_object[json->depth - 1] && !json->keyed);
	separate(json);
	write_string(json->out, key, strlen(key));
	fputs(": ", json->out);
	json->keyed = true;
}

static void literal(struct json *json, const char *text)
{
	before_value(json);
	fputs(text, json->out);
	after_value(json);
}

void json_text(struct json *json, const char *text)
{
	if (text)
		json_string_n(json, text, strlen(text));
	else
		json_none(json);
}

void json_string_n(struct json *json, const char *text, size_t length)
{
	before_value(json);
	write_string(json->out, text, length);
	after_value(json);
}

void json_u64(struct json *json, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	literal(json, text);
}

void json_i64(struct json *json, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, value);
	literal(json, text);
}

void json_double(struct json *json, double value)
{
	char text[NUMBER_DOUBLE_TEXT];
	literal(json, isfinite(value) ? number_format_double(value, text) : "null");
}

void json_bool(struct json *json, bool value)
{
	literal(json, value ? "true" : "false");
}

void json_none(struct json *json)
{
	literal(json, "null");
}

void json_put_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

void json_put_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_put_i64(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_i64(json, value);
}

void json_put_double(struct json *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

void json_put_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}
