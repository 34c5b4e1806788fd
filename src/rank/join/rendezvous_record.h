/*
 * rendezvous_record.h - what rank 0 posts for the others in a store: where it listens.
 *
 * With a store (record_place.h) nobody has to know the leader's address beforehand: rank 0
 * listens wherever it can and posts a notice, the others look for it and join there as ever.
 * A notice is a hint and proves nothing. Who answers at its addresses has to have the job's key; if
 * the notice is an old one, nobody answers or the proof fails, and one looks again.
 *
 * Where only this user can have written it and nobody else can read it, which holds for files, the notice also
 * carries a key that rank 0 has made, if the job was not given one.
 */
#ifndef RANK_JOIN_RENDEZVOUS_RECORD_H
#define RANK_JOIN_RENDEZVOUS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "node/auth/handshake.h"
#include "rank/join/record_place.h"
#include "wire/store_msg.h"

#define NOTICE_NONCE_BYTES 16u
#define NOTICE_BYTES 2048u /* as text, with the NUL: a fifth more than the longest */

struct notice {
	uint8_t nonce[NOTICE_NONCE_BYTES]; /* which notice this is */
	uint64_t at_s;                     /* when it was written, by the writer's clock, in seconds since 1970 */
	uint32_t pid;
	char host_name[CARD_HOST_NAME];    /* printable */
	uint16_t port;                     /* 0: nobody listens any more, as joining has failed */
	uint32_t address_count;
	struct card_address addresses[CARD_ADDRESSES];
	bool has_key;
	uint8_t key[HANDSHAKE_KEY_BYTES];
	char reason[STORE_FAILURE_TEXT];   /* port 0: why; printable */
};

/* Pure (record_text.c). Returns the length. */
size_t notice_encode(const struct notice *notice, char text[NOTICE_BYTES]);

/* False if the text is no notice, or not a whole one; *out is then untouched. What decodes encodes to the same text. */
bool notice_decode(const char *text, size_t length, struct notice *out);

/* The name under which a job's notice hangs, fit for a file: "espalier-train-0-3f2a...". Returns text. */
#define NOTICE_NAME 96u
const char *notice_name(const char *job, uint64_t epoch, char text[NOTICE_NAME]);

/*
 * The three ways to handle a notice. All block until the deadline at most (a file system that hangs apart). ESP_EIO:
 * the store cannot be reached, or refuses; ESP_EUNSUPPORTED: this build has no such store.
 */

/* Replaces what was there. It fades after so many seconds, where the store can do that. */
ESP_CHECKED enum esp_status notice_post(const struct notice_place *place, const char *name, const struct notice *notice,
                                        uint32_t keep_seconds, uint64_t deadline_ns, struct error *err);

/* ESP_PENDING: there is none yet. ESP_ECORRUPT: there is something else under its name. */
ESP_CHECKED enum esp_status notice_look(const struct notice_place *place, const char *name, uint64_t deadline_ns,
                                        struct notice *out, struct error *err);

/* Takes the notice down if it is still this one. What cannot be taken down fades or is replaced: no error. */
void notice_remove(const struct notice_place *place, const char *name, const uint8_t nonce[NOTICE_NONCE_BYTES],
                   uint64_t deadline_ns);

/* Whether a key may stand in a notice there. */
static inline bool notice_keeps_secrets(const struct notice_place *place)
{
	return place->kind == NOTICE_FILE;
}

/* The same for texts, by kind: what rendezvous_record.c is made of. A text has at most NOTICE_BYTES - 1 bytes. */
enum esp_status notice_file_post(const struct notice_place *place, const char *name, const char *text, size_t length,
                                 struct error *err);
enum esp_status notice_file_look(const struct notice_place *place, const char *name, char text[NOTICE_BYTES],
                                 size_t *out_length, struct error *err);
void notice_file_remove(const struct notice_place *place, const char *name);

enum esp_status notice_redis_post(const struct notice_place *place, const char *name, const char *text, size_t length,
                                  uint32_t keep_seconds, uint64_t deadline_ns, struct error *err);
enum esp_status notice_redis_look(const struct notice_place *place, const char *name, uint64_t deadline_ns,
                                  char text[NOTICE_BYTES], size_t *out_length, struct error *err);
void notice_redis_remove(const struct notice_place *place, const char *name, uint64_t deadline_ns);

#endif
