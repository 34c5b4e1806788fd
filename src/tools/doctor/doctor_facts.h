/*
 * doctor_facts.h - what espalier doctor looks at on one host, and what follows from it.
 *
 * doctor_facts_collect() meets the operating system; doctor_judge() is pure. What cannot be found out, for want of
 * rights or of a file, is not known and is passed over or said to be so: it is never guessed.
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
	FIREWALL_OPEN,  /* nothing is dropped of what comes in */
	FIREWALL_DROPS, /* something is */
};

/* Of an interface that is used; as in chosen.list. */
struct doctor_link {
	uint64_t mtu;
	uint64_t mbits;   /* DOCTOR_UNKNOWN: a virtual one, say */
	bool half_duplex;
	uint64_t rp_filter;
};

struct doctor_facts {
	struct conf conf;
	uint32_t ranks;                /* of this host */
	uint32_t size;                 /* of the job; as many as of this host, if nobody says more */
	uint32_t complaint_count;      /* about settings */
	char complaints[DOCTOR_COMPLAINTS][DOCTOR_WHAT];

	/* Names and interfaces. */
	char host_name[NODE_INFO_HOST_NAME];
	bool name_resolves, name_is_slow, name_is_loopback;
	char name_addresses[DOCTOR_TEXT];
	struct interfaces all, chosen;
	struct error choice;           /* status ESP_OK: there is one */
	struct doctor_link links[NODE_ADDRESSES];

	/* TCP. */
	char congestion[DOCTOR_TEXT], available[DOCTOR_TEXT];
	uint64_t read_most, write_most; /* bytes that a socket's buffers can grow to */
	uint64_t autotunes, scales, acks_selectively, probes_mtu, somaxconn;
	uint64_t port_first, port_last;
	char reserved_ports[DOCTOR_TEXT];
	enum doctor_firewall firewall;

	/* Cores, memory, limits. */
	uint32_t cores;                /* that this process may use */
	double quota;                  /* cores that its control group may use; 0: no limit */
	double load;                   /* below 0: not known */
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

/* Pure. Every check says something, if it is only that all is well. */
void doctor_judge(const struct doctor_facts *facts, struct doctor_findings *out);

/* Pure: what the output of `nft list ruleset` means for those who connect. */
enum doctor_firewall doctor_read_rules(const char *text);
/* Pure: cores from the text of cpu.max, 0: no limit. */
double doctor_read_quota(const char *text);

#endif
