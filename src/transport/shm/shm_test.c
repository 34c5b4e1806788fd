/*
 * shm_test.c - messages between ranks: copied or offered, shared, held back; sleeping and waking.
 */
#include "support/shm_rig.h"

#define A 0u
#define B 1u
#define C 2u

static struct rig_inbox *inbox(struct rig *rig, uint32_t at, uint32_t from, uint16_t channel)
{
	return &rig->ranks[at].user.inbox[from][channel];
}

static bool is_revoked(const struct transport_message *message)
{
	return atomic_load(message->revoked) != 0;
}

/* ---- how data goes ---- */

static void copied(void)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t data[RIG_SLOT_BYTES];
	int cookie;

	rig_fill(data, sizeof(data), 1);
	rig_send(a, B, (struct transport_message){.channel = 3, .index = 0, .ack = 77, .call = 99, .bytes = sizeof(data),
	                                          .data = data, .cookie = &cookie});
	CHECK(shm_poll(a->shm) > 0);
	CHECK(a->user.sent[B] == 1 && a->user.sent_last == &cookie);
	memset(data, 0, sizeof(data)); /* it has left */
	rig_run(rig);
	struct rig_inbox *in = inbox(rig, B, A, 3);
	CHECK_U64(in->count, 1);
	CHECK(in->last.index == 0 && in->last.ack == 77 && in->last.call == 99 && in->last.bytes == sizeof(data));
	CHECK(rig_holds(in->last.data, sizeof(data), 1));
	CHECK_U64(a->shm->slots.taken, 1);
	in->consumed = 1;
	rig_run(rig);
	CHECK_U64(a->shm->slots.taken, 0);
	CHECK_U64(a->user.sent[B], 1);

	struct shm_stats stats = shm_stats(a->shm);
	CHECK(stats.messages_sent == 1 && stats.copied_bytes == sizeof(data) && stats.offered_bytes == 0);
	CHECK_U64(stats.slots_most, 1);
	CHECK_U64(shm_stats(rig->ranks[B].shm).messages_received, 1);
	CHECK_U64(shm_poll(a->shm), 0);
	rig_close(rig);
}

/*
 * Large data lies in a line of the copy as it does in memory, for all that share the copy; a slot is used anew with
 * another shift.
 */
static void in_step(void)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A];
	_Alignas(TRANSPORT_SHIFTS) uint8_t data[RIG_SLOT_BYTES + TRANSPORT_SHIFTS];

	for (uint32_t i = 0; i < 2 * TRANSPORT_SHIFTS; i++) {
		bool is_large = i % 2 == 1;
		uint32_t bytes = is_large ? RIG_SLOT_BYTES : TRANSPORT_SHIFTED_FROM - 1;

		rig_fill(data + i / 2, bytes, i);
		for (uint32_t to = B; to <= C; to++)
			rig_send(a, to,
			         (struct transport_message){
			             .channel = 3, .index = i, .bytes = bytes, .data = data + i / 2, .content = i + 1});
		rig_run(rig);
		for (uint32_t to = B; to <= C; to++) {
			struct rig_inbox *in = inbox(rig, to, A, 3);

			CHECK(in->count == i + 1 && rig_holds(in->last.data, bytes, i));
			CHECK_U64((uintptr_t)in->last.data % TRANSPORT_SHIFTS, is_large ? i / 2 : 0);
			in->consumed = i + 1;
		}
		rig_run(rig);
	}
	CHECK_U64(shm_stats(a->shm).slots_most, 1);
	rig_close(rig);
}

static void offered(void)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t *memory = shm_segment_alloc(a->segment, 8192);
	int cookies[2];

	CHECK(memory);
	rig_fill(memory + 100, 500, 5);
	for (uint32_t i = 0; i < 2; i++)
		rig_send(a, B,
		         (struct transport_message){
		             .channel = 1, .index = i, .bytes = 250, .data = memory + 100 + i * 250, .cookie = &cookies[i]});
	rig_run(rig);
	struct rig_inbox *in = inbox(rig, B, A, 1);
	CHECK_U64(in->count, 2);
	CHECK(memcmp(in->last.data, memory + 350, 250) == 0 && !is_revoked(&in->last));
	CHECK_U64(a->user.sent[B], 0);
	in->consumed = 1;
	rig_run(rig);
	CHECK(a->user.sent[B] == 1 && a->user.sent_last == &cookies[0]);
	in->consumed = 2;
	rig_run(rig);
	CHECK(a->user.sent[B] == 2 && a->user.sent_last == &cookies[1]);
	CHECK(shm_stats(a->shm).offered_bytes == 500 && shm_stats(a->shm).copied_bytes == 0);
	shm_segment_free(a->segment, memory);
	rig_close(rig);
}

