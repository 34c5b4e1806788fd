/*
 * address.h - an address in text: host:port, 10.0.0.1:29501, [2001:db8::1]:29501.
 *
 * Pure: names are not looked up here (node/net/resolve.h does that). Any thread.
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

/* ESP_EINVAL with the expected form; `what` names the text in the complaint: "ESP_LEADER". */
ESP_CHECKED enum esp_status address_parse(const char *text, const char *what, struct address *out, struct error *err);

/* The same from two texts; an IPv6 address may stand in brackets or not. */
ESP_CHECKED enum esp_status address_from_parts(const char *host, const char *host_what, const char *port,
                                               const char *port_what, struct address *out, struct error *err);

/* "host:port" or "[v6]:port". Returns text. */
const char *address_format(const struct address *address, char text[ADDRESS_TEXT]);

/* True for names and addresses that are this machine's loopback without a lookup: localhost, 127.x.y.z, ::1. */
bool address_is_loopback(const struct address *address);

/* True for an IPv4 or IPv6 address, which needs no resolver. */
bool address_is_numeric(const struct address *address);

/*
 * True if both ends of a TCP connection are this one socket. It happens when a rank connects to a port without
 * a listener and the kernel picks that very port as the near end (TCP's simultaneous open), mostly when nearly
 * all ephemeral ports are in use. The caller closes the connection: there is no listener, and the port must
 * stay free for the rank that is to listen there.
 */
bool address_meets_itself(int fd);

#endif
