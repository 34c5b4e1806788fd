/*
 * outfile.h - a file that appears whole under its name, or not at all.
 *
 * Output goes to a new file beside the target, which replaces the target when it is complete. A target that exists and
 * is not a regular file (a device, a pipe) is written directly and never removed.
 */
#ifndef BASE_OUTFILE_H
#define BASE_OUTFILE_H

#include <stdio.h>

#include "base/error.h"

struct outfile {
	FILE *file;      /* write here                              */
	char *path;      /* the target, links resolved              */
	char *temporary; /* NULL: written directly                  */
};

ESP_CHECKED enum esp_status outfile_open(struct outfile *out, const char *path, struct error *err);

/* Ends the file; it has its name now. On failure nothing is left of it. Either way *out is done with. */
ESP_CHECKED enum esp_status outfile_commit(struct outfile *out, struct error *err);

/* Forgets what was written. */
void outfile_abandon(struct outfile *out);

#endif
