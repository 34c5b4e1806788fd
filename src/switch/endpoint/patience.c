#include "switch/endpoint/patience.h"

#include <assert.h>

#define FIRST_RTOS 5u /* before the first measurement: so many floors */
#define UNMEASURED_MOST 64u /* results in a row */
#define DOUBLINGS_MOST 4u
#define FOLLOWERS 2u  /* that a result lets go */

void patience_init(struct patience *patience, uint64_t floor_ns, uint64_t cap_ns)
{
	assert(floor_ns >= 1 && cap_ns >= floor_ns);
	*patience = (struct patience){.floor_ns = floor_ns, .cap_ns = cap_ns};
}

void patience_expect(struct patience *patience, uint64_t round_trip_ns)
{
	patience->expected_ns = round_trip_ns;
}

void patience_measure(struct patience *patience, uint64_t round_trip_ns)
{
	uint64_t srtt = patience->srtt_ns, rtt = round_trip_ns ? round_trip_ns : 1;
	uint64_t off = rtt > srtt ? rtt - srtt : srtt - rtt;

	patience->unmeasured = 0;
	if (srtt == 0) {
		patience->srtt_ns = rtt;
		patience->rttvar_ns = rtt / 2;
		return;
	}
	patience->rttvar_ns = patience->rttvar_ns - patience->rttvar_ns / 4 + off / 4;
	patience->srtt_ns = srtt - srtt / 8 + rtt / 8;
}

void patience_not_measured(struct patience *patience)
{
	patience->unmeasured++;
}

uint64_t patience_rto_ns(const struct patience *patience)
{
	uint64_t floor = patience->floor_ns, slack = 4 * patience->rttvar_ns > floor ? 4 * patience->rttvar_ns : floor;
	uint32_t doublings = patience->unmeasured / UNMEASURED_MOST;
	uint64_t rto = patience->srtt_ns ? patience->srtt_ns + slack : FIRST_RTOS * floor;
	/* No time-out is shorter than a round trip, whatever the cap. */
	uint64_t network = 2 * patience->expected_ns,
			 least = (network > patience->srtt_ns ? network : patience->srtt_ns) + floor;

	rto = rto < patience->cap_ns ? rto : patience->cap_ns;
	return (rto > least ? rto : least) << (doublings < DOUBLINGS_MOST ? doublings : DOUBLINGS_MOST);
}

uint64_t patience_after_ns(const struct patience *patience, uint8_t attempts)
{
	uint64_t rto = patience_rto_ns(patience);

	for (uint8_t i = 1; i < attempts && rto < patience->cap_ns; i++)
		rto *= 2;
	/* The cap may be less than a round trip. */
	uint64_t cap = patience_rto_ns(patience) > patience->cap_ns ? patience_rto_ns(patience) : patience->cap_ns;
	return rto < cap ? rto : cap;
}

bool patience_allows(struct patience *patience, uint64_t now_ns)
{
	if (now_ns >= patience->round_ns) {
		patience->round_ns = now_ns + patience_after_ns(patience, 2);
		patience->allowed = PATIENCE_PROBES;
	}
	if (patience->allowed == 0)
		return false;
	patience->allowed--;
	return true;
}

void patience_result(struct patience *patience, uint64_t now_ns)
{
	if (now_ns < patience->round_ns)
		patience->allowed += FOLLOWERS;
}
