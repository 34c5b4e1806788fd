/*
 * run.c - espalier run: starts the ranks of a job, here or on other hosts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/plan_file.h"
#include "cli/run_job.h"
#include "cli/run_report.h"
#include "cli/run_shell.h"

#define COMMAND "run"
#define GO_ON (-1)
#define SECONDS_MAX 1e9

/* The options as they were given. */
struct given {
	uint64_t ranks, port; /* 0: not given */
	const char *hosts, *hostfile, *leader, *job, *env, *cwd, *rsh, *output;
	double grace, timeout; /* seconds; timeout 0: none */
	uint64_t lose;
	int prefix;
	bool prefix_given, no_prefix;
	bool json;
};
enum { PREFIX_RANK, PREFIX_NONE };

static int status_of(enum esp_status status, const struct error *err)
{
	bool usage = status == ESP_EINVAL || status == ESP_ELIMIT || status == ESP_EIO;
	return usage ? cli_usage_error(COMMAND ": %s", err->text) : cli_fail(COMMAND ": %s", err->text);
}

/* ---- the command line ---- */

static bool takes_next_word(const struct cli_option *options, const char *word)
{
	for (const struct cli_option *option = options; option->name; option++) {
		bool named = strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0;
		bool lettered = option->short_name && word[0] == '-' && word[1] == option->short_name && word[2] == '\0';
		if (option->kind != CLI_FLAG && (named || lettered))
			return true;
	}
	return false;
}

/* --env stands there as often as there are variables; the table of options keeps only the last one. */
static int take_variables(const struct cli_option *options, int argc, char **argv, struct run_env *env)
{
	static const char name[] = "--env=";
	struct error err;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool next = takes_next_word(options, word) && i + 1 < argc;
		const char *variable = strncmp(word, name, strlen(name)) == 0 ? word + strlen(name) : NULL;
		if (next && strcmp(word, "--env") == 0)
			variable = argv[i + 1];
		enum esp_status status = variable ? run_env_add(env, variable, &err) : ESP_OK;
		if (status != ESP_OK)
			return status_of(status, &err);
		i += next;
	}
	return GO_ON;
}

/* Where the command begins: behind "--", so that its own options are never taken for ours. */
static int find_command(int argc, char **argv)
{
	int at = 1;
	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	return at;
}

static int parse(struct given *given, struct run_request *request, int argc, char **argv)
{
	static const char *const prefixes[] = {"rank", "none", NULL};
	const struct cli_option options[] = {
		{"ranks", 'n', CLI_U64, &given->ranks, "N", "number of ranks", .min = 1, .max = RUN_RANKS_MAX},
		{"hosts", 0, CLI_STRING, &given->hosts, "LIST", "hosts and their numbers of ranks, as in a:4,user@b:4"},
		{"hostfile", 0, CLI_STRING, &given->hostfile, "FILE", "the same from a file, a line for each"},
		{"leader", 0, CLI_STRING, &given->leader, "HOST:PORT", "where rank 0 can be reached"},
		{"port", 0, CLI_U64, &given->port, "PORT", "port of rank 0 (default: a free one)", .min = 1, .max = UINT16_MAX},
		{"job", 0, CLI_STRING, &given->job, "NAME", "name of the job (default: ESP_JOB, or the command's)"},
		{"env", 0, CLI_STRING, &given->env, "NAME=VALUE", "a variable for all ranks; any number of times"},
		{"cwd", 0, CLI_STRING, &given->cwd, "DIR", "folder that the ranks start in (default: this one)"},
		{"rsh", 0, CLI_STRING, &given->rsh, "COMMAND", "remote shell (default: ssh -o BatchMode=yes)"},
		{"prefix", 0, CLI_CHOICE, &given->prefix, "WHAT", "what lines begin with (default rank)", .choices = prefixes,
		 .given = &given->prefix_given},
		{"no-prefix", 0, CLI_FLAG, &given->no_prefix, NULL, "the same as --prefix none"},
		{"output", 'o', CLI_STRING, &given->output, "DIR", "write what rank N prints to DIR/rank-N.out and rank-N.err"},
		{"grace", 0, CLI_DOUBLE, &given->grace, "SECONDS", "time to end after a rank has failed, or after a signal (default 5)"},
		{"lose", 0, CLI_U64, &given->lose, "N", "so many ranks may fail, and the others go on (default 0)", .max = RUN_RANKS_MAX},
		{"timeout", 0, CLI_DOUBLE, &given->timeout, "SECONDS", "time for the whole job (default 0: no limit)"},
		{"json", 0, CLI_FLAG, &given->json, NULL, "print how the job went as JSON; what ranks print goes to stderr"},
		{0},
	};
	const struct cli_usage usage = {
		COMMAND,
		"-- COMMAND [ARGUMENT]...",
		"Starts the ranks of a job, here or on other hosts, and waits for all of them. Each is told in its\n"
		"environment who it is and how to find the others. When one fails, the others are ended (see --lose). SIGINT and\n"
		"SIGTERM go to all ranks; those that stay get SIGKILL when --grace is over, or at a second Ctrl-C.\n\n"
		"  espalier run -n 8 -- ./train --epochs 3\n"
		"  espalier run --hosts a:4,b:4 -- python3 train.py\n"
		"  espalier run -n 2 --env ESP_LOG=info --output logs -- ./train\n\n"
		"Returns 0 if all ranks do, or all but --lose, otherwise what the first one returned that failed, 128 and the signal if it\n"
		"was killed; 124 after --timeout, 127 if there is no such command, 126 if it cannot be run.",
		options,
		0,
		-1};
	int command = find_command(argc, argv), before = command;
	request->command = argv + (command < argc ? command + 1 : argc); /* argv ends with NULL */
	int parsed = take_variables(options, before, argv, &request->env);
	if (parsed == GO_ON)
		parsed = cli_parse(&usage, &before, argv);
	if (parsed != GO_ON)
		return parsed;
	if (before > 1)
		return cli_usage_error(COMMAND ": the command stands behind --: espalier run ... -- %s ...", argv[1]);
	if (!request->command[0])
		return cli_usage_error(COMMAND ": no command: it stands behind --, as in espalier run -n 4 -- ./train");
	return GO_ON;
}

