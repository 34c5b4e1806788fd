/*
 * doctor_judge.c - the findings that follow from the facts about a host. Pure.
 *
 * Thresholds are values below which a job is known to suffer, not those of the best machine.
 */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "tools/doctor/doctor_facts.h"

#define BUFFER_LEAST (4u << 20)     /* 10 Gbit/s for 3 ms, 100 Gbit/s for a third of one */
#define BACKLOG_LEAST 128u
#define PORTS_LEAST 1000u
#define LANES_USUAL 4u
#define MEMORY_LEAST (256u << 20)
#define BUSY 0.5                    /* of a core, used by other processes */

static bool known(uint64_t value)
{
	return value != DOCTOR_UNKNOWN;
}

static void judge_settings(const struct doctor_facts *facts, struct doctor_findings *out)
{
	for (uint32_t i = 0; i < facts->complaint_count; i++) {
		doctor_say(out, DOCTOR_WARN, "settings", "%s", facts->complaints[i]);
		doctor_advise(out, "correct it; espalier conf lists all settings");
	}
	if (facts->complaint_count == 0)
		doctor_say(out, DOCTOR_OK, "settings", "no bad values, no misspelt names");
}

/* ---- interfaces ---- */

static bool is_chosen(const struct doctor_facts *facts, const struct interface *one)
{
	return interfaces_find(&facts->chosen, &one->address) != NULL;
}

static const char *why_not(const struct doctor_facts *facts, const struct interface *one)
{
	struct interface_filter filter;
	struct error err;
	bool fits_family = facts->conf.family == CONF_FAMILY_ANY ||
	                   one->address.family == (facts->conf.family == CONF_FAMILY_IPV4 ? NODE_IPV4 : NODE_IPV6);
	if (!fits_family)
		return "not of the family that is set";
	if (interface_filter_parse(facts->conf.interfaces, &filter, &err) == ESP_OK &&
	    !interface_filter_takes(&filter, one->name))
		return "not among the interfaces that are set";
	switch (interface_worth(one)) {
	case INTERFACE_USELESS:
		return "down";
	case INTERFACE_LOOPBACK:
		return "loopback";
	case INTERFACE_LINK_LOCAL:
		return "link-local";
	case INTERFACE_VIRTUAL:
		return "a bridge of this host";
	case INTERFACE_NETWORK:
		break;
	}
	return "a node info names at most 8 addresses";
}

static void judge_interfaces(const struct doctor_facts *facts, struct doctor_findings *out)
{
	char list[DOCTOR_WHAT] = "", text[NODE_ADDRESS_TEXT];
	size_t used = 0;
	if (facts->choice.status != ESP_OK) {
		doctor_say(out, DOCTOR_FAIL, "interfaces", "%.220s", facts->choice.text);
		doctor_advise(out, "set ESP_INTERFACES and ESP_FAMILY to what is there, or bring the interface up (ip link set "
		                   "NAME up)");
		return;
	}
	for (uint32_t i = 0; i < facts->chosen.count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s %s", i ? ", " : "", facts->chosen.list[i].name,
		                         node_address_text(&facts->chosen.list[i].address, text));
	doctor_say(out, DOCTOR_OK, "interfaces", "used (%s): %s",
	           facts->conf.interfaces[0] ? "as set" : "the best kind that there is", list);
	used = 0;
	for (uint32_t i = 0; i < facts->all.count && used < sizeof(list); i++)
		if (!is_chosen(facts, &facts->all.list[i]))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s %s (%s)", used ? ", " : "",
			                         facts->all.list[i].name, node_address_text(&facts->all.list[i].address, text),
			                         why_not(facts, &facts->all.list[i]));
	if (used > 0)
		doctor_say(out, DOCTOR_OK, "interfaces", "not used: %s", list);
}

/* Each interface once. */
static bool is_first_of_its_name(const struct doctor_facts *facts, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (strcmp(facts->chosen.list[i].name, facts->chosen.list[at].name) == 0)
			return false;
	return true;
}

