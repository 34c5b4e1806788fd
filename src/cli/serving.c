#include "cli/serving.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PREFIX "@espalier/"
#define LINE 512u

/* The port, if the name that stands in a line of /proc/net/unix is one of the user's of this kind. */
static bool port_of(const char *line, const char *kind, uint16_t *out)
{
	const char *name = strstr(line, PREFIX);
	char found[16], end = '\0';
	unsigned user, port;
	int fields = name ? sscanf(name, PREFIX "%u/%15[a-z]/%u%c", &user, found, &port, &end) : 0;

	if (fields < 3 || (fields == 4 && end != '\n') || user != (unsigned)geteuid() || strcmp(found, kind) != 0 ||
	    port > UINT16_MAX)
		return false;
	*out = (uint16_t)port;
	return true;
}

uint32_t serving_ports(const char *kind, uint16_t *out, uint32_t most)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[LINE];
	uint32_t count = 0;

	while (file && count < most && fgets(line, sizeof(line), file)) {
		bool is_known = false;
		uint16_t port;

		if (!port_of(line, kind, &port))
			continue;
		for (uint32_t i = 0; i < count; i++) /* connections have the name of their listener */
			is_known |= out[i] == port;
		if (!is_known)
			out[count++] = port;
	}
	if (file)
		fclose(file);
	return count;
}

void serving_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
