#include "report/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
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
	putc_unlocked('\n', json->out);
	return fflush(json->out) != 0 || ferror(json->out) ? ESP_EIO : ESP_OK;
}

static void new_line(const struct json *json)
{
	putc_unlocked('\n', json->out);
	for (uint32_t i = 0; i < json->depth; i++)
		fputs_unlocked("  ", json->out);
}

static bool is_flat(const struct json *json, uint32_t depth)
{
	return json->flat_depth > 0 && depth > json->flat_depth;
}

/* Writes the comma and the line break in front of a key or of an array's element. */
static void separate(struct json *json)
{
	uint32_t top = json->depth - 1;
	bool flat = is_flat(json, json->depth);
	if (!json->empty[top])
		fputs_unlocked(flat ? ", " : ",", json->out);
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
	putc_unlocked(object ? '{' : '[', json->out);
}

static void end(struct json *json, bool object)
{
	assert(json->depth > 0 && json->in_object[json->depth - 1] == object && !json->keyed);
	json->depth--;
	if (!json->empty[json->depth] && !is_flat(json, json->depth + 1))
		new_line(json);
	putc_unlocked(object ? '}' : ']', json->out);
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

void json_array_resume(struct json *json, FILE *out)
{
	json_init(json, out);
	json->depth = 1;
}

static void write_ascii(FILE *out, char c)
{
	switch (c) {
	case '"':
		fputs_unlocked("\\\"", out);
		return;
	case '\\':
		fputs_unlocked("\\\\", out);
		return;
	case '\n':
		fputs_unlocked("\\n", out);
		return;
	case '\r':
		fputs_unlocked("\\r", out);
		return;
	case '\t':
		fputs_unlocked("\\t", out);
		return;
	default:
		break;
	}
	if ((unsigned char)c < 0x20 || c == 0x7f)
		fprintf(out, "\\u%04x", (unsigned)c);
	else
		putc_unlocked(c, out);
}

/* The number of bytes at the beginning of text that need no escape; nearly always all of them. */
static size_t plain_bytes(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length && text[at] >= 0x20 && text[at] < 0x7f && text[at] != '"' && text[at] != '\\')
		at++;
	return at;
}

static void write_string(FILE *out, const char *text, size_t length)
{
	putc_unlocked('"', out);
	while (length > 0) {
		size_t bytes = plain_bytes(text, length);
		if (bytes > 0) {
			fwrite_unlocked(text, 1, bytes, out);
			text += bytes;
			length -= bytes;
			continue;
		}
		bytes = utf8_character(text, length);
		if (bytes == 1)
			write_ascii(out, text[0]);
		else if (bytes > 1)
			fwrite_unlocked(text, 1, bytes, out);
		else
			fputs_unlocked("\\ufffd", out);
		bytes += bytes == 0; /* step over the byte that is not UTF-8 */
		text += bytes;
		length -= bytes;
	}
	putc_unlocked('"', out);
}

void json_key(struct json *json, const char *key)
{
	assert(json->depth > 0 && json->in_object[json->depth - 1] && !json->keyed);
	separate(json);
	write_string(json->out, key, strlen(key));
	fputs_unlocked(": ", json->out);
	json->keyed = true;
}

static void literal(struct json *json, const char *text)
{
	before_value(json);
	fputs_unlocked(text, json->out);
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

/*
 * Writes at least this many digits, ended by a zero byte, and returns where they begin in text, with room for a sign
 * in front. With snprintf() instead, an event of a trace takes 1.05 us, not 0.77.
 */
#define DIGITS_TEXT 24
static char *format_digits(uint64_t value, unsigned least, char text[DIGITS_TEXT])
{
	char *at = text + DIGITS_TEXT - 1;
	assert(least < DIGITS_TEXT - 2);
	*at = '\0';
	for (; value > 0 || text + DIGITS_TEXT - 1 - at < (ptrdiff_t)least; value /= 10)
		*--at = (char)('0' + value % 10);
	return at;
}

void json_u64(struct json *json, uint64_t value)
{
	char text[DIGITS_TEXT];
	literal(json, format_digits(value, 1, text));
}

void json_i64(struct json *json, int64_t value)
{
	char text[DIGITS_TEXT], *digits = format_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, 1, text);
	if (value < 0)
		*--digits = '-';
	literal(json, digits);
}

void json_double(struct json *json, double value)
{
	char text[NUMBER_DOUBLE_TEXT];
	literal(json, isfinite(value) ? number_format_double(value, text) : "null");
}

void json_decimal(struct json *json, int64_t value, unsigned digits)
{
	char text[DIGITS_TEXT], *all = format_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, digits + 1, text);
	size_t whole = strlen(all) - digits;
	assert(digits >= 1 && digits <= 18);
	before_value(json);
	if (value < 0)
		putc_unlocked('-', json->out);
	fwrite_unlocked(all, 1, whole, json->out);
	putc_unlocked('.', json->out);
	fputs_unlocked(all + whole, json->out);
	after_value(json);
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
