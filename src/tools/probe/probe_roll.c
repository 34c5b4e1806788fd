#include "tools/probe/probe_roll.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "espalier/espalier.h"
#include "tools/launcher/launcher_child.h"
#include "tools/launcher/launcher_control.h"
#include "tools/launcher/launcher_shell.h"

#define SIDE_BY_SIDE 64u /* hosts that are asked at a time: each takes two descriptors */
#define HEARD 2048u      /* bytes of a shell's output that are kept, the last ones */

/* A remote shell that asks a host. */
struct remote {
	struct run_child child;
	struct run_control control;
	int from; /* its output; -1: this entry is free */
	uint64_t until_ns;
	uint32_t host;
	bool is_silent; /* it has closed its output */
	size_t length;
	char heard[HEARD + 1];
};

struct roll {
	const struct roll_question *question;
	struct roll_answer *answers;
	struct remote *remotes; /* SIDE_BY_SIDE of them */
	uint32_t next, running; /* the next host to ask; entries in use */
	int signals;            /* signalfd of SIGCHLD */
	char **words;           /* command line of the remote shell */
	size_t words_host;
	char *here;
};

/* ---- the answer of a host ---- */

/* The last line that is not blank, without control characters. */
static void last_line(const char *heard, char *out, size_t size)
{
	size_t end = strlen(heard), length = 0;

	while (end > 0 && strchr(" \t\r\n", heard[end - 1]))
		end--;
	size_t begin = end;
	while (begin > 0 && heard[begin - 1] != '\n')
		begin--;
	for (size_t i = begin; i < end && length + 1 < size; i++)
		out[length++] = (unsigned char)heard[i] < ' ' || heard[i] == 0x7f ? ' ' : heard[i];
	out[length] = '\0';
}

void probe_tool_roll_judge(int wait_status, const char *heard, const char *shell, struct roll_answer *out)
{
	char version[64], line[160];

	snprintf(version, sizeof(version), "espalier %s\n", esp_version());
	last_line(heard, line, sizeof(line));
	*out = (struct roll_answer){.is_present = wait_status == 0 && strstr(heard, version) != NULL};
	if (out->is_present)
		return;
	const char *colon = line[0] ? line : "it said nothing";
	if (wait_status == 0)
		snprintf(out->why, sizeof(out->why), "asked for its version, it does not say espalier %.30s: %s", esp_version(),
		         colon);
	else if (WIFSIGNALED(wait_status))
		snprintf(out->why, sizeof(out->why), "%s (%.40s was killed by signal %d)", colon, shell, WTERMSIG(wait_status));
	else
		snprintf(out->why, sizeof(out->why), "%s (%.40s returned %d)", colon, shell, WEXITSTATUS(wait_status));
}

/* ---- asking ---- */

static enum esp_status open_pipes(int to[2], int from[2], struct error *err)
{
	if (pipe2(to, O_CLOEXEC) != 0)
		return error_set(err, ESP_EIO, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(from, O_CLOEXEC) == 0)
		return ESP_OK;
	error_set(err, ESP_EIO, "cannot make a pipe: %s", strerror(errno));
	close(to[0]);
	close(to[1]);
	return ESP_EIO;
}

static enum esp_status write_question(const struct roll *roll, const char *host, char **out, size_t *out_length,
                                      struct error *err)
{
	char version[] = "--version", *none[] = {NULL};
	char *command[] = {(char *)(uintptr_t)roll->question->program, version, NULL};
	const struct run_shell_job job = {.command = command, .words = none, .folder = roll->here, .host = host};

	return launcher_shell_script(&job, out, out_length, err);
}

/* Asks a host. If its shell cannot be started here, that is the answer of this host. */
static enum esp_status ask(struct roll *roll, struct remote *remote, uint32_t host, struct error *err)
{
	char *name = roll->question->hosts->list[host].name, *text = NULL;
	struct error why = {0};
	size_t length = 0;
	int to[2] = {-1, -1}, from[2] = {-1, -1};

	enum esp_status status = write_question(roll, name, &text, &length, err);
	if (status == ESP_OK)
		status = open_pipes(to, from, err);
	if (status != ESP_OK) {
		free(text);
		return status;
	}
	roll->words[roll->words_host] = name;
	const struct run_start start = {.argv = roll->words, .in = to[0], .out = from[1], .err = from[1]};
	uint64_t now_ns = clock_now_ns();
	int failed = launcher_child_start(&remote->child, &start, now_ns, &why);
	close(to[0]);
	close(from[1]);
	if (failed) {
		snprintf(roll->answers[host].why, ROLL_WHY, "%.200s", why.text);
		free(text);
		close(to[1]);
		close(from[0]);
		return ESP_OK;
	}
	fcntl(from[0], F_SETFL, O_NONBLOCK);
	launcher_control_open(&remote->control, to[1], text, length);
	launcher_control_flush(&remote->control);
	remote->from = from[0];
	remote->until_ns = now_ns + roll->question->patience_ns;
	remote->host = host;
	remote->is_silent = false;
	remote->length = 0;
	remote->heard[0] = '\0';
	roll->running++;
	return ESP_OK;
}

static enum esp_status ask_more(struct roll *roll, struct error *err)
{
	const struct run_hosts *hosts = roll->question->hosts;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < SIDE_BY_SIDE && status == ESP_OK;) {
		if (roll->remotes[i].from >= 0 || roll->next == hosts->count)
			i++; /* otherwise the shell could not be started, and the entry is still free */
		else if (hosts->list[roll->next].slots == 0)
			roll->next++;
		else
			status = ask(roll, &roll->remotes[i], roll->next++, err);
	}
	return status;
}

