#include "network/topo/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

static char *print(const struct survey *survey)
{
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);
	struct error err;

	CHECK(survey_print(survey, file, &err) == ESP_OK);
	fclose(file);
	return text;
}

static void test_read(void)
{
	static const char text[] = "# what was found\n\nsurvey 1\nlatency # round trips\nnode00 0 3.1e-05 "
	                           "3.6e-05\r\nnode01\t3.3e-05 0 -\n"
				   "node02 - - -\ninverse-bandwidth\nnode00 0 8e-09 -\nnode01 8e-09 0 1e-9\nnode02 - 1e-9 0";
	struct survey survey;
	struct error err;

	CHECK_MSG(survey_parse(text, strlen(text), &survey, &err) == ESP_OK, "%s", err.text);
	CHECK(survey.count == 3);
	CHECK_STR(survey.names[2], "node02");
	const struct matrix *latency = &survey.matrices[SURVEY_LATENCY],
	    *inverse = &survey.matrices[SURVEY_INVERSE_BANDWIDTH];
	CHECK(latency->size == 3 && matrix_check(latency, &err) == ESP_OK && matrix_check(inverse, &err) == ESP_OK);
	CHECK(fabs(matrix_get(latency, 0, 1) - 3.2e-5) < 1e-12); /* the mean */
	CHECK(matrix_get(latency, 2, 0) == 3.6e-5 && isnan(matrix_get(latency, 1, 2)) && matrix_get(latency, 2, 2) == 0);
	CHECK(matrix_get(inverse, 2, 1) == 1e-9);
	survey_fini(&survey);
	survey_fini(&survey);
}

/* Printed and parsed again, to the last bit. */
static void test_round_trip(uint64_t seed)
{
	static const char *const names[] = {"a", "b.example", "10.0.0.1", "fe80::1", "e"};
	struct survey survey, again;
	struct error err;
	struct rng rng;

	rng_init(&rng, seed);
	for (int turn = 0; turn < 20; turn++) {
		uint32_t count = 1 + (uint32_t)rng_below(&rng, 5);

		CHECK(survey_init(&survey, names, count, &err) == ESP_OK);
		for (int kind = 0; kind < SURVEY_KINDS; kind++) {
			if (kind == turn % 3)
				continue;
			CHECK(matrix_init(&survey.matrices[kind], count, &err) == ESP_OK);
			for (uint32_t i = 0; i < count; i++) {
				for (uint32_t j = 0; j < i; j++)
					matrix_set(&survey.matrices[kind], i, j, rng_chance(&rng, 1, 5) ? NAN : rng_unit(&rng) * 1e-5);
			}
		}
		char *text = print(&survey);
		CHECK_MSG(survey_parse(text, strlen(text), &again, &err) == ESP_OK, "%s in\n%s", err.text, text);
		char *more = print(&again);
		CHECK_STR(more, text);
		CHECK(again.count == count);
		free(text);
		free(more);
		survey_fini(&survey);
		survey_fini(&again);
	}
}

static void test_bad(void)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"", "line 1: a survey begins with the line: survey 1"},
		{"# nothing\n", "line 1: a survey begins with the line: survey 1"},
		{"survey 2\n", "line 1: a survey begins with the line: survey 1"},
		{"survey 1 2\n", "line 1: a survey begins with the line: survey 1"},
		{"survey 1\n", "line 2: there is no matrix; latency or inverse-bandwidth begins one"},
		{"survey 1\nlatencies\n", "line 2: 'latencies' begins no matrix; latency or inverse-bandwidth does"},
		{"survey 1\nlatency a\n", "line 2: hosts begin on the line behind latency"},
		{"survey 1\nlatency\n", "line 3: the text ends, and latency has no hosts"},
		{"survey 1\nlatency\na\n", "line 3: a host has a value for each of 1 to 4096 hosts"},
		{"survey 1\nlatency\na 0 1\n", "line 4: the text ends, and latency has 1 of 2 hosts"},
		{"survey 1\nlatency\na 0 1\nb 1\n", "line 4: 1 values for 2 hosts"},
		{"survey 1\nlatency\na 0 1\nb 1 0 2\n", "line 4: '2' follows the values of all 2 hosts"},
		{"survey 1\nlatency\na 0 1\na 1 0\n", "line 4: the matrix ends, and host 'a' is in it twice"},
		{"survey 1\nlatency\na 0 -1\nb 1 0\n", "line 3: the distance '-1' is below 0"},
		{"survey 1\nlatency\na 0 inf\nb 1 0\n", "line 3: 'inf' is no distance, such as 3.1e-05, and not '-'"},
		{"survey 1\nlatency\na 0 nan\nb 1 0\n", "line 3: 'nan' is no distance, such as 3.1e-05, and not '-'"},
		{"survey 1\nlatency\na 0 1e999\nb 1 0\n", "line 3: '1e999' is no distance, such as 3.1e-05, and not '-'"},
		{"survey 1\nlatency\na 2 1\nb 1 0\n", "line 3: the distance of a host to itself is '2', not 0"},
		{"survey 1\nlatency\na 0\nlatency\na 0\n", "line 4: latency is there already"},
		{"survey 1\nlatency\na 0\ninverse-bandwidth\nb 0\n", "line 5: 'b' stands where 'a' stood in the matrix before"},
		{"survey 1\nlatency\na\x01 0\n", "line 3: 'a?' is no host's name"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct survey survey;
		struct error err = {0};

		CHECK_MSG(survey_parse(cases[i].text, strlen(cases[i].text), &survey, &err) == ESP_EPARSE,
		          "\"%s\" was accepted", cases[i].text);
		CHECK_STR(err.text, cases[i].reason);
	}
}

static void test_names(void)
{
	struct survey survey;
	struct error err;

	CHECK(survey_init(&survey, (const char *const[]){"a", "b c"}, 2, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "'b c' cannot stand in a survey as a host's name");
	CHECK(survey_init(&survey, (const char *const[]){"a", "b", "a"}, 3, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "host 'a' is there twice");
	CHECK(survey_init(&survey, NULL, 0, &err) == ESP_ELIMIT);
}

int main(int argc, char **argv)
{
	test_read();
	test_round_trip(test_seed(argc, argv, 1));
	test_bad();
	test_names();
	return 0;
}
