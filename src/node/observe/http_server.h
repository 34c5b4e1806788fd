/*
 * http_server.h - answers GET requests on local sockets: of espalier status, curl, Prometheus. I/O that does not block.
 *
 * HTTP on Unix sockets with an abstract name or a path. Only processes of the same user, or of root, are answered, a
 * few at a time, and each for some seconds at most; the server waits for none of them. A loop drives the server, and
 * the loop's thread calls everything here; the owner of a loop that no thread runs yet may call it as well.
 */
#ifndef NODE_OBSERVE_HTTP_SERVER_H
#define NODE_OBSERVE_HTTP_SERVER_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/loop.h"

/*
 * Writes the body of the answer to a GET of this path. Returns the HTTP status, "200 OK"; *out_type is "text/plain;
 * charset=utf-8" unless it is changed.
 */
typedef const char *http_answer_fn(void *context, const char *path, FILE *out, const char **out_type);

struct http_server;

/* Borrows loop and context until it is closed. ESP_ENOMEM. */
ESP_CHECKED enum esp_status http_server_open(struct loop *loop, http_answer_fn *answer, void *context,
                                             struct http_server **out, struct error *err);
void http_server_close(struct http_server *server); /* NULL is fine */

/* Listens at an abstract name (without its leading NUL). ESP_EIO: another socket may have it; ESP_ELIMIT. */
ESP_CHECKED enum esp_status http_server_listen_name(struct http_server *server, const char *name, struct error *err);
/*
 * Listens at a path, which is removed on closing; a socket at which no process listens any more is replaced.
 * ESP_ESTATE: another process listens there; ESP_EIO, ESP_ELIMIT.
 */
ESP_CHECKED enum esp_status http_server_listen_path(struct http_server *server, const char *path, struct error *err);

#endif
