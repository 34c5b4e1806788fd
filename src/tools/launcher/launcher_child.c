#include "tools/launcher/launcher_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quote.h"
#include "tools/launcher/launcher_end.h"

/* Written to the pipe by a child that could not become the command. */
struct failure {
	enum { FAILED_FOLDER, FAILED_EXEC, FAILED_PLACE, FAILED_OTHER } where;
	int cause;
	char text[200]; /* FAILED_PLACE */
};

static void reset_signals(void)
{
	sigset_t none;
	unsigned long as_new[8] = {0}; /* struct sigaction of the kernel: SIG_DFL, no flags, empty mask */
	/* By system call: the C library hides two signals, which the parent may have ignored all the same. */
	for (int number = 1; number < NSIG; number++)
		/* refused for SIGKILL and SIGSTOP */
		(void)syscall(SYS_rt_sigaction, number, as_new, NULL, sizeof(unsigned long));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool go_to_place(const struct run_start *start, struct failure *failure)
{
	struct error err = {0};
	if (!start->place || !start->place->enter ||
	    start->place->enter(start->place->context, start->rank, &err) == ESP_OK)
		return true;
	failure->where = FAILED_PLACE;
	snprintf(failure->text, sizeof(failure->text), "%.199s", err.text);
	return false;
}

/* Becomes the command; returns only on failure. */
static struct failure exec_command(const struct run_start *start, pid_t parent)
{
	struct failure failure = {FAILED_OTHER, 0, ""};
	if (setpgid(0, 0) != 0)
		return (struct failure){FAILED_OTHER, errno, ""};
	if (!go_to_place(start, &failure)) /* first: a change of credentials resets the parent-death signal */
		return failure;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return (struct failure){FAILED_OTHER, errno, ""};
	if (getppid() != parent)
		_exit(1); /* the parent died before the prctl(), so no signal will come */
	if (dup2(start->in, STDIN_FILENO) < 0 || dup2(start->out, STDOUT_FILENO) < 0 || dup2(start->err, STDERR_FILENO) < 0)
		return (struct failure){FAILED_OTHER, errno, ""};
	reset_signals();
	if (start->files && setrlimit(RLIMIT_NOFILE, start->files) != 0)
		return (struct failure){FAILED_OTHER, errno, ""};
	if (start->cwd && chdir(start->cwd) != 0)
		return (struct failure){FAILED_FOLDER, errno, ""};
	for (char *const *word = start->words; word && *word; word++)
		if (putenv(*word) != 0)
			return (struct failure){FAILED_OTHER, errno, ""};
	if (start->words)
		unsetenv("ESP_KEY_FILE"); /* the key itself is among the words */
	execvp(start->argv[0], start->argv);
	return (struct failure){FAILED_EXEC, errno, ""};
}

static int explain_failure(const struct run_start *start, const struct failure *failure, struct error *err)
{
	char shown[QUOTE_TEXT];
	const char *command = quote(start->argv[0], strlen(start->argv[0]), shown);
	if (failure->where == FAILED_FOLDER) {
		error_set(err, ESP_EIO, "cannot start in %.150s: %s", start->cwd, strerror(failure->cause));
		return 126;
	}
	if (failure->where == FAILED_PLACE) {
		error_set(err, ESP_EIO, "cannot start %s: %s", command, failure->text);
		return 1;
	}
	if (failure->where == FAILED_OTHER) {
		error_set(err, ESP_EIO, "cannot start %s: %s%s", command, strerror(failure->cause),
		          failure->cause == EAGAIN ? " (ulimit -u bounds the number of processes)" : "");
		return 1;
	}
	if (failure->cause == ENOENT && !strchr(start->argv[0], '/')) {
		error_set(err, ESP_EINVAL, "there is no command %s along PATH", command);
		return 127;
	}
	if (failure->cause == ENOENT) {
		error_set(err, ESP_EINVAL, "there is no command %s (or what its first line names does not exist)", command);
		return 127;
	}
	struct stat facts; /* relative to the folder in which it was to start */
	int folder = start->cwd ? open(start->cwd, O_PATH | O_CLOEXEC) : AT_FDCWD;
	bool is_folder =
		failure->cause == EACCES && fstatat(folder, start->argv[0], &facts, 0) == 0 && S_ISDIR(facts.st_mode);
	if (folder >= 0)
		close(folder);
	error_set(err, ESP_EINVAL, "cannot run %s: %s", command, is_folder ? "it is a folder" : strerror(failure->cause));
	return 126;
}

/* False: the pipe closed because the child became the command. */
static bool read_failure(int from, struct failure *failure)
{
	ssize_t got;
	do {
		got = read(from, failure, sizeof(*failure));
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(*failure);
}

int launcher_child_start(struct run_child *child, const struct run_start *start, uint64_t now_ns, struct error *err)
{
	struct failure failure = {FAILED_OTHER, 0, ""};
	int report[2];
	pid_t parent = getpid();
	if (pipe2(report, O_CLOEXEC) != 0) {
		failure.cause = errno;
		return explain_failure(start, &failure, err);
	}
	pid_t pid = fork();
	if (pid == 0) {
		failure = exec_command(start, parent);
		ssize_t written = write(report[1], &failure, sizeof(failure));
		_exit(written < 0 ? 126 : 127);
	}
	failure.cause = pid < 0 ? errno : 0;
	close(report[1]);
	bool failed = pid < 0 || read_failure(report[0], &failure);
	close(report[0]);
	if (failed && pid > 0)
		waitpid(pid, NULL, 0);
	if (failed)
		return explain_failure(start, &failure, err);
	*child = (struct run_child){.pid = pid, .state = RUN_CHILD_RUNS, .started_ns = now_ns};
	return 0;
}

bool launcher_child_signal(const struct run_child *child, int signal_number)
{
	if (child->state != RUN_CHILD_RUNS && child->state != RUN_CHILD_LEFT)
		return false;
	return kill(-child->pid, signal_number) == 0 || errno != ESRCH;
}

void launcher_child_on_end(struct run_child *child, int wait_status, uint64_t now_ns)
{
	child->state = RUN_CHILD_LEFT;
	child->status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
	child->signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
	child->ended_ns = now_ns;
	child->sweep_ns = now_ns + RUN_END_STEP_NS;
	child->sweep_signal = SIGTERM;
}

void launcher_child_check(struct run_child *child, uint64_t now_ns)
{
	if (child->state != RUN_CHILD_LEFT)
		return;
	bool overdue = now_ns >= child->sweep_ns;
	bool there = launcher_child_signal(child, overdue ? child->sweep_signal : 0);
	if (!there || (overdue && child->sweep_signal == 0)) {
		child->state = RUN_CHILD_GONE;
	} else if (overdue) {
		child->sweep_signal = child->sweep_signal == SIGTERM ? SIGKILL : 0;
		child->sweep_ns = now_ns + RUN_END_STEP_NS;
	}
}

bool launcher_child_failed(const struct run_child *child)
{
	return child->status != 0 || child->signal != 0;
}

int launcher_child_exit_status(const struct run_child *child)
{
	return child->signal ? 128 + child->signal : child->status;
}