static void judge_links(const struct doctor_facts *facts, struct doctor_findings *out)
{
	for (uint32_t i = 0; i < facts->chosen.count; i++) {
		const struct doctor_link *link = &facts->links[i];
		const char *name = facts->chosen.list[i].name;
		char speed[32] = "speed not known";
		if (!is_first_of_its_name(facts, i) || interface_worth(&facts->chosen.list[i]) == INTERFACE_LOOPBACK)
			continue;
		if (known(link->mbits) && link->mbits > 0)
			snprintf(speed, sizeof(speed), "%" PRIu64 " Mbit/s", link->mbits);
		bool is_small = known(link->mtu) && link->mtu < 1280;
		doctor_say(out, link->half_duplex || is_small ? DOCTOR_WARN : DOCTOR_OK, "link", "%s: MTU %" PRIu64 ", %s%s",
		           name, known(link->mtu) ? link->mtu : 0, speed, link->half_duplex ? ", half duplex" : "");
		if (link->half_duplex)
			doctor_advise(out, "half duplex is a failed negotiation: set both ends to automatic, or replace the cable");
		else if (is_small)
			doctor_advise(out, "ip link set %s mtu 1500, unless a tunnel needs less", name);
	}
}

/* Two interfaces in one network. */
static void judge_same_network(const struct doctor_facts *facts, struct doctor_findings *out)
{
	for (uint32_t i = 0; i < facts->chosen.count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			const struct interface *a = &facts->chosen.list[j], *b = &facts->chosen.list[i];
			bool strict = facts->links[i].rp_filter == 1 || facts->links[j].rp_filter == 1;
			if (strcmp(a->name, b->name) == 0 || !strict || a->address.family != NODE_IPV4 ||
			    !node_address_same_network(&a->address, &b->address))
				continue;
			doctor_say(out, DOCTOR_WARN, "network",
			           "%s and %s are in one network, and the kernel drops what comes in through the one that it would "
			           "not answer through", a->name, b->name);
			doctor_advise(out, "sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.all.arp_ignore=1 "
			              "net.ipv4.conf.all.arp_announce=2; or give them networks of their own");
		}
	}
}

static void judge_name(const struct doctor_facts *facts, struct doctor_findings *out)
{
	if (facts->name_is_slow) {
		doctor_say(out, DOCTOR_WARN, "name", "looking up the own name, %s, takes long%s", facts->host_name,
		           facts->name_resolves ? "" : ", and leads nowhere");
		doctor_advise(out, "check the name servers in /etc/resolv.conf, or put this host into /etc/hosts");
	} else if (!facts->name_resolves) {
		doctor_say(out, DOCTOR_OK, "name", "the own name, %s, leads nowhere; nothing here needs it, unless it is the "
		                                   "leader's", facts->host_name);
	} else {
		doctor_say(out, DOCTOR_OK, "name", "%s is %s%s", facts->host_name, facts->name_addresses,
		           facts->name_is_loopback ? " (loopback: does not matter here, but other hosts must not have it so)"
		                                   : "");
	}
}

/* ---- TCP ---- */

static void judge_congestion(const struct doctor_facts *facts, struct doctor_findings *out)
{
	static const char *const good[] = {"cubic", "bbr", "dctcp", "bbr2", "bbr3"};
	bool is_good = facts->congestion[0] == '\0';
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		is_good = is_good || strcmp(facts->congestion, good[i]) == 0;
	doctor_say(out, is_good ? DOCTOR_OK : DOCTOR_WARN, "congestion", "%s (available: %s)",
	           facts->congestion[0] ? facts->congestion : "not known",
	           facts->available[0] ? facts->available : "not known");
	if (!is_good)
		doctor_advise(out, "sysctl -w net.ipv4.tcp_congestion_control=cubic, or dctcp where all switches mark (ECN)");
}

