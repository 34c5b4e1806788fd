#include "report/table.h"

#include "base/check.h"

static void test_layout(void)
{
	static const char *const headers[] = {"name", "bytes", "change", "note", NULL};
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof text, "w");
	struct table table;
	table_init(&table, headers);
	table_cell(&table, "ring");
	table_cell(&table, "%d", 4096);
	table_cell(&table, "-");
	table_cell(&table, "fast");
	table_cell(&table, "b\xc3\xa4umchen");
	table_cell(&table, "64K");
	table_cell(&table, "%.1f%%", -2.5);
	table_cell(&table, "%s", "");
	CHECK(table_print(&table, out) == ESP_OK);
	fclose(out);
	table_fini(&table);
	CHECK_STR(text, "name      bytes  change  note\n"
	                "ring       4096       -  fast\n"
	                "b\xc3\xa4umchen    64K   -2.5%  \n");
}

static void test_many(void)
{
	static const char *const headers[] = {"n", NULL};
	struct table table;
	FILE *out = fopen("/dev/null", "w");
	table_init(&table, headers);
	for (int i = 0; i < 1000; i++)
		table_cell(&table, "%d", i);
	CHECK_U64(table.count, 1000);
	CHECK(table_print(&table, out) == ESP_OK);
	fclose(out);
	table_fini(&table);
	table_fini(&table); /* accepts a zeroed table */
}

int main(void)
{
	test_layout();
	test_many();
	return 0;
}
