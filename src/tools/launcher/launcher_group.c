#include "tools/launcher/launcher_group.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/conf.h"
#include "node/auth/key.h"
#include "node/net/address.h"
#include "rank/join/launch.h"

#define HIGH_PORT_FIRST 61000u
#define HIGH_PORT_COUNT 4536u /* up to 65535 */
#define HIGH_PORT_TRIES 16

static_assert(RUN_KEY_TEXT == KEY_HEX, "a key as text");
static_assert(RUN_LEADER_TEXT == ADDRESS_TEXT, "an address as text");
static_assert(RUN_JOB_TEXT == LAUNCH_JOB, "the name of a job");

enum esp_status launcher_group_key(char hex[RUN_KEY_TEXT], struct error *err)
{
	struct key key;
	enum esp_status status = key_find(conf_environment, NULL, &key, err);
	if (status != ESP_OK)
		return status;
	if (key.origin == KEY_NONE)
		key_generate(&key);
	key_to_hex(&key, hex);
	key_wipe(&key);
	return ESP_OK;
}

enum esp_status launcher_group_check_leader(const char *text, struct error *err)
{
	struct address unused;
	return address_parse(text, "--leader", &unused, err);
}

static bool share_port(int fd)
{
	int on = 1;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
}

/*
 * Binds a socket to a port, which other sockets may share as long as none listens. is_first: only if no socket
 * has the port yet. -1 and errno on failure.
 */
static int bind_at(in_addr_t host, uint16_t port, bool is_first, uint16_t *out_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(host)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if ((is_first || share_port(fd)) && bind(fd, (struct sockaddr *)&address, length) == 0 && share_port(fd) &&
	    getsockname(fd, (struct sockaddr *)&address, &length) == 0) {
		*out_port = ntohs(address.sin_port);
		return fd;
	}
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

/* True if a socket with SO_REUSEADDR, such as rank 0's, can listen there while we hold the port; otherwise errno. */
static bool can_listen(in_addr_t host, uint16_t port)
{
	int fd = bind_at(host, port, false, &port), listens = fd >= 0 ? listen(fd, 1) : -1, why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
	return listens == 0;
}

uint16_t launcher_group_high_port(void)
{
	uint32_t number = 0;
	while (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		continue; /* interrupted */
	return (uint16_t)(HIGH_PORT_FIRST + number % HIGH_PORT_COUNT);
}

/*
 * Holds a port of 127.0.0.1 at which another socket can listen, on all addresses unless this very port is
 * wanted. -1 and errno on failure.
 */
static int hold_local(uint16_t port, bool is_wanted, uint16_t *out_port)
{
	int found = bind_at(INADDR_LOOPBACK, port, !is_wanted, out_port), held = -1;
	if (found >= 0 && can_listen(is_wanted ? INADDR_LOOPBACK : INADDR_ANY, *out_port))
		held = fcntl(found, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* not as descriptor 0 to 2, if those are closed */
	int why = errno;
	if (found >= 0)
		close(found);
	errno = why;
	return held;
}

enum esp_status launcher_group_local_port(uint16_t wanted, uint16_t *out_port, int *out_held, struct error *err)
{
	int held = wanted ? hold_local(wanted, true, out_port) : -1;
	/*
	 * The kernel may choose a port that we hold on 127.0.0.1 for a socket on all addresses, where PyTorch's
	 * store is to listen; it never chooses one above the ephemeral range.
	 */
	for (int i = 0; !wanted && held < 0 && i < HIGH_PORT_TRIES; i++)
		held = hold_local(launcher_group_high_port(), false, out_port);
	if (!wanted && held < 0)
		held = hold_local(0, false, out_port);
	*out_held = held;
	if (held >= 0)
		return ESP_OK;
	if (wanted)
		return error_set(err, ESP_EIO, "port %u of 127.0.0.1 cannot be used: %s; without --port, a free one is found",
		                 wanted, strerror(errno));
	return error_set(err, ESP_EIO, "cannot find a free port on 127.0.0.1: %s; --port names one", strerror(errno));
}

const char *launcher_group_leader(const char *host, uint16_t port, char text[RUN_LEADER_TEXT])
{
	bool brackets = strchr(host, ':') != NULL;
	snprintf(text, RUN_LEADER_TEXT, "%s%.*s%s:%u", brackets ? "[" : "", (int)RUN_LEADER_TEXT - 10, host,
	         brackets ? "]" : "", port);
	return text;
}
