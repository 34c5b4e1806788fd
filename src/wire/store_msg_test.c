#include "wire/store_msg.h"

#include "base/check.h"
#include "base/rng.h"

static void fill(struct rng *rng, uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)rng_next(rng);
}

static void random_card(struct rng *rng, struct card *card)
{
	memset(card, 0, sizeof(*card));
	card->size = 1 + (uint32_t)rng_below(rng, UINT32_MAX);
	card->rank = (uint32_t)rng_below(rng, card->size);
	card->pid = (uint32_t)rng_next(rng);
	card->version = (uint16_t)rng_next(rng);
	card->cores = (uint32_t)rng_next(rng);
	card->core_set = rng_next(rng);
	card->port = (uint16_t)rng_next(rng);
	fill(rng, card->host_id, sizeof(card->host_id));
	fill(rng, card->settings, sizeof(card->settings));
	for (uint64_t i = rng_below(rng, CARD_HOST_NAME); i > 0; i--)
		card->host_name[i - 1] = (char)(0x20 + rng_below(rng, 0x5f));
	card->address_count = (uint32_t)rng_below(rng, CARD_ADDRESSES + 1);
	for (uint32_t i = 0; i < card->address_count; i++) {
		card->addresses[i].family = rng_chance(rng, 1, 2) ? CARD_IPV4 : CARD_IPV6;
		card->addresses[i].prefix = (uint8_t)rng_below(rng, card->addresses[i].family == CARD_IPV4 ? 33 : 129);
		card->addresses[i].interface = rng_chance(rng, 1, 4) ? CARD_NO_INTERFACE : (uint8_t)rng_below(rng, CARD_ADDRESSES);
		fill(rng, card->addresses[i].bytes, card->addresses[i].family == CARD_IPV4 ? 4 : 16);
	}
}

static void heads(void)
{
	struct store_head head = {77, 77};
	uint8_t bytes[STORE_HEAD_BYTES] = {0, 0, 0, 0, 4, 3, 2, 1}, again[STORE_HEAD_BYTES];

	for (unsigned type = 0; type < 256; type++) {
		bytes[0] = (uint8_t)type;
		CHECK(store_head_decode(bytes, &head) == (type >= STORE_ARRIVAL && type < STORE_TYPES));
	}
	CHECK_U64(head.bytes, 0x01020304);
	store_head_encode(&(struct store_head){STORE_ROSTER, 0x01020304}, again);
	CHECK(memcmp(again, "\x02\0\0\0\4\3\2\1", STORE_HEAD_BYTES) == 0);
	again[2] = 1;
	CHECK(!store_head_decode(again, &head));
}

static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 5000; i++) {
		struct store_arrival arrival = {.patience_ms = (uint32_t)rng_next(rng)}, back;
		uint8_t bytes[STORE_ARRIVAL_BYTES], again[STORE_ARRIVAL_BYTES];

		memset(&back, 0, sizeof(back));
		random_card(rng, &arrival.card);
		for (uint64_t k = rng_below(rng, STORE_SETTINGS_TEXT); k > 0; k--)
			arrival.settings[k - 1] = (char)(0x20 + rng_below(rng, 0x5f));
		for (uint64_t k = rng_below(rng, STORE_JOB_TEXT); k > 0; k--)
			arrival.job[k - 1] = (char)(0x20 + rng_below(rng, 0x5f));
		store_arrival_encode(&arrival, bytes);
		CHECK(store_arrival_decode(bytes, &back));
		store_arrival_encode(&back, again);
		CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
		CHECK(back.patience_ms == arrival.patience_ms && back.card.rank == arrival.card.rank);
		CHECK(back.card.cores == arrival.card.cores && back.card.core_set == arrival.card.core_set);
		CHECK_STR(back.card.host_name, arrival.card.host_name);
		CHECK_STR(back.settings, arrival.settings);
		CHECK_STR(back.job, arrival.job);
		CHECK(memcmp(back.card.addresses, arrival.card.addresses, sizeof(back.card.addresses)) == 0);
	}
}