/*
 * Before a large message is read the others get what there is for them, and its sender is told what was consumed so
 * far. Not before small ones, nor, where ranks share cores, before copies.
 */
static void handed_over(void)
{
	static const struct {
		uint32_t bytes;
		bool lent, is_crowded, hands_over;
	} cases[] = {
		{RIG_SLOT_BYTES, true, false, true}, {RIG_SLOT_BYTES, false, false, true}, {100, true, false, false},
		{100, false, false, false},          {RIG_SLOT_BYTES, true, true, true},   {RIG_SLOT_BYTES, false, true, false},
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_open(8, false);
		struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
		uint8_t *memory = shm_segment_alloc(a->segment, RIG_SLOT_BYTES), *own = calloc(1, RIG_SLOT_BYTES),
				data[10] = {0};
		const void *from = cases[i].lent ? memory : own;

		CHECK(memory && own);
		b->user.consumes = true;
		b->shm->is_crowded = cases[i].is_crowded;
		for (uint32_t k = 0; k < 2; k++)
			rig_send(a, B, (struct transport_message){.channel = 1, .index = k, .bytes = cases[i].bytes, .data = from});
		shm_poll(a->shm);
		rig_send(b, C, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = data});
		shm_poll(b->shm);
		CHECK(inbox(rig, B, A, 1)->count == 2 && b->user.pulled[C] == 1);
		CHECK_U64(inbox(rig, B, A, 1)->pulled, cases[i].hands_over);
		shm_poll(rig->ranks[C].shm);
		CHECK_U64(inbox(rig, C, B, 2)->count, 1);
		rig_run(rig);
		CHECK(a->user.sent[B] == 2 && a->shm->slots.taken == 0);
		rig_close(rig);
		free(own);
	}
}

/*
 * A rank with one lane sees before the next large message what of its own was consumed, so that it can send more; one
 * with others after all of them.
 */
static void consumed_meanwhile(void)
{
	for (int is_only = 0; is_only < 2; is_only++) {
		struct rig *rig = rig_open(8, false);
		struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
		uint8_t *memory = shm_segment_alloc(a->segment, RIG_SLOT_BYTES),
				*own = shm_segment_alloc(b->segment, RIG_SLOT_BYTES);

		CHECK(memory && own);
		a->user.consumes = true;
		b->shm->is_only_lane = is_only;
		rig_send(b, A, (struct transport_message){.channel = 2, .index = 0, .bytes = RIG_SLOT_BYTES, .data = own});
		shm_poll(b->shm);
		rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = RIG_SLOT_BYTES, .data = memory});
		shm_poll(a->shm); /* which consumes what b has sent, too */
		CHECK_U64(b->user.sent[A], 0);
		shm_poll(b->shm);
		CHECK_U64(b->user.sent[A], 1);
		CHECK_U64(inbox(rig, B, A, 1)->sent, is_only);
		rig_close(rig);
	}
}

static void without_data(void)
{
	struct rig *rig = rig_open(1, false);
	struct rig_rank *a = &rig->ranks[A];

	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .data = NULL});
	rig_send(a, B, (struct transport_message){.is_credit = true, .channel = 1, .ack = 12});
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = NULL}); /* dry */
	rig_run(rig);
	CHECK_U64(inbox(rig, B, A, 1)->count, 2);
	CHECK(rig->ranks[B].user.credits[A] == 1 && rig->ranks[B].user.ack_last == 12);
	CHECK_U64(a->user.sent[B], 2);
	CHECK(((const uint8_t *)inbox(rig, B, A, 1)->last.data)[9] == 0);
	rig_close(rig);
}

