#include "tools/launcher/launcher_given.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/cores.h"
#include "base/infile.h"
#include "report/complain.h"
#include "tools/launcher/launcher_group.h"
#include "tools/launcher/launcher_job.h"
#include "tools/launcher/launcher_report.h"
#include "tools/launcher/launcher_shell.h"

#define SECONDS_MAX 1e9
#define CROWD_PER_CORE 64u /* with more ranks per core, peers may take a rank that is not scheduled for dead */
#define TOPOLOGY_SENT_MOST (100u << 10) /* bytes */

int launcher_given_status(const char *command, enum esp_status status, const struct error *err)
{
	bool usage = status == ESP_EINVAL || status == ESP_ELIMIT || status == ESP_EIO;
	return usage ? complain_usage("%s: %s", command, err->text) : complain("%s: %s", command, err->text);
}

/* ---- the command line ---- */

void launcher_given_options(struct run_given *given, struct option_spec out[RUN_GIVEN_OPTIONS])
{
	static const char *const prefixes[] = {"rank", "none", NULL};
	const struct option_spec options[] = {
		{"job", 0, OPTION_STRING, &given->job, "NAME", "name of the job (default: ESP_JOB, or the command's)"},
		{"env", 0, OPTION_STRING, &given->env, "NAME=VALUE", "a variable for all ranks; any number of times"},
		{"topology", 0, OPTION_STRING, &given->topology, "FILE",
	     "where hosts are in the network; probe: measured at start"},
		{"cwd", 0, OPTION_STRING, &given->cwd, "DIR", "folder that the ranks start in (default: this one)"},
		{"prefix", 0, OPTION_CHOICE, &given->prefix, "WHAT", "what lines begin with (default rank)",
	     .choices = prefixes, .given = &given->prefix_given},
		{"no-prefix", 0, OPTION_FLAG, &given->no_prefix, NULL, "the same as --prefix none"},
		{"output", 'o', OPTION_STRING, &given->output, "DIR",
	     "write what rank N prints to DIR/rank-N.out and rank-N.err"},
		{"grace", 0, OPTION_DOUBLE, &given->grace, "SECONDS",
	     "time to end after a rank has failed, or after a signal (default 5)"},
		{"lose", 0, OPTION_U64, &given->lose, "N", "so many ranks may fail, and the others go on (default 0)",
	     .max = RUN_RANKS_MAX},
		{"timeout", 0, OPTION_DOUBLE, &given->timeout, "SECONDS", "time for the whole job (default 0: no limit)"},
		{"json", 0, OPTION_FLAG, &given->json, NULL, "print how the job went as JSON; what ranks print goes to stderr"},
	};
	static_assert(sizeof(options) / sizeof(options[0]) == RUN_GIVEN_OPTIONS, "all of them");
	memcpy(out, options, sizeof(options));
}

static bool takes_next_word(const struct option_spec *options, const char *word)
{
	for (const struct option_spec *option = options; option->name; option++) {
		bool named = strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0;
		bool lettered = option->short_name && word[0] == '-' && word[1] == option->short_name && word[2] == '\0';
		if (option->kind != OPTION_FLAG && (named || lettered))
			return true;
	}
	return false;
}

/* The table of options keeps only the last --env, so all of them are collected here. */
static int parse_variables(const struct options_usage *usage, int argc, char **argv, struct run_env *env)
{
	static const char name[] = "--env=";
	struct error err;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool next = takes_next_word(usage->options, word) && i + 1 < argc;
		const char *variable = strncmp(word, name, strlen(name)) == 0 ? word + strlen(name) : NULL;
		if (next && strcmp(word, "--env") == 0)
			variable = argv[i + 1];
		enum esp_status status = variable ? launcher_env_add(env, variable, &err) : ESP_OK;
		if (status != ESP_OK)
			return launcher_given_status(usage->command, status, &err);
		i += next;
	}
	return RUN_GO_ON;
}

