#include "switch/endpoint/membership.h"

#include "base/check.h"

#define MS UINT64_C(1000000)
#define FLOW 77u

static const struct membership_config config = {.flow = FLOW, .self = 3, .words_max = 356, .busy_ns = 100 * MS,
                                                .idle_ns = 1000 * MS, .probe_ns = 20 * MS};

static struct atp_greeting hello_of(const struct endpoint_out *out)
{
	struct atp_greeting greeting;

	CHECK(out->header.type == ATP_HELLO && out->header.owner == 3 && out->header.flow == FLOW &&
	      out->to == ENDPOINT_TO_SWITCH);
	CHECK(atp_packet_valid(&out->header) && atp_greeting_decode(out->words, &greeting));
	return greeting;
}

/* The switch: one secret per life. */
static bool answer(struct membership *membership, const struct endpoint_out *out, uint64_t secret, uint64_t now)
{
	struct atp_greeting hello = hello_of(out);
	struct atp_packet packet = {.type = ATP_WELCOME, .owner = out->header.owner, .flow = out->header.flow,
	                            .words = ATP_GREETING_WORDS};
	struct atp_greeting welcome = {.cookie = secret, .slots = 64, .words_max = 400,
	                               .is_registered = hello.cookie == secret, .sent_ns = hello.sent_ns};
	uint8_t body[ATP_GREETING_BYTES];

	atp_greeting_encode(&welcome, body);
	return membership_welcome(membership, &packet, body, now);
}

static void test_life(void)
{
	struct membership membership;
	struct endpoint_out out;
	uint64_t now = 5 * MS;

	membership_init(&membership, &config, now);
	CHECK(membership_next(&membership, now, &out) && hello_of(&out).cookie == 0);
	CHECK(!membership_next(&membership, now, &out) && !membership_helps(&membership));
	/* The cookie is brought back at once. */
	CHECK(answer(&membership, &out, 9, now) && !membership_helps(&membership));
	CHECK(membership_wake_ns(&membership) == 0 && membership_next(&membership, now, &out) &&
	      hello_of(&out).cookie == 9);
	CHECK(answer(&membership, &out, 9, now + 2 * MS));
	CHECK(membership_helps(&membership) && membership.state == MEMBERSHIP_ALIVE && membership.round_trip_ns == 2 * MS);
	/* Busy: a hello at once, then each 100 ms. */
	membership_busy(&membership, true, now += 3 * MS);
	CHECK(membership_next(&membership, now, &out) && membership_wake_ns(&membership) == now + 102 * MS);
	CHECK(answer(&membership, &out, 9, now));
	/* Two without an answer: gone. */
	CHECK(membership_next(&membership, now += 102 * MS, &out) && membership_helps(&membership));
	CHECK(membership_next(&membership, now += 102 * MS, &out) && membership_helps(&membership));
	CHECK(membership_next(&membership, now += 102 * MS, &out) && !membership_helps(&membership) &&
	      membership.state == MEMBERSHIP_GONE);
	/* It comes back with another secret: two exchanges in one round trip each. */
	CHECK(answer(&membership, &out, 12, now) && !membership_helps(&membership));
	CHECK(membership_next(&membership, now, &out) && hello_of(&out).cookie == 12);
	CHECK(answer(&membership, &out, 12, now) && membership_helps(&membership));
}

/* Alive at that time, with a round trip of 2 ms. */
static void make_alive(struct membership *membership, uint64_t now)
{
	struct endpoint_out out;

	membership_init(membership, &config, now);
	membership_busy(membership, true, now);
	CHECK(membership_next(membership, now, &out) && answer(membership, &out, 9, now));
	CHECK(membership_next(membership, now, &out) && answer(membership, &out, 9, now + 2 * MS));
	CHECK(membership_helps(membership) && membership_wake_ns(membership) == now + 100 * MS);
}

static void test_suspected(void)
{
	struct membership membership;
	struct endpoint_out out;
	uint64_t now = 5 * MS;

	/* An answer ends the suspicion. */
	make_alive(&membership, now);
	membership_suspect(&membership, now += 10 * MS);
	CHECK(membership_next(&membership, now, &out) && membership_wake_ns(&membership) == now + 24 * MS);
	CHECK(answer(&membership, &out, 9, now + 2 * MS) && membership_helps(&membership));
	CHECK(membership_next(&membership, now += 24 * MS, &out) && membership_wake_ns(&membership) == now + 102 * MS);
	/* Two hellos without one: gone, 48 ms after the first. */
	make_alive(&membership, now);
	membership_suspect(&membership, now += 10 * MS);
	CHECK(membership_next(&membership, now, &out));
	membership_suspect(&membership, now + 1);
	CHECK(!membership_next(&membership, now + 1, &out));
	CHECK(membership_next(&membership, now += 24 * MS, &out) && membership_helps(&membership));
	CHECK(membership_next(&membership, now += 24 * MS, &out) && !membership_helps(&membership));
	CHECK(membership_wake_ns(&membership) == now + 102 * MS);
	membership_suspect(&membership, now);
	CHECK(membership_wake_ns(&membership) == now + 102 * MS);
}

/* A switch that started anew has lost what it held. */
static void test_anew(void)
{
	struct membership membership;
	struct endpoint_out out;
	uint64_t now = 5 * MS;

	make_alive(&membership, now);
	CHECK(membership_next(&membership, now += 102 * MS, &out) && answer(&membership, &out, 10, now));
	CHECK(!membership_helps(&membership) && membership.state == MEMBERSHIP_GONE);
	CHECK(membership_next(&membership, now, &out) && answer(&membership, &out, 10, now));
	CHECK(membership_helps(&membership));
}

/* A member that itself came late says one hello more before it takes the switch for gone. */
static void test_late(void)
{
	struct membership membership;
	struct endpoint_out out;
	uint64_t now = 5 * MS;

	make_alive(&membership, now);
	CHECK(membership_next(&membership, now += 102 * MS, &out) && membership_next(&membership, now += 102 * MS, &out));
	CHECK(membership_next(&membership, now += 900 * MS, &out) && membership_helps(&membership));
	CHECK(membership_next(&membership, now += 102 * MS, &out) && !membership_helps(&membership));
}

static void test_refused(void)
{
	struct membership membership;
	struct atp_packet packet = {.type = ATP_WELCOME, .owner = 3, .flow = FLOW, .words = ATP_GREETING_WORDS},
	    other = packet;
	struct atp_greeting welcome = {.cookie = 4, .words_max = 100, .is_registered = true};
	uint8_t body[ATP_GREETING_BYTES];

	membership_init(&membership, &config, 0);
	atp_greeting_encode(&welcome, body);
	other.flow++;
	CHECK(!membership_welcome(&membership, &other, body, 1));
	other = packet, other.owner = 2;
	CHECK(!membership_welcome(&membership, &other, body, 1));
	other = packet, other.words = ATP_GREETING_WORDS - 1;
	CHECK(!membership_welcome(&membership, &other, body, 1));
	body[23] = 1;
	CHECK(!membership_welcome(&membership, &packet, body, 1) && membership.state == MEMBERSHIP_UNKNOWN);
	body[23] = 0;
	/* Alive, but its slots are too short. */
	CHECK(membership_welcome(&membership, &packet, body, 1) && membership.state == MEMBERSHIP_ALIVE &&
	      !membership_helps(&membership));
}

int main(void)
{
	test_life();
	test_suspected();
	test_anew();
	test_late();
	test_refused();
	return 0;
}
