#include "tools/bench/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define PIECE 65536u
#define CANNOT_RUN 127

void bench_child_add(struct child_words *words, const char *word)
{
	assert(words->count < CHILD_WORDS && word);
	words->word[words->count++] = word;
	words->word[words->count] = NULL;
}

void bench_child_add_all(struct child_words *words, const char *const *more)
{
	for (; *more; more++)
		bench_child_add(words, *more);
}

/* ---- signals ---- */

static int signals = -1; /* a signalfd: signals that end the command that runs; -1: they are not looked at */

enum esp_status bench_child_heed_signals(struct error *err)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals < 0 || pthread_sigmask(SIG_BLOCK, &ends, NULL) != 0)
		return error_set(err, ESP_EIO, "cannot wait for signals: %s", strerror(errno));
	return ESP_OK;
}

void bench_child_ignore_signals(void)
{
	if (signals >= 0)
		close(signals);
	signals = -1; /* they stay blocked */
}

/* ---- processes ---- */

/* In the child: never returns. out: -1 for nowhere; log: NULL for this process's stderr. */
static void become(const struct child_words *words, int out, const char *log)
{
	sigset_t none;
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int complaints = log ? open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : STDERR_FILENO;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); /* signals of the terminal come to the benchmark alone, which then ends this */
	if (nowhere < 0 || dup2(nowhere, STDIN_FILENO) < 0 || dup2(out >= 0 ? out : nowhere, STDOUT_FILENO) < 0 ||
	    complaints < 0 || dup2(complaints, STDERR_FILENO) < 0)
		_exit(CANNOT_RUN);
	execvp(words->word[0], (char *const *)(uintptr_t)words->word);
	_exit(CANNOT_RUN);
}

static enum esp_status start(const struct child_words *words, int out, const char *log, pid_t *out_pid,
                             struct error *err)
{
	assert(words->count > 0);
	pid_t pid = fork();

	if (pid == 0)
		become(words, out, log);
	if (pid < 0)
		return error_set(err, ESP_EIO, "cannot start %s: %s", words->word[0], strerror(errno));
	*out_pid = pid;
	return ESP_OK;
}

/* Reads until the end, or until the time or a signal: false then, or without memory. */
static bool read_all(int fd, uint64_t until_ns, char **text, bool *out_is_aborted)
{
	size_t length = 0, room = 0;

	for (;;) {
		uint64_t now = clock_now_ns();
		struct pollfd ready[] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};

		if (room - length < PIECE) {
			char *more = realloc(*text, room + 2 * PIECE);
			if (!more)
				return false;
			*text = more;
			room += 2 * PIECE;
		}
		if (now >= until_ns)
			return false;
		uint64_t left_ms = (until_ns - now) / NS_PER_MS + 1;
		if (poll(ready, 2, left_ms > 60000 ? 60000 : (int)left_ms) <= 0)
			continue;
		if (ready[1].revents) {
			*out_is_aborted = true;
			return false;
		}
		ssize_t got = read(fd, *text + length, room - length - 1);
		if (got < 0 && errno == EINTR)
			continue;
		length += got > 0 ? (size_t)got : 0;
		(*text)[length] = '\0';
		if (got <= 0)
			return true;
	}
}

static int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

enum esp_status bench_child_run(const struct child_words *words, double seconds, char **out_text, struct error *err)
{
	int pipes[2];
	pid_t pid = 0;
	char *text = NULL;
	bool is_aborted = false;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return error_set(err, ESP_ELIMIT, "no descriptors for a pipe");
	enum esp_status status = start(words, pipes[1], NULL, &pid, err);
	close(pipes[1]);
	if (status != ESP_OK) {
		close(pipes[0]);
		return status;
	}
	bool is_whole = read_all(pipes[0], clock_now_ns() + (uint64_t)(seconds * (double)NS_PER_S), &text, &is_aborted);
	close(pipes[0]);
	if (!is_whole)
		kill(pid, SIGTERM);
	int ended = wait_for(pid);
	if (is_whole && WIFEXITED(ended) && WEXITSTATUS(ended) == 0) {
		*out_text = text;
		return ESP_OK;
	}
	free(text);
	if (is_aborted)
		return error_set(err, ESP_EABORTED, "it was interrupted");
	if (!is_whole)
		return error_set(err, ESP_ETIMEOUT, "%s took more than %g seconds and was ended", words->word[0], seconds);
	if (WIFSIGNALED(ended))
		return error_set(err, ESP_EIO, "%s was ended by signal %d", words->word[0], WTERMSIG(ended));
	return error_set(err, ESP_EIO, "%s %s ended with status %d", words->word[0], words->count > 1 ? words->word[1] : "",
	                 WEXITSTATUS(ended));
}

enum esp_status bench_child_do(const struct child_words *words, double seconds, struct error *err)
{
	char *text = NULL;
	enum esp_status status = bench_child_run(words, seconds, &text, err);

	if (status == ESP_OK)
		free(text);
	return status;
}

enum esp_status bench_child_start(const struct child_words *words, const char *log, pid_t *out_pid, struct error *err)
{
	return start(words, -1, log, out_pid, err);
}

void bench_child_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	wait_for(pid);
}
