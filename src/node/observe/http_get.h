/*
 * http_get.h - asks a local socket with an abstract name, as http_server.h serves it. Blocks the caller up to a
 * deadline; any thread.
 */
#ifndef NODE_OBSERVE_HTTP_GET_H
#define NODE_OBSERVE_HTTP_GET_H

#include <stddef.h>

#include "base/error.h"

#define HTTP_GET_MOST (64u << 20) /* bytes of an answer */

/*
 * The body of the answer to a GET of this path, ended with a NUL that *out_bytes does not count; the caller frees it.
 * Only a process of the same user, or of root, is asked. ESP_ELINK: no such process listens; ESP_ETIMEOUT, ESP_EPARSE:
 * no answer, or not a good one; ESP_ELIMIT, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status http_get_name(const char *name, const char *path, unsigned patience_ms, char **out_body,
                                          size_t *out_bytes, struct error *err);

#endif
