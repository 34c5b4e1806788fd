/*
 * doctor_finding.h - a finding of espalier doctor: a verdict, the facts, and the remedy. No I/O but for
 * printing.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_FINDING_H
#define TOOLS_DOCTOR_DOCTOR_FINDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_WARN, /* works, but slower or less safely than it could */
	DOCTOR_FAIL, /* a job would not run */
};

#define DOCTOR_CHECK 16u
#define DOCTOR_HOSTS 64u
#define DOCTOR_WHAT 240u
#define DOCTOR_ADVICE 240u

struct doctor_finding {
	uint8_t verdict;           /* enum doctor_verdict */
	char check[DOCTOR_CHECK];  /* "cores"             */
	char hosts[DOCTOR_HOSTS];  /* the hosts that it is about; "": this one, or all */
	char what[DOCTOR_WHAT];
	char advice[DOCTOR_ADVICE]; /* "": none */
};

struct doctor_findings {
	uint32_t count;
	size_t capacity;
	struct doctor_finding *list;
	bool no_memory; /* the list is incomplete */
};

void doctor_findings_fini(struct doctor_findings *findings); /* accepts a zeroed struct */

/* Adds a finding without advice; doctor_advise() adds to the last one. */
void doctor_say(struct doctor_findings *findings, enum doctor_verdict verdict, const char *check, const char *format,
                ...)
	__attribute__((format(printf, 4, 5)));
void doctor_advise(struct doctor_findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));
void doctor_add(struct doctor_findings *findings, const struct doctor_finding *finding);

/* Adds a host's finding; if another host has the same one, adds the host's name to that. */
void doctor_merge(struct doctor_findings *findings, const struct doctor_finding *finding, const char *host);

enum doctor_verdict doctor_worst(const struct doctor_findings *findings);

/* Prints lines for people, or JSON. ESP_EIO. */
ESP_CHECKED enum esp_status doctor_print(const struct doctor_findings *findings, FILE *out);
ESP_CHECKED enum esp_status doctor_print_json(const struct doctor_findings *findings, FILE *out);

/* A finding on the wire. False: the bytes are none. */
#define DOCTOR_FINDING_BYTES (4u + DOCTOR_CHECK + DOCTOR_WHAT + DOCTOR_ADVICE)
void doctor_finding_encode(const struct doctor_finding *finding, uint8_t out[DOCTOR_FINDING_BYTES]);
bool doctor_finding_decode(const uint8_t in[DOCTOR_FINDING_BYTES], struct doctor_finding *out);

#endif
