#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100 /* names beside the target, before something else must be wrong */

static enum esp_status fail(struct error *err, const char *path, int cause)
{
	return error_set(err, cause == ENOMEM ? ESP_ENOMEM : ESP_EIO, "cannot write %.150s: %s", path, strerror(cause));
}

static void forget(struct outfile *out)
{
	free(out->path);
	free(out->temporary);
	*out = (struct outfile){0};
}

/* A new file beside the target, with the rights that a plain open() would give it. */
static int open_beside(struct outfile *out)
{
	for (unsigned i = 0; i < TRIES; i++) {
		free(out->temporary);
		if (asprintf(&out->temporary, "%s.%ld-%u", out->path, (long)getpid(), i) < 0) {
			out->temporary = NULL;
			errno = ENOMEM;
			return -1;
		}
		int fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

enum esp_status outfile_open(struct outfile *out, const char *path, struct error *err)
{
	struct stat target;
	bool exists = stat(path, &target) == 0;
	int fd;

	/* A link keeps pointing to its target: what is replaced is the file behind it. */
	*out = (struct outfile){.path = exists ? realpath(path, NULL) : strdup(path)};
	if (!out->path)
		return fail(err, path, errno);
	if (exists && S_ISDIR(target.st_mode)) {
		forget(out);
		return fail(err, path, EISDIR);
	}
	if (exists && !S_ISREG(target.st_mode))
		fd = open(path, O_WRONLY | O_CLOEXEC);
	else
		fd = open_beside(out);
	out->file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (out->file)
		return ESP_OK;
	int cause = errno;
	if (fd >= 0) {
		close(fd);
		if (out->temporary)
			unlink(out->temporary);
	}
	forget(out);
	return fail(err, path, cause);
}

enum esp_status outfile_commit(struct outfile *out, struct error *err)
{
	enum esp_status status = ESP_OK;
	bool written = fflush(out->file) == 0 && !ferror(out->file);
	int cause = written ? 0 : errno;

	if (fclose(out->file) != 0 && written) {
		written = false;
		cause = errno;
	}
	if (written && out->temporary && rename(out->temporary, out->path) != 0) {
		written = false;
		cause = errno;
	}
	if (!written) {
		status = fail(err, out->path, cause);
		if (out->temporary)
			unlink(out->temporary);
	}
	forget(out);
	return status;
}

void outfile_abandon(struct outfile *out)
{
	fclose(out->file);
	if (out->temporary)
		unlink(out->temporary);
	forget(out);
}
