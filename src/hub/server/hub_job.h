/*
 * hub_job.h - a job of a parameter hub: its name, key, optimizer, and the session of its workers that is under way.
 *
 * The control thread's.
 */
#ifndef HUB_SERVER_HUB_JOB_H
#define HUB_SERVER_HUB_JOB_H

#include "hub/server/hub_state.h"
#include "math/optimizer.h"

struct hub_job {
	struct hub *hub;
	struct hub_job *next;
	char name[HUB_JOB_NAME];
	uint64_t number; /* used once, by no other job */
	uint8_t key[HUB_KEY_BYTES];
	uint32_t workers, chunk_bytes, weight;
	uint32_t hubs, own;          /* hubs of the job, and the number of this one */
	uint32_t delay_bound;        /* of an asynchronous job; 0: its workers train in rounds */
	struct optimizer optimizer; /* of parameter groups whose workers say nothing else */
	struct hub_session *session; /* NULL: no workers */
	uint64_t used_ns;            /* when the last session ended, or the job was created */
	uint64_t rounds, bytes;      /* of the sessions that have ended */
};

struct hub_job *hub_job_find(const struct hub *hub, uint64_t number);
/* With a number and a key of its own. NULL: no memory. */
struct hub_job *hub_job_make(struct hub *hub, const struct hub_msg_create *create, const struct optimizer *optimizer);
/* It has no session. */
void hub_job_free(struct hub_job *job);

#endif
