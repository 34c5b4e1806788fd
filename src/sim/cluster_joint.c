/*
 * cluster_joint.c - switches that pass a chunk on while it comes in.
 *
 * The executor at the switch is shown a message when its first byte comes, and what it makes of it begins to leave at
 * once. It makes it from several messages where it adds, and each of them ends in its own time; so what leaves is held
 * at its last byte until the last of theirs has come.
 *
 *     in   ├─────────────┤
 *     in        ├──────────────┤
 *     out       ├─────────╌╌╌╌╌┤     fast enough, but has to wait for its data
 */
#include <stdlib.h>

#include "sim/cluster_state.h"

static struct joint **joint_slot(struct cluster *cluster, const void *chunk_id)
{
	uint64_t hash = (uint64_t)(uintptr_t)chunk_id * UINT64_C(0x9e3779b97f4a7c15);
	struct joint **slot = &cluster->joints[hash >> 32 & (JOINT_BUCKETS - 1)];

	while (*slot && (*slot)->chunk_id != chunk_id)
		slot = &(*slot)->next;
	return slot;
}

static struct joint *joint_find(struct cluster *cluster, const void *chunk_id)
{
	return cluster->joints ? *joint_slot(cluster, chunk_id) : NULL;
}

static struct joint *joint_get(struct cluster *cluster, const void *chunk_id)
{
	if (!cluster->joints) {
		cluster->joints = calloc(JOINT_BUCKETS, sizeof(struct joint *));
		if (!cluster->joints)
			return NULL;
	}
	struct joint **slot = joint_slot(cluster, chunk_id), *joint = *slot;
	if (joint)
		return joint;
	joint = cluster->joint_free;
	if (joint)
		cluster->joint_free = joint->next;
	else
		joint = malloc(sizeof(*joint));
	if (joint)
		*joint = (struct joint){.chunk_id = chunk_id};
	*slot = joint;
	return joint;
}

bool sim_joint_show(struct message *message)
{
	struct cluster *cluster = message->cluster;
	struct exec *exec = sim_seat_exec(cluster, message->to);
	struct exec_chunk chunk;

	/* A chunk that it does not know yet, or a sum unless sums are cut through, is shown to it when all is there. */
	if (!exec || !exec_chunk_in(exec, message->from->member, message->index, &chunk) ||
	    (chunk.adds && !cluster->config.cut_through_sums))
		return false;
	struct joint *joint = joint_get(cluster, chunk.id);
	if (!joint) {
		cluster->config.agenda->failed = true;
		return false;
	}
	message->shown_id = chunk.id;
	message->is_shown = true;
	joint->open++;
	return true;
}

void sim_joint_complete(struct message *message)
{
	struct cluster *cluster = message->cluster;
	struct joint **slot = joint_slot(cluster, message->shown_id), *joint = *slot;

	if (--joint->open > 0)
		return;
	struct message *held = joint->held;
	*slot = joint->next;
	joint->next = cluster->joint_free;
	cluster->joint_free = joint;
	while (held) {
		struct message *next = held->sibling;

		sim_post_release(held);
		held = next;
	}
}

bool sim_joint_hold(struct message *message)
{
	struct joint *joint = message->has_chunk ? joint_find(message->cluster, message->chunk_id) : NULL;

	if (!joint)
		return false;
	message->is_held = true;
	message->holders++; /* until its late delivery */
	message->sibling = joint->held;
	joint->held = message;
	return true;
}

void sim_joints_close(struct cluster *cluster)
{
	for (uint32_t i = 0; cluster->joints && i < JOINT_BUCKETS; i++) {
		while (cluster->joints[i]) {
			struct joint *joint = cluster->joints[i];

			cluster->joints[i] = joint->next;
			free(joint);
		}
	}
	while (cluster->joint_free) {
		struct joint *joint = cluster->joint_free;

		cluster->joint_free = joint->next;
		free(joint);
	}
	free(cluster->joints);
}
