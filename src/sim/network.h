/*
 * network.h - the modelled network: moves numbers of bytes over the links of a topology, in virtual time.
 *
 * Two models:
 *
 * FLUID  Every transfer is a flow; at each moment flows share the links max-min fairly, as long-lived TCP flows nearly
 *        do. When a flow comes, ends or a rate changes, only the flows are computed anew whose rate can have changed
 *        (share.h). A flow leaves at its rate and arrives the path's delay later. Among hundreds of thousands of flows
 *        some come or go all the time. With a grain they are computed anew when one in NETWORK_FEW has, or when the
 *        grain is over; until then new flows wait, and the bandwidth that ended flows leave is not used.
 *
 * FIFO   Every link carries one transfer at a time, whole, in the order of arrival. With cut_through (the usual switch)
 *        a link begins to pass a transfer on as soon as its first byte is there and cannot end before its last byte is;
 *        without, a switch waits for all of it (store and forward per message).
 *
 * There is no loss, no slow start and no cost per message but headers, where mtu says so. Multicast and aggregation are
 * no business of the network: a plan's node that stands on a switch does them, and each of its links carries one copy
 * because the plan sends one.
 *
 * Transfers between the same vertices may overtake each other in FLUID; a user that wants them in order starts one
 * after the other (cluster.h does).
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "network/topo/topology.h"
#include "sim/agenda.h"

enum network_model { NETWORK_FLUID, NETWORK_FIFO };

struct network_config {
	const struct topology *topology; /* borrowed */
	struct agenda *agenda;           /* borrowed */
	enum network_model model;
	bool cut_through; /* FIFO */
	uint32_t mtu;     /* payload is cut into packets of so many bytes, each with NETWORK_HEADERS more; 0: no headers */
	void *user;
	/* Events of the transfer of this cookie; each may be NULL, and each may send. */
	void (*headed)(void *user, void *cookie);  /* its first byte is there; only for transfers to a switch */
	void (*left)(void *user, void *cookie);    /* its last byte has left the sender                  */
	void (*arrived)(void *user, void *cookie); /* its last byte is there; the cookie is not used again */
	double grain; /* FLUID: seconds for which a few changes may be left unseen, see above; 0: none is */
};

#define NETWORK_FEW 32u

/* Ethernet with preamble, check sequence and gap, IPv4, TCP with timestamps; mtu counts IP and TCP, as everywhere. */
#define NETWORK_HEADERS 90u
#define NETWORK_HEADERS_IN_MTU 52u

struct network;

/* Puts down the topology's changes and background traffic. ESP_EINVAL (background flows need FLUID), ESP_ENOMEM. */
ESP_CHECKED enum esp_status sim_network_open(const struct network_config *config, struct network **out,
                                             struct error *err);
void sim_network_close(struct network *network); /* NULL is fine */

/*
 * Starts to move bytes between two vertices now; nic: any number, chooses among several. headed, left and arrived are
 * called later, arrived last, never from within this call; also for 0 bytes. Where memory runs out, sim_agenda_run()
 * says so.
 */
void sim_network_send(struct network *network, uint32_t from, uint32_t to, uint32_t nic, uint64_t bytes, void *cookie);

/* A link's rate from now on, in bytes per second. FIFO: for the transfers that come to the link from now on. */
void sim_network_set_rate(struct network *network, uint32_t link, double rate);

/* Bytes that were sent over links of that class so far, without headers and background. */
uint64_t sim_network_class_bytes(const struct network *network, enum topology_class class);
uint64_t sim_network_link_bytes(const struct network *network, uint32_t link);

struct network_stats {
	uint64_t transfers;
	uint64_t solved;     /* FLUID: times that rates were computed           */
	uint64_t flows_seen; /* flows looked at for that, each time             */
};
struct network_stats sim_network_stats(const struct network *network);

#endif
