/*
 * space.h - what a host or switch of the lab lives in: a set of namespaces without a name.
 *
 * They exist for as long as somebody has a descriptor of them or runs in them, so nothing has to be removed: when the
 * keeper ends, however it ends, they are gone. Network, host name, System V and POSIX shared memory, mounts: each
 * space sees its own /sys, its own /dev/shm, and a hosts file with the names of the lab.
 */
#ifndef TOOLS_LAB_SPACE_H
#define TOOLS_LAB_SPACE_H

#include <stdbool.h>

#include "base/error.h"

enum space_part { SPACE_NET, SPACE_UTS, SPACE_IPC, SPACE_MOUNT, SPACE_PARTS };

struct space {
	int fds[SPACE_PARTS]; /* -1: not made */
};

/* What the process was before, and all spaces are made from. */
struct space_base {
	int user;  /* the user namespace that owns the lab; -1: the one that everybody is in */
	int mount; /* private mounts with the hosts file */
};

/*
 * Leaves the mounts of the machine, and if needed its users: as root (CAP_SYS_ADMIN) the lab belongs to the user namespace
 * that there is, otherwise to a new one. Single-threaded processes only. ESP_EUNSUPPORTED with what would help.
 */
ESP_CHECKED enum esp_status space_open_base(struct space_base *base, const char *hosts, struct error *err);

/* Afterwards the process is in the new space; the next one may be made from there. name: its host name. */
ESP_CHECKED enum esp_status space_make(struct space *space, const struct space_base *base, const char *name,
                                       struct error *err);

/* Enters for good: meant for a process that is about to become something else. The current folder stays. */
ESP_CHECKED enum esp_status space_enter(const struct space *space, int user, struct error *err);

/* A socket in the space's network; the process itself ends up in that network. -1 with errno. */
int space_socket(const struct space *space, int family, int type, int protocol);

/* A setting under /proc/sys of the network that the process is in. False with errno. */
bool space_sysctl(const char *path, const char *value);

void space_close(struct space *space);

#endif
