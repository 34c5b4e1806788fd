#include "tools/launcher/launcher_control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void launcher_control_open(struct run_control *control, int fd, char *text, size_t length)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*control = (struct run_control){.fd = fd, .text = text, .used = length};
}

static void forget(struct run_control *control)
{
	if (control->text)
		explicit_bzero(control->text, control->used); /* the key was in it */
	free(control->text);
	control->text = NULL;
	control->used = control->sent = 0;
}

static const char *word_of(int signal_number)
{
	switch (signal_number) {
	case SIGHUP:
		return "HUP";
	case SIGINT:
		return "INT";
	case SIGTERM:
		return "TERM";
	default:
		return "KILL";
	}
}

static bool say(struct run_control *control, const char *word)
{
	size_t length = strlen(word);
	if (control->fd < 0)
		return false;
	char *text = realloc(control->text, control->used + length + 1);
	if (!text)
		return false;
	memcpy(text + control->used, word, length);
	text[control->used + length] = '\n';
	control->text = text;
	control->used += length + 1;
	launcher_control_flush(control);
	return control->fd >= 0;
}

bool launcher_control_signal(struct run_control *control, int signal_number)
{
	return say(control, word_of(signal_number));
}

bool launcher_control_look(struct run_control *control, uint64_t seconds)
{
	char word[40];
	snprintf(word, sizeof(word), "LOOK %" PRIu64, seconds);
	return say(control, word);
}

void launcher_control_flush(struct run_control *control)
{
	while (control->fd >= 0 && control->sent < control->used) {
		ssize_t written = write(control->fd, control->text + control->sent, control->used - control->sent);
		if (written > 0)
			control->sent += (size_t)written;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			launcher_control_close(control);
	}
	forget(control);
}

bool launcher_control_pending(const struct run_control *control)
{
	return control->fd >= 0 && control->sent < control->used;
}

void launcher_control_close(struct run_control *control)
{
	if (control->fd >= 0)
		close(control->fd);
	control->fd = -1;
	forget(control);
}
