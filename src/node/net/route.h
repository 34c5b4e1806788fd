/*
 * route.h - the choice of local and remote address for a connection, and the rails of a job.
 *
 * A *rail* is one interface of every host of a job, such that they reach each other: interfaces in the same
 * network, or, if the number of rails is given, interfaces at the same place in each host's list. A job spreads
 * its data over its rails in proportion to their weights. All ranks derive the same rails from the roster, in
 * the order of the leader's addresses.
 *
 * Pure. Any thread.
 */
#ifndef NODE_NET_ROUTE_H
#define NODE_NET_ROUTE_H

#include "node/net/interface.h"
#include "node/net/roster.h"

#define RAILS_MOST NODE_ADDRESSES

struct rails {
	uint32_t count;      /* 1: connections use any address */
	uint8_t *address_of; /* by rank and rail: index into the node info's addresses; NULL if there is one rail */
};

/*
 * wanted: number of rails; 0: all that follow from the networks of the node infos. More than 1: interfaces in
 * different networks are matched too, in their order. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status rails_find(const struct roster *roster, uint32_t wanted, struct rails *out);
void rails_fini(struct rails *rails); /* accepts a zeroed struct */
const struct node_address *rails_address(const struct rails *rails, const struct roster *roster, uint32_t rank,
                                         uint32_t rail);

/* ---- weights ---- */

#define RAIL_WEIGHT_MOST 64u /* of the fastest rail */
#define RAIL_WEIGHT_LEAST 4u /* a slower rail costs more in messages than it carries: it gets 0 */

/* Weights from measured rates in bytes/s, rounded to integers so that all ranks agree. All rates 0: all weights 0. */
void rails_weigh(const uint64_t *rates, uint32_t count, uint32_t *out_weights);

/* Parses weights such as "5:1" for `count` rails. ESP_EINVAL. */
ESP_CHECKED enum esp_status rails_parse_weights(const char *text, uint32_t count, uint32_t *out_weights,
                                                struct error *err);

/* ---- one connection ---- */

#define ROUTE_ANY UINT32_MAX /* instead of a rail: any address */

struct route {
	struct node_address to;
	uint32_t scope;             /* interface index, for a link-local address */
	bool has_source;            /* bind to `source` before connecting */
	struct node_address source;
	char device[INTERFACE_NAME];   /* bind to this interface, too; "": as the kernel routes */
};

/*
 * The route of the attempt-th try from self to a rank: with ROUTE_ANY its addresses in turn; on a rail the
 * address there, and after RAIL_ATTEMPTS failures the others in turn. False: the rank has no address.
 */
bool route_find(const struct rails *rails, const struct roster *roster, const struct interfaces *own, uint32_t self,
                uint32_t rank, uint32_t rail, uint32_t attempt, struct route *out);

/* Writes "10.0.0.2 port 4711 through eth1". Returns text. */
#define ROUTE_TEXT 96u
const char *route_text(const struct route *route, uint16_t port, const struct interfaces *own, char text[ROUTE_TEXT]);

#endif