/* ---- reading ---- */

/* Reads output. If the buffer is full, the older half is dropped. False: no more output for now. */
static bool listen_to(struct remote *remote)
{
	if (remote->length == HEARD) {
		memmove(remote->heard, remote->heard + HEARD / 2, HEARD / 2);
		remote->length = HEARD / 2;
	}
	ssize_t got = read(remote->from, remote->heard + remote->length, HEARD - remote->length);
	for (ssize_t i = 0; i < got; i++)
		if (remote->heard[remote->length + (size_t)i] == '\0')
			remote->heard[remote->length + (size_t)i] = ' ';
	remote->is_silent = got == 0;
	remote->length += got > 0 ? (size_t)got : 0;
	remote->heard[remote->length] = '\0';
	return got > 0;
}

static void let_go(struct roll *roll, struct remote *remote)
{
	close(remote->from);
	remote->from = -1;
	launcher_control_close(&remote->control);
	roll->running--;
}

/* Kills the shell before it is reaped, while its process number is still its own. */
static void end_shell(const struct remote *remote)
{
	(void)launcher_child_signal(&remote->child, SIGKILL);
	while (waitpid(remote->child.pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void look_at(struct roll *roll, struct remote *remote, uint64_t now_ns)
{
	int wait_status;
	/* before the output is read: then all of it is in the pipe */
	bool has_ended = waitpid(remote->child.pid, &wait_status, WNOHANG) == remote->child.pid;

	if (launcher_control_pending(&remote->control))
		launcher_control_flush(&remote->control);
	while (listen_to(remote))
		;
	if (!has_ended && now_ns < remote->until_ns)
		return;
	struct roll_answer *answer = &roll->answers[remote->host];
	if (has_ended) {
		probe_tool_roll_judge(wait_status, remote->heard, roll->words[0], answer);
	} else {
		end_shell(remote);
		snprintf(answer->why, sizeof(answer->why), "no answer through %.100s within %.15g s", roll->words[0],
		         (double)roll->question->patience_ns / (double)NS_PER_S);
	}
	let_go(roll, remote);
}

static void await(const struct roll *roll)
{
	struct pollfd polls[1 + 2 * SIDE_BY_SIDE] = {{roll->signals, POLLIN, 0}};
	struct signalfd_siginfo info;
	uint64_t until = UINT64_MAX, now_ns = clock_now_ns();

	for (uint32_t i = 0; i < SIDE_BY_SIDE; i++) {
		const struct remote *remote = &roll->remotes[i];
		bool writes = remote->from >= 0 && launcher_control_pending(&remote->control);
		polls[1 + 2 * i] = (struct pollfd){remote->from >= 0 && !remote->is_silent ? remote->from : -1, POLLIN, 0};
		polls[2 + 2 * i] = (struct pollfd){writes ? remote->control.fd : -1, POLLOUT, 0};
		if (remote->from >= 0 && remote->until_ns < until)
			until = remote->until_ns;
	}
	uint64_t wait_ms = until > now_ns ? (until - now_ns) / NS_PER_MS + 1 : 0;
	(void)poll(polls, 1 + 2 * SIDE_BY_SIDE, wait_ms < 3600000 ? (int)wait_ms : 3600000);
	while (read(roll->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
}

/* ---- all of it ---- */

static enum esp_status open_roll(struct roll *roll, struct error *err)
{
	sigset_t children;

	enum esp_status status = launcher_shell_words(roll->question->rsh, &roll->words, &roll->words_host, err);
	if (status != ESP_OK)
		return status;
	roll->remotes = calloc(SIDE_BY_SIDE, sizeof(*roll->remotes));
	if (!roll->remotes)
		return error_set(err, ESP_ENOMEM, "no memory to ask the hosts");
	for (uint32_t i = 0; i < SIDE_BY_SIDE; i++) {
		roll->remotes[i].from = -1;
		roll->remotes[i].control = RUN_CONTROL_CLOSED;
	}
	roll->here = getcwd(NULL, 0);
	if (!roll->here)
		return error_set(err, ESP_EIO, "cannot tell the current folder: %s", strerror(errno));
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN); /* a shell that ends early does not read its question */
	sigprocmask(SIG_BLOCK, &children, NULL);
	roll->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	return roll->signals >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot watch over processes: %s", strerror(errno));
}

static void close_roll(struct roll *roll)
{
	for (uint32_t i = 0; roll->remotes && i < SIDE_BY_SIDE; i++)
		if (roll->remotes[i].from >= 0) {
			end_shell(&roll->remotes[i]);
			let_go(roll, &roll->remotes[i]);
		}
	if (roll->signals >= 0)
		close(roll->signals);
	launcher_shell_words_free(roll->words, roll->words_host);
	free(roll->remotes);
	free(roll->here);
}

enum esp_status probe_tool_roll_call(const struct roll_question *question, struct roll_answer *out, struct error *err)
{
	struct roll roll = {.question = question, .answers = out, .signals = -1};

	memset(out, 0, question->hosts->count * sizeof(*out));
	enum esp_status status = open_roll(&roll, err);
	if (status == ESP_OK)
		status = ask_more(&roll, err);
	while (status == ESP_OK && roll.running > 0) {
		await(&roll);
		uint64_t now_ns = clock_now_ns();
		for (uint32_t i = 0; i < SIDE_BY_SIDE; i++)
			if (roll.remotes[i].from >= 0)
				look_at(&roll, &roll.remotes[i], now_ns);
		status = ask_more(&roll, err);
	}
	close_roll(&roll);
	return status;
}
