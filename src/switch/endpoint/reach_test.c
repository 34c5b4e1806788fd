/* Probes between members: all answer, none does, one way is closed, and forged answers. */
#include "switch/endpoint/reach.h"

#include "base/check.h"

#define MS UINT64_C(1000000)
#define MEMBERS 3u

static struct tag_keys keys;
static struct reach members[MEMBERS];

static void open_all(void)
{
	for (uint16_t i = 0; i < MEMBERS; i++)
		reach_init(&members[i], &keys, 9, i, MEMBERS, 8, 0);
}

/* Every packet is carried but those from `from` to `to`. */
static uint32_t run(uint64_t now_ns, uint16_t from, uint16_t to)
{
	struct endpoint_out out;
	uint32_t carried = 0;
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint16_t i = 0; i < MEMBERS; i++)
			while (reach_next(&members[i], now_ns, &out)) {
				moved = true;
				CHECK(out.to == ENDPOINT_TO_MEMBER && out.member != i && out.header.owner == i &&
				      atp_packet_valid(&out.header));
				CHECK_U64(out.header.words, out.header.flags & ATP_DONE ? 0 : 8);
				if (i != from || out.member != to)
					reach_packet(&members[out.member], &out.header);
				carried++;
			}
	}
	return carried;
}

static void test_open(void)
{
	open_all();
	CHECK(!reach_is_whole(&members[0]) && reach_missing(&members[0]) == 1 && reach_wake_ns(&members[0]) == 0);
	CHECK_U64(run(0, MEMBERS, MEMBERS), 2 * MEMBERS * (MEMBERS - 1));
	for (uint32_t i = 0; i < MEMBERS; i++)
		CHECK(reach_is_whole(&members[i]) && reach_wake_ns(&members[i]) == UINT64_MAX);
	CHECK_U64(run(10000 * MS, MEMBERS, MEMBERS), 0);
}

/* The probe of 0 arrives nowhere at 2, nor its answers: both miss each other. */
static void test_closed(void)
{
	uint64_t now = 0, rounds = 0;

	open_all();
	for (; now < 10000 * MS; rounds++) {
		run(now, 0, 2);
		CHECK(!reach_is_whole(&members[0]) && reach_missing(&members[0]) == 2);
		CHECK(reach_is_whole(&members[1]) && reach_missing(&members[2]) == 0);
		CHECK(reach_wake_ns(&members[0]) > now);
		now = reach_wake_ns(&members[0]);
	}
	CHECK_MSG(rounds < 12, "%" PRIu64 " rounds in 10 s", rounds);
	/* It is opened after all. */
	run(now, MEMBERS, MEMBERS);
	CHECK(reach_is_whole(&members[0]) && reach_is_whole(&members[2]));
}

static void test_forged(void)
{
	struct atp_packet answer = {
		.type = ATP_PROBE, .flags = ATP_DONE | ATP_BYPASS, .owner = 1, .flow = 9, .next = ATP_NO_NEXT};

	open_all();
	reach_packet(&members[0], &answer);
	CHECK(members[0].answered == 0);
	answer.tag = tag_of_probe(&keys, &answer);
	answer.sequence = 2; /* for another member */
	reach_packet(&members[0], &answer);
	answer.sequence = 0;
	answer.flags = ATP_BYPASS; /* a probe whose tag is that of an answer */
	reach_packet(&members[0], &answer);
	CHECK(members[0].answered == 0 && members[0].owed == 0);
	answer.flags = ATP_DONE | ATP_BYPASS;
	reach_packet(&members[0], &answer);
	CHECK_U64(members[0].answered, 2);
}

static void test_none(void)
{
	struct endpoint_out out;

	reach_init(&members[0], &keys, 9, 0, 0, 0, 0);
	CHECK(reach_is_whole(&members[0]) && !reach_next(&members[0], 0, &out) && reach_wake_ns(&members[0]) == UINT64_MAX);
}

int main(void)
{
	const uint8_t secret[TAG_KEY_BYTES] = {5};
	struct error err;

	CHECK(tag_keys_init(&keys, secret, 8, &err) == ESP_OK);
	test_open();
	test_closed();
	test_forged();
	test_none();
	tag_keys_fini(&keys);
	return 0;
}
