/*
 * doctor_pair.h - what one rank found on its way to another, on the wire and as findings. Pure.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_PAIR_H
#define TOOLS_DOCTOR_DOCTOR_PAIR_H

#include "rank/join/join.h"
#include "tools/doctor/doctor_finding.h"

/* How it went at one address of a rank. */
enum doctor_outcome {
	WAY_UNTRIED,
	WAY_FINE,
	WAY_SILENT,     /* no answer: something drops what is sent, or there is nobody */
	WAY_REFUSED,    /* answered with a refusal                                      */
	WAY_NO_ROUTE,   /* the kernel knows no way there, or a router says so           */
	WAY_STRANGER,   /* somebody answers who is not that rank                        */
	WAY_LARGE_LOST, /* small packets arrive, large ones do not                      */
};
#define WAY_OUTCOMES 7u

struct doctor_way {
	uint8_t outcome;       /* enum doctor_outcome                               */
	uint32_t rtt_us;       /* the shortest round trip                           */
	int64_t offset_us;     /* the other clock minus ours                        */
	uint32_t path_mtu;     /* as the kernel knows it, towards that rank         */
	uint32_t largest;      /* packet that arrives, if large ones get lost       */
};

#define DOCTOR_WAY_BYTES 24u
void doctor_way_encode(const struct doctor_way *way, uint8_t out[DOCTOR_WAY_BYTES]);
bool doctor_way_decode(const uint8_t in[DOCTOR_WAY_BYTES], struct doctor_way *out);

/* What a rank tells rank 0: so many findings about its host, and a way for each address of each rank. */
#define DOCTOR_REPORT_FINDINGS 48u
struct doctor_report {
	uint32_t finding_count;
	struct doctor_finding findings[DOCTOR_REPORT_FINDINGS];
	struct doctor_way *ways; /* by rank, NODE_ADDRESSES each; the caller's */
};
uint32_t doctor_report_bytes(uint32_t size);
void doctor_report_encode(const struct doctor_report *report, uint32_t size, uint8_t *out);
/* Into out->ways, too. False: the bytes are no report. */
bool doctor_report_decode(const uint8_t *in, uint32_t size, struct doctor_report *out);

/* Whether a rank tries to reach another one: on other hosts, and in large jobs the first of each host the first of each. */
bool doctor_tries(const struct roster *roster, uint32_t from, uint32_t to);

/* ways: of all ranks, by rank; NULL: has not reported. True: everybody reaches everybody. */
bool doctor_judge_pairs(const struct roster *roster, struct doctor_way *const *ways, struct doctor_findings *out);

#endif
