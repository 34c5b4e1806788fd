/*
 * doctor_facts.c - collects the facts about this host from its kernel.
 */
#include "tools/doctor/doctor_facts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "node/net/listen.h"
#include "node/net/resolve.h"

#define NAME_PATIENCE (2 * NS_PER_S)
#define NAME_SLOW (500 * NS_PER_MS)
#define RULES_MOST (1u << 20)

/* ---- files ---- */

/* Reads the first line, without its end; "" if there is none. False: nothing could be read. */
static bool read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	out[got > 0 ? got : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return got > 0;
}

/* The n-th number of the first line, from 0. */
static uint64_t read_number(const char *path, unsigned n)
{
	char line[DOCTOR_TEXT], *at = line, *end;
	if (!read_line(path, line, sizeof(line)))
		return DOCTOR_UNKNOWN;
	for (;; n--) {
		errno = 0;
		unsigned long long number = strtoull(at, &end, 10);
		if (end == at || errno != 0 || *at == '-')
			return DOCTOR_UNKNOWN;
		if (n == 0)
			return number;
		at = end;
	}
}

/* ---- names and interfaces ---- */

static void look_up_name(struct doctor_facts *facts)
{
	struct address own = {.port = 1};
	struct resolved found;
	struct error err;
	uint64_t begin = clock_now_ns();
	size_t used = 0;
	snprintf(own.host, sizeof(own.host), "%s", facts->host_name);
	facts->name_resolves = resolve(&own, begin + NAME_PATIENCE, &found, &err) == ESP_OK;
	facts->name_is_slow = clock_now_ns() - begin > NAME_SLOW;
	facts->name_is_loopback = facts->name_resolves;
	for (uint32_t i = 0; facts->name_resolves && i < found.count; i++) {
		struct node_address address;
		char text[NODE_ADDRESS_TEXT];
		facts->name_is_loopback = facts->name_is_loopback && resolve_is_loopback(&found.addresses[i].any);
		if (node_address_from(&found.addresses[i].any, &address) && used < sizeof(facts->name_addresses))
			used += (size_t)snprintf(facts->name_addresses + used, sizeof(facts->name_addresses) - used, "%s%s",
			                         used ? ", " : "", node_address_text(&address, text));
	}
}

static void read_link(const char *name, struct doctor_link *link)
{
	char path[128], duplex[16];
	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", name);
	link->mtu = read_number(path, 0);
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	link->mbits = read_number(path, 0);
	snprintf(path, sizeof(path), "/sys/class/net/%s/duplex", name);
	link->half_duplex = read_line(path, duplex, sizeof(duplex)) && strcmp(duplex, "half") == 0;
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
	uint64_t own = read_number(path, 0), all = read_number("/proc/sys/net/ipv4/conf/all/rp_filter", 0);
	/* the kernel uses the larger one */
	link->rp_filter = all != DOCTOR_UNKNOWN && own != DOCTOR_UNKNOWN && all > own ? all : own;
}

static void read_interfaces(struct doctor_facts *facts)
{
	struct interface_filter filter;
	struct error *err = &facts->choice;
	if (interfaces_list(&facts->all, err) != ESP_OK || interface_filter_parse(facts->conf.interfaces, &filter,
	                                                                          err) != ESP_OK ||
	    interfaces_choose(&facts->all, &filter, (enum conf_family)facts->conf.family, &facts->chosen, err) != ESP_OK)
		return;
	facts->choice.status = ESP_OK;
	for (uint32_t i = 0; i < facts->chosen.count; i++)
		read_link(facts->chosen.list[i].name, &facts->links[i]);
}

/* ---- TCP ---- */

static void read_tcp(struct doctor_facts *facts)
{
	(void)read_line("/proc/sys/net/ipv4/tcp_congestion_control", facts->congestion, sizeof(facts->congestion));
	(void)read_line("/proc/sys/net/ipv4/tcp_available_congestion_control", facts->available, sizeof(facts->available));
	facts->read_most = read_number("/proc/sys/net/ipv4/tcp_rmem", 2);
	facts->write_most = read_number("/proc/sys/net/ipv4/tcp_wmem", 2);
	facts->autotunes = read_number("/proc/sys/net/ipv4/tcp_moderate_rcvbuf", 0);
	facts->scales = read_number("/proc/sys/net/ipv4/tcp_window_scaling", 0);
	facts->acks_selectively = read_number("/proc/sys/net/ipv4/tcp_sack", 0);
	facts->probes_mtu = read_number("/proc/sys/net/ipv4/tcp_mtu_probing", 0);
	facts->somaxconn = read_number("/proc/sys/net/core/somaxconn", 0);
	facts->port_first = read_number("/proc/sys/net/ipv4/ip_local_port_range", 0);
	facts->port_last = read_number("/proc/sys/net/ipv4/ip_local_port_range", 1);
	(void)read_line("/proc/sys/net/ipv4/ip_local_reserved_ports", facts->reserved_ports, sizeof(facts->reserved_ports));
}

enum doctor_firewall doctor_read_rules(const char *text)
{
	bool guards_input = false, drops = false;
	while (*text) {
		char line[512];
		size_t length = strcspn(text, "\n"), kept = length < sizeof(line) ? length : sizeof(line) - 1;
		memcpy(line, text, kept);
		line[kept] = '\0';
		text += length + (text[length] == '\n');
		bool is_head = strstr(line, " hook ") != NULL;
		guards_input = guards_input || strstr(line, "hook input");
		if (is_head ? strstr(line, "hook input") && strstr(line, "policy drop") : strstr(line, " drop") ||
		    strstr(line, " reject") || strstr(line, "\tdrop") || strstr(line, "\treject"))
			drops = true;
	}
	return guards_input && drops ? FIREWALL_DROPS : FIREWALL_OPEN;
}

