/*
 * probe.c - espalier probe: how are the hosts connected?
 *
 * Under a launcher it joins the job, and the ranks probe the network between them; rank 0 prints. By itself it starts
 * the ranks through `espalier run`, or groups what was measured before.
 */
#include "tools/probe/probe_outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/probing.h"
#include "base/conf.h"
#include "base/infile.h"
#include "base/outfile.h"
#include "cli/cli.h"
#include "cli/probe_start.h"
#include "espalier/espalier.h"
#include "network/discover/quality.h"
#include "rank/join/launch.h"
#include "tools/probe/probe_home.h"

#define BAR 30u

/* ---- progress ---- */

struct progress {
	int terminal; /* -1: none */
	bool goes_home; /* the command that has started the ranks draws it */
	char line[80];
};

/* The word for ranks that this command has started: "yes", "bar"; NULL: another has. */
static const char *home(void)
{
	return conf_environment(NULL, PROBE_HOME_VARIABLE);
}

static void show_progress(void *context, const char *what, uint32_t done, uint32_t all)
{
	struct progress *progress = context;
	char line[sizeof(progress->line)], bar[BAR + 1];
	uint32_t filled = (uint32_t)((uint64_t)done * BAR / (all ? all : 1));

	if (progress->terminal < 0 && !progress->goes_home)
		return;
	memset(bar, '.', BAR);
	memset(bar, '#', filled < BAR ? filled : BAR);
	bar[BAR] = '\0';
	snprintf(line, sizeof(line), "[%s] %3u %%  %s", bar, done * 100 / (all ? all : 1), what);
	if (strcmp(line, progress->line) == 0)
		return;
	memcpy(progress->line, line, sizeof(line));
	if (progress->goes_home)
		probe_tool_home_send_progress(line, stdout);
	else
		dprintf(progress->terminal, "\r\033[K%s", line);
}

static void end_progress(const struct progress *progress)
{
	if (progress->goes_home && progress->line[0])
		probe_tool_home_send_progress("", stdout);
	else if (progress->terminal >= 0 && progress->line[0])
		dprintf(progress->terminal, "\r\033[K");
}

/* ---- what follows from a survey ---- */

static enum esp_status compare(struct probe_outcome *outcome, const char *text, size_t length, struct error *err)
{
	const struct survey *survey = &outcome->found.survey;
	struct probe_truth *truth = &outcome->truth;

	enum esp_status status = racks_read(text, length, outcome->options->rack_label, (const char *const *)survey->names,
	                                    survey->count, &truth->racks, err);
	if (status == ESP_OK)
		status = racks_grouping(&truth->racks, &truth->grouping, err);
	if (status != ESP_OK)
		return status;
	truth->known = true;
	truth->ami = discover_quality_ami(&outcome->verdict.grouping, &truth->grouping);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		truth->paia[k] =
			survey->matrices[k].size ? discover_quality_paia(&survey->matrices[k], &truth->racks, NULL) : NAN;
	return ESP_OK;
}

enum esp_status probe_compare(struct probe_outcome *outcome, struct error *err)
{
	struct infile file;
	struct error reason = {0};

	if (!outcome->options->racks)
		return ESP_OK;
	enum esp_status status = infile_open(&file, outcome->options->racks, err);
	if (status != ESP_OK)
		return status;
	status = compare(outcome, file.text, file.length, &reason);
	infile_close(&file);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "%s: %.200s", outcome->options->racks, reason.text);
}

/* Tries to make a topology: that shows which rates are missing. */
static void try_topology(struct probe_outcome *outcome)
{
	struct topology *topology;
	struct error err = {0};

	outcome->has_rates = probe_topology(&outcome->found, &topology, &err) == ESP_OK;
	if (outcome->has_rates) {
		probe_tool_find_plan(topology, outcome->plan, sizeof(outcome->plan));
		topology_close(topology);
	}
	snprintf(outcome->rates_missing, sizeof(outcome->rates_missing), "%s", outcome->has_rates ? "" : err.text);
}

/* ---- files ---- */

typedef enum esp_status write_fn(const struct probe_outcome *outcome, FILE *file, struct error *err);

static enum esp_status write_topology(const struct probe_outcome *outcome, FILE *file, struct error *err)
{
	char sure[PROBE_SENTENCE], how[PROBE_SENTENCE];
	const char *const comments[] = {how, sure, NULL};

