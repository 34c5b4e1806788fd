#include "report.h"

#include <inttypes.h>

/* A majority outvotes all others together, so it is what is left when everybody strikes out one of another opinion. */
uint64_t report_common_hash(const struct report *report, const struct plan_result *plan)
{
	uint64_t hash = 0;
	uint32_t votes = 0;
	for (uint32_t r = 0; r < report->ranks; r++) {
		if (votes == 0)
			hash = plan->hashes[r];
		votes = hash == plan->hashes[r] ? votes + 1 : votes - 1;
	}
	return hash;
}

bool report_plan_agrees(const struct report *report, const struct plan_result *plan)
{
	for (uint32_t r = 1; r < report->ranks; r++)
		if (plan->hashes[r] != plan->hashes[0])
			return false;
	return true;
}

bool report_agrees(const struct report *report)
{
	for (uint32_t p = 0; p < report->plan_count; p++)
		if (!report_plan_agrees(report, &report->plans[p]))
			return false;
	return true;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

#define COLUMN 17 /* the longest planner's name is halving-doubling */

static void header(const struct report *report, const char *title, const char *left, FILE *out)
{
	fprintf(out, "\n%s\n%5s", title, left);
	for (uint32_t p = 0; p < report->plan_count; p++)
		fprintf(out, "  %*s", COLUMN, report->plans[p].plan);
	fputc('\n', out);
}

static void loss_table(const struct report *report, FILE *out)
{
	header(report, "Loss on the training set", "epoch", out);
	for (uint64_t e = 0; e < report->epochs; e++) {
		fprintf(out, "%5" PRIu64, e + 1);
		for (uint32_t p = 0; p < report->plan_count; p++)
			fprintf(out, "  %*.8f", COLUMN, report->plans[p].epochs[e].loss);
		fputc('\n', out);
	}
}

static void accuracy_table(const struct report *report, FILE *out)
{
	header(report, "Accuracy in per cent: training set, test set", "epoch", out);
	for (uint64_t e = 0; e < report->epochs; e++) {
		fprintf(out, "%5" PRIu64, e + 1);
		for (uint32_t p = 0; p < report->plan_count; p++) {
			const struct epoch_result *epoch = &report->plans[p].epochs[e];
			fprintf(out, "  %*.2f  %6.2f", COLUMN - 8, 100 * epoch->accuracy, 100 * epoch->test_accuracy);
		}
		fputc('\n', out);
	}
}

static void time_table(const struct report *report, FILE *out)
{
	fprintf(out,
	        "\nSeconds of the training steps, mean of the ranks\n"
	        "%-*s  %-*s  %7s  %7s  %7s  %7s  %9s  %6s  %11s\n",
	        COLUMN, "plan", COLUMN, "planner", "total", "compute", "waiting", "share", "in flight", "hidden",
	        "CPU for it");
	for (uint32_t p = 0; p < report->plan_count; p++) {
		const struct plan_result *plan = &report->plans[p];
		const struct plan_seconds *s = &plan->seconds;
		double hidden = s->in_flight > s->waiting ? s->in_flight - s->waiting : 0;
		fprintf(out, "%-*s  %-*s  %7.2f  %7.2f  %7.2f  %5.1f %%  %9.2f  %4.0f %%  %9.1f %%\n", COLUMN, plan->plan,
		        COLUMN, plan->planner, s->total, s->total - s->waiting, s->waiting, percent(s->waiting, s->total),
		        s->in_flight, percent(hidden, s->in_flight), percent(s->communication_cpu, s->cpu));
	}
	fputs("share: of waiting in total. hidden: of the time in flight, while something else was computed.\n"
	      "CPU for it: of the CPU time of all threads, what communication took.\n",
	      out);
}

static void byte_table(const struct report *report, FILE *out)
{
	double steps = (double)(report->steps * report->epochs);
	fprintf(out,
	        "\nMegabytes sent in the training steps, all ranks together\n"
	        "%-*s  %9s  %9s  %12s  %13s  %9s  %9s  %11s\n",
	        COLUMN, "plan", "total", "per step", "busiest rank", "read in place", "copied", "sockets", "messages");
	for (uint32_t p = 0; p < report->plan_count; p++) {
		const struct plan_bytes *bytes = &report->plans[p].bytes;
		double sent = (double)bytes->sent / 1e6, shared = (double)bytes->shared / 1e6;
		double network = (double)bytes->network / 1e6;
		double busiest = (double)bytes->busiest / 1e6;
		fprintf(out, "%-*s  %9.1f  %9.2f  %12.1f  %13.1f  %9.1f  %9.1f  %11" PRIu64 "\n", COLUMN,
		        report->plans[p].plan, sent, sent / steps, busiest, shared, sent - shared - network, network,
		        bytes->messages);
	}
}

static void hash_table(const struct report *report, FILE *out)
{
	header(report, "Hash of the final weights, by rank", "rank", out);
	for (uint32_t r = 0; r < report->ranks; r++) {
		fprintf(out, "%5u", (unsigned)r);
		for (uint32_t p = 0; p < report->plan_count; p++) {
			const struct plan_result *plan = &report->plans[p];
			bool odd = plan->hashes[r] != report_common_hash(report, plan);
			fprintf(out, "  %s%016" PRIx64, odd ? "!" : " ", plan->hashes[r]);
		}
		fputc('\n', out);
	}
}

static void verdict(const struct report *report, FILE *out)
{
	for (uint32_t p = 0; p < report->plan_count; p++) {
		const struct plan_result *plan = &report->plans[p];
		for (uint32_t r = 0; r < report->ranks; r++)
			if (plan->hashes[r] != report_common_hash(report, plan))
				fprintf(out, "DIFFERENT: plan %s: rank %u does not have the weights of the others\n", plan->plan,
				        (unsigned)r);
	}
	if (report_agrees(report))
		fprintf(out, "Under each plan all %u ranks hold bit-identical weights.", (unsigned)report->ranks);
	else
		fprintf(out, "The ranks do not hold the same weights.");
	fprintf(out, " %.1f seconds in all.\n", report->seconds);
}

void report_tables(const struct report *report, FILE *out)
{
	loss_table(report, out);
	accuracy_table(report, out);
	time_table(report, out);
	byte_table(report, out);
	hash_table(report, out);
	verdict(report, out);
}
