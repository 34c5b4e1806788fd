#include "network/topo/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"

#define UNEVEN 1.1

static const char *const kind_names[SURVEY_KINDS] = {"latency", "inverse-bandwidth"};

const char *survey_kind_name(enum survey_kind kind)
{
	return kind_names[kind];
}

/* ---- names ---- */

/* Printable, neither blank nor '#': it is one word of a line. */
static bool is_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '#')
			return false;
	}
	return length > 0 && length <= SURVEY_NAME_MAX;
}

static enum esp_status add_name(struct survey *survey, const char *name, size_t length, struct error *err)
{
	survey->names[survey->count] = strndup(name, length);
	if (!survey->names[survey->count])
		return error_set(err, ESP_ENOMEM, "no memory for the names of hosts");
	survey->count++;
	return ESP_OK;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name that occurs twice, or NULL; *out_status ESP_ENOMEM. */
static const char *twin(const struct survey *survey, enum esp_status *out_status)
{
	char **sorted = calloc((size_t)survey->count + 1, sizeof(*sorted));
	const char *found = NULL;

	*out_status = sorted ? ESP_OK : ESP_ENOMEM;
	if (!sorted)
		return NULL;
	memcpy(sorted, survey->names, survey->count * sizeof(*sorted));
	qsort(sorted, survey->count, sizeof(*sorted), compare_names);
	for (uint32_t i = 1; i < survey->count && !found; i++) {
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			found = sorted[i];
	}
	free(sorted);
	return found;
}

enum esp_status survey_init(struct survey *survey, const char *const *names, uint32_t count, struct error *err)
{
	char shown[QUOTE_TEXT];

	*survey = (struct survey){0};
	if (count == 0 || count > MATRIX_SIZE_MAX)
		return error_set(err, ESP_ELIMIT, "a survey of %u hosts: there can be 1 to %u", count, MATRIX_SIZE_MAX);
	survey->names = calloc(count, sizeof(*survey->names));
	if (!survey->names)
		return error_set(err, ESP_ENOMEM, "no memory for the names of hosts");
	enum esp_status status = ESP_OK;
	for (uint32_t i = 0; i < count && status == ESP_OK; i++) {
		size_t length = strlen(names[i]);

		status = is_name(names[i], length)
		             ? add_name(survey, names[i], length, err)
		             : error_set(err, ESP_EINVAL, "%s cannot stand in a survey as a host's name",
		                         quote(names[i], length, shown));
	}
	const char *twice = status == ESP_OK ? twin(survey, &status) : NULL;
	if (twice)
		status = error_set(err, ESP_EINVAL, "host %s is there twice", quote(twice, strlen(twice), shown));
	if (status != ESP_OK)
		survey_fini(survey);
	return status;
}

void survey_fini(struct survey *survey)
{
	for (uint32_t i = 0; i < survey->count; i++)
		free(survey->names[i]);
	free(survey->names);
	for (int kind = 0; kind < SURVEY_KINDS; kind++)
		matrix_fini(&survey->matrices[kind]);
	*survey = (struct survey){0};
}

/* ---- reading ---- */

struct reader {
	const char *text, *end; /* the text that is not read yet */
	const char *at, *stop;  /* the rest of the line, without its comment */
	uint32_t number;        /* of the line */
	struct error *err;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; false at its end. */
static bool next_word(struct reader *reader, const char **out_word, size_t *out_length)
{
	while (reader->at < reader->stop && is_blank(*reader->at))
		reader->at++;
	*out_word = reader->at;
	while (reader->at < reader->stop && !is_blank(*reader->at))
		reader->at++;
	*out_length = (size_t)(reader->at - *out_word);
	return *out_length > 0;
}

static bool is_word(const char *word, size_t length, const char *wanted)
{
	return strlen(wanted) == length && memcmp(word, wanted, length) == 0;
}

/* Moves to the next line with words and returns the first of them; false at the end of the text. */
static bool next_line(struct reader *reader, const char **out_word, size_t *out_length)
{
	while (reader->text < reader->end) {
		const char *newline = memchr(reader->text, '\n', (size_t)(reader->end - reader->text));
		const char *line_end = newline ? newline : reader->end;
		const char *comment = memchr(reader->text, '#', (size_t)(line_end - reader->text));

		reader->number++;
		reader->at = reader->text;
		reader->stop = comment ? comment : line_end;
		reader->text = newline ? newline + 1 : reader->end;
		if (next_word(reader, out_word, out_length))
			return true;
	}
	return false;
}

static uint32_t count_words(struct reader rest)
{
	const char *word = NULL;
	size_t length;
	uint32_t count = 0;

	while (count <= MATRIX_SIZE_MAX && next_word(&rest, &word, &length))
		count++;
	return count;
}

static enum esp_status read_values(struct reader *reader, struct matrix *matrix, uint32_t row)
{
	const char *word = NULL;
	char shown[QUOTE_TEXT];
	size_t length = 0;

