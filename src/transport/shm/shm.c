/*
 * shm.c - the peers of a lane, the turns that they get, sleeping and waking.
 */
#include "transport/shm/shm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fence.h"
#include "transport/shm/shm_state.h"

/* ---- waking others ---- */

static void write_to(int fd)
{
	uint64_t one = 1;

	/* It fails only if the counter is full, and then it is readable. */
	ssize_t written = write(fd, &one, sizeof(one));
	(void)written;
}

/* Wakes sleeping peers that messages were left for: one fence for all of them. */
static void tell_all(struct shm *shm)
{
	if (!shm->tells)
		return;
	shm->tells = false;
	full_fence();
	for (uint32_t i = 0; i < shm->peer_count; i++) {
		struct peer *peer = &shm->peers[i];
		uint8_t tell = peer->tell;

		peer->tell = 0;
		if (tell && peer->view && (atomic_load_explicit(peer->doze, memory_order_relaxed) & tell)) {
			write_to(atomic_load_explicit(&peer->wake_fd, memory_order_relaxed));
			shm->stats.wakes++;
		}
	}
}

void shm_nudge(const struct shm *shm, uint32_t local)
{
	const struct peer *peer = &shm->peers[local];

	assert(local < shm->peer_count);
	int fd = atomic_load_explicit(&peer->wake_fd, memory_order_acquire);
	if (fd < 0)
		return;
	full_fence();
	if (atomic_load_explicit(peer->doze, memory_order_relaxed))
		write_to(fd);
}

void shm_wake(struct shm *shm)
{
	write_to(shm->wakeup);
}

/* ---- open and close ---- */

/* Everything that is touched in any case, so that a lack of memory shows now. */
static bool reserve_lane(const struct segment *segment, uint32_t lane)
{
	const struct layout *layout = &segment->layout;
	uint64_t begin = layout_lane(layout, lane);
	bool fine = shm_segment_reserve(segment, begin, layout->consumed_at) &&
	            shm_segment_reserve(segment, begin + layout->revoked_at, layout->page);

	for (uint32_t i = 0; fine && i < layout->peers; i++)
		fine = shm_segment_reserve(segment, layout_consumed(layout, lane, i, 0), sizeof(uint64_t));
	return fine;
}

static bool peers_make(struct shm *shm, const struct shm_config *config)
{
	size_t bytes = shm->peer_count * sizeof(struct peer);

	shm->peers = aligned_alloc(LAYOUT_LINE, bytes);
	shm->local_of = malloc((config->peers ? config->peers : 1) * sizeof(*shm->local_of));
	if (!shm->peers || !shm->local_of)
		return false;
	memset(shm->peers, 0, bytes);
	memset(shm->local_of, 0xff, config->peers * sizeof(*shm->local_of));
	for (uint32_t i = 0; i < shm->peer_count; i++) {
		struct peer *peer = &shm->peers[i];

		peer->local = i;
		peer->number = UINT32_MAX;
		peer->brief_slot = SLOT_NONE;
		peer->to = segment_at(shm->segment, layout_ring(shm->layout, shm->lane, i));
		peer->to_replies = segment_at(shm->segment, layout_replies(shm->layout, shm->lane, i));
		peer->our_taken = segment_at(shm->segment, layout_taken(shm->layout, shm->lane, i));
		atomic_init(&peer->wake_fd, -1);
		if (i == shm->self)
			continue;
		peer->number = config->peer_of[i];
		assert(peer->number < config->peers);
		shm->local_of[peer->number] = i;
	}
	return true;
}

/* Descriptors in its rings belong to the peers that have read them: a lane is opened once. */
static bool is_first(struct segment *segment, uint32_t lane)
{
	uint64_t bit = UINT64_C(1) << lane % 64;

	return !(atomic_fetch_or(&segment->lane_was_opened[lane / 64], bit) & bit);
}

