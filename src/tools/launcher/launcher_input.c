#include "tools/launcher/launcher_input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int launcher_input_open(struct run_input *input)
{
	int pipes[2];
	*input = (struct run_input){.open = false};
	if (!isatty(STDIN_FILENO))
		return STDIN_FILENO;
	if (tcgetpgrp(STDIN_FILENO) != getpgrp())
		/* in the background: the terminal's input belongs to another job */
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return -1;
	/* if this process is sent to the background later, it reads an error instead of being stopped */
	signal(SIGTTIN, SIG_IGN);
	fcntl(pipes[1], F_SETFL, O_NONBLOCK);
	*input = (struct run_input){.open = true, .from = STDIN_FILENO, .to = pipes[1]};
	return pipes[0];
}

void launcher_input_poll(const struct run_input *input, struct pollfd polls[RUN_INPUT_POLLS])
{
	bool waits = input->sent < input->used;
	polls[0] = (struct pollfd){input->open && !waits ? input->from : -1, POLLIN, 0};
	/* 0: only POLLERR, when rank 0 has closed its end */
	polls[1] = (struct pollfd){input->open ? input->to : -1, waits ? POLLOUT : 0, 0};
}

static void read_terminal(struct run_input *input)
{
	ssize_t got = read(input->from, input->text, sizeof(input->text));
	if (got > 0) {
		input->used = (size_t)got;
		input->sent = 0;
	} else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
		launcher_input_close(input); /* Ctrl-D */
	}
}

static void write_rank(struct run_input *input)
{
	ssize_t written = write(input->to, input->text + input->sent, input->used - input->sent);
	if (written > 0)
		input->sent += (size_t)written;
	else if (errno != EINTR && errno != EAGAIN)
		launcher_input_close(input);
}

void launcher_input_move(struct run_input *input, const struct pollfd polls[RUN_INPUT_POLLS])
{
	if (input->open && (polls[1].revents & (POLLERR | POLLHUP)))
		launcher_input_close(input);
	if (input->open && polls[0].revents)
		read_terminal(input);
	if (input->open && input->sent < input->used)
		write_rank(input);
}

void launcher_input_close(struct run_input *input)
{
	if (input->open)
		close(input->to);
	input->open = false;
}
