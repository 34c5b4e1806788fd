#include "node/auth/handshake.h"

#include <assert.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "node/auth/handshake_check.h"
#include "wire/bytes.h"

#define LABEL_BYTES 32u
static_assert(HANDSHAKE_KEY_BYTES == crypto_stream_KEYBYTES, "a hello is hidden with such a key");
static_assert(crypto_generichash_BYTES_MAX >= 2 * HANDSHAKE_KEY_BYTES, "both keys of a role come from one hash");

/* Part of every hash: messages of one role do not pass for the other's, and no two keys are the same. */
static const char role_labels[][LABEL_BYTES] = {
	[HANDSHAKE_DIALER] = "espalier handshake 1 dialer",
	[HANDSHAKE_LISTENER] = "espalier handshake 1 listener",
};
static const char session_label[LABEL_BYTES] = "espalier handshake 1 session";

/* The keys of one role in one handshake: each is used for one message. */
struct role_keys {
	uint8_t hide[HANDSHAKE_KEY_BYTES];
	uint8_t tag[HANDSHAKE_KEY_BYTES];
};
static_assert(sizeof(struct role_keys) == 2 * HANDSHAKE_KEY_BYTES, "written as one hash");

static const uint8_t *nonce_in(const uint8_t *message)
{
	return message + HELLO_MAGIC_BYTES;
}

static void derive_keys(const struct handshake *hs, enum handshake_role role, struct role_keys *out)
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, hs->config.key, HANDSHAKE_KEY_BYTES, sizeof(*out));
	crypto_generichash_update(&state, (const uint8_t *)role_labels[role], LABEL_BYTES);
	crypto_generichash_update(&state, nonce_in(hs->challenge), HELLO_NONCE_BYTES);
	crypto_generichash_update(&state, nonce_in(hs->proof), HELLO_NONCE_BYTES);
	crypto_generichash_final(&state, (uint8_t *)out, sizeof(*out));
	sodium_memzero(&state, sizeof(state));
}

/* Makes the tag over everything on the wire so far, the tag itself excepted. */
static void make_tag(const struct handshake *hs, enum handshake_role role, const struct role_keys *keys,
                     uint8_t out[HELLO_TAG_BYTES])
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, keys->tag, HANDSHAKE_KEY_BYTES, HELLO_TAG_BYTES);
	crypto_generichash_update(&state, (const uint8_t *)role_labels[role], LABEL_BYTES);
	crypto_generichash_update(&state, hs->challenge, CHALLENGE_BYTES);
	if (role == HANDSHAKE_DIALER) {
		crypto_generichash_update(&state, hs->proof, PROOF_BYTES - HELLO_TAG_BYTES);
	} else {
		crypto_generichash_update(&state, hs->proof, PROOF_BYTES);
		crypto_generichash_update(&state, hs->final, VERDICT_BYTES - HELLO_TAG_BYTES);
	}
	crypto_generichash_final(&state, out, HELLO_TAG_BYTES);
	sodium_memzero(&state, sizeof(state));
}

uint64_t handshake_job_number(const uint8_t key[HANDSHAKE_KEY_BYTES], const uint8_t job[HELLO_JOB_BYTES])
{
	static const char label[LABEL_BYTES] = "espalier handshake 1 job";
	uint8_t hash[crypto_generichash_BYTES_MIN];
	crypto_generichash_state state;

	crypto_generichash_init(&state, key, HANDSHAKE_KEY_BYTES, sizeof(hash));
	crypto_generichash_update(&state, (const uint8_t *)label, LABEL_BYTES);
	crypto_generichash_update(&state, job, HELLO_JOB_BYTES);
	crypto_generichash_final(&state, hash, sizeof(hash));
	sodium_memzero(&state, sizeof(state));
	uint64_t number = bytes_get64(hash);
	return number ? number : 1;
}

