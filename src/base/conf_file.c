#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/conf.h"

#define COMPLAINTS_MAX 20 /* per file: a wrong file must not flood the log */

struct span {
	const char *text;
	size_t length;
};

/* The walk over the lines of one file. */
struct decoder {
	struct conf *conf;
	const char *file_name;
	conf_complain_fn *complain;
	void *context;
	struct error *refusal; /* the first; its status is ESP_OK until there is one */
	size_t line;           /* from 1 */
	size_t complaints;
};

static void complain_at_line(struct decoder *decoder, const char *what)
{
	struct error complaint;
	decoder->complaints++;
	if (!decoder->complain || decoder->complaints > COMPLAINTS_MAX)
		return;
	if (decoder->complaints == COMPLAINTS_MAX)
		error_set(&complaint, ESP_EPARSE, "%.80s:%zu: and more; the rest is ignored silently", decoder->file_name,
		          decoder->line);
	else
		error_set(&complaint, ESP_EPARSE, "%.80s:%zu: %.160s; ignored", decoder->file_name, decoder->line, what);
	decoder->complain(decoder->context, &complaint);
}

static void tell_renamed(struct decoder *decoder, struct span name)
{
	struct error why, complaint;

	if (!decoder->complain || !conf_is_renamed(name.text, name.length, &why))
		return;
	error_set(&complaint, ESP_EPARSE, "%.80s:%zu: %.160s", decoder->file_name, decoder->line, why.text);
	decoder->complain(decoder->context, &complaint);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(const char *text, size_t length)
{
	while (length > 0 && is_blank(text[0])) {
		text++;
		length--;
	}
	while (length > 0 && is_blank(text[length - 1]))
		length--;
	return (struct span){text, length};
}

/* "tcp # why" */
static bool has_comment(struct span value)
{
	for (size_t i = 1; i < value.length; i++)
		if (value.text[i] == '#' && is_blank(value.text[i - 1]))
			return true;
	return false;
}

static void decode_line(struct decoder *decoder, const char *text, size_t length)
{
	struct error err, complaint;
	struct span line = trim(text, length);
	if (line.length == 0 || line.text[0] == '#')
		return;
	if (length > CONF_LINE_MAX) {
		complain_at_line(decoder, "the line is too long");
		return;
	}
	const char *equals = memchr(line.text, '=', line.length);
	if (!equals) {
		complain_at_line(decoder, "expected NAME=VALUE");
		return;
	}
	size_t name_length = (size_t)(equals - line.text);
	struct span name = trim(line.text, name_length);
	struct span value = trim(equals + 1, line.length - name_length - 1);
	tell_renamed(decoder, name);
	if (conf_set(decoder->conf, name.text, name.length, value.text, value.length, CONF_FILE, &err) == ESP_OK)
		return;
	error_set(&complaint, err.status, "%.120s%s", err.text,
	          has_comment(value) ? " (a comment stands on a line of its own)" : "");
	if (decoder->refusal->status == ESP_OK && conf_is_strict(name.text, name.length))
		error_set(decoder->refusal, ESP_EPARSE, "%.80s:%zu: %.165s", decoder->file_name, decoder->line, complaint.text);
	else
		complain_at_line(decoder, complaint.text);
}

enum esp_status conf_decode(struct conf *conf, const char *text, size_t size, const char *file_name,
                            conf_complain_fn *complain, void *context, struct error *err)
{
	struct decoder decoder = {conf, file_name, complain, context, err, 0, 0};
	err->status = ESP_OK;
	while (size > 0) {
		const char *newline = memchr(text, '\n', size);
		size_t length = newline ? (size_t)(newline - text) : size;
		decoder.line++;
		decode_line(&decoder, text, length);
		length += newline != NULL;
		text += length;
		size -= length;
	}
	return err->status;
}

static enum esp_status read_all(int fd, const char *path, char *buffer, size_t *out_size, struct error *err)
{
	size_t size = 0;
	for (;;) {
		ssize_t got = read(fd, buffer + size, CONF_FILE_MAX + 1 - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, ESP_EIO, "cannot read %.150s: %s", path, strerror(errno));
		size += (size_t)got;
		if (size > CONF_FILE_MAX)
			return error_set(err, ESP_ELIMIT, "%.150s is larger than %d bytes", path, CONF_FILE_MAX);
		if (got == 0) {
			*out_size = size;
			return ESP_OK;
		}
	}
}

/* Does not block on a FIFO, and refuses whatever is not a file: it might never end. */
static enum esp_status open_regular(const char *path, int *out_fd, struct error *err)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, ESP_EIO, "cannot open %.150s: %s", path, strerror(errno));
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		close(fd);
		return error_set(err, ESP_EIO, "%.150s is not a regular file", path);
	}
	*out_fd = fd;
	return ESP_OK;
}

enum esp_status conf_read_file(struct conf *conf, const char *path, conf_complain_fn *complain, void *context,
                               struct error *err)
{
	int fd = -1;
	size_t size = 0;
	enum esp_status status = open_regular(path, &fd, err);
	if (status != ESP_OK)
		return status;
	char *buffer = malloc(CONF_FILE_MAX + 1);
	if (buffer)
		status = read_all(fd, path, buffer, &size, err);
	else
		status = error_set(err, ESP_ENOMEM, "no memory to read %.150s", path);
	if (status == ESP_OK)
		status = conf_decode(conf, buffer, size, path, complain, context, err);
	free(buffer);
	close(fd);
	return status;
}
