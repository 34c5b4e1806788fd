/*
 * fd_handover.c - the steward's part in handing descriptors around: fd_exchange.h has the picture.
 */
#include "base/clock.h"
#include "node/control/control_state.h"

#define BUSY_PAUSE (2 * NS_PER_MS) /* while too many descriptors are on their way */

static void take_descriptors(void *argument, uint32_t local, const int *fds)
{
	struct steward *steward = argument;

	steward->config.events->neighbour(steward->config.context, steward->config.rank_of[local], fds, steward->shelf.each);
}

/* Leaves ours, then takes those of the others. True: something more may be moved. */
static bool fetch(struct steward *steward, struct link *link)
{
	struct error why;
	bool busy = false;
	enum esp_status status = link->has_left ? shelf_fetch(&steward->shelf, link->fd, &link->shelf_at, take_descriptors, steward, &why)
	                                        : shelf_leave(&steward->shelf, link->fd, &busy, &why);

	link->wants_room = !link->has_left && !busy;
	link->retry_ns = busy ? clock_now_ns() + BUSY_PAUSE : 0;
	if (status < 0)
		link_broke(link, &why);
	if (status != ESP_OK)
		return false;
	link->wants_room = false;
	if (link->has_left && link->shelf_at == steward->config.local_count)
		link->state = LINK_DONE;
	link->has_left = true;
	return true;
}

/* The first rank: takes what the other has left, then hands it all. True: something more may be moved. */
static bool hand(struct steward *steward, struct link *link)
{
	struct error why;
	uint32_t local = steward->config.local_of[link->peer];
	bool busy = false;
	enum esp_status status = ESP_PENDING;

	link->wants_room = false;
	link->retry_ns = 0;
	if (!link->has_left)
		status = shelf_put(&steward->shelf, link->fd, local, &why);
	else if (shelf_is_full(&steward->shelf))
		status = shelf_hand(&steward->shelf, link->fd, local, &link->shelf_at, &busy, &why);
	else
		link_look_at_door(link); /* it has nothing to say until then, but may go away */
	if (status < 0)
		link_broke(link, &why);
	link->wants_room = link->has_left && shelf_is_full(&steward->shelf) && status == ESP_PENDING && !busy;
	link->retry_ns = busy ? clock_now_ns() + BUSY_PAUSE : 0;
	if (status == ESP_OK && link->has_left)
		link->state = LINK_DONE;
	if (status == ESP_OK && !link->has_left)
		steward->config.events->shelved(steward->config.context, link->peer);
	link->has_left = link->has_left || status == ESP_OK;
	return status == ESP_OK;
}

void handing_turn(struct steward *steward, struct link *link)
{
	struct error why;

	if (!link->local || (!link->dialled && steward->config.local_of[link->peer] >= steward->config.local_count)) {
		error_set(&why, ESP_ELINK, "descriptors are for ranks of one host");
		link_broke(link, &why);
	}
	while (link->state == LINK_HANDING && (link->dialled ? fetch(steward, link) : hand(steward, link)))
		;
}

void handing_done(struct steward *steward, struct link *link)
{
	steward->served += !link->dialled;
	steward_remove(steward, link);
	if (steward->served > 0 && steward->served == steward->config.local_count - 1)
		shelf_clear(&steward->shelf, take_descriptors, steward);
}

/* One at a time, as each may end its link. */
void handing_serve(struct steward *steward)
{
	struct link *following;

	if (steward->is_serving || !shelf_is_full(&steward->shelf) || steward->config.local_self > 0)
		return;
	steward->is_serving = true;
	for (struct link *link = steward->links; link; link = following) {
		following = link->next;
		if (link->state == LINK_HANDING)
			steward_turn_link(steward, link);
	}
}
