/*
 * hub_sets.h - which workers of a session push together, and the memory of a set that runs on the hub's machine. The
 * control thread's.
 */
#ifndef HUB_SERVER_HUB_SETS_H
#define HUB_SERVER_HUB_SETS_H

#include "hub/server/hub_session.h"

/* Workers that can share memory push together. The layout is known. Returns how many sets there are. */
uint32_t hub_sets_make(struct hub_session *session);
/* The worker that pushes for this one: the lowest of its set. Terms of sets are of float32. */
uint32_t hub_sets_pusher(const struct hub_session *session, uint32_t worker);
/* Does the set of this pusher run on this machine, so that the hub can read its gradients where they lie? */
bool hub_sets_can_read(const struct hub_session *session, uint32_t pusher);

/* The pusher of such a set has memory with this descriptor. */
void hub_sets_on_share(struct hub_conn *conn, uint32_t fd);
/* A worker that pushes together with others says that one of them has failed; a worker of a job with several hubs says
 * that the job has failed at another hub. */
void hub_sets_on_why(struct hub_conn *conn, const struct hub_msg_why *why);

#endif
