/*
 * shm_faults_test.c - a peer that leaves nonsense: it is lost, and nothing else happens.
 *
 *     shm_faults_test [--seed FIRST] [--count N]
 *
 * Rank A is the broken one: the test writes into its segment what its own code never would.
 */
#include "support/shm_rig.h"

#define A 0u
#define B 1u
#define C 2u

/* Leaves one descriptor for B, as if it were the next. */
static void leave(struct rig *rig, struct ring_note note)
{
	struct peer *to_b = &rig->ranks[A].shm->peers[B];

	ring_put(to_b->to, to_b->to_position++, &note);
}

static void check_innocent(struct rig *rig)
{
	CHECK_U64(rig->ranks[C].user.lost[A] + rig->ranks[C].user.lost[B] + rig->ranks[B].user.lost[C], 0);
	CHECK(rig->ranks[B].user.failed == ESP_OK);
}

static void check_refused(struct rig *rig, const char *what)
{
	for (int i = 0; i < 3; i++)
		shm_poll(rig->ranks[B].shm);
	CHECK_MSG(rig->ranks[B].user.lost[A] == 1 && rig->ranks[B].user.why == ESP_ECORRUPT, "%s was not refused", what);
	check_innocent(rig);
}

static bool is_taken(struct rig *rig)
{
	shm_poll(rig->ranks[B].shm);
	return rig->ranks[B].user.lost[A] == 0;
}

/* ---- descriptors ---- */

static void try_note(struct ring_note note, bool could_be)
{
	struct rig *rig = rig_open(4, false);

	leave(rig, note);
	CHECK_MSG(is_taken(rig) == could_be, "kind %u, channel %u, stamp %u, bytes %u, at %#" PRIx64, note.kind,
	          note.channel, note.stamp, note.bytes, note.at);
	if (!could_be)
		CHECK(rig->ranks[B].user.why == ESP_ECORRUPT || note.kind == RING_END);
	check_innocent(rig);
	rig_close(rig);
}

static void descriptors_at_limits(void)
{
	struct rig *rig = rig_open(4, false);
	struct layout layout = rig->ranks[A].segment->layout;

	rig_close(rig);
	const struct ring_note slot = {.kind = RING_SLOT, .stamp = 1, .bytes = 100, .at = layout_slot(&layout, 1, 0)};
	const struct ring_note brief = {.kind = RING_BRIEF, .stamp = 1, .bytes = 100, .at = layout_slot(&layout, 1, 0)};
	const struct ring_note heap = {.kind = RING_HEAP, .stamp = 1, .bytes = 100, .at = layout.heap_at};
	struct ring_note note;

	try_note(slot, true);
	try_note(heap, true);
	try_note(brief, true);
	for (uint32_t kind = 0; kind < 256; kind += kind < 8 ? 1 : 31) {
		note = (struct ring_note){.kind = (uint8_t)kind, .stamp = 1};
		try_note(note, kind == RING_EMPTY || kind == RING_CREDIT);
	}
	for (int i = 0; i < 3; i++) {
		static const uint32_t bytes[] = {0, RIG_SLOT_BYTES + 1, 0x7fffffff, 0x80000000, UINT32_MAX};

		note = i == 0 ? heap : i == 1 ? slot : brief;
		note.bytes = RIG_SLOT_BYTES;
		try_note(note, true);
		for (int k = 0; k < 5; k++) {
			note.bytes = bytes[k];
			try_note(note, false);
		}
		note = i == 0 ? heap : i == 1 ? slot : brief;
		note.stamp = 0;
		try_note(note, false);
	}
	try_note((struct ring_note){.kind = RING_EMPTY, .stamp = 1, .bytes = 1}, false);
	try_note((struct ring_note){.kind = RING_EMPTY, .stamp = 0}, false);

	const uint64_t heap_end = layout.heap_at + layout.heap_bytes, most = (UINT64_C(1) << 56) - 1;
	const uint64_t not_slots[] = {0,
	                              layout_slot(&layout, 1, 0) - 64,
	                              layout_slot(&layout, 1, 0) + 64,
	                              layout_slot(&layout, 0, 0),
	                              layout_slot(&layout, 1, layout.slots),
	                              layout.heap_at,
	                              most};
	const uint64_t not_heap[] = {0,    layout.heap_at - 1, heap_end - 99, heap_end, layout_slot(&layout, 1, 0),
	                             most, most - 50};
	for (int i = 0; i < 7; i++) {
		note = slot;
		note.at = not_slots[i];
		try_note(note, false);
		note = brief;
		note.at = not_slots[i];
		try_note(note, false);
		note = heap;
		note.at = not_heap[i];
		try_note(note, false);
	}
	note = heap;
	note.at = heap_end - 100;
	try_note(note, true);
	note = slot;
	note.at = layout_slot(&layout, 1, 3);
	try_note(note, true);
}

