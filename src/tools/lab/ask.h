/*
 * ask.h - what is said between the keeper of a lab and those who want something of it.
 *
 * A socket in the abstract name space, so that no file can stay behind; its name holds the user and the lab. Each
 * connection is one question and its answer, in messages of one size. Both sides look at who the other is: only the
 * same user is listened to, and believed.
 */
#ifndef TOOLS_LAB_ASK_H
#define TOOLS_LAB_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "tools/lab/measure.h"

#define ASK_PREFIX "espalier-lab" /* in front of every name that a lab has outside of itself */
#define ASK_VERSION 0x4c414201u
#define ASK_WORDS 64u
#define ASK_BYTES 1024u
#define ASK_FDS 5

enum ask_kind {
	ASK_MAP,   /* -> the lab's memory, to be read                                */
	ASK_ENTER, /* words: a space -> its namespaces, the user namespace at the end */
	ASK_SET,   /* words: a target and what to set                                */
	ASK_CHECK, /* -> an answer for each measurement, the last one without        */
	ASK_DOWN,  /* -> when all that ran in it is gone                             */
	ASK_KINDS,
};

struct ask {
	uint32_t version;
	uint32_t kind;
	uint32_t flag;    /* ASK_SET: enum lab_ways_given; ASK_CHECK: all links */
	uint32_t length;  /* of words */
	double seconds;   /* ASK_CHECK */
	char words[ASK_BYTES]; /* each ends with a NUL */
};

struct answer {
	int32_t status; /* enum esp_status */
	uint32_t more;  /* another answer follows */
	uint32_t count; /* ASK_DOWN: processes that were ended; ASK_CHECK: measurements in all */
	char text[256]; /* what went wrong */
	struct measure measure;
};

/* Adds a word. False: no room. */
bool ask_add_word(struct ask *ask, const char *word);

/*
 * Is a message of so many bytes a question that can be answered? Then its words stand in out_words, which end with
 * NULL and point into *ask.
 */
bool ask_decode(struct ask *ask, size_t bytes, char *out_words[ASK_WORDS + 1], size_t *out_count);

/* The address of a lab's keeper, and its length. */
socklen_t ask_address(const char *name, unsigned user, struct sockaddr_un *out);

#endif
