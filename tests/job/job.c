#include "job.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

struct job {
	uint32_t size;
	pthread_barrier_t barrier;
	uint8_t *shared; /* what an all-gather collects */
	const char *const *settings;
	job_fn *function;
	void *argument;
};

struct seat {
	struct job *job;
	struct job_rank rank;
	pthread_t thread;
};

void job_expect(enum esp_status status, enum esp_status expected, const char *what)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == expected)
		return;
	esp_last_error(&error);
	CHECK_MSG(status == expected, "%s: %s, expected %s: %s", what, esp_status_name(status), esp_status_name(expected),
	          error.text);
}

static enum esp_status gather(void *argument, const void *mine, void *all, size_t bytes)
{
	struct seat *seat = argument;
	struct job *job = seat->job;

	int turn = pthread_barrier_wait(&job->barrier);
	if (turn == PTHREAD_BARRIER_SERIAL_THREAD)
		job->shared = malloc(bytes * job->size);
	pthread_barrier_wait(&job->barrier);
	memcpy(job->shared + bytes * seat->rank.rank, mine, bytes);
	pthread_barrier_wait(&job->barrier);
	memcpy(all, job->shared, bytes * job->size);
	turn = pthread_barrier_wait(&job->barrier);
	if (turn == PTHREAD_BARRIER_SERIAL_THREAD)
		free(job->shared);
	return ESP_OK;
}

void job_meet(struct job_rank *rank)
{
	struct seat *seat = (struct seat *)(void *)((char *)rank - offsetof(struct seat, rank));

	pthread_barrier_wait(&seat->job->barrier);
}

static void *seat_main(void *argument)
{
	struct seat *seat = argument;
	struct esp_options options = ESP_OPTIONS_INIT;

	options.rank = seat->rank.rank;
	options.size = seat->rank.size;
	options.allgather = gather;
	options.allgather_context = seat;
	options.settings = seat->job->settings;
	OK(esp_init(&options, &seat->rank.context));
	seat->rank.world = esp_world(seat->rank.context);
	seat->job->function(&seat->rank);
	OK(esp_fini(seat->rank.context));
	return NULL;
}

void job_run(uint32_t size, const char *const *settings, job_fn *function, void *argument)
{
	struct job job = {.size = size, .settings = settings, .function = function};
	struct seat *seats = calloc(size, sizeof(*seats));

	pthread_barrier_init(&job.barrier, NULL, size);
	for (uint32_t i = 0; i < size; i++) {
		seats[i] = (struct seat){.job = &job, .rank = {.rank = i, .size = size, .argument = argument}};
		CHECK(pthread_create(&seats[i].thread, NULL, seat_main, &seats[i]) == 0);
	}
	for (uint32_t i = 0; i < size; i++)
		pthread_join(seats[i].thread, NULL);
	pthread_barrier_destroy(&job.barrier);
	free(seats);
}

/* 1: a CHECK, or a sanitizer. What a trial does to its processes, or asks of them, ends them in other ways. */
static void on_child(int number, siginfo_t *info, void *unused)
{
	static const char text[] = "a process of the test has failed: so has the test\n";
	bool has_failed = info->si_code == CLD_EXITED ? info->si_status == 1
	                                              : info->si_status == SIGABRT || info->si_status == SIGSEGV || info->si_status == SIGBUS;

	(void)number, (void)unused;
	if (!has_failed || info->si_code == CLD_STOPPED || info->si_code == CLD_CONTINUED)
		return;
	ssize_t said = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)said;
	_exit(1);
}

pid_t job_fork(void)
{
	struct sigaction watch = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP};
	pid_t parent = getpid();

	CHECK(sigaction(SIGCHLD, &watch, NULL) == 0);
	fflush(NULL);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child != 0)
		return child;
	signal(SIGCHLD, SIG_DFL);
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	if (getppid() != parent) /* before it was asked for */
		_exit(1);
	return 0;
}

void job_wait(const pid_t *children, uint32_t count, uint32_t victim)
{
	int status;

	for (uint32_t i = 0; i < count; i++) {
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		bool is_good = i == victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
		CHECK_MSG(is_good, "rank %u, victim %u: %x", i, victim, (unsigned)status);
	}
}

/*
 * A socket that is bound and does not listen: the kernel gives the port to nobody else, and whoever asks for it by number gets it. -1: somebody has
 * it already, whatever for. 0: one that the kernel chooses.
 */
static int hold_port(uint32_t port)
{
	/* Of both families, where there are both. */
	struct sockaddr_in6 name6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0;
	bool has_both = fd >= 0;

	if (!has_both)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && (!has_both || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0));
	if (bind(fd, has_both ? (struct sockaddr *)&name6 : (struct sockaddr *)&name, has_both ? sizeof(name6) : sizeof(name)) == 0) {
		CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
		return fd;
	}
	close(fd);
	return -1;
}

uint16_t job_free_port(void)
{
	static int held[8];
	static unsigned next;
	struct sockaddr_in6 name = {0}; /* the port stands where it stands in a sockaddr_in */
	socklen_t length = sizeof(name);
	int fd = hold_port(0);

	CHECK(fd >= 0 && getsockname(fd, (struct sockaddr *)&name, &length) == 0);
	if (held[next] > 0)
		close(held[next]);
	held[next] = fd;
	next = (next + 1) % (sizeof(held) / sizeof(held[0]));
	return ntohs(name.sin6_port);
}

/* What the processes share. */
struct door {
	char text[64];
	atomic_bool is_open;
};

static struct door *door;

void job_fork_with_newcomer(pid_t *children, uint32_t members, job_member_fn *be_member, void (*be_newcomer)(void))
{
	char leader[32];

	door = mmap(NULL, sizeof(*door), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(door != MAP_FAILED);
	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	fflush(NULL);
	for (uint32_t i = 0; i < members + 1; i++) {
		children[i] = job_fork();
		if (children[i] != 0)
			continue;
		if (i < members)
			be_member(i, leader);
		else
			be_newcomer();
		exit(0);
	}
}

void job_open_door(struct esp_context *context)
{
	OK(esp_door(context, door->text, sizeof(door->text)));
	atomic_store(&door->is_open, true);
	while (esp_newcomers(context) == 0)
		sched_yield();
}

void job_go_to_door(void)
{
	while (!atomic_load(&door->is_open))
		sched_yield();
	CHECK(setenv("ESP_DOOR", door->text, 1) == 0);
}

uint16_t job_free_ports(uint32_t count)
{
	enum { MOST = 16, LOWEST = 20000, HIGHEST = 32000 }; /* below those that the kernel gives out by itself */
	static int held[MOST];
	uint32_t first = LOWEST + (uint32_t)getpid() * MOST % (HIGHEST - LOWEST), done = 0;

	CHECK(count <= MOST);
	for (uint32_t i = 0; i < MOST; i++) {
		if (held[i] > 0)
			close(held[i]);
		held[i] = 0;
	}
	for (uint32_t tries = 0; done < count; tries++) {
		CHECK(tries < HIGHEST - LOWEST);
		held[done] = hold_port(first + done);
		if (held[done] > 0) {
			done++;
			continue;
		}
		while (done > 0)
			close(held[--done]);
		first = first + MOST < HIGHEST ? first + MOST : LOWEST;
	}
	return (uint16_t)first;
}