/* Only root may list the rules. */
static enum doctor_firewall read_firewall(void)
{
	if (geteuid() != 0)
		return FIREWALL_UNKNOWN;
	FILE *list = popen("PATH=$PATH:/usr/sbin:/sbin nft list ruleset 2>/dev/null", "re");
	char *text = list ? calloc(1, RULES_MOST) : NULL;
	size_t got = text ? fread(text, 1, RULES_MOST - 1, list) : 0;
	int status = list ? pclose(list) : -1;
	enum doctor_firewall firewall = text && status == 0 && got < RULES_MOST - 1 ? doctor_read_rules(text)
	                                                                            : FIREWALL_UNKNOWN;
	free(text);
	return firewall;
}

/* ---- cores, memory, limits ---- */

double doctor_read_quota(const char *text)
{
	double quota, period;
	return sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ? quota / period : 0;
}

/* The tightest limit of this control group and the groups above it; 0: none. */
static double read_quota(void)
{
	char path[512], group[384], line[DOCTOR_TEXT];
	double least = 0;
	if (!read_line("/proc/self/cgroup", group, sizeof(group)) || strncmp(group, "0::", 3) != 0)
		return 0;
	for (;;) {
		char *slash = strrchr(group, '/');
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", strcmp(group + 3, "/") == 0 ? "" : group + 3);
		double quota = read_line(path, line, sizeof(line)) ? doctor_read_quota(line) : 0;
		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
		if (!slash || slash == group + 3)
			return least;
		*slash = '\0';
	}
}

static uint64_t read_limit(int which, bool hard)
{
	struct rlimit limit;
	if (getrlimit((__rlimit_resource_t)which, &limit) != 0)
		return DOCTOR_UNKNOWN;
	/* RLIM_INFINITY equals DOCTOR_UNKNOWN, and neither deserves a warning */
	return hard ? limit.rlim_max : limit.rlim_cur;
}

static void read_memory(struct doctor_facts *facts)
{
	struct statvfs shm;
	char line[DOCTOR_TEXT];
	int fd = memfd_create("espalier-doctor", MFD_CLOEXEC);
	facts->has_memfd = fd >= 0 && ftruncate(fd, 4096) == 0;
	if (fd >= 0)
		close(fd);
	facts->shm_bytes = statvfs("/dev/shm", &shm) == 0 ? (uint64_t)shm.f_blocks * shm.f_frsize : DOCTOR_UNKNOWN;
	long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	facts->memory_free = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : DOCTOR_UNKNOWN;
	/* The bracketed one is set: "always within_size advise [never] deny force" */
	if (read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", line, sizeof(line))) {
		const char *open = strchr(line, '['), *close_at = open ? strchr(open, ']') : NULL;
		if (close_at)
			snprintf(facts->huge_shmem, sizeof(facts->huge_shmem), "%.*s", (int)(close_at - open - 1), open + 1);
	}
	facts->locked_most = read_limit(RLIMIT_MEMLOCK, false);
	facts->files_most = read_limit(RLIMIT_NOFILE, false);
	facts->files_hard = read_limit(RLIMIT_NOFILE, true);
}

static void read_cores(struct doctor_facts *facts)
{
	double load;

	facts->cores = cores_allowed();
	facts->quota = read_quota();
	facts->load = getloadavg(&load, 1) == 1 ? load : -1;
}

static void read_kernel(struct doctor_facts *facts)
{
	struct utsname name;
	struct timex time = {.modes = 0};
	int state = adjtimex(&time);
	facts->clock_known = state >= 0;
	facts->clock_synchronised = state >= 0 && state != TIME_ERROR && !(time.status & STA_UNSYNC);
	(void)read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", facts->clock_source,
	                sizeof(facts->clock_source));
	if (uname(&name) == 0) {
		snprintf(facts->kernel, sizeof(facts->kernel), "%.20s %.100s", name.sysname, name.release);
		if (sscanf(name.release, "%u.%u", &facts->kernel_major, &facts->kernel_minor) != 2)
			facts->kernel_major = 0;
	}
}

/* ---- settings ---- */

static void keep_complaint(void *context, const struct error *complaint)
{
	struct doctor_facts *facts = context;
	if (facts->complaint_count < DOCTOR_COMPLAINTS)
		snprintf(facts->complaints[facts->complaint_count++], DOCTOR_WHAT, "%.230s", complaint->text);
}

void doctor_facts_collect(struct doctor_facts *facts, uint32_t ranks, uint32_t size)
{
	struct error refusal;
	*facts = (struct doctor_facts){.ranks = ranks, .size = size};
	if (conf_load(&facts->conf, keep_complaint, facts, &refusal) != ESP_OK)
		keep_complaint(facts, &refusal);
	conf_check_environment(keep_complaint, facts);
	host_info_name(facts->host_name);
	look_up_name(facts);
	read_interfaces(facts);
	read_tcp(facts);
	facts->firewall = read_firewall();
	read_cores(facts);
	read_memory(facts);
	read_kernel(facts);
}
