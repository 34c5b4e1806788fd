/*
 * report_json.c - the report as one JSON object. Numbers are written with all their digits, so that two runs can
 * be compared bit for bit.
 */
#include <inttypes.h>
#include <math.h>

#include "report.h"

/* JSON has no NaN. */
static void number(FILE *out, const char *key, double value, const char *behind)
{
	if (isfinite(value))
		fprintf(out, "\"%s\": %.17g%s", key, value, behind);
	else
		fprintf(out, "\"%s\": null%s", key, behind);
}

/* Names come from the command line. */
static void string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void epochs(const struct report *report, const struct plan_result *plan, FILE *out)
{
	fputs("      \"epochs\": [\n", out);
	for (uint64_t e = 0; e < report->epochs; e++) {
		const struct epoch_result *epoch = &plan->epochs[e];
		fprintf(out, "        {\"epoch\": %" PRIu64 ", ", e + 1);
		number(out, "loss", epoch->loss, ", ");
		number(out, "accuracy", epoch->accuracy, ", ");
		number(out, "test_loss", epoch->test_loss, ", ");
		number(out, "test_accuracy", epoch->test_accuracy, "");
		fputs(e + 1 < report->epochs ? "},\n" : "}\n", out);
	}
	fputs("      ],\n", out);
}

static void seconds(const struct plan_seconds *seconds, FILE *out)
{
	fputs("      \"seconds\": {", out);
	number(out, "total", seconds->total, ", ");
	number(out, "compute", seconds->total - seconds->waiting, ", ");
	number(out, "waiting", seconds->waiting, ", ");
	number(out, "in_flight", seconds->in_flight, ", ");
	number(out, "cpu", seconds->cpu, ", ");
	number(out, "communication_cpu", seconds->communication_cpu, "");
	fputs("},\n", out);
}

static void hashes(const struct report *report, const struct plan_result *plan, FILE *out)
{
	fputs("      \"hashes\": [", out);
	for (uint32_t r = 0; r < report->ranks; r++)
		fprintf(out, "%s\"%016" PRIx64 "\"", r == 0 ? "" : ", ", plan->hashes[r]);
	fprintf(out, "],\n      \"identical\": %s\n", report_plan_agrees(report, plan) ? "true" : "false");
}

static void plan(const struct report *report, const struct plan_result *plan, FILE *out)
{
	const struct plan_bytes *bytes = &plan->bytes;
	fputs("    {\n      \"plan\": ", out);
	string(out, plan->plan);
	fputs(",\n      \"planner\": ", out);
	string(out, plan->planner);
	fputs(",\n", out);
	epochs(report, plan, out);
	seconds(&plan->seconds, out);
	fprintf(out,
	        "      \"bytes\": {\"sent\": %" PRIu64 ", \"shared\": %" PRIu64 ", \"network\": %" PRIu64
	        ", \"messages\": %" PRIu64 ", \"busiest\": %" PRIu64 "},\n",
	        bytes->sent, bytes->shared, bytes->network, bytes->messages, bytes->busiest);
	hashes(report, plan, out);
	fputs("    }", out);
}

void report_json(const struct report *report, FILE *out)
{
	fputs("{\n  \"version\": ", out);
	string(out, report->version);
	fprintf(out,
	        ",\n  \"ranks\": %u,\n  \"seed\": %" PRIu64 ",\n  \"samples\": %" PRIu64 ",\n  \"test_samples\": %" PRIu64
	        ",\n  \"batch\": %" PRIu64 ",\n  \"steps\": %" PRIu64 ",\n  \"parameters\": %" PRIu64
	        ",\n  \"layers\": %u,\n  ",
	        (unsigned)report->ranks, report->seed, report->samples, report->test_samples, report->batch, report->steps,
	        report->parameters, (unsigned)report->layers);
	number(out, "seconds", report->seconds, ",\n  \"plans\": [\n");
	for (uint32_t p = 0; p < report->plan_count; p++) {
		plan(report, &report->plans[p], out);
		fputs(p + 1 < report->plan_count ? ",\n" : "\n", out);
	}
	fprintf(out, "  ],\n  \"identical\": %s\n}\n", report_agrees(report) ? "true" : "false");
}
