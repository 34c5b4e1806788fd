/*
 * link_host.c - a worker that pushes together with others of its host (host_memory.h): its calls on a tensor in a line.
 *
 *     QUEUED ── its turn on the tensor ──> WAITING ── all members have posted ──> HANDED to the lanes ──> ended
 *        └── other calls ──> HANDED            └── the answer lies in the memory ──> ended
 *
 * The pusher adds ((its own + member 1's) + member 2's) + ..., pushes the sum for all, and puts the answer into the
 * memory. The link's thread calls these but for those that open and close.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/worker/host_meet.h"
#include "hub/control/host_memory.h"
#include "hub/worker/link_state.h"
#include "math/math.h"
#include "wire/hub_frame.h"

#define PUSHER 0u /* its index */

struct host_peer {
	struct poller_subject subject; /* first member */
	int fd;                        /* -1: none */
	bool is_readable, is_gone;
};

/* Calls on a tensor, in the order in which they were started. */
struct hub_op_line {
	struct hub_op *first, *last;
};

/* The pusher's: pushes of the group hold these values from this version on, and the hub has not been told. */
struct host_change {
	uint16_t group;
	uint64_t from;
	struct optimizer optimizer;
};

struct link_host {
	struct host_memory memory;
	struct host_member member[HOST_MEMBERS_MOST];
	uint32_t own, members;      /* own: index of this worker */
	char host_name[HUB_HOST_NAME];
	bool hub_reads;             /* the hub adds the gradients, and writes the weights */
	bool is_due, has_failed;    /* is_due: a call may be able to go on */
	uint64_t *pushed;           /* by tensor: gradients of this worker */
	struct hub_op_line *lines;  /* by tensor */
	uint8_t (*values)[OPTIMIZER_BYTES]; /* by parameter group: of gradients that are pushed from now on */
	struct host_change *changes; /* the pusher's, those of a group in the order of their versions */
	uint32_t change_count, change_room;
	float *sums;                /* the pusher's: of the model */
	struct host_peer peer[HOST_MEMBERS_MOST]; /* the pusher has all others, the others the pusher */
};

/* ---- peers ---- */

static void on_edge(struct poller_subject *subject, uint32_t events)
{
	struct host_peer *peer = (struct host_peer *)(void *)subject;

	peer->is_readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
}

