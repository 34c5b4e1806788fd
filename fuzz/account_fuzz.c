/*
 * account_fuzz.c - accounts of ranks: what is read can be written and judged, and read again as it was.
 */
#include "fuzz.h"

#include <string.h>

#include "tools/diagnose/account_read.h"
#include "tools/diagnose/verdict.h"

static char *write_down(const struct account *account, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	FUZZ_CHECK(out && account_write(account, out) == ESP_OK && fclose(out) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct account account, again;
	struct error err = {0};
	size_t first_size, second_size;

	if (diagnose_account_read((const char *)data, size, &account, &err) != ESP_OK) {
		FUZZ_CHECK(err.status != ESP_OK && err.text[0]);
		return 0;
	}
	for (int live = 0; live < 2; live++) {
		struct verdict verdict = diagnose_verdict_find(&account, 1, live);

		FUZZ_CHECK(verdict.rank < (int32_t)account.size && strlen(verdict.text) < VERDICT_TEXT);
	}
	char *first = write_down(&account, &first_size);
	FUZZ_CHECK(diagnose_account_read(first, first_size, &again, &err) == ESP_OK);
	char *second = write_down(&again, &second_size);
	FUZZ_CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
	account_fini(&account);
	account_fini(&again);
	free(first);
	free(second);
	return 0;
}