/* Bytes with one of them changed decode to a card that encodes to them, or not at all. */
static void one_byte_off(struct rng *rng)
{
	for (int i = 0; i < 20000; i++) {
		struct card card, back;
		uint8_t bytes[CARD_BYTES], again[CARD_BYTES];

		random_card(rng, &card);
		card_encode(&card, bytes);
		bytes[rng_below(rng, CARD_BYTES)] = (uint8_t)rng_next(rng);
		if (!card_decode(bytes, &back))
			continue;
		card_encode(&back, again);
		CHECK(memcmp(bytes, again, CARD_BYTES) == 0);
	}
}

static bool decodes_with(const struct card *card, unsigned at, uint8_t value)
{
	uint8_t bytes[CARD_BYTES];
	struct card back;

	card_encode(card, bytes);
	bytes[at] = value;
	return card_decode(bytes, &back);
}

static void refused(void)
{
	struct card card = {.rank = 3, .size = 4, .host_name = "node7", .address_count = 1};

	card.addresses[0] = (struct card_address){CARD_IPV4, {10, 0, 0, 1}, 24, 0};
	CHECK(decodes_with(&card, 0, 3) && !decodes_with(&card, 0, 4)); /* the rank */
	CHECK(!decodes_with(&card, 4, 3));                              /* the size */
	CHECK(!decodes_with(&card, 66, '\n'));                          /* the host name */
	CHECK(!decodes_with(&card, 66, 0));
	CHECK(!decodes_with(&card, 70, 'x'));
	CHECK(!decodes_with(&card, 128, 9) && !decodes_with(&card, 128, 0) && !decodes_with(&card, 131, 0xff));
	CHECK(!decodes_with(&card, 144, 5) && !decodes_with(&card, 147, 1) && !decodes_with(&card, 152, 1));
	CHECK(decodes_with(&card, 145, 32) && !decodes_with(&card, 145, 33));
	CHECK(decodes_with(&card, 146, 7) && !decodes_with(&card, 146, 8) && decodes_with(&card, 146, CARD_NO_INTERFACE));
	CHECK(!decodes_with(&card, CARD_BYTES - 1, 1));
}

static void settings_are_text(void)
{
	struct store_arrival arrival = {.card = {.size = 1}, .settings = "lanes=2"}, back;
	uint8_t bytes[STORE_ARRIVAL_BYTES];
	uint8_t *text = bytes + 4 + CARD_BYTES;

	store_arrival_encode(&arrival, bytes);
	CHECK(store_arrival_decode(bytes, &back));
	text[1] = '\n';
	CHECK(!store_arrival_decode(bytes, &back));
	store_arrival_encode(&arrival, bytes);
	text[STORE_SETTINGS_TEXT - 2] = 'x'; /* behind the end */
	CHECK(!store_arrival_decode(bytes, &back));
	memset(text, 'x', STORE_SETTINGS_TEXT); /* no end */
	CHECK(!store_arrival_decode(bytes, &back));
	text[STORE_SETTINGS_TEXT - 1] = '\0';
	CHECK(store_arrival_decode(bytes, &back));
	bytes[STORE_ARRIVAL_BYTES - 1] = 'x'; /* of the job's name, behind the end */
	CHECK(!store_arrival_decode(bytes, &back));
}

static void failures(void)
{
	struct store_failure failure = {.status = -31, .culprit = 3, .text = "rank 3 is\nlate"}, back = {.status = 7};
	uint8_t bytes[STORE_FAILURE_BYTES];

	store_failure_encode(&failure, bytes);
	CHECK(store_failure_decode(bytes, &back));
	CHECK(back.status == -31 && back.culprit == 3);
	CHECK_STR(back.text, "rank 3 is?late");
	memset(failure.text, 'x', STORE_FAILURE_TEXT); /* without an end: cut off */
	store_failure_encode(&failure, bytes);
	CHECK(store_failure_decode(bytes, &back));
	CHECK_U64(strlen(back.text), STORE_FAILURE_TEXT - 1);
	bytes[STORE_FAILURE_BYTES - 1] = 'x';
	CHECK(!store_failure_decode(bytes, &back));
	failure = (struct store_failure){.status = 0, .text = "fine"};
	store_failure_encode(&failure, bytes);
	CHECK(!store_failure_decode(bytes, &back)); /* success is no failure */
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	heads();
	round_trip(&rng);
	one_byte_off(&rng);
	refused();
	settings_are_text();
	failures();
	return 0;
}
