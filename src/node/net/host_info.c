#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cores.h"
#include "node/net/listen.h"

/*
 * Adds the device and inode of a namespace file, which no two namespaces of one kernel share. False: it cannot
 * be read.
 */
static bool add_namespace(crypto_generichash_state *state, const char *path)
{
	struct stat info;
	if (stat(path, &info) != 0)
		return false;
	uint64_t number[2] = {info.st_dev, info.st_ino};
	crypto_generichash_update(state, (const uint8_t *)number, sizeof(number));
	return true;
}

static bool add_boot(crypto_generichash_state *state)
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return false;
	crypto_generichash_update(state, (const uint8_t *)text, (size_t)got);
	return true;
}

/* Two containers on one machine are two hosts: they may share neither memory nor ports. */
static void make_host_id(uint8_t out[NODE_INFO_HOST_ID_BYTES])
{
	crypto_generichash_state state;
	int ready = sodium_init();
	(void)ready;
	crypto_generichash_init(&state, NULL, 0, NODE_INFO_HOST_ID_BYTES);
	bool known = add_boot(&state) && add_namespace(&state, "/proc/self/ns/uts") &&
	             add_namespace(&state, "/proc/self/ns/net") && add_namespace(&state, "/proc/self/ns/ipc");
	crypto_generichash_final(&state, out, NODE_INFO_HOST_ID_BYTES);
	if (!known) /* an id of its own is safer than one shared with another host */
		randombytes_buf(out, NODE_INFO_HOST_ID_BYTES);
}

/*
 * gethostname() fails where a name does not fit with its NUL, and a Linux name can be one byte longer than
 * host_name[].
 */
const char *host_info_name(char out[NODE_INFO_HOST_NAME])
{
	char name[HOST_NAME_MAX + 1] = "?";

	if (gethostname(name, sizeof(name)) != 0)
		memcpy(name, "?", 2);
	memset(out, 0, NODE_INFO_HOST_NAME);
	return memcpy(out, name, strnlen(name, NODE_INFO_HOST_NAME - 1));
}

void host_info_describe(struct node_info *info)
{
	info->cores = cores_allowed();
	info->core_set = cores_digest();
	make_host_id(info->host_id);
	info->pid = (uint32_t)getpid();
	randombytes_buf(&info->nonce, sizeof(info->nonce));
	host_info_name(info->host_name);
}
