/*
 * status_request.h - as much of HTTP as a rank has to understand when it is asked about itself. Pure.
 */
#ifndef NODE_OBSERVE_STATUS_REQUEST_H
#define NODE_OBSERVE_STATUS_REQUEST_H

#include <stddef.h>

#define REQUEST_BYTES 2048u /* the longest one */
#define REQUEST_PATH 64u

enum request_verdict {
	REQUEST_UNFINISHED, /* more of it has to come                   */
	REQUEST_GET,        /* *path is asked for                       */
	REQUEST_OTHER,      /* another method                           */
	REQUEST_BAD,        /* no HTTP, or longer than REQUEST_BYTES    */
};

/* What has come so far. The path is without what follows a '?', and cut off if it is longer than any that there is. */
enum request_verdict request_parse(const char *text, size_t size, char path[REQUEST_PATH]);

#endif
