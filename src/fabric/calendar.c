#include "fabric/calendar.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PARTS_EACH 4u /* of a booking, in the average */

/* The rest of a link from a time on; below 0 where its rate has fallen below what is booked. */
struct step {
	uint64_t at;
	int64_t left, rate;
};

struct line {
	struct step *steps; /* ascending; the first is at 0 or at the time of the last trim */
	uint32_t count;
};

struct part {
	struct calendar_part part;
	uint32_t next; /* of the booking, or free */
};

struct booking {
	struct calendar_path path;
	uint32_t first, last;     /* parts */
	uint32_t next, previous;  /* by age; `next` also links those that are free */
	uint64_t number;          /* of all that were ever made */
	bool is_made;
};

struct calendar {
	uint32_t link_count, step_room, booking_room, part_room;
	struct line *lines;
	struct booking *bookings;
	struct part *parts;
	uint32_t free_booking, free_part, free_parts, oldest, newest, made;
	uint64_t numbers;
};

/* ---- opening ---- */

static void chain_free(struct calendar *calendar)
{
	for (uint32_t i = 0; i < calendar->booking_room; i++)
		calendar->bookings[i].next = i + 1 < calendar->booking_room ? i + 1 : CALENDAR_NONE;
	for (uint32_t i = 0; i < calendar->part_room; i++)
		calendar->parts[i].next = i + 1 < calendar->part_room ? i + 1 : CALENDAR_NONE;
	calendar->free_booking = calendar->free_part = 0;
	calendar->free_parts = calendar->part_room;
	calendar->oldest = calendar->newest = CALENDAR_NONE;
}

static bool allocate(struct calendar *calendar)
{
	struct step *steps = calloc((size_t)calendar->link_count * calendar->step_room, sizeof(*steps));

	calendar->lines = calloc(calendar->link_count, sizeof(*calendar->lines));
	calendar->bookings = calloc(calendar->booking_room, sizeof(*calendar->bookings));
	calendar->parts = calloc(calendar->part_room, sizeof(*calendar->parts));
	if (!steps || !calendar->lines || !calendar->bookings || !calendar->parts) {
		free(steps);
		return false;
	}
	for (uint32_t i = 0; i < calendar->link_count; i++)
		calendar->lines[i] = (struct line){steps + (size_t)i * calendar->step_room, 1};
	chain_free(calendar);
	return true;
}

enum esp_status calendar_open(uint32_t links, uint32_t steps, uint32_t bookings, struct calendar **out,
                              struct error *err)
{
	if (links < 1 || links > CALENDAR_LINKS_MOST || steps < 4 || steps > 1u << 20 || bookings < 1 ||
	    bookings > 1u << 20)
		return error_set(err, ESP_EINVAL, "a calendar of %u links, %u steps and %u bookings is out of range", links,
		                 steps, bookings);
	struct calendar *calendar = calloc(1, sizeof(*calendar));
	if (!calendar)
		return error_set(err, ESP_ENOMEM, "no memory for a calendar");
	calendar->link_count = links;
	calendar->step_room = steps;
	calendar->booking_room = bookings;
	calendar->part_room = bookings * PARTS_EACH + steps;
	if (!allocate(calendar)) {
		calendar_close(calendar);
		return error_set(err, ESP_ENOMEM, "no memory for a calendar of %u links", links);
	}
	*out = calendar;
	return ESP_OK;
}

void calendar_close(struct calendar *calendar)
{
	if (!calendar)
		return;
	if (calendar->lines)
		free(calendar->lines[0].steps);
	free(calendar->lines);
	free(calendar->bookings);
	free(calendar->parts);
	free(calendar);
}

/* ---- steps ---- */

