#include "tools/doctor/doctor_facts.h"

#include <arpa/inet.h>
#include <net/if.h>

#include "base/check.h"

static struct interface make(const char *name, unsigned flags, const char *text)
{
	struct interface one = {.flags = flags, .index = 2, .address = {.prefix = 24}};

	snprintf(one.name, sizeof(one.name), "%s", name);
	one.address.family = strchr(text, ':') ? NODE_IPV6 : NODE_IPV4;
	CHECK(inet_pton(one.address.family == NODE_IPV6 ? AF_INET6 : AF_INET, text, one.address.bytes) == 1);
	return one;
}

/* A host without fault, for 4 of 8 ranks. */
static struct doctor_facts healthy(void)
{
	struct doctor_facts facts = {
		.ranks = 4,
		.size = 8,
		.host_name = "a",
		.name_resolves = true,
		.name_addresses = "10.0.0.1",
		.congestion = "cubic",
		.available = "reno cubic",
		.read_most = 16 << 20,
		.write_most = 16 << 20,
		.autotunes = 1,
		.scales = 1,
		.acks_selectively = 1,
		.probes_mtu = 0,
		.somaxconn = 4096,
		.port_first = 32768,
		.port_last = 60999,
		.firewall = FIREWALL_OPEN,
		.cores = 16,
		.load = 0.1,
		.locked_most = 8 << 20,
		.files_most = 1024,
		.files_hard = 1048576,
		.shm_bytes = 1 << 30,
		.memory_free = UINT64_C(32) << 30,
		.has_memfd = true,
		.huge_shmem = "advise",
		.clock_source = "tsc",
		.clock_known = true,
		.clock_synchronised = true,
		.kernel = "Linux 6.1.0",
		.kernel_major = 6,
		.kernel_minor = 1,
	};

	conf_init(&facts.conf);
	facts.all.count = 2;
	facts.all.list[0] = make("lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1");
	facts.all.list[1] = make("eth0", IFF_UP, "10.0.0.1");
	facts.chosen.count = 1;
	facts.chosen.list[0] = facts.all.list[1];
	facts.links[0] = (struct doctor_link){.mtu = 1500, .mbits = 25000};
	return facts;
}

/* Checks that there is a finding with this text and this advice, and no worse one. */
static void expect(const struct doctor_facts *facts, enum doctor_verdict verdict, const char *check, const char *what,
                   const char *advice)
{
	struct doctor_findings findings = {0};
	bool found = false;

	doctor_judge(facts, &findings);
	CHECK(!findings.no_memory);
	for (uint32_t i = 0; i < findings.count; i++) {
		const struct doctor_finding *at = &findings.list[i];

		/* every complaint has advice */
		CHECK_MSG(at->verdict == DOCTOR_OK || at->advice[0], "%s: %s", at->check, at->what);
		found = found || (at->verdict == verdict && strcmp(at->check, check) == 0 && strstr(at->what, what) &&
		                  strstr(at->advice, advice));
	}
	if (!found)
		(void)!doctor_print(&findings, stderr);
	CHECK_MSG(found, "%s: %s", check, what);
	CHECK_U64(doctor_worst(&findings), verdict);
	doctor_findings_fini(&findings);
}

#define WITH(change, verdict, check, what, advice) \
	do { \
		struct doctor_facts facts = healthy(); \
		change; \
		expect(&facts, verdict, check, what, advice); \
	} while (0)

static void network(void)
{
	WITH((void)0, DOCTOR_OK, "interfaces", "used (the best kind that there is): eth0 10.0.0.1", "");
	WITH((void)0, DOCTOR_OK, "interfaces", "not used: lo 127.0.0.1 (loopback)", "");
	WITH((void)0, DOCTOR_OK, "link", "eth0: MTU 1500, 25000 Mbit/s", "");
	WITH(error_set(&facts.choice, ESP_EINVAL, "no network interface fits"), DOCTOR_FAIL, "interfaces",
	     "no network interface fits", "ESP_INTERFACES");
	WITH(snprintf(facts.conf.interfaces, sizeof(facts.conf.interfaces), "eth"), DOCTOR_OK, "interfaces",
	     "used (as set)", "");
	WITH(snprintf(facts.conf.interfaces, sizeof(facts.conf.interfaces), "eth"), DOCTOR_OK, "interfaces",
	     "lo 127.0.0.1 (not among the interfaces that are set)", "");
	WITH(facts.conf.family = CONF_FAMILY_IPV6, DOCTOR_OK, "interfaces",
	     "lo 127.0.0.1 (not of the family that is set)", "");
	WITH(facts.links[0].half_duplex = true, DOCTOR_WARN, "link", "half duplex", "negotiation");
	WITH(facts.links[0].mtu = 1000, DOCTOR_WARN, "link", "MTU 1000", "mtu 1500");
	WITH(facts.links[0].mbits = DOCTOR_UNKNOWN, DOCTOR_OK, "link", "speed not known", "");
	WITH(facts.name_is_loopback = true, DOCTOR_OK, "name", "does not matter here", "");
	WITH(facts.name_resolves = false, DOCTOR_OK, "name", "leads nowhere", "");
	WITH(facts.name_is_slow = true, DOCTOR_WARN, "name", "takes long", "resolv.conf");
	WITH((facts.complaint_count = 1, snprintf(facts.complaints[0], DOCTOR_WHAT, "no setting 'x'")), DOCTOR_WARN,
	     "settings", "no setting 'x'", "espalier conf");
}

