#include "tools/doctor/doctor_pair.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/net/interface.h"
#include "node/net/route.h"
#include "wire/bytes.h"

#define PAIRS_SAID 8u          /* per kind; further ones are counted */
#define ALL_PAIRS 64u          /* ranks, up to which each tries to reach each */
#define OFFSET_MOST_US 10000   /* more would confuse readers of several hosts' logs */
#define HEAD_BYTES 8u

/* ---- on the wire ---- */

void doctor_way_encode(const struct doctor_way *way, uint8_t out[DOCTOR_WAY_BYTES])
{
	memset(out, 0, DOCTOR_WAY_BYTES);
	out[0] = way->outcome;
	bytes_put32(out + 4, way->rtt_us);
	bytes_put64(out + 8, (uint64_t)way->offset_us);
	bytes_put32(out + 16, way->path_mtu);
	bytes_put32(out + 20, way->largest);
}

bool doctor_way_decode(const uint8_t in[DOCTOR_WAY_BYTES], struct doctor_way *out)
{
	if (in[0] >= WAY_OUTCOMES || in[1] || in[2] || in[3])
		return false;
	*out = (struct doctor_way){in[0], bytes_get32(in + 4), (int64_t)bytes_get64(in + 8), bytes_get32(in + 16),
	                           bytes_get32(in + 20)};
	return true;
}

uint32_t doctor_report_bytes(uint32_t size)
{
	return HEAD_BYTES + DOCTOR_REPORT_FINDINGS * DOCTOR_FINDING_BYTES + size * NODE_ADDRESSES * DOCTOR_WAY_BYTES;
}

void doctor_report_encode(const struct doctor_report *report, uint32_t size, uint8_t *out)
{
	uint8_t *findings = out + HEAD_BYTES, *ways = findings + DOCTOR_REPORT_FINDINGS * DOCTOR_FINDING_BYTES;
	memset(out, 0, doctor_report_bytes(size));
	bytes_put32(out, report->finding_count);
	for (uint32_t i = 0; i < report->finding_count; i++)
		doctor_finding_encode(&report->findings[i], findings + i * DOCTOR_FINDING_BYTES);
	for (uint32_t i = 0; i < size * NODE_ADDRESSES; i++)
		doctor_way_encode(&report->ways[i], ways + i * DOCTOR_WAY_BYTES);
}

bool doctor_report_decode(const uint8_t *in, uint32_t size, struct doctor_report *out)
{
	const uint8_t *findings = in + HEAD_BYTES, *ways = findings + DOCTOR_REPORT_FINDINGS * DOCTOR_FINDING_BYTES;
	uint32_t count = bytes_get32(in);
	if (count > DOCTOR_REPORT_FINDINGS || bytes_get32(in + 4) != 0)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!doctor_finding_decode(findings + i * DOCTOR_FINDING_BYTES, &out->findings[i]))
			return false;
	for (const uint8_t *rest = findings + count * DOCTOR_FINDING_BYTES; rest < ways; rest++)
		if (*rest != 0)
			return false;
	for (uint32_t i = 0; i < size * NODE_ADDRESSES; i++)
		if (!doctor_way_decode(ways + i * DOCTOR_WAY_BYTES, &out->ways[i]))
			return false;
	out->finding_count = count;
	return true;
}

/* ---- findings ---- */

static bool is_first_of_host(const struct roster *roster, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++)
		if (roster->host_of[i] == roster->host_of[rank])
			return false;
	return true;
}

bool doctor_tries(const struct roster *roster, uint32_t from, uint32_t to)
{
	if (roster->host_of[from] == roster->host_of[to])
		return false;
	return roster->size <= ALL_PAIRS || (is_first_of_host(roster, from) && is_first_of_host(roster, to));
}

#define NO_HOST UINT32_MAX

/* Pairs of ranks that reach each other, but not in this network: most likely for one reason. */
struct half {
	struct node_address address; /* the first of them fails here */
	enum doctor_outcome outcome;
	uint32_t from, to;  /* ranks of the first of them */
	uint32_t hosts[2];  /* hosts that all of the pairs have a rank on; NO_HOST */
	uint32_t pairs;
};

