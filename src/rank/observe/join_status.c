#include "rank/observe/join_status.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fnv.h"
#include "rank/observe/status_server.h"
#include "rank/rank_account.h"

struct join_status {
	struct loop loop;
	struct http_server *status_server;
	pthread_t thread;
	uint64_t since_ns;
	pthread_mutex_t lock;
	char words[ACCOUNT_REASON]; /* guarded by the lock */
};

/* ---- the answer ---- */

/*
 * The instance is not known yet. Ranks that will share one compute the same number, as far as each of them can know: of
 * job, epoch, size, and the place of their rendezvous.
 */
static uint64_t early_instance(const struct launch *launch)
{
	uint64_t hash = FNV_START;
	char place[ANNOUNCE_PLACE_TEXT] = "", leader[ADDRESS_TEXT] = "";

	if (launch->place.kind != ANNOUNCE_NOWHERE)
		announce_place_describe(&launch->place, place);
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
	struct join_status *joining = argument;

	pthread_mutex_lock(&joining->lock);
	snprintf(joining->words, sizeof(joining->words), "%s", words);
	pthread_mutex_unlock(&joining->lock);
}

void join_status_account(struct rank *context, struct account *out)
{
	struct join_status *joining = context->mod.join_status;

	rank_account_who(context, out);
	out->joins_since_ns = joining->since_ns;
	pthread_mutex_lock(&joining->lock);
	snprintf(out->joins_words, sizeof(out->joins_words), "%s", joining->words);
	pthread_mutex_unlock(&joining->lock);
}

/* ---- life ---- */

static void *join_status_main(void *argument)
{
	struct join_status *joining = argument;

	pthread_setname_np(pthread_self(), "esp-joins");
	loop_run(&joining->loop);
	return NULL;
}

static void join_status_free(struct join_status *joining)
{
	http_server_close(joining->status_server);
	loop_fini(&joining->loop);
	pthread_mutex_destroy(&joining->lock);
	free(joining);
}

void join_status_open(struct rank *context)
{
	struct join_status *joining = context->conf.status && context->size > 1 ? calloc(1, sizeof(*joining)) : NULL;
	sigset_t all, before;
	struct error err;

	if (!joining)
		return;
	if (loop_init(&joining->loop, NULL, &err) != ESP_OK) {
		free(joining);
		return;
	}
	pthread_mutex_init(&joining->lock, NULL);
	joining->since_ns = context->opening.began_ns;
	snprintf(joining->words, sizeof(joining->words), "rank 0");
	context->instance = early_instance(&context->join.launch);
	context->mod.join_status = joining; /* before the server opens, which reads it */
	joining->status_server = status_server_open(context, &joining->loop);
	sigfillset(&all); /* signals are the program's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool runs = joining->status_server && pthread_create(&joining->thread, NULL, join_status_main, joining) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!runs) {
		context->mod.join_status = NULL;
		join_status_free(joining);
		return;
	}
	context->join.progress = on_progress;
	context->join.progress_context = joining;
}

void join_status_close(struct rank *context)
{
	struct join_status *joining = context->mod.join_status;

	if (!joining)
		return;
	loop_stop(&joining->loop);
	pthread_join(joining->thread, NULL);
	context->join.progress = NULL;
	context->mod.join_status = NULL;
	join_status_free(joining);
}