static void two_in_one_network(uint64_t rp_filter, const char *second, enum doctor_verdict verdict)
{
	struct doctor_facts facts = healthy();

	facts.chosen.list[facts.chosen.count++] = facts.all.list[facts.all.count++] = make("eth1", IFF_UP, second);
	facts.links[1] = facts.links[0];
	facts.links[1].rp_filter = rp_filter;
	if (verdict == DOCTOR_OK)
		expect(&facts, DOCTOR_OK, "link", "eth1", "");
	else
		expect(&facts, verdict, "network", "eth0 and eth1 are in one network", "rp_filter=2");
}

static void tcp(void)
{
	WITH((void)0, DOCTOR_OK, "congestion", "cubic (available: reno cubic)", "");
	WITH(snprintf(facts.congestion, DOCTOR_TEXT, "vegas"), DOCTOR_WARN, "congestion", "vegas", "cubic");
	WITH(facts.congestion[0] = '\0', DOCTOR_OK, "congestion", "not known", "");
	WITH(facts.read_most = 212992, DOCTOR_WARN, "buffers", "208K (receiving)", "tcp_rmem");
	WITH(facts.write_most = 1 << 20, DOCTOR_WARN, "buffers", "1M (sending)", "tcp_wmem");
	WITH(facts.read_most = DOCTOR_UNKNOWN, DOCTOR_OK, "buffers", "not known", "");
	WITH(facts.autotunes = 0, DOCTOR_WARN, "buffers", "do not grow by themselves", "tcp_moderate_rcvbuf=1");
	WITH(facts.scales = 0, DOCTOR_WARN, "buffers", "not scaled", "tcp_window_scaling=1");
	WITH(facts.acks_selectively = 0, DOCTOR_WARN, "buffers", "selective", "tcp_sack=1");
	WITH(facts.somaxconn = 16, DOCTOR_WARN, "backlog", "16 connections", "somaxconn=4096");
	WITH((facts.somaxconn = 512, facts.size = 600, facts.files_most = 100000), DOCTOR_WARN, "backlog", "512",
	     "somaxconn=4096");
}

static void ports(void)
{
	WITH((void)0, DOCTOR_OK, "ports", "any port; outgoing connections come from 32768 to 60999", "");
	WITH(facts.conf.port = ((struct conf_range){7000, 7003}), DOCTOR_OK, "ports", "ports 7000 to 7003", "");
	WITH(facts.conf.port = ((struct conf_range){7000, 7002}), DOCTOR_FAIL, "ports", "ports 7000 to 7002",
	     "4 ranks of a host need 4");
	WITH(facts.conf.port = ((struct conf_range){32700, 32800}), DOCTOR_WARN, "ports", "overlap",
	     "ip_local_reserved_ports=32700-32800");
	WITH((facts.conf.port = ((struct conf_range){32700, 32800}),
	      snprintf(facts.reserved_ports, DOCTOR_TEXT, "32700-32800")), DOCTOR_OK, "ports", "overlap", "");
	WITH(facts.port_last = 33000, DOCTOR_WARN, "ports", "32768 to 33000", "ip_local_port_range");
	WITH(facts.firewall = FIREWALL_UNKNOWN, DOCTOR_OK, "firewall", "only root", "");
	WITH(facts.firewall = FIREWALL_DROPS, DOCTOR_WARN, "firewall", "drop some", "set ESP_PORT to a range");
	WITH((facts.firewall = FIREWALL_DROPS, facts.conf.port = ((struct conf_range){7000, 7007})), DOCTOR_WARN,
	     "firewall", "drop some", "to ports 7000-7007 through");
}

