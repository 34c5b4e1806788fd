#include "rank/comm/switched_state.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clip.h"
#include "base/clock.h"
#include "node/net/resolve.h"
#include "rank/comm/comm.h"
#include "wire/bytes.h"

#define RESOLVE_PATIENCE (5 * NS_PER_S)
#define ANSWER_PATIENCE (500 * NS_PER_MS) /* of a switch, when a communicator is made */
#define NONCE_BYTES 16u
#define LABEL "espalier switch flow 1"

/* ---- the link ---- */

/* A warning if there is no way. */
static void open_link(struct rank *rank)
{
	struct address address;
	struct resolved resolved;
	union trains_address server;
	struct error err;

	enum esp_status status = address_parse(rank->conf.through, "ESP_SWITCH", &address, &err);
	if (status == ESP_OK)
		status = resolve(&address, clock_now_ns() + RESOLVE_PATIENCE, &resolved, &err);
	if (status == ESP_OK) {
		memset(&server, 0, sizeof(server));
		memcpy(&server, &resolved.addresses[0], resolved.lengths[0]);
		status = switch_link_open(&server, &rank->switch_link, &err);
	}
	if (status != ESP_OK)
		log_write(&rank->log, LOG_LEVEL_WARN, LOG_NET, "no switch is used: %s: %s", rank->conf.through, err.text);
}

void comm_switched_stop(struct rank *rank)
{
	switch_link_stop(rank->switch_link);
}

void comm_switched_close_link(struct rank *rank)
{
	switch_link_close(rank->switch_link);
	rank->switch_link = NULL;
}

/* ---- a communicator's flow ---- */

/* Of a member, for the others. */
struct card {
	uint8_t has_link, is_v6;
	uint8_t port[2], words[2];
	uint8_t host[16];
	uint8_t nonce[NONCE_BYTES]; /* so that no two flows are ever the same */
};
_Static_assert(sizeof(struct card) == 22 + NONCE_BYTES, "cards have no holes");

static void write_card(const struct rank *rank, struct card *out)
{
	const union trains_address *own = rank->switch_link ? switch_link_address(rank->switch_link) : NULL;

	*out = (struct card){.has_link = own != NULL};
	randombytes_buf(out->nonce, sizeof(out->nonce));
	if (!own)
		return;
	bytes_put16(out->words, switch_link_words(rank->switch_link));
	out->is_v6 = own->any.sa_family == AF_INET6;
	bytes_put16(out->port, ntohs(out->is_v6 ? own->v6.sin6_port : own->v4.sin_port));
	if (out->is_v6)
		memcpy(out->host, &own->v6.sin6_addr, sizeof(own->v6.sin6_addr));
	else
		memcpy(out->host, &own->v4.sin_addr, sizeof(own->v4.sin_addr));
}

static union trains_address address_of(const struct card *card)
{
	union trains_address address;

	memset(&address, 0, sizeof(address));
	if (card->is_v6) {
		address.v6.sin6_family = AF_INET6;
		address.v6.sin6_port = htons(bytes_get16(card->port));
		memcpy(&address.v6.sin6_addr, card->host, sizeof(address.v6.sin6_addr));
	} else {
		address.v4.sin_family = AF_INET;
		address.v4.sin_port = htons(bytes_get16(card->port));
		memcpy(&address.v4.sin_addr, card->host, sizeof(address.v4.sin_addr));
	}
	return address;
}

/* The number and the keys of the flow, which follow from the job's key and from what all members have said. */
static void derive_secret(const struct comm *comm, const struct card *cards, uint8_t out[SWITCH_FLOW_SECRET])
{
	const struct join_config *join = &comm->context->join;
	uint8_t about[16];
	crypto_generichash_state state;

	bytes_put64(about, join->launch.epoch);
	bytes_put32(about + 8, comm->channel);
	bytes_put32(about + 12, comm->mark);
	crypto_generichash_init(&state, join->key, sizeof(join->key), SWITCH_FLOW_SECRET);
	crypto_generichash_update(&state, (const uint8_t *)LABEL, sizeof(LABEL));
	crypto_generichash_update(&state, (const uint8_t *)join->launch.job, strlen(join->launch.job) + 1);
	crypto_generichash_update(&state, about, sizeof(about));
	crypto_generichash_update(&state, (const uint8_t *)cards, comm->size * sizeof(*cards));
	crypto_generichash_final(&state, out, SWITCH_FLOW_SECRET);
	sodium_memzero(&state, sizeof(state));
}