/* The step that holds at a time. */
static uint32_t step_at(const struct line *line, uint64_t at)
{
	uint32_t low = 0, high = line->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (line->steps[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint64_t step_end(const struct line *line, uint32_t index)
{
	return index + 1 < line->count ? line->steps[index + 1].at : CALENDAR_NEVER;
}

/* The step that begins at this time; it is made if there is none, for which there is room. */
static uint32_t cut(const struct calendar *calendar, struct line *line, uint64_t at)
{
	uint32_t index = step_at(line, at);

	if (line->steps[index].at >= at)
		return index;
	assert(line->count < calendar->step_room);
	memmove(&line->steps[index + 2], &line->steps[index + 1], (line->count - index - 1) * sizeof(line->steps[0]));
	line->steps[index + 1] = line->steps[index];
	line->steps[index + 1].at = at;
	line->count++;
	return index + 1;
}

/* A step that differs in nothing from the one before it is none. */
static void join(struct line *line, uint32_t index)
{
	if (index == 0 || index >= line->count)
		return;
	const struct step *before = &line->steps[index - 1], *here = &line->steps[index];
	if (before->left != here->left || before->rate != here->rate)
		return;
	line->count--;
	memmove(&line->steps[index], &line->steps[index + 1], (line->count - index) * sizeof(line->steps[0]));
}

static void add(struct calendar *calendar, uint32_t link, uint64_t from, uint64_t to, int64_t left)
{
	struct line *line = &calendar->lines[link];

	if (from < line->steps[0].at)
		from = line->steps[0].at;
	if (to <= from)
		return;
	uint32_t first = cut(calendar, line, from), last = cut(calendar, line, to);

	for (uint32_t i = first; i < last; i++)
		line->steps[i].left += left;
	join(line, last);
	join(line, first);
}

static bool has_room(const struct calendar *calendar, uint32_t link, uint32_t steps)
{
	return calendar->step_room - calendar->lines[link].count >= steps;
}

bool calendar_set_rate(struct calendar *calendar, uint32_t link, uint64_t from, uint64_t rate)
{
	assert(link < calendar->link_count && rate <= CALENDAR_RATE_MOST);
	struct line *line = &calendar->lines[link];

	if (!has_room(calendar, link, 3))
		return false;
	uint32_t first = cut(calendar, line, from > line->steps[0].at ? from : line->steps[0].at);
	for (uint32_t i = first; i < line->count; i++) {
		line->steps[i].left += (int64_t)rate - line->steps[i].rate;
		line->steps[i].rate = (int64_t)rate;
	}
	for (uint32_t i = line->count; i-- > first;)
		join(line, i);
	return true;
}

uint64_t calendar_rate(const struct calendar *calendar, uint32_t link, uint64_t at)
{
	assert(link < calendar->link_count);
	const struct line *line = &calendar->lines[link];

	return (uint64_t)line->steps[step_at(line, at)].rate;
}

uint64_t calendar_left(const struct calendar *calendar, uint32_t link, uint64_t at)
{
	assert(link < calendar->link_count);
	const struct line *line = &calendar->lines[link];
	int64_t left = line->steps[step_at(line, at)].left;

	return left > 0 ? (uint64_t)left : 0;
}

uint64_t calendar_booked_until(const struct calendar *calendar, uint32_t link)
{
	assert(link < calendar->link_count);
	const struct line *line = &calendar->lines[link];
	uint32_t i = line->count;

	while (i > 0 && line->steps[i - 1].left == line->steps[i - 1].rate)
		i--;
	return i < line->count ? line->steps[i].at : CALENDAR_NEVER;
}

/* ---- a walk along a path ---- */

/* The bottleneck of a path while it stays the same. */
struct walk {
	const struct calendar *calendar;
	const struct calendar_path *path;
	uint32_t steps[CALENDAR_PATH_MOST];
	uint64_t at, until, rate;
};

static void look(struct walk *walk)
{
	int64_t rate = INT64_MAX;

	walk->until = CALENDAR_NEVER;
	for (uint32_t i = 0; i < walk->path->count; i++) {
		const struct line *line = &walk->calendar->lines[walk->path->links[i]];

		while (step_end(line, walk->steps[i]) <= walk->at)
			walk->steps[i]++;
		if (step_end(line, walk->steps[i]) < walk->until)
			walk->until = step_end(line, walk->steps[i]);
		if (line->steps[walk->steps[i]].left < rate)
			rate = line->steps[walk->steps[i]].left;
	}
	walk->rate = rate > 0 ? (uint64_t)rate : 0;
}

static void walk_begin(struct walk *walk, const struct calendar *calendar, const struct calendar_path *path,
                       uint64_t from)
{
	assert(path->count >= 1 && path->count <= CALENDAR_PATH_MOST);
	*walk = (struct walk){.calendar = calendar, .path = path, .at = from};
	for (uint32_t i = 0; i < path->count; i++) {
		assert(path->links[i] < calendar->link_count);
		const struct line *line = &calendar->lines[path->links[i]];

		if (walk->at < line->steps[0].at)
			walk->at = line->steps[0].at;
	}
	for (uint32_t i = 0; i < path->count; i++)
		walk->steps[i] = step_at(&calendar->lines[path->links[i]], walk->at);
	look(walk);
}

/* The rest of the bytes once the bottleneck changes; *out_end is set if nothing is. */
static uint64_t send(const struct walk *walk, uint64_t bytes, uint64_t *out_end)
{
	if (walk->rate == 0)
		return bytes;
	unsigned __int128 needed = ((unsigned __int128)bytes * NS_PER_S + walk->rate - 1) / walk->rate;

	if (walk->until == CALENDAR_NEVER || needed <= walk->until - walk->at) {
		*out_end = needed < CALENDAR_NEVER - walk->at ? walk->at + (uint64_t)needed : CALENDAR_NEVER;
		return 0;
	}
	return bytes - (uint64_t)((unsigned __int128)walk->rate * (walk->until - walk->at) / NS_PER_S);
}

static bool walk_next(struct walk *walk)
{
	if (walk->until == CALENDAR_NEVER)
		return false;
	walk->at = walk->until;
	look(walk);
	return true;
}

uint64_t calendar_fit(const struct calendar *calendar, const struct calendar_path *path, uint64_t from, uint64_t bytes)
{
	struct walk walk;
	uint64_t end = CALENDAR_NEVER;

	assert(bytes > 0 && bytes <= CALENDAR_BYTES_MOST);
	walk_begin(&walk, calendar, path, from);
	while ((bytes = send(&walk, bytes, &end)) > 0) {
		if (!walk_next(&walk))
			return CALENDAR_NEVER;
	}
	return end;
}

/* ---- bookings ---- */

static void add_part(struct calendar *calendar, struct booking *booking, const struct calendar_part *part)
{
	uint32_t index = calendar->free_part;

	assert(index != CALENDAR_NONE);
	calendar->free_part = calendar->parts[index].next;
	calendar->free_parts--;
	calendar->parts[index] = (struct part){*part, CALENDAR_NONE};
	if (booking->first == CALENDAR_NONE)
		booking->first = index;
	else
		calendar->parts[booking->last].next = index;
	booking->last = index;
}

static uint32_t new_booking(struct calendar *calendar, const struct calendar_path *path)
{
	uint32_t index = calendar->free_booking;
	struct booking *booking = &calendar->bookings[index];

	calendar->free_booking = booking->next;
	*booking = (struct booking){.path = *path, .first = CALENDAR_NONE, .last = CALENDAR_NONE, .next = CALENDAR_NONE,
	                            .previous = calendar->newest, .number = calendar->numbers++, .is_made = true};
	if (calendar->newest == CALENDAR_NONE)
		calendar->oldest = index;
	else
		calendar->bookings[calendar->newest].next = index;
	calendar->newest = index;
	calendar->made++;
	return index;
}

static void free_booking(struct calendar *calendar, uint32_t index)
{
	struct booking *booking = &calendar->bookings[index];

	while (booking->first != CALENDAR_NONE) {
		uint32_t part = booking->first;

		booking->first = calendar->parts[part].next;
		calendar->parts[part].next = calendar->free_part;
		calendar->free_part = part;
		calendar->free_parts++;
	}
	if (booking->previous == CALENDAR_NONE)
		calendar->oldest = booking->next;
	else
		calendar->bookings[booking->previous].next = booking->next;
	if (booking->next == CALENDAR_NONE)
		calendar->newest = booking->previous;
	else
		calendar->bookings[booking->next].previous = booking->previous;
	booking->is_made = false;
	booking->next = calendar->free_booking;
	calendar->free_booking = index;
	calendar->made--;
}

/* Parts that a booking would have; 0: it would never end. */
static uint32_t count_parts(const struct calendar *calendar, const struct calendar_path *path, uint64_t from,
                            uint64_t bytes)
{
	struct walk walk;
	uint64_t end = CALENDAR_NEVER;
	uint32_t parts = 0;

	walk_begin(&walk, calendar, path, from);
	for (;;) {
		parts += walk.rate > 0;
		bytes = send(&walk, bytes, &end);
		if (bytes == 0)
			return end == CALENDAR_NEVER ? 0 : parts;
		if (!walk_next(&walk))
			return 0;
	}
}

/* A booking cuts no line but where it begins and ends: between, it follows steps of one line or the other. */
static bool path_has_room(const struct calendar *calendar, const struct calendar_path *path, uint32_t parts)
{
	for (uint32_t i = 0; i < path->count; i++) {
		if (!has_room(calendar, path->links[i], 2 * parts + 2))
			return false;
	}
	return calendar->free_booking != CALENDAR_NONE && calendar->free_parts >= parts;
}

static void book(struct calendar *calendar, const struct booking *booking)
{
	for (uint32_t part = booking->first; part != CALENDAR_NONE; part = calendar->parts[part].next) {
		const struct calendar_part *of = &calendar->parts[part].part;

		for (uint32_t i = 0; i < booking->path.count; i++)
			add(calendar, booking->path.links[i], of->from, of->to, -(int64_t)of->rate);
	}
}

uint32_t calendar_take(struct calendar *calendar, const struct calendar_path *path, uint64_t from, uint64_t bytes,
                       struct calendar_span *out)
{
	struct walk walk;

	assert(bytes > 0 && bytes <= CALENDAR_BYTES_MOST);
	uint32_t parts = count_parts(calendar, path, from, bytes);
	if (parts == 0 || !path_has_room(calendar, path, parts))
		return CALENDAR_NONE;
	uint32_t index = new_booking(calendar, path);
	struct booking *booking = &calendar->bookings[index];
	walk_begin(&walk, calendar, path, from);
	do {
		uint64_t end = walk.until;

		bytes = send(&walk, bytes, &end);
		if (walk.rate > 0)
			add_part(calendar, booking, &(struct calendar_part){walk.at, end, walk.rate});
	} while (bytes > 0 && walk_next(&walk));
	assert(bytes == 0);
	book(calendar, booking);
	*out = (struct calendar_span){calendar->parts[booking->first].part.from, calendar->parts[booking->last].part.to};
	return index;
}

void calendar_give_back(struct calendar *calendar, uint32_t index, uint64_t from)
{
	assert(index < calendar->booking_room && calendar->bookings[index].is_made);
	const struct booking *booking = &calendar->bookings[index];

	for (uint32_t part = booking->first; part != CALENDAR_NONE; part = calendar->parts[part].next) {
		struct calendar_part *of = &calendar->parts[part].part;
		uint64_t begin = of->from > from ? of->from : from;

		if (begin >= of->to)
			continue;
		for (uint32_t i = 0; i < booking->path.count; i++) {
			if (has_room(calendar, booking->path.links[i], 2))
				add(calendar, booking->path.links[i], begin, of->to, (int64_t)of->rate);
		}
		of->to = begin;
	}
	if (from == 0)
		free_booking(calendar, index);
}

bool calendar_part(const struct calendar *calendar, uint32_t index, uint32_t *at, struct calendar_part *out)
{
	assert(index < calendar->booking_room && calendar->bookings[index].is_made);
	uint32_t part = calendar->bookings[index].first;

	for (uint32_t i = 0; i < *at && part != CALENDAR_NONE; i++)
		part = calendar->parts[part].next;
	if (part == CALENDAR_NONE)
		return false;
	*out = calendar->parts[part].part;
	(*at)++;
	return true;
}

uint64_t calendar_mark(const struct calendar *calendar)
{
	return calendar->numbers;
}

void calendar_rollback(struct calendar *calendar, uint64_t mark)
{
	assert(mark <= calendar->numbers);
	while (calendar->newest != CALENDAR_NONE && calendar->bookings[calendar->newest].number >= mark)
		calendar_give_back(calendar, calendar->newest, 0);
	calendar->numbers = mark;
}

void calendar_trim(struct calendar *calendar, uint64_t now)
{
	for (uint32_t i = 0; i < calendar->link_count; i++) {
		struct line *line = &calendar->lines[i];
		uint32_t first = step_at(line, now);

		line->count -= first;
		memmove(line->steps, line->steps + first, line->count * sizeof(line->steps[0]));
		if (line->steps[0].at < now)
			line->steps[0].at = now;
	}
}

uint32_t calendar_bookings(const struct calendar *calendar)
{
	return calendar->made;
}