/* ---- from options to a request ---- */

static int take_seconds(const char *name, double seconds, uint64_t *out_ns)
{
	if (!(seconds >= 0 && seconds <= SECONDS_MAX))
		return cli_usage_error(COMMAND ": --%s is a number of seconds, not below 0", name);
	*out_ns = (uint64_t)(seconds * (double)NS_PER_S);
	return GO_ON;
}

static enum esp_status read_hosts(struct run_hosts *hosts, const char *path, struct error *err)
{
	struct plan_file file;
	enum esp_status status = plan_file_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = run_hosts_decode(hosts, file.text, file.length, path, err);
	plan_file_close(&file);
	return status;
}

static int take_ranks(const struct given *given, struct run_request *request)
{
	struct error err;
	enum esp_status status = ESP_OK;
	if (given->hosts && given->hostfile)
		return cli_usage_error(COMMAND ": --hosts and --hostfile say the same thing; leave out one");
	if (!given->ranks && !given->hosts && !given->hostfile)
		return cli_usage_error(COMMAND ": how many ranks? -n N starts them here, --hosts or --hostfile on other hosts");
	request->size = (uint32_t)given->ranks;
	if (!given->hosts && !given->hostfile)
		return GO_ON;
	status = given->hosts ? run_hosts_parse(&request->hosts, given->hosts, &err)
	                      : read_hosts(&request->hosts, given->hostfile, &err);
	if (status == ESP_OK)
		status = run_hosts_settle(&request->hosts, request->size, &err);
	if (status != ESP_OK)
		return status_of(status, &err);
	request->size = request->hosts.ranks;
	return GO_ON;
}

static int take_leader(const struct given *given, struct run_request *request)
{
	struct error err;
	uint16_t port = (uint16_t)given->port;
	enum esp_status status = ESP_OK;
	if (given->leader && given->port)
		return cli_usage_error(COMMAND ": --leader has a port already; leave out --port");
	if (given->leader) {
		status = run_group_check_leader(given->leader, &err);
		snprintf(request->leader, sizeof(request->leader), "%s", given->leader);
	} else if (request->hosts.count) {
		port = port ? port : run_group_high_port();
		run_group_leader(run_host_address(&request->hosts.list[0]), port, request->leader);
	} else {
		status = run_group_local_port(port, &port, &err);
		run_group_leader("127.0.0.1", port, request->leader);
	}
	return status == ESP_OK ? GO_ON : status_of(status, &err);
}

static int take_job(const struct given *given, struct run_request *request)
{
	const char *name = given->job ? given->job : conf_environment(NULL, "ESP_JOB");
	const char *command = request->command[0], *slash = strrchr(command, '/');
	if (name && strlen(name) >= sizeof(request->job))
		return cli_usage_error(COMMAND ": the name of the job has %zu bytes, at most %zu fit", strlen(name),
		                       sizeof(request->job) - 1);
	if (name && name[0])
		snprintf(request->job, sizeof(request->job), "%s", name);
	else
		snprintf(request->job, sizeof(request->job), "%.100s-%ld", slash ? slash + 1 : command, (long)getpid());
	return GO_ON;
}

static int take_output(const struct given *given, struct run_request *request)
{
	struct stat facts;
	if (given->output && given->output[0] == '\0')
		return cli_usage_error(COMMAND ": --output: the name of the folder is empty");
	if (given->output && (given->prefix_given || given->no_prefix))
		return cli_usage_error(COMMAND ": --prefix means nothing with --output: files hold just what the ranks print");
	if (given->output && mkdir(given->output, 0777) != 0 && errno != EEXIST)
		return cli_usage_error(COMMAND ": cannot make the folder %s: %s", given->output, strerror(errno));
	if (given->cwd && !request->hosts.count && (stat(given->cwd, &facts) != 0 || !S_ISDIR(facts.st_mode)))
		return cli_usage_error(COMMAND ": --cwd: there is no folder %s", given->cwd);
	request->output = given->output;
	request->cwd = given->cwd;
	request->prefixed = given->prefix == PREFIX_RANK && !given->no_prefix;
	request->json = given->json;
	return GO_ON;
}

