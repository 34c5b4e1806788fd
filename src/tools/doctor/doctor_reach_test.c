/*
 * doctor_reach_test.c - broken ways between two ranks: a relay between them stalls connections with large data.
 */
#include "tools/doctor/doctor_reach.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/ready.h"
#include "node/net/interface.h"

#define SMALL_BYTES (16u << 10) /* bytes that pass on a stalled connection */
#define MOST 32u

/* Relays one connection after the other. */
struct between {
	int listen_fd;
	uint16_t to;         /* port of the answering rank */
	uint32_t held_up;    /* on so many connections only the first bytes pass */
	uint32_t let_in;     /* number of connections that are relayed; later ones are closed */
	uint32_t count;
	int fds[MOST][2];
	uint64_t passed[MOST];
	atomic_bool stops;
	pthread_t thread;
};

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port),
	                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_anywhere(uint16_t *out_port)
{
	struct sockaddr_in name = loopback(0);
	socklen_t length = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, 16) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&name, &length) == 0);
	*out_port = ntohs(name.sin_port);
	return fd;
}

static void let_in(struct between *between)
{
	struct sockaddr_in name = loopback(between->to);
	int fd = accept4(between->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0 && between->count < MOST);
	if (between->count == between->let_in) {
		close(fd);
		return;
	}
	int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(other >= 0 && connect(other, (struct sockaddr *)&name, sizeof(name)) == 0);
	between->fds[between->count][0] = fd;
	between->fds[between->count++][1] = other;
}

static void close_both(struct between *between, uint32_t at)
{
	for (int side = 0; side < 2; side++) {
		if (between->fds[at][side] >= 0)
			close(between->fds[at][side]);
		between->fds[at][side] = -1;
	}
}

static bool is_held_up(const struct between *between, uint32_t at)
{
	return at < between->held_up && between->passed[at] >= SMALL_BYTES;
}

static void hand_on(struct between *between, uint32_t at, int side)
{
	static uint8_t bytes[SMALL_BYTES];
	ssize_t got = recv(between->fds[at][side], bytes, sizeof(bytes), 0);

	if (got <= 0 || send(between->fds[at][!side], bytes, (size_t)got, MSG_NOSIGNAL) != got)
		close_both(between, at);
	else if (side == 0)
		between->passed[at] += (uint64_t)got;
}

static void *between_main(void *argument)
{
	struct between *between = argument;

	while (!atomic_load(&between->stops)) {
		struct pollfd polls[1 + 2 * MOST] = {{between->listen_fd, POLLIN, 0}};
		uint32_t count = between->count;

		for (uint32_t i = 0; i < 2 * count; i++) {
			bool waits = i % 2 == 0 && is_held_up(between, i / 2);

			polls[1 + i] = (struct pollfd){waits ? -1 : between->fds[i / 2][i % 2], POLLIN, 0};
		}
		if (poll(polls, 1 + 2 * count, 10) <= 0)
			continue;
		for (uint32_t i = 0; i < 2 * count; i++) {
			if (polls[1 + i].revents && between->fds[i / 2][i % 2] >= 0)
				hand_on(between, i / 2, (int)(i % 2));
		}
		if (polls[0].revents)
			let_in(between);
	}
	for (uint32_t i = 0; i < between->count; i++)
		close_both(between, i);
	return NULL;
}

static struct join_config config_of(uint32_t rank)
{
	struct join_config config = {.launch = {.rank = rank, .size = 2}};
	struct conf conf;

	conf_init(&conf);
	join_prepare(&config, &conf);
	memcpy(config.key, "a key of thirty-two bytes ......", sizeof(config.key));
	return config;
}

#define SHORT (50 * NS_PER_MS)
#define LONG (120 * NS_PER_S)

/*
 * The outcome of rank 0's attempt to reach rank 1 when `held_up` connections stall and `let_in` are relayed.
 * Bytes that are to pass have all the time they need.
 */
static enum doctor_outcome try_way(uint32_t held_up, uint32_t let_in_most)
{
	const struct doctor_patience patience = {held_up > 0 ? SHORT : LONG, held_up > 1 ? SHORT : LONG, SHORT};
	static const uint8_t address[] = {127, 0, 0, 1};
	struct join_config join = config_of(0), other = config_of(1);
	struct node_info nodes[2] = {join.info, other.info};
	uint32_t host_of[] = {0, 1}, host_ranks[] = {1, 1};
	struct roster roster = {.size = 2, .nodes = nodes, .hosts = 2, .host_of = host_of, .host_ranks = host_ranks};
	struct interfaces own = {0};
	struct doctor_way ways[2 * NODE_ADDRESSES] = {0};
	struct between between = {.held_up = held_up, .let_in = let_in_most};
	struct listener listener = {.count = 1};

	listener.fds[0] = listen_anywhere(&between.to);
	between.listen_fd = listen_anywhere(&nodes[1].port);
	nodes[1].address_count = 1;
	nodes[1].addresses[0].family = NODE_IPV4;
	memcpy(nodes[1].addresses[0].bytes, address, sizeof(address));
	struct doctor_server *server = doctor_server_start(&other, &listener);
	CHECK(server && pthread_create(&between.thread, NULL, between_main, &between) == 0);
	doctor_reach_all(&join, &roster, &own, 0, &patience, ways);
	atomic_store(&between.stops, true);
	CHECK(pthread_join(between.thread, NULL) == 0);
	doctor_server_stop(server);
	close(listener.fds[0]);
	close(between.listen_fd);
	return (enum doctor_outcome)ways[NODE_ADDRESSES].outcome;
}

int main(void)
{
	CHECK_U64(try_way(0, MOST), WAY_FINE);
	CHECK_U64(try_way(1, MOST), WAY_FINE); /* it stalled once, and then passed */
	CHECK_U64(try_way(MOST, MOST), WAY_LARGE_LOST);
	CHECK_U64(try_way(1, 1), WAY_SILENT); /* it has answered before, so it is no other process */
	return 0;
}
