/*
 * A sender alone: its packets, their times, and its treatment of results.
 */
#include "switch/endpoint/sender.h"

#include "base/check.h"

#define MEMBERS 4u
#define WORDS 4u
#define WINDOW 8u
#define SELF 1u
#define MS UINT64_C(1000000)
#define PACKET_BYTES (48 + 28 + 4 * WORDS)

static const uint8_t secret[TAG_KEY_BYTES] = "a secret of flow";
static const uint16_t group_of[MEMBERS];
static const uint32_t data[WORDS] = {1, 2, 3, 4};

struct bench {
	struct shape *shape;
	struct tag_keys keys;
	struct sender *sender;
	uint64_t now;
	struct endpoint_out out;
};

static void bench_init(struct bench *bench, uint32_t start_packets)
{
	struct error err;

	*bench = (struct bench){.now = 1000 * MS};
	CHECK(shape_open(group_of, MEMBERS, 1, &bench->shape, &err) == ESP_OK);
	CHECK(tag_keys_init(&bench->keys, secret, WORDS, &err) == ESP_OK);
	struct sender_config config = {
		.flow = 9, .self = SELF, .shape = bench->shape, .keys = &bench->keys, .window = WINDOW, .owners = MEMBERS,
		.congestion = {.packet_bytes = PACKET_BYTES, .start_bytes = start_packets * PACKET_BYTES,
		               .ceiling_bytes = 100 * PACKET_BYTES},
		.rto_floor_ns = 20 * MS, .rto_cap_ns = 320 * MS,
	};
	CHECK(sender_open(&config, &bench->sender, &err) == ESP_OK);
}

static void bench_fini(struct bench *bench)
{
	sender_close(bench->sender);
	tag_keys_fini(&bench->keys);
	shape_close(bench->shape);
}

static uint32_t offer(struct bench *bench, uint16_t owner)
{
	struct sender_element element = {.words = data, .call = 5, .count = WORDS, .owner = owner, .kind = ATP_SIGNED};
	uint32_t sequence = UINT32_MAX;
	return sender_offer(bench->sender, &element, &sequence) ? sequence : UINT32_MAX;
}

static bool next(struct bench *bench)
{
	return sender_next(bench->sender, bench->now, &bench->out);
}

#define EXPECT_PACKET(bench, number, with_flags)                                              \
	do {                                                                                  \
		CHECK(next(bench));                                                           \
		CHECK_U64((bench)->out.header.sequence, number);                              \
		CHECK_U64((bench)->out.header.flags, with_flags);                             \
		CHECK((bench)->out.to == ((with_flags) & ATP_BYPASS ? ENDPOINT_TO_MEMBER : ENDPOINT_TO_SWITCH)); \
	} while (0)

static enum sender_event result(struct bench *bench, uint32_t sequence, uint16_t owner, uint8_t flags)
{
	uint32_t sum[WORDS] = {7, 7, 7, 7};
	struct atp_packet packet = {.type = ATP_RESULT, .flags = flags, .kind = ATP_SIGNED, .owner = owner, .words = WORDS,
	                            .sequence = sequence, .call = 5, .flow = 9};
	packet.tag = tag_of_result(&bench->keys, &packet, sum);
	return sender_result(bench->sender, &packet, sum, bench->now);
}

static void test_packets(void)
{
	struct bench bench;

	bench_init(&bench, 100);
	CHECK(sender_wake_ns(bench.sender) == UINT64_MAX && !next(&bench));
	for (uint32_t i = 0; i < WINDOW; i++)
		CHECK_U64(offer(&bench, (uint16_t)(i % MEMBERS)), i);
	CHECK(offer(&bench, 0) == UINT32_MAX && sender_wake_ns(bench.sender) == 0);
	for (uint32_t i = 0; i < WINDOW; i++)
		if (i % MEMBERS != SELF) {
			EXPECT_PACKET(&bench, i, 0);
			struct shape_place place = shape_place(bench.shape, (uint16_t)(i % MEMBERS), SELF);
			CHECK(bench.out.header.bitmap == UINT64_C(1) << place.child && bench.out.header.fan_in[0] == MEMBERS - 1);
			CHECK(atp_packet_valid(&bench.out.header) && shape_fits(bench.shape, &bench.out.header));
			CHECK(tag_gradient_right(&bench.keys, bench.shape, &bench.out.header, bench.out.words));
		}
	CHECK(!next(&bench) && sender_wake_ns(bench.sender) == bench.now + 100 * MS);
	/* An own number holds the window of numbers until it is complete here. */
	CHECK(result(&bench, 0, 0, 0) == SENDER_NEW && sender_begin(bench.sender) == 1);
	CHECK(offer(&bench, 2) == 8 && offer(&bench, 2) == UINT32_MAX);
	sender_own_complete(bench.sender, 1);
	CHECK(sender_begin(bench.sender) == 2 && offer(&bench, 2) == 9);
	bench_fini(&bench);
}

