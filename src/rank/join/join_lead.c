#include <inttypes.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clip.h"
#include "base/clock.h"
#include "node/net/listen.h"
#include "node/net/resolve.h"
#include "rank/join/join_guest.h"
#include "rank/join/join_parts.h"
#include "rank/join/launcher.h"
#include "rank/join/leader_listen.h"
#include "rank/join/rendezvous.h"

#define UNPROVEN_MAX 128u             /* most unproved connections at a time */
#define UNPROVEN_NS (5 * NS_PER_S)    /* longest time to a proof */
/* an unproved connection this old may be closed for a new one: a proof takes two round trips */
#define EVICT_NS (100 * NS_PER_MS)
#define NODE_INFO_NS (5 * NS_PER_S)        /* from the proof to the node info */
#define FAREWELL_NS (1 * NS_PER_S)    /* to send the last message */
#define PAUSE_NS (50 * NS_PER_MS)     /* between attempts to accept while there is no slot */

/* Whether a rank is counted in `served`. */
enum rank_served {
	SERVED_NOT,
	SERVED_GUEST, /* once for every connection that has brought its node info */
	SERVED_ENDED, /* once, as its process has ended; a connection of it may remain */
};

struct leader {
	struct join_config *config;
	struct handshake_config handshake;
	struct rendezvous rendezvous;
	struct leader_listen listen;
	struct join_post post;
	struct launcher launcher;
	struct guest *guests; /* UNPROVEN_MAX unproved ones and as many ranks as there can be */
	struct pollfd *polls; /* the listening sockets', then the guests': polled[i] is the guest of polls[i] */
	struct guest **polled;
	uint32_t capacity, unproven;
	uint32_t served;      /* ranks that were answered, were refused, went away or will never come */
	uint8_t *rank_served; /* by rank: enum rank_served */
	uint8_t *ended;       /* by rank: as the launcher reports it; ended_msg.h */
	uint8_t *roster;      /* body of the answer */
	uint8_t failure[RENDEZVOUS_FAILURE_BYTES];
	struct session_message answer;
	bool has_answer;
	bool is_called_off;
	uint32_t left;          /* a rank below config->kin whose connection has ended */
	uint64_t left_until_ns; /* end of the time to learn why; 0: no such rank */
	uint64_t told;        /* number of events known at the last call of config->progress */
	uint64_t broken_until_ns, pause_until_ns;
};

static void release(struct leader *leader, struct guest *guest)
{
	if (guest->state == GUEST_UNPROVEN)
		leader->unproven--;
	guest_close(guest);
}

/* The slot for a new connection: an empty one, or the oldest unproved one's. NULL: none is free now. */
static struct guest *find_slot(struct leader *leader, uint64_t now_ns)
{
	struct guest *empty = NULL, *oldest = NULL;
	for (uint32_t i = 0; i < leader->capacity; i++) {
		struct guest *guest = &leader->guests[i];
		if (guest->state == GUEST_FREE && !empty)
			empty = guest;
		if (guest->state == GUEST_UNPROVEN && (!oldest || guest->since_ns < oldest->since_ns))
			oldest = guest;
	}
	if (leader->unproven < UNPROVEN_MAX && empty)
		return empty;
	if (!oldest || now_ns - oldest->since_ns < EVICT_NS)
		return NULL;
	release(leader, oldest);
	return oldest;
}

static void accept_guests(struct leader *leader, uint64_t now_ns)
{
	for (;;) {
		struct guest *slot = find_slot(leader, now_ns);
		int fd = slot ? leader_listen_accept(&leader->listen) : -2;
		if (fd == -2)
			leader->pause_until_ns = now_ns + PAUSE_NS;
		if (fd < 0)
			return;
		guest_open(slot, &leader->handshake, fd, now_ns, now_ns + UNPROVEN_NS);
		leader->unproven++;
	}
}

/*
 * Counts a served rank. Two processes that claim one rank are two to be told; but a process that the launcher
 * has seen end is the one of the rank's first connection.
 */
