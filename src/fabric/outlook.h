/*
 * outlook.h - the rate that one way of a link is believed to have: from reports of a monitor, and from what transfers
 * achieved.
 *
 * A transfer that was given all of the link and falls short by more than a tenth lowers the rate half-way; one that
 * keeps to it raises it by a quarter, unless a monitor that is believed has reported the rate. One that was given less,
 * as another link was the bottleneck, says something only if it falls short by two fifths; one of less than 20 ms says
 * nothing.
 *
 * A report is believed until transfers contradict it by a third or more. Where that happened to three of the last eight
 * reports the monitor is doubted: a report that is half as great again as the rate by transfers, or less than two
 * thirds of it, counts half. Pure.
 */
#ifndef FABRIC_OUTLOOK_H
#define FABRIC_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>

#define OUTLOOK_RATE_LEAST UINT64_C(1000)

struct outlook {
	uint64_t rate;      /* bytes per second, as it is believed */
	uint64_t most;      /* transfers raise it no further       */
	uint64_t achieved;  /* by the latest transfer; 0: none     */
	bool is_measured;   /* by a report, or a transfer that fell short */
	uint64_t doubted;   /* reports */
	/* private */
	uint64_t reported;  /* the latest one; 0: none since the outlook was made */
	bool is_denied;     /* transfers have contradicted it */
	bool has_transfers; /* since then */
	uint8_t denied;     /* bit i: the report i before the latest one was denied */
};

void outlook_init(struct outlook *outlook, uint64_t rate, uint64_t most);
/* True: the rate is another one now. */
bool outlook_report(struct outlook *outlook, uint64_t rate);
/* The same: of a transfer that was given a rate. took_ns 0: nothing was sent. */
bool outlook_transfer(struct outlook *outlook, uint64_t granted, uint64_t bytes, uint64_t took_ns);

#endif
