/*
 * hub_async.h - the updates of an asynchronous job: workers offer them, the gate (fabric/gate.h) decides, lanes apply
 * them.
 *
 *     worker ── OFFER ──> gate ── GRANT ──> chunks to all lanes ── whole on all ──> gate ──┬── APPLY to all lanes
 *                          └── RESULT: too late                                            └── DROP
 *
 * All lanes get these messages in the same order, so each chunk goes through the same updates. The control thread's.
 */
#ifndef HUB_SERVER_HUB_ASYNC_H
#define HUB_SERVER_HUB_ASYNC_H

#include "fabric/gate.h"
#include "hub/server/hub_session.h"

struct hub_async {
	struct loop_timer timer;   /* first member: the gate's */
	struct hub_session *session;
	struct gate gate;
	uint64_t lanes;            /* that have chunks, as a bit set */
	uint64_t whole[STORE_WORKERS_MOST]; /* lanes that have all of the worker's update */
	uint64_t granted_ns[STORE_WORKERS_MOST], took_ns[STORE_WORKERS_MOST];
	uint64_t delay_sum; /* of applied updates */
};

/* When the session runs. ESP_ENOMEM. */
ESP_CHECKED enum esp_status hub_async_open(struct hub_session *session, struct error *err);
/* The session ends; its memory stays until the session is freed. Nothing if there is none. */
void hub_async_stop(struct hub_session *session);

void hub_async_on_offer(struct hub_conn *conn, const struct hub_msg_offer *offer);
void hub_async_on_spoil(struct hub_conn *conn, uint64_t number);
void hub_async_on_news(struct hub_session *session, struct hub_part *part);
/* The worker is lost; its connection is no longer the session's. */
void hub_async_on_lost(struct hub_session *session, uint32_t worker);

#endif
