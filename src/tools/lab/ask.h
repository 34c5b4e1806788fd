/*
 * ask.h - messages between the keeper of a lab and its clients.
 *
 * An abstract Unix socket, so that no file can stay behind; its name has the user and the lab. Each connection
 * is one question with its answer, in messages of fixed size. Both sides check that the other belongs to the
 * same user.
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

#define ASK_PREFIX "espalier-lab" /* begins all names of a lab outside of its namespaces */
#define ASK_VERSION 0x4c414201u
#define ASK_WORDS 64u
#define ASK_BYTES 1024u
#define ASK_FDS 5

enum ask_kind {
	ASK_MAP,   /* -> the lab's memory, read-only */
	ASK_ENTER, /* words: a space -> its namespaces, and the user namespace as the last one */
	ASK_SET,   /* words: a target, then settings */
	ASK_CHECK, /* -> an answer per measurement, then one without */
	ASK_DOWN,  /* -> once all processes in the lab are gone */
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
	uint32_t count; /* ASK_DOWN: processes that were ended; ASK_CHECK: number of measurements */
	char text[256]; /* the error */
	struct measure measure;
};

/* Adds a word. False: no room. */
bool lab_ask_add_word(struct ask *ask, const char *word);

/* Checks a question of so many bytes. True: out_words points to its words in *ask and ends with NULL. */
bool lab_ask_decode(struct ask *ask, size_t bytes, char *out_words[ASK_WORDS + 1], size_t *out_count);

/* The socket address of a lab's keeper. Returns its length. */
socklen_t lab_ask_address(const char *name, unsigned user, struct sockaddr_un *out);

#endif
