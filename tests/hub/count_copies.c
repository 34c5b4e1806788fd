/* These functions stand in for libc's, so the checked variants of its headers are not wanted. */
#undef _FORTIFY_SOURCE
#include "count_copies.h"

#include <stddef.h>
#include <sys/prctl.h>

atomic_bool count_copies_on;
_Atomic uint64_t count_copies_bytes, count_copies_allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *__memcpy_chk(void *restrict to, const void *restrict from, size_t bytes, size_t room);
void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *old, size_t bytes);
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

/* A thread of a hub or of a worker's link. */
static bool is_counted(void)
{
	static const char prefix[] = "esp-hub";
	char name[16];

	if (!atomic_load_explicit(&count_copies_on, memory_order_relaxed) || prctl(PR_GET_NAME, name) != 0)
		return false;
	for (size_t i = 0; prefix[i]; i++) {
		if (name[i] != prefix[i])
			return false;
	}
	return true;
}

/* Or the loop would call memcpy(). */
#ifdef __clang__
#define PLAIN __attribute__((no_builtin("memcpy", "memmove")))
#else
#define PLAIN __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

PLAIN static void *copy(void *to, const void *from, size_t bytes)
{
	char *at = to;
	const char *source = from;

	if (at < source) {
		for (size_t i = 0; i < bytes; i++)
			at[i] = source[i];
	} else {
		for (size_t i = bytes; i > 0; i--)
			at[i - 1] = source[i - 1];
	}
	if (bytes >= COUNT_COPIES_FROM && is_counted())
		atomic_fetch_add(&count_copies_bytes, bytes);
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	return copy(to, from, bytes);
}

void *memmove(void *to, const void *from, size_t bytes)
{
	return copy(to, from, bytes);
}

void *__memcpy_chk(void *restrict to, const void *restrict from, size_t bytes, size_t room)
{
	(void)room;
	return copy(to, from, bytes);
}

void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room)
{
	(void)room;
	return copy(to, from, bytes);
}

static void count_allocation(void)
{
	if (is_counted())
		atomic_fetch_add(&count_copies_allocations, 1);
}

void *malloc(size_t bytes)
{
	count_allocation();
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	count_allocation();
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	count_allocation();
	return __libc_realloc(old, bytes);
}

#endif
