/*
 * interface.h - which network interfaces of this host a job uses.
 *
 * A filter is written as NCCL's users write it:
 *
 *     eth,ib          those whose names begin so
 *     =eth0,eth1      those of these names
 *     ^docker,virbr   all others
 *     ^=eth2          the same of whole names
 *
 * Without a filter, the best kind that there is: networks, before bridges to containers of this
 * host (docker0), before those that only have link-local addresses, before loopback. With one
 * that excludes, loopback and link-local addresses are still taken only if nothing else is left; one that names an interface gets it.
 *
 * Everything is pure but for interfaces_list().
 */
#ifndef NODE_NET_INTERFACE_H
#define NODE_NET_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/error.h"
#include "wire/rendezvous_msg.h"

struct sockaddr;
struct sockaddr_storage;

#define INTERFACE_NAME 16u  /* bytes of a name, with the NUL: the kernel's IFNAMSIZ */
#define INTERFACE_NAMES 16u /* most names in a filter      */
#define INTERFACES_MOST 256u /* addresses that are looked at */

struct interface_filter {
	bool excludes, exact;
	uint32_t count; /* 0: there is no filter */
	char names[INTERFACE_NAMES][INTERFACE_NAME];
};

/* An address of an interface. */
struct interface {
	char name[INTERFACE_NAME];
	uint32_t index; /* the kernel's number of it */
	unsigned flags; /* IFF_UP ... */
	struct node_address address; /* .interface is not known yet */
};

struct interfaces {
	uint32_t count;
	struct interface list[INTERFACES_MOST];
};

/* What an address is worth to others. */
enum interface_worth {
	INTERFACE_USELESS,    /* down, or neither IPv4 nor IPv6 */
	INTERFACE_LOOPBACK,
	INTERFACE_LINK_LOCAL, /* no router passes it on         */
	INTERFACE_VIRTUAL,    /* a bridge to containers or virtual machines of this host */
	INTERFACE_NETWORK,
};

/* An empty text is no filter. ESP_EINVAL with what was expected. */
ESP_CHECKED enum esp_status interface_filter_parse(const char *text, struct interface_filter *out, struct error *err);

/* Whether the filter lets an interface of that name through; without a filter all are. */
bool interface_filter_takes(const struct interface_filter *filter, const char *name);

enum interface_worth interface_worth(const struct interface *interface);

/* The addresses of this host as the kernel has them, by interface. ESP_EIO. */
ESP_CHECKED enum esp_status interfaces_list(struct interfaces *out, struct error *err);

/*
 * Those of *all that are to be used, each interface with a number of its own (address.interface), at most NODE_ADDRESSES: first
 * of each interface one address of each family, then what room is left for. ESP_EINVAL: there is none; the error names
 * those that there are.
 */
ESP_CHECKED enum esp_status interfaces_choose(const struct interfaces *all, const struct interface_filter *filter,
                                              enum conf_family family, struct interfaces *out, struct error *err);

/* Which of them has the address; NULL: none. */
const struct interface *interfaces_find(const struct interfaces *all, const struct node_address *address);

/* ---- addresses of cards ---- */

/* False: neither IPv4 nor IPv6. An IPv4 address that is mapped into IPv6 becomes what it is. */
bool node_address_from(const struct sockaddr *name, struct node_address *out);
/* For bind() and connect(); scope: the interface's index, for a link-local address. */
uint32_t node_address_to(const struct node_address *address, uint16_t port, uint32_t scope, struct sockaddr_storage *out);
bool node_address_same(const struct node_address *a, const struct node_address *b); /* bytes and family alone */
/* Whether both are in the network of a: its first a->prefix bits. */
bool node_address_same_network(const struct node_address *a, const struct node_address *b);
bool node_address_is_link_local(const struct node_address *address);
bool node_address_is_loopback(const struct node_address *address);
#define NODE_ADDRESS_TEXT 46u
const char *node_address_text(const struct node_address *address, char text[NODE_ADDRESS_TEXT]);

#endif
