/*
 * json.h - writes JSON to a FILE as it goes, indented by two blanks, or with small things on one line.
 *
 *   struct json json;
 *   json_init(&json, stdout);
 *   json_object_begin(&json);
 *   json_key(&json, "ranks");
 *   json_u64(&json, 8);
 *   json_object_end(&json);
 *   status = json_fini(&json);
 *
 * The output is always valid JSON in UTF-8: bytes that are not UTF-8 become U+FFFD, and
 * numbers that JSON does not have (NaN, infinities) become null. A value without its key,
 * or an end without its beginning, is a bug of the caller and asserts. No allocation; one
 * thread, which has the FILE to itself: its lock is not taken.
 *
 * No name here is a name of libjansson, which reads JSON elsewhere: one program has both.
 */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define JSON_DEPTH 32

struct json {
	FILE *out; /* borrowed */
	uint32_t depth;
	uint32_t flat_depth; /* values below this depth stand on one line; 0: none does. Set after json_init() */
	bool in_object[JSON_DEPTH]; /* by depth: object or array */
	bool empty[JSON_DEPTH];     /* by depth: nothing in it yet */
	bool keyed;                 /* a key waits for its value */
	bool done;                  /* the outermost value is complete */
};

void json_init(struct json *json, FILE *out);

/* Ends the last line and flushes. ESP_EIO if anything could not be written. */
ESP_CHECKED enum esp_status json_fini(struct json *json);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);
/* In place of json_init(): continues an array that already has values. */
void json_array_resume(struct json *json, FILE *out);

void json_key(struct json *json, const char *key);
void json_text(struct json *json, const char *text); /* NULL becomes null */
void json_string_n(struct json *json, const char *text, size_t length);
void json_u64(struct json *json, uint64_t value);
void json_i64(struct json *json, int64_t value);
void json_double(struct json *json, double value);
/* value / 10^digits, exactly, with that many digits after the decimal point: 1 to 18. */
void json_decimal(struct json *json, int64_t value, unsigned digits);
void json_bool(struct json *json, bool value);
void json_none(struct json *json);

/* A key and its value. */
void json_put_string(struct json *json, const char *key, const char *text);
void json_put_u64(struct json *json, const char *key, uint64_t value);
void json_put_i64(struct json *json, const char *key, int64_t value);
void json_put_double(struct json *json, const char *key, double value);
void json_put_bool(struct json *json, const char *key, bool value);

#endif
