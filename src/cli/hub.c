/*
 * hub.c - espalier hub: a parameter hub, or a command about one.
 */
#include "cli/hub.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/family.h"

#define KEY_PATIENCE (2 * NS_PER_S)
#define KEY_PAUSE (20 * NS_PER_MS)

static const struct cli_command *const commands[] = {&cli_hub_create, &cli_hub_remove, &cli_hub_status};

static const struct cli_family family = {
	.name = "hub",
	.about =
		"A parameter hub sums and optimizes the models of many jobs while their gradients arrive. Without a command,\n"
		"espalier hub is the hub itself and serves until it is ended: 'espalier hub --listen HOST:PORT', see\n"
		"'espalier hub serve --help'.\n",
	.more = "examples:\n"
			"  espalier hub --listen 0.0.0.0:7700 --key-file hub.key &\n"
			"  espalier hub create resnet --workers 4 --optimizer \"sgd lr=0.1 momentum=0.9\"\n"
			"  ESP_HUB_TICKET=resnet.ticket espalier run -n 4 -- python3 train.py\n"
			"  espalier hub status\n\n"
			"exit status: 0 done; 1 the work failed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

/* A hub that is being started makes its key: for a moment the file may not be there. */
static void await_key(const char *path, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = (long)KEY_PAUSE};

	while (access(path, F_OK) != 0 && errno == ENOENT && clock_now_ns() + KEY_PAUSE < until_ns)
		nanosleep(&pause, NULL);
}

enum esp_status cli_hub_key(const char *path, struct key *out, struct error *err)
{
	await_key(path, clock_now_ns() + KEY_PATIENCE);
	return key_read(path, "--key-file", 0, out, err);
}

enum esp_status cli_hub_dial(const struct address *hub, const char *key_file, uint64_t timeout_seconds,
                             struct msg_socket *out, uint64_t *out_until_ns, struct error *err)
{
	struct key key;
	struct hub_dial dial = {.hub = hub, .workers = HUB_OPERATORS, .purpose = HELLO_CONTROL};
	enum esp_status status = cli_hub_key(key_file, &key, err);

	if (status != ESP_OK)
		return status;
	*out_until_ns = clock_now_ns() + timeout_seconds * NS_PER_S;
	dial.key = key.bytes;
	dial.job = hub_dial_own_job(key.bytes);
	dial.until_ns = *out_until_ns;
	status = msg_socket_open(out, &dial, err);
	key_wipe(&key);
	return status;
}

static int run(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return cli_hub_serve(argc - 1, argv + 1);
	if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)
		return cli_hub_serve(argc, argv);
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_hub = {"hub", "sums and optimizes the models of many jobs: a parameter hub", run, 1};
