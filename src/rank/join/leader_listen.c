#include "rank/join/leader_listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define BACKLOG 1024
#define TAKEN_WAIT_NS (5 * NS_PER_S)
#define TAKEN_RETRY_MS 100

/* Adds a listening socket; returns 0 or errno. */
static int listen_at(struct leader_listen *sockets, const struct sockaddr *address, socklen_t length,
                     bool both_families, uint32_t backlog)
{
	int on = 1, v6_only = !both_families;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* connections of an earlier job may be in TIME_WAIT */
	if (address->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	if (bind(fd, address, length) == 0 && listen(fd, backlog ? (int)backlog : BACKLOG) == 0) {
		sockets->fds[sockets->count++] = fd;
		return 0;
	}
	int why = errno;
	close(fd);
	return why;
}

static int listen_everywhere(struct leader_listen *sockets, uint16_t port, uint32_t backlog)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	int why = listen_at(sockets, (const struct sockaddr *)&v6, sizeof(v6), true, backlog);
	if (why == EAFNOSUPPORT || why == EADDRNOTAVAIL)
		why = listen_at(sockets, (const struct sockaddr *)&v4, sizeof(v4), false, backlog);
	return why;
}

/* Every address of the list; if none works, returns the first errno. */
static int listen_at_all(struct leader_listen *sockets, const struct resolved *found, uint32_t backlog,
                         bool *out_outside)
{
	int first = 0;
	*out_outside = false;
	for (uint32_t i = 0; i < found->count; i++) {
		int why = listen_at(sockets, &found->addresses[i].any, found->lengths[i], false, backlog);
		first = first ? first : why;
		if (why == 0 && !resolve_is_loopback(&found->addresses[i].any))
			*out_outside = true;
	}
	return sockets->count ? 0 : first;
}

static int open_once(struct leader_listen *sockets, const struct address *address, const struct resolved *found,
                     uint32_t backlog)
{
	bool outside;
	int why = listen_at_all(sockets, found, backlog, &outside);
	if (outside || why == EADDRINUSE || address_is_numeric(address) || address_is_loopback(address))
		return why;
	leader_listen_close(sockets);
	return listen_everywhere(sockets, address->port, backlog);
}

static enum esp_status fail_listen(const struct address *address, int why, struct error *err)
{
	char text[ADDRESS_TEXT];
	address_format(address, text);
	if (why == EADDRNOTAVAIL)
		return error_set(err, ESP_ELINK, "rank 0 cannot listen on %.120s: that is not an address of this host; set "
		                                 "ESP_LEADER to one, or ESP_STORE", text);
	if (why == EADDRINUSE)
		return error_set(err, ESP_ELINK, "rank 0 cannot listen on %.120s: something else does, perhaps a second rank 0 "
		                                 "or another job", text);
	return error_set(err, ESP_ELINK, "rank 0 cannot listen on %.120s: %s", text, strerror(why));
}

static enum esp_status ask_taken(const struct leader_listen_options *options, const struct resolved *found,
                                 struct error *err)
{
	return options->taken ? options->taken(options->context, found, err) : ESP_PENDING;
}

enum esp_status leader_listen_open(struct leader_listen *sockets, const struct address *address,
                                   const struct leader_listen_options *options, uint64_t deadline_ns, struct error *err)
{
	struct resolved found;
	uint64_t patience = clock_now_ns() + TAKEN_WAIT_NS;
	*sockets = (struct leader_listen){0};
	enum esp_status status = resolve(address, deadline_ns, &found, err);
	if (status != ESP_OK)
		return status;
	for (;;) {
		int why = open_once(sockets, address, &found, options->backlog);
		if (why == 0)
			return ESP_OK;
		if (why == EADDRINUSE)
			status = ask_taken(options, &found, err);
		if (why == EADDRINUSE && status != ESP_PENDING)
			return status;
		uint64_t now = clock_now_ns();
		if (why != EADDRINUSE || now >= patience || now >= deadline_ns)
			return fail_listen(address, why, err);
		poll(NULL, 0, TAKEN_RETRY_MS);
	}
}

enum esp_status leader_listen_open_anywhere(struct leader_listen *sockets, const struct leader_listen_options *options,
                                            uint16_t *out_port, struct error *err)
{
	union resolve_address own = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(own);
	*sockets = (struct leader_listen){0};
	int why = listen_everywhere(sockets, 0, options->backlog);
	if (why == 0 && getsockname(sockets->fds[0], &own.any, &length) != 0)
		why = errno;
	if (why != 0) {
		leader_listen_close(sockets);
		return error_set(err, ESP_ELINK, "rank 0 cannot listen: %s", strerror(why));
	}
	*out_port = ntohs(own.any.sa_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
	                                                : ((struct sockaddr_in *)&own)->sin_port);
	return ESP_OK;
}

void leader_listen_take(struct leader_listen *sockets, int fd)
{
	*sockets = (struct leader_listen){.count = 1, .fds = {fd}};
}

int leader_listen_accept(struct leader_listen *sockets)
{
	for (uint32_t i = 0; i < sockets->count; i++) {
		int on = 1, fd = accept4(sockets->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			return fd;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			return -2;
	}
	return -1;
}

void leader_listen_close(struct leader_listen *sockets)
{
	for (uint32_t i = 0; i < sockets->count; i++)
		close(sockets->fds[i]);
	sockets->count = 0;
}
