/*
 * hub_job.h - a job of a parameter hub: its name, key, optimizer, and the session of its workers that is under way.
 *
 * The control thread's.
 */
#ifndef HUB_SERVER_HUB_JOB_H
#define HUB_SERVER_HUB_JOB_H

#include "hub/server/hub_conn.h"
#include "math/optimizer.h"

struct hub_job {
	struct hub *hub;
	struct hub_job *next;
	char name[HUB_JOB_NAME];
	uint64_t number; /* used once, by no other job */
	uint8_t key[HUB_KEY_BYTES];
	uint32_t workers, chunk_bytes, weight;
	uint32_t delay_bound;        /* of an asynchronous job; 0: its workers train in rounds */
	struct optimizer optimizer; /* of parameter groups whose workers say nothing else */
	struct hub_session *session; /* NULL: no workers */
	uint64_t used_ns;            /* when the last session ended, or the job was created */
	uint64_t rounds, bytes;      /* of the sessions that have ended */
};

/* An operator's messages. */
void hub_job_on_create(struct hub_conn *conn, const struct hub_msg_create *create);
void hub_job_on_remove(struct hub_conn *conn, const struct hub_msg_remove *remove);

struct hub_job *hub_job_find(const struct hub *hub, uint64_t number);
/* Once a second: removes jobs that have been idle for too long. */
void hub_job_look_after_all(struct hub *hub, uint64_t now_ns);
/* Ends its session, whose workers are told this sentence, and frees it. */
void hub_job_remove(struct hub_job *job, const char *why);

#endif
