/*
 * fd_exchange.h - how the ranks of a host get the descriptors of each other's memory: over a exchange at the first of them.
 *
 * Each leaves its own there, over a connection that has been proved, and when all have come the first rank hands everybody those of all
 * others. So a host of n ranks needs n - 1 connections for it, and not one for every two of its ranks.
 *
 *     rank 5 of the host                       first rank of the host
 *        | -- its own: one message ------------> |
 *        |                                       |   ... until all have come
 *        | <- those of ranks 0, 1, 2 ... ------- |   without its own, as many in a message as the kernel lets through
 *
 * What travels is a byte and the descriptors beside it, of a number that both ends know. Ranks are counted within the host here.
 * Used by the control's thread alone; sockets do not block.
 */
#ifndef NODE_CONTROL_FD_EXCHANGE_H
#define NODE_CONTROL_FD_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define FD_EXCHANGE_EACH_MOST 65u /* descriptors of a rank */

struct fd_exchange {
	uint32_t self, count; /* our number, how many there are */
	uint32_t each;        /* descriptors of a rank          */
	const int *own;
	int *fds;             /* the first rank's: by rank; -1: has not come, or was handed out */
	uint32_t missing;     /* who has not come               */
};

/* Borrows own. ESP_ENOMEM. */
ESP_CHECKED enum esp_status fd_exchange_init(struct fd_exchange *exchange, uint32_t self, uint32_t count, const int *own, uint32_t each);
void fd_exchange_fini(struct fd_exchange *exchange); /* closes what is on it; accepts a zeroed struct */

/*
 * What the following return: ESP_OK; ESP_PENDING: when the socket can be read or written; ESP_EPEER: the other end is gone;
 * ESP_ELIMIT, ESP_ELINK: *err says what is wrong. *out_busy: ESP_PENDING, as too many descriptors of this user are on their way (the kernel
 * allows RLIMIT_NOFILE of them): try again when others have taken theirs.
 */

/* Others: leaves their own. */
enum esp_status fd_exchange_leave(const struct fd_exchange *exchange, int socket, bool *out_busy, struct error *err);
/* Others: what has come, rank by rank; takes the descriptors. *at, 0 in the beginning, is count when all have. */
typedef void fd_exchange_fn(void *context, uint32_t rank, const int *fds);
enum esp_status fd_exchange_fetch(const struct fd_exchange *exchange, int socket, uint32_t *at, fd_exchange_fn *take, void *context, struct error *err);

/* The first rank: what this rank has left. */
enum esp_status fd_exchange_put(struct fd_exchange *exchange, int socket, uint32_t rank, struct error *err);
bool fd_exchange_is_full(const struct fd_exchange *exchange);
/* The first rank: hands all to this rank; *at as above. */
enum esp_status fd_exchange_hand(const struct fd_exchange *exchange, int socket, uint32_t to, uint32_t *at, bool *out_busy, struct error *err);
/* The first rank, after all were served: takes those of the others. */
void fd_exchange_clear(struct fd_exchange *exchange, fd_exchange_fn *take, void *context);

#endif
