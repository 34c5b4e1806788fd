/*
 * optimizer_text.c - optimizers as people write them.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clip.h"
#include "base/number.h"
#include "base/quote.h"
#include "math/optimizer.h"
#include "math/optimizer_values.h"

#define BLANKS " \t"
#define KINDS_TEXT "avg, sgd, adam or adamw"

/* A word of the text: "lr=0.1", cut at the first '='. */
struct word {
	const char *name, *number; /* number is NULL: there is no '=' */
	size_t name_length, number_length;
};

/* False: the text is at its end. Moves *at behind the word. */
static bool word_next(const char **at, struct word *out)
{
	const char *start = *at + strspn(*at, BLANKS);
	const size_t length = strcspn(start, BLANKS);
	const char *sign = memchr(start, '=', length);

	*at = start + length;
	*out = (struct word){.name = start, .name_length = sign ? (size_t)(sign - start) : length};
	if (sign) {
		out->number = sign + 1;
		out->number_length = length - out->name_length - 1;
	}
	return length > 0;
}

static bool word_is(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* ---- parsing ---- */

static void defaults_of(uint8_t kind, struct optimizer *out)
{
	*out = (struct optimizer){.kind = kind};
	if (kind != OPTIMIZER_ADAM && kind != OPTIMIZER_ADAMW)
		return;
	out->lr = 1e-3;
	out->beta1 = 0.9;
	out->beta2 = 0.999;
	out->eps = 1e-8;
	out->weight_decay = kind == OPTIMIZER_ADAMW ? 1e-2 : 0;
}

static enum esp_status parse_kind(const struct word *word, uint8_t *out, struct error *err)
{
	char quoted[QUOTE_TEXT];

	for (uint8_t kind = 0; kind < OPTIMIZER_KINDS; kind++) {
		if (!word->number && word_is(word->name, word->name_length, optimizer_kind_name(kind))) {
			*out = kind;
			return ESP_OK;
		}
	}
	return error_set(err, ESP_EINVAL, "optimizer: the first word is %s: " KINDS_TEXT " is expected",
	                 quote(word->name, word->number ? word->name_length + 1 + word->number_length : word->name_length,
	                       quoted));
}

/* "lr, momentum, dampening, weight_decay, nesterov" */
static const char *names_of(uint8_t kind, char *out, size_t room)
{
	char before[OPTIMIZER_TEXT] = "";

	clip(out, room, "nothing");
	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++) {
		const struct optimizer_value *value = optimizer_value_at(i);
		if (!optimizer_value_is_of(value, kind))
			continue;
		clip(out, room, "%s%s%s", before, before[0] ? ", " : "", value->name);
		clip(before, sizeof(before), "%s", out);
	}
	if (kind == OPTIMIZER_SGD)
		clip(out, room, "%s, nesterov", before);
	return out;
}

/* The value of this name that the kind has; OPTIMIZER_VALUES: none. */
static uint32_t find_value(uint8_t kind, const struct word *word)
{
	uint32_t i = 0;

	while (i < OPTIMIZER_VALUES && !(optimizer_value_is_of(optimizer_value_at(i), kind) &&
	                                 word_is(word->name, word->name_length, optimizer_value_at(i)->name)))
		i++;
	return i;
}

static enum esp_status parse_nesterov(const struct word *word, struct optimizer *out, struct error *err)
{
	char quoted[QUOTE_TEXT];

	out->nesterov = word_is(word->number, word->number_length, "yes");
	if (out->nesterov || word_is(word->number, word->number_length, "no"))
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "optimizer sgd: nesterov=%s: yes or no is expected",
	                 quote(word->number, word->number_length, quoted));
}

static enum esp_status parse_number(const struct word *word, uint32_t index, struct optimizer *out, struct error *err)
{
	const struct optimizer_value *value = optimizer_value_at(index);
	char quoted[QUOTE_TEXT];
	double number;

	if (number_parse_double(word->number, word->number_length, &number) && optimizer_value_is_good(value, number)) {
		*optimizer_value_in(value, out) = number;
		return ESP_OK;
	}
	return error_set(err, ESP_EINVAL, "optimizer %s: %s=%s: %s is expected", optimizer_kind_name(out->kind),
	                 value->name, quote(word->number, word->number_length, quoted), optimizer_value_range(value));
}

/* seen: bit i: value i has stood in the text already; bit OPTIMIZER_VALUES: nesterov. */
static enum esp_status parse_word(const struct word *word, uint32_t *seen, struct optimizer *out, struct error *err)
{
	const char *kind = optimizer_kind_name(out->kind);
	const bool is_nesterov = out->kind == OPTIMIZER_SGD && word_is(word->name, word->name_length, "nesterov");
	const uint32_t index = find_value(out->kind, word);
	char quoted[QUOTE_TEXT], names[OPTIMIZER_TEXT];

