/*
 * announce.h - what rank 0 posts for the others in a store: where it listens.
 *
 * With a store (announce_place.h) nobody has to know the leader's address beforehand: rank 0
 * listens wherever it can and posts a announcement, the others look for it and join there as ever.
 * A announcement is a hint and proves nothing. Who answers at its addresses has to have the job's key; if
 * the announcement is an old one, nobody answers or the proof fails, and one looks again.
 *
 * Where only this user can have written it and nobody else can read it, which holds for files, the announcement also
 * carries a key that rank 0 has made, if the job was not given one.
 */
#ifndef RANK_JOIN_ANNOUNCE_H
#define RANK_JOIN_ANNOUNCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "node/auth/handshake.h"
#include "rank/join/announce_place.h"
#include "wire/rendezvous_msg.h"

#define ANNOUNCE_NONCE_BYTES 16u
#define ANNOUNCE_BYTES 2048u /* as text, with the NUL: a fifth more than the longest */

struct announcement {
	uint8_t nonce[ANNOUNCE_NONCE_BYTES]; /* which announcement this is */
	uint64_t at_s;                     /* when it was written, by the writer's clock, in seconds since 1970 */
	uint32_t pid;
	char host_name[NODE_INFO_HOST_NAME];    /* printable */
	uint16_t port;                     /* 0: nobody listens any more, as joining has failed */
	uint32_t address_count;
	struct node_address addresses[NODE_ADDRESSES];
	bool has_key;
	uint8_t key[HANDSHAKE_KEY_BYTES];
	char reason[RENDEZVOUS_FAILURE_TEXT];   /* port 0: why; printable */
};

/* Pure (announce_text.c). Returns the length. */
size_t announce_encode(const struct announcement *announcement, char text[ANNOUNCE_BYTES]);

/* False if the text is no announcement, or not a whole one; *out is then untouched. What decodes encodes to the same text. */
bool announce_decode(const char *text, size_t length, struct announcement *out);

/* The name under which a job's announcement hangs, fit for a file: "espalier-train-0-3f2a...". Returns text. */
#define ANNOUNCE_NAME 96u
const char *announce_name(const char *job, uint64_t epoch, char text[ANNOUNCE_NAME]);

/*
 * The three ways to handle a announcement. All block until the deadline at most (a file system that hangs apart). ESP_EIO:
 * the store cannot be reached, or refuses; ESP_EUNSUPPORTED: this build has no such store.
 */

/* Replaces what was there. It fades after so many seconds, where the store can do that. */
ESP_CHECKED enum esp_status announce_post(const struct announce_place *place, const char *name, const struct announcement *announcement,
                                        uint32_t keep_seconds, uint64_t deadline_ns, struct error *err);

/* ESP_PENDING: there is none yet. ESP_ECORRUPT: there is something else under its name. */
ESP_CHECKED enum esp_status announce_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                                        struct announcement *out, struct error *err);

/* Takes the announcement down if it is still this one. What cannot be taken down fades or is replaced: no error. */
void announce_remove(const struct announce_place *place, const char *name, const uint8_t nonce[ANNOUNCE_NONCE_BYTES],
                   uint64_t deadline_ns);

/* Whether a key may stand in a announcement there. */
static inline bool announce_keeps_secrets(const struct announce_place *place)
{
	return place->kind == ANNOUNCE_FILE;
}

/* The same for texts, by kind: what announce.c is made of. A text has at most ANNOUNCE_BYTES - 1 bytes. */
enum esp_status announce_file_post(const struct announce_place *place, const char *name, const char *text, size_t length,
                                 struct error *err);
enum esp_status announce_file_look(const struct announce_place *place, const char *name, char text[ANNOUNCE_BYTES],
                                 size_t *out_length, struct error *err);
void announce_file_remove(const struct announce_place *place, const char *name);

enum esp_status announce_redis_post(const struct announce_place *place, const char *name, const char *text, size_t length,
                                  uint32_t keep_seconds, uint64_t deadline_ns, struct error *err);
enum esp_status announce_redis_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                                  char text[ANNOUNCE_BYTES], size_t *out_length, struct error *err);
void announce_redis_remove(const struct announce_place *place, const char *name, uint64_t deadline_ns);

#endif