	for (uint32_t column = 0; column < matrix->size; column++) {
		double value = NAN;

		if (!next_word(reader, &word, &length))
			return error_set(reader->err, ESP_EPARSE, "line %u: %u values for %u hosts", reader->number, column,
			                 matrix->size);
		if (!is_word(word, length, "-") && !number_parse_double(word, length, &value))
			return error_set(reader->err, ESP_EPARSE, "line %u: %s is no distance, such as 3.1e-05, and not '-'",
			                 reader->number, quote(word, length, shown));
		if (value < 0)
			return error_set(reader->err, ESP_EPARSE, "line %u: the distance %s is below 0", reader->number,
			                 quote(word, length, shown));
		if (column == row && value > 0)
			return error_set(reader->err, ESP_EPARSE, "line %u: the distance of a host to itself is %s, not 0",
			                 reader->number, quote(word, length, shown));
		matrix->at[(size_t)row * matrix->size + column] = value;
	}
	if (next_word(reader, &word, &length))
		return error_set(reader->err, ESP_EPARSE, "line %u: %s follows the values of all %u hosts", reader->number,
		                 quote(word, length, shown), matrix->size);
	return ESP_OK;
}

/* The first row of the first matrix gives the number of hosts; its rows give their names. */
static enum esp_status begin_hosts(struct reader *reader, struct survey *survey, struct matrix *matrix)
{
	uint32_t count = count_words(*reader);

	if (count == 0 || count > MATRIX_SIZE_MAX) {
		(void)error_set(reader->err, ESP_EPARSE, "line %u: a host has a value for each of 1 to %u hosts",
		                reader->number, MATRIX_SIZE_MAX);
		return ESP_EPARSE;
	}
	survey->names = calloc(count, sizeof(*survey->names));
	if (!survey->names) {
		(void)error_set(reader->err, ESP_ENOMEM, "no memory for the names of hosts");
		return ESP_ENOMEM;
	}
	return matrix_init(matrix, count, reader->err);
}

static enum esp_status read_name(struct reader *reader, struct survey *survey, bool is_first, uint32_t row,
                                 const char *word, size_t length)
{
	char shown[QUOTE_TEXT], wanted[QUOTE_TEXT];

	if (!is_name(word, length))
		return error_set(reader->err, ESP_EPARSE, "line %u: %s is no host's name", reader->number,
		                 quote(word, length, shown));
	if (is_first)
		return add_name(survey, word, length, reader->err);
	if (!is_word(word, length, survey->names[row]))
		return error_set(reader->err, ESP_EPARSE, "line %u: %s stands where %s stood in the matrix before",
		                 reader->number, quote(word, length, shown),
		                 quote(survey->names[row], strlen(survey->names[row]), wanted));
	return ESP_OK;
}

static enum esp_status all_different(const struct reader *reader, const struct survey *survey)
{
	enum esp_status status;
	const char *twice = twin(survey, &status);
	char shown[QUOTE_TEXT];

	if (status != ESP_OK)
		return error_set(reader->err, status, "no memory for the names of hosts");
	if (twice)
		return error_set(reader->err, ESP_EPARSE, "line %u: the matrix ends, and host %s is in it twice",
		                 reader->number, quote(twice, strlen(twice), shown));
	return ESP_OK;
}

/* The pairs whose two values differ by more than a tenth of the shorter. */
static uint64_t count_uneven(const struct matrix *matrix)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++) {
			double there = matrix_get(matrix, i, j), back = matrix_get(matrix, j, i);

			count += fmax(there, back) > fmin(there, back) * UNEVEN && !isnan(there) && !isnan(back);
		}
	return count;
}