/* News lies in the memory. A peer whose socket is full has news that it has not seen. */
static void ring(struct host_peer *peer)
{
	char byte = 'N';

	if (peer->fd >= 0 && !peer->is_gone)
		(void)!send(peer->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void ring_all(struct link_host *host)
{
	for (uint32_t i = 0; i < host->members; i++)
		ring(&host->peer[i]);
}

static void hear(struct link_host *host, struct host_peer *peer)
{
	char bytes[256];
	ssize_t got;

	while (peer->is_readable && !peer->is_gone) {
		got = recv(peer->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got < 0 && errno == EAGAIN)
			peer->is_readable = false;
		else if (got == 0 || (got < 0 && errno != EINTR))
			peer->is_gone = true;
		host->is_due = true;
	}
}

/* ---- what is missing ---- */

static bool has_posted(const struct link_host *host, uint32_t member, uint32_t tensor)
{
	const struct host_post *post = host_memory_post(&host->memory, member, tensor);

	return atomic_load_explicit(&post->rounds, memory_order_acquire) >= host->pushed[tensor];
}

static const char *member_text(const struct link_host *host, uint32_t member, char text[HOST_MEMBER_TEXT])
{
	snprintf(text, HOST_MEMBER_TEXT, "worker %u on %s (process %u)", host->member[member].worker, host->host_name,
	         host->memory.member[member].pid);
	return text;
}

bool link_host_missing(const struct hub_link *link, const struct hub_op *op, char *text, size_t room)
{
	const struct link_host *host = link->host;
	char one[HOST_MEMBER_TEXT];
	size_t at = 0;

	if (!host || op->state != HUB_OP_WAITING || op->call.kind == HUB_PULL)
		return false;
	for (uint32_t i = 0; i < host->members && at < room; i++) {
		if (!has_posted(host, i, op->call.tensor))
			at += (size_t)snprintf(text + at, room - at, "%s%s", at > 0 ? ", " : "", member_text(host, i, one));
	}
	return at > 0;
}

/* A member that is gone leaves the call without an end; the hub may know why. */
static void suspect(struct hub_link *link, const struct hub_op *op, uint32_t member)
{
	struct error why;
	char text[HOST_MEMBER_TEXT];

	error_set(&why, ESP_EPEER, "%s has left, and tensor %u waits for it", member_text(link->host, member, text),
	          op->call.tensor);
	link_control_suspect_why(link, &why, link->host->member[member].worker);
}

static void look_for_gone(struct hub_link *link, const struct hub_op *op)
{
	const struct link_host *host = link->host;

	for (uint32_t i = 0; i < host->members; i++) {
		if (host->peer[i].is_gone && (i == PUSHER || !has_posted(host, i, op->call.tensor))) {
			suspect(link, op, i);
			return;
		}
	}
}

/* ---- calls of a member that is not the pusher ---- */

static bool is_push(const struct hub_op *op)
{
	return op->call.kind == HUB_PUSH || op->call.kind == HUB_PUSHPULL;
}

static uint64_t elements_of(const struct hub_link *link, const struct hub_op *op)
{
	return link->layout.tensor[op->call.tensor].elements;
}

static float *shared_weights(const struct hub_link *link, uint32_t tensor)
{
	return link->host->memory.weights + link->layout.place[tensor].at;
}

static void post(struct hub_link *link, const struct hub_op *op)
{
	struct link_host *host = link->host;
	struct host_post *own = host_memory_post(&host->memory, host->own, op->call.tensor);

	float *area = host_memory_gradient(&host->memory, host->own, op->call.tensor);

	if ((host->own != PUSHER || host->hub_reads) && op->call.gradient != area)
		memcpy(area, op->call.gradient, elements_of(link, op) * sizeof(float));
	memcpy(own->values, op->values, OPTIMIZER_BYTES);
	atomic_store_explicit(&own->rounds, ++host->pushed[op->call.tensor], memory_order_release);
	if (host->own != PUSHER)
		ring(&host->peer[PUSHER]);
}

static bool has_answer(const struct hub_link *link, const struct hub_op *op)
{
	const struct link_host *host = link->host;

	return atomic_load_explicit(&host->memory.answers[op->call.tensor], memory_order_acquire) >
	       host->pushed[op->call.tensor];
}

static void take_answer(struct hub_link *link, struct hub_op *op)
{
	const float *weights = shared_weights(link, op->call.tensor);

	if (op->call.kind != HUB_PUSH && op->call.weights != weights)
		memcpy(op->call.weights, weights, elements_of(link, op) * sizeof(float));
	link_thread_count(link, op);
	op_list_remove(&link->under_way, op);
	link_thread_end_op(link, op, ESP_OK);
}

/* ---- calls of the pusher ---- */

static void blame_values(struct hub_link *link, const struct hub_op *op, uint32_t member, const struct optimizer *its)
{
	struct link_host *host = link->host;
	char other[OPTIMIZER_VALUE_TEXT], own[OPTIMIZER_VALUE_TEXT];
	struct optimizer mine;
	struct error why;

	if (!optimizer_decode(op->values, &mine))
		return;
	optimizer_print_difference(its, &mine, other, own);
	error_set(&why, ESP_EMISMATCH, "worker %u uses %s for parameter group %u where worker %u uses %s",
	          host->member[member].worker, other, link->layout.tensor[op->call.tensor].group,
	          host->member[PUSHER].worker, own);
	link_control_tell(link, &why, host->member[member].worker);
	link_fail(link, &why);
}

/* False: the link has failed. */
static bool check_values(struct hub_link *link, const struct hub_op *op)
{
	for (uint32_t i = 1; i < link->host->members; i++) {
		const struct host_post *other = host_memory_post(&link->host->memory, i, op->call.tensor);
		struct optimizer its;
		struct error why;

		if (memcmp(other->values, op->values, OPTIMIZER_BYTES) == 0)
			continue;
		if (optimizer_decode(other->values, &its) && its.kind == link->optimizer.kind) {
			blame_values(link, op, i, &its);
		} else {
			error_set(&why, ESP_ECORRUPT,
			          "worker %u put values of an optimizer that are out of range into shared memory",
			          link->host->member[i].worker);
			link_fail(link, &why);
		}
		return false;
	}
	return true;
}

static void add_gradients(struct hub_link *link, const struct hub_op *op, float *sum)
{
	const struct link_host *host = link->host;
	const void *sources[HOST_MEMBERS_MOST] = {op->call.gradient};

	for (uint32_t i = 1; i < host->members; i++)
		sources[i] = host_memory_gradient(&host->memory, i, op->call.tensor);
	math_fold_many(ESP_F32, ESP_SUM, sum, sources, host->members, elements_of(link, op));
}

/* The changes that hold for a push of this version. They follow the pushes before them, so that the hub need not
 * remember more values than pushes that it has not answered. False: the link has failed. */
static bool tell_changes(struct hub_link *link, uint16_t group, uint64_t version)
{
	struct link_host *host = link->host;
	enum esp_status status = ESP_OK;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < host->change_count; i++) {
		const struct host_change change = host->changes[i];

		if (change.group != group || change.from > version)
			host->changes[kept++] = change;
		else if (status == ESP_OK)
			status = link_thread_change(link, group, change.from, &change.optimizer);
	}
	host->change_count = kept;
	return status == ESP_OK;
}

/* All have posted. */
static void push_sum(struct hub_link *link, struct hub_op *op)
{
	float *sum = link->host->sums + link->layout.place[op->call.tensor].at;

	if (!check_values(link, op) ||
	    !tell_changes(link, link->layout.tensor[op->call.tensor].group, link->host->pushed[op->call.tensor] - 1))
		return;
	if (link->host->hub_reads) {
		link_thread_hand(link, op, HUB_SHARED, NULL, NULL);
		return;
	}
	add_gradients(link, op, sum);
	link_thread_hand(link, op, HUB_PUSHPULL, sum, shared_weights(link, op->call.tensor));
}

void link_host_answered(struct hub_link *link, struct hub_op *op)
{
	struct link_host *host = link->host;
	uint32_t tensor = op->call.tensor;
	_Atomic uint64_t *answer;
	float *weights;
	size_t bytes;

	if (!host || host->own != PUSHER || elements_of(link, op) == 0)
		return;
	answer = &host->memory.answers[tensor];
	weights = shared_weights(link, tensor);
	bytes = elements_of(link, op) * sizeof(float);
	if (op->call.kind == HUB_PUSHPULL && op->call.weights != weights)
		memcpy(op->call.weights, weights, bytes);
	bool is_first = atomic_load_explicit(answer, memory_order_relaxed) == 0;
	if (is_first && op->call.kind == HUB_SET)
		memcpy(weights, op->call.gradient, bytes);
	else if (is_first && op->call.kind == HUB_PULL && op->call.weights != weights)
		memcpy(weights, op->call.weights, bytes);
	else if (!is_push(op) && !(is_first && op->call.kind == HUB_PULL))
		return;
	atomic_store_explicit(answer, host->pushed[tensor] + 1, memory_order_release);
	ring_all(host);
}

/* ---- lines ---- */

/* Weights that no round has changed are taken from the memory. */
static bool is_first_pull(const struct link_host *host, const struct hub_op *op)
{
	return op->call.kind == HUB_PULL && host->own != PUSHER && host->pushed[op->call.tensor] == 0;
}

static void take_turn(struct hub_link *link, struct hub_op *op)
{
	op->state = HUB_OP_WAITING;
	if (elements_of(link, op) > 0 && is_push(op))
		post(link, op);
	else if (elements_of(link, op) == 0 || !is_first_pull(link->host, op))
		link_thread_hand(link, op, op->call.kind, op->call.gradient, op->call.weights);
}

static bool all_have_posted(const struct link_host *host, uint32_t tensor)
{
	for (uint32_t i = 0; i < host->members; i++) {
		if (!has_posted(host, i, tensor))
			return false;
	}
	return true;
}

/* True: it has ended, and the next in its line may go on. */
static bool advance(struct hub_link *link, struct hub_op *op)
{
	struct link_host *host = link->host;

	if (op->state == HUB_OP_QUEUED && host->lines[op->call.tensor].first == op)
		take_turn(link, op);
	if (op->state != HUB_OP_WAITING)
		return false;
	if (host->own == PUSHER && all_have_posted(host, op->call.tensor)) {
		push_sum(link, op);
	} else if (host->own != PUSHER && has_answer(link, op)) {
		take_answer(link, op);
		return true;
	} else {
		look_for_gone(link, op);
	}
	return false;
}

void link_host_begin(struct hub_link *link, struct hub_op *op)
{
	struct link_host *host = link->host;
	struct hub_op_line *line = &host->lines[op->call.tensor];

	op->state = HUB_OP_QUEUED;
	op->behind = NULL;
	memcpy(op->values, host->values[link->layout.tensor[op->call.tensor].group], OPTIMIZER_BYTES);
	if (line->first)
		line->last->behind = op;
	else
		line->first = op;
	line->last = op;
	host->is_due = true;
}

void link_host_ended(struct hub_link *link, const struct hub_op *op)
{
	struct link_host *host = link->host;

	if (!host || host->has_failed || op->call.kind == HUB_HYPER)
		return;
	struct hub_op_line *line = &host->lines[op->call.tensor];
	assert(line->first == op);
	line->first = op->behind;
	host->is_due = true;
}

static bool has_room_for_change(struct link_host *host)
{
	uint32_t room = host->change_room > 0 ? 2 * host->change_room : 16;

	if (host->change_count < host->change_room)
		return true;
	struct host_change *changes = realloc(host->changes, room * sizeof(*changes));
	if (!changes)
		return false;
	host->changes = changes;
	host->change_room = room;
	return true;
}

/* A change of the same version replaces the former one: no push is between them. */
static enum esp_status put_change(struct link_host *host, const struct host_change *change)
{
	for (uint32_t i = 0; i < host->change_count; i++) {
		if (host->changes[i].group == change->group && host->changes[i].from == change->from) {
			host->changes[i] = *change;
			return ESP_OK;
		}
	}
	if (!has_room_for_change(host))
		return ESP_ENOMEM;
	host->changes[host->change_count++] = *change;
	return ESP_OK;
}

enum esp_status link_host_change(struct hub_link *link, uint16_t group, uint64_t from,
                                 const struct optimizer *optimizer)
{
	const struct host_change change = {.group = group, .from = from, .optimizer = *optimizer};

	optimizer_encode(optimizer, link->host->values[group]);
	return link->host->own == PUSHER ? put_change(link->host, &change) : ESP_OK;
}

void link_host_fail(struct hub_link *link)
{
	struct hub_op *op, *next;

	if (!link->host || link->host->has_failed)
		return;
	link->host->has_failed = true;
	for (op = link->under_way.first; op; op = next) {
		next = op->next;
		if (op->state == HUB_OP_HANDED)
			continue;
		op_list_remove(&link->under_way, op);
		link_thread_end_op(link, op, link->failure.status);
	}
}

bool link_host_turn(struct hub_link *link)
{
	struct link_host *host = link->host;
	bool moved = false, again = true;

	if (!host || host->has_failed)
		return false;
	for (uint32_t i = 0; i < host->members; i++)
		hear(host, &host->peer[i]);
	while (host->is_due && again && !host->has_failed) {
		host->is_due = again = false;
		for (struct hub_op *op = link->under_way.first, *next; op && !host->has_failed; op = next) {
			next = op->next;
			again |= advance(link, op);
		}
		moved |= again;
	}
	return moved;
}

bool link_host_has_work(const struct hub_link *link)
{
	if (!link->host || link->host->has_failed)
		return false;
	for (uint32_t i = 0; i < link->host->members; i++) {
		if (link->host->peer[i].is_readable && !link->host->peer[i].is_gone)
			return true;
	}
	return link->host->is_due;
}

float *link_host_gradient(const struct hub_link *link, uint32_t tensor)
{
	return link->host ? host_memory_gradient(&link->host->memory, link->host->own, tensor) : NULL;
}

float *link_host_weights(const struct hub_link *link, uint32_t tensor)
{
	return link->host ? shared_weights(link, tensor) : NULL;
}

const float *link_host_map(const struct hub_link *link, uint32_t tensor)
{
	return link->host ? link->host->memory.read_only + link->layout.place[tensor].at : NULL;
}

/* ---- life ---- */

static struct link_host *new_host(struct hub_link *link, uint64_t set)
{
	struct link_host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	link->host = host;
	host->memory.fd = -1;
	for (uint32_t i = 0; i < HOST_MEMBERS_MOST; i++)
		host->peer[i] = (struct host_peer){.subject.ready = on_edge, .fd = -1};
	for (; set; set &= set - 1) {
		uint32_t worker = (uint32_t)__builtin_ctzll(set);

		host->own = worker == link->config.worker ? host->members : host->own;
		host->member[host->members++].worker = worker;
	}
	host->member[host->own].pid = (uint32_t)getpid();
	host->pushed = calloc(link->layout.tensors + 1u, sizeof(*host->pushed));
	host->lines = calloc(link->layout.tensors + 1u, sizeof(*host->lines));
	host->values = calloc(link->layout.groups + 1u, sizeof(*host->values));
	host->sums = host->own == PUSHER ? malloc((link->layout.elements + 1) * sizeof(float)) : NULL;
	if (!host->pushed || !host->lines || !host->values || (host->own == PUSHER && !host->sums))
		return NULL;
	for (uint32_t group = 0; group < link->layout.groups; group++)
		optimizer_encode(&link->optimizer, host->values[group]);
	return host;
}

static struct host_owner owner_of(const struct hub_link *link)
{
	return (struct host_owner){link->ticket.job, link->hubs[0].session};
}

/* A hub on this machine may read the gradients by itself. */
static enum esp_status share(struct hub_link *link, uint64_t until_ns, struct error *err)
{
	struct link_host *host = link->host;
	struct hub_msg msg = {.type = HUB_MSG_SHARE, .share = (uint32_t)host->memory.fd};
	enum esp_status status = msg_socket_put(&link->sockets[0], &msg, until_ns, err);

	if (status == ESP_OK)
		status = msg_socket_take(&link->sockets[0], HUB_MSG_SHARE, until_ns, &msg, err);
	host->hub_reads = status == ESP_OK && msg.share == 1;
	return status;
}

static enum esp_status gather(struct hub_link *link, const struct host_meeting *meeting, bool is_read,
                              struct error *err)
{
	struct link_host *host = link->host;
	int sockets[HOST_MEMBERS_MOST];
	enum esp_status status = host_meet_gather(&link->meet, meeting, host->member, host->members, sockets, err);

	if (status != ESP_OK)
		return status;
	for (uint32_t i = 1; i < host->members; i++)
		host->peer[i].fd = sockets[i];
	const struct host_owner owner = owner_of(link);
	status = host_memory_make(&owner, &link->layout, host->member, host->members, &host->memory, err);
	if (status == ESP_OK && is_read)
		status = share(link, meeting->until_ns, err);
	return status == ESP_OK ? host_meet_hand_over(meeting, sockets, host->members, host->memory.fd, err) : status;
}

static enum esp_status call(struct hub_link *link, const struct host_meeting *meeting, uint64_t number,
                            struct error *err)
{
	struct link_host *host = link->host;
	int memory;
	enum esp_status status = host_meet_call(meeting, number, &host->peer[PUSHER].fd, &memory, err);

	if (status != ESP_OK)
		return status;
	const struct host_owner owner = owner_of(link);
	return host_memory_map(&owner, &link->layout, host->member, host->members, memory, &host->memory, err);
}

static enum esp_status watch_peers(struct hub_link *link, struct error *err)
{
	for (uint32_t i = 0; i < link->host->members; i++) {
		struct host_peer *peer = &link->host->peer[i];

		if (peer->fd < 0)
			continue;
		if (poller_watch(&link->poller, peer->fd, &peer->subject) != ESP_OK)
			return error_set(err, ESP_ELIMIT, "no memory to watch the other workers of this host");
		peer->is_readable = true;
	}
	return ESP_OK;
}

enum esp_status link_host_open(struct hub_link *link, const struct hub_msg_ready *ready, uint64_t until_ns,
                               struct error *err)
{
	uint64_t set = ready->set;
	const struct host_meeting meeting = {
		.session = link->hubs[0].session, .worker = link->config.worker, .hubs = link->sockets,
		.hub_count = link->hub_count, .until_ns = until_ns};

	if (__builtin_popcountll(set) < 2)
		return ESP_OK;
	if (!(set >> link->config.worker & 1) || link->meet.fd < 0)
		return error_set(err, ESP_ECORRUPT, "the hub at %.100s has this worker push with others that it does not know",
		                 link->sockets[0].hub);
	struct link_host *host = new_host(link, set);
	if (!host)
		return error_set(err, ESP_ENOMEM, "no memory for pushing with other workers of this host");
	snprintf(host->host_name, sizeof(host->host_name), "%s", link->host_name);
	bool reads = ready->reads && link->hub_count == 1;
	enum esp_status status =
		host->own == PUSHER ? gather(link, &meeting, reads, err) : call(link, &meeting, ready->meeting, err);
	return status == ESP_OK ? watch_peers(link, err) : status;
}

void link_host_close(struct hub_link *link)
{
	struct link_host *host = link->host;

	if (!host)
		return;
	for (uint32_t i = 0; i < HOST_MEMBERS_MOST; i++) {
		if (host->peer[i].fd < 0)
			continue;
		poller_unwatch(&link->poller, host->peer[i].fd);
		close(host->peer[i].fd);
	}
	host_memory_fini(&host->memory);
	free(host->pushed);
	free(host->lines);
	free(host->values);
	free(host->changes);
	free(host->sums);
	free(host);
	link->host = NULL;
}
