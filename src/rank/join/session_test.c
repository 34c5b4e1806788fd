#include "rank/join/session.h"

#include "base/check.h"
#include "base/rng.h"

#define ROSTER_BYTES 5000u

static const struct handshake_config dialer_config = {
	.key = "a key of thirty-two bytes ......",
	.hello = {.from = 3, .to = 0, .size = 8, .purpose = HELLO_RENDEZVOUS},
};
static const struct handshake_config listener_config = {
	.key = "a key of thirty-two bytes ......",
	.hello = {.from = 0, .to = HANDSHAKE_ANY_RANK, .size = 8},
	.purposes = 1u << HELLO_RENDEZVOUS,
};

struct end {
	struct session session;
	uint8_t inbox[ROSTER_BYTES];
	struct session_message message; /* it will send */
	enum esp_status status;
	bool posted;
};

static uint8_t info[RENDEZVOUS_ARRIVAL_BYTES], roster[ROSTER_BYTES];

static void end_init(struct end *end, enum handshake_role role)
{
	bool dials = role == HANDSHAKE_DIALER;
	struct session_inbox inbox = {.body = end->inbox};

	inbox.wanted[dials ? RENDEZVOUS_ROSTER : RENDEZVOUS_ARRIVAL] = dials ? ROSTER_BYTES : RENDEZVOUS_ARRIVAL_BYTES;
	if (dials)
		inbox.wanted[RENDEZVOUS_FAILURE] = RENDEZVOUS_FAILURE_BYTES;
	session_init(&end->session, role, dials ? &dialer_config : &listener_config, &inbox);
	if (dials)
		session_message_init(&end->message, RENDEZVOUS_ARRIVAL, info, sizeof(info));
	else
		session_message_init(&end->message, RENDEZVOUS_ROSTER, roster, sizeof(roster));
	end->status = ESP_PENDING;
	end->posted = false;
}

/* Moves at most limit bytes from one end to the other; counts every byte, and changes the one at flip. */
static bool move(struct end *from, struct end *to, size_t limit, size_t *at, size_t flip)
{
	uint8_t copy[ROSTER_BYTES];
	const uint8_t *bytes;
	struct error err;
	size_t n;

	bool its_turn = from->session.handshake.role == HANDSHAKE_DIALER || from->session.arrived;
	if (from->session.proved && !from->posted && its_turn) {
		session_post(&from->session, &from->message);
		from->posted = true;
	}
	session_output(&from->session, &bytes, &n);
	n = n < limit ? n : limit;
	if (n == 0 || to->status < 0)
		return false;
	memcpy(copy, bytes, n);
	session_sent(&from->session, n);
	if (flip >= *at && flip < *at + n)
		copy[flip - *at] ^= 4;
	*at += n;
	to->status = session_input(&to->session, copy, n, &err);
	return true;
}

/* Returns the number of bytes on the wire. */
static size_t run(struct end *dialer, struct end *listener, struct rng *rng, size_t flip)
{
	size_t at = 0;
	bool moved = true;

	end_init(dialer, HANDSHAKE_DIALER);
	end_init(listener, HANDSHAKE_LISTENER);
	while (moved) {
		size_t limit = rng ? 1 + rng_below(rng, 400) : ROSTER_BYTES;
		moved = move(listener, dialer, limit, &at, flip);
		moved |= move(dialer, listener, limit, &at, flip);
	}
	return at;
}

static void met(struct rng *rng)
{
	struct end dialer, listener;

	for (int i = 0; i < 200; i++) {
		run(&dialer, &listener, i ? rng : NULL, SIZE_MAX);
		CHECK(dialer.status == ESP_OK && listener.status == ESP_OK);
		CHECK(dialer.session.type == RENDEZVOUS_ROSTER && listener.session.type == RENDEZVOUS_ARRIVAL);
		CHECK(memcmp(dialer.inbox, roster, sizeof(roster)) == 0);
		CHECK(memcmp(listener.inbox, info, sizeof(info)) == 0);
	}
}

static void any_byte_changed(void)
{
	struct end dialer, listener;
	size_t whole = run(&dialer, &listener, NULL, SIZE_MAX);

	for (size_t flip = 0; flip < whole; flip++) {
		run(&dialer, &listener, NULL, flip);
		CHECK_MSG(dialer.status != ESP_OK || listener.status != ESP_OK, "byte %zu", flip);
	}
}

static void ends(void)
{
	struct end dialer, listener;
	struct error err;

	run(&dialer, &listener, NULL, SIZE_MAX);
	CHECK(session_closed(&dialer.session, &err) == ESP_OK);
	CHECK(session_input(&dialer.session, info, 1, &err) == ESP_ECORRUPT);
	CHECK(strstr(err.text, "more than it should"));
	end_init(&dialer, HANDSHAKE_DIALER);
	CHECK(session_closed(&dialer.session, &err) == ESP_ELINK);
	session_fini(&dialer.session);
	CHECK(dialer.session.handshake.config.key[0] == 0);
}

/* A message of an unexpected type or length is refused by its head, before anything is stored. */
static void unexpected(void)
{
	struct end dialer, listener;
	struct error err;
	uint8_t head[RENDEZVOUS_HEAD_BYTES];
	static const struct rendezvous_head heads[] = {{RENDEZVOUS_ROSTER, ROSTER_BYTES + 1}, {RENDEZVOUS_ROSTER, 0},
	                                          {RENDEZVOUS_ROSTER, UINT32_MAX},
	                                               {RENDEZVOUS_ARRIVAL, RENDEZVOUS_ARRIVAL_BYTES}};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t at = 0;
		end_init(&dialer, HANDSHAKE_DIALER);
		end_init(&listener, HANDSHAKE_LISTENER);
		dialer.posted = listener.posted = true; /* the handshake only */
		while (!listener.session.proved || !dialer.session.proved) {
			move(&listener, &dialer, ROSTER_BYTES, &at, SIZE_MAX);
			move(&dialer, &listener, ROSTER_BYTES, &at, SIZE_MAX);
		}
		rendezvous_head_encode(&heads[i], head);
		CHECK(session_input(&dialer.session, head, sizeof(head), &err) == ESP_ECORRUPT);
		CHECK(session_closed(&dialer.session, &err) == ESP_ELINK);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (unsigned i = 0; i < sizeof(roster); i++)
		roster[i] = (uint8_t)rng_next(&rng);
	for (unsigned i = 0; i < sizeof(info); i++)
		info[i] = (uint8_t)rng_next(&rng);
	met(&rng);
	any_byte_changed();
	ends();
	unexpected();
	return 0;
}