	probe_tool_say_sure(outcome, sure);
	if (outcome->stored)
		snprintf(how, sizeof(how), "made by espalier probe from a stored measurement: rates are estimates");
	else
		snprintf(how, sizeof(how), "made by espalier probe in %.1f s; rates are what TCP carried",
		         outcome->found.seconds);
	return probe_found_print_topology(&outcome->found, comments, file, err);
}

static enum esp_status write_survey(const struct probe_outcome *outcome, FILE *file, struct error *err)
{
	return survey_print(&outcome->found.survey, file, err);
}

/* To the command that has started the ranks, which knows where it belongs. */
static int send_file(const struct probe_outcome *outcome, enum home_file which, const char *path, write_fn *write)
{
	struct error err = {0};
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	if (!file)
		return complain("probe: %s: %s", path, esp_status_text(ESP_ENOMEM));
	enum esp_status status = write(outcome, file, &err);
	if (fclose(file) != 0 && status == ESP_OK)
		status = error_set(&err, ESP_ENOMEM, "%s", esp_status_text(ESP_ENOMEM));
	if (status == ESP_OK)
		probe_tool_home_send(which, text, length, stdout);
	free(text);
	return status == ESP_OK ? EXIT_OK : complain("probe: %s: %s", path, err.text);
}

static int write_file(const struct probe_outcome *outcome, enum home_file which, const char *path, write_fn *write)
{
	struct outfile file;
	struct error err = {0};

	if (!path)
		return EXIT_OK;
	if (home())
		return send_file(outcome, which, path, write);
	if (outfile_open(&file, path, &err) != ESP_OK)
		return complain("probe: %s", err.text);
	if (write(outcome, file.file, &err) != ESP_OK) {
		outfile_abandon(&file);
		return complain("probe: %s: %s", path, err.text);
	}
	return outfile_commit(&file, &err) == ESP_OK ? EXIT_OK : complain("probe: %s", err.text);
}

/* Each file that can be written is, whatever happens to the others. */
static int show(struct probe_outcome *outcome)
{
	const struct probe_options *options = outcome->options;
	char text[PROBE_SENTENCE];
	struct error err = {0};

	for (uint32_t i = 0; i < outcome->found.lost_count; i++)
		if (outcome->found.lost[i].fate != PROBE_NOT_STARTED) /* the command that tried to start it has said why not */
			complain_note("probe: %s", probe_tool_say_lost(outcome, i, text));
	int saved = write_file(outcome, HOME_MATRIX, options->save_matrix, write_survey);
	int out = write_file(outcome, HOME_TOPOLOGY, options->out, write_topology);
	int html = write_file(outcome, HOME_REPORT, options->html, probe_tool_print_html);
	outcome->has_out = options->out && out == EXIT_OK;
	outcome->has_html = options->html && html == EXIT_OK;
	enum esp_status printed =
		options->json ? probe_tool_print_json(outcome, stdout) : probe_tool_print(outcome, stdout, &err);
	if (printed != ESP_OK)
		return complain("probe: cannot write to the standard output");
	return saved != EXIT_OK ? saved : out != EXIT_OK ? out : html;
}

static void outcome_fini(struct probe_outcome *outcome)
{
	probe_found_fini(&outcome->found);
	discover_verdict_fini(&outcome->verdict);
	racks_fini(&outcome->truth.racks);
	grouping_fini(&outcome->truth.grouping);
}

/* Hosts that were not even started are named like ranks that were lost. */
static enum esp_status add_absent(struct found *found, const char *list, struct error *err)
{
	for (const char *at = list; at && *at;) {
		size_t length = strcspn(at, ",");
		struct found_lost *lost = realloc(found->lost, ((size_t)found->lost_count + 1) * sizeof(*lost));

		if (!lost)
			return error_set(err, ESP_ENOMEM, "%s", esp_status_text(ESP_ENOMEM));
		found->lost = lost;
		lost += found->lost_count++;
		lost->fate = PROBE_NOT_STARTED;
		snprintf(lost->name, sizeof(lost->name), "%.*s", (int)length, at);
		at += length + (at[length] == ',');
	}
	return ESP_OK;
}

/* found and verdict are there. The result is shown, and written, also where the rack map does not fit it. */
static int conclude(struct probe_outcome *outcome)
{
	struct error err = {0};

	try_topology(outcome);
	if (add_absent(&outcome->found, outcome->options->absent, &err) != ESP_OK)
		return complain("probe: %s", err.text);
	int compared = probe_compare(outcome, &err) == ESP_OK ? EXIT_OK : complain("probe: %s", err.text);
	int shown = show(outcome);
	return shown != EXIT_OK ? shown : compared;
}

