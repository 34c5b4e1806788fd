/*
 * shm_lane_test.c - a lane that receives a broadcast through descriptors written by hand: cut after each,
 * and with every number at its limits. It ends with the right data or with an error.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "hearer.h"
#include "transport/shm/parts.h"
#include "transport/shm/ring.h"
#include "transport/shm/shm.h"


struct rig {
	struct hearer hearer;
	struct segment *root, *own;
	struct segment_view *view;
	struct shm *shm;
	uint64_t position; /* in the root's ring */
	uint8_t data[CHUNK * CHUNKS];
};

/* Rank 1 receives what rank 0, the root, sends; the root is only a segment. */
static void rig_open(struct rig *rig)
{
	static const uint32_t numbers[2] = {0, 1};
	struct segment_config config = {
		.lanes = 1, .peers = 2, .slot_bytes = SLOT, .slots = 8, .small_shm_bytes = 64, .heap_bytes = 1u << 20,
		.is_open = true};

	*rig = (struct rig){0};
	hearer_open(&rig->hearer);
	CHECK(shm_segment_open(&config, &rig->root, NULL) == ESP_OK);
	config.self = 1;
	CHECK(shm_segment_open(&config, &rig->own, NULL) == ESP_OK);
	struct shm_config shm_config = {.segment = rig->own, .peers = 2, .peer_of = numbers};
	CHECK(shm_open_lane(&shm_config, &lane_user, lane_port(rig->hearer.lane, 0), &rig->shm, NULL) == ESP_OK);
	CHECK(shm_segment_view_open(rig->own, 0, dup(shm_segment_descriptor(rig->root)), &rig->view, NULL) == ESP_OK);
	shm_adopt(rig->shm, 0, rig->view, dup(shm_descriptor(rig->shm)));
	hearer_fill(rig->data);
}

static void rig_close(struct rig *rig)
{
	shm_close(rig->shm);
	shm_segment_view_close(rig->view);
	shm_segment_close(rig->own);
	shm_segment_close(rig->root);
	hearer_close(&rig->hearer);
}

static void leave(struct rig *rig, struct ring_note note)
{
	_Atomic uint64_t *replies = segment_at(rig->root, layout_replies(&rig->root->layout, 0, 1));

	atomic_store(&replies[rig->position % LAYOUT_RING], note.reply);
	ring_put(segment_at(rig->root, layout_ring(&rig->root->layout, 0, 1)), rig->position++, &note);
}

/* Chunk i lies in slot i. */
static struct ring_note note_of(struct rig *rig, uint32_t i)
{
	uint64_t at = layout_slot(&rig->root->layout, 0, i);

	memcpy(segment_at(rig->root, at), rig->data + i * CHUNK, CHUNK);
	return (struct ring_note){.kind = RING_SLOT, .stamp = 1, .index = i, .call = CALL, .bytes = CHUNK, .at = at};
}

/* How the call ends; ESP_PENDING: it does not. */
static enum esp_status outcome(struct rig *rig, uint32_t *out_culprit)
{
	struct lane_failure failure;
	struct exec_done done;

	while (shm_poll(rig->shm) > 0)
		;
	*out_culprit = PLAN_NONE;
	while (lane_take_failure(rig->hearer.lane, &failure)) {
		shm_forget(rig->shm, failure.channel);
		if (failure.channel == 0)
			*out_culprit = failure.why.node;
	}
	return lane_take_done(rig->hearer.lane, &done) ? done.status : ESP_PENDING;
}

static uint64_t published(const struct rig *rig, uint16_t channel)
{
	const _Atomic uint64_t *counter = segment_at(rig->own, layout_consumed(&rig->own->layout, 0, 0, channel));

	return atomic_load(counter);
}

