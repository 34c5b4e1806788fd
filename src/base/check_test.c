#include "base/check.h"

#include <sys/wait.h>
#include <unistd.h>

/* The exit status of a program with these words, which asks for --seed and --count: 0 if it got wanted. */
static int run(int argc, char **argv, uint64_t seed, uint64_t count)
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		bool same = test_option(argc, argv, "--seed", 1) == seed && test_option(argc, argv, "--count", 3000) == count;
		exit(same ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* As above, of one that takes a seed alone. */
static int run_seed(int argc, char **argv)
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		exit(test_seed(argc, argv, 1) == 7 ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define ARGUMENTS(...) (int)(sizeof((char *[]){"t", __VA_ARGS__}) / sizeof(char *)), (char *[]){"t", __VA_ARGS__}

int main(void)
{
	CHECK(run(1, (char *[]){"t"}, 1, 3000) == 0);
	CHECK(run(ARGUMENTS("--seed", "7"), 7, 3000) == 0);
	CHECK(run(ARGUMENTS("--count", "2", "--seed", "0x10"), 16, 2) == 0);
	CHECK(run(ARGUMENTS("--seed", "18446744073709551615"), UINT64_MAX, 3000) == 0);
	CHECK(run(ARGUMENTS("--help"), 0, 0) == 0);
	CHECK(run(ARGUMENTS("--bogus"), 1, 3000) == 2);
	CHECK(run(ARGUMENTS("7"), 1, 3000) == 2);
	CHECK(run(ARGUMENTS("--seed", "7", "--count"), 7, 3000) == 2);
	CHECK(run(ARGUMENTS("--seed", "7x"), 7, 3000) == 2);
	CHECK(run(ARGUMENTS("--seed", "-7"), 7, 3000) == 2);
	CHECK(run(ARGUMENTS("--seed", ""), 0, 3000) == 2);
	CHECK(run(ARGUMENTS("--seed", "18446744073709551616"), UINT64_MAX, 3000) == 2);
	CHECK(run_seed(ARGUMENTS("--seed", "7")) == 0);
	CHECK(run_seed(ARGUMENTS("--seed", "7", "--count", "2")) == 2);
	return 0;
}
