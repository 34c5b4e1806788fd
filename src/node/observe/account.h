/*
 * account.h - the state of one rank and its peers at one moment, as that rank knows it; written as JSON. A plain
 * value; any thread, no I/O but the FILE.
 *
 * The flight recorder's file and the answer to `espalier status` are accounts; src/tools/diagnose reads them and
 * works out which rank holds a job up. docs/observing.md describes the format.
 */
#ifndef NODE_OBSERVE_ACCOUNT_H
#define NODE_OBSERVE_ACCOUNT_H

#include <stdio.h>

#include "base/error.h"
#include "node/observe/record.h"

#define ACCOUNT_FORM 1u /* raised when a reader of the previous format would misread this one */
#define ACCOUNT_JOB 128u
#define ACCOUNT_HOST 64u
#define ACCOUNT_WORDS 160u
#define ACCOUNT_REASON 256u

enum account_fate {
	ACCOUNT_LEFT = 1,   /* by itself, after esp_fini() */
	ACCOUNT_SILENT = 2, /* considered dead, because nothing was heard of it */
	ACCOUNT_DIED = 3,
};

struct account_gone {
	uint32_t rank;
	uint8_t fate;    /* enum account_fate */
	uint64_t at_ns;  /* when this rank learned of it */
	char host[ACCOUNT_HOST];
};

struct account_group {
	uint32_t channel, first; /* channel and first identify the communicator */
	uint32_t size;
	uint32_t *ranks;         /* of the members, in order; owned. NULL: all ranks of the job */
	uint64_t calls;          /* started by this rank */
	int32_t failed;          /* enum esp_status */
	uint64_t failed_ns;      /* when */
	int32_t culprit;         /* the rank at fault; -1: none is known */
	char reason[ACCOUNT_REASON];
};

struct account_call {
	struct record record;
	uint32_t digest;           /* of all arguments that must be the same on all ranks */
	char plan[32];
	char words[ACCOUNT_WORDS]; /* "allreduce of 1024 f32, sum" */
};

struct account {
	char job[ACCOUNT_JOB];    /* its name; "" if it has none */
	uint64_t instance;        /* the same on all ranks of this run of the job, and different in every other run */
	uint32_t rank, size;
	uint32_t pid;
	char host[ACCOUNT_HOST];
	uint64_t now_ns;          /* on the clock of the times of calls */
	uint64_t real_ns;         /* the same moment, in ns since 1970 */
	uint64_t joins_since_ns;  /* the rank is still joining, since this time; 0: it has joined */
	char joins_words[ACCOUNT_REASON]; /* the peers or the address that it waits for */
	uint64_t forgotten;       /* number of earlier calls that are no longer in `calls` */
	struct account_gone *gone; /* ranks that have left or died */
	uint32_t gone_count;
	struct account_group *groups;
	uint32_t group_count;
	struct account_call *calls; /* ended ones in the order of their ends, then calls under way */
	uint32_t call_count;
};

/* "left", "silent", "died" */
const char *account_fate_name(enum account_fate fate);

/* Frees what it owns. Accepts a zeroed struct. */
void account_fini(struct account *account);

/* ESP_EIO. */
ESP_CHECKED enum esp_status account_write(const struct account *account, FILE *out);

#endif
