#include "tools/launcher/launcher_shell.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"

#define TEXT 65536

static const char *quoted(const char *text)
{
	static char out[256];
	memset(out, 0, sizeof(out));
	FILE *file = fmemopen(out, sizeof(out), "w");
	CHECK(file);
	launcher_shell_quote(file, text);
	fclose(file);
	return out;
}

static void test_quote(void)
{
	CHECK_STR(quoted(""), "''");
	CHECK_STR(quoted("a b"), "'a b'");
	CHECK_STR(quoted("it's"), "'it'\\''s'");
	CHECK_STR(quoted("'"), "''\\'''");
	CHECK_STR(quoted("$HOME `id` \\ \n\t!*?[]~#&|;<>(){}\""), "'$HOME `id` \\ \n\t!*?[]~#&|;<>(){}\"'");
}

/* A shell as it would run on another host, and both ends of its pipes. */
struct talk {
	pid_t pid;
	int to, from;
	char text[TEXT]; /* its output, with a NUL behind it */
	size_t length;
};
static struct talk talk;

static void begin(char *const *command, char *const *words, const char *folder)
{
	const struct run_shell_job job = {command, words, folder, "there"};
	char *script = NULL;
	size_t length = 0;
	int to[2], from[2];
	struct error err;
	CHECK(launcher_shell_script(&job, &script, &length, &err) == ESP_OK);
	CHECK(pipe(to) == 0 && pipe(from) == 0);
	talk = (struct talk){.pid = fork(), .to = to[1], .from = from[0]};
	CHECK(talk.pid >= 0);
	if (talk.pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		dup2(from[1], 2);
		for (int fd = 3; fd < 16; fd++)
			close(fd);
		execl("/bin/sh", "sh", "-c", run_shell_bootstrap, (char *)NULL);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	CHECK(write(talk.to, script, length) == (ssize_t)length); /* a pipe holds more than these scripts have */
	free(script);
}

/* Reads up to the end of a line, or of everything. */
static void hear(bool line)
{
	ssize_t got = 1;
	while (got > 0 && !(line && talk.length > 0 && talk.text[talk.length - 1] == '\n')) {
		got = read(talk.from, talk.text + talk.length, sizeof(talk.text) - 1 - talk.length);
		CHECK(got >= 0);
		talk.length += (size_t)got;
	}
	talk.text[talk.length] = '\0';
}

static void say(const char *word)
{
	CHECK(write(talk.to, word, strlen(word)) == (ssize_t)strlen(word));
}

/* Reads the rest of the output and returns the exit status. */
static int end(void)
{
	int status;
	hear(false);
	CHECK(waitpid(talk.pid, &status, 0) == talk.pid && WIFEXITED(status));
	close(talk.from);
	if (talk.to >= 0)
		close(talk.to);
	return WEXITSTATUS(status);
}

/* Not every container has an init that reaps, and zombies count as left behind until they are reaped. */
static void on_child(int unused)
{
	siginfo_t info = {0};
	int kept = errno;
	(void)unused;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 && info.si_pid != talk.pid)
		waitpid(info.si_pid, NULL, 0);
	errno = kept;
}

static void be_init(void)
{
	struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 && sigaction(SIGCHLD, &action, NULL) == 0);
}

static char *const none[] = {NULL};

