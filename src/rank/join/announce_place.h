/*
 * announce_place.h - the place where rank 0 posts its address, as given in ESP_STORE.
 *
 *     file:/shared/folder                          a folder that all hosts see
 *     redis://[user:password@]host[:port][/db]     a Redis server; %XX in user and password
 *
 * Pure: nothing is opened here (announce.h does that).
 */
#ifndef RANK_JOIN_ANNOUNCE_PLACE_H
#define RANK_JOIN_ANNOUNCE_PLACE_H

#include <stdint.h>

#include "base/error.h"
#include "node/net/address.h"

#define ANNOUNCE_PATH 256u   /* bytes of a folder's name with its NUL */
#define ANNOUNCE_SECRET 128u /* bytes of a user's name or a password */
#define ANNOUNCE_PLACE_TEXT (ADDRESS_TEXT + ANNOUNCE_PATH)

enum announce_kind {
	ANNOUNCE_NOWHERE, /* none: the leader's address is known beforehand */
	ANNOUNCE_FILE,
	ANNOUNCE_REDIS,
};

struct announce_place {
	enum announce_kind kind;
	char path[ANNOUNCE_PATH];                              /* ANNOUNCE_FILE: begins with '/' */
	struct address server;                               /* ANNOUNCE_REDIS, as are all fields below */
	uint32_t database;
	char user[ANNOUNCE_SECRET], password[ANNOUNCE_SECRET];   /* "": none */
};

/* ESP_EINVAL with the expected form; the text itself is not repeated, as it may contain a password. */
ESP_CHECKED enum esp_status announce_place_parse(const char *text, const char *what, struct announce_place *out,
                                               struct error *err);

/* For messages: without the password. Returns text. */
const char *announce_place_describe(const struct announce_place *place, char text[ANNOUNCE_PLACE_TEXT]);

#endif
