#include "report/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/word.h"
#include "report/complain.h"

#define GO_ON (-1)

static const struct option_spec help_option = {"help", 'h', OPTION_FLAG, NULL, NULL, "this text", 0, 0, NULL, NULL};

/* The walk over argv. */
struct parser {
	const struct options_usage *usage;
	int argc;
	char **argv;
	int next;  /* index of the next word to read */
	int plain; /* arguments kept so far, from argv[1] on */
	bool help; /* --help was given */
};

static int usage_error(const struct parser *parser, const char *what, const char *detail)
{
	const char *command = parser->usage->command;
	return complain_usage("%s: %s%s; see %s %s --help", command, what, detail, complain_program(), command);
}

static const char *option_name_at(const void *list, size_t index)
{
	const struct option_spec *options = list;
	return options[index].name;
}

static const char *choice_at(const void *list, size_t index)
{
	return ((const char *const *)list)[index];
}

static bool is_word(const char *word, const char *text, size_t length)
{
	return strlen(word) == length && strncmp(word, text, length) == 0;
}

static const struct option_spec *find_long(const struct options_usage *usage, const char *name, size_t length)
{
	for (const struct option_spec *option = usage->options; option->name; option++)
		if (is_word(option->name, name, length))
			return option;
	return is_word(help_option.name, name, length) ? &help_option : NULL;
}

/* A guess at the name that was meant: the nearest one, or one that begins with these characters. NULL: no guess. */
static const char *suggestion(const struct options_usage *usage, const char *name)
{
	const char *near = word_nearest(name, option_name_at, usage->options);
	size_t length = strlen(name);
	for (const struct option_spec *option = usage->options; !near && length > 0 && option->name; option++)
		if (strncmp(option->name, name, length) == 0)
			near = option->name;
	if (!near && length > 0 && strncmp(help_option.name, name, length) == 0)
		near = help_option.name;
	return near;
}

static const struct option_spec *find_short(const struct options_usage *usage, char letter)
{
	for (const struct option_spec *option = usage->options; option->name; option++)
		if (option->short_name && option->short_name == letter)
			return option;
	return letter == help_option.short_name ? &help_option : NULL;
}

/* "one of ring, tree" */
static const char *choices_text(const struct option_spec *option, char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size, "one of");
	for (int i = 0; option->choices[i] && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s %s", i ? "," : "", option->choices[i]);
	return text;
}

/* "a whole number from 1 to 64" */
static const char *numbers_text(const struct option_spec *option, char *text, size_t size)
{
	bool bytes = option->kind == OPTION_BYTES;
	const char *noun =
		bytes ? "a number of bytes such as 4096 or 64K (K, M, G and T: powers of 1024)" : "a whole number";
	char low[NUMBER_BYTES_TEXT], high[NUMBER_BYTES_TEXT];
	if (bytes) {
		number_format_bytes(option->min, low);
		number_format_bytes(option->max, high);
	} else {
		snprintf(low, sizeof low, "%" PRIu64, option->min);
		snprintf(high, sizeof high, "%" PRIu64, option->max);
	}
	if (option->max)
		snprintf(text, size, "%s from %s to %s", noun, low, high);
	else if (option->min)
		snprintf(text, size, "%s, at least %s", noun, low);
	else
		snprintf(text, size, "%s", noun);
	return text;
}

static const char *wanted_text(const struct option_spec *option, char *text, size_t size)
{
	switch (option->kind) {
	case OPTION_U64:
	case OPTION_BYTES:
		return numbers_text(option, text, size);
	case OPTION_CHOICE:
		return choices_text(option, text, size);
	case OPTION_DOUBLE:
		return "a number";
	case OPTION_FLAG:
	case OPTION_STRING:
		break;
	}
	return "a value";
}

static bool set_number(const struct option_spec *option, const char *value)
{
	uint64_t number;
	bool parsed = option->kind == OPTION_BYTES ? number_parse_bytes(value, strlen(value), &number)
	                                        : number_parse_u64(value, strlen(value), &number);
	if (!parsed || number < option->min || (option->max && number > option->max))
		return false;
	*(uint64_t *)option->out = number;
	return true;
}

static const char *skip_dashes(const char *text)
{
	return text + strspn(text, "-_");
}

/* Compares character by character, ignoring case and dashes: reduce-scatter and ReduceScatter are the same. */
static bool same_choice(const char *a, const char *b)
{
	for (a = skip_dashes(a), b = skip_dashes(b); *a && *b; a = skip_dashes(a + 1), b = skip_dashes(b + 1))
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
	return *a == *b;
}

static bool set_choice(const struct option_spec *option, const char *value)
{
	for (int i = 0; option->choices[i]; i++) {
		if (same_choice(option->choices[i], value)) {
			*(int *)option->out = i;
			return true;
		}
	}
	return false;
}

static bool set_value(const struct option_spec *option, const char *value)
{
	switch (option->kind) {
	case OPTION_U64:
	case OPTION_BYTES:
		return set_number(option, value);
	case OPTION_DOUBLE:
		return number_parse_double(value, strlen(value), option->out);
	case OPTION_CHOICE:
		return set_choice(option, value);
	case OPTION_STRING:
		*(const char **)option->out = value;
		return true;
	case OPTION_FLAG:
		break;
	}
	return false;
}

static void mark_given(const struct option_spec *option)
{
	if (option->given)
		*option->given = true;
}

