/*
 * address.h - where the leader is, as people write it: host:port, 10.0.0.1:29501, [2001:db8::1]:29501.
 *
 * Pure: names are not looked up here (node/net/resolve.h does that).
 */
#ifndef NODE_NET_ADDRESS_H
#define NODE_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ADDRESS_HOST 256u /* with the NUL; a name has at most 253 bytes */
#define ADDRESS_TEXT (ADDRESS_HOST + 10u)

struct address {
	char host[ADDRESS_HOST]; /* a name or a number, without brackets */
	uint16_t port;           /* never 0 */
};

/* ESP_EINVAL with what was expected; what is the name of the text in the complaint: "ESP_LEADER". */
ESP_CHECKED enum esp_status address_parse(const char *text, const char *what, struct address *out, struct error *err);

/* The same from two texts; an IPv6 address may stand in brackets or not. */
ESP_CHECKED enum esp_status address_from_parts(const char *host, const char *host_what, const char *port,
                                               const char *port_what, struct address *out, struct error *err);

/* "host:port" or "[v6]:port". Returns text. */
const char *address_format(const struct address *address, char text[ADDRESS_TEXT]);

/* Whether the host is this machine's loopback by its very name: localhost, 127.x.y.z, ::1. */
bool address_is_loopback(const struct address *address);

/* Whether the host is a number, so that nobody has to be asked for it. */
bool address_is_numeric(const struct address *address);

/*
 * Is this connection's other end its own? So it is where nobody listens at a port that the kernel has just taken for the near end, which happens once nearly
 * all of those ports are in use: TCP lets both ends begin. It means that nobody is there, and must not keep the port from whoever is to listen.
 */
bool address_meets_itself(int fd);

#endif