/* The index of "--": words behind it are the command's. */
static int find_command(int argc, char **argv)
{
	int at = 1;
	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	return at;
}

static int fail_command(const struct options_usage *usage, const char *word)
{
	return complain_usage("%s: the command stands behind --: espalier %s ... -- %s ...", usage->command, usage->command,
	                      word);
}

static bool is_option(const struct option_spec *options, const char *word)
{
	size_t length = strcspn(word, "=");
	for (const struct option_spec *option = options; option->name; option++) {
		bool named = strncmp(word, "--", 2) == 0 && strlen(option->name) == length - 2 &&
		             strncmp(word + 2, option->name, length - 2) == 0;
		if (named || (word[1] && word[1] == option->short_name))
			return true;
	}
	return false;
}

/*
 * A command that was not put behind "--", so that its options would be parsed as ours; NULL: none, as far as
 * can be seen.
 */
static const char *find_forgotten(const struct option_spec *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-')
			return argv[i];
		if (!is_option(options, argv[i]))
			return NULL;
		i += takes_next_word(options, argv[i]);
	}
	return NULL;
}

int launcher_given_parse(const struct options_usage *usage, int argc, char **argv, struct run_request *request)
{
	int command = find_command(argc, argv), before = command;
	request->command = argv + (command < argc ? command + 1 : argc); /* argv ends with NULL */
	const char *forgotten = command == argc ? find_forgotten(usage->options, argc, argv) : NULL;
	if (forgotten)
		return fail_command(usage, forgotten);
	int parsed = parse_variables(usage, before, argv, &request->env);
	if (parsed == RUN_GO_ON)
		parsed = options_parse(usage, &before, argv);
	if (parsed != RUN_GO_ON)
		return parsed;
	if (before > 1)
		return fail_command(usage, argv[1]);
	if (!request->command[0])
		return complain_usage("%s: no command: it stands behind --, as in espalier %s ... -- ./train", usage->command,
		                      usage->command);
	return RUN_GO_ON;
}

/* ---- from options to a request ---- */

static int parse_seconds(const char *command, const char *name, double seconds, uint64_t *out_ns)
{
	if (!(seconds >= 0 && seconds <= SECONDS_MAX))
		return complain_usage("%s: --%s is a number of seconds, not below 0", command, name);
	*out_ns = (uint64_t)(seconds * (double)NS_PER_S);
	return RUN_GO_ON;
}

static int settle_job(const struct run_given *given, struct run_request *request)
{
	const char *name = given->job ? given->job : conf_environment(NULL, "ESP_JOB");
	const char *command = request->command[0], *slash = strrchr(command, '/');
	if (name && strlen(name) >= sizeof(request->job))
		return complain_usage("%s: the name of the job has %zu bytes, at most %zu fit", given->command, strlen(name),
		                      sizeof(request->job) - 1);
	if (name && name[0])
		snprintf(request->job, sizeof(request->job), "%s", name);
	else
		snprintf(request->job, sizeof(request->job), "%.100s-%ld", slash ? slash + 1 : command, (long)getpid());
	return RUN_GO_ON;
}

static int settle_output(const struct run_given *given, struct run_request *request)
{
	struct stat facts;
	if (given->output && given->output[0] == '\0')
		return complain_usage("%s: --output: the name of the folder is empty", given->command);
	if (given->output && (given->prefix_given || given->no_prefix))
		return complain_usage("%s: --prefix means nothing with --output: files hold just what the ranks print",
		                      given->command);
	if (given->output && mkdir(given->output, 0777) != 0 && errno != EEXIST)
		return complain_usage("%s: cannot make the folder %s: %s", given->command, given->output, strerror(errno));
	if (given->cwd && !request->hosts.count && (stat(given->cwd, &facts) != 0 || !S_ISDIR(facts.st_mode)))
		return complain_usage("%s: --cwd: there is no folder %s", given->command, given->cwd);
	request->output = given->output;
	request->cwd = given->cwd;
	request->prefixed = given->prefix == RUN_PREFIX_RANK && !given->no_prefix;
	request->json = given->json;
	return RUN_GO_ON;
}

