/*
 * survey_fuzz.c - measured distances as text: what is read is a sound matrix, and what is printed of it reads back the same; or the
 * reason names its line.
 */
#include "fuzz.h"

#include <string.h>

#include "network/topo/survey.h"

static char *print(const struct survey *survey, size_t *length)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, length);

	FUZZ_CHECK(file && survey_print(survey, file, NULL) == ESP_OK);
	fclose(file);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct survey survey, again;
	struct error err = {0};
	size_t length, length_again;

	if (survey_parse((const char *)data, size, &survey, &err) != ESP_OK) {
		FUZZ_CHECK(strncmp(err.text, "line ", 5) == 0 || err.status == ESP_ENOMEM);
		return 0;
	}
	FUZZ_CHECK(survey.count > 0);
	for (int kind = 0; kind < SURVEY_KINDS; kind++)
		FUZZ_CHECK(!survey.matrices[kind].at || (survey.matrices[kind].size == survey.count && matrix_check(&survey.matrices[kind], &err) == ESP_OK));
	char *text = print(&survey, &length);
	FUZZ_CHECK(survey_parse(text, length, &again, &err) == ESP_OK);
	char *text_again = print(&again, &length_again);
	FUZZ_CHECK(length == length_again && memcmp(text, text_again, length) == 0);
	free(text);
	free(text_again);
	survey_fini(&survey);
	survey_fini(&again);
	return 0;
}
