#include "node/auth/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

/* ESP_EIO unless the file is regular, belongs to this user or root, and is readable by no other user. */
static enum esp_status check_private(const struct stat *info, const char *path, const char *what, struct error *err)
{
	mode_t forbidden = info->st_uid == 0 ? S_IRWXO | S_IWGRP : S_IRWXO | S_IRWXG;
	if (!S_ISREG(info->st_mode))
		return error_set(err, ESP_EIO, "%s: %.150s is not a regular file", what, path);
	if (info->st_uid != 0 && info->st_uid != geteuid())
		return error_set(err, ESP_EIO, "%s: %.150s belongs to user %u, not to you or root", what, path, info->st_uid);
	if (info->st_mode & forbidden)
		return error_set(err, ESP_EIO, "%s: %.100s can be read by others: chmod 600 %.100s", what, path, path);
	return ESP_OK;
}

static enum esp_status read_text(int fd, const char *path, const char *what, char *text, size_t *out_length,
                                struct error *err)
{
	size_t length = 0;
	for (;;) {
		ssize_t got = read(fd, text + length, PRIVATE_FILE_MOST + 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, ESP_EIO, "%s: cannot read %.150s: %s", what, path, strerror(errno));
		length += (size_t)got;
		if (length > PRIVATE_FILE_MOST)
			return error_set(err, ESP_ELIMIT, "%s: %.150s is larger than %u bytes", what, path, PRIVATE_FILE_MOST);
		if (got == 0)
			break;
	}
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--; /* an editor's line end */
	*out_length = length;
	return ESP_OK;
}

enum esp_status private_file_read(const char *path, const char *what, int flags, char text[PRIVATE_FILE_MOST + 1],
                                  size_t *out_length, struct error *err)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags); /* opening a FIFO must not block */

	if (fd < 0)
		return error_set(err, ESP_EIO, "%s: cannot open %.150s: %s", what, path, strerror(errno));
	enum esp_status status = ESP_EIO;
	if (fstat(fd, &info) != 0)
		error_set(err, ESP_EIO, "%s: %.150s: %s", what, path, strerror(errno));
	else
		status = check_private(&info, path, what, err);
	if (status == ESP_OK)
		status = read_text(fd, path, what, text, out_length, err);
	close(fd);
	return status;
}

/* ---- writing ---- */

static int write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t put = write(fd, text, length);

		if (put < 0 && errno != EINTR)
			return -1;
		text += put > 0 ? put : 0;
		length -= put > 0 ? (size_t)put : 0;
	}
	return fsync(fd);
}

static enum esp_status failed(const char *path, struct error *err)
{
	return error_set(err, ESP_EIO, "cannot write %.150s: %s", path, strerror(errno));
}

/* link(2) refuses to replace a file, rename(2) does it at once. */
static enum esp_status give_name(const char *temporary, const char *path, enum private_file_mode mode,
                                 struct error *err)
{
	if (mode == PRIVATE_FILE_REPLACE)
		return rename(temporary, path) == 0 ? ESP_OK : failed(path, err);
	if (link(temporary, path) != 0)
		return errno == EEXIST ? error_set(err, ESP_ESTATE, "there is a file %.150s already", path)
		                       : failed(path, err);
	(void)unlink(temporary);
	return ESP_OK;
}

enum esp_status private_file_write(const char *path, const char *text, size_t length, enum private_file_mode mode,
                                   struct error *err)
{
	char *temporary = NULL;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return error_set(err, ESP_ENOMEM, "no memory to write %.150s", path);
	int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	enum esp_status status = ESP_OK;
	if (fd < 0) {
		status = failed(path, err);
		free(temporary);
		return status;
	}
	if (write_all(fd, text, length) != 0)
		status = failed(path, err);
	close(fd);
	if (status == ESP_OK)
		status = give_name(temporary, path, mode, err);
	if (status != ESP_OK)
		(void)unlink(temporary);
	free(temporary);
	return status;
}
