#include "api/exit.h"

#include <pthread.h>

#include "rank/member/membership.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rank *open_contexts; /* by next_open */

void exit_watch(struct rank *context)
{
	pthread_mutex_lock(&lock);
	context->next_open = open_contexts;
	open_contexts = context;
	pthread_mutex_unlock(&lock);
}

void exit_forget(struct rank *context)
{
	pthread_mutex_lock(&lock);
	struct rank **at = &open_contexts;
	while (*at && *at != context)
		at = &(*at)->next_open;
	if (*at)
		*at = context->next_open;
	pthread_mutex_unlock(&lock);
}

/*
 * A child of fork() has the list but not the threads, and perhaps not the lock; contexts that it has opened itself come
 * first.
 */
__attribute__((destructor)) static void tell_all(void)
{
	if (!open_contexts || rank_is_forked(open_contexts) || pthread_mutex_trylock(&lock) != 0)
		return;
	for (struct rank *context = open_contexts; context && !rank_is_forked(context); context = context->next_open)
		membership_exit(context);
	pthread_mutex_unlock(&lock);
}
