/*
 * cmdq.h - commands of other threads for the control thread: a locked queue, first in, first out. Any thread; no I/O.
 */
#ifndef NODE_CONTROL_CMDQ_H
#define NODE_CONTROL_CMDQ_H

#include <pthread.h>

#include "base/list.h"
#include "wire/control_msg.h"

/* A function for the control thread. */
typedef void control_fn(void *context, void *argument);

struct control_cmd {
	struct list_node link;
	enum {
		CMD_DIAL_LANE,
		CMD_DIAL_AGAIN,
		CMD_DIAL_PROBE,
		CMD_DIAL_CONTROL,
		CMD_LOOK_FOR,
		CMD_DIAL_FDS,
		CMD_SEND,
		CMD_SEND_ALL,
		CMD_FORGET,
		CMD_RUN,
	} what;
	uint32_t peer, lane;
	uint64_t patience_ns;
	control_fn *function;
	void *argument;
	struct control_msg msg;
};

struct cmdq {
	pthread_mutex_t lock;
	struct list cmds;
};

void control_cmdq_init(struct cmdq *cmdq);
/* Frees the commands that are left. */
void control_cmdq_fini(struct cmdq *cmdq);
/* Queues a copy. False: no memory. */
bool control_cmdq_post(struct cmdq *cmdq, const struct control_cmd *cmd);
/* Removes the first command, which the caller frees; NULL: the queue is empty. */
struct control_cmd *control_cmdq_take(struct cmdq *cmdq);

#endif
