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

/* Adds a listening socket; 0 or errno. */
static int listen_at(struct porch *porch, const struct sockaddr *address, socklen_t length, bool both_families,
                     uint32_t backlog)
{
	int on = 1, v6_only = !both_families;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* connections of an earlier job may still be fading */
	if (address->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	if (bind(fd, address, length) == 0 && listen(fd, backlog ? (int)backlog : BACKLOG) == 0) {
		porch->fds[porch->count++] = fd;
		return 0;
	}
	int why = errno;
	close(fd);
	return why;
}

static int listen_everywhere(struct porch *porch, uint16_t port, uint32_t backlog)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	int why = listen_at(porch, (const struct sockaddr *)&v6, sizeof(v6), true, backlog);
	if (why == EAFNOSUPPORT || why == EADDRNOTAVAIL)
		why = listen_at(porch, (const struct sockaddr *)&v4, sizeof(v4), false, backlog);
	return why;
}

/* Every address of the list; the first trouble is the one to report if none works. */
static int listen_at_all(struct porch *porch, const struct resolved *found, uint32_t backlog, bool *out_outside)
{
	int first = 0;
	*out_outside = false;
	for (uint32_t i = 0; i < found->count; i++) {
		int why = listen_at(porch, &found->addresses[i].any, found->lengths[i], false, backlog);
		first = first ? first : why;
		if (why == 0 && !resolve_is_loopback(&found->addresses[i].any))
			*out_outside = true;
	}
	return porch->count ? 0 : first;
}

static int open_once(struct porch *porch, const struct address *address, const struct resolved *found, uint32_t backlog)
{
	bool outside;
	int why = listen_at_all(porch, found, backlog, &outside);
	if (outside || why == EADDRINUSE || address_is_numeric(address) || address_is_loopback(address))
		return why;
	porch_close(porch);
	return listen_everywhere(porch, address->port, backlog);
}

static enum esp_status complain(const struct address *address, int why, struct error *err)
{
	char text[ADDRESS_TEXT];
	address_format(address, text);
	if (why == EADDRNOTAVAIL)
		return error_set(err, ESP_ELINK, "rank 0 cannot listen on %.120s: that is not an address of this host; set ESP_LEADER "
		                 "to one, or ESP_STORE", text);
	if (why == EADDRINUSE)
		return error_set(err, ESP_ELINK, "rank 0 cannot listen on %.120s: something else does, perhaps a second rank 0 or "
		                 "another job", text);
	return error_set(err, ESP_ELINK, "rank 0 cannot listen on %.120s: %s", text, strerror(why));
}

static enum esp_status ask(const struct porch_options *options, const struct resolved *found, struct error *err)
{
	return options->taken ? options->taken(options->context, found, err) : ESP_PENDING;
}

enum esp_status porch_open(struct porch *porch, const struct address *address, const struct porch_options *options,
                           uint64_t deadline_ns, struct error *err)
{
	struct resolved found;
	uint64_t patience = clock_now_ns() + TAKEN_WAIT_NS;
	*porch = (struct porch){0};
	enum esp_status status = resolve(address, deadline_ns, &found, err);
	if (status != ESP_OK)
		return status;
	for (;;) {
		int why = open_once(porch, address, &found, options->backlog);
		if (why == 0)
			return ESP_OK;
		if (why == EADDRINUSE)
			status = ask(options, &found, err);
		if (why == EADDRINUSE && status != ESP_PENDING)
			return status;
		uint64_t now = clock_now_ns();
		if (why != EADDRINUSE || now >= patience || now >= deadline_ns)
			return complain(address, why, err);
		poll(NULL, 0, TAKEN_RETRY_MS);
	}
}

enum esp_status porch_open_anywhere(struct porch *porch, const struct porch_options *options, uint16_t *out_port,
                                    struct error *err)
{
	union resolve_address own = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(own);
	*porch = (struct porch){0};
	int why = listen_everywhere(porch, 0, options->backlog);
	if (why == 0 && getsockname(porch->fds[0], &own.any, &length) != 0)
		why = errno;
	if (why != 0) {
		porch_close(porch);
		return error_set(err, ESP_ELINK, "rank 0 cannot listen: %s", strerror(why));
	}
	*out_port = ntohs(own.any.sa_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
	                                                : ((struct sockaddr_in *)&own)->sin_port);
	return ESP_OK;
}

void porch_take(struct porch *porch, int fd)
{
	*porch = (struct porch){.count = 1, .fds = {fd}};
}

int porch_accept(struct porch *porch)
{
	for (uint32_t i = 0; i < porch->count; i++) {
		int on = 1, fd = accept4(porch->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			return fd;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			return -2;
	}
	return -1;
}

void porch_close(struct porch *porch)
{
	for (uint32_t i = 0; i < porch->count; i++)
		close(porch->fds[i]);
	porch->count = 0;
}