static void make_session(struct handshake *hs)
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, hs->config.key, HANDSHAKE_KEY_BYTES, HANDSHAKE_KEY_BYTES);
	crypto_generichash_update(&state, (const uint8_t *)session_label, LABEL_BYTES);
	crypto_generichash_update(&state, hs->challenge, CHALLENGE_BYTES);
	crypto_generichash_update(&state, hs->proof, PROOF_BYTES);
	crypto_generichash_update(&state, hs->final, VERDICT_BYTES);
	crypto_generichash_final(&state, hs->session, HANDSHAKE_KEY_BYTES);
	sodium_memzero(&state, sizeof(state));
}

/* Encrypts or decrypts a hello. The key is used once, so the nonce of the cipher may be zero. */
static void xor_hello(const struct role_keys *keys, uint8_t hello[HELLO_BYTES])
{
	static const uint8_t zero[crypto_stream_NONCEBYTES];
	crypto_stream_xor(hello, hello, HELLO_BYTES, zero, keys->hide);
}

/* Appends the hidden hello and the tag to the first head_bytes of a message. */
static void seal(struct handshake *hs, const struct hello *hello, uint8_t *message, size_t head_bytes)
{
	struct role_keys keys;
	derive_keys(hs, hs->role, &keys);
	hello_encode(hello, message + head_bytes);
	xor_hello(&keys, message + head_bytes);
	make_tag(hs, hs->role, &keys, message + head_bytes + HELLO_BYTES);
	sodium_memzero(&keys, sizeof(keys));
}

/* Checks the tag of the peer's message, then decodes its hello. False: it does not prove the key. */
static bool open_sealed(struct handshake *hs, const uint8_t *message, size_t head_bytes, struct hello *out)
{
	enum handshake_role other = hs->role == HANDSHAKE_DIALER ? HANDSHAKE_LISTENER : HANDSHAKE_DIALER;
	struct role_keys keys;
	uint8_t tag[HELLO_TAG_BYTES], hello[HELLO_BYTES];
	derive_keys(hs, other, &keys);
	make_tag(hs, other, &keys, tag);
	bool proved = sodium_memcmp(tag, message + head_bytes + HELLO_BYTES, HELLO_TAG_BYTES) == 0;
	if (proved) {
		memcpy(hello, message + head_bytes, HELLO_BYTES);
		xor_hello(&keys, hello);
		proved = hello_decode(hello, out);
	}
	sodium_memzero(&keys, sizeof(keys));
	return proved;
}

static void send_message(struct handshake *hs, uint8_t *message, uint32_t bytes)
{
	assert(hs->out_at == hs->out_bytes); /* messages alternate: the previous one was answered */
	hs->out = message;
	hs->out_at = 0;
	hs->out_bytes = bytes;
}

static enum esp_status fail_handshake(struct handshake *hs, enum esp_status status)
{
	hs->state = HANDSHAKE_FAILED;
	hs->status = status;
	return status;
}

static enum esp_status fail_proof(struct handshake *hs, struct error *err)
{
	const char *peer = hs->role == HANDSHAKE_DIALER ? "the listening process" : "the connecting process";
	return error_set(err, fail_handshake(hs, ESP_ECORRUPT), "%s did not prove that it has the job's key", peer);
}

void handshake_init_with(struct handshake *hs, enum handshake_role role, const struct handshake_config *config,
                         const uint8_t nonce[HELLO_NONCE_BYTES])
{
	*hs = (struct handshake){.role = (uint8_t)role, .status = ESP_PENDING, .config = *config};
	if (hs->config.hello.version == 0)
		hs->config.hello.version = HELLO_VERSION;
	if (role == HANDSHAKE_DIALER && hs->config.job == 0)
		hs->config.job = handshake_job_number(hs->config.key, hs->config.hello.job);
	memcpy(hs->nonce, nonce, HELLO_NONCE_BYTES);
	hs->state = HANDSHAKE_WAITS_CHALLENGE;
	if (role == HANDSHAKE_LISTENER) {
		memcpy(hs->challenge, hello_challenge_magic, HELLO_MAGIC_BYTES);
		memcpy(hs->challenge + HELLO_MAGIC_BYTES, nonce, HELLO_NONCE_BYTES);
		send_message(hs, hs->challenge, CHALLENGE_BYTES);
		hs->state = HANDSHAKE_WAITS_PROOF;
	}
}

