/*
 * account.h - what one rank knows of itself and of the others at one moment.
 *
 * The flight recorder's file and the answer to `espalier status` are accounts, written as JSON; src/tools/diagnose reads
 * them again and finds out who holds a job up. docs/observing.md describes the form.
 */
#ifndef NODE_OBSERVE_ACCOUNT_H
#define NODE_OBSERVE_ACCOUNT_H

#include <stdio.h>

#include "base/error.h"
#include "node/observe/record.h"

#define ACCOUNT_FORM 1u /* raised when a reader of the one before would go wrong */
#define ACCOUNT_JOB 128u
#define ACCOUNT_HOST 64u
#define ACCOUNT_WORDS 160u
#define ACCOUNT_REASON 256u

enum account_fate {
	ACCOUNT_LEFT = 1,   /* in good order                        */
	ACCOUNT_SILENT = 2, /* given up, as nothing was heard of it */
	ACCOUNT_DIED = 3,
};

struct account_gone {
	uint32_t rank;
	uint8_t fate;    /* enum account_fate                 */
	uint64_t at_ns;  /* when this rank heard of it        */
	char host[ACCOUNT_HOST];
};

struct account_group {
	uint32_t channel, first; /* these two name it                           */
	uint32_t size;
	uint32_t *ranks;         /* by place; owned. NULL: all ranks of the job */
	uint64_t calls;          /* that this rank has made                     */
	int32_t failed;          /* enum esp_status                             */
	uint64_t failed_ns;      /* when                                        */
	int32_t culprit;         /* whose fault that is; -1: nobody's           */
	char reason[ACCOUNT_REASON];
};

struct account_call {
	struct record record;
	uint32_t digest;           /* of all that must be alike on all ranks */
	char plan[32];
	char words[ACCOUNT_WORDS]; /* "allreduce of 1024 f32, sum" */
};

struct account {
	char job[ACCOUNT_JOB];    /* its name; "" if it has none                            */
	uint64_t instance;        /* the same on all ranks of this run, and on no others    */
	uint32_t rank, size;
	uint32_t pid;
	char host[ACCOUNT_HOST];
	uint64_t now_ns;          /* as the times of calls                                  */
	uint64_t real_ns;         /* the same moment since 1970                             */
	uint64_t joins_since_ns;  /* it has not joined yet, and has tried since; 0: it has  */
	char joins_words[ACCOUNT_REASON]; /* whom it waits for meanwhile                    */
	uint64_t forgotten;       /* calls before those below                               */
	struct account_gone *gone; /* ranks that have left or died                          */
	uint32_t gone_count;
	struct account_group *groups;
	uint32_t group_count;
	struct account_call *calls; /* those that have ended in the order of their ends, then those under way */
	uint32_t call_count;
};

/* "left", "silent", "died" */
const char *account_fate_name(enum account_fate fate);

/* Frees what it owns. Accepts a zeroed struct. */
void account_fini(struct account *account);

/* ESP_EIO. */
ESP_CHECKED enum esp_status account_write(const struct account *account, FILE *out);

#endif
