#include "tools/launcher/launcher_env.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/quote.h"

static enum esp_status no_memory(struct error *err)
{
	return error_set(err, ESP_ENOMEM, "no memory for the variables of the job");
}

static void wipe(char *word)
{
	if (word)
		explicit_bzero(word, strlen(word));
	free(word);
}

/* Takes word. */
static enum esp_status put_word(struct run_env *env, char *word, size_t name_length, struct error *err)
{
	if (!word)
		return no_memory(err);
	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->words[i], word, name_length + 1) == 0) {
			wipe(env->words[i]);
			env->words[i] = word;
			return ESP_OK;
		}
	}
	char **words = realloc(env->words, (env->count + 2) * sizeof(char *));
	if (!words) {
		wipe(word);
		return no_memory(err);
	}
	env->words = words;
	env->words[env->count++] = word;
	env->words[env->count] = NULL;
	return ESP_OK;
}

enum esp_status launcher_env_set(struct run_env *env, const char *name, const char *value, struct error *err)
{
	char *word = NULL;
	if (asprintf(&word, "%s=%s", name, value) < 0)
		word = NULL;
	return put_word(env, word, strlen(name), err);
}

bool launcher_env_has(const struct run_env *env, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->words[i], name, length) == 0 && env->words[i][length] == '=')
			return true;
	return false;
}

static bool is_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char letter = (unsigned char)name[i];
		if (letter > 126 || !(isalpha(letter) || letter == '_' || (i > 0 && isdigit(letter))))
			return false;
	}
	return length > 0;
}

/* True for variables that only espalier run sets. */
static bool is_ours(const char *name, size_t length)
{
	static const char *const ours[] = {
		"ESP_RANK",     "ESP_SIZE",     "ESP_LEADER", "ESP_JOB",    "ESP_KEY",    "ESP_LOCAL_RANK",   "ESP_LOCAL_SIZE",
		"ESP_KEY_FILE", "ESP_LAUNCHER", "RANK",       "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "ESPALIER_RUN"};
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strlen(ours[i]) == length && memcmp(ours[i], name, length) == 0)
			return true;
	return false;
}

enum esp_status launcher_env_add(struct run_env *env, const char *word, struct error *err)
{
	char shown[QUOTE_TEXT];
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	if (!equals || !is_name(word, length))
		return error_set(err, ESP_EINVAL, "--env: expected NAME=VALUE with a name of letters, digits and _, not %s",
		                 quote(word, length, shown));
	if (length >= 7 && memcmp(word, "ESP_KEY", 7) == 0 && is_ours(word, length))
		return error_set(err, ESP_EINVAL,
		                 "--env: a key is not for a command line, which every user can see: set %.*s "
		                 "in the environment of espalier run",
		                 (int)length, word);
	if (is_ours(word, length))
		return error_set(err, ESP_EINVAL, "--env: %.*s is set by espalier run itself", (int)length, word);
	return put_word(env, strdup(word), length, err);
}

static enum esp_status add_if_set(struct run_env *env, const char *name, struct error *err)
{
	const char *value = conf_environment(NULL, name);
	return value ? launcher_env_set(env, name, value, err) : ESP_OK;
}

enum esp_status launcher_env_add_settings(struct run_env *env, struct error *err)
{
	static const char *const others[] = {"ESP_CONF_FILE", "ESP_EPOCH"};
	enum esp_status status = ESP_OK;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && status == ESP_OK; i++)
		status = add_if_set(env, others[i], err);
	for (size_t i = 0; conf_setting_at(i) && status == ESP_OK; i++) {
		char name[CONF_VARIABLE_TEXT];
		status = add_if_set(env, conf_variable_name(i, name), err);
		if (status == ESP_OK && conf_old_variable_name(i, name))
			status = add_if_set(env, name, err);
	}
	return status;
}

void launcher_env_fini(struct run_env *env)
{
	for (size_t i = 0; i < env->count; i++)
		wipe(env->words[i]);
	free(env->words);
	*env = (struct run_env){0};
}
