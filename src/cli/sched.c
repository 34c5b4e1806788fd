/*
 * sched.c - espalier sched: the scheduler of asynchronous updates, or a command about one.
 */
#include "cli/sched.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "cli/family.h"
#include "cli/hub.h"
#include "cli/serving.h"
#include "fabric/server/sched_server.h"
#include "report/options.h"

#define COMMAND "sched"
#define SLACK_MOST 1000000u
#define PAYLOAD_PERCENT 94u /* of a link, with packets of 1500 bytes */
#define LISTEN_DEFAULT "0.0.0.0:7900"

static const struct cli_command *const commands[] = {&cli_sched_status};

static const struct cli_family family = {
	.name = "sched",
	.about = "A scheduler decides which worker of an asynchronous job sends its update when, and which updates are\n"
	         "dropped before they are sent, as they would be too late. Without a command, espalier sched is the\n"
	         "scheduler itself and serves until it is ended: 'espalier sched --listen HOST:PORT', see 'espalier sched\n"
	         "serve --help'.\n",
	.more = "examples:\n"
	        "  espalier hub --listen 0.0.0.0:7700 --key-file hub.key &\n"
	        "  espalier sched --listen 0.0.0.0:7900 --key-file hub.key --batch 100ms &\n"
	        "  espalier hub create mnist --workers 4 --mode async --delay-bound 30 --sched 127.0.0.1:7900 \\\n"
	        "    --optimizer \"sgd lr=0.05\"\n"
	        "  ESP_HUB_TICKET=mnist.ticket espalier run -n 4 -- ./train\n"
	        "  espalier sched status\n\n"
	        "exit status: 0 done; 1 the work failed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

static void log_line(void *context, const char *line)
{
	time_t now = time(NULL);
	struct tm parts;
	char when[32];

	(void)context;
	strftime(when, sizeof(when), "%H:%M:%S", gmtime_r(&now, &parts));
	fprintf(stderr, "espalier sched %s: %s\n", when, line);
}

static int serve(const struct sched_server_config *config)
{
	char address[ADDRESS_TEXT], batch[UNITS_TEXT];
	struct sched_server *server;
	struct error err;

	serving_raise_descriptors();
	if (sched_server_open(config, &server, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	fprintf(stderr, "espalier sched: listens at %s, batches of %s\n", address_format(&config->listen, address),
	        units_format_time(config->batch_ns, batch));
	sched_server_run(server);
	sched_server_close(server);
	return EXIT_OK;
}

/* In bytes per second, of updates and models: heads of packets have the rest. */
static bool parse_rate(const char *text, uint64_t *out)
{
	uint64_t bits;

	if (!units_parse_rate(text, &bits) || bits < 8000)
		return false;
	*out = bits / 8 / 100 * PAYLOAD_PERCENT;
	return true;
}

static bool parse_slack(const char *text, struct sched_server_config *config)
{
	uint64_t slack = 0;

	config->has_slack = text != NULL;
	if (text && (!number_parse_u64(text, strlen(text), &slack) || slack > SLACK_MOST))
		return false;
	config->slack = (uint32_t)slack;
	return true;
}

static bool open_decisions(const char *path, struct sched_server_config *config)
{
	if (!path)
		return true;
	config->decisions = fopen(path, "ae");
	if (!config->decisions) {
		complain(COMMAND ": %s: %s", path, strerror(errno));
		return false;
	}
	setvbuf(config->decisions, NULL, _IOLBF, 0);
	return true;
}

static int run_server(int argc, char **argv)
{
	const char *listen = LISTEN_DEFAULT, *key_file = HUB_KEY_FILE, *batch = "100ms", *hub_rate = "10gbit";
	const char *worker_rate = NULL, *aggregate = "paper", *decisions = NULL;
	const char *slack = NULL, *slack_wait = "60s";
	struct sched_server_config config = {.log = log_line};
	struct key key;
	struct error err;
	const struct option_spec options[] = {
		{"listen", 'l', OPTION_STRING, &listen, "HOST:PORT", "where workers connect (default " LISTEN_DEFAULT ")"},
		{"key-file", 'k', OPTION_STRING, &key_file, "FILE", "the hub's key (default hub.key)"},
		{"batch", 'b', OPTION_STRING, &batch, "TIME",
	     "updates are decided together that become ready within it (default 100ms)"},
		{"hub-rate", 0, OPTION_STRING, &hub_rate, "RATE", "of the hub's link (default 10gbit)"},
		{"rate", 0, OPTION_STRING, &worker_rate, "RATE",
	     "of a worker's link until its transfers show it (default that of the hub)"},
		{"aggregate", 0, OPTION_STRING, &aggregate, "no|paper|best",
	     "whether workers add updates of others to theirs where it pays: by groups (paper, the default) or chains"},
		{"slack", 0, OPTION_STRING, &slack, "N",
	     "no worker is more than N updates ahead of the slowest; 0: all in step"},
		{"slack-wait", 0, OPTION_STRING, &slack_wait, "TIME",
	     "after which a worker is no longer held back (default 60s)"},
		{"decisions", 0, OPTION_STRING, &decisions, "FILE", "a line for each decision and end, which is appended"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Serves as the scheduler of the asynchronous jobs of one hub, whose key it has, until SIGINT or SIGTERM. At\n"
		"the end of each batch it orders the updates that are ready by their deadlines and by what is left of the\n"
		"links, and drops those that would be too late or hold up others. Workers do without it while it is not there.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (address_parse(listen, "--listen", &config.listen, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	if (!units_parse_time(batch, &config.batch_ns) || config.batch_ns < NS_PER_MS || config.batch_ns > 60 * NS_PER_S)
		return complain_usage(COMMAND ": --batch is a time from 1ms to 60s, not '%s'", batch);
	if (!parse_rate(hub_rate, &config.hub_rate))
		return complain_usage(COMMAND ": --hub-rate is a rate such as 10gbit or 200mbit, not '%s'", hub_rate);
	config.worker_rate = config.hub_rate;
	if (worker_rate && !parse_rate(worker_rate, &config.worker_rate))
		return complain_usage(COMMAND ": --rate is a rate such as 10gbit or 200mbit, not '%s'", worker_rate);
	config.chains = strcmp(aggregate, "best") == 0;
	config.aggregates = config.chains || strcmp(aggregate, "paper") == 0;
	if (!config.aggregates && strcmp(aggregate, "no") != 0)
		return complain_usage(COMMAND ": --aggregate is no, paper or best, not '%s'", aggregate);
	if (!parse_slack(slack, &config))
		return complain_usage(COMMAND ": --slack is a number of updates from 0 to %u, not '%s'", SLACK_MOST, slack);
	if (!units_parse_time(slack_wait, &config.slack_wait_ns))
		return complain_usage(COMMAND ": --slack-wait is a time such as 60s, not '%s'", slack_wait);
	if (cli_hub_key(key_file, &key, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	memcpy(config.key, key.bytes, sizeof(config.key));
	key_wipe(&key);
	int status = EXIT_NO;
	if (open_decisions(decisions, &config))
		status = serve(&config);
	if (config.decisions)
		fclose(config.decisions);
	explicit_bzero(&config, sizeof(config));
	return status;
}

static int run(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return run_server(argc - 1, argv + 1);
	if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)
		return run_server(argc, argv);
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_sched = {"sched", "orders and drops the updates of asynchronous jobs", run, 1};