/* Time-outs: through the switch and straight in turn, ever later; the content is the same each time. */
static void test_timeouts(void)
{
	struct bench bench;
	uint64_t wait = 100 * MS;

	bench_init(&bench, 100);
	offer(&bench, 0);
	EXPECT_PACKET(&bench, 0, 0);
	uint64_t tag = bench.out.header.tag;
	for (int attempt = 1; attempt < 6; attempt++) {
		CHECK_U64(sender_wake_ns(bench.sender), bench.now + wait);
		bench.now += wait - 1;
		CHECK(!next(&bench));
		bench.now++;
		/* once through the switch, then straight and through the switch in turn */
		EXPECT_PACKET(&bench, 0, attempt % 2 ? ATP_RESEND : ATP_RESEND | ATP_BYPASS);
		CHECK(bench.out.header.tag == tag && (attempt % 2 || bench.out.member == 0));
		CHECK(!next(&bench));
		wait = wait * 2 < 320 * MS ? wait * 2 : 320 * MS;
	}
	CHECK(result(&bench, 0, 0, 0) == SENDER_NEW && result(&bench, 0, 0, 0) == SENDER_REPEATED);
	CHECK(sender_counters(bench.sender)->resends == 3 && sender_counters(bench.sender)->bypasses == 2);
	bench_fini(&bench);
}

/* Three results of higher numbers of the same owner; results of another owner say nothing. */
static void test_fast(void)
{
	struct bench bench;

	bench_init(&bench, 100);
	for (uint32_t i = 0; i < WINDOW; i++)
		offer(&bench, i == 1 ? 2 : 0);
	for (uint32_t i = 0; i < WINDOW; i++)
		EXPECT_PACKET(&bench, i, 0);
	for (uint32_t i = 2; i < 4; i++)
		CHECK(result(&bench, i, 0, 0) == SENDER_NEW && !next(&bench));
	CHECK(result(&bench, 4, 0, 0) == SENDER_NEW && sender_wake_ns(bench.sender) == 0);
	EXPECT_PACKET(&bench, 0, ATP_RESEND);
	CHECK(!next(&bench));
	CHECK(result(&bench, 5, 0, 0) == SENDER_NEW && result(&bench, 6, 0, 0) == SENDER_NEW &&
	      result(&bench, 7, 0, 0) == SENDER_NEW);
	CHECK(!next(&bench));
	CHECK_U64(sender_counters(bench.sender)->fast, 1);
	bench_fini(&bench);
}

static void test_refused(void)
{
	struct bench bench;
	uint32_t sum[WORDS] = {0};
	struct atp_packet packet = {.type = ATP_RESULT, .kind = ATP_SIGNED, .owner = 0, .words = WORDS, .sequence = 0,
	                            .call = 5, .flow = 9};

	bench_init(&bench, 4);
	for (uint32_t i = 0; i < 5; i++)
		offer(&bench, 0);
	CHECK(result(&bench, 0, 0, 0) == SENDER_REFUSED); /* not sent: its sum cannot be complete */
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_PACKET(&bench, i, 0);
	CHECK(!next(&bench)); /* the window has four packets */
	CHECK(sender_result(bench.sender, &packet, sum, bench.now) == SENDER_REFUSED);
	packet.call = 6;
	packet.tag = tag_of_result(&bench.keys, &packet, sum);
	CHECK(sender_result(bench.sender, &packet, sum, bench.now) == SENDER_REFUSED);
	CHECK(result(&bench, 0, 2, 0) == SENDER_REFUSED && result(&bench, 4, 0, 0) == SENDER_REFUSED &&
	      result(&bench, 5, 0, 0) == SENDER_REFUSED);
	CHECK(result(&bench, 0, 0, ATP_MARK) == SENDER_NEW && sender_window(bench.sender)->marks == 1);
	EXPECT_PACKET(&bench, 4, 0);
	bench_fini(&bench);
}