/* Anything but the next tag, or what the lap before left, is nonsense. */
static void tags(void)
{
	for (uint32_t tag = 0; tag <= UINT16_MAX; tag += tag < 300 || tag > 65400 ? 1 : 97) {
		bool is_old = tag == 0, is_next = tag == 1;

		CHECK(ring_judge(tag, 0) == (is_next ? RING_SOME : is_old ? RING_NOTHING : RING_NONSENSE));
		is_next = tag == LAYOUT_RING + 1;
		is_old = tag == 1;
		CHECK(ring_judge(tag, LAYOUT_RING) == (is_next ? RING_SOME : is_old ? RING_NOTHING : RING_NONSENSE));
		is_next = tag == 0;
		is_old = tag == 65536 - LAYOUT_RING;
		CHECK(ring_judge(tag, UINT64_C(0x1234ffff)) == (is_next ? RING_SOME : is_old ? RING_NOTHING : RING_NONSENSE));
	}
	struct rig *rig = rig_open(4, false);
	leave(rig, (struct ring_note){.kind = RING_CREDIT});
	CHECK(is_taken(rig));
	rig->ranks[A].shm->peers[B].to_position++;
	/* Out of order is no matter until it is its turn. */
	leave(rig, (struct ring_note){.kind = RING_CREDIT});
	CHECK(is_taken(rig));
	CHECK_U64(rig->ranks[B].user.credits[A], 1);
	atomic_store(&rig->ranks[A].shm->peers[B].to[1].words[0], 7);
	CHECK(!shm_doze(rig->ranks[B].shm));
	check_refused(rig, "a tag");
	rig_close(rig);
}

/* Another use of the channel begins, though this one is not over. */
static void early_use(void)
{
	struct rig *rig = rig_open(4, false);
	uint64_t at = layout_slot(&rig->ranks[A].segment->layout, 1, 0);

	leave(rig, (struct ring_note){.kind = RING_SLOT, .stamp = 1, .bytes = 1, .at = at});
	leave(rig, (struct ring_note){.kind = RING_SLOT, .stamp = 2, .bytes = 1, .at = at});
	check_refused(rig, "a second use of a channel");
	rig_close(rig);
}

/* The user's answer counts. */
static void user_refuses(void)
{
	static const enum esp_status answers[] = {ESP_ECORRUPT, ESP_EMISMATCH, ESP_ENOMEM};

	for (int i = 0; i < 3; i++) {
		for (int credit = 0; credit < 2; credit++) {
			struct rig *rig = rig_open(4, false);

			rig->ranks[B].user.answer = answers[i];
			leave(rig, (struct ring_note){.kind = credit ? RING_CREDIT : RING_EMPTY, .stamp = credit ? 0 : 1});
			CHECK(!is_taken(rig) && rig->ranks[B].user.why == answers[i]);
			check_innocent(rig);
			rig_close(rig);
		}
	}
}

/* ---- counters ---- */

/* A sends two messages to B; then B's counters say this, B being the broken one. */
static void try_counter(uint64_t value, bool could_be, uint32_t sent)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096);

	a->shm->stamps = 4;
	for (uint32_t i = 10; i < 12; i++)
		rig_send(a, B, (struct transport_message){.channel = 3, .index = i, .bytes = 10, .data = memory});
	shm_poll(a->shm);
	struct segment *broken = rig->ranks[B].segment;
	_Atomic uint64_t *counter = segment_at(broken, layout_consumed(&broken->layout, 1, A, 3));
	atomic_store(counter, value);
	for (int i = 0; i < 3; i++)
		shm_poll(a->shm);
	CHECK_MSG((a->user.lost[B] == 0) == could_be, "counter %#" PRIx64, value);
	CHECK(could_be || a->user.why == ESP_ECORRUPT);
	CHECK_U64(a->user.sent[B], sent);
	CHECK_U64(a->user.lost[C], 0);
	rig_close(rig);
}

static void counters(void)
{
	try_counter(ring_pair(10, 5), true, 0);
	try_counter(ring_pair(11, 5), true, 1);
	try_counter(ring_pair(12, 5), true, 2);
	try_counter(ring_pair(13, 5), false, 0);
	try_counter(ring_pair(9, 5), true, 0);
	try_counter(ring_pair(0x7fffffff, 5), false, 0);
	try_counter(ring_pair(0x80000100, 5), true, 0); /* far below */
	try_counter(ring_pair(12, 4), true, 0); /* an earlier use */
	try_counter(ring_pair(UINT32_MAX, 0), true, 0);
	try_counter(ring_pair(12, 6), false, 0); /* one that never was */
	try_counter(UINT64_MAX, true, 0);
	try_counter(ring_pair(12, 0x7fffffff), false, 0);
}

