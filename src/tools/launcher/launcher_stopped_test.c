#include "tools/launcher/launcher_stopped.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static void test_parse(void)
{
	pid_t group = 0;
	CHECK(launcher_stopped_parse("12 (train) T 1 77 77 0 -1 4194304", &group) && group == 77);
	/* a name like the rest of the line */
	CHECK(launcher_stopped_parse("12 (a) S 1 2 (b) T 1 78 77 0", &group) && group == 78);
	CHECK(!launcher_stopped_parse("12 (train) S 1 77 77 0", &group) &&
	      !launcher_stopped_parse("12 (T 1 77) R 1 77 77 0", &group));
	CHECK(!launcher_stopped_parse("12 (train) t 1 77 77 0", &group)); /* held by a debugger */
	CHECK(!launcher_stopped_parse("12 (train) T 1 0 0", &group));     /* of another namespace */
	CHECK(!launcher_stopped_parse("", &group) && !launcher_stopped_parse("12 (train", &group) &&
	      !launcher_stopped_parse("12 (train) T", &group));
}

static void note(void *context, pid_t group)
{
	pid_t *wanted = context;
	*wanted = *wanted == group ? 0 : *wanted;
}

static bool is_found(pid_t group)
{
	launcher_stopped_each(note, &group);
	return group == 0;
}

static void test_each(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(is_found(pid) && !is_found(getpgrp()));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!is_found(pid));
}

int main(void)
{
	test_parse();
	test_each();
	return 0;
}