/* ---- as a rank of a job ---- */

/*
 * Probing takes a while: what will be in the way of its files is said before, and may be mended meanwhile. A FIFO would
 * wait for its reader.
 */
static bool warn_of_file(const char *path, const char *then)
{
	struct outfile file;
	struct error err = {0};
	struct stat there;

	if (!path || (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)))
		return false;
	if (outfile_open(&file, path, &err) != ESP_OK) {
		complain_note("probe: %s%s", err.text, then);
		return true;
	}
	outfile_abandon(&file);
	return false;
}

static bool warn_of_outputs(const struct probe_options *options, const char *then)
{
	bool save = warn_of_file(options->save_matrix, then), out = warn_of_file(options->out, then),
	     html = warn_of_file(options->html, then);

	return save || out || html;
}

static void warn_of_files(const struct probe_options *options)
{
	if (!home())
		(void)warn_of_outputs(options, "; probing goes on");
	if (options->racks && access(options->racks, R_OK) != 0)
		complain_note("probe: cannot read %s: %s; probing goes on", options->racks, strerror(errno));
}

/* Input and output of the callback that groups. */
struct grouper {
	const struct probe_options *options;
	struct verdict verdict;
};

static enum esp_status group(void *context, const struct survey *survey, struct grouping *out, struct error *err)
{
	struct grouper *grouper = context;
	const struct verdict_wish wish = {(uint32_t)grouper->options->groups, grouper->options->seed,
	                                  grouper->options->elasticity};

	discover_verdict_fini(&grouper->verdict);
	enum esp_status status = discover_verdict_make(survey, &wish, &grouper->verdict, err);
	return status == ESP_OK ? grouping_from(out, grouper->verdict.grouping.group_of, survey->count, err) : status;
}

static int fail_rank(uint32_t rank, const char *text)
{
	return rank == 0 ? complain("probe: %s", text) : EXIT_NO;
}

/*
 * The rank that tells may not have grouped, if the one that did has died since: the survey is the same, and so are the
 * groups.
 */
static enum esp_status take_verdict(struct grouper *grouper, const struct found *found, struct verdict *out,
                                    struct error *err)
{
	struct grouping again = {0};
	enum esp_status status = ESP_OK;

	if (grouper->verdict.grouping.count == 0)
		status = group(grouper, &found->survey, &again, err);
	grouping_fini(&again);
	*out = grouper->verdict;
	return status;
}

/* Rank 0 prints; if it has died, the first of the remaining ranks. */
static int probe_job(struct esp_context *context, const struct probe_options *options)
{
	uint32_t rank = esp_rank(esp_world(context));
	struct grouper grouper = {.options = options};
	const char *told = home();
	struct progress progress = {.terminal = rank == 0 && !told && isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1,
	                            .goes_home = rank == 0 && told && strcmp(told, "bar") == 0};
	struct probe_outcome outcome = {.options = options};
	const struct probing_options how = {
		.latency = options->latency,
		.bandwidth = options->bandwidth,
		.each_rank = options->each_rank,
		.seconds = options->seconds,
		.streams = (uint32_t)options->streams,
		.seed = options->seed,
		.group = group,
		.group_context = &grouper,
		.progress = show_progress,
		.progress_context = &progress,
	};
	struct error err = {0};
	int exit_status = EXIT_OK;

	if (rank == 0)
		warn_of_files(options);
	bool tells = false;
	enum esp_status status = probing_run(context, &how, &outcome.found, &tells, &err);
	end_progress(&progress);
	if (status == ESP_OK && tells)
		status = take_verdict(&grouper, &outcome.found, &outcome.verdict, &err);
	else
		discover_verdict_fini(&grouper.verdict);
	if (status != ESP_OK)
		exit_status = fail_rank(rank, err.text);
	else if (tells)
		exit_status = conclude(&outcome);
	if (tells && told)
		probe_tool_home_send_end(exit_status == EXIT_OK, stdout);
	outcome_fini(&outcome);
	return exit_status;
}

