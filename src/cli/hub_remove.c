/*
 * hub_remove.c - espalier hub remove: ends a job on a hub.
 */
#include <stdio.h>

#include "cli/hub.h"
#include "hub/control/ticket.h"
#include "report/options.h"

#define COMMAND "hub remove"

enum esp_status cli_hub_remove_at(const struct address *hub, const char *key_file, uint64_t timeout, const char *name,
                                  struct error *err)
{
	struct hub_msg msg = {.type = HUB_MSG_REMOVE};
	struct msg_socket socket;
	uint64_t until_ns;

	snprintf(msg.remove.name, sizeof(msg.remove.name), "%s", name);
	enum esp_status status = cli_hub_dial(hub, key_file, timeout, &socket, &until_ns, err);
	if (status != ESP_OK)
		return status;
	status = msg_socket_put(&socket, &msg, until_ns, err);
	if (status == ESP_OK)
		status = msg_socket_take(&socket, HUB_MSG_OK, until_ns, &msg, err);
	msg_socket_close(&socket);
	return status;
}

/* At all hubs that can be reached, even if one refuses. */
static int remove_at_all(const struct ticket *hubs, const char *key_file, uint64_t timeout, const char *name)
{
	int exit_status = EXIT_OK;

	for (uint32_t i = 0; i < hubs->hub_count; i++) {
		struct error err;
		char hub[ADDRESS_TEXT];

		if (cli_hub_remove_at(&hubs->hubs[i], key_file, timeout, name, &err) == ESP_OK)
			continue;
		if (hubs->hub_count > 1)
			exit_status = complain(COMMAND ": %s: %s", address_format(&hubs->hubs[i], hub), err.text);
		else
			exit_status = complain(COMMAND ": %s", err.text);
	}
	return exit_status;
}

static int run(int argc, char **argv)
{
	const char *hub = HUB_DEFAULT, *key_file = HUB_KEY_FILE;
	uint64_t timeout = 10;
	struct ticket hubs;
	struct error err;
	const struct option_spec options[] = {
		{"hub", 0, OPTION_STRING, &hub, "HOST:PORT[,...]", "where the job's hubs listen (default " HUB_DEFAULT ")"},
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
	if (ticket_parse_hubs(hub, "--hub", &hubs, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	int exit_status = remove_at_all(&hubs, key_file, timeout, argv[1]);
	if (exit_status == EXIT_OK)
		printf("job %s is removed\n", argv[1]);
	return exit_status;
}

const struct cli_command cli_hub_remove = {"remove", "ends a job, and frees its memory", run};
