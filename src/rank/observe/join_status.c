#include "rank/observe/join_status.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fnv.h"
#include "rank/observe/status_server.h"
#include "rank/rank_account.h"

struct foyer {
	struct desk *desk;
	pthread_t thread;
	int quit_fd;
	uint64_t since_ns;
	pthread_mutex_t lock;
	char words[ACCOUNT_REASON]; /* guarded by the lock */
};

/* ---- what is told ---- */

/* Those who will have one instance have the same number before, as far as each of them can know: job, epoch, size, and where they meet. */
static uint64_t early_instance(const struct launch *launch)
{
	uint64_t hash = FNV_START;
	char place[NOTICE_PLACE_TEXT] = "", leader[ADDRESS_TEXT] = "";

	if (launch->place.kind != NOTICE_NOWHERE)
		notice_place_describe(&launch->place, place);
	else if (launch->leader.port != 0)
		address_format(&launch->leader, leader);
	hash = fnv_add(hash, launch->job, strlen(launch->job) + 1);
	hash = fnv_add(hash, &launch->epoch, sizeof(launch->epoch));
	hash = fnv_add(hash, &launch->size, sizeof(launch->size));
	hash = fnv_add(hash, place, strlen(place) + 1);
	hash = fnv_add(hash, leader, strlen(leader) + 1);
	return hash;
}

static void on_progress(void *argument, const char *words)
{
	struct foyer *foyer = argument;

	pthread_mutex_lock(&foyer->lock);
	snprintf(foyer->words, sizeof(foyer->words), "%s", words);
	pthread_mutex_unlock(&foyer->lock);
}

void foyer_account(struct context *context, struct account *out)
{
	struct foyer *foyer = context->foyer;

	context_account_who(context, out);
	out->joins_since_ns = foyer->since_ns;
	pthread_mutex_lock(&foyer->lock);
	snprintf(out->joins_words, sizeof(out->joins_words), "%s", foyer->words);
	pthread_mutex_unlock(&foyer->lock);
}

/* ---- life ---- */

static void *foyer_main(void *argument)
{
	struct foyer *foyer = argument;
	struct pollfd fds[] = {{.fd = foyer->quit_fd, .events = POLLIN}, {.fd = desk_descriptor(foyer->desk), .events = POLLIN}};

	pthread_setname_np(pthread_self(), "esp-joins");
	while (!fds[0].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			desk_turn(foyer->desk);
	}
	return NULL;
}

static void foyer_free(struct foyer *foyer)
{
	desk_close(foyer->desk);
	if (foyer->quit_fd >= 0)
		close(foyer->quit_fd);
	pthread_mutex_destroy(&foyer->lock);
	free(foyer);
}

void foyer_open(struct context *context)
{
	struct foyer *foyer = context->conf.status && context->size > 1 ? calloc(1, sizeof(*foyer)) : NULL;
	sigset_t all, before;

	if (!foyer)
		return;
	pthread_mutex_init(&foyer->lock, NULL);
	foyer->since_ns = context->opened_ns;
	foyer->quit_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	snprintf(foyer->words, sizeof(foyer->words), "rank 0");
	context->instance = early_instance(&context->join.launch);
	context->foyer = foyer; /* the desk looks at it */
	foyer->desk = foyer->quit_fd >= 0 ? desk_open(context) : NULL;
	sigfillset(&all); /* signals are the program's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool runs = foyer->desk && pthread_create(&foyer->thread, NULL, foyer_main, foyer) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!runs) {
		context->foyer = NULL;
		foyer_free(foyer);
		return;
	}
	context->join.progress = on_progress;
	context->join.progress_context = foyer;
}

void foyer_close(struct context *context)
{
	struct foyer *foyer = context->foyer;

	if (!foyer)
		return;
	(void)eventfd_write(foyer->quit_fd, 1);
	pthread_join(foyer->thread, NULL);
	context->join.progress = NULL;
	context->foyer = NULL;
	foyer_free(foyer);
}
