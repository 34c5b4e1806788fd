/*
 * mesh_tcp.c - the TCP transport under the suite, over every kind of socket.
 */
#include <linux/filter.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "mesh.h"
#include "sockets.h"
#include "transport/tcp/tcp.h"

static void adopt(struct mesh_lane *lane, uint32_t peer, int fd)
{
	struct error err;

	if (!lane->transport) { /* dead */
		close(fd);
		return;
	}
	enum esp_status status = tcp_adopt(lane->transport, peer, fd, rng_chance(&lane->rng, 1, 2), &err);
	CHECK_MSG(status == ESP_OK || status == ESP_EPEER, "adopt: %s", err.text);
	lane->fds[peer] = fd;
	lane->is_cut[peer] = false;
}

/* ---- connections that are replaced ---- */

/* The kernel throws away whatever comes for this socket, as if it had been lost on the way: data, and word of what has arrived. */
static void cut(struct mesh_lane *lane, uint32_t peer)
{
	struct sock_filter nothing = {.code = BPF_RET | BPF_K, .k = 0};
	struct sock_fprog program = {1, &nothing};

	CHECK(setsockopt(lane->fds[peer], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0);
	lane->is_cut[peer] = true;
}

/* What is lost for good is not to be told from what is replaced too late, and nothing is cut on a Unix socket. */
static bool can_cut(const struct mesh_lane *lane, uint32_t peer)
{
	return lane->mesh->cluster.spec.victim == PLAN_NONE && lane->mesh->kind == &mesh_moving_ipv4 && lane->fds[peer] >= 0 &&
	       !lane->is_cut[peer];
}

static void replace(struct mesh_lane *lane, uint32_t peer, int fd)
{
	struct error err;

	if (!lane->transport) {
		close(fd);
		return;
	}
	if (can_cut(lane, peer) && rng_chance(&lane->rng, 1, 2))
		cut(lane, peer);
	enum esp_status status = tcp_replace(lane->transport, peer, fd, rng_chance(&lane->rng, 1, 2), &err);
	CHECK_MSG(status == ESP_OK || status == ESP_EPEER, "replace: %s", err.text);
	lane->fds[peer] = fd;
	lane->is_cut[peer] = false;
	lane->replaced++;
}

/* The lower one of two replaces what they have, some time after it was cut, or though it was not. */
static void disturb(struct mesh_lane *lane)
{
	struct mesh *mesh = lane->mesh;
	struct path_stats stats;
	int fds[2];

	for (uint32_t peer = lane->node + 1; peer < mesh->cluster.spec.nodes; peer++) {
		if ((lane->finished && !lane->is_cut[peer]) || !tcp_stats(lane->transport, peer, &stats))
			continue; /* what is cut is replaced in any case: somebody may wait for what it carried */
		if (can_cut(lane, peer) && rng_chance(&lane->rng, 1, 8))
			cut(lane, peer);
		if (!rng_chance(&lane->rng, 1, lane->is_cut[peer] ? 4 : 16))
			continue;
		socket_pair(mesh->kind == &mesh_moving_ipv4 ? SOCKET_IPV4 : SOCKET_UNIX, fds);
		replace(lane, peer, fds[0]);
		mesh_post_replacing(mesh, peer, lane->number, lane->node, fds[1]);
	}
}

static void dial(struct mesh_lane *lane, uint32_t peer, enum socket_kind kind)
{
	struct mesh *mesh = lane->mesh;
	int fds[2];

	if (mesh->kind->disturb && !mesh_is_first(mesh, lane->node, lane->number, peer))
		return; /* one connection at a time: the other end is about to bring it */
	do {
		socket_pair(kind, fds);
		if (rng_chance(&lane->rng, 1, 2)) {
			adopt(lane, peer, fds[0]);
			mesh_post(mesh, peer, lane->number, lane->node, fds[1]);
		} else { /* as when somebody else does the dialling */
			mesh_post(mesh, lane->node, lane->number, peer, fds[0]);
			mesh_post(mesh, peer, lane->number, lane->node, fds[1]);
		}
	} while (mesh->doubles && !mesh->kind->disturb && rng_chance(&lane->rng, 1, 3));
}

static void dial_unix(void *context, uint32_t peer)
{
	dial(context, peer, SOCKET_UNIX);
}

static void dial_ipv4(void *context, uint32_t peer)
{
	dial(context, peer, SOCKET_IPV4);
}

static void dial_ipv6(void *context, uint32_t peer)
{
	dial(context, peer, SOCKET_IPV6);
}

/* Windows of less than a few segments leave TCP to its timers, and tests have no time for them. */
static uint32_t receive_buffer(const struct mesh *mesh)
{
	uint32_t bytes = mesh->socket_buffer;

	return bytes > 0 && bytes < 16384 && mesh->kind != &mesh_unix ? 16384 : bytes;
}

static void *open_with(struct mesh_lane *lane, void (*dialler)(void *, uint32_t))
{
	struct tcp_config config = {
		.peers = lane->mesh->cluster.spec.nodes,
		.send_buffer = lane->mesh->socket_buffer,
		.receive_buffer = receive_buffer(lane->mesh),
		.unsent_most = rng_chance(&lane->rng, 1, 2) ? 0 : 16384,
		.resumes = lane->mesh->kind->disturb != NULL,
		.dial = dialler,
		.dial_context = lane,
	};
	struct tcp *tcp;
	struct error err;

	CHECK_MSG(tcp_open(&config, &lane_user, lane_port(lane->lane, 0), &tcp, &err) == ESP_OK, "open: %s", err.text);
	return tcp;
}

static void *open_unix(struct mesh_lane *lane)
{
	return open_with(lane, dial_unix);
}

static void *open_ipv4(struct mesh_lane *lane)
{
	return open_with(lane, dial_ipv4);
}

static void *open_ipv6(struct mesh_lane *lane)
{
	return open_with(lane, dial_ipv6);
}

static bool always(void)
{
	return true;
}

static bool ipv6_works(void)
{
	return socket_kind_works(SOCKET_IPV6);
}

static void do_close(void *transport)
{
	tcp_close(transport);
}

static unsigned do_poll(void *transport, int64_t timeout_ns)
{
	return tcp_poll(transport, timeout_ns);
}

static void do_wake(void *transport)
{
	tcp_wake(transport);
}

static void do_drop(void *transport, uint32_t peer, enum esp_status why)
{
	tcp_drop(transport, peer, why);
}

static void do_forget(void *transport, uint16_t channel)
{
	tcp_forget(transport, channel);
}

#define REST .forget = do_forget, .close = do_close, .poll = do_poll, .wake = do_wake, .drop = do_drop, .adopt = adopt

#define MOVING .disturb = disturb, .replace = replace

const struct mesh_kind mesh_unix = {.name = "unix", .works = always, .open = open_unix, REST};
const struct mesh_kind mesh_ipv4 = {.name = "ipv4", .works = always, .open = open_ipv4, REST};
const struct mesh_kind mesh_ipv6 = {.name = "ipv6", .works = ipv6_works, .open = open_ipv6, REST};
const struct mesh_kind mesh_moving_unix = {.name = "moving unix", .works = always, .open = open_unix, REST, MOVING};
const struct mesh_kind mesh_moving_ipv4 = {.name = "moving ipv4", .works = always, .open = open_ipv4, REST, MOVING};
