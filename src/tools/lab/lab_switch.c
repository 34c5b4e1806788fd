#include "tools/lab/lab_switch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PATIENCE (20 * NS_PER_S)
#define LOG_TEXT 512

const char *lab_switch_address(const struct lab *lab, char text[LAB_SWITCH_TEXT])
{
	char address[LAB_ADDRESS_TEXT];
	const char *left = lab->config.ipv6 ? "[" : "", *right = lab->config.ipv6 ? "]" : "";

	if (lab->through < lab->host_count)
		lab_address(lab, lab->through, 0, address);
	else
		lab_bridge_address(lab, address);
	snprintf(text, LAB_SWITCH_TEXT, "%s%s%s:%u", left, address, right, LAB_SWITCH_PORT);
	return text;
}

/* All links of the rack end at its bridge. */
static uint64_t rate_of(const struct lab *lab)
{
	if (lab->through < lab->host_count)
		return lab_link(lab, lab_host_link(lab, lab->through, 0))->made.rate;
	return lab->config.rate[0] * lab->config.hosts;
}

/* In the child: becomes the switch. */
__attribute__((noreturn))
static void switch_main(const struct fabric *fabric, char *self, int log)
{
	char address[LAB_SWITCH_TEXT], rate[32], *words[] = {self, "switch", "--listen", address, "--rate", rate, NULL};
	struct error err;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lab_switch_address(fabric->lab, address);
	snprintf(rate, sizeof(rate), "%" PRIu64 "bit", rate_of(fabric->lab));
	dup2(log, STDERR_FILENO);
	if (lab_space_enter(&fabric->spaces[fabric->lab->through], -1, &err) != ESP_OK) {
		dprintf(STDERR_FILENO, "%s\n", err.text);
		_exit(1);
	}
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execv(self, words);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", self, strerror(errno));
	_exit(1);
}

static bool log_says(int log, const char *words, char text[LOG_TEXT])
{
	ssize_t got = pread(log, text, LOG_TEXT - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return strstr(text, words) != NULL;
}

/* Its log says when it listens. */
static enum esp_status await(pid_t pid, int log, struct error *err)
{
	const struct timespec nap = {.tv_nsec = 5 * NS_PER_MS};
	uint64_t until_ns = clock_now_ns() + PATIENCE;
	char text[LOG_TEXT];

	while (!log_says(log, "listens at", text)) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return error_set(err, ESP_EIO, "the switch has ended: %.200s", text);
		if (clock_now_ns() > until_ns) {
			lab_switch_stop(pid);
			return error_set(err, ESP_EIO, "the switch does not listen: %.200s", text);
		}
		nanosleep(&nap, NULL);
	}
	return ESP_OK;
}

enum esp_status lab_switch_start(const struct fabric *fabric, pid_t *out_pid, struct error *err)
{
	char self[4096];

	*out_pid = 0;
	if (fabric->lab->through == LAB_NOBODY)
		return ESP_OK;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int log = memfd_create("espalier-switch", MFD_CLOEXEC);
	if (length <= 0 || log < 0)
		return error_set(err, ESP_ELIMIT, "cannot start a switch: %s", strerror(errno));
	self[length] = '\0';
	pid_t pid = fork();
	if (pid == 0)
		switch_main(fabric, self, log);
	enum esp_status status =
		pid > 0 ? await(pid, log, err) : error_set(err, ESP_ELIMIT, "cannot start a switch: %s", strerror(errno));
	close(log);
	if (status == ESP_OK)
		*out_pid = pid;
	return status;
}

void lab_switch_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}
