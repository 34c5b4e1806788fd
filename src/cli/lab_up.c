/*
 * lab_up.c - espalier lab up: makes a lab and measures whether it is what was asked for.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/infile.h"
#include "base/number.h"
#include "base/units.h"
#include "cli/lab.h"
#include "report/options.h"
#include "tools/lab/keeper.h"
#include "tools/lab/lab_report.h"

#define COMMAND "lab up"
#define GO_ON (-1)
#define CHECK_SECONDS 0.5

struct given {
	uint64_t racks, hosts, interfaces, mtu, seed;
	const char *rate, *delay, *uplink_delay, *name, *congestion, *through;
	double oversubscribe;
	bool interfaces_given, ipv6, no_check, json;
};

static int parse(struct given *given, int *argc, char **argv)
{
	const struct option_spec options[] = {
		{"racks", 0, OPTION_U64, &given->racks, "N", "number of racks (default 2)", .min = 1, .max = LAB_PORTS_MAX},
		{"hosts", 0, OPTION_U64, &given->hosts, "N", "hosts in each rack (default 2)", .min = 1, .max = LAB_PORTS_MAX},
		{"rate", 0, OPTION_STRING, &given->rate, "RATE",
	     "rate of a host, such as 200mbit (default 1gbit); RATE,RATE for interfaces"},
		{"oversubscribe", 0, OPTION_DOUBLE, &given->oversubscribe, "N",
	     "a rack's uplink has hosts * rate / N (default 1)"},
		{"interfaces", 0, OPTION_U64, &given->interfaces, "N",
	     "of a host: e0, e1, each on a network of its own (default 1)", .min = 1, .max = LAB_RAILS_MAX,
	     .given = &given->interfaces_given},
		{"delay", 0, OPTION_STRING, &given->delay, "TIME", "of each host's link, one way (default 0)"},
		{"uplink-delay", 0, OPTION_STRING, &given->uplink_delay, "TIME", "of each rack's uplink, one way (default 0)"},
		{"mtu", 0, OPTION_U64, &given->mtu, "BYTES", "of all links (default 1500)", .min = 68, .max = 65535},
		{"ipv6", 0, OPTION_FLAG, &given->ipv6, NULL, "hosts have IPv6 addresses alone"},
		{"congestion", 0, OPTION_STRING, &given->congestion, "NAME",
	     "congestion control of TCP (default: this machine's)"},
		{"switch", 0, OPTION_STRING, &given->through, "[PLACE]",
	     "a switch of sums (espalier switch) in rack0, or in PLACE; HOST:Kx: on a host whose link has K times the rate",
	     .bare = "rack0"},
		{"name", 0, OPTION_STRING, &given->name, "NAME", "of the lab, for several beside each other (default lab)"},
		{"seed", 0, OPTION_U64, &given->seed, "N", "shuffles names and addresses, and decides faults (default 1)"},
		{"no-check", 0, OPTION_FLAG, &given->no_check, NULL, "do not measure rates and latencies"},
		{"json", 0, OPTION_FLAG, &given->json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Makes racks of hosts inside this machine and leaves them running. Each host is a set of namespaces with a\n"
		"name, interfaces and addresses of its own; each rack a switch; a core connects the racks. Names and\n"
		"addresses are shuffled: they do not tell the rack of a host. Then one link of each class is measured.\n"
		"Without root, all of it lives in a user namespace. Ctrl-C before it is done leaves nothing behind.\n\n"
		"  espalier lab up --racks 4 --hosts 4 --rate 1gbit --oversubscribe 4\n"
		"  espalier lab up --hosts 3 --interfaces 2 --rate 1gbit,200mbit",
		options, 0, 0};
	return options_parse(&usage, argc, argv);
}

/* "1gbit" for all interfaces, or "1gbit,200mbit" for each. */
static int take_rates(const struct given *given, struct lab_config *config)
{
	char text[256], *rest = text, *word;
	uint32_t count = 0;
	if (strlen(given->rate) >= sizeof(text))
		return complain_usage(COMMAND ": --rate is too long");
	memcpy(text, given->rate, strlen(given->rate) + 1);
	while ((word = strsep(&rest, ",")) && count < LAB_RAILS_MAX)
		if (!units_parse_rate(word, &config->rate[count++]))
			return complain_usage(COMMAND ": --rate: '%s' is not a rate such as 200mbit or 1gbit", word);
	config->rails = given->interfaces_given ? (uint32_t)given->interfaces : count;
	if (word || (count > 1 && count != config->rails))
		return complain_usage(COMMAND ": --rate has another number of rates than there are interfaces (%u; at most %u)",
		                      config->rails, LAB_RAILS_MAX);
	for (; count < config->rails; count++)
		config->rate[count] = config->rate[0];
	return GO_ON;
}

