#include "tools/diagnose/align.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_LEAST INT64_C(1000000000) /* ns */
#define DRIFT_MOST 100e-6                 /* of one clock against another */

static int compare(const void *a, const void *b)
{
	const struct align_meeting *x = a, *y = b;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

/* The ranks of one host in one call: when the last began and the first ended. */
struct party {
	uint64_t call;
	uint32_t host;
	int64_t begin_ns, end_ns;
};

static size_t gather_parties(const struct align_meeting *meetings, size_t count, struct party *out)
{
	size_t parties = 0;
	for (size_t i = 0; i < count; i++) {
		const struct align_meeting *meeting = &meetings[i];
		struct party *party = parties > 0 ? &out[parties - 1] : NULL;
		if (!party || party->call != meeting->call || party->host != meeting->host) {
			out[parties++] = (struct party){meeting->call, meeting->host, meeting->begin_ns, meeting->end_ns};
			continue;
		}
		party->begin_ns = meeting->begin_ns > party->begin_ns ? meeting->begin_ns : party->begin_ns;
		party->end_ns = meeting->end_ns < party->end_ns ? meeting->end_ns : party->end_ns;
	}
	return parties;
}

static const struct party *find_party(const struct party *parties, size_t count, size_t near, uint32_t host)
{
	size_t at = near;
	while (at > 0 && parties[at - 1].call == parties[near].call)
		at--;
	for (; at < count && parties[at].call == parties[near].call; at++)
		if (parties[at].host == host)
			return &parties[at];
	return NULL;
}

/* Bounds for the difference of a host's clock, at one moment of that clock. */
struct bounds {
	int64_t low, high, at_ns;
	bool is_used;
};

static struct bounds bounds_of(const struct party *own, const struct party *other, const struct align_host *other_host)
{
	int64_t difference = diagnose_align_at(other_host, other->end_ns), error = other_host->error_ns;
	int64_t low = other->begin_ns + difference - error - own->end_ns,
	    high = other->end_ns + difference + error - own->begin_ns;
	return (struct bounds){low, high, own->end_ns, low <= high};
}

/* The bounds at another moment: wider by the drift in between. */
static struct bounds seen_from(const struct bounds *bounds, int64_t at_ns)
{
	int64_t apart = at_ns > bounds->at_ns ? at_ns - bounds->at_ns : bounds->at_ns - at_ns;
	int64_t slack = (int64_t)((double)apart * DRIFT_MOST);
	return (struct bounds){bounds->low - slack, bounds->high + slack, at_ns, true};
}

static void keep_tightest(struct bounds *tightest, const struct bounds *bounds)
{
	if (bounds->is_used && (!tightest->is_used || bounds->high - bounds->low < tightest->high - tightest->low))
		*tightest = *bounds;
}

static void tighten(struct bounds *best, const struct bounds *bounds)
{
	struct bounds seen = seen_from(bounds, best->at_ns);
	int64_t low = seen.low > best->low ? seen.low : best->low, high = seen.high < best->high ? seen.high : best->high;
	if (!bounds->is_used || low > high) /* a clock was set, or drifts more than clocks do */
		return;
	best->low = low;
	best->high = high;
}

static void find_span(const struct party *parties, size_t count, uint32_t host, int64_t *out_first, int64_t *out_length)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		if (parties[i].host != host)
			continue;
		first = parties[i].end_ns < first ? parties[i].end_ns : first;
		last = parties[i].end_ns > last ? parties[i].end_ns : last;
	}
	int64_t length = (last - first) / (int64_t)ALIGN_WINDOWS + 1;
	*out_first = first;
	*out_length = length > WINDOW_LEAST ? length : WINDOW_LEAST;
}

