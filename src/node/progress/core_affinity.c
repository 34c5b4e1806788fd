#include "node/progress/core_affinity.h"

#include <string.h>

void core_affinity_init(struct core_affinity *affinity, bool is_wanted, uint32_t place)
{
	*affinity = (struct core_affinity){
		.is_wanted = is_wanted, .place = place, .patience_ns = CORE_AFFINITY_PATIENCE_LEAST,
	};
}

int core_affinity_core(const cpu_set_t *allowed, uint32_t place)
{
	int count = CPU_COUNT(allowed);

	if (count < 2)
		return -1;
	uint32_t before = core_affinity_turn(place, (uint32_t)count);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (CPU_ISSET((size_t)core, allowed) && before-- == 0)
			return core;
	}
	return -1;
}

void core_affinity_checked(struct core_affinity *affinity, bool was_elsewhere, uint64_t now_ns)
{
	/* At the first check the thread may be anywhere; later the system had a reason to move it. */
	if (was_elsewhere && affinity->check_ns != 0)
		affinity->patience_ns = affinity->patience_ns < CORE_AFFINITY_PATIENCE_MOST ? 2 * affinity->patience_ns
		                                                                                : CORE_AFFINITY_PATIENCE_MOST;
	else if (!was_elsewhere && affinity->patience_ns > CORE_AFFINITY_PATIENCE_LEAST)
		affinity->patience_ns /= 2;
	affinity->check_ns = now_ns + affinity->patience_ns;
}

/* The core of its place, and the cores that the thread may use now. -1: there is nothing to choose. */
static int own_core(const struct core_affinity *affinity, cpu_set_t *out_allowed)
{
	return sched_getaffinity(0, sizeof(*out_allowed), out_allowed) == 0
	           ? core_affinity_core(out_allowed, affinity->place)
	           : -1;
}

static void move_to(struct core_affinity *affinity, int core)
{
	CPU_ZERO(&affinity->only);
	CPU_SET((size_t)core, &affinity->only);
	affinity->is_held = sched_setaffinity(0, sizeof(affinity->only), &affinity->only) == 0;
}

void core_affinity_let_go(struct core_affinity *affinity)
{
	cpu_set_t now, any;

	affinity->is_held = false;
	/* The program or the operator may have set another affinity meanwhile: it stays. */
	if (sched_getaffinity(0, sizeof(now), &now) == 0 && !CPU_EQUAL(&now, &affinity->only))
		return;
	if (sched_setaffinity(0, sizeof(affinity->allowed), &affinity->allowed) == 0)
		return;
	/* The system has taken all of those cores away meanwhile: allow any core. */
	memset(&any, 0xff, sizeof(any));
	(void)sched_setaffinity(0, sizeof(any), &any);
}

void core_affinity_hold(struct core_affinity *affinity)
{
	if (affinity->is_held) /* the cores that the thread might use before are known */
		return;
	int core = own_core(affinity, &affinity->allowed);
	if (core >= 0)
		move_to(affinity, core);
}

void core_affinity_keep(struct core_affinity *affinity)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns < affinity->check_ns)
		return;
	int core = own_core(affinity, &affinity->allowed), here = sched_getcpu();
	bool is_elsewhere = core >= 0 && here >= 0 && core != here;
	if (is_elsewhere)
		move_to(affinity, core);
	if (affinity->is_held) /* sched_setaffinity() returns once the thread runs on that core */
		core_affinity_let_go(affinity);
	core_affinity_checked(affinity, is_elsewhere, now_ns);
}
