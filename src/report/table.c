#include "report/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"

#define GAP 2 /* blanks between columns */

void table_init(struct table *table, const char *const *headers)
{
	memset(table, 0, sizeof *table);
	table->headers = headers;
	while (headers[table->columns])
		table->columns++;
}

void table_fini(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	memset(table, 0, sizeof *table);
}

void table_cell(struct table *table, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (!text || !vec_reserve(&table->cells, &table->capacity, table->count + 1, sizeof(*table->cells))) {
		free(text);
		table->failed = true;
		return;
	}
	table->cells[table->count++] = text;
}

static bool starts_like_number(const char *text)
{
	if (*text == '-' || *text == '+')
		text++;
	return *text >= '0' && *text <= '9';
}

static bool is_number_column(const struct table *table, size_t column)
{
	bool found = false;
	for (size_t i = column; i < table->count; i += table->columns) {
		const char *cell = table->cells[i];
		if (*cell == '\0' || strcmp(cell, "-") == 0)
			continue;
		if (!starts_like_number(cell))
			return false;
		found = true;
	}
	return found;
}

static size_t column_width(const struct table *table, size_t column)
{
	size_t width = utf8_count(table->headers[column]);
	for (size_t i = column; i < table->count; i += table->columns) {
		size_t cell = utf8_count(table->cells[i]);
		width = cell > width ? cell : width;
	}
	return width;
}

struct layout {
	size_t width;
	bool right;
};

static void print_cell(const char *text, const struct layout *layout, bool last, FILE *out)
{
	int pad = (int)(layout->width - utf8_count(text));
	if (layout->right)
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, ""); /* no blanks at the end of a line */
	if (last)
		fputc('\n', out);
	else
		fprintf(out, "%*s", GAP, "");
}

enum esp_status table_print(const struct table *table, FILE *out)
{
	struct layout *layouts = calloc(table->columns, sizeof *layouts);
	if (!layouts || table->failed) {
		free(layouts);
		return ESP_ENOMEM;
	}
	for (size_t column = 0; column < table->columns; column++)
		layouts[column] = (struct layout){column_width(table, column), is_number_column(table, column)};
	for (size_t column = 0; column < table->columns; column++)
		print_cell(table->headers[column], &layouts[column], column + 1 == table->columns, out);
	for (size_t i = 0; i < table->count; i++) {
		size_t column = i % table->columns;
		print_cell(table->cells[i], &layouts[column], column + 1 == table->columns || i + 1 == table->count, out);
	}
	free(layouts);
	return ferror(out) ? ESP_EIO : ESP_OK;
}
