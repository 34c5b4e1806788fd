#include "referee.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define SAMPLES 256u                  /* of an output: is there a result yet? */
#define SLACK_NS (5 * NS_PER_S)       /* beyond what a trial may take         */
#define LINGER_NS (3 * NS_PER_S)      /* linger_seconds of the ranks          */

struct game {
	struct stage *stage;
	size_t bytes;
	int port_fd;
	pid_t children[TRIAL_RANKS]; /* 0: has ended */
	struct outcome *outcome;
	uint64_t struck_ns;
};

static void rest(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};

	nanosleep(&time, NULL);
}

__attribute__((format(printf, 3, 4)))
static void complain(struct game *game, uint32_t rank, const char *format, ...)
{
	char what[80];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(game->outcome->text, sizeof(game->outcome->text), "rank %u %s: %.160s", rank, what,
	         game->stage->witnesses[rank].text);
}

/* ---- starting ---- */

/*
 * A port for the leader, which can listen there although it is ours: we do not listen, and both do not mind. Nobody else is given
 * it meanwhile. The descriptor that keeps it; -1: there is none.
 */
static int keep_port(char leader[32])
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&name, length) != 0 || getsockname(fd, (struct sockaddr *)&name, &length) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	snprintf(leader, 32, "127.0.0.1:%u", ntohs(name.sin_port));
	return fd;
}

static struct stage *set_stage(const struct trial *trial, size_t *out_bytes, int *out_port_fd)
{
	size_t head = (sizeof(struct stage) + 4095) / 4096 * 4096;
	size_t each = ((size_t)trial->count * sizeof(int64_t) + 4095) / 4096 * 4096;

	*out_bytes = head + trial->size * each;
	void *memory = mmap(NULL, *out_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	struct stage *stage = memory;
	stage->trial = *trial;
	for (uint32_t i = 0; i < trial->size; i++)
		stage->outputs[i] = (int64_t *)(void *)((char *)memory + head + i * each);
	*out_port_fd = keep_port(stage->leader);
	return *out_port_fd >= 0 ? stage : NULL;
}

static bool start_ranks(struct game *game)
{
	pid_t parent = getpid();

	fflush(NULL);
	for (uint32_t i = 0; i < game->stage->trial.size; i++) {
		game->children[i] = fork();
		if (game->children[i] < 0)
			return false;
		if (game->children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)setpgid(0, 0); /* whoever started us may end: then the kernel wakes those of our group who are stopped */
			close(game->port_fd);
			_exit(getppid() == parent ? rank_live(game->stage, i) : 1);
		}
	}
	return true;
}

/* ---- the moment ---- */

static bool is_at(const struct game *game, uint32_t rank, enum place place)
{
	return atomic_load(&game->stage->witnesses[rank].place) == (uint32_t)place;
}

static bool all_at(const struct game *game, enum place place)
{
	for (uint32_t i = 0; i < game->stage->trial.size; i++) {
		if (!is_at(game, i, place))
			return false;
	}
	return true;
}

/* How many of the samples of the victim's output have a result, once it is in the call. */
static uint32_t count_results(const struct game *game)
{
	const struct trial *trial = &game->stage->trial;
	const volatile int64_t *output = game->stage->outputs[trial->victim];
	uint32_t call = atomic_load(&game->stage->witnesses[trial->victim].call), found = 0;

	if (!is_at(game, trial->victim, AT_CALL) || call < trial->target_call)
		return 0;
	if (call > trial->target_call)
		return SAMPLES; /* that was too quick for us: a later one will do */
	for (uint64_t i = 0; i < SAMPLES; i++)
		found += output[i * (trial->count - 1) / (SAMPLES - 1)] != STAGE_UNTOUCHED;
	return found;
}

static bool has_begun(const struct game *game)
{
	const struct trial *trial = &game->stage->trial;
	const struct witness *victim = &game->stage->witnesses[trial->victim];

	switch (trial->phase) {
	case PHASE_JOINING:
		return is_at(game, trial->victim, AT_JOIN);
	case PHASE_IDLE:
		return all_at(game, AT_PAUSE);
	case PHASE_LATE:
		return is_at(game, trial->victim, AT_PAUSE);
	case PHASE_FIRST:
		return count_results(game) >= 1;
	case PHASE_MIDDLE:
		return count_results(game) >= SAMPLES / 2;
	case PHASE_LAST:
		return count_results(game) >= SAMPLES - SAMPLES / 16;
	case PHASE_SHRINK:
		return atomic_load(&victim->shrinks) > 0; /* it may be quick */
	case PHASE_LEAVING:
		return is_at(game, trial->victim, AT_LEAVE);
	default:
		return atomic_load(&victim->call) >= trial->target_call;
	}
}

/* Notices who has ended; the number of those who have not. */
static uint32_t reap(struct game *game)
{
	const struct trial *trial = &game->stage->trial;
	uint32_t left = 0;
	int status;

	for (uint32_t i = 0; i < trial->size; i++) {
		if (game->children[i] == 0)
			continue;
		if (waitpid(game->children[i], &status, WNOHANG) != game->children[i]) {
			left++;
			continue;
		}
		game->children[i] = 0;
		bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		bool was_to_be = i == trial->first_victim || (i == trial->victim && trial->way == WAY_KILL && game->struck_ns != 0);
		if (!(is_killed && was_to_be) && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
			game->outcome->broken++;
			complain(game, i, "ended with status %x", (unsigned)status);
		}
	}
	return left;
}

