/*
 * window.h - how many bytes a sender may have in flight: the additive increase and multiplicative decrease of ATP.
 *
 * Every result adds one packet size until the threshold, one packet size per window from there on; a result that
 * carries a mark halves the window and makes it the threshold, once per window. The window bounds memory of switches,
 * too: a number in flight is a slot asked for. All members get the same marks with the same results, so their windows
 * stay alike.
 *
 * Losses by themselves are no sign of congestion here (a slot taken by another job looks the same): by default they
 * count where more than one in four numbers of a window was lost, and more than one. No window is below four packets,
 * or the ceiling.
 *
 * Pure; embedded by its user.
 */
#ifndef SWITCH_ENDPOINT_WINDOW_H
#define SWITCH_ENDPOINT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum window_loss {
	WINDOW_LOSS_MANY, /* more than one in four, and more than one */
	WINDOW_LOSS_EACH,
	WINDOW_LOSS_IGNORED,
};

struct window_config {
	bool is_fixed;          /* no congestion control: always ceiling_bytes */
	uint32_t packet_bytes;  /* the window grows by it */
	uint32_t start_bytes;
	uint32_t ceiling_bytes;
	enum window_loss loss;
};

struct window {
	struct window_config config;
	uint64_t bytes;
	uint64_t threshold; /* below it the window grows with every result */
	uint32_t round_end; /* numbers below were sent in this round, which is about one window */
	uint32_t round_sent, round_lost;
	bool is_halved; /* in this round */
	uint64_t marks, halvings; /* counters */
};

void window_init(struct window *window, const struct window_config *config);

/*
 * The first result of a number; next: the lowest number that was not sent yet. is_used: the window was what held the
 * sender back.
 */
void window_result(struct window *window, uint32_t sequence, uint32_t next, uint32_t bytes, bool is_marked,
                   bool is_used);

/* Results of later numbers show that a number was lost; it is sent again. A number whose time is over is none. */
void window_lost(struct window *window, uint32_t sequence, uint32_t next);

#endif
