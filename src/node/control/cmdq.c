#include "node/control/cmdq.h"

#include <stdlib.h>

void control_cmdq_init(struct cmdq *cmdq)
{
	*cmdq = (struct cmdq){0};
	pthread_mutex_init(&cmdq->lock, NULL);
}

void control_cmdq_fini(struct cmdq *cmdq)
{
	struct control_cmd *cmd;

	while ((cmd = control_cmdq_take(cmdq)))
		free(cmd);
	pthread_mutex_destroy(&cmdq->lock);
}

bool control_cmdq_post(struct cmdq *cmdq, const struct control_cmd *cmd)
{
	struct control_cmd *copy = malloc(sizeof(*copy));

	if (!copy)
		return false;
	*copy = *cmd;
	copy->next = NULL;
	pthread_mutex_lock(&cmdq->lock);
	if (cmdq->first)
		cmdq->last->next = copy;
	else
		cmdq->first = copy;
	cmdq->last = copy;
	pthread_mutex_unlock(&cmdq->lock);
	return true;
}

struct control_cmd *control_cmdq_take(struct cmdq *cmdq)
{
	pthread_mutex_lock(&cmdq->lock);
	struct control_cmd *cmd = cmdq->first;
	if (cmd)
		cmdq->first = cmd->next;
	pthread_mutex_unlock(&cmdq->lock);
	return cmd;
}