static void judge_buffers(const struct doctor_facts *facts, struct doctor_findings *out)
{
	char read_text[NUMBER_BYTES_TEXT], write_text[NUMBER_BYTES_TEXT];
	bool small = facts->read_most < BUFFER_LEAST || facts->write_most < BUFFER_LEAST;
	bool off = facts->autotunes == 0 || facts->scales == 0 || facts->acks_selectively == 0;
	if (!known(facts->read_most) || !known(facts->write_most)) {
		doctor_say(out, DOCTOR_OK, "buffers", "the limits of TCP's buffers are not known here");
		return;
	}
	doctor_say(out, small || off ? DOCTOR_WARN : DOCTOR_OK, "buffers",
	           "TCP's buffers grow to %s (receiving) and %s (sending)%s%s%s",
	           number_format_bytes(facts->read_most, read_text), number_format_bytes(facts->write_most, write_text),
	           facts->autotunes == 0 ? "; they do not grow by themselves" : "", facts->scales == 0
	           ? "; windows are not scaled" : "", facts->acks_selectively == 0 ? "; no selective acknowledgements"
	                                                                           : "");
	if (small)
		doctor_advise(out, "sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216' net.ipv4.tcp_wmem='4096 65536 "
		                   "16777216'");
	else if (off)
		doctor_advise(out, "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1 net.ipv4.tcp_window_scaling=1 "
		                   "net.ipv4.tcp_sack=1");
}

static void judge_backlog(const struct doctor_facts *facts, struct doctor_findings *out)
{
	uint64_t least = facts->size > BACKLOG_LEAST ? facts->size : BACKLOG_LEAST;
	bool small = known(facts->somaxconn) && facts->somaxconn < least;
	if (!known(facts->somaxconn))
		return;
	doctor_say(out, small ? DOCTOR_WARN : DOCTOR_OK, "backlog", "%" PRIu64 " connections may wait to be let in",
	           facts->somaxconn);
	if (small)
		doctor_advise(out, "sysctl -w net.core.somaxconn=4096");
}

static void judge_ports(const struct doctor_facts *facts, struct doctor_findings *out)
{
	const struct conf_range *port = &facts->conf.port;
	char listens[64] = "any port";
	if (port->first != 0)
		snprintf(listens, sizeof(listens), port->first == port->last ? "port %u" : "ports %u to %u", port->first,
		         port->last);
	bool has_range = known(facts->port_first) && known(facts->port_last) && facts->port_last >= facts->port_first;
	bool overlaps = has_range && port->first != 0 && port->first <= facts->port_last && port->last >= facts->port_first;
	bool few = has_range && facts->port_last - facts->port_first + 1 < PORTS_LEAST;
	bool too_few = port->first != 0 && port->last - port->first + 1 < facts->ranks;
	enum doctor_verdict verdict = too_few ? DOCTOR_FAIL : few || (overlaps && !facts->reserved_ports[0])
	                              ? DOCTOR_WARN : DOCTOR_OK;
	doctor_say(out, verdict, "ports", "ranks listen on %s; outgoing connections come from %" PRIu64 " to %" PRIu64 "%s",
	           listens, has_range ? facts->port_first : 0, has_range ? facts->port_last : 0,
	           overlaps ? ", which overlap" : "");
	if (too_few)
		doctor_advise(out, "%u ranks of a host need %u ports: set ESP_PORT to a range", facts->ranks, facts->ranks);
	else if (few)
		doctor_advise(out, "sysctl -w net.ipv4.ip_local_port_range='32768 60999'");
	else if (verdict == DOCTOR_WARN)
		doctor_advise(out, "another connection may take the port: choose one outside, or sysctl -w "
		              "net.ipv4.ip_local_reserved_ports=%u-%u", port->first, port->last);
}