/* After so many descriptors the root fails, or somebody says that it has died. */
static void cut_everywhere(void)
{
	for (uint32_t count = 0; count <= CHUNKS; count++) {
		for (int says_so = 0; says_so < 2; says_so++) {
			struct rig rig;
			uint32_t culprit;

			rig_open(&rig);
			for (uint32_t i = CHUNKS; i-- > CHUNKS - count;) /* last first, which is allowed */
				leave(&rig, note_of(&rig, i));
			CHECK(count == CHUNKS || outcome(&rig, &culprit) == ESP_PENDING);
			if (says_so)
				leave(&rig, (struct ring_note){.kind = RING_END});
			else if (count < CHUNKS)
				shm_drop(rig.shm, 0, ESP_EPEER);
			enum esp_status status = outcome(&rig, &culprit);
			CHECK(status == (count == CHUNKS ? ESP_OK : ESP_EPEER));
			if (status == ESP_OK)
				CHECK(memcmp(rig.hearer.out, rig.data, sizeof(rig.data)) == 0);
			else
				CHECK_U64(culprit, 0);
			rig_close(&rig);
		}
	}
}

/* What a call makes of one descriptor. */
static enum esp_status expected(const struct ring_note *note, const struct layout *layout)
{
	bool is_data = note->kind == RING_SLOT || note->kind == RING_BRIEF || ring_is_lent(note->kind);

	if (note->kind == RING_END)
		return ESP_EPEER;
	if (note->kind == RING_CREDIT) /* of no use of a channel that we know: late */
		return ESP_PENDING;
	if (note->kind == 0 || note->kind > RING_END || note->stamp == 0 || (note->kind == RING_EMPTY) != (note->bytes == 0) ||
	    note->bytes > SLOT)
		return ESP_ECORRUPT;
	if (is_data && (ring_is_lent(note->kind) ? note->at < layout->heap_at : note->at >= layout->heap_at))
		return ESP_ECORRUPT;
	if (note->kind == RING_OPEN && (note->reply < layout->heap_at || note->reply > layout->bytes - note->bytes))
		return ESP_ECORRUPT;
	if (note->channel > 1)
		return ESP_PENDING;
	if (note->ack != 0 || note->index >= CREDITS)
		return ESP_ECORRUPT;
	if (note->channel == 0 && note->index < CHUNKS && (note->call != CALL || note->bytes != CHUNK))
		return ESP_EMISMATCH;
	return note->kind == RING_STORED ? ESP_ECORRUPT : ESP_PENDING; /* nobody has asked for it */
}

static void try_note(struct ring_note note)
{
	struct rig rig;
	uint32_t culprit;

	rig_open(&rig);
	struct ring_note good = note_of(&rig, 0);
	note.at = note.at ? note.at : good.at;
	leave(&rig, note);
	enum esp_status status = outcome(&rig, &culprit), right = expected(&note, &rig.root->layout);
	CHECK_MSG(status == right && culprit == (right == ESP_PENDING ? PLAN_NONE : 0),
	          "kind %u, channel %u, stamp %u, index %u, ack %u, call %u, bytes %u: status %d, not %d", note.kind, note.channel,
	          note.stamp, note.index, note.ack, note.call, note.bytes, status, right);
	/* Nobody wants it: its sender need not wait. */
	if (note.channel > 1 && note.kind == RING_SLOT && right == ESP_PENDING)
		CHECK_U64(published(&rig, note.channel), ring_pair(note.index + 1, note.stamp));
	rig_close(&rig);
}

static void numbers_at_limits(void)
{
	static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, CHUNK - 1, CHUNK + 1, SLOT, SLOT + 1, 0x7fff, 0xffff, 0x7fffffff,
	                                  0x80000000, UINT32_MAX};
	const struct ring_note good = {.kind = RING_SLOT, .stamp = 1, .call = CALL, .bytes = CHUNK};

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct ring_note note = good;

		note.kind = (uint8_t)values[i];
		try_note(note);
		note = good;
		note.channel = (uint16_t)values[i];
		try_note(note);
		note = good;
		note.stamp = values[i];
		try_note(note);
		note = good;
		note.index = values[i];
		try_note(note);
		note = good;
		note.ack = values[i];
		try_note(note);
		note = good;
		note.call = values[i];
		try_note(note);
		note = good;
		note.bytes = values[i];
		try_note(note);
		note.kind = RING_EMPTY;
		try_note(note);
		note.kind = RING_BRIEF;
		try_note(note);
		note.kind = RING_STORED;
		try_note(note);
	}
}

