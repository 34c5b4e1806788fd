/*
 * hub_serve.c - espalier hub --listen: the parameter hub itself.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/units.h"
#include "cli/hub.h"
#include "cli/serving.h"
#include "espalier/espalier.h"
#include "hub/layout.h"
#include "hub/server/hub.h"
#include "node/auth/private_file.h"
#include "report/options.h"

#define COMMAND "hub"
#define LANES_DEFAULT_MOST 16u
#define JOBS_DEFAULT 64u

/* A key that was made here is written before any process can connect. */
static enum esp_status make_key(const char *path, struct key *out, struct error *err)
{
	char text[KEY_HEX + 1];

	key_generate(out);
	key_to_hex(out, text);
	strcat(text, "\n");
	enum esp_status status = private_file_write(path, text, strlen(text), PRIVATE_FILE_NEW, err);
	explicit_bzero(text, sizeof(text));
	if (status == ESP_OK)
		complain_note(COMMAND ": made the key %s: only its owner may create jobs", path);
	return status;
}

static enum esp_status find_key(const char *path, struct key *out, struct error *err)
{
	struct stat file;

	if (stat(path, &file) != 0 && errno == ENOENT)
		return make_key(path, out, err);
	return key_read(path, "--key-file", 0, out, err);
}

/* Half of the machine's memory: models of other users' jobs need the rest. */
static uint64_t default_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages / 2 * (uint64_t)page : UINT64_C(1) << 30;
}

static void log_line(void *context, const char *line)
{
	time_t now = time(NULL);
	struct tm parts;
	char when[32];

	(void)context;
	strftime(when, sizeof(when), "%H:%M:%S", gmtime_r(&now, &parts));
	fprintf(stderr, "espalier hub %s: %s\n", when, line);
}

static int serve(const struct hub_config *config)
{
	char address[ADDRESS_TEXT], memory[UNITS_TEXT];
	struct hub *hub;
	struct error err;

	serving_raise_descriptors();
	if (hub_open(config, &hub, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	fprintf(stderr, "espalier hub: listens at %s, %u lane%s, %s of memory for models\n",
	        address_format(&config->listen, address), config->lanes, plural(config->lanes),
	        units_format_bytes(config->memory_bytes, memory));
	hub_run(hub);
	hub_close(hub);
	return EXIT_OK;
}

int cli_hub_serve(int argc, char **argv)
{
	const char *listen = "0.0.0.0:7700", *key_file = HUB_KEY_FILE, *metrics = NULL;
	uint64_t memory = default_memory(), jobs = JOBS_DEFAULT, idle_seconds = 0, silence_seconds = 10;
	uint64_t lanes = cores_allowed() > LANES_DEFAULT_MOST ? LANES_DEFAULT_MOST : cores_allowed();
	struct hub_config config = {.log = log_line, .version = esp_version()};
	struct key key;
	struct error err;
	const struct option_spec options[] = {
		{"listen", 'l', OPTION_STRING, &listen, "HOST:PORT",
	     "where workers and operators connect (default 0.0.0.0:7700)"},
		{"key-file", 'k', OPTION_STRING, &key_file, "FILE",
	     "the hub's key, made with mode 0600 where there is none (default hub.key)"},
		{"memory", 'm', OPTION_BYTES, &memory, "BYTES", "of all models together (default half of the machine's)",
	     .min = 1 << 20},
		{"lanes", 0, OPTION_U64, &lanes, "N", "threads that move, add and optimize (default one per core, at most 16)",
	     .min = 1, .max = LAYOUT_LANES_MOST},
		{"apart", 0, OPTION_FLAG, &config.is_apart, NULL,
	     "workers on this machine push over the loopback: no memory is shared with them"},
		{"pin", 0, OPTION_FLAG, &config.pins, NULL, "each lane to a core: for a hub that has its cores to itself"},
		{"jobs", 0, OPTION_U64, &jobs, "N", "at most so many at a time (default 64)", .min = 1, .max = 100000},
		{"idle", 0, OPTION_U64, &idle_seconds, "SECONDS",
	     "removes a job that has had no workers for so long (default never)", .max = 365 * 86400},
		{"silence", 0, OPTION_U64, &silence_seconds, "SECONDS",
	     "without a word of a worker, until it is considered dead (default 10)", .min = 1, .max = 86400},
		{"metrics", 0, OPTION_STRING, &metrics, "PATH", "of a socket for Prometheus"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Serves as a parameter hub until SIGINT or SIGTERM: workers of many jobs push gradients, the hub sums and\n"
		"optimizes them while they arrive, and answers with new weights. Jobs are created by 'espalier hub create'.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (address_parse(listen, "--listen", &config.listen, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	if (find_key(key_file, &key, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	memcpy(config.key, key.bytes, sizeof(config.key));
	key_wipe(&key);
	config.lanes = (uint32_t)lanes;
	config.memory_bytes = memory;
	config.jobs = (uint32_t)jobs;
	config.idle_ns = idle_seconds * NS_PER_S;
	config.silence_ns = silence_seconds * NS_PER_S;
	config.metrics = metrics;
	int status = serve(&config);
	explicit_bzero(&config, sizeof(config));
	return status;
}
