/*
 * infile.h - the whole text of a file, or of the standard input.
 *
 * A regular file is mapped, so that a plan of a gigabyte is not copied; a pipe is read to
 * its end, up to INFILE_MAX.
 */
#ifndef BASE_INFILE_H
#define BASE_INFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define INFILE_MAX ((size_t)1 << 30)

struct infile {
	char *text; /* not ended by NUL */
	size_t length;
	bool mapped;
};

/* name "-" is the standard input. ESP_EINVAL (no name), ESP_EIO, ESP_ELIMIT, ESP_ENOMEM; err names the file. */
ESP_CHECKED enum esp_status infile_open(struct infile *file, const char *name, struct error *err);
void infile_close(struct infile *file);

#endif
