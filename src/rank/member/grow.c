#include "rank/member/grow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clip.h"
#include "node/net/listen.h"
#include "rank/member/grow_vote.h"
#include "rank/rank.h"

/* ---- where ---- */

/* The address of a rank that others reach it at. */
static enum esp_status own_address(const struct rank *context, struct sockaddr_storage *out, struct failure *failure)
{
	const struct node_info *card = &context->roster.nodes[context->rank];

	if (card->address_count == 0)
		return rank_failure_set(failure, ESP_ESTATE, -1, "this rank listens nowhere: a job of one rank has no door");
	(void)node_info_socket_name(card, 0, out);
	return ESP_OK;
}

static void write_address(const struct sockaddr_storage *name, struct address *out)
{
	if (name->ss_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, name, sizeof(v4));
		inet_ntop(AF_INET, &v4.sin_addr, out->host, sizeof(out->host));
		out->port = ntohs(v4.sin_port);
	} else {
		struct sockaddr_in6 v6;

		memcpy(&v6, name, sizeof(v6));
		inet_ntop(AF_INET6, &v6.sin6_addr, out->host, sizeof(out->host));
		out->port = ntohs(v6.sin6_port);
	}
}

enum esp_status rank_join_address(const struct rank *context, char text[JOIN_ADDRESS_TEXT], struct failure *failure)
{
	struct sockaddr_storage name = {0};
	struct address address;
	enum esp_status status = own_address(context, &name, failure);

	if (status != ESP_OK)
		return status;
	write_address(&name, &address);
	address.port = context->joining.port;
	address_format(&address, text);
	return ESP_OK;
}

/* At a port that is set, the last first, as ranks take the first; or at any. -1 and errno. */
static int listen_at_free(const struct conf *conf, struct sockaddr_storage *name)
{
	int fd = -1;

	if (conf->port.first == 0)
		return listen_at(name, 0, false, conf->segment_bytes);
	errno = EADDRINUSE;
	for (uint32_t port = conf->port.last; port >= conf->port.first && fd < 0 && errno == EADDRINUSE; port--)
		fd = listen_at(name, (uint16_t)port, false, conf->segment_bytes);
	return fd;
}

/*
 * Opens the listener where all can join. It listens from now on: no other process can take the port, and ranks that
 * come before the leader is ready wait. Returns 0, or errno.
 */
static int find_place(const struct rank *context, int *out_fd, char text[JOIN_ADDRESS_TEXT])
{
	struct sockaddr_storage name = {0};
	struct address address;
	struct failure unused;

	if (own_address(context, &name, &unused) != ESP_OK)
		return EADDRNOTAVAIL;
	int fd = listen_at_free(&context->conf, &name);
	if (fd < 0)
		return errno;
	write_address(&name, &address);
	address.port = listen_port(fd);
	address_format(&address, text);
	*out_fd = fd;
	return 0;
}

/* ---- letting in ---- */

/* The offer of a member, to all others. */
struct offer {
	uint64_t waiting; /* joiners at its join address */
	uint64_t most;    /* joiners that it lets in */
	uint64_t port;    /* the only one that it may listen on; 0: there are others */
	uint64_t is_full; /* it has as many groups as there can be */
	uint64_t why;     /* the first member's: it has no place to join, by errno; 0: it has */
	char place[JOIN_ADDRESS_TEXT]; /* and where that is */
};

struct invitation {
	struct control_msg msg;
	uint32_t count;
};

static void invite(void *argument, void *command)
{
	struct rank *context = argument;
	struct invitation *invitation = command;

	uint32_t invited = control_invite(context->control, &invitation->msg, invitation->count);
	if (invited < invitation->count) /* it will be missed when all join */
		log_write(&context->log, LOG_LEVEL_WARN, LOG_JOIN, "%u of %u newcomers went away before they were let in",
		          invitation->count - invited, invitation->count);
	free(invitation);
}

static enum esp_status send_invitations(const struct comm *group, uint32_t first_rank, uint32_t count, uint32_t size,
                                        const char *leader, struct failure *failure)
{
	struct rank *context = group->context;
	struct invitation *invitation = count ? calloc(1, sizeof(*invitation)) : NULL;

	if (count == 0)
		return ESP_OK;
	if (!invitation)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for an invitation");
	invitation->count = count;
	invitation->msg = (struct control_msg){
		.type = CONTROL_INVITE,
		.from = context->rank,
		.about = first_rank,
		.channel = group->channel,
		.invite = {.size = size, .epoch = context->join.launch.epoch + 1},
	};
	/* a number */
	snprintf(invitation->msg.invite.leader, sizeof(invitation->msg.invite.leader), "%.*s", (int)CONTROL_TEXT - 1,
	         leader);
	if (control_run(context->control, invite, invitation))
		return ESP_OK;
	free(invitation);
	return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for an invitation");
}

