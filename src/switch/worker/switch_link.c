#include "switch/worker/switch_link.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "switch/worker/link_state.h"

#define BATCHES 8u       /* received in one turn */
#define HEADERS_V4 28u   /* of IP and UDP */
#define HEADERS_V6 48u

#define LINK_OF(pointer, part) ((struct switch_link *)(void *)((char *)(pointer) - offsetof(struct switch_link, part)))

/* ---- packets ---- */

void switch_link_send(struct switch_flow *flow, const struct endpoint_out *out)
{
	struct switch_link *link = flow->link;
	uint8_t head[ATP_HEADER_BYTES];

	assert(out->to == ENDPOINT_TO_SWITCH || out->member < flow->members);
	atp_header_put(&out->header, head);
	trains_put(link->udp, head, sizeof(head), out->words, 4u * out->header.words);
	trains_to(link->udp, out->to == ENDPOINT_TO_SWITCH ? &link->server : &flow->peers[out->member]);
}

static void on_datagram(void *context, const struct trains_datagram *datagram)
{
	struct switch_link *link = context;
	struct generation *at = NULL;
	struct switch_flow *flow;
	struct atp_packet packet;

	enum atp_decoded decoded = atp_packet_decode(datagram->bytes, datagram->length, &packet);
	if (decoded == ATP_FOREIGN && trains_address_equal(datagram->from, &link->server.address, false))
		link->foreign = datagram->bytes[0];
	if (decoded != ATP_DECODED)
		return;
	for (flow = link->flows; flow; flow = flow->next)
		if (!flow->has_ended && (at = succession_find(&flow->stream, packet.flow)))
			break;
	if (!at)
		return;
	if (packet.type <= ATP_RESULT && (datagram->is_marked || link->is_crowded))
		packet.flags |= ATP_MARK;
	switch_flow_packet(flow, at, &packet, datagram->bytes + ATP_HEADER_BYTES, loop_now(&link->loop));
}

static void on_port(struct loop_fd *watched, uint32_t events)
{
	struct switch_link *link = LINK_OF(watched, port);

	(void)events;
	pthread_mutex_lock(&link->lock);
	for (uint32_t i = 0; i < BATCHES; i++) {
		link->is_crowded = trains_is_crowded(link->udp);
		if (!trains_receive(link->udp, on_datagram, link))
			break;
		/* An owner's sums leave before its memory of them is needed again. */
		for (struct switch_flow *flow = link->flows; flow; flow = flow->next)
			(void)switch_flow_pump(flow, loop_now(&link->loop));
		trains_flush(link->udp);
	}
	pthread_mutex_unlock(&link->lock);
}

/* ---- turns ---- */

bool switch_link_await(struct switch_link *link, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};

	return pthread_cond_timedwait(&link->changed, &link->lock, &until) == 0;
}

void switch_link_end(struct switch_link *link, struct switch_sum *sum, enum esp_status status)
{
	sum->status = status;
	sum->next = link->ended;
	link->ended = sum;
}

static void tell_ended(struct switch_sum *sum)
{
	while (sum) {
		struct switch_sum *next = sum->next; /* done() may free it */
		sum->done(sum, sum->status);
		sum = next;
	}
}

/* Sums that ended first are told of first. */
static struct switch_sum *take_ended(struct switch_link *link)
{
	struct switch_sum *ordered = NULL;

	while (link->ended) {
		struct switch_sum *sum = link->ended;
		link->ended = sum->next;
		sum->next = ordered;
		ordered = sum;
	}
	return ordered;
}

static uint64_t on_turn(void *context, uint64_t now_ns)
{
	struct switch_link *link = context;
	uint64_t wake = UINT64_MAX;

	pthread_mutex_lock(&link->lock);
	for (struct switch_flow *flow = link->flows; flow; flow = flow->next) {
		uint64_t when = switch_flow_pump(flow, now_ns);
		wake = when < wake ? when : wake;
	}
	trains_flush(link->udp);
	struct switch_sum *ended = take_ended(link);
	pthread_mutex_unlock(&link->lock);
	tell_ended(ended);
	return wake;
}

static void on_kick(struct loop_task *task)
{
	(void)task; /* the hook does the work */
}

static void *run(void *argument)
{
	struct switch_link *link = argument;

	loop_run(&link->loop);
	return NULL;
}

/* ---- life ---- */

static enum esp_status start_thread(struct switch_link *link, struct error *err)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	loop_expect(&link->loop, true);
	int why = pthread_create(&link->thread, NULL, run, link);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (why != 0) {
		loop_expect(&link->loop, false);
		return error_set(err, ESP_ELIMIT, "no thread for a switch: %s", strerror(why));
	}
	(void)pthread_setname_np(link->thread, "esp-switch");
	link->has_thread = true;
	return ESP_OK;
}

static enum esp_status open_port(struct switch_link *link, struct error *err)
{
	uint32_t mtu, headers = link->server.address.any.sa_family == AF_INET6 ? HEADERS_V6 : HEADERS_V4;
	union trains_address local;
	enum esp_status status = trains_local_address(&link->server.address, &local, &mtu, err);

	if (status != ESP_OK)
		return status;
	uint32_t words = (mtu - headers - ATP_HEADER_BYTES) / 4;
	link->words = (uint16_t)(words < ATP_WORDS_MAX ? words : ATP_WORDS_MAX);
	status = trains_open(&local, &link->udp, err);
	if (status != ESP_OK)
		return status;
	trains_bound(link->udp, &link->own);
	link->port.ready = on_port;
	return loop_add(&link->loop, &link->port, trains_fd(link->udp), EPOLLIN, err);
}

enum esp_status switch_link_open(const union trains_address *server, struct switch_link **out, struct error *err)
{
	struct switch_link *link = calloc(1, sizeof(*link));
	pthread_condattr_t monotonic;

	if (!link)
		return error_set(err, ESP_ENOMEM, "no memory for a switch");
	link->port.fd = -1;
	link->kick.run = on_kick;
	link->server.address = *server;
	enum esp_status status = loop_init(&link->loop, NULL, err);
	if (status != ESP_OK) {
		free(link);
		return status;
	}
	pthread_mutex_init(&link->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&link->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	loop_set_hook(&link->loop, on_turn, link);
	status = open_port(link, err);
	if (status == ESP_OK)
		status = start_thread(link, err);
	if (status != ESP_OK) {
		switch_link_close(link);
		return status;
	}
	*out = link;
	return ESP_OK;
}

void switch_link_stop(struct switch_link *link)
{
	if (!link || !link->has_thread)
		return;
	loop_stop(&link->loop);
	pthread_join(link->thread, NULL);
	link->has_thread = false;
	(void)on_turn(link, loop_now(&link->loop));
}

void switch_link_close(struct switch_link *link)
{
	if (!link)
		return;
	assert(!link->flows);
	switch_link_stop(link);
	if (link->port.fd >= 0)
		loop_remove(&link->loop, &link->port);
	trains_close(link->udp);
	loop_fini(&link->loop);
	pthread_cond_destroy(&link->changed);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

const union trains_address *switch_link_address(const struct switch_link *link)
{
	return &link->own;
}

uint16_t switch_link_words(const struct switch_link *link)
{
	return link->words;
}
