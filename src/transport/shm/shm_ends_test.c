/*
 * shm_ends_test.c - channels that are forgotten, and used again; ranks that are dropped, fail or leave.
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

/* ---- channels end ---- */

static void sender_forgets(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10];

	rig_fill(data, 10, 3);
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = memory});
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = data});
	rig_send(a, B, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = memory});
	rig_send(a, C, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = data});
	rig_run(rig);
	CHECK_U64(a->user.sent[B], 1);
	CHECK_U64(a->user.sent[C], 1);
	shm_forget(a->shm, 1);
	shm_forget(a->shm, 5); /* never used */
	/* Memory that we lent is taken back from its borrower; copies stay. */
	CHECK(is_revoked(&inbox(rig, B, A, 1)->last));
	CHECK(!is_revoked(&inbox(rig, B, A, 2)->last) && !is_revoked(&inbox(rig, C, A, 1)->last));
	CHECK(rig_holds(inbox(rig, C, A, 1)->last.data, 10, 3));
	CHECK_U64(a->shm->slots.taken, 2);
	inbox(rig, B, A, 1)->consumed = 2;
	inbox(rig, C, A, 1)->consumed = 1;
	inbox(rig, B, A, 2)->consumed = 1;
	rig_run(rig);
	CHECK(a->user.sent[B] == 2 && a->user.sent[C] == 1); /* only that of channel 2 */
	CHECK_U64(a->shm->slots.taken, 0);
	CHECK(!a->shm->peers[B].flows.sending && !a->shm->peers[C].flows.sending);
	rig_close(rig);
}

/* A message that says where its answer is wanted, which is stored there; and what says that it was. */
static void answered(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 8192), own[10] = {0};

	rig_send(a, B,
	         (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = memory, .reply = memory + 4096});
	/* memory that no segment has */
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = memory, .reply = own});
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 2, .bytes = 10, .data = own, .reply = memory});
	rig_run(rig);
	const struct transport_message *last = &inbox(rig, B, A, 1)->last;
	CHECK(last->index == 2 && !last->reply);
	CHECK(inbox(rig, B, A, 1)->replies[0] && !inbox(rig, B, A, 1)->replies[1]);
	rig_fill(inbox(rig, B, A, 1)->replies[0], 10, 5);
	CHECK(rig_holds(memory + 4096, 10, 5));
	rig_send(b, A, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .is_stored = true});
	rig_run(rig);
	last = &inbox(rig, A, B, 1)->last;
	CHECK(last->is_stored && !last->data && last->bytes == 10 && b->user.sent[A] == 1);
	CHECK(a->user.sent[B] == 1); /* the one that was copied: the others are on loan */
	inbox(rig, B, A, 1)->consumed = 3;
	rig_run(rig);
	CHECK(a->user.sent[B] == 3);
	rig_close(rig);
}

enum storing { STORES_NOT, STORES, STORES_AND_IS_DROPPED, STORES_AND_WE_FAIL };

/* A peer that stands still while it stores an answer does not write into the memory that its owner has got back. */
static void stops_while_it_stores(enum storing storing)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 3 * 4096);

	rig_fill(memory, 3 * 4096, 1);
	rig_send(a, B,
	         (struct transport_message){
	             .channel = 1, .index = 0, .bytes = 4096, .data = memory + 4096, .reply = memory + 4096});
	rig_run(rig);
	uint8_t *late = inbox(rig, B, A, 1)->replies[0];
	CHECK(late && inbox(rig, B, A, 1)->last.storing == b->shm->storing);
	if (storing != STORES_NOT)
		atomic_store(b->shm->storing, 1);
	if (storing == STORES_AND_IS_DROPPED) {
		shm_drop(a->shm, RIG_NUMBER + B, ESP_EPEER);
	} else if (storing == STORES_AND_WE_FAIL) {
		a->user.failed = ESP_EABORTED;
		shm_poll(a->shm);
	} else {
		shm_forget(a->shm, 1);
	}
	CHECK(is_revoked(&inbox(rig, B, A, 1)->last));
	memset(late, 0, 4096);
	/* A peer that has not begun sees that it must not. */
	CHECK(rig_holds(memory, 3 * 4096, 1) == (storing != STORES_NOT));
	CHECK(shm_segment_owns(a->segment, memory, 3 * 4096) == (storing == STORES_NOT));
	CHECK_U64(shm_stats(a->shm).withdrawn_bytes, storing == STORES_NOT ? 0 : 4096);
	rig_close(rig);
}

