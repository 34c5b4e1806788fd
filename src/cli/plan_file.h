/*
 * plan_file.h - the whole text of a file, or of the standard input.
 *
 * A regular file is mapped, so that a plan of a gigabyte is not copied; a pipe is read to
 * its end, up to PLAN_FILE_MAX.
 */
#ifndef CLI_PLAN_FILE_H
#define CLI_PLAN_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PLAN_FILE_MAX ((size_t)1 << 30)

struct plan_file {
	char *text; /* not ended by NUL */
	size_t length;
	bool mapped;
};

/* name "-" is the standard input. ESP_EINVAL (no name), ESP_EIO, ESP_ELIMIT, ESP_ENOMEM; err names the file. */
ESP_CHECKED enum esp_status plan_file_open(struct plan_file *file, const char *name, struct error *err);
void plan_file_close(struct plan_file *file);

#endif