static void taken(void)
{
	static const uint32_t values[] = {LAYOUT_RING, 1u << 31, UINT32_MAX};

	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_open(1, false);
		struct rig_rank *a = &rig->ranks[A];
		struct segment *broken = rig->ranks[B].segment;
		_Atomic uint32_t *word = segment_at(broken, layout_taken(&broken->layout, 1, A));

		for (uint32_t k = 0; k < 300; k++)
			rig_send(a, B, (struct transport_message){.channel = 3, .index = k});
		while (shm_poll(a->shm) > 0)
			;
		CHECK(a->user.lost[B] == 0 && a->user.pulled[B] == LAYOUT_RING - 1);
		atomic_store(word, values[i]);
		CHECK(!shm_doze(a->shm) || shm_poll(a->shm) > 0);
		CHECK(a->user.lost[B] == 1 && a->user.why == ESP_ECORRUPT && a->user.lost[C] == 0);
		rig_close(rig);
	}
}

/*
 * A peer turns out to be broken while it is handed what there is for it, before its message is read: that one is not
 * offered.
 */
static void taken_while_handing_over(void)
{
	struct rig *rig = rig_open(1, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	const struct layout *layout = &a->segment->layout;
	uint8_t data[10] = {0};

	for (uint32_t i = 0; i < 300; i++)
		rig_send(b, A, (struct transport_message){.channel = 3, .index = i});
	while (shm_poll(b->shm) > 0)
		;
	CHECK_U64(b->user.pulled[A], LAYOUT_RING - 1);
	for (uint32_t i = 0; i < 2; i++)
		leave(rig, (struct ring_note){.kind = RING_HEAP,
		                              .channel = 1,
		                              .stamp = 1,
		                              .index = i,
		                              .bytes = RIG_SLOT_BYTES,
		                              .at = layout->heap_at});
	rig_send(b, C, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = data});
	atomic_store((_Atomic uint32_t *)segment_at(a->segment, layout_taken(layout, 1, B)), UINT32_MAX);
	shm_poll(b->shm);
	CHECK(b->user.lost[A] == 1 && b->user.why == ESP_ECORRUPT);
	CHECK_U64(b->user.inbox[A][1].count, 0);
	shm_poll(rig->ranks[C].shm);
	CHECK_U64(rig->ranks[C].user.inbox[B][2].count, 1); /* the others get theirs */
	check_innocent(rig);
	rig_close(rig);
}

/* ---- anything ---- */

/* Random bytes over what a peer shares: whatever is offered can be read. */
static void run_seed(uint64_t seed)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	struct rng rng;
	uint8_t data[20] = {0};

	rng_init(&rng, seed);
	b->user.consumes = true;
	for (uint32_t step = 0; step < 200 && b->user.lost[A] == 0; step++) {
		struct ring_note note = {
			.kind = (uint8_t)(rng_chance(&rng, 1, 20) ? rng_next(&rng) : 1 + rng_below(&rng, RING_END - 1)),
			.channel = (uint16_t)rng_below(&rng, RIG_CHANNELS),
			.stamp = (uint32_t)rng_below(&rng, 3) + (rng_chance(&rng, 1, 10) ? 0 : 1),
			.index = (uint32_t)rng_next(&rng),
			.ack = (uint32_t)rng_next(&rng),
			.call = (uint32_t)rng_next(&rng),
			.bytes = (uint32_t)rng_below(&rng, rng_chance(&rng, 1, 10) ? UINT32_MAX : RIG_SLOT_BYTES),
		};
		const struct layout *layout = &a->segment->layout;
		note.at = note.kind == RING_SLOT || note.kind == RING_BRIEF
		              ? layout_slot(layout, 1, (uint32_t)rng_below(&rng, 4))
		          : note.kind == RING_HEAP ? layout->heap_at + rng_below(&rng, layout->heap_bytes)
		                                   : 0;
		if (rng_chance(&rng, 1, 20))
			note.at = rng_next(&rng) >> (8 + rng_below(&rng, 48));
		if (note.kind == RING_EMPTY && rng_chance(&rng, 9, 10))
			note.bytes = 0;
		leave(rig, note);
		shm_poll(b->shm);
		CHECK_U64(b->user.sum, 0); /* never written, but all of it was read */
		rig_send(b, A, (struct transport_message){.channel = note.channel, .index = step, .bytes = 20, .data = data});
		_Atomic uint64_t *counter = segment_at(a->segment, layout_consumed(layout, 1, B, note.channel));
		if (rng_chance(&rng, 1, 2))
			atomic_store(counter, ring_pair((uint32_t)rng_below(&rng, step + 2), (uint32_t)rng_below(&rng, 8)));
	}
	check_innocent(rig);
	rig_close(rig);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 100);

	descriptors_at_limits();
	tags();
	early_use();
	user_refuses();
	counters();
	taken();
	taken_while_handing_over();
	for (uint64_t seed = first; seed - first < count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		run_seed(seed);
	}
	return 0;
}