static void serve(struct leader *leader, uint32_t rank)
{
	bool known = rank < leader->rendezvous.size;
	if (rank == 0)
		return; /* a second rank 0 is not waited for */
	if (!known || leader->rank_served[rank] != SERVED_ENDED)
		leader->served++;
	if (known)
		leader->rank_served[rank] = SERVED_GUEST;
}

static void on_stranger(struct leader *leader, struct guest *guest, const struct error *why)
{
	char origin[RENDEZVOUS_ORIGIN];
	if (rendezvous_on_stranger(&leader->rendezvous, guest_origin(guest, origin)))
		log_write(leader->config->log, LOG_LEVEL_WARN, LOG_JOIN,
		          "refused a connection from %s: %s; further ones are only counted", origin, why->text);
}

static void on_other(struct leader *leader, struct guest *guest, const struct error *why)
{
	char origin[RENDEZVOUS_ORIGIN];
	if (rendezvous_on_other(&leader->rendezvous, guest_origin(guest, origin)))
		log_write(leader->config->log, LOG_LEVEL_WARN, LOG_JOIN,
		          "refused a connection from %s: %s; further ones are only counted", origin, why->text);
}

/* The handshake proved a peer that does not fit; the verdict that is still to be sent tells it. */
static void on_refused(struct leader *leader, struct guest *guest, const struct error *why, uint64_t now_ns)
{
	uint32_t rank = guest->session.handshake.peer.from;
	leader->unproven--;
	guest->state = GUEST_REFUSED;
	guest->until_ns = now_ns + FAREWELL_NS;
	if (rendezvous_on_mismatch(&leader->rendezvous, guest->session.handshake.verdict, rank, why))
		serve(leader, rank);
	else
		on_other(leader, guest, why);
}

static void answer_guest(struct leader *leader, struct guest *guest, uint64_t now_ns)
{
	session_post(&guest->session, &leader->answer);
	guest->state = GUEST_ANSWERED;
	guest->until_ns = leader->config->deadline_ns > now_ns + FAREWELL_NS ? leader->config->deadline_ns
	                                                                     : now_ns + FAREWELL_NS;
}

static void make_failure(const struct error *error, int32_t culprit, uint8_t out[RENDEZVOUS_FAILURE_BYTES])
{
	struct rendezvous_failure failure = {.status = error->status, .culprit = culprit < 0 ? RENDEZVOUS_NOBODY
	                                     : (uint32_t)culprit};
	clip(failure.text, sizeof(failure.text), "%s", error->text);
	rendezvous_failure_encode(&failure, out);
}

/* Refuses a rank of another job with the same key. Its node info was read, so the reason can take its place. */
static void turn_away(struct leader *leader, struct guest *guest, const struct rendezvous_arrival *arrival,
                      uint64_t now_ns)
{
	struct session_message message;
	struct error reason;
	join_other_job(arrival->info.rank, arrival->job, leader->config->launch.job, &reason);
	on_other(leader, guest, &reason);
	make_failure(&reason, (int32_t)arrival->info.rank, guest->inbox);
	session_message_init(&message, RENDEZVOUS_AWAY, guest->inbox, RENDEZVOUS_FAILURE_BYTES);
	session_post(&guest->session, &message);
	guest->state = GUEST_REFUSED;
	guest->until_ns = now_ns + FAREWELL_NS;
}

static void on_node_info(struct leader *leader, struct guest *guest, uint64_t now_ns)
{
	struct rendezvous_arrival arrival;
	const struct hello *peer = &guest->session.handshake.peer;
	bool decoded = rendezvous_arrival_decode(guest->inbox, &arrival);
	if (memcmp(peer->job, leader->handshake.hello.job, HELLO_JOB_BYTES) != 0) {
		if (decoded)
			turn_away(leader, guest, &arrival, now_ns);
		else
			release(leader, guest);
		return;
	}
	if (!decoded) {
		struct error reason;
		error_set(&reason, ESP_ECORRUPT, "the node info of rank %u is damaged", peer->from);
		rendezvous_on_mismatch(&leader->rendezvous, HELLO_NOT_YOU, peer->from, &reason);
	} else {
		rendezvous_on_arrival(&leader->rendezvous, peer->from, &arrival, now_ns);
	}
	guest->state = GUEST_ARRIVED;
	if (leader->has_answer)
		answer_guest(leader, guest, now_ns); /* joining has ended: only the reason is left */
}

