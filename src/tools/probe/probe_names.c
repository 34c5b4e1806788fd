/*
 * probe_names.c - names of hosts as pictures have them: without what all of them end in, and not too long.
 */
#include <stdio.h>

#include "tools/probe/probe_page.h"

/* Addresses have no domain: their last part is a number. */
static bool ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot[1 + strspn(dot + 1, "0123456789")] == '\0';
}

static bool end_alike(const char *a, const char *b, size_t bytes)
{
	size_t length_a = strlen(a), length_b = strlen(b);

	return length_a > bytes && length_b > bytes && memcmp(a + length_a - bytes, b + length_b - bytes, bytes) == 0;
}

size_t page_find_domain(const struct probe_page *page)
{
	uint32_t hosts = page->outcome->found.survey.count;

	for (const char *dot = strchr(page_name(page, 0), '.'); dot; dot = strchr(dot + 1, '.')) {
		bool is_shared = !ends_in_number(dot);
		for (uint32_t i = 1; i < hosts && is_shared; i++)
			is_shared = end_alike(page_name(page, 0), page_name(page, i), strlen(dot));
		if (is_shared && dot > page_name(page, 0))
			return strlen(dot);
	}
	return 0;
}

/* Cut where a character begins. */
const char *page_short_name(const struct probe_page *page, uint32_t host, char text[PAGE_NAME])
{
	const char *name = page_name(page, host);
	size_t length = strlen(name) - page->domain;

	if (length <= PAGE_NAME_SHOWN) {
		snprintf(text, PAGE_NAME, "%.*s", (int)length, name);
		return text;
	}
	for (length = PAGE_NAME_SHOWN - 1; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;)
		length--;
	snprintf(text, PAGE_NAME, "%.*s…", (int)length, name);
	return text;
}
