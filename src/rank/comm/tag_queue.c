#include "rank/comm/tag_queue.h"

#include <assert.h>
#include <stdlib.h>

#define BITS_MOST 20u /* 16 MiB of lists: enough for a million things */

/* Neighbours in number, as tags and ranks often are, come to lie apart. */
static uint32_t list_number(struct tag_queue_key key, uint32_t bits)
{
	uint64_t mixed = (key.tag ^ (uint64_t)key.peer << 32 ^ key.peer) * UINT64_C(0x9e3779b97f4a7c15);

	mixed ^= mixed >> 29;
	return (uint32_t)(mixed * UINT64_C(0xd6e8feb86659fd93) >> (64 - bits));
}

static uint32_t bits_of(const struct tag_queue *queue)
{
	return queue->table ? queue->bits : 3;
}
_Static_assert(TAG_QUEUE_FEW == 1u << 3, "bits of a queue without a table");

static struct list *list_of(struct tag_queue *queue, struct tag_queue_key key)
{
	return (queue->table ? queue->table : queue->few) + list_number(key, bits_of(queue));
}

static bool is_same(struct tag_queue_key a, struct tag_queue_key b)
{
	return a.tag == b.tag && a.peer == b.peer;
}

static struct tag_queue_node *node_of(struct list_node *link)
{
	return list_item(link, struct tag_queue_node, link);
}

/* Nodes of one key are in one list, and stay in their order. */
static void grow(struct tag_queue *queue)
{
	uint32_t bits = bits_of(queue);
	struct list *old = queue->table ? queue->table : queue->few;
	struct list *table = calloc((size_t)1 << (bits + 2), sizeof(*table));

	if (!table)
		return;
	for (uint32_t i = 0; i < 1u << bits; i++) {
		for (struct list_node *link; (link = list_take(&old[i]));)
			list_append(&table[list_number(node_of(link)->key, bits + 2)], link);
	}
	free(queue->table);
	queue->table = table;
	queue->bits = bits + 2;
}

void comm_tag_queue_fini(struct tag_queue *queue)
{
	free(queue->table);
	*queue = (struct tag_queue){0};
}

void comm_tag_queue_put(struct tag_queue *queue, struct tag_queue_node *node, struct tag_queue_key key)
{
	assert(!node->is_in);
	if (queue->count >= 1u << bits_of(queue) && bits_of(queue) + 2 <= BITS_MOST)
		grow(queue);
	node->key = key;
	node->is_in = true;
	list_append(list_of(queue, key), &node->link);
	queue->count++;
}

void comm_tag_queue_take(struct tag_queue *queue, struct tag_queue_node *node)
{
	if (!node->is_in)
		return;
	list_remove(list_of(queue, node->key), &node->link);
	*node = (struct tag_queue_node){0};
	queue->count--;
}

struct tag_queue_node *comm_tag_queue_find(struct tag_queue *queue, struct tag_queue_key key)
{
	struct list_node *link = list_of(queue, key)->first;

	queue->steps++;
	while (link && !is_same(node_of(link)->key, key)) {
		link = link->next;
		queue->steps++;
	}
	return node_of(link);
}
