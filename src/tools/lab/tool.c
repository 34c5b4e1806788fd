#include "tools/lab/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPLAINT_TEXT 512
#define EXIT_MISSING 127

struct program {
	const char *name, *package;
	const char *argv[6];
};
static const struct program programs[] = {
	[TOOL_IP] = {"ip", "iproute2", {"ip", "-batch", "-", NULL}},
	[TOOL_TC] = {"tc", "iproute2", {"tc", "-batch", "-", NULL}},
	[TOOL_NFT] = {"nft", "nftables", {"nft", "-f", "-", NULL}},
};

enum esp_status lab_tool_begin(struct batch *batch, struct error *err)
{
	*batch = (struct batch){0};
	batch->out = open_memstream(&batch->text, &batch->length);
	return batch->out ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for a batch of commands");
}

void lab_tool_abandon(struct batch *batch)
{
	if (batch->out)
		fclose(batch->out);
	free(batch->text);
	*batch = (struct batch){0};
}

/* A memory file with the text, positioned at its beginning. */
static int make_input(const struct batch *batch)
{
	int fd = memfd_create("batch", MFD_CLOEXEC);
	size_t done = 0;
	while (fd >= 0 && done < batch->length) {
		ssize_t written = write(fd, batch->text + done, batch->length - done);
		if (written < 0 && errno != EINTR) {
			close(fd);
			return -1;
		}
		done += written > 0 ? (size_t)written : 0;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* /sbin is not in every user's PATH. */
static void exec_tool(const struct program *program, int net, int input, int complaints)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin"};
	char path[64];
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setns(net, CLONE_NEWNET) != 0 || dup2(input, STDIN_FILENO) < 0 || dup2(complaints, STDERR_FILENO) < 0 ||
	    dup2(complaints, STDOUT_FILENO) < 0)
		_exit(126);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], program->name);
		execv(path, (char *const *)(uintptr_t)program->argv);
	}
	execvp(program->name, (char *const *)(uintptr_t)program->argv);
	_exit(EXIT_MISSING);
}

/* Finds line `number`, from 1 on; returns its length. */
static int line_of(const struct batch *batch, unsigned long number, const char **out_line)
{
	const char *line = batch->text, *end;
	for (; number > 1 && (end = strchr(line, '\n')); number--)
		line = end + 1;
	end = strchr(line, '\n');
	*out_line = line;
	return end ? (int)(end - line) : (int)strlen(line);
}

/* "Command failed -:12" is the last output of ip and tc; the error is before it. */
static enum esp_status explain_failure(const struct program *program, const struct batch *batch, int complaints,
                               struct error *err)
{
	char text[COMPLAINT_TEXT] = "";
	const char *line = "";
	int length = 0;
	ssize_t got = pread(complaints, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	char *place = strstr(text, "Command failed -:");
	if (place) {
		length = line_of(batch, strtoul(place + strlen("Command failed -:"), NULL, 10), &line);
		*place = '\0';
	}
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	return error_set(err, ESP_EIO, "%s failed: %.120s%s%.*s", program->name, text[0] ? text : "it did not say why",
	                 length ? "in: " : "", length < 80 ? length : 80, line);
}

static enum esp_status wait_for(const struct program *program, const struct batch *batch, pid_t pid, int complaints,
                                struct error *err)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(err, ESP_EIO, "lost sight of %s: %s", program->name, strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return ESP_OK;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MISSING)
		return error_set(err, ESP_EUNSUPPORTED, "there is no command %s: install the package %s", program->name,
		                 program->package);
	return explain_failure(program, batch, complaints, err);
}

enum esp_status lab_tool_run(struct batch *batch, enum tool tool, int net, struct error *err)
{
	const struct program *program = &programs[tool];
	bool written = fflush(batch->out) == 0 && !ferror(batch->out);
	int input = -1, complaints = -1;
	enum esp_status status = ESP_OK;
	if (!written) {
		status = error_set(err, ESP_ENOMEM, "no memory for a batch of commands");
	} else if (batch->length > 0) {
		input = make_input(batch);
		complaints = memfd_create("complaints", MFD_CLOEXEC);
		pid_t pid = input >= 0 && complaints >= 0 ? fork() : -1;
		if (pid == 0)
			exec_tool(program, net, input, complaints);
		status = pid > 0 ? wait_for(program, batch, pid, complaints, err)
		                 : error_set(err, ESP_EIO, "cannot start %s: %s", program->name, strerror(errno));
	}
	if (input >= 0)
		close(input);
	if (complaints >= 0)
		close(complaints);
	lab_tool_abandon(batch);
	return status;
}
