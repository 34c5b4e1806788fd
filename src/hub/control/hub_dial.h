/*
 * hub_dial.h - a proved connection to a parameter hub. Blocks the caller up to a deadline; any thread.
 */
#ifndef HUB_CONTROL_HUB_DIAL_H
#define HUB_CONTROL_HUB_DIAL_H

#include "base/error.h"
#include "node/auth/handshake.h"
#include "node/net/address.h"

#define HUB_SCHEDULER_ROW (UINT32_MAX - 1) /* of the scheduler in every job's roster: it does not know how many workers there are */
#define HUB_OPERATORS 1u /* the workers of the hub's own job: an operator is the only one */

/* The end of a connection that dials. */
struct hub_dial {
	const struct address *hub;
	const uint8_t *key; /* HANDSHAKE_KEY_BYTES: of the job */
	uint64_t job;       /* its number */
	uint32_t worker, workers;
	uint8_t purpose;    /* HELLO_CONTROL, HELLO_LANE */
	uint32_t lane;
	uint64_t session;   /* of HELLO_LANE */
	bool is_scheduler;  /* the other end is the scheduler of updates, with purpose HELLO_FABRIC, and not the hub */
	bool is_worker;     /* it is a worker of the job, an aggregator, with purpose HELLO_FABRIC */
	uint32_t to;        /* that worker */
	uint64_t until_ns;
	uint64_t proof_ns;  /* how long the other end may take to prove itself; 0: a few seconds */
};

/*
 * Connects and proves itself, again and again while no process listens there. On success *out_fd is the caller's and
 * out_session a key that only these two ends have. ESP_ELINK, ESP_ETIMEOUT, ESP_EMISMATCH; ESP_EPEER: the hub does not
 * know the job or its key, or is no hub.
 */
ESP_CHECKED enum esp_status hub_dial(const struct hub_dial *dial, int *out_fd,
                                     uint8_t out_session[HANDSHAKE_KEY_BYTES], struct error *err);

/* Fills in the hello of the listening hub, or scheduler, for a job. */
void hub_dial_listener_hello(uint32_t workers, struct hello *out);
void hub_dial_scheduler_hello(struct hello *out);
/* The session that a lane's hello names. */
uint64_t hub_dial_session(const struct hello *hello);
/* The number of the hub's own job, which operators join: from the hub's key. */
uint64_t hub_dial_own_job(const uint8_t key[HANDSHAKE_KEY_BYTES]);
/*
 * The key of a job, from the hub's key and the job's number, which is random and used once: a key says nothing of any
 * other, and none comes twice. A scheduler with the hub's key so knows the keys of the hub's jobs.
 */
void hub_dial_job_key(const uint8_t hub_key[HANDSHAKE_KEY_BYTES], uint64_t job, uint8_t out[HANDSHAKE_KEY_BYTES]);

#endif
