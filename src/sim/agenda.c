#include "sim/agenda.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define CHILDREN 4u /* of a moment in the heap: fewer levels, and siblings lie together */
#define SLAB_ENTRIES 256u

struct agenda_slab {
	struct agenda_slab *next;
	struct agenda_entry entries[SLAB_ENTRIES];
};

void sim_agenda_fini(struct agenda *agenda)
{
	while (agenda->slabs) {
		struct agenda_slab *slab = agenda->slabs;

		agenda->slabs = slab->next;
		free(slab);
	}
	free(agenda->moments);
	*agenda = (struct agenda){0};
}

/* ---- entries ---- */

static bool add_slab(struct agenda *agenda)
{
	struct agenda_slab *slab = malloc(sizeof(*slab));

	if (!slab)
		return false;
	slab->next = agenda->slabs;
	agenda->slabs = slab;
	for (uint32_t i = SLAB_ENTRIES; i-- > 0;) {
		slab->entries[i].next = agenda->free;
		agenda->free = &slab->entries[i];
	}
	return true;
}

/* NULL: no memory, and the agenda knows. */
static struct agenda_entry *entry_get(struct agenda *agenda, agenda_fn *call, void *user)
{
	if (!agenda->free && !add_slab(agenda)) {
		agenda->failed = true;
		return NULL;
	}
	struct agenda_entry *entry = agenda->free;
	agenda->free = entry->next;
	entry->call = call;
	entry->user = user;
	entry->next = NULL;
	return entry;
}

/* ---- moments ---- */

static agenda_key key_of(double at, uint64_t order)
{
	uint64_t bits;

	memcpy(&bits, &at, sizeof(bits));
	return (agenda_key)bits << 64 | order;
}

static double time_of(agenda_key key)
{
	uint64_t bits = (uint64_t)(key >> 64);
	double at;

	memcpy(&at, &bits, sizeof(at));
	return at;
}

static void push(struct agenda *agenda, struct agenda_moment moment)
{
	if (!vec_reserve(&agenda->moments, &agenda->capacity, agenda->count + 1, sizeof(*agenda->moments))) {
		agenda->failed = true;
		return;
	}
	size_t place = agenda->count++;
	while (place > 0) {
		size_t parent = (place - 1) / CHILDREN;

		if (moment.key > agenda->moments[parent].key)
			break;
		agenda->moments[place] = agenda->moments[parent];
		place = parent;
	}
	agenda->moments[place] = moment;
}

static const struct agenda_moment *lesser(const struct agenda_moment *a, const struct agenda_moment *b)
{
	return b->key < a->key ? b : a;
}

/* Of so many next to each other: all children, or those that there are. */
static const struct agenda_moment *least_of(const struct agenda_moment *first, size_t count)
{
	const struct agenda_moment *least = first;

	static_assert(CHILDREN == 4, "two pairs");
	if (count >= CHILDREN)
		return lesser(lesser(first, first + 1), lesser(first + 2, first + 3));
	for (size_t i = 1; i < count; i++)
		least = lesser(least, first + i);
	return least;
}

/* Puts a moment in the place of the first one, or as far down as it belongs. */
static void replace_first(struct agenda *agenda, struct agenda_moment moved)
{
	struct agenda_moment *moments = agenda->moments;
	size_t place = 0, count = agenda->count;

	for (size_t child; (child = place * CHILDREN + 1) < count;) {
		const struct agenda_moment *least = least_of(&moments[child], count - child);

		if (least->key > moved.key)
			break;
		moments[place] = *least;
		place = (size_t)(least - moments);
	}
	moments[place] = moved;
}

/* ---- what is put down, and what happens ---- */

static void wait_in(struct agenda_queue *queue, agenda_key key, struct agenda_entry *entry)
{
	entry->key = key;
	entry->behind = NULL;
	if (queue->first)
		queue->last->behind = entry;
	else
		queue->first = entry;
	queue->last = entry;
}

/* A new moment: in its queue, if that has one in the heap and none that is later, or in the heap. */
static void begin_moment(struct agenda *agenda, struct agenda_queue *queue, double at, struct agenda_entry *entry)
{
	agenda_key key = key_of(at, agenda->order++);

	if (queue && queue->is_busy && at >= queue->latest) {
		queue->latest = at;
		wait_in(queue, key, entry);
		return;
	}
	if (queue && queue->is_busy)
		queue = NULL;
	if (queue) {
		queue->latest = at;
		queue->is_busy = true;
	}
	push(agenda, (struct agenda_moment){key, entry, queue});
}

void sim_agenda_at_queue(struct agenda *agenda, struct agenda_queue *queue, double at, agenda_fn *call, void *user)
{
	struct agenda_entry *entry = entry_get(agenda, call, user);

	assert(at >= agenda->now && at >= 0);
	at += 0.0; /* there are two zeros, of which one has the sign of negative numbers */
	if (!entry)
		return;
	if (agenda->newest && agenda->newest_at == at)
		agenda->newest->next = entry;
	else
		begin_moment(agenda, queue, at, entry);
	agenda->newest = entry;
	agenda->newest_at = at;
}

void sim_agenda_at(struct agenda *agenda, double at, agenda_fn *call, void *user)
{
	sim_agenda_at_queue(agenda, NULL, at, call, user);
}

void sim_agenda_at_last(struct agenda *agenda, agenda_fn *call, void *user)
{
	struct agenda_entry *entry = entry_get(agenda, call, user);

	if (!entry)
		return;
	if (agenda->last_first)
		agenda->last_newest->next = entry;
	else
		agenda->last_first = entry;
	agenda->last_newest = entry;
}

/* The first moment is over. */
static void drop_first(struct agenda *agenda)
{
	struct agenda_queue *queue = agenda->moments[0].queue;

	if (queue && queue->first) {
		struct agenda_entry *next = queue->first;

		queue->first = next->behind;
		replace_first(agenda, (struct agenda_moment){next->key, next, queue});
		return;
	}
	if (queue)
		queue->is_busy = false;
	agenda->count--;
	replace_first(agenda, agenda->moments[agenda->count]);
}

static struct agenda_entry *take_first(struct agenda *agenda)
{
	struct agenda_moment *moment = &agenda->moments[0];
	struct agenda_entry *entry = moment->first;

	agenda->now = time_of(moment->key);
	if (entry == agenda->newest)
		agenda->newest = NULL;
	moment->first = entry->next;
	if (!moment->first)
		drop_first(agenda);
	return entry;
}

static struct agenda_entry *take_last(struct agenda *agenda)
{
	struct agenda_entry *entry = agenda->last_first;

	agenda->last_first = entry->next;
	return entry;
}

enum esp_status sim_agenda_run(struct agenda *agenda, double until, struct error *err)
{
	while (!agenda->failed) {
		double next = agenda->count > 0 ? time_of(agenda->moments[0].key) : INFINITY;
		bool is_due_now = agenda->count > 0 && next == agenda->now;
		struct agenda_entry *entry;

		if (!is_due_now && agenda->last_first)
			entry = take_last(agenda);
		else if (is_due_now || (agenda->count > 0 && next <= until))
			entry = take_first(agenda);
		else
			break;
		agenda_fn *call = entry->call;
		void *user = entry->user;
		entry->next = agenda->free;
		agenda->free = entry;
		agenda->happened++;
		call(user);
	}
	if (agenda->failed)
		return error_set(err, ESP_ENOMEM, "no memory for what is under way in the simulation");
	if (until > agenda->now && until < INFINITY)
		agenda->now = until;
	return ESP_OK;
}
