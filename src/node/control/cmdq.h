/*
 * cmdq.h - what other threads ask of the steward: a queue, first come first served.
 */
#ifndef NODE_CONTROL_CMDQ_H
#define NODE_CONTROL_CMDQ_H

#include <pthread.h>

#include "node/control/control.h"

struct errand {
	struct errand *next;
	enum {
		ERRAND_DIAL_LANE,
		ERRAND_DIAL_AGAIN,
		ERRAND_DIAL_PROBE,
		ERRAND_DIAL_CONTROL,
		ERRAND_LOOK_FOR,
		ERRAND_DIAL_SHELF,
		ERRAND_SEND,
		ERRAND_SEND_ALL,
		ERRAND_RUN,
	} what;
	uint32_t peer, lane;
	uint64_t patience_ns;
	steward_fn *function;
	void *argument;
	struct control_msg msg;
};

struct errands {
	pthread_mutex_t lock;
	struct errand *first, *last;
};

void errands_init(struct errands *errands);
/* What is left is forgotten. */
void errands_fini(struct errands *errands);
/* A copy is queued. False: no memory. */
bool errands_post(struct errands *errands, const struct errand *errand);
/* The first one, to be freed; NULL: there is none. */
struct errand *errands_take(struct errands *errands);

#endif
