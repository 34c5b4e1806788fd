/*
 * fpenv.h - put the thread's floating-point mode to the IEEE default around a kernel.
 *
 * A host program may flush denormals to zero (torch.set_flush_denormal, -ffast-math in
 * any shared library), round another way or trap on exceptions. Ranks whose hosts differ
 * would then hold different sums. Reading the mode costs a nanosecond or two per call;
 * writing it is done only where it is not the default already.
 *
 * The barriers keep the loads and stores of a kernel, and so its arithmetic, between
 * enter and leave.
 */
#ifndef MATH_FPENV_H
#define MATH_FPENV_H

#include <stdint.h>

#define FPENV_BARRIER() __asm__ volatile("" ::: "memory")

#if defined(__x86_64__)

#include <xmmintrin.h>

#define FPENV_DEFAULT 0x1f80u /* all exceptions masked, nearest even, denormals kept */
#define FPENV_STICKY 0x003fu  /* exceptions seen so far: not a mode                  */

static inline uint32_t fpenv_read(void)
{
	return _mm_getcsr();
}

static inline void fpenv_write(uint32_t mode)
{
	_mm_setcsr(mode);
}

#elif defined(__aarch64__)

#define FPENV_DEFAULT 0u
#define FPENV_STICKY 0u /* kept in another register */

static inline uint32_t fpenv_read(void)
{
	uint64_t mode;
	__asm__ volatile("mrs %0, fpcr" : "=r"(mode));
	return (uint32_t)mode;
}

static inline void fpenv_write(uint32_t mode)
{
	__asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)mode));
}

#else

/* An unknown machine: the host's mode is used as it is. */
#define FPENV_DEFAULT 0u
#define FPENV_STICKY 0u

static inline uint32_t fpenv_read(void)
{
	return FPENV_DEFAULT;
}

static inline void fpenv_write(uint32_t mode)
{
	(void)mode;
}

#endif

/* Returns what fpenv_leave() must be given. */
static inline uint32_t fpenv_enter(void)
{
	uint32_t host = fpenv_read();
	if ((host & ~FPENV_STICKY) != FPENV_DEFAULT)
		fpenv_write(FPENV_DEFAULT);
	FPENV_BARRIER();
	return host;
}

static inline void fpenv_leave(uint32_t host)
{
	FPENV_BARRIER();
	if ((host & ~FPENV_STICKY) != FPENV_DEFAULT)
		fpenv_write(host);
}

/* A value that the compiler cannot use, hence convert, before this point. */
static inline double fpenv_hold(double value)
{
	__asm__ volatile("" : "+m"(value) : : "memory");
	return value;
}

#endif