/* Other ranks can reach the leader at the address where this rank reached it. */
static void on_proved(struct leader *leader, struct guest *guest, uint64_t now_ns)
{
	union resolve_address own = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(own);
	leader->unproven--;
	guest->state = GUEST_PROVEN;
	guest->until_ns = now_ns + NODE_INFO_NS;
	if (getsockname(guest->fd, &own.any, &length) == 0)
		listen_prefer_address(&leader->rendezvous.nodes[0], &own.any);
}

/*
 * A rank went away before all had arrived. A rank below kin learns by itself that joining is called off; it may
 * have learned it before the leader, and is then not at fault.
 */
static void on_left(struct leader *leader, uint32_t rank)
{
	if (!leader->config->is_called_off || rank >= leader->config->kin) {
		rendezvous_on_left(&leader->rendezvous, rank);
		return;
	}
	rendezvous_withdraw(&leader->rendezvous, rank);
	if (leader->left_until_ns == 0) {
		leader->left = rank;
		leader->left_until_ns = clock_now_ns() + FAREWELL_NS;
	}
}

/* The connection of a guest ended. */
static void on_end(struct leader *leader, struct guest *guest, enum esp_status status, const struct error *why)
{
	switch (guest->state) {
	case GUEST_UNPROVEN:
		if (status == ESP_ECORRUPT) /* a connection that closes without a proof is not worth a line in the log */
			on_stranger(leader, guest, why);
		break;
	case GUEST_ARRIVED:
		serve(leader, guest->session.handshake.peer.from);
		if (leader->rendezvous.state == RENDEZVOUS_GATHERS)
			on_left(leader, guest->session.handshake.peer.from);
		break;
	case GUEST_ANSWERED:
		serve(leader, guest->session.handshake.peer.from);
		break;
	case GUEST_FREE:
	case GUEST_PROVEN:
	case GUEST_REFUSED:
		break;
	}
	release(leader, guest);
}

static void read_guest(struct leader *leader, struct guest *guest, uint64_t now_ns)
{
	struct error why;
	if (guest->state == GUEST_ARRIVED || guest->state == GUEST_ANSWERED || guest->state == GUEST_REFUSED) {
		if (!guest_is_there(guest))
			on_end(leader, guest, ESP_ELINK, NULL);
		return;
	}
	enum esp_status status = join_receive(guest->fd, &guest->session, &why);
	if (guest->state == GUEST_UNPROVEN && guest->session.proved)
		on_proved(leader, guest, now_ns);
	if (status == ESP_OK)
		on_node_info(leader, guest, now_ns);
	else if (status == ESP_EMISMATCH)
		on_refused(leader, guest, &why, now_ns);
	else if (status != ESP_PENDING)
		on_end(leader, guest, status, &why);
}

static void write_guest(struct leader *leader, struct guest *guest)
{
	struct error why;
	enum esp_status status = join_send(guest->fd, &guest->session, &why);
	if (status == ESP_OK && (guest->state == GUEST_ANSWERED || guest->state == GUEST_REFUSED))
		on_end(leader, guest, ESP_OK, NULL);
	else if (status < 0)
		on_end(leader, guest, ESP_ELINK, &why);
}

/* After the time limit, and after another process's announcement replaced this one's, no further rank can come. */
static bool is_closed(const struct leader *leader)
{
	bool is_replaced = leader->config->launch.place.kind != ANNOUNCE_NOWHERE && !leader->post.posted;
	return leader->rendezvous.error.status == ESP_ETIMEOUT || is_replaced;
}

