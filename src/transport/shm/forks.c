/*
 * forks.c - the view of a child made by fork() of memory that its parent shares with others.
 *
 * One set of handlers for all of it, as their locks are taken in one order: adopted memory, kept memory, segments.
 */
#include <pthread.h>

#include "transport/shm/parts.h"

static void before(void)
{
	annexes_before_fork();
	kept_before_fork();
}

static void in_parent(void)
{
	kept_in_parent();
	annexes_in_parent();
}

static void in_child(void)
{
	kept_in_child();
	annexes_in_child();
}

static void watch(void)
{
	pthread_atfork(before, in_parent, in_child);
}

void forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
