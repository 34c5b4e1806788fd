/*
 * slow_reserve.c - preloaded: a kernel that takes three seconds for the first memory that is reserved.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>

typedef int reserve_fn(int, int, off_t, off_t);

/* With offsets of 64 bits, as the library is compiled, this is fallocate64(). */
__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t at, off_t bytes)
{
	const struct timespec pause = {.tv_sec = 3};
	static int is_warm;
	reserve_fn *real;

	*(void **)(void *)&real = dlsym(RTLD_NEXT, "fallocate64");
	if (!is_warm)
		nanosleep(&pause, NULL);
	is_warm = 1;
	return real(fd, mode, at, bytes);
}
