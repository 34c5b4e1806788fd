#include "tools/launcher/launcher_stopped.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STAT_TEXT 512 /* bytes: more than stand before the group */

bool launcher_stopped_parse(const char *text, pid_t *out_group)
{
	const char *name_end = strrchr(text, ')');
	int group = 0;
	char state = '\0';

	if (!name_end || sscanf(name_end + 1, " %c %*d %d", &state, &group) != 2 || state != 'T' || group <= 0)
		return false;
	*out_group = (pid_t)group;
	return true;
}

static bool is_stopped(int proc, const char *name, pid_t *out_group)
{
	char path[300], text[STAT_TEXT];

	snprintf(path, sizeof(path), "%.255s/stat", name);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (length <= 0) /* the process has ended meanwhile */
		return false;
	text[length] = '\0';
	return launcher_stopped_parse(text, out_group);
}

void launcher_stopped_each(void (*on_stopped)(void *context, pid_t group), void *context)
{
	DIR *folder = opendir("/proc");
	pid_t group;

	for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder))
		if (isdigit((unsigned char)entry->d_name[0]) && is_stopped(dirfd(folder), entry->d_name, &group))
			on_stopped(context, group);
	if (folder)
		closedir(folder);
}
