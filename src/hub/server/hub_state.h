/*
 * hub_state.h - what a parameter hub is made of: jobs, connections, lanes. Private to hub/server; the control thread's.
 */
#ifndef HUB_SERVER_HUB_STATE_H
#define HUB_SERVER_HUB_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "hub/server/hub_config.h"
#include "hub/server/hub_lane.h"
#include "node/control/accept_limit.h"
#include "wire/hub_msg.h"

struct hub_conn;
struct hub_conn_events;
struct hub_job;
struct hub_session;
struct http_server;

#define HUB_PORTS 2u /* listening sockets: "any" of both families where the kernel keeps them apart */

struct hub_port {
	struct loop_fd watched; /* first member */
	struct hub *hub;
};

/* What the status server compares with a second ago. */
struct hub_rates {
	uint64_t since_ns; /* 0: never yet */
	uint64_t idle_ns[LAYOUT_LANES_MOST];  /* of each lane, then */
	double busy[LAYOUT_LANES_MOST];       /* share of the last second */
};

struct hub {
	struct hub_config config;
	struct loop loop;
	uint64_t own_job;      /* number of the hub's own job, for operators */
	uint64_t place;        /* where workers can share memory with the hub; 0: nowhere */
	uint64_t began_ns;

	struct hub_port ports[HUB_PORTS];
	uint32_t port_count;
	bool ports_paused;
	uint64_t full_until_ns; /* no descriptor is free: connections wait; 0: some are */
	struct accept_limit limit;
	const struct hub_conn_events *events; /* of connections */
	struct hub_conn *conns; /* of every state */
	uint32_t unproved;

	struct hub_job *jobs;
	uint32_t job_count;
	struct hub_session *dead_sessions; /* to be freed after this turn */
	uint32_t orphans;      /* sessions whose job was removed and whose parts are not back yet */
	uint64_t memory_taken;
	struct hub_lane *lanes[LAYOUT_LANES_MOST];
	struct loop_timer seconds;
	struct hub_rates rates;
	struct http_server *status;
	struct loop_fd signals;
	sigset_t former_mask;
	uint64_t jobs_made, sessions_begun, sessions_failed, refused; /* since the start */
};

/* One line of the log. */
void hub_log(struct hub *hub, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