static void cores_and_memory(void)
{
	WITH((void)0, DOCTOR_OK, "cores", "16 cores for 4 ranks", "");
	WITH(facts.cores = 3, DOCTOR_WARN, "cores", "3 cores for 4 ranks", "at most 3 ranks");
	WITH(facts.quota = 2.5, DOCTOR_WARN, "cores", "may use 2.5 for 4 ranks", "at most 2 ranks");
	WITH(facts.quota = 8, DOCTOR_OK, "cores", "may use 8.0", "");
	WITH(facts.load = 9, DOCTOR_WARN, "load", "9.0 threads want to run on 16 cores", "top");
	WITH(facts.has_memfd = false, DOCTOR_FAIL, "shared memory", "memfd_create does not work", "ESP_TRANSPORT=tcp");
	WITH(facts.memory_free = 200 << 20, DOCTOR_WARN, "memory", "at least 128M are free", "ESP_BUFFER_BYTES");
	WITH(snprintf(facts.huge_shmem, DOCTOR_TEXT, "never"), DOCTOR_WARN, "huge pages", "never", "echo advise");
	WITH(facts.huge_shmem[0] = '\0', DOCTOR_OK, "memory", "32G", "");
	WITH(facts.locked_most = DOCTOR_UNKNOWN, DOCTOR_OK, "locked memory", "as much as there is", "");
	WITH(facts.size = 1004, DOCTOR_FAIL, "open files", "may have 1024, a rank needs up to 6079", "ulimit -n 6079");
	WITH((facts.size = 1004, facts.files_hard = 4096), DOCTOR_FAIL, "open files", "1024", "LimitNOFILE");
	WITH((facts.size = 1004, facts.conf.lanes = 1, facts.files_most = 4000), DOCTOR_OK, "open files",
	     "needs up to 3070", "");
	WITH(facts.files_most = DOCTOR_UNKNOWN, DOCTOR_OK, "cores", "", ""); /* no limit */
}

static void clocks_and_kernels(void)
{
	WITH(snprintf(facts.clock_source, DOCTOR_TEXT, "hpet"), DOCTOR_WARN, "clock source", "hpet", "slow");
	WITH(snprintf(facts.clock_source, DOCTOR_TEXT, "kvm-clock"), DOCTOR_OK, "clock source", "kvm-clock", "");
	WITH(facts.clock_synchronised = false, DOCTOR_WARN, "clock", "does not know of a time service", "chrony");
	WITH((facts.clock_synchronised = false, facts.size = 4), DOCTOR_OK, "clock", "does not know", ""); /* one host */
	WITH((facts.kernel_major = 5, facts.kernel_minor = 4), DOCTOR_WARN, "kernel", "Linux", "before 5.7");
	WITH((facts.kernel_major = 5, facts.kernel_minor = 10), DOCTOR_OK, "kernel", "Linux", "");
}

static void rules(void)
{
	CHECK_U64(doctor_read_rules(""), FIREWALL_OPEN);
	CHECK_U64(doctor_read_rules("table ip nat {\n\tchain POSTROUTING {\n\t\ttype nat hook postrouting priority 100; "
	                            "policy accept;\n"
	                            "\t\toif eth0 masquerade\n\t}\n}\n"), FIREWALL_OPEN);
	CHECK_U64(doctor_read_rules("table inet f {\n\tchain input {\n\t\ttype filter hook input priority 0; policy "
	                            "accept;\n\t}\n}\n"), FIREWALL_OPEN);
	CHECK_U64(doctor_read_rules("table inet f {\n\tchain input {\n\t\ttype filter hook input priority 0; policy "
	                            "drop;\n\t}\n}\n"), FIREWALL_DROPS);
	CHECK_U64(doctor_read_rules("table inet f {\n\tchain input {\n\t\ttype filter hook input priority 0; policy "
	                            "accept;\n"
	                            "\t\ttcp dport 22 accept\n\t\tmeta l4proto tcp reject\n\t}\n}\n"), FIREWALL_DROPS);
	/* Docker's: forwarded packets do not matter here. */
	CHECK_U64(doctor_read_rules("table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority 0; policy "
	                            "drop;\n\t}\n}\n"), FIREWALL_OPEN);
	CHECK(doctor_read_quota("max 100000") == 0 && doctor_read_quota("150000 100000") == 1.5 &&
	      doctor_read_quota("") == 0);
}

/* Facts can be collected on any host, and every complaint has advice. */
static void this_host(void)
{
	struct doctor_findings findings = {0};
	static struct doctor_facts facts;

	doctor_facts_collect(&facts, 1, 1);
	CHECK(facts.host_name[0] && facts.cores > 0 && facts.kernel_major > 2 && facts.has_memfd);
	doctor_judge(&facts, &findings);
	CHECK(findings.count >= 10);
	for (uint32_t i = 0; i < findings.count; i++)
		CHECK(findings.list[i].verdict == DOCTOR_OK || findings.list[i].advice[0]);
	doctor_findings_fini(&findings);
}

int main(void)
{
	network();
	two_in_one_network(1, "10.0.0.2", DOCTOR_WARN);
	two_in_one_network(2, "10.0.0.2", DOCTOR_OK);
	two_in_one_network(1, "10.0.1.2", DOCTOR_OK);
	tcp();
	ports();
	cores_and_memory();
	clocks_and_kernels();
	rules();
	this_host();
	return 0;
}