static void judge_firewall(const struct doctor_facts *facts, struct doctor_findings *out)
{
	const struct conf_range *port = &facts->conf.port;
	switch (facts->firewall) {
	case FIREWALL_UNKNOWN:
		doctor_say(out, DOCTOR_OK, "firewall", "its rules are not known here: only root can list them");
		break;
	case FIREWALL_OPEN:
		doctor_say(out, DOCTOR_OK, "firewall", "no rule of this host drops what comes in");
		break;
	case FIREWALL_DROPS:
		doctor_say(out, DOCTOR_WARN, "firewall", "rules of this host drop some of what comes in (nft list ruleset)");
		if (port->first != 0)
			doctor_advise(out, "let TCP to the leader's port and to ports %u-%u through from the other hosts; a job of "
			                   "doctors shows whether they are", port->first, port->last);
		else
			doctor_advise(out, "let all TCP from the other hosts through; or set ESP_PORT to a range, and let that and "
			                   "the leader's port through");
		break;
	}
}

/* ---- cores, memory, limits ---- */

static void judge_cores(const struct doctor_facts *facts, struct doctor_findings *out)
{
	double cores = facts->quota > 0 && facts->quota < facts->cores ? facts->quota : facts->cores;
	bool crowded = facts->ranks > cores, busy = facts->load > BUSY * facts->cores;
	char limit[64] = "";
	if (facts->quota > 0)
		snprintf(limit, sizeof(limit), ", of which the control group may use %.1f", facts->quota);
	doctor_say(out, crowded ? DOCTOR_WARN : DOCTOR_OK, "cores", "%u core%s%s for %u rank%s", facts->cores,
	           facts->cores == 1 ? "" : "s", limit, facts->ranks, facts->ranks == 1 ? "" : "s");
	if (crowded)
		doctor_advise(out, "start at most %.0f ranks on this host, or give them more cores (taskset, cpu.max, --cpus)",
		              cores < 1 ? 1 : cores);
	if (facts->load < 0)
		return;
	if (!busy) {
		doctor_say(out, DOCTOR_OK, "load", "no other process is busy here");
		return;
	}
	doctor_say(out, DOCTOR_WARN, "load", "%.1f threads want to run on %u cores", facts->load, facts->cores);
	doctor_advise(out, "see which processes with top; a rank that waits for a core makes all ranks wait");
}

/* Rounds to a power of two, so that hosts of one kind have the same finding. */
static uint64_t round_down(uint64_t bytes)
{
	return bytes ? UINT64_C(1) << (63 - __builtin_clzll(bytes)) : 0;
}

static void judge_memory(const struct doctor_facts *facts, struct doctor_findings *out)
{
	char free_text[NUMBER_BYTES_TEXT], locked[NUMBER_BYTES_TEXT];
	uint64_t wanted = facts->conf.buffer_bytes * facts->ranks;
	bool scarce = known(facts->memory_free) && (facts->memory_free < wanted || facts->memory_free < MEMORY_LEAST);
	if (!facts->has_memfd) {
		doctor_say(out, DOCTOR_FAIL, "shared memory", "memfd_create does not work here");
		doctor_advise(out, "a sandbox forbids it (seccomp, gVisor): allow it, or set ESP_TRANSPORT=tcp");
	} else {
		doctor_say(out, DOCTOR_OK, "shared memory", "memfd works; the size of /dev/shm does not matter here");
	}
	if (known(facts->memory_free)) {
		doctor_say(out, scarce ? DOCTOR_WARN : DOCTOR_OK, "memory", "at least %s are free",
		           number_format_bytes(round_down(facts->memory_free), free_text));
		if (scarce)
			doctor_advise(out, "each rank uses up to buffer_bytes for data under way, beside its own: set "
			                   "ESP_BUFFER_BYTES lower, or start fewer ranks");
	}
	bool advised = strcmp(facts->huge_shmem, "advise") == 0 || strcmp(facts->huge_shmem, "always") == 0 ||
	               strcmp(facts->huge_shmem, "within_size") == 0 || strcmp(facts->huge_shmem, "force") == 0;
	if (facts->huge_shmem[0]) {
		doctor_say(out, advised ? DOCTOR_OK : DOCTOR_WARN, "huge pages", "for shared memory: %s", facts->huge_shmem);
		if (!advised)
			doctor_advise(out, "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled: large sums within a "
			                   "host get faster");
	}
	doctor_say(out, DOCTOR_OK, "locked memory", "%s may be locked; the transports of today lock none",
	           known(facts->locked_most) ? number_format_bytes(facts->locked_most, locked) : "as much as there is");
}

