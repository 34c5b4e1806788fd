#include "base/list.h"

#include "base/check.h"
#include "base/rng.h"

#define ITEMS 8u
#define TURNS 20000u

struct item {
	uint32_t number;
	struct list_node node;
	bool is_in;
};

/* The numbers of the items that the list should have, in their order. */
struct model {
	uint32_t numbers[ITEMS], count;
};

static struct item *item_of(struct list_node *node)
{
	return list_item(node, struct item, node);
}

static void insert(struct model *model, uint32_t at, uint32_t number)
{
	memmove(model->numbers + at + 1, model->numbers + at, (model->count++ - at) * sizeof(model->numbers[0]));
	model->numbers[at] = number;
}

static void drop(struct model *model, uint32_t number)
{
	uint32_t at = 0;

	while (model->numbers[at] != number)
		at++;
	memmove(model->numbers + at, model->numbers + at + 1, (--model->count - at) * sizeof(model->numbers[0]));
}

/* Both ways through the list. */
static void compare(const struct list *list, const struct model *model)
{
	struct list_node *node = list->first;

	for (uint32_t i = 0; i < model->count; i++, node = node->next)
		CHECK(node && item_of(node)->number == model->numbers[i]);
	CHECK(!node);
	node = list->last;
	for (uint32_t i = model->count; i > 0; i--, node = node->before)
		CHECK(node && item_of(node)->number == model->numbers[i - 1]);
	CHECK(!node);
}

/* An item that is out goes to one of the ends. */
static void put(struct list *list, struct model *model, struct item *item, bool to_front)
{
	if (to_front)
		list_prepend(list, &item->node);
	else
		list_append(list, &item->node);
	insert(model, to_front ? 0 : model->count, item->number);
	item->is_in = true;
}

/* It, or the first one, leaves, and is linked to nothing any more. */
static void leave(struct list *list, struct model *model, struct item *item, bool first)
{
	if (first)
		item = item_of(list_take(list));
	else
		list_remove(list, &item->node);
	CHECK(item && (!first || item->number == model->numbers[0]));
	CHECK(!item->node.next && !item->node.before);
	drop(model, item->number);
	item->is_in = false;
}

static void test_any_order(struct rng *rng)
{
	struct item items[ITEMS];
	struct list list = {0};
	struct model model = {.count = 0};

	memset(items, 0xa5, sizeof(items)); /* a node's fields may have any value before */
	for (uint32_t i = 0; i < ITEMS; i++) {
		items[i].number = i;
		items[i].is_in = false;
	}
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		struct item *item = &items[rng_below(rng, ITEMS)];
		bool front = rng_below(rng, 2);

		if (item->is_in)
			leave(&list, &model, item, front);
		else
			put(&list, &model, item, front);
		compare(&list, &model);
	}
}

static void test_empty(void)
{
	struct list list = {0}, moved;
	struct item item = {.number = 1};

	CHECK(!list_take(&list) && !item_of(list.first));
	list_append(&list, &item.node);
	moved = list;
	CHECK(item_of(list_take(&moved)) == &item);
	CHECK(!moved.first && !moved.last);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_empty();
	test_any_order(&rng);
	return 0;
}