/* Accumulated over all pairs. */
struct tally {
	const struct roster *roster;
	struct doctor_findings *out;
	uint32_t pairs, unreached, lost;
	uint32_t half; /* unreachable addresses of ranks that are reached at another one */
	struct half halves[PAIRS_SAID];
	uint32_t half_kinds, half_said; /* half_said: number of addresses that `halves` is about */
	uint32_t *rtts;
	uint32_t rtt_count, rtt_from, rtt_to, rtt_most;
	uint32_t mtu_least, mtu_most, mtu_from, mtu_to;
	int64_t offset_most;
	uint32_t offset_from, offset_to;
};

#define RANK_NAME 96u
static const char *name(const struct tally *tally, uint32_t rank, char text[RANK_NAME])
{
	snprintf(text, RANK_NAME, "rank %u on %s", rank, tally->roster->nodes[rank].host_name);
	return text;
}

static const char *describe(enum doctor_outcome outcome)
{
	switch (outcome) {
	case WAY_SILENT:
		return "no answer";
	case WAY_REFUSED:
		return "refused";
	case WAY_NO_ROUTE:
		return "no route";
	case WAY_STRANGER:
		return "another process answers";
	case WAY_UNTRIED:
	case WAY_FINE:
	case WAY_LARGE_LOST:
		break;
	}
	return "not tried";
}

static void advise(struct tally *tally, uint32_t to, const struct node_address *address, enum doctor_outcome outcome)
{
	char text[NODE_ADDRESS_TEXT];
	const struct node_info *info = &tally->roster->nodes[to];
	assert(info);
	node_address_text(address, text);
	switch (outcome) {
	case WAY_SILENT:
		doctor_advise(tally->out, "let TCP to port %u (ESP_PORT fixes it) through the firewall of %.40s and whatever "
		                          "is between; or it is the wrong interface: see ip route get %s, and ESP_INTERFACES",
		              info->port, info->host_name, text);
		break;
	case WAY_REFUSED:
		doctor_advise(tally->out, "a firewall rejects TCP to port %u (ESP_PORT fixes it), or %s is another host's "
		                          "address as well: see ESP_INTERFACES", info->port, text);
		break;
	case WAY_NO_ROUTE:
		doctor_advise(tally->out, "see ip route get %s: a route is missing, or a firewall says so; ESP_INTERFACES and "
		                          "ESP_FAMILY choose others", text);
		break;
	default:
		doctor_advise(tally->out, "%s leads to something else from there: an address that is used twice, or a "
		                          "translator (NAT)?", text);
		break;
	}
}

static void say_lost(struct tally *tally, uint32_t from, uint32_t to, const struct node_address *address,
                     const struct doctor_way *way)
{
	char a[RANK_NAME], b[RANK_NAME], text[NODE_ADDRESS_TEXT];
	if (tally->lost++ >= PAIRS_SAID)
		return;
	if (way->largest == 0) { /* none of the sizes that were tried */
		doctor_say(tally->out, DOCTOR_FAIL, "path MTU",
		           "from %.60s to %.60s (%s) what is small arrives, and no packet of more than a few bytes, of the %u "
		           "that are sent", name(tally, from, a), name(tally, to, b), node_address_text(address, text),
		           way->path_mtu);
		doctor_advise(tally->out, "it is no matter of a smaller MTU: see the firewalls of these hosts and of what is "
		                          "between, for rules by the length of packets or by their rate");
		return;
	}
	doctor_say(tally->out, DOCTOR_FAIL, "path MTU",
	           "from %.60s to %.60s (%s) large packets get lost: up to %u bytes arrive, but %u are sent",
	           name(tally, from, a), name(tally, to, b), node_address_text(address, text), way->largest, way->path_mtu);
	doctor_advise(tally->out, "ip link set DEVICE mtu %u on these hosts, or raise the MTU of what is between; or let "
	                          "ICMP (\"too big\") through; or ESP_SEGMENT_BYTES=%u; or sysctl -w "
	                          "net.ipv4.tcp_mtu_probing=1", way->largest,
	              way->largest > 100 ? way->largest - (address->family == NODE_IPV4 ? 40 : 60) : 500);
}