/* Takes every call that a host shares with known hosts, and passes its bounds to `use` for the call's window. */
static void use_calls(const struct party *parties, size_t count, uint32_t host, const struct align_host *hosts,
                      uint32_t host_count, void (*use)(struct bounds *, const struct bounds *),
                      struct bounds windows[ALIGN_WINDOWS])
{
	int64_t first, length;
	find_span(parties, count, host, &first, &length);
	for (size_t i = 0; i < count; i++) {
		if (parties[i].host != host)
			continue;
		int64_t window = (parties[i].end_ns - first) / length;
		for (uint32_t other = 0; other < host_count; other++) {
			const struct party *party = hosts[other].is_known ? find_party(parties, count, i, other) : NULL;
			if (!party)
				continue;
			struct bounds bounds = bounds_of(&parties[i], party, &hosts[other]);
			use(&windows[window < (int64_t)ALIGN_WINDOWS ? window : (int64_t)ALIGN_WINDOWS - 1], &bounds);
		}
	}
}

/*
 * A window with long calls only has wide bounds; other windows' bounds, widened by the drift in between, are
 * tighter.
 */
static void share_bounds(struct bounds windows[ALIGN_WINDOWS])
{
	struct bounds own[ALIGN_WINDOWS];
	memcpy(own, windows, sizeof(own));
	for (uint32_t i = 0; i < ALIGN_WINDOWS; i++)
		for (uint32_t apart = 1; apart < ALIGN_WINDOWS && own[i].is_used; apart++) { /* the nearest first */
			if (i >= apart)
				tighten(&windows[i], &own[i - apart]);
			if (i + apart < ALIGN_WINDOWS)
				tighten(&windows[i], &own[i + apart]);
		}
}

/* Measures a host against the known ones. False: they share no call. */
static bool measure(const struct party *parties, size_t count, uint32_t host, struct align_host *hosts,
                    uint32_t host_count)
{
	struct bounds windows[ALIGN_WINDOWS] = {0};
	struct align_host *out = &hosts[host];
	use_calls(parties, count, host, hosts, host_count, keep_tightest, windows);
	use_calls(parties, count, host, hosts, host_count, tighten, windows);
	share_bounds(windows);
	for (uint32_t i = 0; i < ALIGN_WINDOWS; i++) {
		const struct bounds *bounds = &windows[i];
		if (!bounds->is_used)
			continue;
		out->at_ns[out->count] = bounds->at_ns;
		out->difference_ns[out->count++] = bounds->low + (bounds->high - bounds->low) / 2;
		int64_t error = (bounds->high - bounds->low + 1) / 2;
		out->error_ns = error > out->error_ns ? error : out->error_ns;
	}
	return out->count > 0;
}

enum esp_status diagnose_align_hosts(struct align_meeting *meetings, size_t meeting_count, uint32_t host_count,
                                     struct align_host *out)
{
	struct party *parties = calloc(meeting_count + 1, sizeof(*parties));
	if (!parties)
		return ESP_ENOMEM;
	for (uint32_t i = 0; i < host_count; i++)
		out[i] = (struct align_host){.is_known = i == 0};
	if (meeting_count > 0)
		qsort(meetings, meeting_count, sizeof(*meetings), compare);
	size_t count = gather_parties(meetings, meeting_count, parties);
	for (bool found = true; found;) {
		found = false;
		for (uint32_t host = 0; host < host_count; host++) {
			if (out[host].is_known || !measure(parties, count, host, out, host_count))
				continue;
			out[host].is_known = found = true;
		}
	}
	free(parties);
	return ESP_OK;
}

int64_t diagnose_align_at(const struct align_host *host, int64_t at_ns)
{
	uint32_t next = 0;
	if (host->count == 0)
		return 0;
	while (next < host->count && host->at_ns[next] <= at_ns)
		next++;
	if (next == 0)
		return host->difference_ns[0];
	if (next == host->count)
		return host->difference_ns[next - 1];
	double share_bounds = (double)(at_ns - host->at_ns[next - 1]) / (double)(host->at_ns[next] - host->at_ns[next - 1]);
	return host->difference_ns[next - 1] +
	       (int64_t)(share_bounds * (double)(host->difference_ns[next] - host->difference_ns[next - 1]));
}
