/*
 * lab_run.c - espalier lab run: the ranks of a job on the hosts of a lab.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/lab.h"
#include "report/options.h"
#include "tools/launcher/launcher_given.h"

#define COMMAND "lab run"
#define OWN_OPTIONS 4
#define LEADER_PORT 29400 /* rank 0 has its host's ports for itself */

struct given {
	struct run_given common;
	const char *name, *place;
	uint64_t ranks, per_host; /* ranks 0: all that fit */
};

/* Where the ranks go. */
struct seats {
	const char *name;      /* of the lab */
	const struct lab *lab;
	uint32_t *hosts; /* the first hosts of the placement */
	uint32_t per_host;
	int keeper_fd; /* -1: none */
};

static enum esp_status enter(void *context, uint32_t rank, struct error *err)
{
	const struct seats *seats = context;
	return lab_client_enter(seats->name, lab_host(seats->lab, seats->hosts[rank / seats->per_host])->name, err);
}

static int parse(struct given *given, struct run_request *request, int argc, char **argv)
{
	struct option_spec options[OWN_OPTIONS + RUN_GIVEN_OPTIONS + 1] = {
		{"place", 0, OPTION_STRING, &given->place, "HOW",
	     "contiguous, interleaved or random:SEED (default contiguous)"},
		{"ranks", 'n', OPTION_U64, &given->ranks, "N", "number of ranks (default: all hosts)", .min = 1,
	     .max = RUN_RANKS_MAX},
		{"per-host", 0, OPTION_U64, &given->per_host, "N", "ranks on each host (default 1)", .min = 1, .max = 1024},
		{"name", 0, OPTION_STRING, &given->name, "NAME", "of the lab (default lab)"},
	};
	const struct options_usage usage = {
		COMMAND,
		"-- COMMAND [ARGUMENT]...",
		"Starts a job with a rank on each host of the lab, as espalier run does: ranks are told their number, where\n"
		"rank 0 is and the key of the job; lines that they print have the rank in front; when one fails, the others\n"
		"are ended. Neighbouring ranks share a rack (contiguous), or never do (interleaved: they are dealt out like\n"
		"cards), or it is left to chance.\n\n"
		"  espalier lab run -- build/examples/hello\n"
		"  espalier lab run --place interleaved -n 8 -- espalier bench allreduce --size 1M:64M\n\n"
		"Returns what espalier run would.",
		options,
		0,
		-1};
	launcher_given_options(&given->common, options + OWN_OPTIONS);
	return launcher_given_parse(&usage, argc, argv, request);
}

static int take_place(const char *text, enum lab_place *out_place, uint64_t *out_seed)
{
	static const char random[] = "random:";
	*out_place = LAB_CONTIGUOUS;
	if (!text || strcmp(text, "contiguous") == 0)
		return RUN_GO_ON;
	*out_place = LAB_INTERLEAVED;
	if (strcmp(text, "interleaved") == 0)
		return RUN_GO_ON;
	*out_place = LAB_RANDOM;
	size_t length = strlen(random);
	if (strncmp(text, random, length) == 0 && number_parse_u64(text + length, strlen(text + length), out_seed))
		return RUN_GO_ON;
	return complain_usage(COMMAND ": --place: '%s' is not contiguous, interleaved or random:SEED", text);
}

static int take_seats(const struct given *given, struct seats *seats, struct run_request *request)
{
	struct error err;
	enum lab_place place;
	uint64_t seed = 0;
	int taken = take_place(given->place, &place, &seed);
	if (taken != RUN_GO_ON)
		return taken;
	enum esp_status status = lab_client_map(given->name, &seats->lab, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	uint64_t most = seats->lab->host_count * given->per_host;
	if (given->ranks > most || most > RUN_RANKS_MAX)
		return complain_usage(COMMAND ": the lab has room for %llu ranks; --per-host puts more on each host",
		                      (unsigned long long)most);
	seats->hosts = calloc(seats->lab->host_count, sizeof(*seats->hosts));
	if (!seats->hosts)
		return complain(COMMAND ": no memory");
	lab_place(seats->lab, place, seed, seats->hosts);
	request->size = (uint32_t)(given->ranks ? given->ranks : most);
	return RUN_GO_ON;
}

static int understand(const struct given *given, struct seats *seats, struct run_request *request)
{
	char address[LAB_ADDRESS_TEXT];
	*seats = (struct seats){.name = given->name, .per_host = (uint32_t)given->per_host, .keeper_fd = -1};
	int taken = take_seats(given, seats, request);
	if (taken != RUN_GO_ON)
		return taken;
	launcher_group_leader(lab_address(seats->lab, seats->hosts[0], 0, address), LEADER_PORT, request->leader);
	/* If the keeper is killed the network of the ranks is gone, but for what they hold of it themselves. */
	seats->keeper_fd = (int)syscall(SYS_pidfd_open, seats->lab->keeper, 0);
	request->place = (struct run_place){enter, seats, seats->per_host, seats->keeper_fd};
	return launcher_given_understand(&given->common, request);
}

static int run(int argc, char **argv)
{
	struct given given = {.common = {.command = COMMAND, .grace = 5}, .name = CLIENT_DEFAULT, .per_host = 1};
	struct run_request request = {.held_port = -1, .held_master = -1};
	struct seats seats = {.keeper_fd = -1};
	int status = parse(&given, &request, argc, argv);
	if (status == RUN_GO_ON)
		status = understand(&given, &seats, &request);
	if (status == RUN_GO_ON)
		status = launcher_given_run(&given.common, &request);
	launcher_given_forget(&request);
	lab_client_unmap(seats.lab);
	free(seats.hosts);
	if (seats.keeper_fd >= 0)
		close(seats.keeper_fd);
	return status;
}

const struct cli_command cli_lab_run = {"run", "starts a job with a rank on each host", run};
