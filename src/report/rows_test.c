#include "report/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static const struct column columns[] = {
	{"name", "name"}, {"ms", "seconds", "%.1f", 1e3}, {"MB", "bytes", "%.2f", 1e-6}, {"count", "count"}, {NULL, "list"},
	{"share", NULL, "%+.0f%%"}, {"right", "right"}, {NULL, "last"}, {0},
};

static void put_list(struct json *json)
{
	if (!json)
		return;
	json_array_begin(json);
	json_u64(json, 7);
	json_array_end(json);
}

static void put_rows(struct rows *rows)
{
	rows_text(rows, "ring");
	rows_double(rows, 0.25);
	rows_u64(rows, 1500000);
	rows_i64(rows, -3);
	put_list(rows_nested(rows));
	rows_double(rows, 12);
	rows_bool(rows, true);
	put_list(rows_nested(rows));

	rows_text(rows, NULL);
	rows_double(rows, NAN);
	rows_none(rows);
	rows_skip(rows);
	rows_skip(rows);
	rows_shown(rows, "%s", "all");
	rows_double(rows, 100);
	rows_bool(rows, false);
	rows_skip(rows);

	rows_text(rows, "no");
	rows_skip_rest(rows);
}

static void check_text(bool as_json, const char *expected)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct json json;
	struct rows rows;

	CHECK(out != NULL);
	json_init(&json, out);
	json.flat_depth = 1;
	rows_begin(&rows, columns, as_json ? &json : NULL);
	put_rows(&rows);
	CHECK(rows_end(&rows, out) == ESP_OK);
	if (as_json)
		CHECK(json_fini(&json) == ESP_OK);
	CHECK(fclose(out) == 0);
	CHECK_MSG(strcmp(text, expected) == 0, "%s", text);
	free(text);
}

static void test_table(void)
{
	check_text(false, "name     ms    MB  count  share  right\n"
	                  "ring  250.0  1.50     -3  +12%   yes\n"
	                  "-         -     -      -  all    no\n"
	                  "no        -     -      -  -      -\n");
}

static void test_json(void)
{
	check_text(true, "[\n"
	                 "  {\"name\": \"ring\", \"seconds\": 0.25, \"bytes\": 1500000, \"count\": -3, \"list\": [7], "
	                 "\"right\": true, \"last\": [7]},\n"
	                 "  {\"name\": null, \"seconds\": null, \"bytes\": null, \"right\": false},\n"
	                 "  {\"name\": \"no\"}\n"
	                 "]\n");
}

/* With no rows, table and JSON are complete. */
static void test_empty(void)
{
	char text[200] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct rows rows;

	CHECK(out != NULL);
	rows_begin(&rows, columns, NULL);
	CHECK(rows_end(&rows, out) == ESP_OK);
	CHECK(fclose(out) == 0);
	CHECK_MSG(strcmp(text, "name  ms  MB  count  share  right\n") == 0, "%s", text);
}

int main(void)
{
	test_table();
	test_json();
	test_empty();
	return 0;
}