static int take_time(const char *name, const char *text, uint64_t *out_ns)
{
	if (!text || units_parse_time(text, out_ns))
		return GO_ON;
	return complain_usage(COMMAND ": --%s: '%s' is not a time such as 5ms or 200us", name, text);
}

/* "rack0", or "HOST:4x". */
static int take_switch(const struct given *given, struct lab_config *config)
{
	const char *colon = given->through ? strchr(given->through, ':') : NULL;
	size_t length = colon ? (size_t)(colon - given->through) : given->through ? strlen(given->through) : 0;
	char *end = NULL;

	if (!given->through)
		return GO_ON;
	config->through_links = colon ? strtod(colon + 1, &end) : 1;
	bool is_number = !colon || (end != colon + 1 && strcmp(end, "x") == 0 && config->through_links >= 0.01 &&
	                            config->through_links <= 1000);
	if (length == 0 || length >= sizeof(config->through) || !is_number)
		return complain_usage(COMMAND ": --switch: '%s' is not a rack, as in rack0, or a host and how much faster its "
		                      "link is, as in rack0/1:4x", given->through);
	memcpy(config->through, given->through, length);
	return GO_ON;
}

static int understand(const struct given *given, struct lab_config *config)
{
	struct error err;
	*config = (struct lab_config){
		.racks = (uint32_t)given->racks,
		.hosts = (uint32_t)given->hosts,
		.oversubscribe = given->oversubscribe,
		.mtu = (uint32_t)given->mtu,
		.ipv6 = given->ipv6,
		.seed = given->seed,
	};
	int status = take_rates(given, config);
	if (status == GO_ON)
		status = take_switch(given, config);
	if (status == GO_ON)
		status = take_time("delay", given->delay, &config->delay_ns);
	if (status == GO_ON)
		status = take_time("uplink-delay", given->uplink_delay, &config->uplink_delay_ns);
	if (status != GO_ON)
		return status;
	/* cut off where they are too long, which the check below sees */
	memcpy(config->name, given->name, strnlen(given->name, sizeof(config->name)));
	if (given->congestion)
		memcpy(config->congestion, given->congestion, strnlen(given->congestion, sizeof(config->congestion)));
	enum esp_status checked = lab_config_check(config, &err);
	return checked == ESP_OK ? GO_ON : lab_status_of(COMMAND, checked, &err);
}

/* ---- waiting, and being told to stop ---- */

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* The exit status of a command that was told to stop, as shells have it. */
static int stopped_status(int signals)
{
	struct signalfd_siginfo info = {0};
	ssize_t got = read(signals, &info, sizeof(info));
	complain_note(COMMAND ": interrupted; nothing is left of the lab");
	return got == (ssize_t)sizeof(info) ? 128 + (int)info.ssi_signo : EXIT_NO;
}

