/*
 * patience.h - how long a member waits for results, and how much it sends again when none comes.
 *
 * The time-out is that of Jacobson: the smoothed round trip and four of its deviations, or the lateness of timers if
 * that is more; and never less than two round trips to the switch, as a result travels to an owner and back. These are
 * measured by hellos, so that a network that has become slower is noticed though all numbers were sent twice. A
 * result's round trip has the wait for the slowest member in it. Where results come, and all only after they were sent
 * again, the time-out doubles until one comes before. So when time is over, mostly nothing is lost but some member is
 * late, and what is sent again takes partial sums out of the switch. Therefore time-outs come in rounds: a round sends
 * few numbers again, and each result that comes in it lets two more follow.
 *
 * Pure; embedded by its user.
 */
#ifndef SWITCH_ENDPOINT_PATIENCE_H
#define SWITCH_ENDPOINT_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_PROBES 4u /* numbers that a round begins with */

struct patience {
	uint64_t floor_ns, cap_ns;
	uint64_t expected_ns;        /* a round trip to the switch; 0: not known */
	uint64_t srtt_ns, rttvar_ns; /* 0: not measured */
	uint64_t round_ns;           /* end of the round; 0: there was none */
	uint32_t allowed;            /* that may be sent again in this round */
	uint32_t unmeasured;         /* results since the latest measurement, of numbers that were sent again */
};

void patience_init(struct patience *patience, uint64_t floor_ns, uint64_t cap_ns);
/* The latest round trip to the switch. */
void patience_expect(struct patience *patience, uint64_t round_trip_ns);
void patience_measure(struct patience *patience, uint64_t round_trip_ns);
/* A result of a number that was sent again: it measures nothing. Many of them in a row lengthen the time-out. */
void patience_not_measured(struct patience *patience);
uint64_t patience_rto_ns(const struct patience *patience);
/* After the first attempt the time-out, after each further one twice as long. */
uint64_t patience_after_ns(const struct patience *patience, uint8_t attempts);

/* A number's time is over: may it be sent again now? If not, there may be more with the next result or round. */
bool patience_allows(struct patience *patience, uint64_t now_ns);
void patience_result(struct patience *patience, uint64_t now_ns);

#endif
