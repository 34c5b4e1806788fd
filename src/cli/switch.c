/*
 * switch.c - espalier switch: a process that sums packets of integers on their way, or a command about one.
 */
#include "cli/switch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/family.h"
#include "espalier/espalier.h"
#include "report/options.h"
#include "switch/server/switch_server.h"
#include "wire/atp_packet.h"

#define COMMAND "switch"
#define LISTEN_DEFAULT "0.0.0.0:7800"

static const struct cli_command *const commands[] = {&cli_switch_status, &cli_switch_drain};

static const struct cli_family family = {
	.name = "switch",
	.about = "A switch adds packets of gradients on their way, so that one packet goes on where many came: in-network\n"
	         "aggregation. Without a command, espalier switch is such a switch, in user space and without privileges,\n"
	         "and serves until it is ended: 'espalier switch --listen HOST:PORT', see 'espalier switch serve --help'.\n"
	         "Jobs use it by ESP_SWITCH=HOST:PORT, and go on without it when it is not there.\n",
	.more = "examples:\n"
	        "  espalier switch --listen 0.0.0.0:7800 --aggregators 4096 &\n"
	        "  ESP_SWITCH=127.0.0.1:7800 espalier run -n 4 -- ./train\n"
	        "  espalier switch status\n"
	        "  espalier switch drain\n\n"
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
	fprintf(stderr, "espalier switch %s: %s\n", when, line);
}

static int serve(const struct switch_config *config)
{
	char address[ADDRESS_TEXT];
	struct switch_server *server;
	struct error err;

	if (switch_server_open(config, &server, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	fprintf(stderr, "espalier switch: listens at %s, %u aggregators of %u words\n",
	        address_format(&config->listen, address), config->slots, config->words_max);
	switch_server_run(server);
	switch_server_close(server);
	return EXIT_OK;
}

/* Options as text and numbers. */
struct given {
	const char *listen, *rate, *age, *delay;
	uint64_t slots, quota, flows, words;
};

static int read_times(const struct given *given, struct switch_config *config)
{
	if (given->rate && (!units_parse_rate(given->rate, &config->rate_bps) || config->rate_bps == 0))
		return complain_usage(COMMAND ": --rate is a rate such as 10gbit or 800mbit, not '%s'", given->rate);
	if (!units_parse_time(given->age, &config->age_ns) || config->age_ns < NS_PER_MS)
		return complain_usage(COMMAND ": --age is a time from 1ms on, not '%s'", given->age);
	if (!units_parse_time(given->delay, &config->impair.delay_ns) || config->impair.delay_ns > 10 * NS_PER_S)
		return complain_usage(COMMAND ": --delay is a time up to 10s, not '%s'", given->delay);
	return EXIT_OK;
}

static int read_faults(const struct impair_config *impair)
{
	const double shares[] = {impair->loss, impair->repeat, impair->reorder, impair->corrupt};
	static const char *const names[] = {"loss", "repeat", "reorder", "corrupt"};

	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		if (!(shares[i] >= 0 && shares[i] < 1))
			return complain_usage(COMMAND ": --%s is a share of the packets, from 0 to less than 1", names[i]);
	return EXIT_OK;
}

static int run_server(int argc, char **argv)
{
	struct given given = {LISTEN_DEFAULT, NULL, "2s", "0s", 4096, 0, 1024, ATP_WORDS_MAX};
	struct switch_config config = {.log = log_line, .version = esp_version(), .impair.seed = 1};
	struct error err;
	const struct option_spec options[] = {
		{"listen", 'l', OPTION_STRING, &given.listen, "HOST:PORT", "where members send (default " LISTEN_DEFAULT ")"},
		{"aggregators", 'a', OPTION_U64, &given.slots, "N", "packets that can be summed at once (default 4096)",
	     .min = 1, .max = 1u << 24},
		{"words", 0, OPTION_U64, &given.words, "N", "32-bit words that an aggregator has room for (default 2048)",
	     .min = 1, .max = ATP_WORDS_MAX},
		{"quota", 0, OPTION_U64, &given.quota, "N",
	     "aggregators that one address may hold at once (default three quarters)", .min = 1, .max = 1u << 24},
		{"flows", 0, OPTION_U64, &given.flows, "N",
	     "flows, one for each communicator, that one address may open (default 1024)", .min = 1, .max = 1u << 16},
		{"age", 0, OPTION_STRING, &given.age, "TIME",
	     "an aggregator that nothing came for is taken by another packet after it (default 2s)"},
		{"rate", 'r', OPTION_STRING, &given.rate, "RATE",
	     "of this machine's link, which members are told, as in 10gbit (default: not known)"},
		{"loss", 0, OPTION_DOUBLE, &config.impair.loss, "SHARE",
	     "for tests: packets that are lost, in and out, as in 0.01"},
		{"repeat", 0, OPTION_DOUBLE, &config.impair.repeat, "SHARE", "for tests: packets that come twice"},
		{"reorder", 0, OPTION_DOUBLE, &config.impair.reorder, "SHARE", "for tests: packets that are up to 5 ms late"},
		{"corrupt", 0, OPTION_DOUBLE, &config.impair.corrupt, "SHARE", "for tests: packets with a changed bit"},
		{"delay", 0, OPTION_STRING, &given.delay, "TIME", "for tests: how much later each packet comes"},
		{"seed", 0, OPTION_U64, &config.impair.seed, "N", "of the faults for tests (default 1)"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Serves as a switch that adds, until SIGINT or SIGTERM. Members of jobs register by themselves. The switch\n"
		"needs no key and no privilege: members check its sums, and go on without it when it is silent or wrong.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (address_parse(given.listen, "--listen", &config.listen, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	int wrong = read_times(&given, &config);
	if (wrong == EXIT_OK)
		wrong = read_faults(&config.impair);
	if (wrong != EXIT_OK)
		return wrong;
	config.slots = (uint32_t)given.slots;
	config.words_max = (uint16_t)given.words;
	config.flow_quota = (uint32_t)given.flows;
	config.quota = (uint32_t)(given.quota ? given.quota : (given.slots * 3 + 3) / 4);
	return serve(&config);
}

static int run(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return run_server(argc - 1, argv + 1);
	if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)
		return run_server(argc, argv);
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_switch = {"switch", "sums packets of gradients on their way", run, 1};