/* The rendezvous is complete or broken: answers all ranks that wait. */
static void make_answer(struct leader *leader, uint64_t now_ns)
{
	const struct rendezvous *rendezvous = &leader->rendezvous;
	if (rendezvous->state == RENDEZVOUS_COMPLETE) {
		rendezvous_write_roster(rendezvous, leader->roster);
		session_message_init(&leader->answer, RENDEZVOUS_ROSTER, leader->roster, rendezvous->size * NODE_INFO_BYTES);
	} else {
		make_failure(&rendezvous->error, rendezvous->culprit, leader->failure);
		session_message_init(&leader->answer, RENDEZVOUS_FAILURE, leader->failure, RENDEZVOUS_FAILURE_BYTES);
		/*
		 * Ranks that are still to come shall hear the reason too, but the leader does not wait for ranks that
		 * never come.
		 */
		uint64_t farewell = now_ns + FAREWELL_NS, deadline = leader->config->deadline_ns;
		bool is_short = is_closed(leader) || leader->is_called_off || deadline < farewell;
		leader->broken_until_ns = is_short ? farewell : deadline;
	}
	leader->has_answer = true;
	for (uint32_t i = 0; i < leader->capacity; i++)
		if (leader->guests[i].state == GUEST_ARRIVED)
			answer_guest(leader, &leader->guests[i], now_ns);
}

static uint32_t count_waiting(const struct leader *leader)
{
	uint32_t waiting = 0;
	for (uint32_t i = 0; i < leader->capacity; i++)
		waiting += leader->guests[i].state == GUEST_ANSWERED || leader->guests[i].state == GUEST_REFUSED;
	return waiting;
}

/* True if all ranks were served that do not learn the reason by themselves. */
static bool all_others_served(const struct leader *leader)
{
	for (uint32_t rank = leader->config->kin; rank < leader->rendezvous.size; rank++)
		if (leader->rank_served[rank] == SERVED_NOT)
			return false;
	return true;
}

static bool is_over(const struct leader *leader, uint64_t now_ns)
{
	if (leader->rendezvous.state == RENDEZVOUS_GATHERS)
		return false;
	bool all_told = count_waiting(leader) == 0;
	if (leader->rendezvous.state == RENDEZVOUS_COMPLETE)
		return all_told;
	if (now_ns >= leader->broken_until_ns)
		return true;
	return all_told && (is_closed(leader) || (leader->is_called_off && all_others_served(leader)) ||
	                    leader->served >= leader->rendezvous.size - 1);
}

static void expire(struct leader *leader, uint64_t now_ns)
{
	for (uint32_t i = 0; i < leader->capacity; i++) {
		struct guest *guest = &leader->guests[i];
		if (guest->state != GUEST_FREE && guest->state != GUEST_ARRIVED && now_ns >= guest->until_ns)
			on_end(leader, guest, ESP_ETIMEOUT, NULL);
	}
}

/* Fills the list for poll(2), and finds the earliest deadline. */
static uint32_t list_polls(struct leader *leader, uint64_t now_ns, uint64_t *out_until_ns)
{
	uint32_t count = 0;
	uint64_t until = leader->has_answer ? leader->broken_until_ns : leader->rendezvous.deadline_ns;
	if (leader->rendezvous.state == RENDEZVOUS_COMPLETE)
		until = UINT64_MAX;
	if (leader->rendezvous.state != RENDEZVOUS_COMPLETE && leader->launcher.next_ns < until)
		until = leader->launcher.next_ns;
	if (leader->rendezvous.state == RENDEZVOUS_GATHERS && leader->post.next_ns < until)
		until = leader->post.next_ns;
	if (leader->rendezvous.state != RENDEZVOUS_COMPLETE && !leader->is_called_off)
		until = join_look_until(leader->config, now_ns, until);
	bool paused = now_ns < leader->pause_until_ns;
	if (paused && leader->pause_until_ns < until)
		until = leader->pause_until_ns;
	for (uint32_t i = 0; i < leader->listen.count && !paused; i++)
		leader->polls[count++] = (struct pollfd){leader->listen.fds[i], POLLIN, 0};
	for (uint32_t i = 0; i < leader->capacity; i++) {
		struct guest *guest = &leader->guests[i];
		if (guest->state == GUEST_FREE)
			continue;
		leader->polled[count] = guest;
		leader->polls[count++] = (struct pollfd){guest->fd, (short)(POLLIN | (guest_has_output(guest) ? POLLOUT : 0)),
		                                         0};
		if (guest->state != GUEST_ARRIVED && guest->until_ns < until)
			until = guest->until_ns;
	}
	*out_until_ns = until;
	return count;
}

