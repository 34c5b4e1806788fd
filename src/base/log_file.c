#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum esp_status log_file_open(struct log_file *file, const char *path, struct error *err)
{
	atomic_init(&file->has_failed, false);
	/* A pipe without a reader must not keep us waiting. */
	file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
	if (file->fd < 0)
		return error_set(err, ESP_EIO, "cannot write the log to %.150s: %s", path, strerror(errno));
	return ESP_OK;
}

void log_file_close(struct log_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void log_file_write(void *context, enum log_level level, const char *line)
{
	struct log_file *file = context;
	(void)level;
	if (!atomic_load(&file->has_failed) && log_write_line(file->fd, line))
		return;
	if (!atomic_exchange(&file->has_failed, true)) {
		const char *text = strstr(line, " ESPALIER ");
		char warning[200];
		/* The head of the line that was to be written is the right one. */
		snprintf(warning, sizeof warning, "%.*s ESPALIER WARN WATCH the file of the log cannot be written any more: %s",
		         text ? (int)(text - line) : 0, line, strerror(errno));
		(void)log_write_line(STDERR_FILENO, warning);
	}
	(void)log_write_line(STDERR_FILENO, line);
}