void handshake_init(struct handshake *hs, enum handshake_role role, const struct handshake_config *config)
{
	uint8_t nonce[HELLO_NONCE_BYTES];
	int ready = sodium_init(); /* idempotent */
	assert(ready >= 0);
	(void)ready;
	randombytes_buf(nonce, sizeof(nonce));
	handshake_init_with(hs, role, config, nonce);
}

void handshake_output(const struct handshake *hs, const uint8_t **out_bytes, size_t *out_n)
{
	*out_n = hs->out_bytes - hs->out_at;
	*out_bytes = *out_n ? hs->out + hs->out_at : NULL;
}

void handshake_sent(struct handshake *hs, size_t n)
{
	assert(n <= hs->out_bytes - hs->out_at);
	hs->out_at += (uint32_t)n;
}

/* Dialer: the challenge is complete; answers it with a proof. */
static enum esp_status on_challenge(struct handshake *hs)
{
	memcpy(hs->proof, hello_proof_magic, HELLO_MAGIC_BYTES);
	memcpy(hs->proof + HELLO_MAGIC_BYTES, hs->nonce, HELLO_NONCE_BYTES);
	bytes_put64(hs->proof + PROOF_JOB_AT, hs->config.job);
	seal(hs, &hs->config.hello, hs->proof, PROOF_HEAD_BYTES);
	send_message(hs, hs->proof, PROOF_BYTES);
	hs->state = HANDSHAKE_WAITS_VERDICT;
	return ESP_PENDING;
}

/* Listener: the proof is complete. A dialer without the key gets no answer. */
static enum esp_status on_proof(struct handshake *hs, struct error *err)
{
	struct handshake_config *config = &hs->config;
	uint64_t job = bytes_get64(hs->proof + PROOF_JOB_AT);
	if (config->find && !config->find(config->find_context, job, config->key, &config->hello))
		return error_set(err, fail_handshake(hs, ESP_ECORRUPT),
		                 "the connecting process named a job that is not known here");
	if (config->hello.version == 0)
		config->hello.version = HELLO_VERSION;
	struct hello answer = config->hello;
	if (!open_sealed(hs, hs->proof, PROOF_HEAD_BYTES, &hs->peer))
		return fail_proof(hs, err);
	hs->verdict = (uint8_t)judge_dialer(&hs->config, &hs->peer);
	answer.to = hs->peer.from;
	answer.to_role = hs->peer.role;
	answer.purpose = HELLO_RENDEZVOUS; /* another version may number its purposes differently */
	answer.verdict = hs->verdict;
	if (hs->verdict != HELLO_OTHER_VERSION) {
		answer.purpose = hs->peer.purpose;
		answer.lane = hs->peer.lane;
	}
	memcpy(hs->final, hello_verdict_magic, HELLO_MAGIC_BYTES);
	hs->out_at = hs->out_bytes; /* a valid proof answers the challenge, so the challenge was sent */
	seal(hs, &answer, hs->final, HELLO_MAGIC_BYTES);
	send_message(hs, hs->final, VERDICT_BYTES);
	if (hs->verdict != HELLO_WELCOME)
		return fail_handshake(hs, handshake_explain(hs->verdict, &hs->peer, &hs->config.hello, err));
	make_session(hs);
	hs->state = HANDSHAKE_DONE;
	return hs->status = ESP_OK;
}