static bool is_loopback(const struct card *card)
{
	union trains_address address = address_of(card);

	return resolve_is_loopback(&address.any);
}

/* NULL: packets may go from each member to each other one, as far as addresses show it. Else why not. */
static const char *why_apart(const struct comm *comm, const struct card *cards, uint32_t *out_member)
{
	for (uint32_t i = 0; i < comm->size; i++) {
		*out_member = i;
		if (!cards[i].has_link)
			return "it has no way to the switch";
		if (cards[i].is_v6 != cards[0].is_v6)
			return "it reaches the switch by IPv6 and others by IPv4, or the other way round";
		if (is_loopback(&cards[i]) && !comm->net.layout.one_machine)
			return "it reaches the switch by the loopback, where no other host reaches it: name the switch by an "
			       "address that all hosts have";
	}
	return NULL;
}

/* All members decide alike. */
static bool is_open(const struct comm *comm, const struct card *cards)
{
	uint32_t member;
	const char *why = why_apart(comm, cards, &member);

	if (why && comm->rank == 0)
		log_write(&comm->context->log, LOG_LEVEL_WARN, LOG_NET, "no switch is used: of group %u, member %u: %s",
		          comm->channel, member, why);
	return !why;
}

static struct switch_flow *open_flow(struct comm *comm, const struct card *cards)
{
	union trains_address addresses[ATP_CHILDREN_MAX];
	struct switch_flow_config config = {.self = (uint16_t)comm->rank, .members = (uint16_t)comm->size,
	                                    .addresses = addresses, .words = ATP_WORDS_MAX};
	struct switch_flow *flow = NULL;
	struct error err;

	derive_secret(comm, cards, config.secret);
	for (uint32_t i = 0; i < comm->size; i++) {
		uint16_t words = bytes_get16(cards[i].words);
		addresses[i] = address_of(&cards[i]);
		config.words = words < config.words ? words : config.words;
	}
	if (switch_flow_open(comm->context->switch_link, &config, &flow, &err) != ESP_OK)
		log_write(&comm->context->log, LOG_LEVEL_WARN, LOG_NET, "no switch is used: %s", err.text);
	sodium_memzero(config.secret, sizeof(config.secret));
	return flow;
}

/* The control thread may fail the communicator just now. */
static void publish(struct comm *comm, struct switched *switched)
{
	pthread_mutex_lock(&comm->context->lock);
	comm->switched = switched;
	enum esp_status failed = (enum esp_status)atomic_load(&comm->fail.status);
	pthread_mutex_unlock(&comm->context->lock);
	if (failed != ESP_OK && switched->flow)
		switch_flow_fail(switched->flow, failed);
}

/* Each rank may have its own reason why the switch does not help: the first one tells of all that is well. */
static void tell_state(const struct comm *comm, const struct switched *switched, bool helps)
{
	const struct rank *rank = comm->context;
	char why[SWITCH_FLOW_WHY];

	if (!helps && switched->flow)
		log_write(&rank->log, LOG_LEVEL_WARN, LOG_NET,
		          "no sum of group %u goes through the switch at %s, ordinary plans are used until that changes: %s",
		          comm->channel, rank->conf.through, switch_flow_why(switched->flow, why));
	else if (helps && comm->rank == 0)
		log_write(&rank->log, LOG_LEVEL_INFO, LOG_NET, "the switch at %s answers, and sums integers of the group",
		          rank->conf.through);
}

static void open_with(struct comm *comm, const struct card *cards)
{
	struct switched *switched = calloc(1, sizeof(*switched));

	if (!switched)
		return; /* the members that have one ask in vain until their deadline: so it is fatal, see below */
	switched->flow = open_flow(comm, cards);
	publish(comm, switched);
	bool helps = switched->flow && switch_flow_await(switched->flow, clock_now_ns() + ANSWER_PATIENCE);
	tell_state(comm, switched, helps);
}

static enum esp_status tell_cards(struct comm *comm, const struct card *mine, struct card *cards,
                                  struct failure *failure)
{
	struct call call = {.collective = PLAN_ALLGATHER, .type = ESP_BYTES, .op = ESP_SUM, .count = sizeof(*mine),
	                    .in = mine, .out = cards, .makes_group = true};
	enum esp_status status = call_check(&call, comm->rank, comm->size, failure);

