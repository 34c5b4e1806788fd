/*
 * fifo.c - links that carry one transfer at a time, whole, in the order in which their first bytes come.
 *
 * A link is reserved when the first byte of a transfer is there; so the time at which it is free again is all that it needs to
 * know.
 */
#include "sim/network_state.h"

static void head_at_link(void *user)
{
	struct transfer *transfer = user;
	struct network *network = transfer->network;
	struct agenda *agenda = network->config.agenda;
	uint32_t number = transfer->flow.link[transfer->hop];
	struct link_state *link = &network->links[number];
	double begin = link->free_at > agenda->now ? link->free_at : agenda->now;
	double end = begin + transfer->wire / network_rate(network, number);
	double delay = network->config.topology->links[number].delay;

	/* It cannot be through before its last byte is here. */
	if (end < transfer->tail)
		end = transfer->tail;
	link->free_at = end;
	transfer->tail = end + delay;
	if (transfer->hop == 0)
		agenda_at(agenda, end, network_left, transfer);
	transfer->hop++;
	double head = network->config.cut_through ? begin + delay : transfer->tail;
	if (transfer->hop < transfer->flow.hops) {
		agenda_at(agenda, head, head_at_link, transfer);
		return;
	}
	if (transfer->tells_head)
		agenda_at(agenda, head, network_headed, transfer);
	agenda_at(agenda, transfer->tail, network_arrived, transfer);
}

void fifo_start(struct transfer *transfer)
{
	head_at_link(transfer);
}
