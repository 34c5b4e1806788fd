/*
 * fifo.c - links that carry one transfer at a time, whole, in the order in which their first bytes come.
 *
 * A link is reserved when the first byte of a transfer is there; so the time at which it is free again is all that it
 * needs to know. The events of a transfer at one moment take one entry of the agenda: on idle links without delay it is
 * at all of them when it begins, and it has arrived when it has left. Transfers leave a link in the order in which they
 * came: when is a queue of its own.
 */
#include "sim/network_state.h"

/* Reserves the next link, and returns when the first byte is behind it. */
static double reserve(struct transfer *transfer)
{
	struct network *network = transfer->network;
	double now = network->config.agenda->now;
	uint32_t number = transfer->flow.link[transfer->hop];
	struct link_state *link = &network->links[number];
	double begin = link->free_at > now ? link->free_at : now;
	double end = begin + transfer->wire / network_rate(network, number);
	double delay = network->config.topology->links[number].delay;

	/* It cannot be through before its last byte is here. */
	if (end < transfer->tail)
		end = transfer->tail;
	link->free_at = end;
	transfer->tail = end + delay;
	transfer->hop++;
	return network->config.cut_through ? begin + delay : transfer->tail;
}

/* Calls at that time, at which the transfer has passed this one of its links. */
static void when_past(struct transfer *transfer, uint32_t hop, double at, agenda_fn *call)
{
	struct network *network = transfer->network;

	sim_agenda_at_queue(network->config.agenda, &network->links[transfer->flow.link[hop]].queue, at, call, transfer);
}

static void head_at_link(void *user);

/* Takes the links that it can reach now. True: all that are left of its way. */
static bool advance(struct transfer *transfer, double *head)
{
	struct agenda *agenda = transfer->network->config.agenda;

	while (transfer->hop < transfer->flow.hops) {
		if (*head > agenda->now) {
			sim_agenda_at(agenda, *head, head_at_link, transfer);
			return false;
		}
		*head = reserve(transfer);
	}
	if (transfer->tells_head)
		sim_agenda_at(agenda, *head, sim_network_headed, transfer);
	return true;
}

static void head_at_link(void *user)
{
	struct transfer *transfer = user;
	struct agenda *agenda = transfer->network->config.agenda;
	double head = agenda->now;

	if (advance(transfer, &head))
		when_past(transfer, transfer->flow.hops - 1, transfer->tail, sim_network_arrived);
}

void sim_fifo_start(struct transfer *transfer)
{
	double head = reserve(transfer), left = transfer->network->links[transfer->flow.link[0]].free_at;
	bool is_through = advance(transfer, &head);

	if (is_through && transfer->tail == left) {
		when_past(transfer, transfer->flow.hops - 1, left, sim_network_passed);
		return;
	}
	when_past(transfer, 0, left, sim_network_left);
	if (is_through)
		when_past(transfer, transfer->flow.hops - 1, transfer->tail, sim_network_arrived);
}