/* Dialer: the verdict is complete. The listener is judged too: it may be another rank than the one that was dialled. */
static enum esp_status on_verdict(struct handshake *hs, struct error *err)
{
	if (!open_sealed(hs, hs->final, HELLO_MAGIC_BYTES, &hs->peer))
		return fail_proof(hs, err);
	hs->verdict = hs->peer.verdict;
	if (hs->verdict == HELLO_WELCOME)
		hs->verdict = (uint8_t)judge_listener(&hs->config, &hs->peer);
	if (hs->verdict != HELLO_WELCOME)
		return fail_handshake(hs, handshake_explain(hs->verdict, &hs->config.hello, &hs->peer, err));
	make_session(hs);
	hs->state = HANDSHAKE_DONE;
	return hs->status = ESP_OK;
}

/* The next message from the peer. */
struct expected {
	uint8_t *message;
	const uint8_t *magic;
	uint32_t bytes;
};

static struct expected next_message(struct handshake *hs)
{
	switch ((enum handshake_state)hs->state) {
	case HANDSHAKE_WAITS_CHALLENGE:
		return (struct expected){hs->challenge, hello_challenge_magic, CHALLENGE_BYTES};
	case HANDSHAKE_WAITS_PROOF:
		return (struct expected){hs->proof, hello_proof_magic, PROOF_BYTES};
	case HANDSHAKE_WAITS_VERDICT:
		return (struct expected){hs->final, hello_verdict_magic, VERDICT_BYTES};
	case HANDSHAKE_DONE:
	case HANDSHAKE_FAILED:
		break;
	}
	return (struct expected){0};
}

/* Another protocol is recognized by its first bytes, not by a deadline. */
static bool magic_fits(const struct expected *expected, uint32_t arrived)
{
	uint32_t n = arrived < HELLO_MAGIC_BYTES ? arrived : HELLO_MAGIC_BYTES;
	return memcmp(expected->message, expected->magic, n) == 0;
}

static enum esp_status on_message(struct handshake *hs, struct error *err)
{
	hs->in_bytes = 0;
	if (hs->state == HANDSHAKE_WAITS_CHALLENGE)
		return on_challenge(hs);
	return hs->state == HANDSHAKE_WAITS_PROOF ? on_proof(hs, err) : on_verdict(hs, err);
}

enum esp_status handshake_input(struct handshake *hs, const uint8_t *bytes, size_t n, size_t *out_used,
                                struct error *err)
{
	size_t used = 0;
	while (hs->status == ESP_PENDING && used < n) {
		struct expected expected = next_message(hs);
		assert(expected.message); /* a pending handshake awaits a message */
		uint32_t take = expected.bytes - hs->in_bytes;
		if (take > n - used)
			take = (uint32_t)(n - used);
		memcpy(expected.message + hs->in_bytes, bytes + used, take);
		hs->in_bytes += take;
		used += take;
		if (!magic_fits(&expected, hs->in_bytes))
			error_set(err, fail_handshake(hs, ESP_ECORRUPT),
			          "the process at the other end does not speak this protocol");
		else if (hs->in_bytes == expected.bytes)
			on_message(hs, err);
	}
	*out_used = used;
	return hs->status;
}

size_t handshake_wants(struct handshake *hs)
{
	return hs->status == ESP_PENDING ? next_message(hs).bytes - hs->in_bytes : 0;
}

enum esp_status handshake_closed(struct handshake *hs, struct error *err)
{
	if (hs->status != ESP_PENDING)
		return hs->status;
	hs->refused = hs->state == HANDSHAKE_WAITS_VERDICT && hs->out_at == hs->out_bytes;
	fail_handshake(hs, ESP_ELINK);
	if (hs->refused)
		return error_set(err, ESP_ELINK, "the other end closed the connection when it saw the proof: does it have "
		                 "another key?");
	return error_set(err, ESP_ELINK, "the other end closed the connection before it was proved");
}

void handshake_fini(struct handshake *hs)
{
	sodium_memzero(hs, sizeof(*hs));
}
