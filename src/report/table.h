/*
 * table.h - text tables for people: aligned columns, numbers to the right.
 *
 *   static const char *const headers[] = {"name", "bytes", NULL};
 *   struct table table;
 *   table_init(&table, headers);
 *   table_cell(&table, "%s", "ring");
 *   table_cell(&table, "%u", 4096u);
 *   status = table_print(&table, stdout);
 *   table_fini(&table);
 *
 * Cells fill the rows from left to right. A column in which every cell starts like a
 * number ("-" and empty cells aside) is aligned to the right. Holds all cells until it
 * is printed; if memory runs out, table_print() returns ESP_ENOMEM. One thread.
 */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct table {
	const char *const *headers; /* borrowed; ends with NULL */
	size_t columns;
	char **cells; /* owned; row after row */
	size_t count;
	size_t capacity;
	bool failed; /* a cell was lost for want of memory */
};

void table_init(struct table *table, const char *const *headers);
void table_fini(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ESP_ENOMEM if a cell was lost, ESP_EIO if it could not be written. */
ESP_CHECKED enum esp_status table_print(const struct table *table, FILE *out);

#endif
