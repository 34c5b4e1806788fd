/*
 * rows.h - rows of values, shown as a table for people or as an array of objects in JSON, from one description of
 * their columns.
 *
 *   static const struct column columns[] = {
 *   	{"model", "name"}, {"forward ms", "forward_s", "%.2f", 1e3}, {NULL, "source"}, {0},
 *   };
 *   struct rows rows;
 *   rows_begin(&rows, columns, json); // NULL: a table
 *   rows_text(&rows, model->name);
 *   rows_double(&rows, model->forward_s);
 *   rows_text(&rows, model->source);
 *   status = rows_end(&rows, stdout);
 *
 * Each call gives the value of the next column, from left to right and row by row, also of columns that the form
 * leaves out; a row without all of its values asserts. In JSON the array is the next value, of a key or of an array.
 * A value that is missing (none, NAN, NULL) is "-" in a table and null in JSON. One thread.
 */
#ifndef REPORT_ROWS_H
#define REPORT_ROWS_H

#include "report/json.h"
#include "report/table.h"

#define ROWS_COLUMNS_MAX 24u

struct column {
	const char *title;  /* in the table; NULL: not in it */
	const char *key;    /* in JSON; NULL: not in it */
	/* of a number in the table: for printf() and one double ("%.1f", "%.2fx"); NULL: integer digits, or "%g" */
	const char *format;
	double factor;      /* the table shows the number times this; 0: 1 */
};

struct rows {
	const struct column *columns; /* borrowed; ends with a column without title and key */
	size_t count, at;             /* number of columns; index of the next one */
	struct json *json;            /* borrowed; NULL: a table */
	struct table table;
	const char *titles[ROWS_COLUMNS_MAX + 1];
	char *shown; /* owned: what the table shows in place of the next value; NULL: the value */
};

void rows_begin(struct rows *rows, const struct column *columns, struct json *json);
/* Ends the array, or prints the table. ESP_ENOMEM, ESP_EIO: of a table; errors of JSON are those of json_fini(). */
ESP_CHECKED enum esp_status rows_end(struct rows *rows, FILE *out);

/* The same for an array that is the last key of the document: also ends its object and the document. */
ESP_CHECKED enum esp_status rows_finish(struct rows *rows, FILE *out);

void rows_text(struct rows *rows, const char *text);
void rows_u64(struct rows *rows, uint64_t value);
void rows_i64(struct rows *rows, int64_t value);
void rows_double(struct rows *rows, double value);
void rows_bool(struct rows *rows, bool value); /* "yes", "no" */
/*
 * rows_none(): no value, null in JSON. rows_skip(): leaves out the key, too. rows_skip_rest(): leaves out the keys of
 * all columns up to the end of the row.
 */
void rows_none(struct rows *rows);
void rows_skip(struct rows *rows);
void rows_skip_rest(struct rows *rows);

/* The table shows this text in place of the next value. */
void rows_shown(struct rows *rows, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * For a value that only JSON has, such as an object: writes its key, and the caller writes the value. NULL: a table,
 * or no key.
 */
struct json *rows_nested(struct rows *rows);

#endif
