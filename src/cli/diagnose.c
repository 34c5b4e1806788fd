/*
 * diagnose.c - espalier diagnose: puts together the accounts that ranks wrote when a call failed, and names the rank to
 * blame.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/cli.h"
#include "report/options.h"
#include "tools/diagnose/account_read.h"
#include "tools/diagnose/accounts.h"

struct collector {
	struct accounts accounts;
	unsigned files, refused;
};

static enum esp_status read_whole(const char *path, char **out, size_t *out_size, struct error *err)
{
	struct stat file;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size > ACCOUNT_BYTES_MOST) {
		const char *why = fd < 0 ? strerror(errno) : "it is no account: not a file, or too long";
		if (fd >= 0)
			close(fd);
		return error_set(err, ESP_EIO, "%s", why);
	}
	size_t size = (size_t)file.st_size, used = 0;
	char *text = malloc(size + 1);
	ssize_t got = text ? 1 : -1;
	while (used < size && got > 0) {
		got = read(fd, text + used, size - used);
		used += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (got < 0) {
		free(text);
		return error_set(err, ESP_EIO, "%s", strerror(errno));
	}
	*out = text;
	*out_size = used;
	return ESP_OK;
}

static void read_file(struct collector *collector, const char *path)
{
	struct account account;
	struct error err = {0};
	char *text = NULL;
	size_t size = 0;
	enum esp_status status = read_whole(path, &text, &size, &err);
	if (status == ESP_OK)
		status = diagnose_account_read(text, size, &account, &err);
	if (status == ESP_OK)
		status = diagnose_accounts_add(&collector->accounts, &account);
	free(text);
	collector->files++;
	if (status == ESP_OK)
		return;
	collector->refused++;
	complain_note("diagnose: %s: %s", path, err.text);
}

static bool looks_like_account(const char *name)
{
	size_t length = strlen(name);
	return length > 5 && strncmp(name, "espalier-", 9) == 0 && strcmp(name + length - 5, ".json") == 0;
}

static int read_argument(struct collector *collector, const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	if (!folder) {
		if (errno != ENOTDIR)
			return complain_usage("diagnose: %s: %s", path, strerror(errno));
		read_file(collector, path);
		return EXIT_OK;
	}
	while ((entry = readdir(folder))) {
		char *name = NULL;
		if (looks_like_account(entry->d_name) && asprintf(&name, "%s/%s", path, entry->d_name) >= 0) {
			read_file(collector, name);
			free(name);
		}
	}
	closedir(folder);
	return EXIT_OK;
}

/* The run that is asked for, else the one that was written last. */
static bool choose(const struct accounts *accounts, const char *run, struct accounts_job *out, size_t *out_others)
{
	struct accounts_job job;
	bool found = false;
	size_t at = 0;
	*out_others = 0;
	while (diagnose_accounts_next(accounts, &at, &job)) {
		char instance[20];
		snprintf(instance, sizeof instance, "%016" PRIx64, job.list->instance);
		bool fits = run ? strncmp(instance, run, strlen(run)) == 0 : !found || job.latest_ns > out->latest_ns;
		if (found || !fits)
			++*out_others;
		if (fits)
			*out = job;
		found |= fits;
	}
	return found;
}

static void say_missing(const struct accounts_job *job)
{
	uint32_t size = job->list->size, missing = size - job->count;
	if (missing > 0)
		printf("%u of %u ranks left no account.\n", missing, size);
}

static int print(const struct accounts_job *job, bool as_json)
{
	struct verdict verdict = diagnose_verdict_find(job->list, job->count, false);
	enum esp_status status;
	if (as_json) {
		struct json json;
		json_init(&json, stdout);
		diagnose_accounts_print_json(job, &verdict, NULL, 0, &json);
		status = json_fini(&json);
	} else {
		char title[ACCOUNTS_TITLE];
		printf("%s\n\n%s\n", verdict.text, diagnose_accounts_title(job, title));
		status = diagnose_accounts_print(job, NULL, 0);
		say_missing(job);
	}
	return status == ESP_OK ? EXIT_OK : complain("diagnose: %s", status_text(status));
}

static int run(int argc, char **argv)
{
	bool json = false;
	const char *instance = NULL;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{"run", 0, OPTION_STRING, &instance, "ID",
	     "the run of a job, by the first letters of its number (default: the last one)"},
		{0},
	};
	const struct options_usage usage = {
		"diagnose",
		"FOLDER|FILE...",
		"Puts together what the ranks of a job wrote down when a call failed (the setting dump_dir, or\n"
		"ESP_DUMP_DIR), and says in one sentence which rank held it up: one that died, left, made another call,\n"
		"had not made the call, or was waited for. Files of several hosts are copied into one folder first.",
		options,
		1,
		-1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	struct collector collector = {0};
	struct accounts_job job;
	size_t others = 0;
	int status = EXIT_OK;
	for (int i = 1; i < argc && status == EXIT_OK; i++)
		status = read_argument(&collector, argv[i]);
	diagnose_accounts_sort(&collector.accounts);
	if (status == EXIT_OK && !choose(&collector.accounts, instance, &job, &others)) {
		if (instance && collector.accounts.count > 0)
			status = complain("diagnose: there is no account of a run that begins with '%s'", instance);
		else
			status = complain(
				"diagnose: there is no account; ranks write them when a call fails and ESP_DUMP_DIR names a folder");
	} else if (status == EXIT_OK) {
		if (others > 0 && !instance)
			complain_note("diagnose: there are accounts of %zu other run%s; --run ID chooses one", others,
			              plural(others));
		status = print(&job, json);
	}
	diagnose_accounts_fini(&collector.accounts);
	return status;
}

const struct cli_command cli_diagnose = {"diagnose", "finds out from the ranks' accounts why a call failed", run};