/* The words of the remote shell, split at blanks; behind them the host and what its shell runs. */
static int take_rsh(const struct given *given, struct run_request *request)
{
	static const char fallback[] = "ssh -o BatchMode=yes";
	const char *text = given->rsh ? given->rsh : fallback;
	if (given->rsh && !request->hosts.count)
		return cli_usage_error(COMMAND ": --rsh means nothing without --hosts or --hostfile");
	request->here = getcwd(NULL, 0);
	request->rsh = calloc(strlen(text) / 2 + 4, sizeof(char *));
	if (!request->here || !request->rsh)
		return cli_fail(COMMAND ": cannot tell the current folder: %s", strerror(errno));
	for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
		size_t length = strcspn(text, " \t");
		request->rsh[request->rsh_host++] = strndup(text, length);
		text += length;
	}
	if (request->rsh_host == 0)
		return cli_usage_error(COMMAND ": --rsh: the command is empty");
	request->rsh[request->rsh_host + 1] = strdup(run_shell_bootstrap);
	return GO_ON;
}

static void warn(void *unused, const struct error *complaint)
{
	(void)unused;
	cli_note(COMMAND ": %s", complaint->text);
}

static int take_environment(struct run_request *request)
{
	char key[RUN_KEY_TEXT], size[16];
	struct error err;
	struct run_env given = request->env; /* what the person says counts more than what the environment says */
	request->env = (struct run_env){0};
	if (request->hosts.count) /* local ranks see it themselves, others are never told of it */
		conf_check_environment(warn, NULL);
	enum esp_status status = request->hosts.count ? run_env_add_settings(&request->env, &err) : ESP_OK;
	for (size_t i = 0; i < given.count && status == ESP_OK; i++)
		status = run_env_add(&request->env, given.words[i], &err);
	run_env_fini(&given);
	snprintf(size, sizeof(size), "%u", request->size);
	if (status == ESP_OK)
		status = run_env_set(&request->env, "ESP_SIZE", size, &err);
	if (status == ESP_OK)
		status = run_env_set(&request->env, "ESP_LEADER", request->leader, &err);
	if (status == ESP_OK)
		status = run_env_set(&request->env, "ESP_JOB", request->job, &err);
	if (status == ESP_OK)
		status = run_group_key(key, &err);
	if (status == ESP_OK)
		status = run_env_set(&request->env, "ESP_KEY", key, &err);
	explicit_bzero(key, sizeof(key));
	return status == ESP_OK ? GO_ON : status_of(status, &err);
}

static int understand(const struct given *given, struct run_request *request)
{
	int status = take_ranks(given, request);
	request->lose = (uint32_t)given->lose;
	if (status == GO_ON)
		status = take_seconds("grace", given->grace, &request->grace_ns);
	if (status == GO_ON)
		status = take_seconds("timeout", given->timeout, &request->limit_ns);
	if (status == GO_ON)
		status = take_job(given, request);
	if (status == GO_ON)
		status = take_leader(given, request);
	if (status == GO_ON)
		status = take_rsh(given, request);
	if (status == GO_ON)
		status = take_output(given, request);
	return status == GO_ON ? take_environment(request) : status;
}

static void forget(struct run_request *request)
{
	run_hosts_fini(&request->hosts);
	run_env_fini(&request->env);
	if (request->rsh && request->rsh_host > 0) {
		free(request->rsh[request->rsh_host + 1]);
		for (size_t i = 0; i < request->rsh_host; i++)
			free(request->rsh[i]);
	}
	free(request->rsh);
	free(request->here);
}

/* ---- the story ---- */

static int run_request(struct run_request *request)
{
	struct run_job job;
	struct error err;
	enum esp_status status = run_job_open(&job, request, &err);
	if (status != ESP_OK)
		return cli_fail(COMMAND ": %s", err.text);
	run_job_run(&job);
	run_report_summary(&job);
	int exit_status = run_report_exit_status(&job);
	if (request->json && run_report_json(&job) != ESP_OK && exit_status == CLI_EXIT_OK)
		exit_status = cli_fail(COMMAND ": cannot write to the standard output");
	run_job_close(&job);
	return exit_status;
}

static int run(int argc, char **argv)
{
	struct given given = {.grace = 5};
	struct run_request request = {0};
	int status = parse(&given, &request, argc, argv);
	if (status == GO_ON)
		status = understand(&given, &request);
	if (status == GO_ON)
		status = run_request(&request);
	forget(&request);
	return status;
}

const struct cli_command cli_run = {"run", "starts the ranks of a job, here or on other hosts", run};