static int run_sh(const char *script)
{
	char *command[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
	begin(command, none, "/");
	return end();
}

static void test_status(void)
{
	CHECK_U64(run_sh("echo out; echo err >&2; exit 3"), 3);
	CHECK_STR(talk.text, "out\nerr\n");
	CHECK_U64(run_sh("exit 0"), 0);
	CHECK_U64(run_sh("kill -KILL $$"), 128 + SIGKILL);
	CHECK_STR(talk.text, "");
	CHECK_U64(run_sh("cat; pwd"), 0); /* its input is empty */
	CHECK_STR(talk.text, "/\n");
}

static void test_failures(void)
{
	char *missing[] = {"/no/such/command", NULL}, *echo[] = {"echo", NULL};
	begin(missing, none, "/");
	CHECK_U64(end(), 127);
	CHECK_MSG(strstr(talk.text, "/no/such/command"), "%s", talk.text);
	begin(echo, none, "/no/such'folder");
	CHECK_U64(end(), 126);
	CHECK_STR(talk.text, "espalier: run: host there has no folder /no/such'folder; --cwd names another\n");
	begin(echo, none, "-"); /* not `cd -` */
	CHECK_U64(end(), 126);
}

static void test_signals(void)
{
	static const struct {
		const char *word;
		int number;
	} cases[] = {{"INT\n", SIGINT}, {"TERM\n", SIGTERM}, {"KILL\n", SIGKILL}, {"HUP\n", SIGHUP}};
	char *command[] = {"sh", "-c", "echo up; sleep 1000 & wait", NULL};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(command, none, "/");
		hear(true);
		say(cases[i].word);
		CHECK_U64(end(), 128 + cases[i].number); /* which comes only when the sleeper is gone too: it holds our pipe */
	}
	begin(command, none, "/");
	say("TERM\n"); /* perhaps before the command runs */
	CHECK_U64(end(), 128 + SIGTERM);
}

/* The other end is gone. */
static void test_loss(void)
{
	char *command[] = {"sh", "-c", "echo up; sleep 1000 & wait", NULL};
	char *stubborn[] = {"sh", "-c", "trap '' TERM; echo up; while :; do sleep 1000; done", NULL};
	begin(command, none, "/");
	hear(true);
	close(talk.to);
	talk.to = -1;
	CHECK_U64(end(), 128 + SIGTERM);
	begin(stubborn, none, "/");
	hear(true);
	close(talk.to);
	talk.to = -1;
	CHECK_U64(end(), 128 + SIGKILL);
}

static void test_leftover(void)
{
	CHECK_U64(run_sh("sleep 1000 & echo bye"), 0); /* ends, although the sleeper holds the pipe */
	CHECK_STR(talk.text, "bye\n");
}

static char *random_text(struct rng *rng, char *text, size_t size)
{
	static const char nasty[] = "'\"\\$`\n \t!*?[]~#&|;<>(){}%-=";
	size_t length = rng_below(rng, size);
	for (size_t i = 0; i < length; i++)
		text[i] = rng_below(rng, 2) ? nasty[rng_below(rng, strlen(nasty))] : (char)(1 + rng_below(rng, 255));
	text[length] = '\0';
	return text;
}

/* Every byte of every argument and of a variable arrives. */
static void test_any_bytes(struct rng *rng)
{
	enum { COUNT = 6, SIZE = 200 };
	char texts[COUNT][SIZE], variable[SIZE + 8] = "VALUE=", wanted[TEXT];
	char *command[COUNT + 5] = {"sh", "-c", "printf '%s\\1' \"$VALUE\" \"$@\"", "sh"}, *words[] = {variable, NULL};
	size_t length = 0;
	random_text(rng, variable + strlen(variable), SIZE);
	length += (size_t)snprintf(wanted, sizeof(wanted), "%s\1", variable + strlen("VALUE="));
	for (int i = 0; i < COUNT; i++) {
		command[4 + i] = random_text(rng, texts[i], SIZE);
		length += (size_t)snprintf(wanted + length, sizeof(wanted) - length, "%s\1", texts[i]);
	}
	begin(command, words, "/");
	CHECK_U64(end(), 0);
	CHECK_U64(talk.length, length);
	CHECK(memcmp(talk.text, wanted, length) == 0);
}

int main(int argc, char **argv)
{
	static const int told[] = {SIGINT, SIGTERM, SIGHUP};
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		signal(told[i], SIG_DFL); /* nohup, and a shell that starts us in the background, have them ignored */
	be_init();
	test_quote();
	test_status();
	test_failures();
	test_signals();
	test_loss();
	test_leftover();
	for (int i = 0; i < 20; i++)
		test_any_bytes(&rng);
	return 0;
}
