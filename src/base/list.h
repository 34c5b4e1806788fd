/*
 * list.h - a doubly linked list of nodes that lie inside their owners; it serves as a queue, too.
 *
 * A zeroed list is empty, and one that is copied replaces the original. The list owns nothing and allocates nothing. A
 * node is in one list at a time. Any thread, one at a time per list. Queues of the data path are singly linked and
 * stay in the file that drives them: removal from the front touches one node there, and two here.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <assert.h>
#include <stddef.h>

struct list_node {
	struct list_node *next, *before; /* NULL at the ends, and in a node that was removed */
};

struct list {
	struct list_node *first, *last; /* NULL: empty */
};

static inline void *list_owner(struct list_node *node, size_t offset)
{
	return node ? (char *)node - offset : NULL;
}

/* The object of this type whose member the node is; NULL of NULL. */
#define list_item(node, type, member) ((type *)list_owner((node), offsetof(type, member)))

/* At the end. The node is in no list; its fields may have any value. */
static inline void list_append(struct list *list, struct list_node *node)
{
	*node = (struct list_node){.before = list->last};
	if (list->last)
		list->last->next = node;
	else
		list->first = node;
	list->last = node;
}

/* The same at the front. */
static inline void list_prepend(struct list *list, struct list_node *node)
{
	*node = (struct list_node){.next = list->first};
	if (list->first)
		list->first->before = node;
	else
		list->last = node;
	list->first = node;
}

/* The node is in this list. */
static inline void list_remove(struct list *list, struct list_node *node)
{
	struct list_node **back = node->before ? &node->before->next : &list->first;
	struct list_node **forth = node->next ? &node->next->before : &list->last;

	assert(*back == node && *forth == node);
	*back = node->next;
	*forth = node->before;
	*node = (struct list_node){0};
}

/* Removes the first node; NULL: the list is empty. */
static inline struct list_node *list_take(struct list *list)
{
	struct list_node *node = list->first;

	if (node)
		list_remove(list, node);
	return node;
}

#endif