static void receiver_forgets(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10] = {0};

	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = memory});
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = data});
	rig_run(rig);
	CHECK(a->user.sent[B] == 1 && a->shm->slots.taken == 1);
	shm_forget(b->shm, 1);
	b->user.answer = ESP_PENDING;
	rig_run(rig);
	CHECK(a->user.sent[B] == 2 && a->shm->slots.taken == 0);

	/* A message that comes late is dropped, and counts as consumed. */
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 3, .bytes = 10, .data = memory});
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 2, .bytes = 10, .data = data});
	rig_send(a, B, (struct transport_message){.is_credit = true, .channel = 1});
	rig_send(a, B, (struct transport_message){.channel = 4, .index = 7, .bytes = 10, .data = data});
	rig_run(rig);
	CHECK(a->user.sent[B] == 5 && a->shm->slots.taken == 0 && b->user.lost[A] == 0);
	CHECK(!shm_flows_find(&b->shm->peers[A].flows, 4)); /* nothing is kept for it */
	rig_close(rig);
}

/* A channel fails within an offer, with others before it that were not consumed. */
static void fails_within(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t data[10] = {0};

	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = data});
	rig_run(rig);
	b->user.answer = ESP_PENDING;
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = data});
	rig_run(rig);
	CHECK_U64(a->shm->slots.taken, 0);
	shm_forget(b->shm, 1);
	rig_run(rig);
	CHECK(b->user.lost[A] == 0);
	rig_close(rig);
}

/* A number that is used again counts from the beginning, whatever stands in the counters. */
static void channel_is_used_again(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10];

	for (uint32_t use = 1; use <= 3; use++) {
		struct rig_inbox *in = inbox(rig, B, A, 1);

		*in = (struct rig_inbox){.consumed = 0};
		a->user.sent[B] = 0;
		rig_fill(data, 10, use);
		rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = memory});
		rig_send(a, B, (struct transport_message){.channel = 1, .index = 1, .bytes = 10, .data = data, .content = 1});
		shm_poll(a->shm);
		shm_poll(a->shm); /* which looks at the counter before the receiver has written it */
		CHECK(a->user.sent[B] == 1 && a->user.lost[B] == 0);
		rig_run(rig);
		CHECK(in->count == 2 && rig_holds(in->last.data, 10, use));
		CHECK_U64(a->user.sent[B], 1);
		in->consumed = 1;
		rig_run(rig);
		CHECK_U64(a->user.sent[B], 2);
		CHECK(!is_revoked(&in->last));
		/* The sender is done, and forgets; the receiver is slower. */
		shm_forget(a->shm, 1);
		rig_run(rig);
		CHECK(rig_holds(in->last.data, 10, use) && a->shm->slots.taken == 1);
		in->consumed = 2;
		if (use == 1)
			rig_run(rig);
		shm_forget(b->shm, 1);
		if (use != 2) /* and the second time the sender does not notice before it begins anew */
			rig_run(rig);
		CHECK_U64(a->shm->slots.taken, use == 2 ? 1 : 0);
	}
	CHECK_U64(b->user.lost[A] + a->user.lost[B], 0);
	rig_close(rig);
}

/* ---- ranks end ---- */

static void dropped(void)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10] = {0};

	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = memory});
	rig_send(a, B, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = data, .content = 8});
	rig_send(a, C, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = data, .content = 8});
	rig_send(b, A, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = data});
	rig_run(rig);
	shm_drop(a->shm, RIG_NUMBER + B, ESP_ETIMEOUT);
	CHECK(a->user.lost[B] == 1 && a->user.why == ESP_ETIMEOUT);
	shm_drop(a->shm, RIG_NUMBER + B, ESP_EPEER); /* told once */
	/* It may be alive: it must not use what will be overwritten. Others may. */
	CHECK(is_revoked(&inbox(rig, B, A, 1)->last) && is_revoked(&inbox(rig, B, A, 2)->last));
	CHECK(!is_revoked(&inbox(rig, C, A, 2)->last));
	CHECK_U64(a->shm->slots.taken, 1);
	rig_run(rig);
	CHECK(b->user.lost[A] == 1 && b->user.why == ESP_EPEER);
	CHECK(is_revoked(&inbox(rig, A, B, 2)->last)); /* the other way too */
	a->user.ready[B] = true; /* asked for by a user that is slow to notice */
	rig_send(a, C, (struct transport_message){.channel = 2, .index = 1, .bytes = 10, .data = data});
	rig_run(rig);
	CHECK_U64(inbox(rig, C, A, 2)->count, 2);
	rig_close(rig);
}