static void test_switch_gone(void)
{
	struct bench bench;

	bench_init(&bench, 100);
	offer(&bench, 0);
	offer(&bench, 2);
	EXPECT_PACKET(&bench, 0, 0);
	sender_use_switch(bench.sender, false);
	EXPECT_PACKET(&bench, 0, ATP_RESEND | ATP_BYPASS);
	EXPECT_PACKET(&bench, 1, ATP_BYPASS);
	CHECK(!next(&bench));
	sender_use_switch(bench.sender, true);
	offer(&bench, 0);
	EXPECT_PACKET(&bench, 2, 0);
	bench_fini(&bench);
}

/* Asked for: a number in flight is repaired, an unsent one goes straight, and later numbers do not. */
static void test_ask(void)
{
	struct bench bench;
	struct atp_packet packet = {.type = ATP_ASK, .sequence = 0, .flow = 9};

	bench_init(&bench, 100);
	offer(&bench, 0);
	EXPECT_PACKET(&bench, 0, 0);
	sender_ask(bench.sender, &packet); /* without a tag: nothing */
	CHECK(!next(&bench));
	packet.tag = tag_of_ask(&bench.keys, &packet);
	sender_ask(bench.sender, &packet);
	EXPECT_PACKET(&bench, 0, ATP_RESEND);
	sender_ask(bench.sender, &packet);
	EXPECT_PACKET(&bench, 0, ATP_RESEND | ATP_BYPASS);
	packet.sequence = 2;
	packet.tag = tag_of_ask(&bench.keys, &packet);
	sender_ask(bench.sender, &packet);
	CHECK(!next(&bench));
	for (uint32_t i = 1; i < 4; i++)
		offer(&bench, 0);
	EXPECT_PACKET(&bench, 1, ATP_BYPASS);
	EXPECT_PACKET(&bench, 2, ATP_BYPASS);
	EXPECT_PACKET(&bench, 3, 0);
	CHECK(!next(&bench) && sender_counters(bench.sender)->asks == 3);
	bench_fini(&bench);
}

static void test_finish(void)
{
	struct bench bench;
	uint32_t byes = 0;

	bench_init(&bench, 100);
	offer(&bench, 0);
	EXPECT_PACKET(&bench, 0, 0);
	sender_finish(bench.sender);
	CHECK(!next(&bench));
	CHECK(result(&bench, 0, 0, 0) == SENDER_NEW && sender_wake_ns(bench.sender) == 0);
	for (; next(&bench); byes++)
		CHECK(bench.out.header.type == ATP_BYE && bench.out.header.sequence == 1 &&
		      atp_packet_valid(&bench.out.header) && (bench.out.to == ENDPOINT_TO_SWITCH || bench.out.member != SELF));
	CHECK_U64(byes, MEMBERS); /* and one through the switch */
	CHECK(result(&bench, 0, 0, 0) == SENDER_REPEATED && next(&bench) && bench.out.header.type == ATP_BYE &&
	      !next(&bench));
	bench_fini(&bench);
}

/* The measured time to results, with its variation, bounds when a number counts as lost. */
static void test_rto(void)
{
	struct bench bench;

	bench_init(&bench, 100);
	for (uint32_t i = 0; i < 200; i++) {
		offer(&bench, 0);
		EXPECT_PACKET(&bench, i, 0);
		bench.now += 30 * MS;
		CHECK(result(&bench, i, 0, 0) == SENDER_NEW);
	}
	CHECK_MSG(sender_rto_ns(bench.sender) >= 50 * MS && sender_rto_ns(bench.sender) < 52 * MS, "%" PRIu64,
	          sender_rto_ns(bench.sender));
	for (uint32_t i = 200; i < 300; i++) {
		offer(&bench, 0);
		EXPECT_PACKET(&bench, i, 0);
		bench.now += MS / 10;
		CHECK(result(&bench, i, 0, 0) == SENDER_NEW);
	}
	CHECK(sender_rto_ns(bench.sender) >= 20 * MS && sender_rto_ns(bench.sender) < 21 * MS);
	/* A number that some member had to send again says nothing. */
	for (uint32_t i = 300; i < 400; i++) {
		offer(&bench, 0);
		EXPECT_PACKET(&bench, i, 0);
		bench.now += 19 * MS;
		CHECK(result(&bench, i, 0, ATP_RESEND) == SENDER_NEW);
	}
	CHECK(sender_rto_ns(bench.sender) >= 20 * MS && sender_rto_ns(bench.sender) <= 42 * MS);
	bench_fini(&bench);
}

int main(void)
{
	test_packets();
	test_timeouts();
	test_fast();
	test_refused();
	test_switch_gone();
	test_ask();
	test_finish();
	test_rto();
	return 0;
}
