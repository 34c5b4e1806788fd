#include "node/auth/key_user.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH 256u

const char *const *key_user_folders(conf_lookup_fn *lookup, void *context, struct key_user_folders *out)
{
	const char *own = lookup(context, "XDG_RUNTIME_DIR");

	if (!own || own[0] != '/')
		snprintf(out->own, sizeof(out->own), "/run/user/%u", geteuid());
	else if ((size_t)snprintf(out->own, sizeof(out->own), "%s", own) >= sizeof(out->own))
		out->own[0] = '\0';
	out->all[0] = out->own;
	out->all[1] = "/tmp";
	out->all[2] = "/dev/shm";
	out->all[3] = NULL;
	return out->all;
}

/*
 * Writes a new key to a temporary file and links it to its name, so that of several processes that do so at
 * once the first one wins and the file is complete. True if the file exists afterwards; false: the folder
 * cannot be written.
 */
static bool make_file(const char *path)
{
	char own[PATH + 32], hex[KEY_HEX];
	uint64_t number;
	struct key key;

	key_generate(&key);
	randombytes_buf(&number, sizeof(number));
	snprintf(own, sizeof(own), "%s.%016" PRIx64, path, number);
	int fd = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool is_made = write(fd, key_to_hex(&key, hex), KEY_HEX - 1) == (ssize_t)(KEY_HEX - 1) &&
	               (link(own, path) == 0 || errno == EEXIST);
	close(fd);
	unlink(own);
	sodium_memzero(hex, sizeof(hex));
	key_wipe(&key);
	return is_made;
}

/* ESP_PENDING: there is no such file here, and none can be made. */
static enum esp_status read_from(const char *folder, struct key *out, struct error *err)
{
	char path[PATH];
	struct stat info;

	if ((size_t)snprintf(path, sizeof(path), "%s/espalier-%u.key", folder, geteuid()) >= sizeof(path))
		return ESP_PENDING;
	if (lstat(path, &info) != 0) {
		if (errno != ENOENT || !make_file(path))
			return ESP_PENDING;
	} else if (info.st_uid != geteuid() && info.st_uid != 0) {
		return ESP_PENDING; /* another user's file is in the way: all processes of this user see that and go on */
	}
	return key_read(path, "the key of this user", O_NOFOLLOW, out, err);
}

enum esp_status key_of_user(const char *const *folders, struct key *out, struct error *err)
{
	enum esp_status status = ESP_PENDING;

	for (; *folders && status == ESP_PENDING; folders++)
		status = read_from(*folders, out, err);
	if (status == ESP_PENDING)
		return error_set(err, ESP_EIO, "this job was given no key, and there is no folder for one of this user, "
		                               "neither XDG_RUNTIME_DIR nor /tmp nor /dev/shm: set ESP_KEY_FILE or ESP_KEY, "
		                               "or ESP_INSECURE=yes to let any process on this machine join");
	if (status == ESP_OK)
		out->origin = KEY_USER;
	return status;
}