static void user_fails(void)
{
	struct rig *rig = rig_open(4, false);
	struct rig_rank *a = &rig->ranks[A];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10];

	rig_fill(data, 10, 9);
	rig_send(a, B, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = memory});
	rig_send(a, C, (struct transport_message){.channel = 1, .index = 0, .bytes = 10, .data = data});
	rig_run(rig);
	a->user.failed = ESP_ENOMEM;
	CHECK(!shm_doze(a->shm));
	CHECK(shm_poll(a->shm) > 0);
	CHECK(is_revoked(&inbox(rig, B, A, 1)->last) && !is_revoked(&inbox(rig, C, A, 1)->last));
	CHECK(rig_holds(inbox(rig, C, A, 1)->last.data, 10, 9));
	CHECK_U64(shm_poll(a->shm), 0); /* never again */
	shm_forget(a->shm, 1);
	shm_drop(a->shm, RIG_NUMBER + B, ESP_EPEER);
	CHECK(shm_doze(a->shm));
	rig_run(rig);
	CHECK(rig->ranks[B].user.lost[A] == 1 && rig->ranks[C].user.lost[A] == 1);
	rig_close(rig);
}

/* It fails when it is asked what there is for others, before a message is read: that one is not offered any more. */
static void user_fails_handing_over(void)
{
	struct rig *rig = rig_open(8, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, RIG_SLOT_BYTES), *theirs = shm_segment_alloc(b->segment, 4096);

	for (uint32_t i = 0; i < 2; i++)
		rig_send(a, B, (struct transport_message){.channel = 1, .index = i, .bytes = RIG_SLOT_BYTES, .data = memory});
	shm_poll(a->shm);
	b->user.fails_next = true;
	rig_send(b, A, (struct transport_message){.channel = 2, .index = 0, .bytes = 10, .data = theirs});
	CHECK(shm_poll(b->shm) > 0);
	CHECK_U64(inbox(rig, B, A, 1)->count, 0);
	CHECK_U64(shm_poll(b->shm), 0);
	rig_run(rig);
	CHECK(a->user.lost[B] == 1 && rig->ranks[C].user.lost[B] == 1 && a->user.lost[C] == 0);
	CHECK(is_revoked(&inbox(rig, A, B, 2)->last));
	CHECK(!a->shm->peers[B].flows.sending);
	rig_close(rig);
}

/* A lane that is closed in good order says nothing; its messages can still be read. Unless its memory is on loan. */
static void closes(bool has_lent)
{
	struct rig *rig = rig_open(200, false);
	struct rig_rank *a = &rig->ranks[A], *b = &rig->ranks[B];
	uint8_t *memory = shm_segment_alloc(a->segment, 4096), data[10];

	b->user.consumes = true;
	rig_fill(data, 10, 1);
	if (has_lent)
		rig_send(a, B, (struct transport_message){.channel = 2, .bytes = 10, .data = memory});
	shm_poll(a->shm);
	for (uint32_t i = 0; i < LAYOUT_RING + 10; i++) {
		rig_fill(data, 10, i);
		rig_send(a, B, (struct transport_message){.channel = 1, .index = i, .bytes = 10, .data = data});
		shm_poll(a->shm);
	}
	shm_close(a->shm);
	a->shm = NULL;
	shm_segment_close(a->segment);
	a->segment = NULL;
	rig_run(rig);
	CHECK_U64(inbox(rig, B, A, 1)->count, LAYOUT_RING - 1 - has_lent);
	CHECK(rig_holds(inbox(rig, B, A, 1)->last.data, 10, LAYOUT_RING - 2 - has_lent));
	CHECK(b->user.lost[A] == has_lent && rig->ranks[C].user.lost[A] == has_lent);
	CHECK(is_revoked(&inbox(rig, B, A, 1)->last) == false);
	CHECK(!has_lent || is_revoked(&inbox(rig, B, A, 2)->last));
	shm_close(NULL);
	rig_close(rig);
}

int main(void)
{
	sender_forgets();
	answered();
	for (enum storing i = STORES_NOT; i <= STORES_AND_WE_FAIL; i++)
		stops_while_it_stores(i);
	receiver_forgets();
	fails_within();
	channel_is_used_again();
	dropped();
	user_fails();
	user_fails_handing_over();
	closes(false);
	closes(true);
	return 0;
}
