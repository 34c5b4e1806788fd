/*
 * fd_exchange.h - how the ranks of a host get the descriptors of each other's shared memory, through the first of them.
 * Control thread only; I/O on sockets that do not block.
 *
 * Each rank sends its own descriptors to the first rank, over a proved connection; when all have come, the first rank
 * sends each rank those of all others. So a host of n ranks needs n - 1 connections for it, and not one for every pair.
 *
 *     rank 5 of the host                       first rank of the host
 *        | -- its own: one message ------------> |
 *        |                                       |   ... until all have come
 *        | <- those of ranks 0, 1, 2 ... ------- |   without its own, as many per message as the kernel allows
 *
 * A message is one byte with descriptors as ancillary data; both ends know their number. Ranks are numbered within the
 * host here.
 */
#ifndef NODE_CONTROL_FD_EXCHANGE_H
#define NODE_CONTROL_FD_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define FD_EXCHANGE_EACH_MOST 65u /* descriptors of a rank */

struct fd_exchange {
	uint32_t self, count; /* this rank's number on the host; number of ranks */
	uint32_t each;        /* descriptors of a rank */
	const int *own;
	int *fds;             /* at the first rank, by rank; -1: has not come, or was taken */
	uint32_t missing;     /* ranks whose descriptors have not come */
};

/* Borrows own. ESP_ENOMEM. */
ESP_CHECKED enum esp_status control_fd_exchange_init(struct fd_exchange *exchange, uint32_t self, uint32_t count,
                                                     const int *own, uint32_t each);
/* Closes descriptors that were not taken. Accepts a zeroed struct. */
void control_fd_exchange_fini(struct fd_exchange *exchange);

/*
 * The functions below return ESP_OK; ESP_PENDING: call again when the socket is readable or writable; ESP_EPEER: the
 * other end is gone; ESP_ELIMIT, ESP_ELINK: with *err. *out_busy: ESP_PENDING because too many descriptors of this user
 * are in flight (the kernel allows RLIMIT_NOFILE of them): try again after other ranks have received theirs.
 */

/* Not the first rank: sends its own. */
enum esp_status control_fd_exchange_leave(const struct fd_exchange *exchange, int socket, bool *out_busy,
                                          struct error *err);
/* Not the first rank: receives; `take` owns each rank's descriptors. *at begins at 0 and ends at count. */
typedef void fd_exchange_fn(void *context, uint32_t rank, const int *fds);
enum esp_status control_fd_exchange_fetch(const struct fd_exchange *exchange, int socket, uint32_t *at,
                                          fd_exchange_fn *take, void *context, struct error *err);

/* The first rank: receives the descriptors of this rank. */
enum esp_status control_fd_exchange_put(struct fd_exchange *exchange, int socket, uint32_t rank, struct error *err);
bool control_fd_exchange_is_full(const struct fd_exchange *exchange);
/* The first rank: sends all but its own to this rank; *at as above. */
enum esp_status control_fd_exchange_hand(const struct fd_exchange *exchange, int socket, uint32_t to, uint32_t *at,
                                         bool *out_busy, struct error *err);
/* The first rank, after all were served: `take` owns the descriptors of the other ranks. */
void control_fd_exchange_clear(struct fd_exchange *exchange, fd_exchange_fn *take, void *context);

#endif
