/*
 * doctor_reach.h - ranks that try to reach each other: one side tries, the other answers.
 *
 * On the port and addresses that a job would use, with the proof that a job asks for, so that what is found is
 * what a job would find. After the proof a connection carries requests of 16 bytes (how late is it; here come so many
 * bytes) and answers of 16 bytes.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_REACH_H
#define TOOLS_DOCTOR_DOCTOR_REACH_H

#include <sys/socket.h>

#include "node/net/listen.h"
#include "tools/doctor/doctor_pair.h"

struct doctor_server;

/* Answers on threads of its own until doctor_server_stop(). Borrows all. NULL: no memory or threads. */
struct doctor_server *doctor_server_start(const struct join_config *join, const struct listener *listener);
void doctor_server_stop(struct doctor_server *server);

/* How long large packets may take to arrive. */
struct doctor_patience {
	uint64_t large_ns;  /* the first time                               */
	uint64_t again_ns;  /* if they did not, on another connection       */
	uint64_t search_ns; /* of each size that is tried to find the largest */
};
extern const struct doctor_patience doctor_patience; /* the usual one */

/* Tries all that is to be tried: ways, by rank, NODE_ADDRESSES each. Takes as long as it takes: seconds per address without answer. */
void doctor_reach_all(const struct join_config *join, const struct roster *roster, const struct interfaces *own,
                      uint32_t segment_bytes, const struct doctor_patience *patience, struct doctor_way *ways);

/* ---- for doctor_job.c, too ---- */

/* Connected and blocking-free, or -1 and errno. segment_bytes 0: the kernel's choice. */
int doctor_connect(const struct sockaddr *name, socklen_t length, uint32_t segment_bytes, uint64_t until_ns);

#endif