/* The same content to two peers is copied once, until both have consumed it. */
static void shared(void)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t data[100];

	rig_fill(data, sizeof(data), 4);
	struct transport_message message = {.channel = 2, .bytes = sizeof(data), .data = data, .content = 1000};
	rig_send(a, B, message);
	rig_send(a, C, message);
	message.channel = 3; /* another channel counts contents for itself */
	rig_send(a, B, message);
	message.index = 1;
	message.content = 0;
	rig_send(a, B, message);
	rig_run(rig);
	CHECK_U64(shm_stats(a->shm).copied_bytes, 300);
	CHECK_U64(a->shm->slots.taken, 3);
	CHECK(rig_holds(inbox(rig, B, A, 2)->last.data, 100, 4) && rig_holds(inbox(rig, C, A, 2)->last.data, 100, 4));
	inbox(rig, B, A, 2)->consumed = 1;
	inbox(rig, B, A, 3)->consumed = 2;
	rig_run(rig);
	CHECK_U64(a->shm->slots.taken, 1);
	message = (struct transport_message){.channel = 2, .index = 1, .bytes = 100, .data = data, .content = 1000};
	rig_send(a, C, message); /* it is still there */
	rig_run(rig);
	CHECK_U64(shm_stats(a->shm).copied_bytes, 300);
	inbox(rig, C, A, 2)->consumed = 2;
	rig_run(rig);
	CHECK_U64(a->shm->slots.taken, 0);
	rig_send(a, B, message);
	rig_run(rig);
	CHECK_U64(shm_stats(a->shm).copied_bytes, 400);
	uint32_t slot = shm_slots_find(&a->shm->slots, 2, 1000);
	CHECK(slot != SLOT_NONE && shm_slots_find(&a->shm->slots, 2, 1001) == SLOT_NONE);
	shm_slots_put(&a->shm->slots, slot);
	shm_forget(a->shm, 2); /* its numbers mean something else from now on */
	CHECK(shm_slots_find(&a->shm->slots, 2, 1000) == SLOT_NONE);
	CHECK(rig_holds(inbox(rig, B, A, 2)->last.data, 100, 4));
	rig_close(rig);
}

/* ---- limits ---- */

#define SLOTS 6u /* of three ranks, at least */
#define PLENTY (SLOTS - RIG_RANKS + 1)

/* So many messages of 100 bytes, the numbers from first on. */
static void send_some(struct rig *rig, uint32_t to, uint16_t channel, uint32_t first, uint32_t count)
{
	static uint8_t data[100];

	for (uint32_t i = first; i < first + count; i++)
		rig_send(&rig->ranks[A], to,
		         (struct transport_message){.channel = channel, .index = i, .bytes = 100, .data = data});
}

/* The last slots are used, too, but each peer has only one of them at a time, until it has looked. */
static void slots_are_few(void)
{
	struct rig *rig = rig_open(1, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096);

	CHECK_U64(a->segment->layout.slots, SLOTS);
	send_some(rig, B, 0, 0, PLENTY + 3);
	/* A message that needs no slot is not kept waiting, until it stands behind one that does. */
	rig_send(a, C, (struct transport_message){.is_credit = true});
	rig_send(a, C, (struct transport_message){.index = 0, .bytes = 100, .data = memory});
	send_some(rig, C, 0, 1, 2);
	rig_send(a, C, (struct transport_message){.index = 3, .bytes = 100, .data = memory});
	while (shm_poll(a->shm) > 0)
		;
	CHECK(a->user.sent[B] == PLENTY + 1 && a->user.sent[C] == 1 && a->shm->slots.taken == SLOTS);
	CHECK(shm_doze(a->shm));

	shm_poll(b->shm);
	CHECK(rig_is_readable(a->shm, 0)); /* it has made a copy for itself: the slot is free */
	shm_rouse(a->shm);
	CHECK_U64(inbox(rig, B, A, 0)->count, PLENTY + 1);
	CHECK(!shm_doze(a->shm));
	shm_poll(a->shm);
	CHECK(a->user.sent[B] == PLENTY + 2 && a->user.sent[C] == 1);
	rig_run(rig);
	CHECK(a->user.sent[B] == PLENTY + 3 && a->user.sent[C] == 2);
	CHECK(inbox(rig, B, A, 0)->count == PLENTY + 3 && inbox(rig, C, A, 0)->count == 4);
	CHECK(rig->ranks[C].user.credits[A] == 1);
	CHECK_U64(a->shm->slots.taken, PLENTY); /* no message was consumed */

	inbox(rig, B, A, 0)->consumed = PLENTY + 2;
	rig_run(rig);
	CHECK_U64(a->shm->slots.taken, 0);
	CHECK(b->shm->peers[A].flows.receiving->copies && !b->shm->peers[A].flows.receiving->copies->next);
	inbox(rig, B, A, 0)->consumed = PLENTY + 3;
	inbox(rig, C, A, 0)->consumed = 4;
	rig_run(rig);
	CHECK(a->user.sent[C] == 4 && !b->shm->peers[A].flows.receiving);
	CHECK_U64(shm_stats(a->shm).slots_most, SLOTS);
	rig_close(rig);
}

