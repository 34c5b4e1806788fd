/*
 * status_ask.h - asks all ranks of this user on this host for their accounts, at once and with a deadline.
 */
#ifndef TOOLS_DIAGNOSE_STATUS_ASK_H
#define TOOLS_DIAGNOSE_STATUS_ASK_H

#include "tools/diagnose/accounts.h"

/* A rank that listens and does not answer. */
struct status_silent {
	uint64_t instance;
	struct accounts_silent who;
};

struct status_answers {
	struct accounts accounts;
	struct status_silent *silent; /* owned */
	size_t silent_count;
};

/* all_users: other users' ranks too, for root. Returns after patience_ms at the latest. ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status diagnose_status_ask(bool all_users, unsigned patience_ms, struct status_answers *out,
                                                struct error *err);
void diagnose_status_answers_fini(struct status_answers *answers);

/* A line of /proc/net/unix: user, job and rank of a status server's socket; false: another socket. Pure. */
bool diagnose_status_parse_socket(const char *line, uint32_t *out_user, uint64_t *out_instance, uint32_t *out_rank);

/* The body of a complete answer; false: it is none, or an error. Pure. */
bool diagnose_status_parse_answer(const char *text, size_t size, const char **out_body, size_t *out_size);

#endif
