/*
 * cluster_outbox.c - messages that wait for a NIC or a connection, in the order in which they are to leave.
 *
 * Most messages come in that order already: those that are not before the last one stand in a line, and only the others
 * are in a pairing heap.
 */
#include <stdlib.h>

#include "sim/cluster_state.h"

/* ---- the heap ---- */

static bool is_before(const struct message *a, const struct message *b)
{
	return a->major < b->major || (a->major == b->major && a->minor < b->minor);
}

static struct message *meld(struct message *a, struct message *b)
{
	if (!a || !b)
		return a ? a : b;
	if (is_before(b, a)) {
		struct message *swap = a;

		a = b;
		b = swap;
	}
	b->sibling = a->child;
	a->child = b;
	return a;
}

static struct message *heap_pop(struct outbox *outbox)
{
	struct message *first = outbox->heap, *pairs = NULL, *rest;

	/* Children two by two from the left, then all from the right. */
	for (struct message *at = first->child; at;) {
		struct message *a = at, *b = a->sibling;

		at = b ? b->sibling : NULL;
		a->sibling = NULL;
		if (b)
			b->sibling = NULL;
		a = meld(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	for (rest = NULL; pairs;) {
		struct message *next = pairs->sibling;

		pairs->sibling = NULL;
		rest = meld(rest, pairs);
		pairs = next;
	}
	outbox->heap = rest;
	return first;
}

/* ---- the line, and both ---- */

void sim_outbox_push(struct outbox *outbox, struct message *message)
{
	message->child = NULL;
	message->sibling = NULL;
	if (outbox->first && is_before(message, outbox->last)) {
		outbox->heap = meld(outbox->heap, message);
		return;
	}
	if (outbox->first)
		outbox->last->sibling = message;
	else
		outbox->first = message;
	outbox->last = message;
}

struct message *sim_outbox_pop(struct outbox *outbox)
{
	struct message *first = outbox->first;

	if (outbox->heap && (!first || is_before(outbox->heap, first)))
		return heap_pop(outbox);
	if (first)
		outbox->first = first->sibling;
	return first;
}

/* ---- finding it ---- */

struct outbox *sim_outbox_of_nic(struct cluster *cluster, uint32_t vertex, uint32_t nic)
{
	uint32_t nics = cluster->config.topology->vertices[vertex].nics;

	if (!cluster->nics[vertex])
		cluster->nics[vertex] = calloc(nics, sizeof(struct outbox));
	return cluster->nics[vertex] ? &cluster->nics[vertex][nic % nics] : NULL;
}

static struct outbox **pair_slot(const struct cluster *cluster, uint32_t from, uint32_t to, uint32_t nic)
{
	uint64_t hash = ((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15) + nic * UINT64_C(0xbf58476d1ce4e5b9);
	uint32_t mask = cluster->pair_room - 1, at = (uint32_t)(hash >> 32) & mask;

	for (;; at = (at + 1) & mask) {
		const struct outbox *outbox = cluster->pairs[at];

		if (!outbox || (outbox->from == from && outbox->to == to && outbox->nic == nic))
			return &cluster->pairs[at];
	}
}

static bool pairs_grow(struct cluster *cluster)
{
	struct outbox **old = cluster->pairs;
	uint32_t old_room = cluster->pair_room, room = old_room ? old_room * 2 : 256;
	struct outbox **pairs = calloc(room, sizeof(struct outbox *));

	if (!pairs)
		return false;
	cluster->pairs = pairs;
	cluster->pair_room = room;
	for (uint32_t i = 0; i < old_room; i++) {
		if (old[i])
			*pair_slot(cluster, old[i]->from, old[i]->to, old[i]->nic) = old[i];
	}
	free(old);
	return true;
}

/* Most messages go to the node to which the one before went. */
struct outbox *sim_outbox_of_pair(struct cluster *cluster, struct seat *from, uint32_t to, uint32_t nic)
{
	if (from->recent && from->recent->to == to && from->recent->nic == nic)
		return from->recent;
	if (cluster->pair_count * 2 >= cluster->pair_room && !pairs_grow(cluster))
		return NULL;
	struct outbox **slot = pair_slot(cluster, from->node, to, nic);
	if (!*slot) {
		*slot = malloc(sizeof(**slot));
		if (!*slot)
			return NULL;
		**slot = (struct outbox){.from = from->node, .to = to, .nic = nic};
		cluster->pair_count++;
	}
	from->recent = *slot;
	return *slot;
}

void sim_outboxes_close(struct cluster *cluster)
{
	for (uint32_t i = 0; cluster->nics && i < cluster->config.topology->vertex_count; i++)
		free(cluster->nics[i]);
	for (uint32_t i = 0; i < cluster->pair_room; i++)
		free(cluster->pairs[i]);
	free(cluster->nics);
	free(cluster->pairs);
}