enum esp_status shm_open_lane(const struct shm_config *config, const struct transport_user *user, void *context,
                              struct shm **out, struct error *err)
{
	if (config->lane >= config->segment->config.lanes || !is_first(config->segment, config->lane))
		return error_set(err, ESP_EINVAL, "lane %u of a segment of %u: no such lane, or it was opened before",
		                 config->lane, config->segment->config.lanes);
	struct shm *shm = calloc(1, sizeof(*shm));
	if (!shm)
		return error_set(err, ESP_ENOMEM, "no memory for a lane");
	shm->user = user;
	shm->context = context;
	shm->segment = config->segment;
	shm->layout = &config->segment->layout;
	shm->lane = config->lane;
	shm->self = config->segment->config.self;
	shm->is_crowded = config->is_crowded;
	shm->is_only_lane = config->segment->config.lanes == 1;
	shm->peer_count = config->segment->config.peers;
	shm->user_peers = config->peers;
	shm->doze = segment_at(shm->segment, layout_doze(shm->layout, shm->lane));
	shm->storing = segment_at(shm->segment, layout_storing(shm->layout, shm->lane));
	shm->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	enum esp_status status = shm->wakeup >= 0 ? ESP_OK : errno == ENOMEM ? ESP_ENOMEM : ESP_ELIMIT;
	if (status == ESP_OK && (!reserve_lane(shm->segment, shm->lane) || !peers_make(shm, config)))
		status = ESP_ENOMEM;
	if (status == ESP_OK)
		status = shm_slots_init(&shm->slots, shm->segment, shm->lane);
	if (status != ESP_OK) {
		shm->has_ended = true; /* nothing was left for a peer */
		shm_close(shm);
		return error_set(err, status, "no memory or no descriptor for lane %u of %u ranks", config->lane,
		                 config->segment->config.peers);
	}
	*out = shm;
	return ESP_OK;
}

/* The user has failed: what was offered is taken back, and the peers learn of it. Copies stay as they are. */
static void end(struct shm *shm)
{
	shm->has_ended = true;
	shm->moved++;
	for (uint32_t i = 0; i < shm->peer_count; i++) {
		struct peer *peer = &shm->peers[i];

		if (i == shm->self || peer->is_lost)
			continue;
		shm_peer_revoke_heap(shm, peer);
		shm_peer_put_end(shm, peer);
	}
	tell_all(shm); /* with the fence before which memory must not be written */
}

static void peer_close(struct shm *shm, struct peer *peer)
{
	int fd = atomic_load_explicit(&peer->wake_fd, memory_order_relaxed);

	if (fd >= 0)
		close(fd);
	shm_peer_release(shm, peer);
	free(peer->revoked);
}

static bool has_lent(const struct shm *shm)
{
	for (uint32_t i = 0; i < shm->peer_count; i++) {
		for (const struct flow *flow = shm->peers[i].flows.sending; flow; flow = flow->next_sending) {
			if (flow->heap_count > 0)
				return true;
		}
	}
	return false;
}

void shm_close(struct shm *shm)
{
	if (!shm)
		return;
	if (!shm->has_ended && has_lent(shm))
		end(shm);
	for (uint32_t i = 0; shm->peers && i < shm->peer_count; i++)
		peer_close(shm, &shm->peers[i]);
	shm_slots_fini(&shm->slots);
	shm_parcels_fini(&shm->parcels);
	if (shm->wakeup >= 0)
		close(shm->wakeup);
	free(shm->local_of);
	free(shm->peers);
	free(shm);
}

/* ---- peers come and go ---- */

bool shm_has_ended(struct shm *shm)
{
	if (!shm->has_ended && shm->user->failed(shm->context) != ESP_OK)
		end(shm);
	return shm->has_ended;
}

/* Other threads may hold the number of an earlier one, which therefore stays open under it. */
static void peer_set_wake_fd(struct peer *peer, int wake_fd)
{
	int earlier = atomic_load_explicit(&peer->wake_fd, memory_order_relaxed);

	if (earlier >= 0 && dup3(wake_fd, earlier, O_CLOEXEC) == earlier)
		close(wake_fd);
	else
		atomic_store_explicit(&peer->wake_fd, wake_fd, memory_order_release);
}

