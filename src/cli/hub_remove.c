/*
 * hub_remove.c - espalier hub remove: ends a job on a hub.
 */
#include <stdio.h>

#include "cli/hub.h"
#include "report/options.h"

#define COMMAND "hub remove"

static int run(int argc, char **argv)
{
	const char *hub = HUB_DEFAULT, *key_file = HUB_KEY_FILE;
	uint64_t timeout = 10, until_ns;
	struct hub_msg msg = {.type = HUB_MSG_REMOVE};
	struct msg_socket socket;
	struct error err;
	const struct option_spec options[] = {
		{"hub", 0, OPTION_STRING, &hub, "HOST:PORT", "where the hub listens (default " HUB_DEFAULT ")"},
		{"key-file", 'k', OPTION_STRING, &key_file, "FILE", "the hub's key (default hub.key)"},
		{"timeout", 0, OPTION_U64, &timeout, "SECONDS", "how long the hub may take to answer (default 10)", .min = 1,
	     .max = 3600},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "NAME",
		"Removes a job: its memory returns to the hub, its tickets are void. Workers that still use it get an error.",
		options, 1, 1};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (!hub_msg_name_is_good(argv[1]))
		return complain_usage(COMMAND ": '%s' is no job's name", argv[1]);
	snprintf(msg.remove.name, sizeof(msg.remove.name), "%s", argv[1]);
	if (cli_hub_dial(hub, key_file, timeout, &socket, &until_ns, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	enum esp_status status = msg_socket_put(&socket, &msg, until_ns, &err);
	if (status == ESP_OK)
		status = msg_socket_take(&socket, HUB_MSG_OK, until_ns, &msg, &err);
	msg_socket_close(&socket);
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	printf("job %s is removed\n", argv[1]);
	return EXIT_OK;
}

const struct cli_command cli_hub_remove = {"remove", "ends a job, and frees its memory", run};
