/*
 * doctor_pair.h - one rank's attempts to reach another, on the wire and as findings. Pure.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_PAIR_H
#define TOOLS_DOCTOR_DOCTOR_PAIR_H

#include "rank/join/join.h"
#include "tools/doctor/doctor_finding.h"

/* The result at one address of a rank. */
enum doctor_outcome {
	WAY_UNTRIED,
	WAY_FINE,
	WAY_SILENT,     /* no answer: packets are dropped on the way, or no host is there */
	WAY_REFUSED,    /* answered with a refusal                                      */
	WAY_NO_ROUTE,   /* the kernel has no route, or a router reports none */
	WAY_STRANGER,   /* another process answers */
	WAY_LARGE_LOST, /* small packets arrive, large ones do not                      */
};
#define WAY_OUTCOMES 7u

struct doctor_way {
	uint8_t outcome;       /* enum doctor_outcome                               */
	uint32_t rtt_us;       /* shortest round trip */
	int64_t offset_us;     /* the other clock minus this one */
	uint32_t path_mtu;     /* the kernel's path MTU towards that rank */
	uint32_t largest;      /* largest packet that arrives, if large ones are lost */
};

#define DOCTOR_WAY_BYTES 24u
void doctor_way_encode(const struct doctor_way *way, uint8_t out[DOCTOR_WAY_BYTES]);
bool doctor_way_decode(const uint8_t in[DOCTOR_WAY_BYTES], struct doctor_way *out);

/* A rank's report to rank 0: findings about its host, and a way for each address of each rank. */
#define DOCTOR_REPORT_FINDINGS 48u
struct doctor_report {
	uint32_t finding_count;
	struct doctor_finding findings[DOCTOR_REPORT_FINDINGS];
	struct doctor_way *ways; /* by rank, NODE_ADDRESSES each; the caller's memory */
};
uint32_t doctor_report_bytes(uint32_t size);
void doctor_report_encode(const struct doctor_report *report, uint32_t size, uint8_t *out);
/* Decodes into out->ways, too. False: the bytes are no report. */
bool doctor_report_decode(const uint8_t *in, uint32_t size, struct doctor_report *out);

/* True if one rank tries to reach another: on other hosts; in large jobs only between the first ranks of hosts. */
bool doctor_tries(const struct roster *roster, uint32_t from, uint32_t to);

/* ways: by rank; NULL: that rank has not reported. Returns true if all ranks reach each other. */
bool doctor_judge_pairs(const struct roster *roster, struct doctor_way *const *ways, struct doctor_findings *out);

#endif
