/*
 * accounts.h - the accounts of ranks, grouped by job, and how they are printed.
 */
#ifndef TOOLS_DIAGNOSE_ACCOUNTS_H
#define TOOLS_DIAGNOSE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "report/json.h"
#include "tools/diagnose/verdict.h"

struct accounts {
	struct account *list; /* owned; sorted by diagnose_accounts_sort() */
	size_t count, capacity;
};

/* The accounts of one run of a job: a part of a sorted list. */
struct accounts_job {
	const struct account *list;
	uint32_t count;
	uint64_t latest_ns; /* of the latest one, since 1970 */
};

void diagnose_accounts_fini(struct accounts *accounts);
/* Takes the account, also on failure: ESP_ENOMEM. */
ESP_CHECKED enum esp_status diagnose_accounts_add(struct accounts *accounts, struct account *account);
/* Sorts by job and rank; of two accounts of one rank the later one stays. */
void diagnose_accounts_sort(struct accounts *accounts);
/* The job that begins at *at; moves *at to the next one. False: there is none. */
bool diagnose_accounts_next(const struct accounts *accounts, size_t *at, struct accounts_job *out);

/* Writes "training (3f2a...), 8 ranks". Returns text. */
#define ACCOUNTS_TITLE 200u
const char *diagnose_accounts_title(const struct accounts_job *job, char text[ACCOUNTS_TITLE]);

/* A rank of this host that does not answer. */
struct accounts_silent {
	uint32_t rank, pid; /* pid 0: unknown */
};

/* Prints a row per rank. silent: ranks that did not answer, in order, silent_count of them. */
ESP_CHECKED enum esp_status diagnose_accounts_print(const struct accounts_job *job,
                                                    const struct accounts_silent *silent, uint32_t silent_count);
/* The same with the diagnosis, as a JSON object. */
void diagnose_accounts_print_json(const struct accounts_job *job, const struct verdict *verdict,
                                  const struct accounts_silent *silent, uint32_t silent_count, struct json *json);

#endif
