/*
 * nodelist_fuzz.c - Slurm's lists of hosts: every name that a list counts can be written and is found in it,
 * and there is none beyond.
 */
#include "fuzz.h"

#include <string.h>

#include "network/topo/nodelist.h"

#define TEXT 512

static void check_name(const char *text, uint64_t index)
{
	char name[256], small[4];
	struct error err;

	enum esp_status status = nodelist_name(text, "list", index, name, sizeof(name), &err);
	FUZZ_CHECK(status == ESP_OK || status == ESP_ELIMIT);
	if (status != ESP_OK)
		return;
	size_t length = strlen(name);
	FUZZ_CHECK(nodelist_has(text, name, length));
	FUZZ_CHECK(length > 0 && !strpbrk(name, "[], \n"));
	status = nodelist_name(text, "list", index, small, sizeof(small), &err);
	FUZZ_CHECK((status == ESP_OK) == (length < sizeof(small)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT], name[256];
	struct error err;
	uint64_t count = 0;

	if (size >= TEXT)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (nodelist_count(text, "list", &count, &err) != ESP_OK) {
		FUZZ_CHECK(nodelist_name(text, "list", 0, name, sizeof(name), &err) == ESP_EINVAL);
		for (const char *c = err.text; *c; c++)
			FUZZ_CHECK(*c >= 0x20 && *c < 0x7f);
		return 0;
	}
	FUZZ_CHECK(count > 0);
	check_name(text, 0);
	check_name(text, count / 2);
	check_name(text, count - 1);
	FUZZ_CHECK(nodelist_name(text, "list", count, name, sizeof(name), &err) == ESP_EINVAL);
	return 0;
}
