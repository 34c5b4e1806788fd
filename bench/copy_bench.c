/*
 * copy_bench.c - how much slower a kernel copies what is out of step: GB/s.
 *
 * Linux copies between a program and the pages of a socket with `rep movsb` where the processor is said to be fast at it. How fast that is depends on the places
 * within a page of what is copied and of where it goes to: for each difference between them, 32 KiB at a time within 512 KiB, which the caches hold, and within
 * 32 MiB. The fastest of five rounds. src/wire/frame.h says what follows from it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define ROOM (UINT64_C(64) << 20)
#define PIECE 32768u
#define PAGE 4096u
#define ROUNDS 5
#define ROUND_BYTES (UINT64_C(128) << 20)

#ifdef __x86_64__

static void kernel_copy(void *to, const void *from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static double rate(uint8_t *to, const uint8_t *from, uint64_t span, unsigned difference)
{
	uint64_t repeats = ROUND_BYTES / span, moved = 0;
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start_ns = clock_now_ns();

		moved = 0;
		for (uint64_t i = 0; i < repeats; i++) {
			for (uint64_t at = 0; at + PIECE + PAGE <= span; at += PIECE, moved += PIECE)
				kernel_copy(to + at + difference, from + at, PIECE);
		}
		double now = (double)moved / (double)(clock_now_ns() - start_ns);
		best = now > best ? now : best;
	}
	return best;
}

static uint8_t *make(void)
{
	uint8_t *memory = aligned_alloc(2u << 20, ROOM);

	if (!memory) {
		fputs("copy_bench: no memory\n", stderr);
		exit(1);
	}
	(void)madvise(memory, ROOM, MADV_HUGEPAGE);
	memset(memory, 1, ROOM);
	return memory;
}

int main(void)
{
	static const unsigned differences[] = {0, 1, 4, 8, 15, 16, 24, 28, 31, 32, 36, 48, 64, 68, 96, 100, 128, 512, 1028, 2048, 2052, 4064, 4080, 4092};
	uint8_t *from = make(), *to = make();

	printf("difference   cached   not cached   (GB/s)\n");
	for (unsigned i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		printf("%10u   %6.1f   %10.1f\n", differences[i], rate(to, from, UINT64_C(512) << 10, differences[i]), rate(to, from, UINT64_C(32) << 20, differences[i]));
	free(from);
	free(to);
	return 0;
}

#else

int main(void)
{
	puts("copy_bench: for x86-64 alone");
	return 0;
}

#endif
