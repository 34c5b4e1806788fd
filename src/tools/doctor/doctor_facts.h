/*
 * doctor_facts.h - the facts about one host that espalier doctor checks, and the findings that follow.
 *
 * doctor_facts_collect() reads the system; doctor_judge() is pure. A fact that cannot be found out, for want of
 * rights or of a file, is unknown and is skipped or reported as such, never guessed.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_FACTS_H
#define TOOLS_DOCTOR_DOCTOR_FACTS_H

#include "base/conf.h"
#include "node/net/interface.h"
#include "tools/doctor/doctor_finding.h"

#define DOCTOR_UNKNOWN UINT64_MAX
#define DOCTOR_TEXT 128u
#define DOCTOR_COMPLAINTS 8u

enum doctor_firewall {
	FIREWALL_UNKNOWN,
	FIREWALL_OPEN,  /* no incoming packets are dropped */
	FIREWALL_DROPS, /* some are */
};

/* An interface that is used; in the order of chosen.list. */
struct doctor_link {
	uint64_t mtu;
	uint64_t mbits;   /* DOCTOR_UNKNOWN: a virtual one, for example */
	bool half_duplex;
	uint64_t rp_filter;
};

struct doctor_facts {
	struct conf conf;
	uint32_t ranks;                /* on this host */
	uint32_t size;                 /* of the job; this host's, if no more is known */
	uint32_t complaint_count;      /* about settings */
	char complaints[DOCTOR_COMPLAINTS][DOCTOR_WHAT];

	/* Names and interfaces. */
	char host_name[NODE_INFO_HOST_NAME];
	bool name_resolves, name_is_slow, name_is_loopback;
	char name_addresses[DOCTOR_TEXT];
	struct interfaces all, chosen;
	struct error choice;           /* status ESP_OK: interfaces were chosen */
	struct doctor_link links[NODE_ADDRESSES];

	/* TCP. */
	char congestion[DOCTOR_TEXT], available[DOCTOR_TEXT];
	uint64_t read_most, write_most; /* maximum sizes of a socket's buffers, in bytes */
	uint64_t autotunes, scales, acks_selectively, probes_mtu, somaxconn;
	uint64_t port_first, port_last;
	char reserved_ports[DOCTOR_TEXT];
	enum doctor_firewall firewall;

	/* Cores, memory, limits. */
	uint32_t cores;                /* that this process may use */
	double quota;                  /* cores that its control group may use; 0: no limit */
	double load;                   /* negative: unknown */
	uint64_t locked_most, files_most, files_hard;
	uint64_t shm_bytes, memory_free;
	bool has_memfd;
	char huge_shmem[DOCTOR_TEXT];  /* "always", "advise", "never" ... */

	/* Clock and kernel. */
	char clock_source[DOCTOR_TEXT];
	bool clock_known, clock_synchronised;
	char kernel[DOCTOR_TEXT];
	unsigned kernel_major, kernel_minor;
};

void doctor_facts_collect(struct doctor_facts *facts, uint32_t ranks, uint32_t size);

/* Pure. Every check adds a finding, also if all is well. */
void doctor_judge(const struct doctor_facts *facts, struct doctor_findings *out);

/* Pure: reads the output of `nft list ruleset`; whether rules drop incoming packets. */
enum doctor_firewall doctor_read_rules(const char *text);
/* Pure: cores from the text of cpu.max; 0: no limit. */
double doctor_read_quota(const char *text);

#endif