static void note_good(struct tally *tally, uint32_t from, uint32_t to, const struct doctor_way *way)
{
	int64_t offset = way->offset_us < 0 ? -way->offset_us : way->offset_us;
	tally->rtts[tally->rtt_count++] = way->rtt_us;
	if (way->rtt_us >= tally->rtt_most) {
		tally->rtt_most = way->rtt_us;
		tally->rtt_from = from;
		tally->rtt_to = to;
	}
	if (way->path_mtu < tally->mtu_least) {
		tally->mtu_least = way->path_mtu;
		tally->mtu_from = from;
		tally->mtu_to = to;
	}
	tally->mtu_most = way->path_mtu > tally->mtu_most ? way->path_mtu : tally->mtu_most;
	if (offset >= tally->offset_most) {
		tally->offset_most = offset;
		tally->offset_from = from;
		tally->offset_to = to;
	}
}

static bool works(const struct doctor_way *way)
{
	return way->outcome == WAY_FINE || way->outcome == WAY_LARGE_LOST;
}

static void say_unreached(struct tally *tally, uint32_t from, uint32_t to, const struct doctor_way *ways)
{
	char a[RANK_NAME], b[RANK_NAME], list[120] = "", text[NODE_ADDRESS_TEXT];
	const struct node_info *info = &tally->roster->nodes[to];
	size_t used = 0;
	if (tally->unreached++ >= PAIRS_SAID)
		return;
	for (uint32_t i = 0; i < info->address_count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s port %u: %s", i ? "; " : "",
		                         node_address_text(&info->addresses[i], text), info->port,
		                         describe((enum doctor_outcome)ways[i].outcome));
	doctor_say(tally->out, DOCTOR_FAIL, "reach", "%.50s does not reach %.50s (%s)", name(tally, from, a),
	           name(tally, to, b), info->address_count ? list : "it has no address");
	if (info->address_count)
		advise(tally, to, &info->addresses[0], (enum doctor_outcome)ways[0].outcome);
	else
		doctor_advise(tally->out, "see what is said of the interfaces of that host");
}

static struct half *find_half(struct tally *tally, const struct node_address *address, enum doctor_outcome outcome)
{
	for (uint32_t i = 0; i < tally->half_kinds; i++) {
		struct half *half = &tally->halves[i];
		bool is_near = node_address_same_network(&half->address, address) || node_address_same(&half->address, address);
		if (half->outcome == outcome && is_near)
			return half;
	}
	return NULL;
}

/*
 * Counts a pair that reaches each other, but not at this address: a rail that would not be used. A missing
 * route may be intended.
 */
static void note_half(struct tally *tally, uint32_t from, uint32_t to, const struct node_address *address,
                      const struct doctor_way *way)
{
	enum doctor_outcome outcome = (enum doctor_outcome)way->outcome;
	const uint32_t *host_of = tally->roster->host_of;
	if (outcome == WAY_NO_ROUTE || outcome == WAY_UNTRIED)
		return;
	tally->half++;
	struct half *half = find_half(tally, address, outcome);
	if (!half && tally->half_kinds == PAIRS_SAID)
		return;
	if (!half) {
		half = &tally->halves[tally->half_kinds++];
		*half = (struct half){*address, outcome, from, to, {host_of[from], host_of[to]}, 0};
	}
	half->pairs++;
	tally->half_said++;
	for (uint32_t i = 0; i < 2; i++)
		if (half->hosts[i] != host_of[from] && half->hosts[i] != host_of[to])
			half->hosts[i] = NO_HOST;
}

