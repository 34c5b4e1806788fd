#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

#include "base/fnv.h"

uint32_t cores_allowed(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than fit into the set */
	return online > 0 ? (uint32_t)online : 1;
}

uint64_t cores_digest(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? fnv_add(FNV_START, &set, sizeof(set)) : 0;
}