static enum esp_status wait_for_keeper(struct keeper *keeper, int signals, struct error *err)
{
	struct pollfd polls[] = {{keeper->hold, POLLIN, 0}, {signals, POLLIN, 0}};
	while (poll(polls, 2, -1) < 0)
		if (errno != EINTR)
			return error_set(err, ESP_EIO, "cannot wait: %s", strerror(errno));
	if (polls[1].revents)
		return error_set(err, ESP_EABORTED, "interrupted");
	return lab_keeper_result(keeper, err);
}

static int report(const struct given *given, const struct lab *lab, const struct lab_checks *checks)
{
	enum esp_status status = ESP_OK;
	struct json json;
	if (given->json) {
		json_init(&json, stdout);
		json_object_begin(&json);
		lab_json_config(&json, lab);
		status = lab_report_links(lab, &json);
	} else {
		lab_report_sentence(lab);
	}
	if (status == ESP_OK && (given->json || checks->count))
		status = lab_report_checks(lab, checks, given->json ? &json : NULL);
	if (given->json) {
		json_object_end(&json);
		status = json_fini(&json);
	}
	if (lab_checks_wrong(checks))
		complain_note(COMMAND ": the lab is up, but not all links are what was asked for: is the machine busy, or a "
		                      "rate more than it can move? "
		                      "espalier lab check measures again");
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": cannot write to the standard output");
}

/*
 * To find each other, hosts ask all: on this machine a frame for each of them, which wait in one queue. Frames that do
 * not fit are dropped, and the host that was asked for may never hear of it.
 */
static void warn_of_backlog(const struct lab_config *config)
{
	const char *name = "/proc/sys/net/core/netdev_max_backlog";
	uint64_t hosts = (uint64_t)config->racks * config->hosts, most = 0;
	struct infile file = {0};
	struct error err;

	if (infile_open(&file, name, &err) != ESP_OK)
		return;
	size_t length = file.length > 0 && file.text[file.length - 1] == '\n' ? file.length - 1 : file.length;
	if (number_parse_u64(file.text, length, &most) && hosts > most)
		complain_note(COMMAND ": %llu hosts are more than the kernel's queue takes at a time (%llu), so they may not "
		                      "find each other: sysctl -w "
		                      "net.core.netdev_max_backlog=%llu before this",
		              (unsigned long long)hosts, (unsigned long long)most, 2 * (unsigned long long)hosts);
	infile_close(&file);
}

static int up(const struct given *given, const struct lab_config *config)
{
	struct keeper keeper;
	struct lab_checks checks = {0};
	const struct lab *lab = NULL;
	struct error err = {0};
	int signals = open_signals(), exit_status = EXIT_OK;
	warn_of_backlog(config);
	enum esp_status status = lab_keeper_start(&keeper, config, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	status = wait_for_keeper(&keeper, signals, &err);
	if (status == ESP_OK)
		status = lab_client_map(config->name, &lab, &err);
	if (status == ESP_OK && !given->no_check)
		status = lab_client_check(config->name, false, CHECK_SECONDS, signals, lab_checks_add, &checks, &err);
	if (status == ESP_OK) {
		lab_keeper_settle(&keeper);
		exit_status = report(given, lab, &checks);
	} else {
		lab_keeper_abandon(&keeper);
		exit_status = status == ESP_EABORTED ? stopped_status(signals) : lab_status_of(COMMAND, status, &err);
	}
	lab_client_unmap(lab);
	lab_checks_fini(&checks);
	if (signals >= 0)
		close(signals);
	return exit_status;
}

static int run(int argc, char **argv)
{
	struct given given = {.racks = 2, .hosts = 2, .interfaces = 1, .mtu = 1500, .seed = 1, .oversubscribe = 1,
	                      .rate = "1gbit", .name = CLIENT_DEFAULT};
	struct lab_config config;
	int status = parse(&given, &argc, argv);
	if (status == GO_ON)
		status = understand(&given, &config);
	return status == GO_ON ? up(&given, &config) : status;
}

const struct cli_command cli_lab_up = {"up", "makes a lab and checks it", run};