	comm_begin_aside(comm);
	if (status == ESP_OK)
		status = comm_run(comm, &call, &(struct work_options){0}, failure);
	comm_end_aside(comm);
	return status;
}

enum esp_status comm_switched_open(struct comm *comm, struct failure *failure)
{
	struct rank *rank = comm->context;
	struct card mine, *cards;

	if (!rank->conf.through[0] || comm->size < 2 || comm->size > ATP_CHILDREN_MAX)
		return ESP_OK;
	cards = calloc(comm->size, sizeof(*cards));
	if (!cards)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a group of %u ranks", comm->size);
	write_card(rank, &mine);
	enum esp_status status = tell_cards(comm, &mine, cards, failure);
	if (status == ESP_OK && is_open(comm, cards)) {
		open_with(comm, cards);
		if (!comm->switched)
			status = rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a group of %u ranks", comm->size);
	}
	free(cards);
	/* A communicator that has failed meanwhile tells its next caller so. */
	return atomic_load(&comm->fail.status) == ESP_OK ? status : ESP_OK;
}

enum esp_status comm_switched_begin(struct rank *rank, struct failure *failure)
{
	if (!rank->conf.through[0])
		return ESP_OK;
	open_link(rank);
	return comm_switched_open(rank->world, failure);
}

/* For people: how far the switch has helped. */
static void tell_stats(const struct comm *comm)
{
	struct switch_flow_stats stats;

	switch_flow_stats(comm->switched->flow, &stats);
	if (stats.sums > 0)
		log_write(&comm->context->log, LOG_LEVEL_INFO, LOG_NET,
		          "group %u: %" PRIu64 " sums of %" PRIu64 " bytes went through the switch; packets: %" PRIu64
		          " through it, %" PRIu64 " straight, %" PRIu64 " again, %" PRIu64 " again and straight, %" PRIu64
		          " refused; %" PRIu64 " elements owned here, %" PRIu64 " contributions added here; "
		          "it fell silent %" PRIu64 " times",
		          comm->channel, stats.sums, 4 * stats.words, stats.originals, stats.direct, stats.resends,
		          stats.bypasses, stats.refused, stats.completed, stats.added_here, stats.gone);
}

void comm_switched_close(struct comm *comm)
{
	if (!comm->switched)
		return;
	if (comm->switched->flow)
		tell_stats(comm);
	switch_flow_close(comm->switched->flow);
	free(comm->switched);
	comm->switched = NULL;
}

void comm_switched_fail(struct comm *comm, enum esp_status status)
{
	pthread_mutex_lock(&comm->context->lock);
	struct switched *switched = comm->switched; /* it may be published just now: then that fails it */
	pthread_mutex_unlock(&comm->context->lock);
	if (switched && switched->flow)
		switch_flow_fail(switched->flow, status);
}

const char *comm_switched_late(const struct comm *comm, char out[COMM_SWITCHED_TEXT])
{
	if (!comm->switched || !comm->switched->flow || !switch_flow_is_busy(comm->switched->flow))
		return "";
	return clip(
		out, COMM_SWITCHED_TEXT, "; its sum goes through the switch at %s, which %s", comm->context->conf.through,
		switch_flow_helps(comm->switched->flow) ? "answers" : "is silent, so that it goes straight to other ranks");
}

/* A member that left has all sums, and one that died needs none. */
static bool is_gone(void *context, uint16_t member)
{
	struct comm *comm = context;
	struct rank *rank = comm->context;

	pthread_mutex_lock(&rank->lock);
	uint8_t fate = rank->fates.of[comm->ranks[member]];
	pthread_mutex_unlock(&rank->lock);
	return fate == FATE_LEFT || fate == FATE_DEAD;
}

void comm_switched_linger(struct rank *rank, uint64_t until_ns)
{
	for (struct comm *comm = rank->comms.list; comm; comm = comm->next) {
		bool works = atomic_load(&comm->fail.status) == ESP_OK;
		if (works && comm->switched && comm->switched->flow &&
		    !switch_flow_linger(comm->switched->flow, until_ns, is_gone, comm))
			log_write(&rank->log, LOG_LEVEL_INFO, LOG_NET,
			          "some member of group %u has not said that it has all sums of this rank", comm->channel);
	}
}

bool comm_switched_decides(const struct comm *comm)
{
	return comm->switched && atomic_load_explicit(&comm->switched->decides, memory_order_acquire);
}
