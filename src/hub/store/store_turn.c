#include "hub/store/store_turn.h"

#include <assert.h>

bool store_turn_may(const struct store_turn *turn)
{
	return turn->left > 0;
}

void store_turn_end(struct store_turn *turn, uint64_t took_ns)
{
	assert(turn->left > 0);
	turn->left -= took_ns < STORE_TURN_MOST ? (int64_t)took_ns : STORE_TURN_MOST;
}

void store_turn_next_round(struct store_turn *turn, uint32_t weight)
{
	int64_t share = (int64_t)STORE_TURN_QUANTUM * weight;

	assert(weight > 0);
	turn->left = turn->left < 0 ? turn->left + share : share; /* time that was not used is not saved up */
}