/* The rank that this process was told to be; -1: it was not. */
static int64_t own_rank(void)
{
	const struct launch_surroundings around = {conf_environment, NULL, launch_system_fact, NULL, NULL};
	struct launch launch;
	struct error err;

	return launch_find(&LAUNCH_NO_ARGUMENTS, &around, &launch, &err) == ESP_OK ? (int64_t)launch.rank : -1;
}

/* It was there, and others were not: that is said by rank 0 alone, which is not one of those. */
static int not_joined(const struct probe_options *options, const struct esp_error *err)
{
	int64_t rank = own_rank();
	bool is_late = err->status == ESP_ETIMEOUT || err->status == ESP_EPEER;
	bool is_lonely = is_late && rank >= 0 && err->rank != rank && (rank == 0 || err->rank != 0);

	if (!is_lonely || rank == 0)
		complain_note("probe: %s", err->text);
	return is_lonely && options->absent ? PROBE_EXIT_LONELY : EXIT_NO;
}

static int take_part(const struct probe_options *options)
{
	struct esp_options how = ESP_OPTIONS_INIT;
	struct esp_error err = ESP_ERROR_INIT;
	struct esp_context *context;

	if (esp_init(&how, &context) != ESP_OK) {
		(void)esp_last_error(&err);
		return not_joined(options, &err);
	}
	int exit_status = probe_job(context, options);
	(void)esp_fini(context);
	return exit_status == EXIT_NO && options->absent ? PROBE_EXIT_FAILED : exit_status;
}

/* ---- what was measured before ---- */

static int group_stored(const struct probe_options *options)
{
	struct probe_outcome outcome = {.options = options, .stored = true};
	const struct verdict_wish wish = {(uint32_t)options->groups, options->seed, options->elasticity};
	struct infile file;
	struct error err = {0};

	if (infile_open(&file, options->matrix, &err) != ESP_OK)
		return complain_usage("probe: %s", err.text);
	enum esp_status status = survey_parse(file.text, file.length, &outcome.found.survey, &err);
	infile_close(&file);
	if (status != ESP_OK)
		return complain("probe: %s: %s", options->matrix, err.text);
	if (outcome.found.survey.count < 2)
		status = error_set(&err, ESP_EINVAL, "%.100s: a measurement of one host says nothing", options->matrix);
	for (uint32_t k = 0; k < SURVEY_KINDS && status == ESP_OK; k++)
		if (!(k == SURVEY_LATENCY ? options->latency : options->bandwidth))
			matrix_fini(&outcome.found.survey.matrices[k]);
	if (status == ESP_OK && outcome.found.survey.uneven > 0)
		complain_note(
			"probe: %s: the two directions of %" PRIu64 " pairs differ by more than a tenth; their mean is taken",
			options->matrix, outcome.found.survey.uneven);
	if (status == ESP_OK)
		status = discover_verdict_make(&outcome.found.survey, &wish, &outcome.verdict, &err);
	if (status == ESP_OK)
		status =
			grouping_from(&outcome.found.grouping, outcome.verdict.grouping.group_of, outcome.found.survey.count, &err);
	if (status == ESP_OK)
		status = probe_found_rates_init(&outcome.found, &err);
	if (status == ESP_OK)
		probe_found_estimate_rates(&outcome.found);
	int exit_status = status == ESP_OK ? conclude(&outcome) : complain("probe: %s", err.text);
	outcome_fini(&outcome);
	return exit_status;
}

static int run_typed(const struct probe_options *options, int argc, char **argv)
{
	if (options->matrix)
		return group_stored(options);
	if (launch_is_told(conf_environment, NULL))
		return take_part(options);
	if (options->hosts || options->hostfile || options->ranks) {
		if (warn_of_outputs(options, ""))
			return EXIT_NO;
		return probe_start(options, argc, argv);
	}
	return complain_usage(
		"probe: which hosts? --hosts a,b,c, or start it as a job: espalier run --hosts a,b,c -- espalier probe");
}

static int run(int argc, char **argv)
{
	struct probe_options options;
	char **typed = calloc((size_t)argc + 1, sizeof(*argv)); /* parsing changes the order */

	if (!typed)
		return complain("probe: %s", esp_status_text(ESP_ENOMEM));
	memcpy(typed, argv, (size_t)argc * sizeof(*argv));
	int exit_status = probe_tool_options_parse(&options, argc, argv);
	if (exit_status < 0)
		exit_status = run_typed(&options, argc, typed);
	free(typed);
	return exit_status;
}

const struct cli_command cli_probe = {"probe", "finds out how hosts are connected", run};
