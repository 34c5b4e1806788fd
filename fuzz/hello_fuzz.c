/*
 * hello_fuzz.c - handshakes with a stranger: no bytes get in without the key, whatever they are.
 *
 * Three readings of one input: as a hello; as bytes to either end of a handshake; as the
 * hello of somebody who does have the key, to get behind the proof.
 */
#include "fuzz.h"

#include <string.h>

#include "node/auth/handshake.h"

static const struct handshake_config dialer = {
	.key = "a key that nobody guesses ......",
	.hello = {.from = 3, .to = 5, .size = 8, .epoch = 7, .purpose = HELLO_LANE, .lane = 1, .job = "job"},
};
static const struct handshake_config listener = {
	.key = "a key that nobody guesses ......",
	.hello = {.from = 5, .to = HANDSHAKE_ANY_RANK, .size = 8, .epoch = 7, .job = "job"},
	.purposes = 1u << HELLO_LANE | 1u << HELLO_CONTROL | 1u << HELLO_AGAIN,
	.lanes = 2,
};
static const uint8_t nonce[HELLO_NONCE_BYTES] = "always the same, so it replays";

static void as_hello(const uint8_t *data)
{
	uint8_t again[HELLO_BYTES];
	struct hello hello;

	if (!hello_decode(data, &hello) || hello.version != HELLO_VERSION)
		return;
	hello_encode(&hello, again);
	FUZZ_CHECK(memcmp(data, again, HELLO_BYTES) == 0);
}

static void as_stranger(enum handshake_role role, const uint8_t *data, size_t size)
{
	struct handshake hs;
	struct error err;
	size_t used = 0;

	handshake_init_with(&hs, role, role == HANDSHAKE_DIALER ? &dialer : &listener, nonce);
	enum esp_status status = handshake_input(&hs, data, size, &used, &err);
	FUZZ_CHECK(used <= size);
	FUZZ_CHECK(status == ESP_PENDING || status == ESP_ECORRUPT);
	FUZZ_CHECK(handshake_closed(&hs, &err) < 0);
}

/* All that one end has to say, to the other. */
static enum esp_status pass(struct handshake *from, struct handshake *to)
{
	const uint8_t *bytes;
	struct error err;
	size_t n, used;

	handshake_output(from, &bytes, &n);
	enum esp_status status = handshake_input(to, bytes, n, &used, &err);
	handshake_sent(from, n);
	return status;
}

static void as_insider(const uint8_t *data)
{
	struct handshake_config config = dialer;
	struct handshake caller, callee;

	if (!hello_decode(data, &config.hello))
		return;
	handshake_init_with(&caller, HANDSHAKE_DIALER, &config, nonce);
	handshake_init_with(&callee, HANDSHAKE_LISTENER, &listener, nonce);
	FUZZ_CHECK(pass(&callee, &caller) == ESP_PENDING);
	enum esp_status status = pass(&caller, &callee);
	/* A hello that makes no sense in this version cannot be decoded, and so proves nothing. */
	FUZZ_CHECK(status == ESP_OK || status == ESP_EMISMATCH || status == ESP_ECORRUPT);
	if (status != ESP_ECORRUPT)
		FUZZ_CHECK(pass(&callee, &caller) == status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_stranger(HANDSHAKE_DIALER, data, size);
	as_stranger(HANDSHAKE_LISTENER, data, size);
	if (size >= HELLO_BYTES) {
		as_hello(data);
		as_insider(data);
	}
	return 0;
}