/* A command about joiners for the control thread; its caller waits for it. */
struct joiners_cmd {
	enum { JOINERS_ASK, JOINERS_PROMISE, JOINERS_RELEASE, JOINERS_REFUSE } what;
	uint32_t channel, most;
	const struct control_msg *refusal; /* to joiners that were let in */
	uint32_t count;                    /* written: joiners that are promised */
	bool is_told;                      /* written; guarded by context->lock    */
};

static void tell(void *argument, void *command)
{
	struct rank *context = argument;
	struct joiners_cmd *cmd = command;

	if (cmd->what == JOINERS_ASK)
		control_ask_joiners(context->control);
	else if (cmd->what == JOINERS_PROMISE)
		cmd->count = control_promise(context->control, cmd->channel, cmd->most);
	else if (cmd->what == JOINERS_RELEASE)
		control_release(context->control, cmd->channel);
	else
		control_uninvite(context->control, cmd->refusal);
	pthread_mutex_lock(&context->lock);
	cmd->is_told = true;
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
}

/* False: no memory. */
static bool tell_joiners(struct rank *context, struct joiners_cmd *cmd)
{
	if (!control_run(context->control, tell, cmd))
		return false;
	pthread_mutex_lock(&context->lock);
	while (!cmd->is_told)
		rank_wait(context, clock_now_ns() + NS_PER_S);
	pthread_mutex_unlock(&context->lock);
	return true;
}

/*
 * Counts the joiners at our join address that answer. One that does not, as it is stopped or its host is gone, would be
 * waited for when all join. The joiners are promised to this group, so that another one that grows meanwhile does not
 * count on them, too.
 */
static uint32_t count_joiners(const struct comm *group, uint32_t most, uint64_t patience_ns)
{
	struct rank *context = group->context;
	struct control *control = context->control;
	struct joiners_cmd ask = {.what = JOINERS_ASK},
	                   promise = {.what = JOINERS_PROMISE, .channel = group->channel, .most = most};
	uint64_t until = clock_now_ns() + patience_ns;

	if (control_joiners(control) == 0 || !tell_joiners(context, &ask))
		return 0;
	pthread_mutex_lock(&context->lock);
	while (control_sure_joiners(control) < control_joiners(control) && clock_now_ns() < until)
		rank_wait(context, clock_now_ns() + NS_PER_MS);
	pthread_mutex_unlock(&context->lock);
	return tell_joiners(context, &promise) ? promise.count : 0;
}

/*
 * Joiners that have not been let in wait for any group again. Without memory for that they wait for this group, which
 * counts them again the next time.
 */
static void release_joiners(const struct comm *group)
{
	struct joiners_cmd release = {.what = JOINERS_RELEASE, .channel = group->channel};

	(void)tell_joiners(group->context, &release);
}

static enum esp_status exchange_offers(struct comm *group, const struct offer *mine, struct offer *all,
                                       const struct work_options *options, struct failure *failure)
{
	struct call call = {
		.collective = PLAN_ALLGATHER,
		.type = ESP_BYTES,
		.count = sizeof(*mine),
		.in = mine,
		.out = all,
		.makes_group = true,
	};
	enum esp_status status = call_check(&call, group->rank, group->size, failure);

	return status == ESP_OK ? comm_run(group, &call, options, failure) : status;
}

/* Decides how many of all waiting joiners are let in, and which of them are ours. */
static uint32_t share_out(const struct comm *group, const struct offer *all, uint32_t most, uint32_t *out_first,
                          uint32_t *out_own)
{
	uint32_t total = 0, room = LAUNCH_SIZE_MAX - group->size;

	room = most > 0 && most < room ? most : room;
	for (uint32_t i = 0; i < group->size; i++) {
		uint32_t count = all[i].waiting < room - total ? (uint32_t)all[i].waiting : room - total;

		if (i == group->rank) {
			*out_first = group->size + total;
			*out_own = count;
		}
		total += count;
	}
	return total;
}

/*
 * The group has not grown. Some joiners that we have let in may not have heard that where they join: the leader that
 * they look for there is gone, or never was there. And their later fate is no business of the next turn.
 */
static void send_away(const struct comm *group, const struct failure *why)
{
	struct control_msg msg = {
		.type = CONTROL_REFUSE, .from = group->context->rank, .about = UINT32_MAX, .channel = group->channel,
	};

	struct joiners_cmd cmd = {.what = JOINERS_REFUSE, .refusal = &msg};

	clip(msg.refuse.text, sizeof(msg.refuse.text), "the job lets no ranks in now: %s", why->text);
	(void)tell_joiners(group->context, &cmd);
}

