#include "report/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void begin_table(struct rows *rows)
{
	size_t titles = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (rows->columns[i].title)
			rows->titles[titles++] = rows->columns[i].title;
	}
	table_init(&rows->table, rows->titles);
}

void rows_begin(struct rows *rows, const struct column *columns, struct json *json)
{
	*rows = (struct rows){.columns = columns, .json = json};
	while (columns[rows->count].title || columns[rows->count].key)
		rows->count++;
	assert(rows->count > 0 && rows->count <= ROWS_COLUMNS_MAX);
	if (json)
		json_array_begin(json);
	else
		begin_table(rows);
}

static void end_row(struct rows *rows)
{
	if (rows->json && rows->at == rows->count)
		json_object_end(rows->json);
}

enum esp_status rows_end(struct rows *rows, FILE *out)
{
	assert((rows->at == 0 || rows->at == rows->count) && !rows->shown);
	if (rows->json) {
		end_row(rows);
		json_array_end(rows->json);
		return ESP_OK;
	}
	enum esp_status status = table_print(&rows->table, out);
	table_fini(&rows->table);
	return status;
}

enum esp_status rows_finish(struct rows *rows, FILE *out)
{
	enum esp_status status = rows_end(rows, out);

	if (!rows->json)
		return status;
	json_object_end(rows->json);
	return json_fini(rows->json);
}

/* ---- a value ---- */

/* Moves to the next column. A row ends when the next one begins, because its last value may be a nested one. */
static const struct column *take_column(struct rows *rows)
{
	end_row(rows);
	rows->at %= rows->count;
	if (rows->json && rows->at == 0)
		json_object_begin(rows->json);
	return &rows->columns[rows->at++];
}

static void end_value(struct rows *rows)
{
	free(rows->shown);
	rows->shown = NULL;
}

/* Writes the key if this column's value goes into JSON; false: it does not. */
static bool put_key(const struct rows *rows, const struct column *column)
{
	if (!rows->json || !column->key)
		return false;
	json_key(rows->json, column->key);
	return true;
}

static void put_cell(struct rows *rows, const struct column *column, const char *text)
{
	if (!rows->json && column->title)
		table_cell(&rows->table, "%s", rows->shown ? rows->shown : text);
}

/* True for a format with one conversion of a double, and any number of "%%". */
static bool is_of_double(const char *format)
{
	const char *at = strchr(format, '%');

	if (!at)
		return false;
	at += 1 + strspn(at + 1, "+-# 0123456789.");
	if (!*at || !strchr("efg", *at))
		return false;
	for (at = strchr(at, '%'); at; at = strchr(at + 2, '%')) {
		if (at[1] != '%')
			return false;
	}
	return true;
}

static void put_number(struct rows *rows, const struct column *column, double value)
{
	const char *format = column->format ? column->format : "%g";
	char text[64];

	assert(is_of_double(format));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), format, value * (column->factor != 0 ? column->factor : 1));
#pragma GCC diagnostic pop
	put_cell(rows, column, text);
}

void rows_text(struct rows *rows, const char *text)
{
	const struct column *column = take_column(rows);

	if (put_key(rows, column))
		json_text(rows->json, text);
	put_cell(rows, column, text ? text : "-");
	end_value(rows);
}

static void put_digits(struct rows *rows, const struct column *column, const char *digits, double value)
{
	if (column->format)
		put_number(rows, column, value);
	else
		put_cell(rows, column, digits);
	end_value(rows);
}

void rows_u64(struct rows *rows, uint64_t value)
{
	const struct column *column = take_column(rows);
	char digits[24];

	if (put_key(rows, column))
		json_u64(rows->json, value);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	put_digits(rows, column, digits, (double)value);
}

void rows_i64(struct rows *rows, int64_t value)
{
	const struct column *column = take_column(rows);
	char digits[24];

	if (put_key(rows, column))
		json_i64(rows->json, value);
	snprintf(digits, sizeof(digits), "%" PRId64, value);
	put_digits(rows, column, digits, (double)value);
}

void rows_double(struct rows *rows, double value)
{
	const struct column *column = take_column(rows);

	if (put_key(rows, column))
		json_double(rows->json, value);
	if (isnan(value))
		put_cell(rows, column, "-");
	else
		put_number(rows, column, value);
	end_value(rows);
}

void rows_bool(struct rows *rows, bool value)
{
	const struct column *column = take_column(rows);

	if (put_key(rows, column))
		json_bool(rows->json, value);
	put_cell(rows, column, value ? "yes" : "no");
	end_value(rows);
}

void rows_none(struct rows *rows)
{
	rows_text(rows, NULL);
}

void rows_skip(struct rows *rows)
{
	put_cell(rows, take_column(rows), "-");
	end_value(rows);
}

void rows_skip_rest(struct rows *rows)
{
	assert(rows->at > 0 && rows->at < rows->count);
	while (rows->at < rows->count)
		rows_skip(rows);
}

void rows_shown(struct rows *rows, const char *format, ...)
{
	va_list args;

	assert(!rows->shown);
	if (rows->json)
		return;
	va_start(args, format);
	if (vasprintf(&rows->shown, format, args) < 0) {
		rows->shown = NULL;
		rows->table.failed = true;
	}
	va_end(args);
}

struct json *rows_nested(struct rows *rows)
{
	const struct column *column = take_column(rows);
	bool is_written = put_key(rows, column);

	assert(!column->title && !rows->shown);
	return is_written ? rows->json : NULL;
}