static void turn(struct leader *leader, uint64_t now_ns)
{
	uint64_t until;
	uint32_t listen = now_ns < leader->pause_until_ns ? 0 : leader->listen.count;
	uint32_t count = list_polls(leader, now_ns, &until);
	if (poll(leader->polls, count, join_wait_ms(now_ns, until)) <= 0)
		return;
	now_ns = clock_now_ns();
	for (uint32_t i = listen; i < count; i++) {
		struct guest *guest = leader->polled[i];
		if (leader->polls[i].revents & (POLLIN | POLLERR | POLLHUP))
			read_guest(leader, guest, now_ns);
		if (guest->state != GUEST_FREE && guest_has_output(guest))
			write_guest(leader, guest);
	}
	if (listen)
		accept_guests(leader, now_ns);
}

/* A rank whose process ended before it arrived is neither waited for nor told. */
static void ask_launcher(struct leader *leader, uint64_t now_ns)
{
	uint32_t count = launcher_turn(&leader->launcher, now_ns, leader->ended, leader->rendezvous.size);
	for (uint32_t rank = 0; rank < count; rank++) {
		int status = ended_get(leader->ended, rank);
		if (status == ENDED_NOT || leader->rendezvous.arrived[rank] || leader->rank_served[rank] != SERVED_NOT)
			continue;
		rendezvous_on_ended(&leader->rendezvous, rank, status);
		leader->rank_served[rank] = SERVED_ENDED;
		leader->served++;
	}
}

/* Another process may have announced itself as rank 0: ranks would not find this one. */
static void check_announcement(struct leader *leader, uint64_t now_ns)
{
	struct error reason;
	if (leader->rendezvous.state == RENDEZVOUS_GATHERS && !join_post_turn(&leader->post, now_ns, &reason))
		rendezvous_on_rival(&leader->rendezvous, &reason);
}

/* Also after a failure: ranks below kin learn of it by themselves and do not come to be told. */
static void check_called_off(struct leader *leader, uint64_t now_ns)
{
	struct error reason;
	int32_t culprit = -1;
	bool looks = leader->rendezvous.state != RENDEZVOUS_COMPLETE && !leader->is_called_off;
	if (!looks || !join_is_called_off(leader->config, &culprit, &reason))
		return;
	leader->is_called_off = true;
	rendezvous_on_called_off(&leader->rendezvous, culprit, &reason);
	if (leader->has_answer && now_ns + FAREWELL_NS < leader->broken_until_ns)
		leader->broken_until_ns = now_ns + FAREWELL_NS;
}

/* No reason was heard in time: the rank that left is at fault. */
static void check_left(struct leader *leader, uint64_t now_ns)
{
	if (leader->left_until_ns == 0 || now_ns < leader->left_until_ns)
		return;
	leader->left_until_ns = 0;
	if (leader->rendezvous.state == RENDEZVOUS_GATHERS)
		rendezvous_on_left(&leader->rendezvous, leader->left);
}

/* Reports the arrived and the refused ranks. */
static void report_progress(struct leader *leader)
{
	const struct rendezvous *rendezvous = &leader->rendezvous;
	uint64_t known = rendezvous->present + rendezvous->strangers.count + rendezvous->others.count;
	char text[RENDEZVOUS_WAIT_TEXT];
	if (!leader->config->progress || rendezvous->state != RENDEZVOUS_GATHERS || known == leader->told)
		return;
	leader->told = known;
	join_tell(leader->config, "%s", rendezvous_wait_text(rendezvous, text));
}

static void lead(struct leader *leader)
{
	for (;;) {
		uint64_t now = clock_now_ns();
		check_announcement(leader, now);
		if (leader->rendezvous.state != RENDEZVOUS_COMPLETE)
			ask_launcher(leader, now);
		check_called_off(leader, now);
		check_left(leader, now);
		rendezvous_on_tick(&leader->rendezvous, now);
		expire(leader, now);
		if (leader->rendezvous.state != RENDEZVOUS_GATHERS && !leader->has_answer)
			make_answer(leader, now);
		if (is_over(leader, now))
			return;
		report_progress(leader);
		turn(leader, now);
	}
}