/* Writes "10.1.0.0/24", or the address itself if the size of its network is unknown. */
#define NETWORK_TEXT (NODE_ADDRESS_TEXT + 8u)
static const char *network_text(const struct node_address *address, char out[NETWORK_TEXT])
{
	struct node_address network = *address;
	unsigned bits = address->prefix;
	char text[NODE_ADDRESS_TEXT];
	for (unsigned i = 0; i < sizeof(network.bytes) && bits > 0; i++) {
		unsigned kept = bits <= 8 * i ? 0 : bits - 8 * i < 8 ? bits - 8 * i : 8;
		network.bytes[i] = (uint8_t)(network.bytes[i] & (0xff00u >> kept));
	}
	if (bits > 0)
		snprintf(out, NETWORK_TEXT, "%s/%u", node_address_text(&network, text), bits);
	else
		snprintf(out, NETWORK_TEXT, "%s", node_address_text(address, text));
	return out;
}

/* The one host that all of these pairs have in common; NULL: there is none, or there are two. */
static const char *common_host(const struct tally *tally, const struct half *half)
{
	uint32_t host = half->hosts[0] == NO_HOST ? half->hosts[1] : half->hosts[0];
	if (host == NO_HOST || (half->hosts[0] != NO_HOST && half->hosts[1] != NO_HOST))
		return NULL;
	return tally->roster->nodes[tally->roster->host_of[half->from] == host ? half->from : half->to].host_name;
}

static void say_half(struct tally *tally, const struct half *half)
{
	char a[RANK_NAME], b[RANK_NAME], text[NODE_ADDRESS_TEXT], network[NETWORK_TEXT];
	const char *host = common_host(tally, half), *how = describe(half->outcome);
	name(tally, half->from, a);
	name(tally, half->to, b);
	node_address_text(&half->address, text);
	network_text(&half->address, network);
	if (half->pairs == 1)
		doctor_say(tally->out, DOCTOR_WARN, "reach", "%.60s reaches %.60s, but not at %s: %s", a, b, text, how);
	else
		doctor_say(tally->out, DOCTOR_WARN, "reach",
		           "%u of %u pairs of ranks reach each other, but not %s %s: %s; the first are %.40s and "
		           "%.40s%s%.40s", half->pairs, tally->pairs, half->address.prefix ? "in" : "at", network, how, a, b,
		           host ? "; all have a rank on " : "", host ? host : "");
	if (half->pairs == 1 || half->outcome != WAY_SILENT)
		advise(tally, half->to, &half->address, half->outcome);
	else if (host)
		doctor_advise(tally->out, "see the cable of %.40s in that network and its port of the switch, its interface "
		                          "(ip -s link), its firewall; or leave the network out with ESP_INTERFACES", host);
	else
		doctor_advise(tally->out, "see the switch of that network, the cables and interfaces (ip -s link), and what "
		                          "filters TCP in it; or leave it out with ESP_INTERFACES");
}

static void judge_pair(struct tally *tally, uint32_t from, uint32_t to, const struct doctor_way *ways)
{
	const struct node_info *info = &tally->roster->nodes[to];
	const struct doctor_way *best = NULL;
	tally->pairs++;
	for (uint32_t i = 0; i < info->address_count && !best; i++)
		best = works(&ways[i]) ? &ways[i] : NULL;
	if (!best) {
		say_unreached(tally, from, to, ways);
		return;
	}
	note_good(tally, from, to, best);
	for (uint32_t i = 0; i < info->address_count; i++) {
		if (ways[i].outcome == WAY_LARGE_LOST)
			say_lost(tally, from, to, &info->addresses[i], &ways[i]);
		else if (ways[i].outcome != WAY_FINE)
			note_half(tally, from, to, &info->addresses[i], &ways[i]);
	}
}

static void say_more(struct tally *tally, enum doctor_verdict verdict, const char *check, uint32_t count, uint32_t said)
{
	if (count > said)
		doctor_say(tally->out, verdict, check, "and %u more pairs like these", count - said);
}

static int by_size(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	return a < b ? -1 : a > b;
}