static int take_value(const struct parser *parser, const struct option_spec *option, const char *value)
{
	char wanted[256];
	if (set_value(option, value)) {
		mark_given(option);
		return GO_ON;
	}
	const char *near = option->kind == OPTION_CHOICE ? word_nearest(value, choice_at, option->choices) : NULL;
	return complain_usage("%s: --%s: '%s' is not %s%s%s%s", parser->usage->command, option->name, value,
	                      wanted_text(option, wanted, sizeof wanted), near ? "; did you mean '" : "", near ? near : "",
	                      near ? "'?" : "");
}

static void take_flag(struct parser *parser, const struct option_spec *option)
{
	if (option == &help_option)
		parser->help = true;
	else
		*(bool *)option->out = true;
	mark_given(option);
}

/* The value is the next word. */
static int take_next_word(struct parser *parser, const struct option_spec *option)
{
	bool is_bare = parser->next == parser->argc || parser->argv[parser->next][0] == '-';
	if (option->bare && is_bare)
		return take_value(parser, option, option->bare);
	if (parser->next == parser->argc)
		return complain_usage("%s: --%s needs a value (%s)", parser->usage->command, option->name, option->metavar);
	return take_value(parser, option, parser->argv[parser->next++]);
}

static int unknown_long(const struct parser *parser, const char *word, size_t length)
{
	char name[64], detail[192];
	snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
	const char *near = suggestion(parser->usage, name);
	snprintf(detail, sizeof detail, "--%s'%s%s%s", name, near ? " (did you mean --" : "", near ? near : "",
	         near ? "?)" : "");
	return usage_error(parser, "unknown option '", detail);
}

/* word: the text after the two dashes */
static int take_long(struct parser *parser, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	const struct option_spec *option = find_long(parser->usage, word, length);
	if (!option)
		return unknown_long(parser, word, length);
	if (option->kind != OPTION_FLAG)
		return equals ? take_value(parser, option, equals + 1) : take_next_word(parser, option);
	if (equals)
		return complain_usage("%s: --%s takes no value", parser->usage->command, option->name);
	take_flag(parser, option);
	return GO_ON;
}

/* shorts: the text after the dash. Options without values may stand together; a value ends the word. */
static int take_short(struct parser *parser, const char *shorts)
{
	for (; *shorts; shorts++) {
		const struct option_spec *option = find_short(parser->usage, *shorts);
		const char text[] = {*shorts, '\'', '\0'};
		if (!option)
			return usage_error(parser, "unknown option '-", text);
		if (option->kind != OPTION_FLAG)
			return shorts[1] ? take_value(parser, option, shorts + 1) : take_next_word(parser, option);
		take_flag(parser, option);
	}
	return GO_ON;
}

static void keep_plain(struct parser *parser, char *word)
{
	parser->argv[++parser->plain] = word;
}

static int take_word(struct parser *parser)
{
	char *word = parser->argv[parser->next++];
	if (word[0] != '-' || word[1] == '\0') {
		keep_plain(parser, word);
		return GO_ON;
	}
	if (word[1] != '-')
		return take_short(parser, word + 1);
	if (word[2] != '\0')
		return take_long(parser, word + 2);
	while (parser->next < parser->argc)
		keep_plain(parser, parser->argv[parser->next++]);
	return GO_ON;
}

static int check_count(const struct parser *parser)
{
	const struct options_usage *usage = parser->usage;
	if (parser->plain < usage->min_arguments)
		return usage_error(parser, "an argument is missing: ", usage->arguments);
	if (usage->max_arguments >= 0 && parser->plain > usage->max_arguments)
		return complain_usage("%s: unexpected argument '%s'; see %s %s --help", usage->command,
		                      parser->argv[usage->max_arguments + 1], complain_program(), usage->command);
	return GO_ON;
}

int options_parse(const struct options_usage *usage, int *argc, char **argv)
{
	struct parser parser = {.usage = usage, .argc = *argc, .argv = argv, .next = 1};
	int status = GO_ON;
	while (status == GO_ON && parser.next < parser.argc && !parser.help)
		status = take_word(&parser);
	if (status == GO_ON && parser.help) {
		options_print_help(usage, stdout);
		return EXIT_OK;
	}
	if (status == GO_ON)
		status = check_count(&parser);
	if (status == GO_ON)
		*argc = parser.plain + 1;
	return status;
}

static int option_left(const struct option_spec *option, char *text, size_t size)
{
	char letter[8] = "    ";
	if (option->short_name)
		snprintf(letter, sizeof letter, "-%c, ", option->short_name);
	return snprintf(text, size, "  %s--%s%s%s", letter, option->name, option->metavar ? " " : "",
	                option->metavar ? option->metavar : "");
}

static void print_option(const struct option_spec *option, int width, FILE *out)
{
	char left[96], choices[256] = "";
	option_left(option, left, sizeof left);
	if (option->kind == OPTION_CHOICE)
		choices_text(option, choices, sizeof choices);
	fprintf(out, "%-*s  %s%s%s\n", width, left, option->help, choices[0] ? ": " : "", choices);
}

void options_print_help(const struct options_usage *usage, FILE *out)
{
	char left[96];
	int width = option_left(&help_option, left, sizeof left);
	for (const struct option_spec *option = usage->options; option->name; option++) {
		int needed = option_left(option, left, sizeof left);
		width = needed > width ? needed : width;
	}
	fprintf(out, "usage: %s %s [options]%s%s\n\n%s\n\noptions:\n", complain_program(), usage->command,
	        usage->arguments[0] ? " " : "", usage->arguments, usage->about);
	for (const struct option_spec *option = usage->options; option->name; option++)
		print_option(option, width, out);
	print_option(&help_option, width, out);
}
