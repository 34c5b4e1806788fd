#include "rank/join/session.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

static const char labels[][32] = {
	[HANDSHAKE_DIALER] = "espalier store 1 dialer",
	[HANDSHAKE_LISTENER] = "espalier store 1 listener",
};

static void hash_body(const uint8_t *body, uint32_t bytes, uint8_t digest[SESSION_DIGEST_BYTES])
{
	crypto_generichash(digest, SESSION_DIGEST_BYTES, body, bytes, NULL, 0);
}

static void make_tag(const struct session *session, enum handshake_role sender,
                     const uint8_t head[RENDEZVOUS_HEAD_BYTES], const uint8_t digest[SESSION_DIGEST_BYTES],
                     uint8_t out[RENDEZVOUS_TAG_BYTES])
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, session->handshake.session, HANDSHAKE_KEY_BYTES, RENDEZVOUS_TAG_BYTES);
	crypto_generichash_update(&state, (const uint8_t *)labels[sender], sizeof(labels[sender]));
	crypto_generichash_update(&state, head, RENDEZVOUS_HEAD_BYTES);
	crypto_generichash_update(&state, digest, SESSION_DIGEST_BYTES);
	crypto_generichash_final(&state, out, RENDEZVOUS_TAG_BYTES);
	sodium_memzero(&state, sizeof(state));
}

void session_message_init(struct session_message *message, enum rendezvous_type type, const uint8_t *body,
                          uint32_t bytes)
{
	*message = (struct session_message){.type = (uint8_t)type, .body = body, .bytes = bytes};
	hash_body(body, bytes, message->digest);
}

void session_init(struct session *session, enum handshake_role role, const struct handshake_config *config,
                  const struct session_inbox *inbox)
{
	*session = (struct session){.inbox = *inbox};
	handshake_init(&session->handshake, role, config);
}

void session_post(struct session *session, const struct session_message *message)
{
	assert(session->proved && session->out_bytes == 0);
	rendezvous_head_encode(&(struct rendezvous_head){message->type, message->bytes}, session->out_head);
	make_tag(session, session->handshake.role, session->out_head, message->digest, session->out_tag);
	session->out_body = message->body;
	session->out_bytes = RENDEZVOUS_HEAD_BYTES + message->bytes + RENDEZVOUS_TAG_BYTES;
	session->out_at = 0;
}

/* A contiguous part of a message, whose head, body and tag lie in different places. */
struct span {
	const uint8_t *at;
	uint32_t bytes;
};

static struct span span_at(uint32_t at, uint32_t whole, const uint8_t *head, const uint8_t *body,
                                 const uint8_t *tag)
{
	uint32_t body_end = whole - RENDEZVOUS_TAG_BYTES;
	if (at < RENDEZVOUS_HEAD_BYTES)
		return (struct span){head + at, RENDEZVOUS_HEAD_BYTES - at};
	if (at < body_end)
		return (struct span){body + (at - RENDEZVOUS_HEAD_BYTES), body_end - at};
	return (struct span){tag + (at - body_end), whole - at};
}

void session_output(const struct session *session, const uint8_t **out_bytes, size_t *out_n)
{
	handshake_output(&session->handshake, out_bytes, out_n);
	if (*out_n || session->out_at == session->out_bytes)
		return;
	struct span next = span_at(session->out_at, session->out_bytes, session->out_head, session->out_body,
	                                 session->out_tag);
	*out_bytes = next.at;
	*out_n = next.bytes;
}

void session_sent(struct session *session, size_t n)
{
	const uint8_t *unused;
	size_t of_handshake;
	handshake_output(&session->handshake, &unused, &of_handshake);
	if (of_handshake) {
		handshake_sent(&session->handshake, n);
		return;
	}
	assert(n <= session->out_bytes - session->out_at);
	session->out_at += (uint32_t)n;
}

/* The head is complete: its length has to be the expected one. */
static enum esp_status on_head(struct session *session, struct error *err)
{
	struct rendezvous_head head;
	if (!rendezvous_head_decode(session->in_head, &head) || session->inbox.wanted[head.type] == 0 ||
	    session->inbox.wanted[head.type] != head.bytes)
		return error_set(err, ESP_ECORRUPT, "rank %u sent a message that is not expected here",
		                 session->handshake.peer.from);
	session->type = head.type;
	session->in_bytes = RENDEZVOUS_HEAD_BYTES + head.bytes + RENDEZVOUS_TAG_BYTES;
	return ESP_PENDING;
}

static enum esp_status on_whole(struct session *session, struct error *err)
{
	uint8_t digest[SESSION_DIGEST_BYTES], tag[RENDEZVOUS_TAG_BYTES];
	enum handshake_role sender =
		session->handshake.role == HANDSHAKE_DIALER ? HANDSHAKE_LISTENER : HANDSHAKE_DIALER;
	hash_body(session->inbox.body, session->inbox.wanted[session->type], digest);
	make_tag(session, sender, session->in_head, digest, tag);
	if (sodium_memcmp(tag, session->in_tag, RENDEZVOUS_TAG_BYTES) != 0)
		return error_set(err, ESP_ECORRUPT, "a message of rank %u was changed on its way",
		                 session->handshake.peer.from);
	session->arrived = true;
	return ESP_OK;
}

/* Copies bytes to the head, or to the part after it. */
static enum esp_status take_part(struct session *session, const uint8_t *bytes, size_t n, size_t *out_used,
                            struct error *err)
{
	struct span to = {session->in_head + session->in_at, RENDEZVOUS_HEAD_BYTES - session->in_at};
	if (session->in_at >= RENDEZVOUS_HEAD_BYTES)
		to = span_at(session->in_at, session->in_bytes, session->in_head, session->inbox.body, session->in_tag);
	uint32_t take_now = n < to.bytes ? (uint32_t)n : to.bytes;
	memcpy((uint8_t *)(uintptr_t)to.at, bytes, take_now);
	session->in_at += take_now;
	*out_used = take_now;
	if (session->in_at == RENDEZVOUS_HEAD_BYTES)
		return on_head(session, err);
	if (session->in_at > RENDEZVOUS_HEAD_BYTES && session->in_at == session->in_bytes)
		return on_whole(session, err);
	return ESP_PENDING;
}

enum esp_status session_input(struct session *session, const uint8_t *bytes, size_t n, struct error *err)
{
	size_t used = 0;
	if (!session->proved) {
		enum esp_status status = handshake_input(&session->handshake, bytes, n, &used, err);
		if (status != ESP_OK)
			return status;
		session->proved = true;
	}
	enum esp_status status = session->arrived ? ESP_OK : ESP_PENDING;
	while (status == ESP_PENDING && used < n) {
		size_t now = 0;
		status = take_part(session, bytes + used, n - used, &now, err);
		used += now;
	}
	if (status == ESP_OK && used < n)
		return error_set(err, ESP_ECORRUPT, "rank %u sent more than it should", session->handshake.peer.from);
	return status;
}

enum esp_status session_closed(struct session *session, struct error *err)
{
	if (session->arrived)
		return ESP_OK;
	if (!session->proved)
		return handshake_closed(&session->handshake, err);
	return error_set(err, ESP_ELINK, "rank %u closed the connection while joining", session->handshake.peer.from);
}

void session_fini(struct session *session)
{
	sodium_memzero(session, sizeof(*session));
}
