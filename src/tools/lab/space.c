#include "tools/lab/space.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *path;
	int flag;
} parts[SPACE_PARTS] = {
	[SPACE_NET] = {"/proc/self/ns/net", CLONE_NEWNET},
	[SPACE_UTS] = {"/proc/self/ns/uts", CLONE_NEWUTS},
	[SPACE_IPC] = {"/proc/self/ns/ipc", CLONE_NEWIPC},
	[SPACE_MOUNT] = {"/proc/self/ns/mnt", CLONE_NEWNS}, /* last: it changes what the paths above refer to */
};

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t written = write(fd, text, strlen(text));
	int cause = errno;
	close(fd);
	errno = cause;
	return written == (ssize_t)strlen(text);
}

bool lab_space_sysctl(const char *path, const char *value)
{
	char full[128];
	snprintf(full, sizeof(full), "/proc/sys/%s", path);
	return write_file(full, value);
}

/* ---- the base ---- */

static enum esp_status own_namespace(int *out_user, struct error *err)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (unshare(CLONE_NEWUSER) != 0)
		return error_set(err, ESP_EUNSUPPORTED,
		                 "a lab needs root, or a kernel that lets users have namespaces of their own (%s): try sudo",
		                 strerror(errno));
	snprintf(map, sizeof(map), "0 %u 1", uid);
	bool mapped = write_file("/proc/self/uid_map", map) && write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (!mapped || !write_file("/proc/self/gid_map", map))
		return error_set(err, ESP_EUNSUPPORTED, "cannot be root in a user namespace: %s", strerror(errno));
	*out_user = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	return *out_user >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot open a user namespace: %s", strerror(errno));
}

/* The file needs a place: a tmpfs that is mounted for a moment, in this mount namespace only. */
static enum esp_status bind_hosts(const char *hosts, struct error *err)
{
	static const char folder[] = "/dev/shm", file[] = "/dev/shm/hosts";
	if (mount("espalier-lab", folder, "tmpfs", 0, "mode=0755") != 0)
		return error_set(err, ESP_EIO, "cannot mount a file system in memory: %s", strerror(errno));
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool bound = fd >= 0 && fchmod(fd, 0644) == 0 && close(fd) == 0 && write_file(file, hosts) &&
	             mount(file, "/etc/hosts", NULL, MS_BIND, NULL) == 0;
	int cause = errno;
	umount2(folder, MNT_DETACH);
	return bound ? ESP_OK : error_set(err, ESP_EIO, "cannot put a hosts file in place of /etc/hosts: %s",
	                                  strerror(cause));
}

enum esp_status lab_space_open_base(struct space_base *base, const char *hosts, struct error *err)
{
	enum esp_status status = ESP_OK;
	*base = (struct space_base){.user = -1, .mount = -1};
	if (unshare(CLONE_NEWNS) != 0) {
		status = own_namespace(&base->user, err);
		if (status == ESP_OK && unshare(CLONE_NEWNS) != 0)
			status = error_set(err, ESP_EUNSUPPORTED, "cannot have mounts of its own: %s", strerror(errno));
	}
	if (status != ESP_OK)
		return status;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return error_set(err, ESP_EIO, "cannot make mounts private: %s", strerror(errno));
	status = bind_hosts(hosts, err);
	if (status != ESP_OK)
		return status;
	base->mount = open(parts[SPACE_MOUNT].path, O_RDONLY | O_CLOEXEC);
	return base->mount >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot open a mount namespace: %s", strerror(errno));
}

/* ---- a space ---- */

/*
 * /sys shows the network of the process that mounted it. Mounts below the old one are carried over: BPF
 * programs are pinned there. Where a container forbids this, the old /sys stays: the lab does not need it.
 */
static void mount_sys(void)
{
	static const char *const carried[] = {"/sys/fs/cgroup", "/sys/fs/bpf"};
	int trees[2];
	for (int i = 0; i < 2; i++)
		trees[i] = open_tree(AT_FDCWD, carried[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	bool mounted = mount("espalier-lab", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
	for (int i = 0; i < 2; i++) {
		if (trees[i] < 0)
			continue;
		if (mounted)
			(void)move_mount(trees[i], "", AT_FDCWD, carried[i], MOVE_MOUNT_F_EMPTY_PATH);
		close(trees[i]);
	}
}

enum esp_status lab_space_make(struct space *space, const struct space_base *base, const char *name, struct error *err)
{
	int all = 0;
	for (int i = 0; i < SPACE_PARTS; i++) {
		space->fds[i] = -1;
		all |= parts[i].flag;
	}
	if (setns(base->mount, CLONE_NEWNS) != 0 || unshare(all) != 0)
		return error_set(err, errno == ENOSPC ? ESP_ELIMIT : ESP_EUNSUPPORTED, "cannot make namespaces for %s: %s%s",
		                 name, strerror(errno), errno == ENOSPC ? " (user.max_net_namespaces bounds them)" : "");
	if (sethostname(name, strlen(name)) != 0)
		return error_set(err, ESP_EIO, "cannot name a host %s: %s", name, strerror(errno));
	mount_sys();
	if (mount("espalier-lab", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
		return error_set(err, ESP_EIO, "cannot mount memory for %s: %s", name, strerror(errno));
	for (int i = 0; i < SPACE_PARTS; i++) {
		space->fds[i] = open(parts[i].path, O_RDONLY | O_CLOEXEC);
		if (space->fds[i] < 0)
			return error_set(err, errno == EMFILE ? ESP_ELIMIT : ESP_EIO, "cannot open a namespace of %s: %s%s", name,
			                 strerror(errno), errno == EMFILE ? " (ulimit -Hn bounds them)" : "");
	}
	/* The tools that read a batch refer to networks by descriptor. */
	(void)fcntl(space->fds[SPACE_NET], F_SETFD, 0);
	return ESP_OK;
}

enum esp_status lab_space_enter(const struct space *space, int user, struct error *err)
{
	char *folder = getcwd(NULL, 0);
	enum esp_status status = ESP_OK;
	if (user >= 0 && setns(user, CLONE_NEWUSER) != 0)
		status = error_set(err, ESP_EIO, "cannot enter the lab: %s", strerror(errno));
	/* setns() to a mount namespace needs an unshared fs_struct, and a sanitizer may have started a thread. */
	if (status == ESP_OK && unshare(CLONE_FS) != 0)
		status = error_set(err, ESP_EIO, "cannot enter a host of the lab: %s", strerror(errno));
	for (int i = 0; i < SPACE_PARTS && status == ESP_OK; i++)
		if (setns(space->fds[i], parts[i].flag) != 0)
			status = error_set(err, ESP_EIO, "cannot enter a host of the lab: %s%s", strerror(errno),
			                   errno == EPERM ? " (root has made it, and this is not root)" : "");
	if (status == ESP_OK && folder && chdir(folder) != 0)
		status = error_set(err, ESP_EIO, "cannot get back to %.150s: %s", folder, strerror(errno));
	free(folder);
	return status;
}

int lab_space_socket(const struct space *space, int family, int type, int protocol)
{
	if (setns(space->fds[SPACE_NET], CLONE_NEWNET) != 0)
		return -1;
	return socket(family, type, protocol);
}

void lab_space_close(struct space *space)
{
	for (int i = 0; i < SPACE_PARTS; i++)
		if (space->fds[i] >= 0)
			close(space->fds[i]);
	for (int i = 0; i < SPACE_PARTS; i++)
		space->fds[i] = -1;
}