/* A message that lies in the last slot: it is what was sent, whatever is copied there next. */
static void brief_is_whole(void)
{
	struct rig *rig = rig_open(1, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t data[100];

	send_some(rig, C, 1, 0, PLENTY);
	rig_run(rig);
	struct transport_message first = {0};
	for (uint32_t i = 0; i < 3; i++) {
		rig_fill(data, 100, i);
		rig_send(a, B, (struct transport_message){.channel = 2, .index = i, .bytes = 100, .data = data, .content = 5});
		rig_run(rig);
		if (i == 0)
			first = inbox(rig, B, A, 2)->last;
		CHECK(rig_holds(first.data, 100, 0) && rig_holds(inbox(rig, B, A, 2)->last.data, 100, i));
	}
	CHECK_U64(shm_stats(a->shm).copied_bytes, (PLENTY + 3) * 100); /* contents in such slots are not shared */
	shm_forget(rig->ranks[B].shm, 2);
	CHECK(!rig->ranks[B].shm->peers[A].flows.receiving);
	/* And where they are not wanted. */
	rig->ranks[B].user.answer = ESP_PENDING;
	send_some(rig, B, 3, 0, 2);
	rig_run(rig);
	CHECK(a->shm->slots.taken == PLENTY && rig->ranks[B].user.lost[A] == 0);
	rig_close(rig);
}

/* A channel is forgotten, and a peer lost, while a message of it waits for a slot or to be copied out. */
static void few_and_forgotten(void)
{
	struct rig *rig = rig_open(1, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];

	send_some(rig, C, 1, 0, PLENTY);
	rig_run(rig);
	send_some(rig, B, 1, 0, 1);
	send_some(rig, B, 2, 0, 1);
	rig_send(a, B, (struct transport_message){.channel = 3});
	while (shm_poll(a->shm) > 0)
		;
	CHECK(a->user.pulled[B] == 2 && a->user.sent[B] == 1);
	shm_forget(a->shm, 1); /* a copy: it stays */
	shm_forget(a->shm, 2);
	rig_run(rig);
	CHECK(a->user.sent[B] == 2 && inbox(rig, B, A, 1)->count == 1);
	CHECK(inbox(rig, B, A, 2)->count == 0 && inbox(rig, B, A, 3)->count == 1);

	send_some(rig, B, 4, 0, 2);
	shm_poll(a->shm);
	CHECK_U64(a->shm->slots.taken, PLENTY + 1);
	struct transport_message *last = &inbox(rig, B, A, 4)->last;
	shm_drop(a->shm, RIG_NUMBER + B, ESP_EPEER);
	CHECK_U64(a->shm->slots.taken, PLENTY);
	shm_poll(b->shm); /* it is too late: what it copies may be anything */
	CHECK(last->revoked && is_revoked(last));
	rig_run(rig);
	CHECK(b->user.lost[A] == 1);
	rig_close(rig);
}

/* There is no memory for more slots than the first step. */
static void no_memory_for_slots(void)
{
	struct rig *rig = rig_open(1000, false);
	struct rig_rank *a = &rig->ranks[A];
	int fd = a->segment->fd;

	uint32_t first = a->shm->slots.reserved, plenty = first - RIG_RANKS + 1;
	CHECK(first >= 2 * RIG_RANKS && first < 1000);
	a->segment->fd = -1;
	send_some(rig, B, 0, 0, first + 20);
	rig_run(rig);
	CHECK_U64(a->user.sent[B], first);
	inbox(rig, B, A, 0)->consumed = RIG_RANKS;
	rig_run(rig); /* from now on it is known how many there are, and some are kept for all */
	CHECK_U64(a->user.sent[B], first + 20);
	CHECK(a->shm->slots.taken >= plenty && a->shm->slots.taken < first);
	a->segment->fd = fd;
	inbox(rig, B, A, 0)->consumed = first + 20; /* when none is taken, more is asked for again */
	rig_run(rig);
	send_some(rig, B, 0, first + 20, 2 * first);
	rig_run(rig);
	CHECK_U64(a->shm->slots.taken, 2 * first);
	rig_close(rig);
}

static void ring_is_full(void)
{
	struct rig *rig = rig_open(1, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];

	b->user.consumes = true;
	for (uint32_t i = 0; i < 300; i++)
		rig_send(a, B, (struct transport_message){.channel = 1, .index = i});
	while (shm_poll(a->shm) > 0)
		;
	CHECK_U64(a->user.pulled[B], LAYOUT_RING - 1);
	CHECK(shm_doze(a->shm) && !rig_is_readable(a->shm, 0));
	CHECK(shm_poll(b->shm) > 0); /* a bounded number */
	CHECK(rig_is_readable(a->shm, 0));
	shm_rouse(a->shm);
	CHECK(inbox(rig, B, A, 1)->count > 0 && inbox(rig, B, A, 1)->count < LAYOUT_RING - 1);
	rig_run(rig);
	CHECK_U64(inbox(rig, B, A, 1)->count, 300);

	/* Tags wrap. */
	for (uint32_t i = 300; i < 200000; i++) {
		rig_send(a, B, (struct transport_message){.channel = 1, .index = i});
		if (i % 100 == 0)
			rig_run(rig);
	}
	rig_run(rig);
	CHECK(inbox(rig, B, A, 1)->count == 200000 && inbox(rig, B, A, 1)->last.index == 199999);
	CHECK_U64(b->user.lost[A], 0);
	rig_close(rig);
}

/* Messages may be sent in any order; all below a number are consumed. Numbers wrap. */
static void any_order(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10] = {0};
	static const uint32_t order[] = {UINT32_MAX, UINT32_MAX - 1, 1, 0};

	inbox(rig, B, A, 1)->consumed = UINT32_MAX - 1;
	for (int i = 0; i < 4; i++)
		rig_send(a, B,
		         (struct transport_message){.channel = 1,
		                                    .index = order[i],
		                                    .bytes = 10,
		                                    .data = i % 2 ? data : memory,
		                                    .cookie = (void *)&order[i]});
	rig_run(rig);
	CHECK_U64(inbox(rig, B, A, 1)->count, 4);
	CHECK_U64(a->user.sent[B], 2); /* the copies */
	CHECK_U64(a->shm->slots.taken, 2);
	inbox(rig, B, A, 1)->consumed = UINT32_MAX;
	rig_run(rig);
	CHECK(a->user.sent[B] == 2 && a->shm->slots.taken == 1);
	inbox(rig, B, A, 1)->consumed = 0;
	rig_run(rig);
	CHECK(a->user.sent[B] == 3 && a->user.sent_last == &order[0] && a->shm->slots.taken == 1);
	inbox(rig, B, A, 1)->consumed = 1;
	rig_run(rig);
	CHECK(a->user.sent[B] == 3 && a->shm->slots.taken == 0);
	inbox(rig, B, A, 1)->consumed = 2;
	rig_run(rig);
	CHECK(a->user.sent[B] == 4 && !a->shm->peers[B].flows.sending && !rig->ranks[B].shm->peers[A].flows.receiving);
	rig_close(rig);
}

