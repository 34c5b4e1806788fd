#include "report/page.h"

#include <assert.h>
#include <string.h>

/* In JSON '<' occurs in strings only, where it may be written as an escape. */
static void write_document(const char *document, size_t length, FILE *out)
{
	const char *end = document + length;

	for (const char *at = document; at < end;) {
		const char *less = memchr(at, '<', (size_t)(end - at));
		size_t plain = (size_t)((less ? less : end) - at);

		fwrite(at, 1, plain, out);
		if (less)
			fputs("\\u003c", out);
		at += plain + (less != NULL);
	}
}

enum esp_status page_write(const char *template_text, const char *document, size_t length, FILE *out)
{
	const char *mark = strstr(template_text, PAGE_DOCUMENT);

	assert(mark && !strstr(mark + 1, PAGE_DOCUMENT));
	fwrite(template_text, 1, (size_t)(mark - template_text), out);
	write_document(document, length, out);
	fputs(mark + strlen(PAGE_DOCUMENT), out);
	return fflush(out) != 0 || ferror(out) ? ESP_EIO : ESP_OK;
}