/* Places for an answer that are none. */
static void replies_at_limits(void)
{
	struct rig rig;

	rig_open(&rig);
	struct layout layout = rig.root->layout;
	rig_close(&rig);
	const uint64_t replies[] = {0, layout.heap_at - 1, layout.heap_at, layout.bytes - CHUNK, layout.bytes - CHUNK + 1, layout.bytes, UINT64_MAX};

	for (unsigned i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
		try_note((struct ring_note){.kind = RING_OPEN, .channel = 1, .stamp = 1, .call = CALL, .bytes = CHUNK, .at = layout.heap_at, .reply = replies[i]});
}

/* The same message twice. */
static void repeated(void)
{
	struct rig rig;
	uint32_t culprit;

	rig_open(&rig);
	leave(&rig, note_of(&rig, 1));
	leave(&rig, note_of(&rig, 1));
	CHECK(outcome(&rig, &culprit) == ESP_ECORRUPT && culprit == 0);
	rig_close(&rig);
}

/* What goes wrong on one channel, before all else, is no matter to another. */
static void innocent_neighbour(void)
{
	static const struct ring_note strays[] = {
		{.kind = RING_SLOT, .channel = 1, .stamp = 2, .call = CALL + 1, .bytes = CHUNK},
		{.kind = RING_SLOT, .channel = 1, .stamp = 2, .call = CALL, .bytes = CHUNK - 1},
		{.kind = RING_BRIEF, .channel = 1, .stamp = 2, .call = CALL + 1, .bytes = CHUNK},
		{.kind = RING_SLOT, .channel = 9, .stamp = 2, .index = 77, .ack = 99, .bytes = SLOT},
		{.kind = RING_EMPTY, .channel = 9, .stamp = 2},
		{.kind = RING_CREDIT, .channel = 9, .ack = 99},
	};

	for (unsigned i = 0; i < sizeof(strays) / sizeof(strays[0]); i++) {
		struct rig rig;
		struct ring_note note = strays[i];
		uint8_t junk[CHUNK * CHUNKS];
		uint32_t culprit;

		rig_open(&rig);
		hearer_start_other(&rig.hearer, junk);
		note.at = layout_slot(&rig.root->layout, 0, 7);
		leave(&rig, note);
		if (note.channel == 1)
			CHECK(outcome(&rig, &culprit) == ESP_EMISMATCH);
		for (uint32_t k = 0; k < CHUNKS; k++)
			leave(&rig, note_of(&rig, k));
		CHECK(outcome(&rig, &culprit) == ESP_OK);
		CHECK(memcmp(rig.hearer.out, rig.data, sizeof(rig.data)) == 0);
		CHECK_U64(published(&rig, 0), ring_pair(CHUNKS, 1));
		rig_close(&rig);
	}
}

/* The root takes its memory back while a chunk waits for its turn: it is not used. */
static void taken_back(void)
{
	struct rig rig;
	uint32_t culprit;

	rig_open(&rig);
	struct ring_note note = note_of(&rig, 0);
	note.channel = 1; /* whose call was not started yet */
	leave(&rig, note);
	CHECK(outcome(&rig, &culprit) == ESP_PENDING);
	_Atomic uint32_t *word = segment_at(rig.root, layout_revoked(&rig.root->layout, 0, 1, 1));
	atomic_store(word, 1);
	hearer_start_other(&rig.hearer, rig.hearer.out);
	CHECK(outcome(&rig, &culprit) == ESP_EPEER);
	rig_close(&rig);
}

int main(void)
{
	cut_everywhere();
	numbers_at_limits();
	replies_at_limits();
	repeated();
	innocent_neighbour();
	taken_back();
	return 0;
}
