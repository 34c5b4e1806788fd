/*
 * space.h - a space: the set of namespaces of a host or switch of the lab.
 *
 * They exist as long as a process runs in them or has a descriptor of them, so nothing has to be removed: when
 * the keeper ends, however it ends, they are gone. Network, host name, System V and POSIX shared memory,
 * mounts: each space has its own /sys, its own /dev/shm, and a hosts file with the names of the lab.
 */
#ifndef TOOLS_LAB_SPACE_H
#define TOOLS_LAB_SPACE_H

#include <stdbool.h>

#include "base/error.h"

enum space_part { SPACE_NET, SPACE_UTS, SPACE_IPC, SPACE_MOUNT, SPACE_PARTS };

struct space {
	int fds[SPACE_PARTS]; /* -1: not made */
};

/* The namespaces of the keeper, from which all spaces are made. */
struct space_base {
	int user;  /* the user namespace that owns the lab; -1: the current one */
	int mount; /* private mounts with the hosts file */
};

/*
 * Unshares mounts and, if needed, users: with CAP_SYS_ADMIN the lab belongs to the current user namespace,
 * otherwise to a new one. For single-threaded processes only. ESP_EUNSUPPORTED with the remedy.
 */
ESP_CHECKED enum esp_status lab_space_open_base(struct space_base *base, const char *hosts, struct error *err);

/* Makes a space and moves the process into it; the next one may be made from there. name: its host name. */
ESP_CHECKED enum esp_status lab_space_make(struct space *space, const struct space_base *base, const char *name,
                                           struct error *err);

/* Moves the process into the space for good, before it becomes a command. The current folder stays. */
ESP_CHECKED enum esp_status lab_space_enter(const struct space *space, int user, struct error *err);

/* Makes a socket in the space's network and moves the process into that network. -1 with errno. */
int lab_space_socket(const struct space *space, int family, int type, int protocol);

/* Sets a value under /proc/sys for the current network. False with errno. */
bool lab_space_sysctl(const char *path, const char *value);

void lab_space_close(struct space *space);

#endif
