/*
 * announce.h - the announcement: where rank 0 listens, posted in a folder or on a Redis server.
 *
 * With such a place (announce_place.h) ranks need not know the leader's address beforehand: rank 0 listens at
 * any port and posts an announcement, the others look for it and join there. An announcement is a hint and
 * proves nothing. The process at its addresses has to prove that it has the job's key. If the announcement is
 * an old one, the connection or the proof fails, and the rank looks again.
 *
 * A file that only this user can write and read also carries a key that rank 0 has generated, if the job was
 * given none.
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
#define ANNOUNCE_BYTES 2048u /* as text with its NUL: a fifth more than the longest */

struct announcement {
	uint8_t nonce[ANNOUNCE_NONCE_BYTES]; /* tells announcements apart */
	uint64_t at_s;                     /* time of writing by the writer's clock, in seconds since 1970 */
	uint32_t pid;
	char host_name[NODE_INFO_HOST_NAME];    /* printable */
	uint16_t port;                     /* 0: no process listens any more, as joining has failed */
	uint32_t address_count;
	struct node_address addresses[NODE_ADDRESSES];
	bool has_key;
	uint8_t key[HANDSHAKE_KEY_BYTES];
	char reason[RENDEZVOUS_FAILURE_TEXT];   /* port 0: why joining has failed; printable */
};

/* Pure (announce_text.c). Returns the length. */
size_t announce_encode(const struct announcement *announcement, char text[ANNOUNCE_BYTES]);

/* False if the text is no complete announcement; *out is then untouched. A decoded text encodes to itself. */
bool announce_decode(const char *text, size_t length, struct announcement *out);

/* The name under which a job's announcement is posted, fit for a file: "espalier-train-0-3f2a...". Returns text. */
#define ANNOUNCE_NAME 96u
const char *announce_name(const char *job, uint64_t epoch, char text[ANNOUNCE_NAME]);

/*
 * Posting, reading and removing. All block until the deadline at most (but for a file system that hangs).
 * ESP_EIO: the place cannot be reached, or refuses; ESP_EUNSUPPORTED: this build does not support such a place.
 */

/* Replaces an earlier announcement. It expires after keep_seconds where the place supports that. */
ESP_CHECKED enum esp_status announce_post(const struct announce_place *place, const char *name,
                                          const struct announcement *announcement, uint32_t keep_seconds,
                                          uint64_t deadline_ns, struct error *err);

/* ESP_PENDING: there is none yet. ESP_ECORRUPT: another kind of text is stored under its name. */
ESP_CHECKED enum esp_status announce_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                                        struct announcement *out, struct error *err);

/* Removes the announcement if it still has this nonce. A failure is no error: announcements expire or are replaced. */
void announce_remove(const struct announce_place *place, const char *name, const uint8_t nonce[ANNOUNCE_NONCE_BYTES],
                   uint64_t deadline_ns);

/* True if an announcement there may carry a key. */
static inline bool announce_keeps_secrets(const struct announce_place *place)
{
	return place->kind == ANNOUNCE_FILE;
}

/* The same for texts, one implementation per kind of place; for announce.c. At most ANNOUNCE_BYTES - 1 bytes. */
enum esp_status announce_file_post(const struct announce_place *place, const char *name, const char *text,
                                   size_t length, struct error *err);
enum esp_status announce_file_look(const struct announce_place *place, const char *name, char text[ANNOUNCE_BYTES],
                                 size_t *out_length, struct error *err);
void announce_file_remove(const struct announce_place *place, const char *name);

enum esp_status announce_redis_post(const struct announce_place *place, const char *name, const char *text,
                                    size_t length, uint32_t keep_seconds, uint64_t deadline_ns, struct error *err);
enum esp_status announce_redis_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                                  char text[ANNOUNCE_BYTES], size_t *out_length, struct error *err);
void announce_redis_remove(const struct announce_place *place, const char *name, uint64_t deadline_ns);

#endif
