/*
 * hub_jobs.h - the jobs of a parameter hub: operators create and remove them, and idle ones go. The control thread's.
 */
#ifndef HUB_SERVER_HUB_JOBS_H
#define HUB_SERVER_HUB_JOBS_H

#include "hub/server/hub_conn.h"
#include "hub/server/hub_job.h"

/* An operator's messages. */
void hub_jobs_on_create(struct hub_conn *conn, const struct hub_msg_create *create);
void hub_jobs_on_remove(struct hub_conn *conn, const struct hub_msg_remove *remove);

/* Once a second: removes jobs that have been idle for too long. */
void hub_jobs_look_after(struct hub *hub, uint64_t now_ns);
/* Ends its session, whose workers are told this sentence, and frees it. */
void hub_jobs_remove(struct hub_job *job, const char *why);

#endif
