/*
 * forks.c - the view of a child made by fork() of memory that its parent shares with others.
 *
 * One set of handlers for all of it, as their locks are taken in one order: adopted memory, kept memory, segments.
 */
#include <pthread.h>

#include "transport/shm/parts.h"

static void before(void)
{
	shm_annexes_before_fork();
	shm_kept_before_fork();
}

static void in_parent(void)
{
	shm_kept_in_parent();
	shm_annexes_in_parent();
}

static void in_child(void)
{
	shm_kept_in_child();
	shm_annexes_in_child();
}

static void watch(void)
{
	pthread_atfork(before, in_parent, in_child);
}

void shm_forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
