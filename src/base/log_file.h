/*
 * log_file.h - a log's lines in a file; on stderr once the file cannot be written any more.
 */
#ifndef BASE_LOG_FILE_H
#define BASE_LOG_FILE_H

#include <stdatomic.h>

#include "base/log.h"

struct log_file {
	int fd; /* -1: none */
	atomic_bool has_failed;
};

/* Opens the file to append to, or makes it. ESP_EIO. */
ESP_CHECKED enum esp_status log_file_open(struct log_file *file, const char *path, struct error *err);
void log_file_close(struct log_file *file);

/* A log_sink_fn, with the struct as its context. */
void log_file_write(void *context, enum log_level level, const char *line);

#endif
