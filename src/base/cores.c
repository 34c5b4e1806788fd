#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

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
	uint64_t digest = UINT64_C(0xcbf29ce484222325); /* FNV-1a of their numbers */

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0;
	for (uint64_t core = 0; core < CPU_SETSIZE; core++) {
		if (CPU_ISSET((size_t)core, &set))
			digest = (digest ^ core) * UINT64_C(0x100000001b3);
	}
	return digest;
}