/* Another process listens at the leader's port. A rank 0 of the same job tells all its ranks, and this process. */
static enum esp_status on_taken(void *context, const struct resolved *found, struct error *err)
{
	return join_ask_rival(context, found, err) ? ESP_EMISMATCH : ESP_PENDING;
}

static enum esp_status open_listener(struct leader *leader, struct error *err)
{
	struct join_config *config = leader->config;
	struct leader_listen_options options = {.backlog = config->backlog, .taken = on_taken, .context = config};
	uint16_t port = 0;
	enum esp_status status = ESP_OK;
	if (config->listening) {
		leader_listen_take(&leader->listen, *config->listening);
		*config->listening = -1;
	} else if (config->launch.place.kind == ANNOUNCE_NOWHERE) {
		status = leader_listen_open(&leader->listen, &config->launch.leader, &options, config->deadline_ns, err);
	} else {
		status = leader_listen_open_anywhere(&leader->listen, &options, &port, err);
	}
	return status == ESP_OK ? join_post_open(&leader->post, config, port, err) : status;
}

static enum esp_status leader_init(struct leader *leader, struct join_config *config, struct error *err)
{
	uint32_t size = config->launch.size;
	*leader = (struct leader){.config = config, .capacity = UNPROVEN_MAX + size};
	join_listener(config, 1u << HELLO_RENDEZVOUS, 0, &leader->handshake);
	launcher_init(&leader->launcher, config->launch.launcher, clock_now_ns());
	enum esp_status status =
		rendezvous_init(&leader->rendezvous, &config->info, config->settings, clock_now_ns(), config->deadline_ns, err);
	if (status != ESP_OK)
		return status;
	leader->guests = calloc(leader->capacity, sizeof(*leader->guests));
	leader->polls = calloc(leader->capacity + LEADER_LISTEN_SOCKETS, sizeof(*leader->polls));
	leader->polled = calloc(leader->capacity + LEADER_LISTEN_SOCKETS, sizeof(struct guest *));
	leader->roster = malloc((size_t)size * NODE_INFO_BYTES);
	leader->rank_served = calloc(size, 1);
	leader->ended = malloc((size_t)size * ENDED_BYTES);
	if (!leader->rank_served || !leader->ended || !leader->guests || !leader->polls || !leader->polled ||
	    !leader->roster)
		return error_set(err, ESP_ENOMEM, "no memory for the connections of %u ranks", size);
	return open_listener(leader, err);
}

static void leader_fini(struct leader *leader)
{
	for (uint32_t i = 0; leader->guests && i < leader->capacity; i++)
		if (leader->guests[i].state != GUEST_FREE)
			release(leader, &leader->guests[i]);
	leader_listen_close(&leader->listen);
	launcher_fini(&leader->launcher);
	rendezvous_fini(&leader->rendezvous);
	free(leader->guests);
	free(leader->polls);
	free(leader->polled);
	free(leader->roster);
	free(leader->rank_served);
	free(leader->ended);
	sodium_memzero(leader, sizeof(*leader));
}

enum esp_status join_lead(struct join_config *config, struct roster *out, int32_t *out_culprit, struct error *err)
{
	struct leader leader;
	enum esp_status status = leader_init(&leader, config, err);
	if (status == ESP_EMISMATCH || status == ESP_ELINK)
		*out_culprit = 0; /* a second rank 0; or this one, which cannot be reached */
	if (status == ESP_OK) {
		lead(&leader);
		if (leader.rendezvous.state == RENDEZVOUS_COMPLETE)
			status = roster_decode(leader.roster, config->launch.size, out, err);
		else
			status = error_set(err, leader.rendezvous.error.status, "%s", leader.rendezvous.error.text);
		*out_culprit = leader.rendezvous.culprit;
		join_post_close(&leader.post, leader.rendezvous.state == RENDEZVOUS_COMPLETE ? NULL : &leader.rendezvous.error);
		if (leader.rendezvous.strangers.count + leader.rendezvous.others.count > 1)
			log_write(config->log, LOG_LEVEL_INFO, LOG_JOIN, "refused %" PRIu64 " connections",
			          leader.rendezvous.strangers.count + leader.rendezvous.others.count);
	}
	leader_fini(&leader);
	return status;
}
