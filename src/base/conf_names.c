/*
 * conf_names.c - variables of the environment that look like settings and are none.
 */
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/quote.h"
#include "base/word.h"

#define PREFIX "ESP_"
#define COMPLAINTS_MAX 4 /* the prefix is short, and others may have had the same idea */

/* Read, but no settings: identity of a rank, its key, and messages between espalier's own processes. */
static const char *const others[] = {
	"ESP_CONF_FILE",  "ESP_RANK",          "ESP_SIZE",      "ESP_LEADER",      "ESP_STORE",      "ESP_JOB",
	"ESP_EPOCH",      "ESP_MPI",           "ESP_MPI_SHARE", "ESP_MPI_SUMMARY", "ESP_LOCAL_RANK", "ESP_LOCAL_SIZE",
	"ESP_LAUNCHER",   "ESP_KEY",           "ESP_KEY_FILE",  "ESP_DOOR",        "ESP_HUB_TICKET", "ESP_BENCH_PROGRESS",
	"ESP_PROBE_HOME", "ESP_TOPOLOGY_TEXT",
};
#define OTHERS (sizeof others / sizeof others[0])

struct names {
	char variables[CONF_COUNT][CONF_VARIABLE_TEXT];
	char old[CONF_COUNT][CONF_VARIABLE_TEXT]; /* of settings that have been renamed; else "" */
};

static const char *name_at(const void *list, size_t index)
{
	const struct names *names = list;
	if (index < CONF_COUNT)
		return names->variables[index];
	return index < CONF_COUNT + OTHERS ? others[index - CONF_COUNT] : NULL;
}

static bool is_known(const struct names *names, const char *name, size_t length)
{
	const char *known;
	for (size_t i = 0; (known = name_at(names, i)); i++)
		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return true;
	for (size_t i = 0; i < CONF_COUNT; i++)
		if (strlen(names->old[i]) == length && memcmp(names->old[i], name, length) == 0)
			return true;
	return false;
}

/* Without the prefix of all of them: it would count as characters that are right. */
static const char *rest_at(const void *list, size_t index)
{
	const char *name = name_at(list, index);
	return name ? name + strlen(PREFIX) : NULL;
}

static void make_complaint(const struct names *names, const char *name, size_t length, struct error *out)
{
	char shown[QUOTE_TEXT], word[64];
	size_t prefix = strlen(PREFIX), rest = length - prefix;
	snprintf(word, sizeof word, "%.*s", (int)(rest < sizeof word ? rest : sizeof word - 1), name + prefix);
	const char *near = word_nearest(word, rest_at, names);
	quote(name, length, shown);
	if (near)
		error_set(out, ESP_EINVAL, "environment variable %s means nothing; did you mean " PREFIX "%s?", shown, near);
	else
		error_set(out, ESP_EINVAL, "environment variable %s means nothing; espalier conf lists the settings", shown);
}

void conf_check_names(char *const *words, conf_complain_fn *complain, void *context)
{
	struct names names = {0};
	struct error complaint;
	size_t count = 0;
	for (size_t i = 0; i < CONF_COUNT; i++) {
		conf_variable_name(i, names.variables[i]);
		conf_old_variable_name(i, names.old[i]);
	}
	for (; words && *words; words++) {
		size_t length = strcspn(*words, "=");
		if (strncmp(*words, PREFIX, strlen(PREFIX)) != 0 || is_known(&names, *words, length) ||
		    ++count > COMPLAINTS_MAX)
			continue;
		make_complaint(&names, *words, length, &complaint);
		complain(context, &complaint);
	}
	if (count > COMPLAINTS_MAX) {
		error_set(&complaint, ESP_EINVAL, "and %zu more variables that begin with " PREFIX " and mean nothing",
		          count - COMPLAINTS_MAX);
		complain(context, &complaint);
	}
}