/* docs/runtime.md, "Connections". */
static void judge_files(const struct doctor_facts *facts, struct doctor_findings *out)
{
	uint64_t lanes = facts->conf.lanes ? facts->conf.lanes : LANES_USUAL;
	uint64_t local = facts->ranks - 1, others = facts->size - facts->ranks,
	    wanted = 64 + local * (1 + lanes) + others * (lanes + 2);
	bool few = known(facts->files_most) && facts->files_most < wanted;
	if (!known(facts->files_most))
		return;
	doctor_say(out, few ? DOCTOR_FAIL : DOCTOR_OK, "open files", "a process may have %" PRIu64 ", a rank needs up to %"
	           PRIu64, facts->files_most, wanted);
	if (few)
		doctor_advise(out, "ulimit -n %" PRIu64 "%s", wanted > 4096 ? wanted : 4096,
		              facts->files_hard < wanted ? "; the hard limit is lower, too: /etc/security/limits.conf, "
		                                           "LimitNOFILE=" : "");
}

static void judge_clock(const struct doctor_facts *facts, struct doctor_findings *out)
{
	bool slow = facts->clock_source[0] && strcmp(facts->clock_source, "tsc") != 0 &&
	            strcmp(facts->clock_source, "arch_sys_counter") != 0 &&
	            strcmp(facts->clock_source, "kvm-clock") != 0 && strncmp(facts->clock_source, "hyperv", 6) != 0;
	if (facts->clock_source[0]) {
		doctor_say(out, slow ? DOCTOR_WARN : DOCTOR_OK, "clock source", "%s", facts->clock_source);
		if (slow)
			doctor_advise(out, "reading this clock is slow; see "
			                   "/sys/devices/system/clocksource/clocksource0/available_clocksource and dmesg for why "
			                   "it is not tsc");
	}
	if (!facts->clock_known)
		return;
	bool matters = facts->size > facts->ranks;
	doctor_say(out, facts->clock_synchronised || !matters ? DOCTOR_OK : DOCTOR_WARN, "clock", "%s",
	           facts->clock_synchronised ? "kept by a time service"
	                                     : "the kernel does not know of a time service; jobs do not need one, logs of "
	                                       "several hosts do");
	if (!facts->clock_synchronised && matters)
		doctor_advise(out, "start one: chrony, systemd-timesyncd or ptp4l");
}

static void judge_kernel(const struct doctor_facts *facts, struct doctor_findings *out)
{
	bool old = facts->kernel_major > 0 &&
	           (facts->kernel_major < 5 || (facts->kernel_major == 5 && facts->kernel_minor < 7));
	doctor_say(out, old ? DOCTOR_WARN : DOCTOR_OK, "kernel", "%s", facts->kernel[0] ? facts->kernel : "not known");
	if (old)
		doctor_advise(out, "before 5.7 only root can tie connections to interfaces: several in one network are not "
		                   "used well");
}

void doctor_judge(const struct doctor_facts *facts, struct doctor_findings *out)
{
	judge_settings(facts, out);
	judge_interfaces(facts, out);
	judge_links(facts, out);
	judge_same_network(facts, out);
	judge_name(facts, out);
	judge_ports(facts, out);
	judge_firewall(facts, out);
	judge_congestion(facts, out);
	judge_buffers(facts, out);
	judge_backlog(facts, out);
	judge_cores(facts, out);
	judge_memory(facts, out);
	judge_files(facts, out);
	judge_clock(facts, out);
	judge_kernel(facts, out);
}
