/*
 * switch_state.h - the state of a switch in user space; private to switch_*.c.
 */
#ifndef SWITCH_SERVER_SWITCH_STATE_H
#define SWITCH_SERVER_SWITCH_STATE_H

#include <signal.h>

#include "base/loop.h"
#include "switch/server/switch_server.h"
#include "switch/step/step.h"
#include "switch/trains/trains.h"

#define SWITCH_MEMBERS ATP_CHILDREN_MAX /* of a flow */
#define SWITCH_FLOWS 4096u              /* registered at once */
#define SWITCH_BUCKETS 1024u
#define SWITCH_SILENT_NS (5 * UINT64_C(1000000000)) /* a member that says no hello for so long is forgotten */

/* An address, without its port, of IPv6 the first half: quotas go by it. Lives as long as it has members, slots or
 * flows. */
struct switch_host {
	struct switch_host *next;
	union trains_address address;
	uint32_t members, slots;
	uint32_t flows; /* that it has opened */
};

struct switch_member {
	struct trains_peer peer;
	struct switch_host *host;
	uint64_t heard_ns; /* its latest hello */
	uint16_t number;
};

struct switch_flow {
	struct switch_flow *next; /* in its bucket */
	uint64_t id;              /* only members know it */
	struct switch_host *opener;
	uint32_t slots;           /* that it holds */
	uint64_t began_ns, used_ns; /* first hello; latest packet of data */
	uint32_t count;
	struct switch_member *members[SWITCH_MEMBERS]; /* by number */
	uint64_t step[STEP_EVENTS]; /* counters */
	uint64_t contributions;     /* gradients that arrived */
	uint64_t over_quota;        /* of those, without a slot as their address has enough */
	uint64_t results;           /* packets of sums that went to members */
	uint64_t last_contributions, last_results; /* a second ago */
	double contributions_per_s, results_per_s;
};

/* Of a slot; zeroed: it is free. */
struct switch_claim {
	struct switch_host *host;
	struct switch_flow *flow;
};

struct switch_traffic {
	uint64_t malformed;  /* no packets of this protocol */
	uint64_t foreign;    /* of another version of it */
	uint64_t strangers;  /* from addresses that are not registered */
	uint64_t hellos, registered, refused_flows;
	uint64_t undelivered; /* for members that are not registered */
};

struct switch_server {
	struct switch_config config;
	struct loop loop;
	struct loop_fd port, signals;
	struct loop_timer seconds, held;
	sigset_t former_mask;
	uint64_t began_ns;
	struct trains *udp;
	struct impair impair;
	struct http_server *status;
	bool is_draining;
	bool is_crowded; /* the socket's queue, in this batch */

	uint64_t secret[2]; /* of cookies */
	struct switch_host *hosts;
	struct switch_flow *flows[SWITCH_BUCKETS];
	uint32_t flow_count, member_count;

	struct step_slot *slots;
	struct switch_claim *claims;   /* by slot */
	uint32_t *words;               /* by slot: words_max */
	uint32_t slots_used, slots_peak;
	uint64_t step[STEP_EVENTS];

	struct switch_traffic traffic;
	uint64_t last_received_bytes, last_sent_bytes;
	double received_bps, sent_bps;
};

/* ---- switch_table.c ---- */

ESP_CHECKED enum esp_status switch_table_open(struct switch_server *server, struct error *err);
void switch_table_close(struct switch_server *server);
struct switch_flow *switch_flow_find(const struct switch_server *server, uint64_t id);
/* The member of the flow with this address; NULL: none is registered. */
struct switch_member *switch_member_at(const struct switch_flow *flow, const union trains_address *from);
/* Registers a member that has proved its address. */
enum atp_refusal switch_member_register(struct switch_server *server, uint64_t flow, uint16_t number,
                                        const union trains_address *from, uint64_t now_ns);
/* Forgets members that are silent, the flows that have none left, and, while the switch is drained, old slots. */
void switch_table_age(struct switch_server *server, uint64_t now_ns);
/* The slot at this place was claimed by a member of this host for the flow, or is free (NULL). */
void switch_slot_held_by(struct switch_server *server, uint64_t place, struct switch_host *host,
                         struct switch_flow *flow);

/* ---- switch_path.c ---- */

void switch_path_packet(struct switch_server *server, const struct trains_datagram *datagram, uint64_t now_ns);

/* ---- switch_server.c ---- */

__attribute__((format(printf, 2, 3))) void switch_log(struct switch_server *server, const char *format, ...);

/* ---- switch_status.c ---- */

ESP_CHECKED enum esp_status switch_status_open(struct switch_server *server, struct error *err);
void switch_status_close(struct switch_server *server);
/* A second has passed. */
void switch_status_tick(struct switch_server *server);

#endif
