/*
 * interface.h - the choice of the network interfaces that a job uses.
 *
 * A filter has the form that NCCL has:
 *
 *     eth,ib          interfaces whose names begin with eth or ib
 *     =eth0,eth1      interfaces of exactly these names
 *     ^docker,virbr   all others
 *     ^=eth2          all but the one of exactly this name
 *
 * Without a filter, only the best kind present is used: networks before bridges to containers of this host
 * (docker0) before link-local addresses before loopback. With a filter that excludes, loopback and link-local
 * addresses are used only if nothing else is left. A filter that names an interface gets it.
 *
 * Pure, but for interfaces_list(), which asks the kernel. Any thread.
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

#define INTERFACE_NAME 16u  /* bytes of a name with its NUL: the kernel's IFNAMSIZ */
#define INTERFACE_NAMES 16u /* most names in a filter */
#define INTERFACES_MOST 256u /* most addresses of a host that are considered */

struct interface_filter {
	bool excludes, exact;
	uint32_t count; /* 0: there is no filter */
	char names[INTERFACE_NAMES][INTERFACE_NAME];
};

/* An address of an interface. */
struct interface {
	char name[INTERFACE_NAME];
	uint32_t index; /* the kernel's number of the interface */
	unsigned flags; /* IFF_UP ... */
	struct node_address address; /* .interface is not filled in */
};

struct interfaces {
	uint32_t count;
	struct interface list[INTERFACES_MOST];
};

/* The use of an address to other hosts, least first. */
enum interface_worth {
	INTERFACE_USELESS,    /* down, or neither IPv4 nor IPv6 */
	INTERFACE_LOOPBACK,
	INTERFACE_LINK_LOCAL, /* no router passes it on         */
	INTERFACE_VIRTUAL,    /* a bridge to containers or virtual machines of this host */
	INTERFACE_NETWORK,
};

/* An empty text is no filter. ESP_EINVAL with the expected form. */
ESP_CHECKED enum esp_status interface_filter_parse(const char *text, struct interface_filter *out, struct error *err);

/* True if the filter admits an interface of that name; no filter admits all. */
bool interface_filter_takes(const struct interface_filter *filter, const char *name);

enum interface_worth interface_worth(const struct interface *interface);

/* Lists the addresses of this host in the order of the kernel, by interface. ESP_EIO. */
ESP_CHECKED enum esp_status interfaces_list(struct interfaces *out, struct error *err);

/*
 * Chooses at most NODE_ADDRESSES of *all and numbers their interfaces (address.interface): first one address of
 * each family and interface, then further addresses while there is room. ESP_EINVAL: none fits; the error lists
 * all.
 */
ESP_CHECKED enum esp_status interfaces_choose(const struct interfaces *all, const struct interface_filter *filter,
                                              enum conf_family family, struct interfaces *out, struct error *err);

/* Returns the interface that has the address; NULL: none. */
const struct interface *interfaces_find(const struct interfaces *all, const struct node_address *address);

/* ---- addresses of node infos ---- */

/* False: neither IPv4 nor IPv6. An IPv4-mapped IPv6 address becomes IPv4. */
bool node_address_from(const struct sockaddr *name, struct node_address *out);
/*
 * Fills in a name for bind() and connect(), and returns its length. scope: interface index, for a link-local
 * address.
 */
uint32_t node_address_to(const struct node_address *address, uint16_t port, uint32_t scope,
                         struct sockaddr_storage *out);
bool node_address_same(const struct node_address *a, const struct node_address *b); /* compares family and bytes only */
/* True if b is in the network of a: its first a->prefix bits are the same. */
bool node_address_same_network(const struct node_address *a, const struct node_address *b);
bool node_address_is_link_local(const struct node_address *address);
bool node_address_is_loopback(const struct node_address *address);
#define NODE_ADDRESS_TEXT 46u
const char *node_address_text(const struct node_address *address, char text[NODE_ADDRESS_TEXT]);

#endif
