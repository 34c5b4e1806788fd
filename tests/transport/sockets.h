/*
 * sockets.h - connected pairs of stream sockets, of every kind that the TCP transport takes.
 */
#ifndef TESTS_TRANSPORT_SOCKETS_H
#define TESTS_TRANSPORT_SOCKETS_H

#include <stdbool.h>

enum socket_kind { SOCKET_UNIX, SOCKET_IPV4, SOCKET_IPV6, SOCKET_KIND_COUNT };

const char *socket_kind_name(enum socket_kind kind);

/* Does this machine have it? (Containers without IPv6 exist.) */
bool socket_kind_works(enum socket_kind kind);

/* A pair of connected sockets; ends the test if that fails. From any thread. */
void socket_pair(enum socket_kind kind, int out[2]);

/* The next close() sends a reset (TCP only). */
void socket_will_reset(int fd);

/* Writes all of it, waiting for room; false: the other end is gone. */
bool socket_write(int fd, const void *bytes, unsigned count);

#endif
