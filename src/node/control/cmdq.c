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
	pthread_mutex_lock(&cmdq->lock);
	list_append(&cmdq->cmds, &copy->link);
	pthread_mutex_unlock(&cmdq->lock);
	return true;
}

struct control_cmd *control_cmdq_take(struct cmdq *cmdq)
{
	pthread_mutex_lock(&cmdq->lock);
	struct list_node *node = list_take(&cmdq->cmds);
	pthread_mutex_unlock(&cmdq->lock);
	return list_item(node, struct control_cmd, link);
}
