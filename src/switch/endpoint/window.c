#include "switch/endpoint/window.h"

#include <assert.h>

#define LOSS_SHARE 4u    /* more than one in so many */
#define FLOOR_PACKETS 4u /* with fewer in flight no three results of higher numbers show that one is lost */

static uint64_t least_bytes(const struct window_config *config)
{
	uint64_t floor = (uint64_t)FLOOR_PACKETS * config->packet_bytes;
	return floor < config->ceiling_bytes ? floor : config->ceiling_bytes;
}

void window_init(struct window *window, const struct window_config *config)
{
	assert(config->packet_bytes >= 1 && config->ceiling_bytes >= config->packet_bytes);
	*window = (struct window){.config = *config, .bytes = config->start_bytes, .threshold = UINT64_MAX};
	if (config->is_fixed || window->bytes > config->ceiling_bytes)
		window->bytes = config->ceiling_bytes;
	if (window->bytes < least_bytes(config))
		window->bytes = least_bytes(config);
}

static void begin_round(struct window *window, uint32_t sequence, uint32_t next)
{
	window->round_end = next;
	window->round_sent = next - sequence;
	window->round_lost = 0;
	window->is_halved = false;
}

static void halve(struct window *window)
{
	if (window->is_halved || window->config.is_fixed)
		return;
	window->is_halved = true;
	window->halvings++;
	window->bytes /= 2;
	if (window->bytes < least_bytes(&window->config))
		window->bytes = least_bytes(&window->config);
	window->threshold = window->bytes;
}

static void grow(struct window *window, uint32_t bytes)
{
	uint64_t step = window->config.packet_bytes;

	if (window->config.is_fixed)
		return;
	if (window->bytes >= window->threshold) {
		step = step * bytes / window->bytes;
		step = step ? step : 1;
	}
	window->bytes += step;
	if (window->bytes > window->config.ceiling_bytes)
		window->bytes = window->config.ceiling_bytes;
}

void window_result(struct window *window, uint32_t sequence, uint32_t next, uint32_t bytes, bool is_marked,
                   bool is_used)
{
	assert(sequence < next);
	if (sequence >= window->round_end)
		begin_round(window, sequence, next);
	window->marks += is_marked;
	if (is_marked)
		halve(window);
	else if (is_used && !window->is_halved)
		grow(window, bytes);
}

void window_lost(struct window *window, uint32_t sequence, uint32_t next)
{
	assert(sequence < next);
	if (sequence >= window->round_end)
		begin_round(window, sequence, next);
	window->round_lost++;
	if (window->config.loss == WINDOW_LOSS_EACH ||
	    (window->config.loss == WINDOW_LOSS_MANY && window->round_lost > 1 &&
	     window->round_lost * LOSS_SHARE > window->round_sent))
		halve(window);
}