static void strike(struct game *game)
{
	const struct trial *trial = &game->stage->trial;
	uint64_t until = clock_now_ns() + (uint64_t)trial->join_seconds * NS_PER_S + SLACK_NS;

	while (!has_begun(game)) {
		if (clock_now_ns() >= until || reap(game) == 0)
			return;
		rest(20 * NS_PER_US);
	}
	rest(trial->delay_ns);
	if (reap(game) < trial->size && game->children[trial->victim] == 0)
		return; /* it has left in the meantime */
	game->struck_ns = clock_now_ns();
	game->outcome->has_struck = kill(game->children[trial->victim], trial->way == WAY_KILL ? SIGKILL : SIGSTOP) == 0;
}

/* ---- the end ---- */

static void end_those_who_hang(struct game *game, const char *when)
{
	for (uint32_t i = 0; i < game->stage->trial.size; i++) {
		if (game->children[i] == 0)
			continue;
		game->outcome->hung++;
		complain(game, i, "hangs %s, at %u, call %u", when, atomic_load(&game->stage->witnesses[i].place),
		         atomic_load(&game->stage->witnesses[i].call));
		kill(game->children[i], SIGKILL);
		waitpid(game->children[i], NULL, 0);
		game->children[i] = 0;
	}
}

/* Until no more are left than `but`; false: not in time. */
static bool await_end(struct game *game, uint32_t but, uint64_t patience)
{
	uint64_t until = clock_now_ns() + patience;

	while (reap(game) > but) {
		if (clock_now_ns() >= until)
			return false;
		rest(200 * NS_PER_US);
	}
	return true;
}

static void finish(struct game *game)
{
	const struct trial *trial = &game->stage->trial;
	uint64_t interval = (uint64_t)trial->liveness_ms * NS_PER_MS;
	uint64_t patience = interval + LINGER_NS + SLACK_NS;
	bool is_frozen = trial->way == WAY_STOP && game->outcome->has_struck;

	if (trial->phase == PHASE_JOINING)
		patience += (uint64_t)trial->join_seconds * NS_PER_S;
	if (trial->phase == PHASE_SHRINK) /* the interval may have to pass twice: to give up one, and then the other */
		patience += interval;
	atomic_store(&game->stage->is_released, trial->phase != PHASE_LATE);
	bool in_time = await_end(game, is_frozen, patience);
	if (is_frozen && in_time) {
		atomic_store(&game->stage->is_released, true);
		kill(game->children[trial->victim], SIGCONT);
		(void)await_end(game, 0, patience);
		end_those_who_hang(game, "after it was thawed");
		return;
	}
	if (is_frozen && game->children[trial->victim] != 0) { /* is not one of those who hang */
		kill(game->children[trial->victim], SIGKILL);
		waitpid(game->children[trial->victim], NULL, 0);
		game->children[trial->victim] = 0;
	}
	end_those_who_hang(game, "after the signal");
}

static uint64_t since(uint64_t then, uint64_t now)
{
	return now > then ? now - then : now ? 1 : 0;
}

static void judge(struct game *game)
{
	const struct trial *trial = &game->stage->trial;
	struct outcome *outcome = game->outcome;

	for (uint32_t i = 0; i < trial->size; i++) {
		const struct witness *witness = &game->stage->witnesses[i];

		outcome->wrong += atomic_load(&witness->wrong);
		if (atomic_load(&witness->wrong) != 0)
			complain(game, i, "has %u wrong", atomic_load(&witness->wrong));
		outcome->broken += atomic_load(&witness->broken);
		if (i == trial->victim && atomic_load(&witness->broken) != 0)
			complain(game, i, "broke off");
		if (i == trial->victim || i == trial->first_victim || !outcome->has_struck)
			continue;
		outcome->misnamed += atomic_load(&witness->misnamed);
		if (atomic_load(&witness->broken) != 0)
			complain(game, i, "broke off");
		else if (atomic_load(&witness->misnamed) != 0 && outcome->text[0] == '\0')
			complain(game, i, "blames another one");
		outcome->error_ns[i] = since(game->struck_ns, atomic_load(&witness->error_ns));
		outcome->went_on_ns[i] = since(game->struck_ns, atomic_load(&witness->went_on_ns));
		if (outcome->error_ns[i] == 0 && outcome->hung == 0) {
			outcome->broken++;
			complain(game, i, "has not learnt of the loss");
		}
	}
}

bool referee_play(const struct trial *trial, struct outcome *outcome)
{
	struct game game = {.outcome = outcome};

	*outcome = (struct outcome){.trial = *trial};
	game.stage = set_stage(trial, &game.bytes, &game.port_fd);
	if (!game.stage)
		return false;
	bool is_started = start_ranks(&game);
	if (is_started) {
		strike(&game);
		finish(&game);
		judge(&game);
	}
	close(game.port_fd);
	munmap(game.stage, game.bytes);
	return is_started;
}
