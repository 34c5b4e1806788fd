#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static void check_page(const char *document, const char *expected)
{
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	CHECK(file != NULL);
	CHECK(page_write("<a>{{document}}</a>\n", document, strlen(document), file) == ESP_OK);
	CHECK(fclose(file) == 0);
	CHECK_MSG(strcmp(text, expected) == 0, "%s", text);
	free(text);
}

static void test_markup(void)
{
	check_page("", "<a></a>\n");
	check_page("{\"a\": 1}", "<a>{\"a\": 1}</a>\n");
	check_page("\"</script><!--\"", "<a>\"\\u003c/script>\\u003c!--\"</a>\n");
	check_page("\"<<\"", "<a>\"\\u003c\\u003c\"</a>\n");
}

static void test_full(void)
{
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		return;
	CHECK(page_write("{{document}}", "1", 1, full) == ESP_EIO);
	(void)fclose(full);
}

int main(void)
{
	test_markup();
	test_full();
	return 0;
}
