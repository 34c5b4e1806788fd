/*
 * heap.c - free() and realloc() of the whole process, and what can be told of a block of malloc().
 *
 * Memory that is shared (share.c) has to be private again before it is given back, so whatever gives it back is seen here first. All
 * else goes on to the next definition, another tool's or glibc's, after one look at a counter that is zero in most programs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim.h"

typedef void free_fn(void *);
typedef void *realloc_fn(void *, size_t);
static _Atomic(free_fn *) next_free;
static _Atomic(realloc_fn *) next_realloc;

static atomic_uint watches;    /* blocks that are to be seen when they are freed                  */
static _Atomic(void *) probed; /* a block that is freed to see whether that comes here; or NULL   */

/* ---- blocks of glibc ---- */

/*
 * A large block has pages of its own, and before the memory two words: how far the mapping begins before them, and how long it is from
 * there, with flags.
 *
 *     page boundary |  lead  | lead, length + 2 | memory ...            | page boundary
 */
#define HEADER (2 * sizeof(size_t))
#define FLAGS 7u
#define IS_MAPPED 2u
#define LEAD_MOST (1u << 20) /* more than any alignment asks for */

static size_t page; /* its bytes, a power of two */

/* Both words lie in the page of the memory's first byte, which is the caller's: so they can be read, whatever they are. */
static bool has_header(const void *memory)
{
	return (uintptr_t)memory % HEADER == 0 && ((uintptr_t)memory & (page - 1)) >= HEADER && (((const size_t *)memory)[-1] & FLAGS) == IS_MAPPED;
}

bool heap_is_block(const void *memory, size_t bytes)
{
	if (!memory || !has_header(memory))
		return false;
	size_t lead = ((const size_t *)memory)[-2], length = ((const size_t *)memory)[-1] - IS_MAPPED;
	return lead < LEAD_MOST && ((uintptr_t)memory - HEADER - lead) % page == 0 && length < SIZE_MAX - lead && (lead + length) % page == 0 &&
	       length > HEADER && bytes <= length - HEADER;
}

/* ---- who frees ---- */

void heap_watch(void)
{
	atomic_fetch_add(&watches, 1);
}

void heap_unwatch(void)
{
	atomic_fetch_sub(&watches, 1);
}

/* Has whatever was just freed come through here? */
static bool was_seen(void)
{
	return atomic_exchange(&probed, NULL) == NULL;
}

/* As the program does it: it may have been bound to others before us, or to none of us at all. Our own calls may be bound to ourselves. */
static bool is_freed_here(void)
{
	free_fn *programs_free = (free_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "free");
	realloc_fn *programs_realloc = (realloc_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "realloc");
	if (!programs_free || !programs_realloc)
		return false;
	bool is_seen = false;
	void *memory = malloc(1), *more = NULL;
	heap_watch();
	atomic_store(&probed, memory);
	if (memory)
		more = programs_realloc(memory, 1000);
	if (more) {
		is_seen = was_seen();
		atomic_store(&probed, more);
		memory = more;
	}
	programs_free(memory);
	is_seen = was_seen() && is_seen;
	heap_unwatch();
	return is_seen;
}

static bool is_glibcs(void)
{
	Dl_info libc, of_malloc;

	return dladdr((void *)(uintptr_t)gnu_get_libc_version, &libc) && dladdr((void *)(uintptr_t)malloc, &of_malloc) &&
	       libc.dli_fbase == of_malloc.dli_fbase;
}

bool heap_is_known(void)
{
	return is_glibcs() && is_freed_here();
}

/* ---- what the program calls ---- */

/* dlsym() may free something itself. That is left lying, as nobody knows yet whose it is. */
static void find_next(void)
{
	static atomic_flag is_looking = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&is_looking))
		return;
	atomic_store(&next_realloc, (realloc_fn *)(uintptr_t)next_find("realloc"));
	atomic_store(&next_free, (free_fn *)(uintptr_t)next_find("free"));
	atomic_flag_clear(&is_looking);
}

/* Before all others: handlers of fork() run in this order in a child, and others may free what they had. */
__attribute__((constructor(101))) static void open_heap(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	find_next();
	(void)pthread_atfork(NULL, share_in_parent, share_in_child);
}

void heap_in_child(void)
{
	atomic_store(&watches, 0);
}

/*
 * Is it one of the few kinds of block that may be shared? No need for order: a program frees a block after the calls on it, and they have
 * counted it.
 */
static bool is_watched(void *memory)
{
	if (atomic_load_explicit(&watches, memory_order_relaxed) == 0 || !memory)
		return false;
	if (memory == atomic_load_explicit(&probed, memory_order_relaxed))
		atomic_store(&probed, NULL);
	return has_header(memory);
}

/* False: it stays as it is. */
static bool leave(void *memory)
{
	int before = errno;
	bool may_go = share_leave(memory);

	errno = before;
	return may_go;
}

void free(void *memory)
{
	if (is_watched(memory) && !leave(memory))
		return;
	if (!atomic_load_explicit(&next_free, memory_order_relaxed))
		find_next();
	free_fn *next = atomic_load_explicit(&next_free, memory_order_relaxed);
	if (next)
		next(memory);
}

void *realloc(void *memory, size_t bytes)
{
	realloc_fn *next = NULL;

	if (!is_watched(memory) || leave(memory)) {
		if (!atomic_load_explicit(&next_realloc, memory_order_relaxed))
			find_next();
		next = atomic_load_explicit(&next_realloc, memory_order_relaxed);
	}
	if (next)
		return next(memory, bytes);
	errno = ENOMEM;
	return NULL;
}

void *reallocarray(void *memory, size_t count, size_t bytes)
{
	size_t all;

	if (!__builtin_mul_overflow(count, bytes, &all))
		return realloc(memory, all);
	errno = ENOMEM;
	return NULL;
}

/* Of C23. A glibc that has them would not call free(). */
void free_sized(void *memory, size_t bytes);
void free_aligned_sized(void *memory, size_t alignment, size_t bytes);

void free_sized(void *memory, size_t bytes)
{
	(void)bytes;
	free(memory);
}

void free_aligned_sized(void *memory, size_t alignment, size_t bytes)
{
	(void)alignment, (void)bytes;
	free(memory);
}
