/*
 * cluster_post.c - messages: taken from an executor, through an outbox and the network, into another.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "sim/cluster_state.h"

/* ---- memory ---- */

static bool add_slab(struct cluster *cluster)
{
	struct message_slab *slab = aligned_alloc(_Alignof(struct message_slab), sizeof(*slab));

	if (!slab)
		return false;
	slab->next = cluster->slabs;
	cluster->slabs = slab;
	for (uint32_t i = SLAB_MESSAGES; i-- > 0;) {
		slab->messages[i].sibling = cluster->free;
		cluster->free = &slab->messages[i];
	}
	return true;
}

static struct message *message_get(struct cluster *cluster)
{
	if (!cluster->free && !add_slab(cluster)) {
		cluster->config.agenda->failed = true;
		return NULL;
	}
	struct message *message = cluster->free;
	cluster->free = message->sibling;
	return message;
}

static void message_drop(struct message *message)
{
	struct cluster *cluster = message->cluster;

	if (--message->holders > 0)
		return;
	message->sibling = cluster->free;
	cluster->free = message;
}

void sim_post_close(struct cluster *cluster)
{
	while (cluster->slabs) {
		struct message_slab *slab = cluster->slabs;

		cluster->slabs = slab->next;
		free(slab);
	}
	free(cluster->peers);
}

/* ---- leaving ---- */

static void depart(struct message *message)
{
	struct cluster *cluster = message->cluster;

	if (cluster->config.message)
		message->begun = cluster->config.agenda->now;
	sim_network_send(cluster->network, message->from->vertex, message->to->vertex, message->nic, message->bytes,
	                 message);
}

static void outbox_next(struct outbox *outbox)
{
	struct message *message = sim_outbox_pop(outbox);

	outbox->is_busy = message != NULL;
	if (message)
		depart(message);
}

/* Where it has to wait for others; NULL: nowhere. */
static bool choose_outbox(struct cluster *cluster, struct message *message, struct outbox **out)
{
	uint32_t vertex = message->from->vertex;
	bool is_switch = message->from->is_switch;
	enum cluster_order order = (enum cluster_order)cluster->order[vertex];

	*out = NULL;
	message->minor = cluster->turns++;
	if (is_switch && cluster->config.model == NETWORK_FIFO)
		return true; /* it queues where it has to: at the link */
	if (is_switch && order != CLUSTER_SHARED_READY)
		order = CLUSTER_SHARED;
	message->major = order == CLUSTER_SHARED ? message->index : order == CLUSTER_BLOCK ? message->to->node : 0;
	*out = order == CLUSTER_SHARED || order == CLUSTER_SHARED_READY
	           ? sim_outbox_of_pair(cluster, message->from, message->to->node, message->nic)
	           : sim_outbox_of_nic(cluster, vertex, message->nic);
	return *out != NULL;
}

static void post(struct cluster *cluster, struct seat *from, struct seat *to, const struct transport_message *given)
{
	struct message *message = message_get(cluster);

	if (!message)
		return;
	uint32_t nics = cluster->config.topology->vertices[from->vertex].nics;
	/* One by one: what is not here is set before it is read, and clearing a message takes as long as filling it. */
	message->cluster = cluster;
	message->from = from;
	message->to = to;
	message->cookie = given->cookie;
	message->index = given->index;
	message->bytes = given->bytes;
	message->nic = (uint16_t)(nics > 1 ? given->index % nics : 0);
	message->has_chunk = from->is_switch;
	message->is_shown = false;
	message->is_held = false;
	message->holders = 1;
	if (cluster->config.message || from->is_switch) { /* no other code asks for it, and it is far from the processor */
		struct exec_chunk chunk = exec_chunk_out(given);

		message->chunk_id = chunk.id;
		message->call = chunk.call;
		message->chunk = chunk.chunk;
		message->ready = cluster->config.agenda->now;
	}
	cluster->stats.messages++;
	cluster->stats.bytes += given->bytes;
	if (!choose_outbox(cluster, message, &message->outbox)) {
		cluster->config.agenda->failed = true;
	} else if (message->outbox) {
		sim_outbox_push(message->outbox, message);
		if (!message->outbox->is_busy)
			outbox_next(message->outbox);
	} else {
		depart(message);
	}
}

/* ---- acknowledgements ---- */

/* An acknowledgement is as fresh as when it comes: it never falls behind one that a message brought. */
static void ack_arrived(void *user)
{
	struct message *ack = user;
	struct cluster *cluster = ack->cluster;
	struct seat *from = ack->from, *to = ack->to;
	struct exec *exec = sim_seat_exec(cluster, to);

	message_drop(ack);
	if (!exec)
		return;
	struct transport_message message = {.is_credit = true, .ack = exec_consumed(from->exec, to->member)};
	enum esp_status status = exec_credit(exec, from->member, &message);
	if (status != ESP_OK)
		sim_cluster_fail(cluster, status, "an acknowledgement", to);
	sim_cluster_stir(cluster, to);
}

