/*
 * private_file.h - small files that hold secrets: read and written so that only their owner can. Does I/O; any thread.
 */
#ifndef NODE_AUTH_PRIVATE_FILE_H
#define NODE_AUTH_PRIVATE_FILE_H

#include <stddef.h>

#include "base/error.h"

#define PRIVATE_FILE_MOST 20480u /* bytes: a hub's ticket with as many addresses as it may have */

/*
 * Reads a regular file of this user or root without rights for others, and without rights for the group unless it is
 * root's (a container's secret may have them). Line ends at its end are left out. `what` names the file's purpose in a
 * complaint; flags: more of open(2). text has room for PRIVATE_FILE_MOST + 1 bytes; the caller wipes it. ESP_EIO,
 * ESP_ELIMIT.
 */
ESP_CHECKED enum esp_status private_file_read(const char *path, const char *what, int flags,
                                              char text[PRIVATE_FILE_MOST + 1], size_t *out_length, struct error *err);

enum private_file_mode {
	PRIVATE_FILE_NEW,     /* there must be none: ESP_ESTATE */
	PRIVATE_FILE_REPLACE, /* in place of one that is there, at once */
};

/* Writes a file of mode 0600, whole or not at all. ESP_EIO, ESP_ESTATE. */
ESP_CHECKED enum esp_status private_file_write(const char *path, const char *text, size_t length,
                                               enum private_file_mode mode, struct error *err);

#endif
