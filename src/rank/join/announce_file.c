/*
 * announce_file.c - announcements as files in a folder that all hosts see.
 *
 * A file of this user that no other user can read, as it may contain the job's key; a file that another user
 * could have written is refused. It is linked to its name when it is complete. Not base/outfile.h, which
 * follows links and applies the umask.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank/join/announce.h"

static enum esp_status fail_file(const struct announce_place *place, const char *name, const char *what,
                                 struct error *err)
{
	return error_set(err, ESP_EIO, "cannot %s %.100s/%s: %s", what, place->path, name, strerror(errno));
}

static int open_folder(const struct announce_place *place, struct error *err)
{
	int folder = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		error_set(err, ESP_EIO, "cannot use %.150s as the job's store: %s", place->path, strerror(errno));
	return folder;
}

static bool write_whole(int fd, const char *text, size_t length)
{
	size_t done = 0;
	while (done < length) {
		ssize_t wrote = write(fd, text + done, length - done);
		if (wrote < 0 && errno != EINTR)
			return false;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return fsync(fd) == 0; /* other hosts are to see it now */
}

static enum esp_status post_in(int folder, const struct announce_place *place, const char *name, const char *text,
                               size_t length, struct error *err)
{
	char temporary[ANNOUNCE_NAME + 40];
	uint64_t number;
	randombytes_buf(&number, sizeof(number));
	snprintf(temporary, sizeof(temporary), ".%s.%016" PRIx64, name, number);
	int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_file(place, temporary, "write", err);
	enum esp_status status = ESP_OK;
	if (!write_whole(fd, text, length))
		status = fail_file(place, temporary, "write", err);
	close(fd);
	if (status == ESP_OK && renameat(folder, temporary, folder, name) != 0)
		status = fail_file(place, name, "replace", err);
	if (status != ESP_OK)
		unlinkat(folder, temporary, 0);
	return status;
}

enum esp_status announce_file_post(const struct announce_place *place, const char *name, const char *text,
                                   size_t length, struct error *err)
{
	int folder = open_folder(place, err);
	if (folder < 0)
		return ESP_EIO;
	enum esp_status status = post_in(folder, place, name, text, length, err);
	close(folder);
	return status;
}

static enum esp_status check_private(const struct stat *info, const struct announce_place *place, const char *name,
                                     struct error *err)
{
	if (!S_ISREG(info->st_mode))
		return error_set(err, ESP_EIO, "%.100s/%s is not a regular file", place->path, name);
	if (info->st_uid != 0 && info->st_uid != geteuid())
		return error_set(err, ESP_EIO, "%.100s/%s belongs to user %u, not to you or root: it is not believed",
		                 place->path, name, info->st_uid);
	if (info->st_mode & (S_IRWXG | S_IRWXO))
		return error_set(err, ESP_EIO, "%.100s/%s can be read or written by others: it is not believed", place->path,
		                 name);
	return ESP_OK;
}

static enum esp_status read_whole(int fd, const struct announce_place *place, const char *name,
                                  char text[ANNOUNCE_BYTES], size_t *out_length, struct error *err)
{
	size_t length = 0;
	while (length < ANNOUNCE_BYTES - 1) {
		ssize_t got = read(fd, text + length, ANNOUNCE_BYTES - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == ESTALE) /* replaced on another host during the read */
			return error_set(err, ESP_PENDING, "%.100s/%s is being replaced", place->path, name);
		if (got < 0)
			return fail_file(place, name, "read", err);
		if (got == 0)
			break;
		length += (size_t)got;
	}
	*out_length = length;
	return ESP_OK;
}

static enum esp_status look_at(int fd, const struct announce_place *place, const char *name, char text[ANNOUNCE_BYTES],
                               size_t *out_length, struct error *err)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return fail_file(place, name, "read", err);
	enum esp_status status = check_private(&info, place, name, err);
	return status == ESP_OK ? read_whole(fd, place, name, text, out_length, err) : status;
}

enum esp_status announce_file_look(const struct announce_place *place, const char *name, char text[ANNOUNCE_BYTES],
                                 size_t *out_length, struct error *err)
{
	int folder = open_folder(place, err); /* opening makes a network file system revalidate the folder */
	if (folder < 0)
		return ESP_EIO;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	enum esp_status status;
	if (fd >= 0)
		status = look_at(fd, place, name, text, out_length, err);
	else if (errno == ENOENT || errno == ESTALE)
		status = error_set(err, ESP_PENDING, "there is no announcement of rank 0 in %.100s (%s)", place->path, name);
	else
		status = fail_file(place, name, "read", err);
	if (fd >= 0)
		close(fd);
	close(folder);
	return status;
}

void announce_file_remove(const struct announce_place *place, const char *name)
{
	int folder = open_folder(place, NULL);
	if (folder < 0)
		return;
	unlinkat(folder, name, 0);
	close(folder);
}