void shm_adopt(struct shm *shm, uint32_t local, const struct segment_view *view, int wake_fd)
{
	struct peer *peer = &shm->peers[local];

	assert(local < shm->peer_count && local != shm->self && view->peer == local && !peer->view && wake_fd >= 0);
	peer->view = view;
	peer->taken = view_at(view, layout_taken(shm->layout, shm->lane, shm->self));
	peer->doze = view_at(view, layout_doze(shm->layout, shm->lane));
	peer->storing = view_at(view, layout_storing(shm->layout, shm->lane));
	peer->from_replies = view_at(view, layout_replies(shm->layout, shm->lane, shm->self));
	if (!peer->is_lost)
		peer->from = view_at(view, layout_ring(shm->layout, shm->lane, shm->self));
	peer_set_wake_fd(peer, wake_fd);
}

enum esp_status shm_readmit(struct shm *shm, uint32_t number, struct error *err)
{
	struct peer *peer =
		number < shm->user_peers && shm->local_of[number] != UINT32_MAX ? &shm->peers[shm->local_of[number]] : NULL;

	assert(peer && peer->local != shm->self);
	if (shm->has_ended || !peer->is_lost)
		return ESP_OK;
	if (!shm_peer_clear_marks(shm, peer))
		return error_set(err, ESP_ENOMEM, "no memory to take peer %u back", number);
	memset(peer->to, 0, LAYOUT_RING * LAYOUT_DESCRIPTOR_BYTES);
	memset(peer->to_replies, 0, LAYOUT_RING * sizeof(uint64_t));
	atomic_store_explicit(peer->our_taken, 0, memory_order_relaxed);
	peer->view = NULL;
	peer->from = NULL;
	peer->from_replies = NULL;
	peer->taken = peer->storing = NULL;
	peer->from_position = peer->to_position = peer->to_taken = 0;
	peer->stands_at = 0;
	peer->tell = 0;
	peer->wants = peer->holds = peer->is_lost = false;
	full_fence(); /* all of it is there before the peer is given the descriptor again */
	return ESP_OK;
}

/*
 * The peer may be alive, and read: what was left for it is marked as taken back before slots
 * are used again. It learns of it as if we had left.
 */
void shm_peer_lose(struct shm *shm, struct peer *peer, enum esp_status why)
{
	if (peer->is_lost || shm_has_ended(shm))
		return;
	peer->is_lost = true;
	peer->from = NULL;
	peer->wants = peer->holds = false;
	shm_peer_take_back(shm, peer);
	shm_peer_put_end(shm, peer);
	shm->moved++;
	shm->user->lost(shm->context, peer->number, why);
	shm_has_ended(shm);
}

void shm_drop(struct shm *shm, uint32_t peer, enum esp_status why)
{
	if (peer >= shm->user_peers || shm->local_of[peer] == UINT32_MAX)
		return;
	shm_peer_lose(shm, &shm->peers[shm->local_of[peer]], why);
	tell_all(shm);
}

void shm_forget(struct shm *shm, uint16_t channel)
{
	if (shm->has_ended)
		return;
	for (uint32_t i = 0; i < shm->peer_count; i++) {
		struct peer *peer = &shm->peers[i];
		struct flow *flow = shm_flows_find(&peer->flows, channel);

		if (peer->holds && peer->held.channel == channel)
			peer->holds = false;
		if (!flow)
			continue;
		shm_flows_remove(&peer->flows, flow);
		shm_peer_forget_offered(shm, peer, flow);
		shm_peer_forget_sent(shm, peer, flow);
		if (!flow->is_sending)
			shm_flow_free(flow);
	}
	shm_slots_forget(&shm->slots, channel);
	full_fence(); /* the user writes into its memory from here on */
	tell_all(shm);
}

/* ---- turns ---- */

/* Peers that there are messages for. */
static void collect_ready(struct shm *shm)
{
	uint32_t number;

	while ((number = shm->user->ready(shm->context)) != UINT32_MAX) {
		assert(number < shm->user_peers && shm->local_of[number] != UINT32_MAX);
		struct peer *peer = &shm->peers[shm->local_of[number]];

		peer->wants = !peer->is_lost;
	}
}

