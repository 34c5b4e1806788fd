/*
 * interface_fuzz.c - the filter of interfaces and the weights of rails: what is taken keeps to its bounds, and what is not says why.
 */
#include "fuzz.h"

#include <string.h>

#include "node/net/interface.h"
#include "node/net/route.h"

#define TEXT_MOST 255u

static void check_filter(const char *text)
{
	struct interface_filter filter;
	struct error err = {0};

	if (interface_filter_parse(text, &filter, &err) != ESP_OK) {
		FUZZ_CHECK(strncmp(err.text, "interfaces is a list", 20) == 0);
		return;
	}
	FUZZ_CHECK(filter.count <= INTERFACE_NAMES && (filter.count > 0) == (text[0] != '\0'));
	for (uint32_t i = 0; i < filter.count; i++) {
		FUZZ_CHECK(memchr(filter.names[i], '\0', INTERFACE_NAME) != NULL && filter.names[i][0] != '\0');
		/* Whoever is named is let through, or is not. */
		FUZZ_CHECK(interface_filter_takes(&filter, filter.names[i]) == !filter.excludes);
	}
	FUZZ_CHECK(interface_filter_takes(&filter, "") == (filter.count == 0 || filter.excludes));
}

static void check_weights(const char *text)
{
	uint32_t weights[RAILS_MOST], sum = 0;
	struct error err = {0};

	for (uint32_t count = 1; count <= RAILS_MOST; count++) {
		if (rails_parse_weights(text, count, weights, &err) != ESP_OK) {
			FUZZ_CHECK(strncmp(err.text, "rail_weights ", 13) == 0);
			continue;
		}
		for (uint32_t i = 0; i < count; i++)
			sum += weights[i];
		FUZZ_CHECK(sum > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MOST + 1];
	size_t length = size < TEXT_MOST ? size : TEXT_MOST;

	memcpy(text, data, length);
	text[length] = '\0';
	check_filter(text);
	check_weights(text);
	return 0;
}