static void warn(void *command, const struct error *complaint)
{
	complain_note("%s: %s", (const char *)command, complaint->text);
}

/*
 * A variable has 128 KiB at most: a topology of a few thousand hosts. A larger one has to be a file on rank 0's
 * host.
 */
static enum esp_status send_topology(const char *path, struct run_env *env, struct error *err)
{
	struct infile file = {0};
	enum esp_status status = infile_open(&file, path, err);
	char *value = NULL;

	if (status == ESP_OK && file.length < TOPOLOGY_SENT_MOST && !memchr(file.text, '\0', file.length)) {
		if (asprintf(&value, "%s\n%.*s", path, (int)file.length, file.text) < 0) {
			value = NULL;
			status = error_set(err, ESP_ENOMEM, "no memory for the topology");
		} else {
			status = launcher_env_set(env, "ESP_TOPOLOGY_TEXT", value, err);
		}
		free(value);
	}
	if (file.text)
		infile_close(&file);
	return status;
}

/* Makes the path absolute, as rank 0 may start in another folder. Other hosts may not have the file, so it is sent. */
static enum esp_status add_topology(const char *name, const struct run_request *request, struct run_env *env,
                                    struct error *err)
{
	bool is_probe = strcmp(name, "probe") == 0;
	char *path = is_probe ? strdup(name) : realpath(name, NULL);

	if (!path)
		return error_set(err, ESP_EINVAL, "--topology: cannot read %s: %s", name, strerror(errno));
	enum esp_status status = launcher_env_set(env, "ESP_TOPOLOGY", path, err);
	if (status == ESP_OK && !is_probe && request->hosts.count)
		status = send_topology(path, env, err);
	free(path);
	return status;
}

/*
 * PyTorch's store gets a port beside the leader's, so that scripts for torchrun find it. A MASTER_ADDR or
 * MASTER_PORT that the caller has set stays.
 */
static enum esp_status add_master(struct run_request *request, struct error *err)
{
	char host[RUN_LEADER_TEXT], port[16];
	const char *leaders = strrchr(request->leader, ':');
	uint16_t number;
	enum esp_status status = ESP_OK;

	/* Local ranks inherit the environment; but the values that an outer espalier run has set are of its job. */
	bool is_in_environment = conf_environment(NULL, "MASTER_ADDR") || conf_environment(NULL, "MASTER_PORT");
	bool is_inherited = is_in_environment && !request->hosts.count && !conf_environment(NULL, "ESP_LEADER");
	if (is_inherited || launcher_env_has(&request->env, "MASTER_ADDR") ||
	    launcher_env_has(&request->env, "MASTER_PORT"))
		return ESP_OK;
	do
		number = launcher_group_high_port();
	while (leaders && strtoul(leaders + 1, NULL, 10) == number);
	if (request->held_port >= 0)
		status = launcher_group_local_port(0, &number, &request->held_master, err);
	if (status != ESP_OK)
		return status;
	snprintf(host, sizeof(host), "%s", request->leader[0] == '[' ? request->leader + 1 : request->leader);
	char *end = strrchr(host, ':');
	if (end)
		end[end > host && end[-1] == ']' ? -1 : 0] = '\0';
	snprintf(port, sizeof(port), "%u", number);
	status = launcher_env_set(&request->env, "MASTER_ADDR", host, err);
	return status == ESP_OK ? launcher_env_set(&request->env, "MASTER_PORT", port, err) : status;
}