static void take_turns(struct shm *shm)
{
	for (uint32_t i = 0; i < shm->peer_count && !shm->has_ended; i++) {
		struct peer *peer = &shm->peers[i];

		if (peer->from && ring_has_news(peer->from, peer->from_position))
			shm_peer_receive(shm, peer);
		if (peer->brief_slot != SLOT_NONE && !shm->has_ended)
			shm_peer_settle_brief(shm, peer);
		if (peer->flows.sending && !shm->has_ended)
			shm_peer_settle(shm, peer);
	}
}

static void pull(struct shm *shm)
{
	collect_ready(shm);
	for (uint32_t i = 0; i < shm->peer_count && !shm->has_ended; i++) {
		struct peer *peer = &shm->peers[i];

		if (peer->wants && peer->view)
			shm_peer_pull(shm, peer);
	}
}

void shm_hand_over(struct shm *shm)
{
	/*
	 * Messages that they have consumed make room for more: without this check ranks send a window at a time, and wait
	 * for each other in between (two ranks on two cores took 1.5 times as long for 100 MiB). Where a rank has several
	 * lanes the others work meanwhile, and there is nothing to gain.
	 */
	for (uint32_t i = 0; i < shm->peer_count && shm->is_only_lane && !shm->has_ended; i++) {
		if (shm->peers[i].flows.sending)
			shm_peer_settle(shm, &shm->peers[i]);
	}
	if (!shm->has_ended)
		pull(shm);
	for (uint32_t i = 0; i < shm->peer_count && !shm->has_ended; i++) {
		if (shm->peers[i].flows.receiving)
			shm_peer_publish(shm, &shm->peers[i]);
	}
	tell_all(shm);
}

unsigned shm_poll(struct shm *shm)
{
	shm->moved = 0;
	if (shm->has_ended || shm_has_ended(shm))
		return shm->moved;
	take_turns(shm);
	shm_hand_over(shm); /* messages that came in make others to send */
	return shm->moved;
}

/* ---- sleeping ---- */

static bool peer_has_news(struct shm *shm, struct peer *peer)
{
	if (peer->brief_slot != SLOT_NONE)
		shm_peer_settle_brief(shm, peer); /* others may wait for that slot */
	return (peer->from && ring_has_news(peer->from, peer->from_position)) ||
	       (peer->wants && peer->view && shm_peer_can_pull(shm, peer)) || shm_peer_has_consumed(peer) ||
	       shm_peer_has_to_publish(shm, peer);
}

static bool has_news(struct shm *shm)
{
	bool news = false;

	for (uint32_t i = 0; i < shm->peer_count && !shm->has_ended && !news; i++)
		news = peer_has_news(shm, &shm->peers[i]);
	return news;
}

static bool waits_for_room(const struct shm *shm)
{
	bool waits = false;

	for (uint32_t i = 0; i < shm->peer_count && !waits; i++)
		waits = shm->peers[i].wants;
	return waits;
}

bool shm_doze(struct shm *shm)
{
	if (shm->has_ended)
		return true;
	if (shm->user->failed(shm->context) != ESP_OK)
		return false;
	collect_ready(shm);
	atomic_store_explicit(shm->doze, DOZE_NEWS | (waits_for_room(shm) ? DOZE_ROOM : 0), memory_order_relaxed);
	full_fence();
	shm->moved = 0; /* a peer may turn out to be lost */
	if (!has_news(shm) && shm->moved == 0)
		return true;
	atomic_store_explicit(shm->doze, 0, memory_order_relaxed);
	return false;
}

void shm_rouse(struct shm *shm)
{
	uint64_t count;

	atomic_store_explicit(shm->doze, 0, memory_order_relaxed);
	ssize_t got = read(shm->wakeup, &count, sizeof(count));
	(void)got;
}

int shm_descriptor(const struct shm *shm)
{
	return shm->wakeup;
}

struct shm_stats shm_stats(const struct shm *shm)
{
	struct shm_stats stats = shm->stats;

	stats.slots_most = shm->slots.taken_most;
	return stats;
}