/* ---- ranks ---- */

static void adopted_late(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	uint8_t data[10];

	CHECK(rig);
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		rig_open_rank(rig, i, 4);
	rig_fill(data, 10, 2);
	rig_send(&rig->ranks[A], B, (struct transport_message){.channel = 1, .bytes = 10, .data = data});
	rig_run(rig);
	CHECK_U64(rig->ranks[A].user.pulled[B], 0);
	rig_adopt(rig, A, B, false);
	rig_run(rig);
	CHECK_U64(rig->ranks[A].user.pulled[B], 1);
	rig_adopt(rig, B, A, false);
	rig_run(rig);
	CHECK(inbox(rig, B, A, 1)->count == 1 && rig_holds(inbox(rig, B, A, 1)->last.data, 10, 2));
	shm_drop(rig->ranks[A].shm, RIG_NUMBER + C, ESP_EPEER); /* before it was there */
	rig_adopt(rig, A, C, false);
	rig_adopt(rig, C, A, false);
	rig_run(rig);
	CHECK_U64(rig->ranks[C].user.lost[A], 1);
	rig_close(rig);
}

static void opened_once(void)
{
	struct rig *rig = rig_open(1, false);
	uint32_t numbers[RIG_RANKS] = {0, 1, 2};
	struct shm_config config = {.segment = rig->ranks[A].segment, .lane = 1, .peers = 3, .peer_of = numbers};
	struct shm *shm;
	struct error err;

	CHECK(shm_open_lane(&config, &rig_table, NULL, &shm, &err) == ESP_EINVAL);
	config.lane = 2;
	CHECK(shm_open_lane(&config, &rig_table, NULL, &shm, &err) == ESP_EINVAL);
	config.lane = 0;
	int fd = rig->ranks[A].segment->fd;
	rig->ranks[A].segment->fd = -1;
	CHECK(shm_open_lane(&config, &rig_table, NULL, &shm, &err) == ESP_ENOMEM);
	rig->ranks[A].segment->fd = fd;
	rig_close(rig);
}

