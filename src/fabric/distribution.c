#include "fabric/distribution.h"

#include <assert.h>

/* A stop's tag is the first request of its host. */
static uint32_t find_stops(const struct distribution_request *requests, uint32_t count, struct chain_stop *stops)
{
	uint32_t stop_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = 0;

		while (at < stop_count && requests[stops[at].tag].host != requests[i].host)
			at++;
		if (at == stop_count)
			stops[stop_count++] = (struct chain_stop){.in = requests[i].in, .out = requests[i].out, .tag = i};
		stops[at].weight++;
	}
	return stop_count;
}

static uint32_t serve_host(struct distribution_request *requests, uint32_t count, uint32_t first, uint32_t source,
                           const struct calendar_span *span)
{
	uint32_t served = 0;

	for (uint32_t i = first; i < count; i++) {
		if (requests[i].host != requests[first].host)
			continue;
		requests[i].is_served = true;
		requests[i].source = i == first ? source : first;
		requests[i].span = *span;
		if (requests[i].source != DISTRIBUTION_HUB)
			requests[requests[i].source].outputs++;
		served++;
	}
	return served;
}

static uint32_t serve_chain(const struct chain_case *about, struct distribution_request *requests, uint32_t count,
                            struct chain_stop *stops, uint32_t length)
{
	struct calendar_span span;
	uint32_t booking = chain_book(about, stops, length, &span), served = 0, source = DISTRIBUTION_HUB;

	if (booking == CALENDAR_NONE)
		return 0;
	requests[stops[0].tag].booking = booking;
	for (uint32_t i = 0; i < length; i++) {
		served += serve_host(requests, count, stops[i].tag, source, &span);
		source = stops[i].tag;
	}
	return served;
}

uint32_t distribution_run(const struct distribution_config *config, struct distribution_request *requests,
                          uint32_t count)
{
	struct chain_stop stops[DISTRIBUTION_REQUESTS_MOST];
	struct chain_case about = {.calendar = config->calendar, .hub = config->hub, .way = CHAIN_FROM_HUB,
	                           .bytes = config->bytes, .now = config->now};
	uint32_t served = 0, length;

	assert(count <= DISTRIBUTION_REQUESTS_MOST && config->next_batch > config->now);
	for (uint32_t i = 0; i < count; i++) {
		requests[i].is_served = false;
		requests[i].booking = CALENDAR_NONE;
		requests[i].outputs = 0;
	}
	if (count == 0 || !chain_may_begin(config->calendar, config->hub, config->now, config->next_batch))
		return 0;
	uint32_t left = find_stops(requests, count, stops);
	chain_sort(&about, stops, left);
	for (struct chain_stop *at = stops; left > 0; at += length, left -= length) {
		length = config->is_tree ? chain_length(&about, at, left) : 1;
		if (length == 0)
			break;
		served += serve_chain(&about, requests, count, at, length);
	}
	return served;
}