static void sum_up(struct tally *tally)
{
	char a[RANK_NAME], b[RANK_NAME];
	say_more(tally, DOCTOR_FAIL, "reach", tally->unreached, PAIRS_SAID);
	say_more(tally, DOCTOR_FAIL, "path MTU", tally->lost, PAIRS_SAID);
	for (uint32_t i = 0; i < tally->half_kinds; i++)
		say_half(tally, &tally->halves[i]);
	say_more(tally, DOCTOR_WARN, "reach", tally->half, tally->half_said);
	if (tally->pairs > 0 && tally->unreached == 0)
		doctor_say(tally->out, DOCTOR_OK, "reach",
		           "all %u pairs of ranks on different hosts reach each other, each direction tried", tally->pairs);
	if (tally->rtt_count == 0)
		return;
	qsort(tally->rtts, tally->rtt_count, sizeof(*tally->rtts), by_size);
	doctor_say(tally->out, DOCTOR_OK, "round trip", "%" PRIu32 " us in the middle, %" PRIu32
	           " us at most, between %.60s and %.60s", tally->rtts[tally->rtt_count / 2], tally->rtt_most,
	           name(tally, tally->rtt_from, a), name(tally, tally->rtt_to, b));
	if (tally->mtu_least != tally->mtu_most) {
		doctor_say(tally->out, DOCTOR_WARN, "path MTU", "%u to %u; the least from %.60s to %.60s", tally->mtu_least,
		           tally->mtu_most, name(tally, tally->mtu_from, a), name(tally, tally->mtu_to, b));
		doctor_advise(tally->out, "fine if the paths differ; otherwise give all interfaces of the network the same MTU "
		                          "(ip link set DEVICE mtu N)");
	} else if (tally->lost == 0) {
		doctor_say(tally->out, DOCTOR_OK, "path MTU", "%u everywhere, and packets of that size arrive",
		           tally->mtu_least);
	}
	bool apart = tally->offset_most > OFFSET_MOST_US;
	doctor_say(tally->out, apart ? DOCTOR_WARN : DOCTOR_OK, "clock offset", "%.3f ms at most, between %.60s and %.60s",
	           (double)tally->offset_most / 1e3, name(tally, tally->offset_from, a), name(tally, tally->offset_to, b));
	if (apart)
		doctor_advise(tally->out, "jobs do not mind, logs and traces do: start a time service (chrony, ptp4l) on all "
		                          "hosts");
}

static void say_rails(const struct roster *roster, struct doctor_findings *out)
{
	struct rails rails;
	char list[160] = "", text[NODE_ADDRESS_TEXT];
	size_t used = 0;
	if (rails_find(roster, 0, &rails) != ESP_OK)
		return;
	for (uint32_t i = 0; i < rails.count && rails.count > 1 && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
		                         node_address_text(rails_address(&rails, roster, 0, i), text));
	if (rails.count > 1)
		doctor_say(out, DOCTOR_OK, "rails", "%u networks that every host is in, used together in proportion to what "
		                                    "they carry; rank 0 has %s", rails.count, list);
	rails_fini(&rails);
}

bool doctor_judge_pairs(const struct roster *roster, struct doctor_way *const *ways, struct doctor_findings *out)
{
	struct tally tally = {.roster = roster, .out = out, .mtu_least = UINT32_MAX};
	uint64_t pairs = (uint64_t)roster->size * roster->size;
	tally.rtts = calloc(pairs, sizeof(*tally.rtts));
	if (!tally.rtts) {
		doctor_say(out, DOCTOR_FAIL, "memory", "no memory for %" PRIu64 " pairs", pairs);
		return false;
	}
	uint32_t missing = 0;
	for (uint32_t from = 0; from < roster->size; from++) {
		if (!ways[from]) {
			char a[RANK_NAME];
			missing++;
			doctor_say(out, DOCTOR_FAIL, "report", "%s has joined, but has not told what it found",
			           name(&tally, from, a));
			doctor_advise(out, "see what it printed itself");
		}
		for (uint32_t to = 0; to < roster->size && ways[from]; to++)
			if (doctor_tries(roster, from, to))
				judge_pair(&tally, from, to, ways[from] + (size_t)to * NODE_ADDRESSES);
	}
	sum_up(&tally);
	say_rails(roster, out);
	free(tally.rtts);
	return missing == 0 && tally.unreached == 0 && tally.half == 0;
}
