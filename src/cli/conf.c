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
#include "report/json.h"
#include "report/options.h"
#include "report/table.h"

static void say_complaint(void *context, const struct error *complaint)
{
	*(int *)context = cli_fail("%s", complaint->text);
}

static void say_warning(void *unused, const struct error *complaint)
{
	(void)unused;
	cli_note("%s", complaint->text);
}

/* An empty cell would be none at all. */
static const char *shown(const char *value)
{
	return value[0] ? value : "none";
}

static enum esp_status print_table(const struct conf *conf)
{
	static const char *const headers[] = {"setting", "value", "default", "origin", "meaning", NULL};
	char text[CONF_VALUE_TEXT];
	struct table table;
	table_init(&table, headers);
	for (size_t i = 0; i < CONF_COUNT; i++) {
		const struct conf_setting *setting = conf_setting_at(i);
		table_cell(&table, "%s", setting->name);
		table_cell(&table, "%s", shown(conf_value_text(conf, i, text)));
		table_cell(&table, "%s", shown(setting->fallback));
		table_cell(&table, "%s", conf_origin_name(conf->origins[i]));
		table_cell(&table, "%s", setting->help);
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

/* Numbers as numbers: a script should not have to know what 64K is. */
static void print_json_value(struct json *json, const char *key, const struct conf_setting *setting, const char *value)
{
	uint64_t number;
	bool counts = setting->type == CONF_BYTES || setting->type == CONF_UINT || setting->type == CONF_RANGE;
	json_key(json, key);
	if (counts && number_parse_bytes(value, strlen(value), &number))
		json_u64(json, number);
	else
		json_text(json, value);
}

static enum esp_status print_json(const struct conf *conf)
{
	char text[CONF_VALUE_TEXT];
	struct json json;
	json_init(&json, stdout);
	json_array_begin(&json);
	for (size_t i = 0; i < CONF_COUNT; i++) {
		const struct conf_setting *setting = conf_setting_at(i);
		json_object_begin(&json);
		json_put_string(&json, "name", setting->name);
		print_json_value(&json, "value", setting, conf_value_text(conf, i, text));
		print_json_value(&json, "default", setting, setting->fallback);
		json_put_string(&json, "origin", conf_origin_name(conf->origins[i]));
		json_put_bool(&json, "agreed", setting->agreed);
		json_put_string(&json, "help", setting->help);
		json_object_end(&json);
	}
	json_array_end(&json);
	return json_fini(&json);
}

/* NAME=VALUE from the command line. */
static int set_argument(struct conf *conf, const char *argument)
{
	struct error err;
	const char *equals = strchr(argument, '=');
	if (!equals)
		return cli_usage_error("conf: expected NAME=VALUE, not '%s'", argument);
	if (conf_set(conf, argument, (size_t)(equals - argument), equals + 1, strlen(equals + 1), CONF_COMMAND_LINE,
	             &err) != ESP_OK)
		return cli_usage_error("conf: %s", err.text);
	return CLI_EXIT_OK;
}

static int run(int argc, char **argv)
{
	bool json = false;
	const struct cli_option options[] = {
		{"json", 0, CLI_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct cli_usage usage = {
		"conf",
		"[NAME=VALUE]...",
		"Shows every setting, its value and where the value comes from: the default, the file that\n"
		"ESP_CONF_FILE names, the environment (ESP_NAME) or the arguments. Fails if a value is bad; warns of\n"
		"variables that begin with ESP_ and mean nothing.",
		options,
		0,
		-1};
	int parsed = cli_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct conf conf;
	struct error refusal;
	int exit_status = CLI_EXIT_OK;
	if (conf_load(&conf, say_complaint, &exit_status, &refusal) != ESP_OK)
		say_complaint(&exit_status, &refusal);
	conf_check_environment(say_warning, NULL);
	for (int i = 1; i < argc; i++) {
		int set = set_argument(&conf, argv[i]);
		if (set != CLI_EXIT_OK)
			return set;
	}
	enum esp_status printed = json ? print_json(&conf) : print_table(&conf);
	return printed == ESP_OK ? exit_status : cli_fail("conf: %s", status_text(printed));
}

const struct cli_command cli_conf = {"conf", "shows the settings, their values and origins", run};