static enum esp_status no_place(const struct comm *group, int why, struct failure *failure)
{
	uint32_t rank = group->ranks[0];

	if (why == EADDRINUSE)
		return rank_failure_set(failure, ESP_ELINK, (int32_t)rank,
		                        "rank %u has no port where all could join: all that it may listen on are taken on "
		                        "its host; set a range with two for each rank of a host, and one more",
		                        rank);
	return rank_failure_set(failure, ESP_ELINK, (int32_t)rank, "rank %u has no port where all could join: %s", rank,
	                        strerror(why));
}

/* place_fd: as of find_place(), -1 once it is the new context's; -1 on all but the first member. */
static enum esp_status join_again(struct comm *group, const struct offer *all, const struct grow_options *grow,
                                  const struct grow_time *time, int *place_fd, struct rank **out,
                                  struct failure *failure)
{
	struct rank *context = group->context;
	uint32_t first = 0, own = 0, joiners = share_out(group, all, grow->most, &first, &own),
	         size = group->size + joiners;

	/* before joiners are invited: they would all join jobs of different sizes */
	for (uint32_t i = 0; i < group->size; i++) {
		if (all[i].most != grow->most)
			return rank_failure_set(failure, ESP_EMISMATCH, (int32_t)group->ranks[i],
			                        "rank %u of the group lets in %" PRIu64 " newcomers at "
			                        "the most, and rank %u %u: give all the same",
			                        i, all[i].most, group->rank, grow->most);
	}
	if (joiners == 0)
		return ESP_OK;
	for (uint32_t i = 0; i < group->size; i++) {
		if (all[i].is_full)
			return rank_failure_set(failure, ESP_ELIMIT, (int32_t)group->ranks[i],
			                        "rank %u has all the groups that there can be, and needs one more "
			                        "to go on in if a rank is lost meanwhile: free one, and call again",
			                        group->ranks[i]);
		if (all[i].port != 0)
			return rank_failure_set(
				failure, ESP_ELIMIT, (int32_t)group->ranks[i],
				"rank %u may listen on port %" PRIu64 " alone, and needs another "
				"one while the old context and the new one stand side by side: set a range with two for "
				"each rank of a host, and "
				"one more",
				group->ranks[i], all[i].port);
	}
	if (all[0].why != 0)
		return no_place(group, (int)all[0].why, failure);
	const struct grow_parent parent = {group, comm_calls(group), grow_parent_lost(group)};
	enum esp_status status = send_invitations(group, first, own, size, all[0].place, failure);
	struct rank *grown = NULL;
	struct rank_options options = {
		.rank = group->rank,
		.size = size,
		.leader = all[0].place,
		.heir_of = context,
		.grow_parent = &parent,
		.patience_ns = grow_time_left(time, GROW_JOIN, clock_now_ns()),
		.log = grow->log,
		.log_context = grow->log_context,
		.listening = group->rank == 0 ? place_fd : NULL,
	};
	if (status == ESP_OK && rank_open(&options, &grown, failure) != ESP_OK)
		grown = NULL; /* which is the vote against */
	status = grow_end(&parent, grown, time, failure);
	if (status == ESP_OK)
		*out = grown;
	else if (own > 0)
		send_away(group, failure);
	return status;
}

enum esp_status comm_grow(struct comm *group, const struct grow_options *grow, struct rank **out,
                          struct failure *failure)
{
	struct rank *context = group->context;
	struct offer *all = calloc(group->size, sizeof(*all));
	struct offer mine = {.most = grow->most};
	const struct conf_range *port = &context->conf.port;
	int place_fd = -1;
	struct grow_time time;

	grow_time_begin(&time, grow->deadline_ns, rank_interval_ns(context), clock_now_ns());
	if (!all)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory to let newcomers in");
	mine.waiting =
		count_joiners(group, grow->most, grow_time_to_count(&time, rank_patience_ns(context), clock_now_ns()));
	if (group->rank == 0)
		mine.why = (uint64_t)find_place(context, &place_fd, mine.place);
	mine.port = port->first == port->last ? port->first : 0;
	/* no member is waited for that cannot agree with the others, once all have voted */
	mine.is_full = !comm_keep_channel(group);
	*out = NULL;
	struct work_options options = {.deadline_ns = grow_time_to_come(&time, clock_now_ns())};
	enum esp_status status = exchange_offers(group, &mine, all, &options, failure);
	grow_time_all_here(&time, context->conf.join_seconds * NS_PER_S, clock_now_ns());
	if (status == ESP_OK)
		status = join_again(group, all, grow, &time, &place_fd, out, failure);
	if (mine.waiting > 0)
		release_joiners(group);
	comm_release_channel(group);
	if (place_fd >= 0)
		close(place_fd);
	free(all);
	return status;
}
