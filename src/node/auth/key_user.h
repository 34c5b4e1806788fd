/*
 * key_user.h - a key of this user on this machine, for jobs on one machine that were given none.
 *
 * Processes started by hand or by a foreign launcher share only their user and their machine. The first of them
 * generates a key and stores it in a file that only this user can read. The file stays for later jobs. Reads
 * and writes files; any thread.
 */
#ifndef NODE_AUTH_KEY_USER_H
#define NODE_AUTH_KEY_USER_H

#include "node/auth/key.h"

#define KEY_USER_FOLDER 200u

struct key_user_folders {
	char own[KEY_USER_FOLDER];
	const char *all[4];
};

/*
 * The folders that are tried, in order; the list ends with NULL and is part of *out. First the user's own that
 * XDG_RUNTIME_DIR names, or /run/user/UID, which it would name in a session: processes with and without the variable
 * find the same key. Then /tmp; then /dev/shm, which may be emptied when the user's last session ends, but can be
 * written in many containers where /tmp cannot.
 */
const char *const *key_user_folders(conf_lookup_fn *lookup, void *context, struct key_user_folders *out);

/*
 * Reads the key from the first folder that has one, or makes it in the first that can be written and has no
 * other user's file of that name. ESP_EIO: there is no such folder, or other users can read the file.
 */
ESP_CHECKED enum esp_status key_of_user(const char *const *folders, struct key *out, struct error *err);

#endif