	if (index == OPTIMIZER_VALUES && !is_nesterov)
		return error_set(err, ESP_EINVAL, "optimizer %s: %s is unknown: %s is expected", kind,
		                 quote(word->name, word->name_length, quoted), names_of(out->kind, names, sizeof(names)));
	if (!word->number)
		return error_set(err, ESP_EINVAL, "optimizer %s: %s has no value: %s is expected", kind,
		                 quote(word->name, word->name_length, quoted), is_nesterov ? "nesterov=yes" : "NAME=NUMBER");
	if (*seen & 1u << index)
		return error_set(err, ESP_EINVAL, "optimizer %s: %s is given twice: one value is expected", kind,
		                 quote(word->name, word->name_length, quoted));
	*seen |= 1u << index;
	return is_nesterov ? parse_nesterov(word, out, err) : parse_number(word, index, out, err);
}

/* All that stand behind the kind. */
static enum esp_status parse_words(const char *at, uint32_t *seen, struct optimizer *out, struct error *err)
{
	struct word word;

	while (word_next(&at, &word)) {
		enum esp_status status = parse_word(&word, seen, out, err);

		if (status != ESP_OK)
			return status;
	}
	return ESP_OK;
}

enum esp_status optimizer_parse(const char *text, struct optimizer *out, struct error *err)
{
	const char *at = text;
	struct optimizer optimizer;
	struct word word;
	uint32_t seen = 0;
	uint8_t kind = OPTIMIZER_AVG;

	assert(text && out);
	if (!word_next(&at, &word))
		return error_set(err, ESP_EINVAL, "optimizer: there is no word: " KINDS_TEXT " is expected");
	enum esp_status status = parse_kind(&word, &kind, err);
	if (status)
		return status;
	defaults_of(kind, &optimizer);
	status = parse_words(at, &seen, &optimizer, err);
	if (status)
		return status;
	if (kind == OPTIMIZER_SGD && !(seen & 1u << 0))
		return error_set(err, ESP_EINVAL, "optimizer sgd: there is no lr: lr=NUMBER is expected, such as lr=0.1");
	status = optimizer_check(&optimizer, err);
	if (status == ESP_OK)
		*out = optimizer;
	return status;
}

enum esp_status optimizer_change(struct optimizer *optimizer, const char *text, struct error *err)
{
	struct optimizer changed = *optimizer;
	uint32_t seen = 0;

	assert(optimizer_check(optimizer, NULL) == ESP_OK && text);
	enum esp_status status = parse_words(text, &seen, &changed, err);
	if (status == ESP_OK && seen == 0)
		return error_set(err, ESP_EINVAL, "optimizer %s: there is no value: NAME=NUMBER is expected",
		                 optimizer_kind_name(optimizer->kind));
	if (status == ESP_OK)
		status = optimizer_check(&changed, err);
	if (status == ESP_OK)
		*optimizer = changed;
	return status;
}

/* ---- printing ---- */

const char *optimizer_print(const struct optimizer *optimizer, char text[OPTIMIZER_TEXT])
{
	char number[NUMBER_DOUBLE_TEXT];

	assert(optimizer_check(optimizer, NULL) == ESP_OK);
	size_t at = (size_t)snprintf(text, OPTIMIZER_TEXT, "%s", optimizer_kind_name(optimizer->kind));
	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++) {
		const struct optimizer_value *value = optimizer_value_at(i);
		if (optimizer_value_is_of(value, optimizer->kind))
			at += (size_t)snprintf(text + at, OPTIMIZER_TEXT - at, " %s=%s", value->name,
			                       number_format_double(optimizer_value_of(value, optimizer), number));
		assert(at < OPTIMIZER_TEXT);
	}
	if (optimizer->nesterov)
		at += (size_t)snprintf(text + at, OPTIMIZER_TEXT - at, " nesterov=yes");
	assert(at < OPTIMIZER_TEXT);
	return text;
}

static void print_value(const struct optimizer_value *value, const struct optimizer *optimizer,
                        char out[OPTIMIZER_VALUE_TEXT])
{
	char number[NUMBER_DOUBLE_TEXT];

	snprintf(out, OPTIMIZER_VALUE_TEXT, "%s=%s", value->name,
	         number_format_double(optimizer_value_of(value, optimizer), number));
}

void optimizer_print_difference(const struct optimizer *a, const struct optimizer *b, char out_a[OPTIMIZER_VALUE_TEXT],
                                char out_b[OPTIMIZER_VALUE_TEXT])
{
	assert(a->kind == b->kind);
	out_a[0] = out_b[0] = '\0';
	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++) {
		const struct optimizer_value *value = optimizer_value_at(i);
		double left = optimizer_value_of(value, a), right = optimizer_value_of(value, b);

		if (left < right || left > right) {
			print_value(value, a, out_a);
			print_value(value, b, out_b);
			return;
		}
	}
	if (a->nesterov == b->nesterov)
		return;
	snprintf(out_a, OPTIMIZER_VALUE_TEXT, "nesterov=%s", a->nesterov ? "yes" : "no");
	snprintf(out_b, OPTIMIZER_VALUE_TEXT, "nesterov=%s", b->nesterov ? "yes" : "no");
}
