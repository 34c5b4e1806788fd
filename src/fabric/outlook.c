#include "fabric/outlook.h"

#include "base/clock.h"
#include "fabric/calendar.h"

#define MEASURED_LEAST (20 * NS_PER_MS) /* a shorter transfer says more about latency than about its link */
#define KEPT_PERCENT 90u
#define RISE_PERCENT 125u
#define SHORT_PERCENT 60u
#define DENIED_MOST 3

void outlook_init(struct outlook *outlook, uint64_t rate, uint64_t most)
{
	*outlook = (struct outlook){.rate = rate, .most = rate > most ? rate : most};
}

/* Is one more than times / of as great as the other? */
static bool differs(uint64_t one, uint64_t other, unsigned times, unsigned of)
{
	unsigned __int128 a = one, b = other;

	return a * of > b * times || b * of > a * times;
}

static bool change(struct outlook *outlook, uint64_t rate)
{
	bool is_other = rate != outlook->rate;

	outlook->rate = rate > OUTLOOK_RATE_LEAST ? rate : OUTLOOK_RATE_LEAST;
	return is_other;
}

static bool is_suspect(const struct outlook *outlook)
{
	return __builtin_popcount(outlook->denied) >= DENIED_MOST;
}

bool outlook_report(struct outlook *outlook, uint64_t rate)
{
	bool has_transfers = outlook->has_transfers;

	if (outlook->reported > 0)
		outlook->denied = (uint8_t)(outlook->denied << 1 | outlook->is_denied);
	bool is_doubted = has_transfers && is_suspect(outlook) && differs(rate, outlook->rate, 3, 2);
	outlook->reported = rate;
	outlook->is_denied = outlook->has_transfers = false;
	outlook->is_measured = true;
	outlook->doubted += is_doubted;
	return change(outlook, is_doubted ? outlook->rate / 2 + rate / 2 : rate);
}

static uint64_t rate_of(uint64_t bytes, uint64_t took_ns)
{
	unsigned __int128 rate = (unsigned __int128)bytes * NS_PER_S / took_ns;

	return rate > CALENDAR_RATE_MOST ? CALENDAR_RATE_MOST : (uint64_t)rate;
}

/* A monitor that is believed knows more than a transfer that was given all that it has reported. */
static bool may_rise(const struct outlook *outlook)
{
	return outlook->rate < outlook->most && (outlook->reported == 0 || outlook->is_denied || is_suspect(outlook));
}

/* The rate that the transfer speaks for. */
static uint64_t weigh(struct outlook *outlook, uint64_t granted)
{
	uint64_t more = outlook->rate / 100 * RISE_PERCENT, achieved = outlook->achieved;
	bool had_all = granted * 100 >= outlook->rate * KEPT_PERCENT;

	if (achieved * 100 < granted * (had_all ? KEPT_PERCENT : SHORT_PERCENT)) {
		outlook->is_measured = true;
		return achieved < outlook->rate ? outlook->rate / 2 + achieved / 2 : outlook->rate;
	}
	if (!had_all || achieved * 100 < granted * KEPT_PERCENT || !may_rise(outlook))
		return outlook->rate;
	return more < outlook->most ? more : outlook->most;
}

bool outlook_transfer(struct outlook *outlook, uint64_t granted, uint64_t bytes, uint64_t took_ns)
{
	if (took_ns == 0)
		return false;
	outlook->achieved = rate_of(bytes, took_ns);
	if (took_ns < MEASURED_LEAST)
		return false;
	bool is_other = change(outlook, weigh(outlook, granted));
	outlook->has_transfers = true;
	if (outlook->reported > 0 && differs(outlook->rate, outlook->reported, 4, 3))
		outlook->is_denied = true;
	return is_other;
}
