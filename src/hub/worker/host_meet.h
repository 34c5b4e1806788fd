/*
 * host_meet.h - how the workers of a host find each other: each listens at a socket of this machine before it joins,
 * the hub tells all which of them push together, and the lowest hands its memory to the others.
 *
 * The sockets stay open: a byte on one says that there is news in the memory, its end that the worker is gone. Only
 * processes of the same user are let in. Does I/O; blocks up to a deadline where said. One thread.
 */
#ifndef HUB_WORKER_HOST_MEET_H
#define HUB_WORKER_HOST_MEET_H

#include "hub/control/msg_socket.h"
#include "hub/control/host_memory.h"

/* A socket at which a worker waits for others of its host. */
struct host_meet {
	int fd;          /* -1: none */
	uint64_t number; /* of the socket: random, its name */
};

ESP_CHECKED enum esp_status host_meet_open(struct host_meet *meet, struct error *err);
void host_meet_close(struct host_meet *meet);

/* The session of a job at its first hub, and the connections on which the hubs tell why it has ended meanwhile. */
struct host_meeting {
	uint64_t session;
	uint32_t worker;
	struct msg_socket *hubs;
	uint32_t hub_count; /* at most LAYOUT_HUBS_MOST */
	uint64_t until_ns;
};

/*
 * The lowest worker's: waits for all others, members[1 ...] by worker, and fills in their processes. On success the
 * sockets are the caller's. ESP_ETIMEOUT: not all came; or what the hub says.
 */
ESP_CHECKED enum esp_status host_meet_gather(const struct host_meet *meet, const struct host_meeting *meeting,
                                             struct host_member *member, uint32_t members, int *out_sockets,
                                             struct error *err);
/* And hands them the descriptor of the memory. */
ESP_CHECKED enum esp_status host_meet_hand_over(const struct host_meeting *meeting, const int *sockets,
                                                uint32_t members, int memory, struct error *err);
/* Another worker's: calls at the socket with this number and waits for the memory. */
ESP_CHECKED enum esp_status host_meet_call(const struct host_meeting *meeting, uint64_t number, int *out_socket,
                                           int *out_memory, struct error *err);

#endif
