/*
 * conf.c - espalier conf: every setting, its value and where the value comes from.
 */
#include "base/conf.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "cli/cli.h"
#include "report/options.h"
#include "report/rows.h"

static void say_complaint(void *context, const struct error *complaint)
{
	*(int *)context = complain("%s", complaint->text);
}

static void say_warning(void *unused, const struct error *complaint)
{
	(void)unused;
	complain_note("%s", complaint->text);
}

/* An empty cell would be none at all; in JSON numbers are numbers: a script should not have to know what 64K is. */
static void put_value(struct rows *rows, const struct conf_setting *setting, const char *value)
{
	bool counts = setting->type == CONF_BYTES || setting->type == CONF_UINT || setting->type == CONF_RANGE;
	uint64_t number;

	rows_shown(rows, "%s", value[0] ? value : "none");
	if (counts && number_parse_bytes(value, strlen(value), &number))
		rows_u64(rows, number);
	else
		rows_text(rows, value);
}

static enum esp_status print(const struct conf *conf, bool as_json)
{
	static const struct column columns[] = {
		{"setting", "name"},
		{"value", "value"},
		{"default", "default"},
		{"origin", "origin"},
		{NULL, "agreed"},
		{"meaning", "help"},
		{0},
	};
	char text[CONF_VALUE_TEXT];
	struct json json;
	struct rows rows;

	json_init(&json, stdout);
	rows_begin(&rows, columns, as_json ? &json : NULL);
	for (size_t i = 0; i < CONF_COUNT; i++) {
		const struct conf_setting *setting = conf_setting_at(i);

		rows_text(&rows, setting->name);
		put_value(&rows, setting, conf_value_text(conf, i, text));
		put_value(&rows, setting, setting->fallback);
		rows_text(&rows, conf_origin_name(conf->origins[i]));
		rows_bool(&rows, setting->agreed);
		rows_text(&rows, setting->help);
	}
	enum esp_status status = rows_end(&rows, stdout);
	return as_json ? json_fini(&json) : status;
}

/* NAME=VALUE from the command line. */
static int set_argument(struct conf *conf, const char *argument)
{
	struct error err;
	const char *equals = strchr(argument, '=');
	if (!equals)
		return complain_usage("conf: expected NAME=VALUE, not '%s'", argument);
	if (conf_is_renamed(argument, (size_t)(equals - argument), &err))
		complain_note("conf: %s", err.text);
	if (conf_set(conf, argument, (size_t)(equals - argument), equals + 1, strlen(equals + 1), CONF_COMMAND_LINE,
	             &err) != ESP_OK)
		return complain_usage("conf: %s", err.text);
	return EXIT_OK;
}

static int run(int argc, char **argv)
{
	bool json = false;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		"conf",
		"[NAME=VALUE]...",
		"Shows every setting, its value and where the value comes from: the default, the file that\n"
		"ESP_CONF_FILE names, the environment (ESP_NAME) or the arguments. Fails if a value is bad; warns of\n"
		"variables that begin with ESP_ and mean nothing.",
		options,
		0,
		-1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct conf conf;
	struct error refusal;
	int exit_status = EXIT_OK;
	if (conf_load(&conf, say_complaint, &exit_status, &refusal) != ESP_OK)
		say_complaint(&exit_status, &refusal);
	conf_check_environment(say_warning, NULL);
	for (int i = 1; i < argc; i++) {
		int set = set_argument(&conf, argv[i]);
		if (set != EXIT_OK)
			return set;
	}
	enum esp_status printed = print(&conf, json);
	return printed == ESP_OK ? exit_status : complain("conf: %s", status_text(printed));
}

const struct cli_command cli_conf = {"conf", "shows the settings, their values and origins", run};