/* ---- sleeping ---- */

static void sleeps(void)
{
	struct rig *rig = rig_open(2, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10] = {0};

	CHECK(shm_doze(b->shm));
	CHECK(!rig_is_readable(b->shm, 0));
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = data});
	CHECK(!shm_doze(a->shm)); /* there is something to send */
	shm_poll(a->shm);
	CHECK(rig_is_readable(b->shm, 0));
	CHECK_U64(shm_stats(a->shm).wakes, 1);
	shm_rouse(b->shm);
	CHECK(!rig_is_readable(b->shm, 0));
	CHECK(!shm_doze(b->shm)); /* there is something to receive */

	/* No peer is woken for a copy that was consumed, unless it waits for slots. */
	CHECK(shm_doze(a->shm));
	CHECK(shm_poll(b->shm) > 0);
	inbox(rig, B, A, 1)->consumed = 1;
	CHECK(!shm_doze(b->shm)); /* there is something to tell */
	CHECK(shm_poll(b->shm) > 0);
	CHECK(!rig_is_readable(a->shm, 0));
	shm_rouse(a->shm);
	CHECK(!shm_doze(a->shm)); /* it looks at the counter */
	CHECK(shm_poll(a->shm) > 0 && shm_doze(a->shm));
	shm_rouse(a->shm);

	/* Not so if it waits for slots: slots_are_few(). */
	/* But for memory that was lent. */
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = memory});
	rig_run(rig);
	CHECK(shm_doze(a->shm));
	inbox(rig, B, A, 1)->consumed = 2;
	CHECK(shm_poll(b->shm) > 0 && rig_is_readable(a->shm, 0));
	shm_rouse(a->shm);

	/* By hand. */
	shm_wake(a->shm);
	rig_run(rig);
	CHECK(shm_doze(a->shm) && rig_is_readable(a->shm, 0));
	shm_rouse(a->shm);
	shm_nudge(a->shm, B);
	CHECK(!rig_is_readable(b->shm, 0));
	CHECK(shm_doze(b->shm));
	shm_nudge(a->shm, B);
	shm_nudge(a->shm, A); /* no other rank is there */
	CHECK(rig_is_readable(b->shm, 0));
	shm_rouse(b->shm);

	/* A peer that fails. */
	rig_run(rig);
	CHECK(shm_doze(b->shm));
	a->user.failed = ESP_ENOMEM;
	shm_poll(a->shm);
	CHECK(rig_is_readable(b->shm, 0));
	shm_rouse(b->shm);
	rig_close(rig);
}

int main(void)
{
	copied();
	in_step();
	offered();
	handed_over();
	consumed_meanwhile();
	without_data();
	shared();
	slots_are_few();
	brief_is_whole();
	few_and_forgotten();
	no_memory_for_slots();
	ring_is_full();
	any_order();
	adopted_late();
	opened_once();
	sleeps();
	return 0;
}
