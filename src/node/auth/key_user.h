/*
 * key_user.h - a key of this user on this machine, for jobs that were given none and stay on it.
 *
 * Processes that somebody has started by hand, or a launcher that knows nothing of keys, have nothing in common but their user and
 * the machine. So the first of them makes a key and leaves it in a file that only this user can read; it stays there, for all jobs to come.
 */
#ifndef NODE_AUTH_KEY_USER_H
#define NODE_AUTH_KEY_USER_H

#include "node/auth/key.h"

/* Where it is looked for, in this order; ends with NULL. What lies in memory may go with the user's last session, but can be written in many containers where nothing else can. */
extern const char *const key_user_folders[];

/* Takes the key of the first folder that has one, or that can be written and has none of somebody else's. ESP_EIO: there is none such, or others can read what lies there. */
ESP_CHECKED enum esp_status key_of_user(const char *const *folders, struct key *out, struct error *err);

#endif
