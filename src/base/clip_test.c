#include "base/clip.h"

#include <string.h>

#include "base/check.h"
#include "base/error.h"

static const char sentence[] = "the deadline of rank 1 (10 s) passed; this rank waited for rank 0 on a";

int main(void)
{
	char text[128], small[sizeof(sentence)];
	struct error err;

	CHECK_STR(clip(text, sizeof(text), "%s", sentence), sentence);
	CHECK_STR(clip(small, sizeof(small), "%s", sentence), sentence);
	CHECK_STR(clip(text, 64, "%s", sentence), "the deadline of rank 1 (10 s) passed; this rank waited for...");
	CHECK_STR(clip(text, 40, "%s", sentence), "the deadline of rank 1 (10 s)...");
	CHECK_STR(clip(text, 42, "%s", sentence), "the deadline of rank 1 (10 s) passed...");
	/* A word that is too long to be left out whole. */
	CHECK_STR(clip(text, 40, "cannot read %s", "/a/very/long/path/with/many/many/folders/and/a/file"),
	          "cannot read /a/very/long/path/with/m...");
	for (size_t size = 1; size < sizeof(small); size++) {
		memset(text, 'x', sizeof(text));
		clip(text, size, "%s", sentence);
		CHECK(strlen(text) < size && text[size] == 'x');
		CHECK(size < 5 || strcmp(text + strlen(text) - 3, "...") == 0);
	}
	/* A cause is told in the same way. */
	char long_text[sizeof(err.text) + 40];
	memset(long_text, 'a', sizeof(long_text));
	for (size_t i = 7; i < sizeof(long_text); i += 8)
		long_text[i] = ' ';
	long_text[sizeof(long_text) - 1] = '\0';
	error_set(&err, ESP_EIO, "%s", long_text);
	CHECK_STR(err.text + strlen(err.text) - 10, "aaaaaaa...");
	return 0;
}
