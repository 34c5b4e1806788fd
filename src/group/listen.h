/*
 * listen.h - the one port of a rank, where all others reach it, and what its card says about that.
 */
#ifndef GROUP_LISTEN_H
#define GROUP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "wire/store_msg.h"

/*
 * A listening socket (non-blocking, close-on-exec) on a port that the kernel chooses, on
 * IPv6 and IPv4 where both exist; the caller closes it. Fills in the port and addresses of
 * the card. loopback_only: nobody outside of this machine can connect.
 */
ESP_CHECKED enum esp_status group_listen(bool loopback_only, int *out_fd, struct card *card, struct error *err);

/* Fills in who and where this process is: host id, host name, pid, cores. */
void group_describe_host(struct card *card);

/* Puts an address first, as it is known to work. Loopback is passed over: it is only known to work here. */
void group_prefer_address(struct card *card, const struct sockaddr *address);

/* What an interface is worth to others: 0 nothing (link-local, down), 1 loopback, 2 virtual bridges, 3 a network. */
unsigned group_interface_worth(const char *name, unsigned flags, const struct sockaddr *address);

#endif
