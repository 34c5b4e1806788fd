/*
 * key.h - the job's key: where it comes from, and when a job may do without.
 *
 * A key comes from the file that ESP_KEY_FILE names, or else from ESP_KEY: 64 hexadecimal
 * digits are the key itself, any other text of at least 16 bytes is hashed to one. What
 * starts all processes of a job (espalier run) generates one and hands it down.
 */
#ifndef NODE_AUTH_KEY_H
#define NODE_AUTH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/error.h"
#include "node/auth/handshake.h"

#define KEY_HEX (2 * HANDSHAKE_KEY_BYTES + 1) /* with the NUL */
#define KEY_PASSPHRASE_MIN 16u                /* bytes */
#define KEY_FILE_MAX 4096u                    /* bytes */

enum key_origin {
	KEY_NONE,        /* nobody gave one                  */
	KEY_FILE,        /* ESP_KEY_FILE                     */
	KEY_ENVIRONMENT, /* ESP_KEY                          */
	KEY_GENERATED,   /* made here; only this process knows it until it is handed on */
	KEY_STORE,       /* made by rank 0 and posted with its address, where only this user can read it */
	KEY_USER,        /* of this user on this machine (key_user.h) */
};

struct key {
	uint8_t bytes[HANDSHAKE_KEY_BYTES];
	uint8_t origin; /* enum key_origin */
};

/* what names the text in a complaint, which never shows the text itself. */
ESP_CHECKED enum esp_status key_from_text(const char *text, size_t length, const char *what, struct key *out,
                                          struct error *err);

/*
 * A regular file that nobody else can read: it must belong to this user or to root, with no
 * rights for others, and none for the group unless it is root's (as container secrets are).
 */
ESP_CHECKED enum esp_status key_from_file(const char *path, struct key *out, struct error *err);

/* Such a file; what names it in a complaint; flags of open(2) beside the usual ones. The origin is left as it is. */
ESP_CHECKED enum esp_status key_read(const char *path, const char *what, int flags, struct key *out, struct error *err);

/* From the environment; ESP_OK and KEY_NONE if there is none there. */
ESP_CHECKED enum esp_status key_find(conf_lookup_fn *lookup, void *context, struct key *out, struct error *err);

void key_generate(struct key *out);
const char *key_to_hex(const struct key *key, char hex[KEY_HEX]);
void key_wipe(struct key *key);

/* May the job start, and what protects it? */
enum key_policy {
	KEY_SECRET,        /* a key that strangers do not have                                        */
	KEY_POSTED,        /* the same, but only rank 0 has it yet: it comes with rank 0's address     */
	KEY_SHARED_BY_USER, /* loopback only: the key of this user on this machine                    */
	KEY_OPEN_LOCAL,    /* no key, loopback only, and somebody said that this is fine: any process on this machine could join */
	KEY_OPEN_INSECURE, /* no key, and somebody said that this is fine: anybody could join         */
	KEY_REFUSED,       /* no key on a network                                                     */
};

/* What a policy looks at. */
struct key_situation {
	enum key_origin origin;
	bool loopback; /* the leader's address is this machine's loopback       */
	bool alone;    /* a group of one rank, which listens to nobody          */
	bool insecure; /* the setting of that name                              */
	bool store;    /* a store in which a secret can be posted               */
};

enum key_policy key_policy(const struct key_situation *situation);

/* For the log: where the key came from, or why there is none. */
const char *key_describe(const struct key_situation *situation);

/*
 * Applies the policy: the key stays, is generated (alone, or to be posted; what the others generate is
 * replaced), is this user's, or becomes the one that everybody knows. ESP_EINVAL with what to do if it is refused; KEY_OPEN_INSECURE deserves a warning.
 */
ESP_CHECKED enum esp_status key_settle(struct key *key, const struct key_situation *situation,
                                       enum key_policy *out_policy, struct error *err);

#endif
