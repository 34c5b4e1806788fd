/*
 * doctor_reach.h - ranks try to reach each other: one side tries, the other answers.
 *
 * They use the port and addresses that a job would use, and the same handshake, so that they find what a job
 * would find. After the handshake a connection carries requests of 16 bytes (send the time; so many bytes
 * follow) and answers of 16 bytes.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_REACH_H
#define TOOLS_DOCTOR_DOCTOR_REACH_H

#include <sys/socket.h>

#include "node/net/listen.h"
#include "tools/doctor/doctor_pair.h"

struct doctor_server;

/* Answers on threads of its own until doctor_server_stop(). Borrows its arguments. NULL: no memory or threads. */
struct doctor_server *doctor_server_start(const struct join_config *join, const struct listener *listener);
void doctor_server_stop(struct doctor_server *server);

/* How long large packets may take to arrive. */
struct doctor_patience {
	uint64_t large_ns;  /* the first time */
	uint64_t again_ns;  /* the second time, on another connection */
	uint64_t search_ns; /* per size, in the search for the largest */
};
extern const struct doctor_patience doctor_patience; /* the default */

/* Tries all addresses: ways, by rank, NODE_ADDRESSES each. Blocks for seconds per address that does not answer. */
void doctor_reach_all(const struct join_config *join, const struct roster *roster, const struct interfaces *own,
                      uint32_t segment_bytes, const struct doctor_patience *patience, struct doctor_way *ways);

/* ---- for doctor_job.c and doctor_gather.c, too ---- */

/* Returns a connected non-blocking socket, or -1 and errno. segment_bytes 0: the kernel's choice. */
int doctor_connect(const struct sockaddr *name, socklen_t length, uint32_t segment_bytes, uint64_t until_ns);

#endif