static void post_ack(struct cluster *cluster, struct seat *from, struct seat *to)
{
	const struct topology *topology = cluster->config.topology;
	struct agenda *agenda = cluster->config.agenda;
	uint32_t links[TOPOLOGY_HOPS_MAX];
	uint32_t hops = topology_path(topology, from->vertex, to->vertex, 0, links);
	struct message *ack = message_get(cluster);

	if (!ack)
		return;
	ack->cluster = cluster;
	ack->from = from;
	ack->to = to;
	ack->holders = 1;
	cluster->stats.credits++;
	sim_agenda_at(agenda, agenda->now + topology_delay(topology, links, hops), ack_arrived, ack);
}

/* ---- an executor's messages ---- */

static bool note_peer(struct cluster *cluster, uint32_t count, uint32_t peer)
{
	if (!vec_reserve(&cluster->peers, &cluster->peer_room, (size_t)count + 1, sizeof(*cluster->peers))) {
		cluster->config.agenda->failed = true;
		return false;
	}
	cluster->peers[count] = peer;
	return true;
}

/* One message of each peer, then the next of each: what became ready together leaves in the order of its rows. */
void sim_post_collect(struct cluster *cluster, struct seat *seat)
{
	struct seat *seats = cluster->streams[seat->stream].seats;
	uint32_t count = 0, peer;

	while ((peer = exec_ready(seat->exec)) != UINT32_MAX) {
		if (!note_peer(cluster, count, peer))
			return;
		count++;
	}
	while (count > 0) {
		uint32_t left = 0;

		for (uint32_t i = 0; i < count; i++) {
			struct transport_message message;
			struct seat *to = &seats[cluster->peers[i]];

			if (!exec_next(seat->exec, to->member, &message))
				continue;
			if (message.is_credit)
				post_ack(cluster, seat, to);
			else
				post(cluster, seat, to, &message);
			cluster->peers[left++] = to->member;
		}
		count = left;
	}
}

/* ---- arriving ---- */

static void tell(const struct message *message)
{
	const struct cluster_config *config = &message->cluster->config;

	if (config->message)
		config->message(config->user, &(struct cluster_message){.stream = message->from->stream,
		                                                        .from = message->from->node,
		                                                        .to = message->to->node,
		                                                        .nic = message->nic,
		                                                        .bytes = message->bytes,
		                                                        .call = message->call,
		                                                        .chunk = message->chunk,
		                                                        .ready = message->ready,
		                                                        .begun = message->begun,
		                                                        .left = message->left,
		                                                        .arrived = config->agenda->now});
}

void sim_post_deliver(struct message *message)
{
	struct cluster *cluster = message->cluster;
	struct exec *exec = sim_seat_exec(cluster, message->to);
	uint32_t from = message->from->member;

	if (!exec)
		return;
	struct transport_message given = {
		.index = message->index,
		.bytes = message->bytes,
		.ack = exec_consumed(message->from->exec, message->to->member),
	};
	/* All of it at once, as through shared memory: dry executors look at no data. */
	enum esp_status status = exec_offer(exec, from, &given);
	if (status != ESP_OK) {
		sim_cluster_fail(cluster, status, "a message", message->to);
		return;
	}
	sim_cluster_stir(cluster, message->to);
}

void sim_post_sent(struct message *message)
{
	if (message->cluster->config.message)
		message->left = message->cluster->config.agenda->now;
	exec_sent(message->from->exec, message->cookie);
	sim_cluster_stir(message->cluster, message->from);
}

void sim_post_headed(void *user, void *cookie)
{
	struct message *message = cookie;
	(void)user;

	if (sim_joint_show(message))
		sim_post_deliver(message);
}

void sim_post_left(void *user, void *cookie)
{
	struct message *message = cookie;
	(void)user;

	if (!sim_joint_hold(message))
		sim_post_sent(message);
	if (message->outbox)
		outbox_next(message->outbox);
}

/* All of it is there. */
static void complete(struct message *message)
{
	tell(message);
	if (message->is_shown)
		sim_joint_complete(message);
	else
		sim_post_deliver(message);
	message_drop(message);
}

void sim_post_arrived(void *user, void *cookie)
{
	struct message *message = cookie;
	(void)user;

	if (message->is_held)
		message_drop(message); /* the late delivery has it */
	else
		complete(message);
}

static void arrive_late(void *user)
{
	complete(user);
}

/* The messages that it is made from have come: its last byte leaves now. */
void sim_post_release(struct message *message)
{
	struct cluster *cluster = message->cluster;
	const struct topology *topology = cluster->config.topology;
	uint32_t links[TOPOLOGY_HOPS_MAX];
	uint32_t hops = topology_path(topology, message->from->vertex, message->to->vertex, message->nic, links);

	sim_post_sent(message);
	sim_agenda_at(cluster->config.agenda, cluster->config.agenda->now + topology_delay(topology, links, hops),
	              arrive_late, message);
}
