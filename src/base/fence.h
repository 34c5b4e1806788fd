/*
 * fence.h - a full fence: what was stored before it is seen before what is loaded or stored after it.
 *
 * For places that need more than release and acquire: "leave something, then look whether the peer sleeps" against "say
 * that I sleep, then look whether something was left"; and "say that the memory is taken back, then write into it"
 * against "read it, then look whether it was taken back".
 */
#ifndef BASE_FENCE_H
#define BASE_FENCE_H

#include <stdatomic.h>

static inline void full_fence(void)
{
#ifdef __SANITIZE_THREAD__ /* gcc refuses fences then; on x86 this is one all the same */
	static _Atomic unsigned word;

	atomic_fetch_add(&word, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
