/*
 * route.h - from which address of this host to which address of another one.
 *
 * A *rail* is one interface of every host of a job, such that they reach each other: the same
 * network, or the same place in each host's list if somebody says how many there are. A job with
 * several rails uses them together, each in proportion to its weight. All ranks derive the same
 * rails from the roster; rails follow the order of the leader's card.
 *
 * Pure.
 */
#ifndef NODE_NET_ROUTE_H
#define NODE_NET_ROUTE_H

#include "node/net/interface.h"
#include "node/net/roster.h"

#define RAILS_MOST NODE_ADDRESSES

struct rails {
	uint32_t count;      /* 1: any address will do */
	uint8_t *address_of; /* by rank and rail: which of the card's addresses; NULL if there is one rail */
};

/*
 * wanted: how many; 0: all that follow from the networks of the cards. More than 1: interfaces whose networks differ are matched
 * in their order, too. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status rails_find(const struct roster *roster, uint32_t wanted, struct rails *out);
void rails_fini(struct rails *rails); /* accepts a zeroed struct */
const struct node_address *rails_address(const struct rails *rails, const struct roster *roster, uint32_t rank, uint32_t rail);

/* ---- weights ---- */

#define RAIL_WEIGHT_MOST 64u /* of the fastest */
#define RAIL_WEIGHT_LEAST 4u /* slower ones are not worth their messages: they get 0 */

/* Weights from what was measured, in bytes a second: whole numbers, so that all ranks have the same. All 0: all stay 0. */
void rails_weigh(const uint64_t *rates, uint32_t count, uint32_t *out_weights);

/* "5:1" for count rails. ESP_EINVAL. */
ESP_CHECKED enum esp_status rails_parse_weights(const char *text, uint32_t count, uint32_t *out_weights, struct error *err);

/* ---- one connection ---- */

#define ROUTE_ANY UINT32_MAX /* instead of a rail */

struct route {
	struct node_address to;
	uint32_t scope;             /* interface, for a link-local address    */
	bool has_source;            /* bind to that before connecting         */
	struct node_address source;
	char device[INTERFACE_NAME];   /* and to that: it is on its very network; "": as the kernel routes */
};

/*
 * The attempt-th way from self to a rank: with ROUTE_ANY its addresses in turn; on a rail the address there, and when that has failed
 * a few times the others. False: it has no address.
 */
bool route_find(const struct rails *rails, const struct roster *roster, const struct interfaces *own, uint32_t self, uint32_t rank,
                uint32_t rail, uint32_t attempt, struct route *out);

/* "10.0.0.2 port 4711 through eth1" */
#define ROUTE_TEXT 96u
const char *route_text(const struct route *route, uint16_t port, const struct interfaces *own, char text[ROUTE_TEXT]);

#endif
