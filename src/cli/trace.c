/*
 * trace.c - espalier trace: what is done with the ranks' traces.
 */
#include <stdio.h>

#include "base/outfile.h"
#include "base/status.h"
#include "cli/cli.h"
#include "cli/family.h"
#include "report/options.h"
#include "tools/diagnose/trace_merge.h"

static int merge(int argc, char **argv)
{
	const char *path = NULL;
	const struct option_spec options[] = {
		{"output", 'o', OPTION_STRING, &path, "FILE", "where to write it (default: the standard output)"},
		{0},
	};
	const struct options_usage usage = {
		"trace merge",
		"FILE...",
		"Makes one trace of those of all ranks (the setting trace), for Perfetto or chrome://tracing. The clocks\n"
		"of different hosts are brought together by the calls in which all ranks meet; what is left of their\n"
		"difference is said. Arrows go from the rank that came last to ranks that waited for it. Files that a\n"
		"rank that was killed has left (.part) are fine.",
		options,
		1,
		-1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	struct trace_merge merge = {0};
	struct error err = {0};
	struct outfile out;
	enum esp_status status = ESP_OK;
	for (int i = 1; i < argc && status == ESP_OK; i++)
		status = diagnose_trace_merge_add(&merge, argv[i], &err);
	if (status == ESP_OK)
		status = diagnose_trace_merge_align(&merge, &err);
	if (status == ESP_OK && path) {
		status = outfile_open(&out, path, &err);
		if (status == ESP_OK) {
			status = diagnose_trace_merge_write(&merge, out.file, &err);
			if (status == ESP_OK)
				status = outfile_commit(&out, &err);
			else
				outfile_abandon(&out);
		}
	} else if (status == ESP_OK) {
		status = diagnose_trace_merge_write(&merge, stdout, &err);
	}
	if (status == ESP_OK)
		diagnose_trace_merge_tell(&merge);
	diagnose_trace_merge_fini(&merge);
	return status == ESP_OK ? EXIT_OK : complain("trace: %s", err.text[0] ? err.text : status_text(status));
}

static const struct cli_command trace_merge = {"merge", "makes one trace of those of all ranks", merge, 0};
static const struct cli_command *const commands[] = {&trace_merge};

static const struct cli_family family = {
	.name = "trace",
	.about = "What is done with the traces that ranks write (the setting trace).\n",
	.more = "examples:\n"
	        "  ESP_TRACE=/tmp/t-%r.json espalier run -n 4 -- build/examples/hello\n"
	        "  espalier trace merge /tmp/t-*.json -o all.json\n\n"
	        "exit status: 0 done; 1 it failed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

static int run(int argc, char **argv)
{
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_trace = {"trace", "makes one trace of those of all ranks", run, 1};
