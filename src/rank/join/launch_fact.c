/*
 * launch_fact.c - facts about the launcher of this process, from the system.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/number.h"
#include "rank/join/launch.h"

/* The peer credentials of a socket pair are those of the process that made the pair. */
static bool find_mpirun(const char *fd_text, char out[LAUNCH_FACT])
{
	uint64_t fd;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	if (!number_parse_u64(fd_text, strlen(fd_text), &fd) || fd > 1 << 20)
		return false;
	if (getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0)
		return false;
	snprintf(out, LAUNCH_FACT, "%ld", (long)peer.pid);
	return true;
}

static bool find_full_name(char out[LAUNCH_FACT])
{
	char name[LAUNCH_FACT];
	struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM}, *found;
	if (gethostname(name, sizeof(name)) != 0)
		return false;
	name[sizeof(name) - 1] = '\0';
	if (getaddrinfo(name, NULL, &hints, &found) != 0)
		return false;
	bool known = found->ai_canonname && strlen(found->ai_canonname) < LAUNCH_FACT;
	if (known)
		snprintf(out, LAUNCH_FACT, "%s", found->ai_canonname);
	freeaddrinfo(found);
	return known;
}

bool launch_system_fact(enum launch_fact fact, const char *about, char out[LAUNCH_FACT])
{
	switch (fact) {
	case LAUNCH_FACT_MPIRUN:
		return find_mpirun(about, out);
	case LAUNCH_FACT_FULL_NAME:
		return find_full_name(out);
	}
	return false;
}
