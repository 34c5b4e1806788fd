/*
 * ticket_fuzz.c - tickets of a parameter hub's jobs: one that parses prints to a text that parses to the same.
 */
#include "fuzz.h"

#include <string.h>

#include "hub/control/ticket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TICKET_TEXT_MOST], again[TICKET_TEXT_MOST];
	struct ticket ticket, back;
	struct error err;

	if (ticket_parse((const char *)data, size, &ticket, &err) != ESP_OK)
		return 0;
	size_t length = ticket_print(&ticket, text);
	FUZZ_CHECK(ticket_parse(text, length, &back, &err) == ESP_OK);
	FUZZ_CHECK(ticket_print(&back, again) == length && memcmp(text, again, length) == 0);
	return 0;
}
