#include "network/probe/collect.h"

#include <math.h>

/*
 * Both ends measure one path at one time: their results differ by noise. Latencies of a few microseconds may be
 * off by tens of them on a busy host, so small differences do not count.
 */
#define RTT_RATIO 8.0
#define RTT_SLACK 500e-6
/* a rate is averaged over at least a third of the window (burst.c), and over no more data than the slot had */
#define RATE_SLACK 3.1

const char *probe_fate_text(enum probe_fate fate)
{
	static const char *const texts[] = {
		[PROBE_IN] = "takes part",
		[PROBE_ABSENT] = "vanished while it was probed",
		[PROBE_NONSENSE] = "reported what cannot be read",
		[PROBE_SILENT] = "does not answer the probes of most other hosts (a firewall?)",
		[PROBE_NOT_STARTED] = "could not be started, or did not join",
		[PROBE_LIES] = "reported what contradicts most other hosts",
	};
	return texts[fate];
}

static const struct report_row *row_of(const struct collect_input *input, uint32_t reporter, uint32_t host)
{
	return &input->rows[(size_t)reporter * input->hosts + host];
}

static bool rtts_differ(const struct report_row *a, const struct report_row *b)
{
	if (a->rtt_count == 0 || b->rtt_count == 0)
		return false;
	double low = fmin(a->rtt_low, b->rtt_low), high = fmax(a->rtt_low, b->rtt_low);
	return high > low * RTT_RATIO && high - low > RTT_SLACK;
}

/* True if `to` reports more data from `from` than that host reports to have sent. */
static bool is_too_much(const struct collect_input *input, const struct report_row *to, const struct report_row *from)
{
	return to->received > from->sent || to->rate_sum * input->window > RATE_SLACK * (double)to->received;
}

bool probe_collect_contradicts(const struct collect_input *input, uint32_t a, uint32_t b)
{
	const struct report_row *x = row_of(input, a, b), *y = row_of(input, b, a);

	return rtts_differ(x, y) || is_too_much(input, x, y) || is_too_much(input, y, x);
}

static bool is_latency_known(const struct collect_input *input, uint32_t a, uint32_t b)
{
	return row_of(input, a, b)->rtt_count > 0 || row_of(input, b, a)->rtt_count > 0;
}

static bool is_bandwidth_known(const struct collect_input *input, uint32_t a, uint32_t b)
{
	return row_of(input, a, b)->rate_best > 0 || row_of(input, b, a)->rate_best > 0;
}

/* ---- contradictions ---- */

typedef bool pair_fn(const struct collect_input *input, uint32_t a, uint32_t b);

/* Neither of the measured distances is known. */
static bool is_unknown(const struct collect_input *input, uint32_t a, uint32_t b)
{
	return !(input->latency && is_latency_known(input, a, b)) && !(input->bandwidth && is_bandwidth_known(input, a, b));
}

/*
 * Excludes, one by one, the host for which is_bad() holds with the most of the remaining hosts, as long as that
 * is more than half of them. Two hosts that contradict each other stay: it is unknown which of them is wrong.
 */
static void expel(const struct collect_input *input, enum probe_fate *fates, pair_fn *is_bad, enum probe_fate fate)
{
	for (uint32_t removed = 0; removed < input->hosts; removed++) {
		uint32_t worst = 0, worst_count = 0, in = 0;
		for (uint32_t a = 0; a < input->hosts; a++) {
			uint32_t count = 0;
			in += fates[a] == PROBE_IN;
			for (uint32_t b = 0; b < input->hosts && fates[a] == PROBE_IN; b++)
				count += a != b && fates[b] == PROBE_IN && is_bad(input, a, b);
			if (count > worst_count) {
				worst = a;
				worst_count = count;
			}
		}
		if (in < 3 || 2 * worst_count <= in - 1)
			return;
		fates[worst] = fate;
	}
}

/*
 * A host that answers one kind of probe is present. Where UDP is blocked, for example, all hosts are known by
 * bandwidth only.
 */
void probe_collect_expel(const struct collect_input *input, enum probe_fate *fates)
{
	expel(input, fates, probe_collect_contradicts, PROBE_LIES);
	expel(input, fates, is_unknown, PROBE_SILENT);
}

/* ---- distances ---- */

/* Disturbance only makes a probe longer. */
static double rtt_of(const struct report_row *x, const struct report_row *y)
{
	if (x->rtt_count == 0 || y->rtt_count == 0)
		return x->rtt_count ? x->rtt_low : y->rtt_low;
	return fmin(x->rtt_low, y->rtt_low);
}

/* The inverse of the mean rate of both directions and all rounds; a round without data counts as 0. */
static double inverse_of(const struct report_row *x, const struct report_row *y)
{
	double sum = x->rate_sum + y->rate_sum;

	return sum > 0 ? ((double)x->rate_count + (double)y->rate_count) / sum : NAN;
}

void probe_collect_distances(const struct collect_input *input, const enum probe_fate *fates, struct matrix *latency,
                             struct matrix *inverse)
{
	for (uint32_t a = 0; a < input->hosts; a++)
		for (uint32_t b = 0; b < a; b++) {
			const struct report_row *x = row_of(input, a, b), *y = row_of(input, b, a);
			if (fates[a] != PROBE_IN || fates[b] != PROBE_IN || probe_collect_contradicts(input, a, b))
				continue;
			if (latency && is_latency_known(input, a, b))
				matrix_set(latency, a, b, rtt_of(x, y));
			if (inverse && is_bandwidth_known(input, a, b))
				matrix_set(inverse, a, b, inverse_of(x, y));
		}
}
