/*
 * record_place.h - where rank 0 posts where it listens, as people write it: ESP_STORE.
 *
 *     file:/shared/folder                          a folder that all hosts see
 *     redis://[user:password@]host[:port][/db]     a Redis server; %XX in user and password
 *
 * Pure: nothing is opened here (rendezvous_record.h does that).
 */
#ifndef RANK_JOIN_RECORD_PLACE_H
#define RANK_JOIN_RECORD_PLACE_H

#include <stdint.h>

#include "base/error.h"
#include "node/net/address.h"

#define NOTICE_PATH 256u   /* bytes of a folder's name, with the NUL */
#define NOTICE_SECRET 128u /* of a user's name or a password */
#define NOTICE_PLACE_TEXT (ADDRESS_TEXT + NOTICE_PATH)

enum notice_kind {
	NOTICE_NOWHERE, /* there is no store: the leader's address is known beforehand */
	NOTICE_FILE,
	NOTICE_REDIS,
};

struct notice_place {
	enum notice_kind kind;
	char path[NOTICE_PATH];                              /* NOTICE_FILE: begins with '/' */
	struct address server;                               /* NOTICE_REDIS, as is all that follows */
	uint32_t database;
	char user[NOTICE_SECRET], password[NOTICE_SECRET];   /* "": none */
};

/* ESP_EINVAL with what was expected; the text itself is not repeated, as a password may be in it. */
ESP_CHECKED enum esp_status notice_place_parse(const char *text, const char *what, struct notice_place *out,
                                               struct error *err);

/* For people: without the password. Returns text. */
const char *notice_place_describe(const struct notice_place *place, char text[NOTICE_PLACE_TEXT]);

#endif
