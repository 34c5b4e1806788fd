#include "hub/control/host_place.h"

#include <unistd.h>

#include "base/fnv.h"
#include "node/net/listen.h"

uint64_t host_place(void)
{
	struct node_info info = {0};
	uint32_t user = (uint32_t)geteuid();

	host_info_describe(&info);
	uint64_t place = fnv_add(fnv_add(FNV_START, info.host_id, sizeof(info.host_id)), &user, sizeof(user));
	return place ? place : 1;
}