/* The rows behind a heading such as "latency": one per host. */
static enum esp_status read_matrix(struct reader *reader, struct survey *survey, enum survey_kind kind)
{
	struct matrix *matrix = &survey->matrices[kind];
	bool is_first = !survey->names;
	enum esp_status status = is_first ? ESP_OK : matrix_init(matrix, survey->count, reader->err);
	uint32_t row = 0;

	do {
		const char *word = NULL;
		size_t length = 0;

		if (status == ESP_OK && !next_line(reader, &word, &length)) {
			if (matrix->size == 0)
				(void)error_set(reader->err, ESP_EPARSE, "line %u: the text ends, and %s has no hosts",
				                reader->number + 1, kind_names[kind]);
			else
				(void)error_set(reader->err, ESP_EPARSE, "line %u: the text ends, and %s has %u of %u hosts",
				                reader->number + 1, kind_names[kind], row, matrix->size);
			status = ESP_EPARSE;
		}
		if (status == ESP_OK && !matrix->at)
			status = begin_hosts(reader, survey, matrix);
		if (status == ESP_OK)
			status = read_name(reader, survey, is_first, row, word, length);
		if (status == ESP_OK)
			status = read_values(reader, matrix, row);
	} while (status == ESP_OK && ++row < matrix->size);
	if (status == ESP_OK && is_first)
		status = all_different(reader, survey);
	if (status == ESP_OK) {
		survey->uneven += count_uneven(matrix);
		matrix_symmetrise(matrix, MATRIX_MEAN);
	}
	return status;
}

static enum esp_status read_section(struct reader *reader, struct survey *survey, const char *word, size_t length)
{
	char shown[QUOTE_TEXT];
	const char *more;
	size_t more_length;

	for (int kind = 0; kind < SURVEY_KINDS; kind++) {
		if (!is_word(word, length, kind_names[kind]))
			continue;
		if (survey->matrices[kind].at)
			return error_set(reader->err, ESP_EPARSE, "line %u: %s is there already", reader->number, kind_names[kind]);
		if (next_word(reader, &more, &more_length))
			return error_set(reader->err, ESP_EPARSE, "line %u: hosts begin on the line behind %s", reader->number,
			                 kind_names[kind]);
		return read_matrix(reader, survey, (enum survey_kind)kind);
	}
	return error_set(reader->err, ESP_EPARSE, "line %u: %s begins no matrix; latency or inverse-bandwidth does",
	                 reader->number, quote(word, length, shown));
}

enum esp_status survey_parse(const char *text, size_t length, struct survey *out, struct error *err)
{
	struct reader reader = {.text = text, .end = text + length, .err = err};
	struct survey survey = {0};
	const char *word, *version;
	size_t word_length, version_length;
	enum esp_status status = ESP_OK;

	if (!next_line(&reader, &word, &word_length) || !is_word(word, word_length, "survey") ||
	    !next_word(&reader, &version, &version_length) || !is_word(version, version_length, "1") ||
	    next_word(&reader, &version, &version_length))
		return error_set(err, ESP_EPARSE, "line %u: a survey begins with the line: survey 1",
		                 reader.number > 0 ? reader.number : 1);
	while (status == ESP_OK && next_line(&reader, &word, &word_length))
		status = read_section(&reader, &survey, word, word_length);
	if (status == ESP_OK && survey.count == 0)
		status = error_set(err, ESP_EPARSE, "line %u: there is no matrix; latency or inverse-bandwidth begins one",
		                   reader.number + 1);
	if (status != ESP_OK) {
		survey_fini(&survey);
		return status;
	}
	*out = survey;
	return ESP_OK;
}

/* ---- writing ---- */

enum esp_status survey_print(const struct survey *survey, FILE *file, struct error *err)
{
	char text[NUMBER_DOUBLE_TEXT];

	fputs("survey 1\n", file);
	for (int kind = 0; kind < SURVEY_KINDS; kind++) {
		const struct matrix *matrix = &survey->matrices[kind];

		if (!matrix->at)
			continue;
		fprintf(file, "%s\n", kind_names[kind]);
		for (uint32_t i = 0; i < matrix->size; i++) {
			fputs(survey->names[i], file);
			for (uint32_t j = 0; j < matrix->size; j++) {
				double value = matrix_get(matrix, i, j);

				fprintf(file, " %s", isnan(value) ? "-" : number_format_double(value, text));
			}
			fputc('\n', file);
		}
	}
	return ferror(file) ? error_set(err, ESP_EIO, "a survey cannot be written") : ESP_OK;
}
