#include "tools/doctor/doctor_reach.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "node/auth/proof.h"
#include "wire/bytes.h"

#define CONNECT_PATIENCE (3 * NS_PER_S)
#define PROOF_PATIENCE (5 * NS_PER_S)
#define IDLE_PATIENCE (10 * NS_PER_S) /* of a connection that is being served */
#define PINGS 8
#define LARGE_BYTES (256u << 10)
#define SEARCH_BYTES (64u << 10)
#define SINK_MOST (1u << 20)
#define SEGMENT_LEAST 500u
#define SERVED_MOST 256u
#define SIDE_BY_SIDE 16u

enum { ASK_TIME = 1, ASK_SINK = 2 };
#define ASK_BYTES 16u

const struct doctor_patience doctor_patience = {.large_ns = 3 * NS_PER_S, .again_ns = 3 * NS_PER_S,
                                                .search_ns = NS_PER_S};

/* ---- reads and writes with a deadline ---- */

static bool read_all(int fd, uint8_t *bytes, size_t n, uint64_t until_ns)
{
	while (n > 0) {
		ssize_t got = recv(fd, bytes, n, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (got < 0 && !ready_by(fd, POLLIN, until_ns))
			return false;
		bytes += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return true;
}

static bool write_all(int fd, const uint8_t *bytes, size_t n, uint64_t until_ns)
{
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (sent < 0 && !ready_by(fd, POLLOUT, until_ns))
			return false;
		bytes += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

static uint64_t real_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static bool prove(int fd, enum handshake_role role, const struct handshake_config *config)
{
	struct handshake shake;
	struct error err;

	if (proof_run(fd, role, config, clock_now_ns() + PROOF_PATIENCE, &shake, &err) != ESP_OK)
		return false;
	handshake_fini(&shake);
	return true;
}

/* ---- the answering side ---- */

struct doctor_server {
	const struct join_config *join;
	const struct listener *listener;
	pthread_t thread;
	int stop_fd;
	atomic_bool stops;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t served;
};

struct served {
	struct doctor_server *server;
	int fd;
};

static bool answer_one(int fd, uint8_t *sink)
{
	uint8_t ask[ASK_BYTES], answer[ASK_BYTES] = {0};
	uint64_t until = clock_now_ns() + IDLE_PATIENCE;
	if (!read_all(fd, ask, sizeof(ask), until))
		return false;
	uint64_t came = real_ns();
	uint32_t what = bytes_get32(ask), bytes = bytes_get32(ask + 4);
	if (what == ASK_SINK && (bytes > SINK_MOST || !read_all(fd, sink, bytes, until)))
		return false;
	if (what != ASK_SINK && what != ASK_TIME)
		return false;
	bytes_put64(answer, came);
	bytes_put64(answer + 8, real_ns());
	return write_all(fd, answer, sizeof(answer), until);
}

static void *serve_one(void *argument)
{
	struct served *served = argument;
	struct doctor_server *server = served->server;
	struct handshake_config config;
	uint8_t *sink = malloc(SINK_MOST);
	int on = 1;
	setsockopt(served->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	join_listener(server->join, 1u << HELLO_CONTROL, 1, &config);
	if (sink && prove(served->fd, HANDSHAKE_LISTENER, &config))
		while (!atomic_load(&server->stops) && answer_one(served->fd, sink))
			;
	sodium_memzero(&config, sizeof(config));
	close(served->fd);
	free(sink);
	free(served);
	pthread_mutex_lock(&server->lock);
	server->served--;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

static bool start_detached(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, argument) != 0)
		return false;
	pthread_detach(thread);
	return true;
}

static void accept_peers(struct doctor_server *server, int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	struct served *served = malloc(sizeof(*served));
	pthread_mutex_lock(&server->lock);
	bool room = served && server->served < SERVED_MOST;
	server->served += room;
	pthread_mutex_unlock(&server->lock);
	if (room) {
		*served = (struct served){server, fd};
		if (start_detached(serve_one, served))
			return;
		pthread_mutex_lock(&server->lock);
		server->served--;
		pthread_mutex_unlock(&server->lock);
	}
	free(served);
	close(fd);
}

static void *server_main(void *argument)
{
	struct doctor_server *server = argument;
	while (!atomic_load(&server->stops)) {
		struct pollfd polls[LISTEN_MOST + 1] = {{server->stop_fd, POLLIN, 0}};
		for (uint32_t i = 0; i < server->listener->count; i++)
			polls[1 + i] = (struct pollfd){server->listener->fds[i], POLLIN, 0};
		if (poll(polls, 1 + server->listener->count, -1) <= 0)
			continue;
		for (uint32_t i = 0; i < server->listener->count; i++)
			if (polls[1 + i].revents)
				accept_peers(server, server->listener->fds[i]);
	}
	return NULL;
}

struct doctor_server *doctor_server_start(const struct join_config *join, const struct listener *listener)
{
	struct doctor_server *server = calloc(1, sizeof(*server));
	if (!server)
		return NULL;
	server->join = join;
	server->listener = listener;
	server->stop_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->changed, NULL);
	if (server->stop_fd >= 0 && pthread_create(&server->thread, NULL, server_main, server) == 0)
		return server;
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	free(server);
	return NULL;
}

void doctor_server_stop(struct doctor_server *server)
{
	uint64_t one = 1;
	if (!server)
		return;
	atomic_store(&server->stops, true);
	ssize_t written = write(server->stop_fd, &one, sizeof(one));
	(void)written;
	pthread_join(server->thread, NULL);
	pthread_mutex_lock(&server->lock);
	while (server->served > 0) /* each connection has a time limit of its own */
		pthread_cond_wait(&server->changed, &server->lock);
	pthread_mutex_unlock(&server->lock);
	close(server->stop_fd);
	pthread_cond_destroy(&server->changed);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

/* ---- the trying side ---- */

int doctor_connect(const struct sockaddr *name, socklen_t length, uint32_t segment_bytes, uint64_t until_ns)
{
	int on = 1, why = 0, segment = (int)segment_bytes;
	socklen_t why_bytes = sizeof(why);
	int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (segment > 0)
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	bool begun = connect(fd, name, length) == 0 || errno == EINPROGRESS;
	if (begun && !ready_by(fd, POLLOUT, until_ns))
		why = ETIMEDOUT;
	else if (!begun || getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &why_bytes) != 0)
		why = errno;
	if (why == 0)
		return fd;
	close(fd);
	errno = why;
	return -1;
}

struct attempt {
	const struct join_config *join;
	const struct roster *roster;
	const struct interfaces *own;
	uint32_t peer, segment_bytes;
	const struct doctor_patience *patience;
	struct doctor_way *ways; /* of that peer */
};

/* Connects and proves. Returns the descriptor, or -1 with the reason in *out_outcome. */
static int open_way(const struct attempt *attempt, uint32_t at, uint32_t segment_bytes,
                    enum doctor_outcome *out_outcome)
{
	const struct node_info *info = &attempt->roster->nodes[attempt->peer];
	struct handshake_config config;
	struct sockaddr_storage name;
	uint32_t scope = attempt->own->count ? attempt->own->list[0].index : 0;
	socklen_t length = node_address_to(&info->addresses[at], info->port, scope, &name);
	int fd = doctor_connect((struct sockaddr *)&name, length, segment_bytes, clock_now_ns() + CONNECT_PATIENCE);
	if (fd < 0) {
		*out_outcome = errno == ETIMEDOUT ? WAY_SILENT : errno == ECONNREFUSED ? WAY_REFUSED : WAY_NO_ROUTE;
		return -1;
	}
	join_dialer(attempt->join, attempt->peer, HELLO_CONTROL, 0, &config);
	bool proved = prove(fd, HANDSHAKE_DIALER, &config);
	sodium_memzero(&config, sizeof(config));
	if (proved)
		return fd;
	*out_outcome = WAY_STRANGER;
	close(fd);
	return -1;
}

/* Closes without waiting for bytes that cannot be sent. */
static void close_now(int fd)
{
	struct linger now = {1, 0};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static bool ask_time(int fd, struct doctor_way *way)
{
	uint8_t ask[ASK_BYTES] = {0}, answer[ASK_BYTES];
	uint64_t until = clock_now_ns() + PROOF_PATIENCE, best = UINT64_MAX;
	bytes_put32(ask, ASK_TIME);
	for (int i = 0; i < PINGS; i++) {
		uint64_t begin = clock_now_ns(), left = real_ns();
		if (!write_all(fd, ask, sizeof(ask), until) || !read_all(fd, answer, sizeof(answer), until))
			return false;
		uint64_t back = real_ns(), took = clock_now_ns() - begin;
		if (took >= best)
			continue;
		best = took;
		/* The midpoint of the round trip, as far as both directions take the same time. */
		int64_t there = (int64_t)(bytes_get64(answer) - left), home = (int64_t)(bytes_get64(answer + 8) - back);
		way->offset_us = (there / 2 + home / 2) / 1000;
	}
	way->rtt_us = (uint32_t)(best / 1000);
	return true;
}

static bool send_large(int fd, uint32_t bytes, uint64_t patience_ns)
{
	uint8_t ask[ASK_BYTES] = {0}, answer[ASK_BYTES];
	uint64_t until = clock_now_ns() + patience_ns;
	uint8_t *data = calloc(1, bytes);
	bytes_put32(ask, ASK_SINK);
	bytes_put32(ask + 4, bytes);
	bool done = data && write_all(fd, ask, sizeof(ask), until) && write_all(fd, data, bytes, until) &&
	            read_all(fd, answer, sizeof(answer), until);
	free(data);
	return done;
}

static bool passes(const struct attempt *attempt, uint32_t at, uint32_t segment_bytes)
{
	enum doctor_outcome unused;
	int fd = open_way(attempt, at, segment_bytes, &unused);
	bool passed = fd >= 0 && send_large(fd, SEARCH_BYTES, attempt->patience->search_ns);
	if (fd >= 0)
		close_now(fd);
	return passed;
}

/* The largest packet that arrives, headers included; 0: not even small ones. */
static uint32_t find_largest(const struct attempt *attempt, uint32_t at, uint32_t path_mtu)
{
	uint32_t headers = attempt->roster->nodes[attempt->peer].addresses[at].family == NODE_IPV4 ? 40 : 60;
	uint32_t low = SEGMENT_LEAST, high = path_mtu > headers + SEGMENT_LEAST ? path_mtu - headers : SEGMENT_LEAST + 1;
	if (!passes(attempt, at, low))
		return 0;
	while (high - low > 1) { /* low passes, high does not */
		uint32_t middle = low + (high - low) / 2;
		if (passes(attempt, at, middle))
			low = middle;
		else
			high = middle;
	}
	return low + headers;
}

static uint32_t read_path_mtu(int fd)
{
	struct tcp_info info = {0};
	socklen_t bytes = sizeof(info);
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 ? info.tcpi_pmtu : 0;
}

/*
 * A connection that stalls gets a second attempt, on another connection: large packets are lost there as well,
 * or they are not.
 */
static enum doctor_outcome try_large(const struct attempt *attempt, uint32_t at, int fd)
{
	enum doctor_outcome outcome = WAY_LARGE_LOST;
	if (send_large(fd, LARGE_BYTES, attempt->patience->large_ns))
		return WAY_FINE;
	int again = open_way(attempt, at, attempt->segment_bytes, &outcome);
	if (again < 0) /* the rank has proved itself before, so it is no other process, but does not answer any more */
		return outcome == WAY_STRANGER ? WAY_SILENT : outcome;
	outcome = send_large(again, LARGE_BYTES, attempt->patience->again_ns) ? WAY_FINE : WAY_LARGE_LOST;
	close_now(again);
	return outcome;
}

static void try_address(const struct attempt *attempt, uint32_t at)
{
	struct doctor_way *way = &attempt->ways[at];
	enum doctor_outcome outcome = WAY_FINE;
	int fd = open_way(attempt, at, attempt->segment_bytes, &outcome);
	if (fd >= 0 && !ask_time(fd, way))
		outcome = WAY_SILENT;
	if (fd >= 0 && outcome == WAY_FINE) {
		outcome = try_large(attempt, at, fd);
		way->path_mtu = read_path_mtu(fd);
	}
	if (fd >= 0)
		close_now(fd);
	if (outcome == WAY_LARGE_LOST)
		way->largest = find_largest(attempt, at, way->path_mtu);
	way->outcome = (uint8_t)outcome;
}

static void *try_peer(void *argument)
{
	const struct attempt *attempt = argument;
	for (uint32_t at = 0; at < attempt->roster->nodes[attempt->peer].address_count; at++)
		try_address(attempt, at);
	return NULL;
}

void doctor_reach_all(const struct join_config *join, const struct roster *roster, const struct interfaces *own,
                      uint32_t segment_bytes, const struct doctor_patience *patience, struct doctor_way *ways)
{
	uint32_t self = join->launch.rank, peer = 0;
	while (peer < roster->size) {
		struct attempt attempts[SIDE_BY_SIDE];
		pthread_t threads[SIDE_BY_SIDE];
		bool started[SIDE_BY_SIDE];
		uint32_t count = 0;
		for (; peer < roster->size && count < SIDE_BY_SIDE; peer++) {
			if (!doctor_tries(roster, self, peer))
				continue;
			attempts[count] = (struct attempt){join, roster, own, peer, segment_bytes, patience,
			                                   ways + (size_t)peer * NODE_ADDRESSES};
			started[count] = pthread_create(&threads[count], NULL, try_peer, &attempts[count]) == 0;
			if (!started[count])
				try_peer(&attempts[count]);
			count++;
		}
		for (uint32_t i = 0; i < count; i++)
			if (started[i])
				pthread_join(threads[i], NULL);
	}
}
