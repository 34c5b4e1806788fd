/*
 * status_request.h - parses the part of HTTP that the status server needs. Pure; any thread.
 */
#ifndef NODE_OBSERVE_STATUS_REQUEST_H
#define NODE_OBSERVE_STATUS_REQUEST_H

#include <stddef.h>

#define REQUEST_BYTES 2048u /* the longest request */
#define REQUEST_PATH 64u

enum request_verdict {
	REQUEST_UNFINISHED, /* the rest has not arrived yet */
	REQUEST_GET,        /* a GET of *path */
	REQUEST_OTHER,      /* another method */
	REQUEST_BAD,        /* not HTTP, or longer than REQUEST_BYTES */
};

/*
 * text: the bytes received so far. The path is written without the part from '?' on, and truncated to REQUEST_PATH,
 * which is longer than any path that is served.
 */
enum request_verdict request_parse(const char *text, size_t size, char path[REQUEST_PATH]);

#endif
