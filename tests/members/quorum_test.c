/*
 * quorum_test.c - with a quorum there is one verdict, also if a leader of too few repeats what others had left behind.
 *
 * Five members, and messages that come only where the script lets them. Member 0 proposes to all and reaches nobody. 1, 2 and 3
 * decide without it; 1 knows, and is heard no more. 4, that hears only 0, leads a later round, of the two of them, and
 * dies. When 0, 2 and 3 find each other they are enough to decide, and must come to what 1 has gone on with.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "rank/member/agreement.h"

enum { SIZE = 5 };

struct letter {
	struct letter *next;
	uint32_t from, to;
	size_t n;
	uint8_t bytes[VERDICT_HEAD_BYTES + 4];
};

struct member {
	uint32_t place;
	struct agreement agreement;
};

static struct member members[SIZE];
static struct letter *first;
static bool hears[SIZE][SIZE]; /* by who hears, and whom; who hears nobody takes no part */
static uint64_t now = NS_PER_S;

static void send(void *context, uint32_t to, const uint8_t *bytes, size_t n)
{
	const struct member *member = context;
	struct letter *letter = calloc(1, sizeof(*letter)), **at = &first;

	CHECK(letter != NULL && n <= sizeof(letter->bytes));
	letter->from = member->place;
	letter->to = to;
	letter->n = n;
	memcpy(letter->bytes, bytes, n);
	while (*at)
		at = &(*at)->next;
	*at = letter;
}

static bool prepare(void *context, const struct verdict_terms *terms, const uint8_t *map, uint32_t *out_channel)
{
	(void)context;
	(void)terms;
	(void)map;
	(void)out_channel;
	return true;
}

static void accuse(void *context, uint32_t place)
{
	(void)context;
	(void)place;
}

static const struct agreement_events events = {.send = send, .prepare = prepare, .accuse = accuse};

static bool takes_part(uint32_t place)
{
	bool any = false;

	for (uint32_t i = 0; i < SIZE; i++)
		any |= hears[place][i];
	return any;
}

static void deliver(void)
{
	struct letter *letter = first;

	first = letter->next;
	if (hears[letter->to][letter->from])
		agreement_message(&members[letter->to].agreement, letter->from, letter->bytes, letter->n, now);
	free(letter);
}

/* Until it is so, or nothing more can be expected; what has not arrived then is lost. */
static void play(bool (*is_so)(void))
{
	for (unsigned i = 0; i < 3000 && !is_so(); i++) {
		now += first ? NS_PER_MS : 10 * NS_PER_MS;
		if (first) {
			deliver();
			continue;
		}
		for (uint32_t k = 0; k < SIZE; k++) {
			if (takes_part(k))
				agreement_turn(&members[k].agreement, now);
		}
	}
	CHECK(is_so());
	while (first) {
		struct letter *next = first->next;

		free(first);
		first = next;
	}
	memset(hears, 0, sizeof(hears));
}

static void hear_each_other(uint32_t one, uint32_t other)
{
	hears[one][other] = hears[other][one] = true;
}

/* Member `to` is told that `by` accuses `about`. */
static void say_accused(uint32_t to, uint32_t about, uint32_t by)
{
	agreement_accused(&members[to].agreement, about, by, now);
}

static bool has_decided(uint32_t place)
{
	return members[place].agreement.is_decided;
}

static bool first_has_proposed(void)
{
	return members[0].agreement.has_proposed;
}

static bool second_has_decided(void)
{
	return has_decided(1);
}

static bool last_has_led(void)
{
	return has_decided(4) || members[0].agreement.accepted.ballot >> 32 == 4;
}

static bool rest_has_decided(void)
{
	return has_decided(0) && has_decided(2) && has_decided(3);
}

static void begin(void)
{
	for (uint32_t i = 0; i < SIZE; i++) {
		struct agreement_config config = {
			.self = i, .size = SIZE, .interval_ns = 10 * NS_PER_S, .quorum = true, .events = &events, .context = &members[i],
		};

		members[i].place = i;
		CHECK(agreement_init(&members[i].agreement, &config) == ESP_OK);
		agreement_start(&members[i].agreement, 1, 1, 4 * (i + 1), now);
	}
}

int main(void)
{
	const struct agreement *gone_on = &members[1].agreement;

	begin();
	for (uint32_t i = 1; i < SIZE; i++)
		hears[0][i] = true;
	play(first_has_proposed);
	/* 1 has given up 0 and 4. */
	for (uint32_t i = 1; i < 4; i++)
		say_accused(i, 0, 1);
	say_accused(1, 4, 1);
	hear_each_other(1, 2);
	hear_each_other(1, 3);
	play(second_has_decided);
	CHECK(gone_on->goes_on && !has_decided(2) && !has_decided(3));
	/* 4 has given up all but 0; and as 1 has not, 0 does not lead. */
	for (uint32_t i = 1; i < 4; i++)
		say_accused(4, i, 4);
	say_accused(4, 0, 1);
	hear_each_other(0, 4);
	play(last_has_led);
	/* It dies, and 1 is silent. */
	static const uint32_t rest[] = {0, 2, 3};
	for (unsigned i = 0; i < 3; i++) {
		agreement_gone(&members[rest[i]].agreement, 4, now);
		say_accused(rest[i], 1, rest[i]);
	}
	say_accused(0, 0, 1);
	hear_each_other(0, 2);
	hear_each_other(0, 3);
	hear_each_other(2, 3);
	play(rest_has_decided);
	for (unsigned i = 0; i < 3; i++) {
		const struct agreement *agreement = &members[rest[i]].agreement;

		CHECK_U64(agreement->accepted.channel, gone_on->accepted.channel);
		CHECK_U64(agreement->accepted_members[0], gone_on->accepted_members[0]);
		CHECK(agreement->goes_on == (rest[i] != 0));
	}
	for (uint32_t i = 0; i < SIZE; i++)
		agreement_fini(&members[i].agreement);
	return 0;
}