static int settle_environment(const struct run_given *given, struct run_request *request)
{
	char key[RUN_KEY_TEXT], size[16];
	struct error err;
	struct run_env asked = request->env; /* --env counts more than the environment */
	request->env = (struct run_env){0};
	if (request->hosts.count) /* local ranks check it themselves; ranks on other hosts do not get it */
		conf_check_environment(warn, (void *)(uintptr_t)given->command);
	enum esp_status status = request->hosts.count ? launcher_env_add_settings(&request->env, &err) : ESP_OK;
	for (size_t i = 0; i < asked.count && status == ESP_OK; i++)
		status = launcher_env_add(&request->env, asked.words[i], &err);
	launcher_env_fini(&asked);
	if (status == ESP_OK && given->topology)
		status = add_topology(given->topology, request, &request->env, &err);
	snprintf(size, sizeof(size), "%u", request->size);
	if (status == ESP_OK)
		status = launcher_env_set(&request->env, "ESP_SIZE", size, &err);
	if (status == ESP_OK)
		status = launcher_env_set(&request->env, "WORLD_SIZE", size, &err);
	if (status == ESP_OK)
		status = add_master(request, &err);
	if (status == ESP_OK)
		status = launcher_env_set(&request->env, "ESP_LEADER", request->leader, &err);
	if (status == ESP_OK)
		status = launcher_env_set(&request->env, "ESP_JOB", request->job, &err);
	if (status == ESP_OK)
		status = launcher_group_key(key, &err);
	if (status == ESP_OK)
		status = launcher_env_set(&request->env, "ESP_KEY", key, &err);
	explicit_bzero(key, sizeof(key));
	return status == ESP_OK ? RUN_GO_ON : launcher_given_status(given->command, status, &err);
}

int launcher_given_understand(const struct run_given *given, struct run_request *request)
{
	request->lose = (uint32_t)given->lose;
	if (request->lose > 0 && request->lose >= request->size)
		return complain_usage("%s: --lose %u of %u rank%s leaves no rank that could go on", given->command,
		                      request->lose, request->size, plural(request->size));
	int status = parse_seconds(given->command, "grace", given->grace, &request->grace_ns);
	if (status == RUN_GO_ON)
		status = parse_seconds(given->command, "timeout", given->timeout, &request->limit_ns);
	if (status == RUN_GO_ON)
		status = settle_job(given, request);
	if (status == RUN_GO_ON)
		status = settle_output(given, request);
	return status == RUN_GO_ON ? settle_environment(given, request) : status;
}

void launcher_given_forget(struct run_request *request)
{
	launcher_hosts_fini(&request->hosts);
	launcher_env_fini(&request->env);
	launcher_shell_words_free(request->rsh, request->rsh_host);
	free(request->here);
	if (request->held_port >= 0)
		close(request->held_port);
	if (request->held_master >= 0)
		close(request->held_master);
}

/* ---- running ---- */

/*
 * A rank that is not scheduled for long is taken for stopped, which ends jobs only because the machine is
 * overloaded.
 */
static void warn_of_crowd(const struct run_given *given, const struct run_request *request)
{
	uint32_t cores = cores_allowed();
	bool is_crowd = !request->hosts.count && request->size > (uint64_t)cores * CROWD_PER_CORE;
	if (is_crowd && !conf_environment(NULL, "ESP_LIVENESS_MS") && !launcher_env_has(&request->env, "ESP_LIVENESS_MS"))
		complain_note(
			"%s: %u ranks on %u core%s: it takes long, and ranks that get no turn for 10 s are given up by the "
			"others; ESP_LIVENESS_MS=60000 gives them a minute",
			given->command, request->size, cores, plural(cores));
}

int launcher_given_run(const struct run_given *given, struct run_request *request)
{
	struct run_job job;
	struct error err;
	request->said_by = given->command;
	warn_of_crowd(given, request);
	enum esp_status status = launcher_job_open(&job, request, &err);
	if (status != ESP_OK)
		return complain("%s: %s", given->command, err.text);
	launcher_job_run(&job);
	if (request->watch)
		request->watch->on_over(request->watch->context, &job);
	else
		launcher_report_summary(&job);
	int exit_status = launcher_report_exit_status(&job);
	if (request->json && launcher_report_json(&job) != ESP_OK && exit_status == EXIT_OK)
		exit_status = complain("%s: cannot write to the standard output", given->command);
	launcher_job_close(&job);
	return exit_status;
}
