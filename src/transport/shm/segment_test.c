/* segment_test.c - rights of the owner of a segment, and of its peers. */
#include "transport/shm/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "transport/shm/parts.h"

static const struct segment_config two_ranks = {
	.lanes = 2,
	.peers = 2,
	.self = 0,
	.slot_bytes = 1000,
	.slots = 40,
	.small_shm_bytes = 100,
	.heap_bytes = 64u << 20,
};

static struct segment *open_as(uint32_t self)
{
	struct segment_config config = two_ranks;
	struct segment *segment;
	struct error err;

	config.self = self;
	CHECK_MSG(shm_segment_open(&config, &segment, &err) == ESP_OK, "open: %s", err.text);
	return segment;
}

static struct segment_view *view_of(const struct segment *own, uint32_t peer, const struct segment *of)
{
	struct segment_view *view;
	struct error err;

	CHECK_MSG(shm_segment_view_open(own, peer, dup(shm_segment_descriptor(of)), &view, &err) == ESP_OK, "view: %s",
	          err.text);
	return view;
}

static uint64_t bytes_in_use(const struct segment *segment)
{
	struct stat stat;

	CHECK(fstat(shm_segment_descriptor(segment), &stat) == 0);
	return (uint64_t)stat.st_blocks * 512;
}

/* ---- places ---- */

/* No two things share a byte, whatever the numbers. */
static void check_places(const struct segment_config *config, uint64_t page)
{
	struct layout layout;
	uint32_t lane = config->lanes - 1, peer = config->peers - 1;

	CHECK(shm_layout_make(config, page, &layout, NULL) == ESP_OK);
	CHECK(layout_doze(&layout, lane) + LAYOUT_LINE <= layout_storing(&layout, 0));
	CHECK(layout_storing(&layout, lane) + LAYOUT_LINE <= layout.lanes_at);
	CHECK(layout_ring(&layout, lane, peer) + LAYOUT_RING * LAYOUT_DESCRIPTOR_BYTES <= layout_replies(&layout, lane, 0));
	CHECK(layout_replies(&layout, lane, peer) + LAYOUT_RING * 8 <= layout_taken(&layout, lane, 0));
	CHECK(layout_taken(&layout, lane, peer) + LAYOUT_LINE <= layout_consumed(&layout, lane, 0, 0));
	CHECK(layout_consumed(&layout, lane, peer, UINT16_MAX) + 8 <= layout_revoked(&layout, lane, 0, 0));
	CHECK(layout_revoked(&layout, lane, peer, UINT16_MAX) + 4 <= layout.cells_at);
	CHECK(layout_revoked(&layout, 0, peer, UINT16_MAX) + 4 <= layout_lane(&layout, 1));
	CHECK(layout_small(&layout, 7, 1) + config->small_shm_bytes <= layout_small(&layout, 8, 0));
	CHECK(layout_small(&layout, UINT16_MAX, 1) + config->small_shm_bytes <= layout_slot(&layout, 0, 0));
	CHECK(layout_slot(&layout, 0, layout.slots - 1) + TRANSPORT_SHIFTS + config->slot_bytes <=
	      layout_slot(&layout, 1, 0));
	CHECK(layout_slot(&layout, lane, layout.slots - 1) + TRANSPORT_SHIFTS + config->slot_bytes <= layout.heap_at);
	CHECK(layout.heap_at % page == 0 && layout.slots_at % page == 0 && layout_small(&layout, 1, 0) % page == 0);

	CHECK(layout.slots >= config->slots && layout.slots >= 2 * config->peers);
	CHECK(layout_is_slot(&layout, lane, layout_slot(&layout, lane, layout.slots - 1)));
	CHECK(!layout_is_slot(&layout, lane, layout_slot(&layout, lane, layout.slots)));
	CHECK(layout_is_slot(&layout, lane, layout_slot(&layout, lane, 0) + TRANSPORT_SHIFTS - 1));
	CHECK(!layout_is_slot(&layout, lane, layout_slot(&layout, lane, 0) + TRANSPORT_SHIFTS));
	CHECK(!layout_is_slot(&layout, lane, layout_slot(&layout, lane, 0) - layout.slot_bytes));
	CHECK(layout_is_heap(&layout, layout.heap_at, layout.heap_bytes));
	CHECK(!layout_is_heap(&layout, layout.heap_at, layout.heap_bytes + 1));
	CHECK(!layout_is_heap(&layout, layout.heap_at - 1, 1));
	CHECK(!layout_is_heap(&layout, layout.bytes, 1));
	CHECK(!layout_is_heap(&layout, UINT64_MAX, 2) && !layout_is_heap(&layout, layout.heap_at + 1, UINT64_MAX));
}

static void places(void)
{
	struct segment_config config = two_ranks;
	struct layout layout;

	check_places(&config, 4096);
	check_places(&config, 65536);
	config.peers = 3;
	config.slot_bytes = 1;
	config.small_shm_bytes = 4097;
	check_places(&config, 4096);
	config.peers = 64;
	config.slot_bytes = 1u << 20;
	config.heap_bytes = UINT64_C(1) << 40;
	check_places(&config, 16384);

	config.heap_bytes = UINT64_MAX;
	CHECK(shm_layout_make(&config, 4096, &layout, NULL) == ESP_EINVAL);
	config = two_ranks;
	config.slots = 1u << 20;
	config.slot_bytes = 1u << 30;
	CHECK(shm_layout_make(&config, 4096, &layout, NULL) == ESP_EINVAL);
	config = two_ranks;
	config.self = 2;
	CHECK(shm_layout_make(&config, 4096, &layout, NULL) == ESP_EINVAL);
	for (int i = 0; i < 5; i++) {
		config = two_ranks;
		uint32_t *fields[] = {&config.lanes, &config.peers, &config.slot_bytes, &config.slots, &config.small_shm_bytes};
		*fields[i] = 0;
		CHECK(shm_layout_make(&config, 4096, &layout, NULL) == ESP_EINVAL);
		*fields[i] = UINT32_MAX;
		CHECK(shm_layout_make(&config, 4096, &layout, NULL) == ESP_EINVAL);
	}
}

/* ---- peers ---- */

static void peers_read_only(void)
{
	struct segment *own = open_as(0), *theirs = open_as(1);
	struct segment_view *view = view_of(own, 1, theirs);
	int fd = shm_segment_descriptor(theirs);

	uint8_t *heap = shm_segment_alloc(theirs, 10000);
	CHECK(heap);
	memset(heap, 7, 10000);
	const uint8_t *seen = view_at(view, (uint64_t)(heap - theirs->base));
	CHECK(seen[0] == 7 && seen[9999] == 7 && seen[10000] == 0);

	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(mprotect((void *)(uintptr_t)view->base, 4096, PROT_READ | PROT_WRITE) != 0);
	CHECK(write(fd, "x", 1) < 0);
	CHECK(ftruncate(fd, 4096) != 0);
	CHECK(ftruncate(theirs->fd, 4096) != 0); /* nor can its owner */
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);

	/* The owner ends: what it has written stays. */
	shm_segment_close(theirs);
	CHECK(seen[0] == 7);
	shm_segment_view_close(view);
	shm_segment_close(own);
	shm_segment_close(NULL);
	shm_segment_view_close(NULL);
}

static struct segment *open_heap(uint32_t self, bool is_open)
{
	struct segment_config config = two_ranks;
	struct segment *segment;

	config.self = self;
	config.is_open = is_open;
	CHECK(shm_segment_open(&config, &segment, NULL) == ESP_OK);
	return segment;
}

/* Peers can write into the heap if both have agreed, and nowhere else. */
static void peers_store(void)
{
	for (int i = 0; i < 4; i++) {
		struct segment *own = open_heap(0, i & 1), *theirs = open_heap(1, i & 2);
		struct segment_view *view = view_of(own, 1, theirs);
		uint8_t *heap = shm_segment_alloc(theirs, 10000);

		CHECK(view->is_open == (i == 3));
		CHECK(ftruncate(shm_segment_descriptor(theirs), 4096) != 0);
		if (view->is_open) {
			uint8_t *seen = (uint8_t *)(uintptr_t)view_at(view, (uint64_t)(heap - theirs->base));

			memset(seen, 9, 10000);
			CHECK(heap[0] == 9 && heap[9999] == 9);
		}
		/* The kernel will not write into what is mapped for reading only. */
		int pipes[2];
		CHECK(pipe(pipes) == 0 && write(pipes[1], "x", 1) == 1);
		CHECK(read(pipes[0], (void *)(uintptr_t)view_at(view, view->layout.heap_at - 1), 1) < 0);
		CHECK((read(pipes[0], (void *)(uintptr_t)view_at(view, view->layout.heap_at), 1) == 1) == view->is_open);
		close(pipes[0]);
		close(pipes[1]);
		shm_segment_view_close(view);
		shm_segment_close(theirs);
		shm_segment_close(own);
	}
}

/* Withdrawn memory keeps its place and content, and is out of reach of all peers, for ever. */
static void withdrawn(void)
{
	enum { PAGE = 4096, BYTES = 5 * PAGE };
	struct segment *own = open_heap(0, true), *theirs = open_heap(1, true);
	struct segment_view *view = view_of(own, 1, theirs);
	uint8_t *heap = shm_segment_alloc(theirs, BYTES), *after = shm_segment_alloc(theirs, PAGE);
	uint8_t *seen = (uint8_t *)(uintptr_t)view_at(view, (uint64_t)(heap - theirs->base));

	memset(heap, 1, BYTES);
	CHECK(shm_segment_withdraw(theirs, heap + PAGE + 100, 2 * PAGE - 100)); /* the second page and the third */
	for (uint32_t i = 0; i < BYTES; i++)
		CHECK(heap[i] == 1 && seen[i] == 1);
	memset(seen, 2, BYTES); /* late */
	for (uint32_t i = 0; i < BYTES; i++)
		CHECK_U64(heap[i], i / PAGE == 1 || i / PAGE == 2 ? 1 : 2);
	CHECK(shm_segment_owns(theirs, heap, PAGE) && shm_segment_owns(theirs, heap + 3 * PAGE, 2 * PAGE) &&
	      shm_segment_owns(theirs, after, PAGE));
	CHECK(!shm_segment_owns(theirs, heap, PAGE + 1) && !shm_segment_owns(theirs, heap + 2 * PAGE, 1) &&
	      !shm_segment_owns(theirs, heap, BYTES));
	for (uint32_t i = 0; i < 40; i++)
		CHECK(shm_segment_withdraw(theirs, after, PAGE)); /* again, and in a list that grows */
	CHECK(shm_segment_free(theirs, heap) && !shm_segment_free(theirs, heap));
	CHECK(shm_segment_free(theirs, after) && !shm_segment_free(theirs, after));
	for (uint32_t i = 0; i < 100; i++) {
		uint8_t *next = shm_segment_alloc(theirs, PAGE);

		CHECK(next && next >= after + PAGE && shm_segment_owns(theirs, next, PAGE));
	}
	shm_segment_view_close(view);
	shm_segment_close(theirs);
	shm_segment_close(own);
}

static void refuse(const struct segment *own, uint32_t peer, int fd)
{
	struct segment_view *view = NULL;
	struct error err;

	CHECK(fd >= 0);
	CHECK(shm_segment_view_open(own, peer, fd, &view, &err) == ESP_ECORRUPT);
	CHECK(!view && err.text[0] != '\0');
	CHECK(fcntl(fd, F_GETFD) < 0); /* it was taken */
}

static void no_segments(void)
{
	struct segment *own = open_as(0), *theirs = open_as(1), *other;
	struct segment_view *view;
	int pipes[2];

	CHECK(pipe(pipes) == 0);
	refuse(own, 1, pipes[0]);
	close(pipes[1]);
	refuse(own, 1, open("/dev/null", O_RDONLY));
	refuse(own, 1, memfd_create("short", MFD_ALLOW_SEALING));
	int fd = memfd_create("not sealed", MFD_ALLOW_SEALING);
	CHECK(ftruncate(fd, (off_t)own->layout.bytes) == 0);
	refuse(own, 1, fd);
	fd = memfd_create("zeros", MFD_ALLOW_SEALING);
	CHECK(ftruncate(fd, (off_t)own->layout.bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	refuse(own, 1, fd);
	CHECK(shm_segment_view_open(own, 1, -1, &view, NULL) == ESP_ECORRUPT);

	refuse(own, 0, dup(shm_segment_descriptor(theirs))); /* not the expected peer */
	CHECK(shm_segment_view_borrow(own, 0, theirs, &view, NULL) == ESP_ECORRUPT);
	struct segment_config config = two_ranks;
	config.self = 1;
	config.slots--; /* the size of the file may well be the same */
	CHECK(shm_segment_open(&config, &other, NULL) == ESP_OK);
	CHECK_U64(other->layout.bytes, own->layout.bytes);
	refuse(own, 1, dup(shm_segment_descriptor(other)));
	shm_segment_close(other);
	shm_segment_close(theirs);
	shm_segment_close(own);
}

/* ---- small path ---- */

static void small_path(void)
{
	struct segment *own = open_as(0), *theirs = open_as(1);
	struct segment_view *view = view_of(own, 1, theirs);
	uint64_t before = bytes_in_use(theirs);

	for (uint32_t channel = 0; channel <= UINT16_MAX; channel += 13107) {
		CHECK(shm_segment_small_reserve(theirs, (uint16_t)channel, two_ranks.small_shm_bytes));
		for (uint32_t cell = 0; cell < 2; cell++) {
			uint8_t *board = shm_segment_small(theirs, (uint16_t)channel, cell);

			CHECK((uintptr_t)board % 64 == 0);
			memset(board, (int)(cell + 1), two_ranks.small_shm_bytes);
		}
		const uint8_t *first = shm_segment_view_small(view, (uint16_t)channel, 0),
					  *second = shm_segment_view_small(view, (uint16_t)channel, 1);
		CHECK(first[0] == 1 && first[99] == 1 && second[0] == 2 && second[99] == 2);
		shm_segment_small_clear(theirs, (uint16_t)channel, two_ranks.small_shm_bytes);
		CHECK(first[0] == 0 && second[99] == 0);
		shm_segment_small_clear(theirs, (uint16_t)channel, two_ranks.small_shm_bytes); /* once more does nothing */
	}
	/* A look at a page that is not there makes one, of zeros. */
	CHECK(bytes_in_use(theirs) - before <= 6 * own->layout.small_shm_bytes);
	shm_segment_view_close(view);
	shm_segment_close(theirs);
	shm_segment_close(own);
}

/* ---- memory ---- */

static bool is_zero(const uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (memory[i] != 0)
			return false;
	}
	return true;
}

static void memory(void)
{
	struct segment *own = open_as(0);
	uint64_t before = bytes_in_use(own);
	uint8_t *small = shm_segment_alloc(own, 1), *large = shm_segment_alloc(own, 20u << 20),
			*none = shm_segment_alloc(own, 0);

	CHECK(small && large && none && none != small);
	CHECK((uintptr_t)small % 4096 == 0 && (uintptr_t)large % 4096 == 0);
	CHECK(bytes_in_use(own) - before >= 20u << 20); /* reserved, though never touched */
	CHECK(is_zero(large, 20u << 20));
	memset(large, 1, 20u << 20);
	CHECK(shm_segment_owns(own, large, 20u << 20) && shm_segment_owns(own, small, 1));
	CHECK(!shm_segment_owns(own, &before, 1) && !shm_segment_owns(own, NULL, 0) &&
	      !shm_segment_owns(own, own->base, 1));
	CHECK(!shm_segment_owns(own, large, 65u << 20));

	CHECK(!shm_segment_alloc(own, 64u << 20));
	CHECK(!shm_segment_alloc(own, SIZE_MAX));
	shm_segment_free(own, large);
	CHECK(bytes_in_use(own) - before < 1u << 20);
	uint8_t *again = shm_segment_alloc(own, 20u << 20);
	CHECK(again == large && is_zero(again, 20u << 20));
	shm_segment_free(own, again);
	shm_segment_free(own, small);
	shm_segment_free(own, none);
	shm_segment_free(own, NULL);
	CHECK_U64(bytes_in_use(own), before);
	shm_segment_close(own);
}

/*
 * Large pieces of two ranks do not begin at the same place of a way of a cache, and huge pages that begin before them
 * go with them.
 */
static void colours(void)
{
	struct segment *own = open_as(0), *other = open_as(1);
	uint64_t before = bytes_in_use(other);
	const size_t sizes[] = {128u << 10, 1u << 20, 3u << 20};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *mine = shm_segment_alloc(own, sizes[i]), *theirs = shm_segment_alloc(other, sizes[i]);

		CHECK(mine && theirs);
		CHECK(own->layout.page >= 128u << 10 || ((uintptr_t)mine - (uintptr_t)theirs) % (128u << 10) != 0);
		CHECK(is_zero(theirs, sizes[i]) && (uintptr_t)theirs % 4096 == 0);
		CHECK(!shm_segment_free(other, theirs + 1)); /* and it stays what it is */
		memset(theirs, 1, sizes[i]);
		uint8_t *small = shm_segment_alloc(other, 4096); /* perhaps before it */
		CHECK(small && is_zero(small, 4096));
		CHECK(shm_segment_free(other, theirs) && shm_segment_free(other, small));
		CHECK_U64(bytes_in_use(other), before);
	}
	shm_segment_close(other);
	shm_segment_close(own);
}

/* Where memory cannot be had, as far as the kernel says so in time, and where it cannot be given back. */
static void no_memory(void)
{
	struct segment *own = open_as(0);
	int fd = own->fd;
	uint8_t *before = shm_segment_alloc(own, 5000);

	CHECK(before && shm_segment_small_reserve(own, 3, two_ranks.small_shm_bytes));
	memset(before, 1, 5000);
	memset(shm_segment_small(own, 3, 0), 1, two_ranks.small_shm_bytes);
	own->fd = own->shared_fd; /* which reserves nothing, and punches no holes */
	CHECK(!shm_segment_alloc(own, 1));
	CHECK(!shm_segment_small_reserve(own, 4, two_ranks.small_shm_bytes));
	shm_segment_free(own, before);
	CHECK(is_zero(before, 5000));
	shm_segment_small_clear(own, 3, two_ranks.small_shm_bytes);
	own->fd = fd;
	CHECK(is_zero(shm_segment_small(own, 3, 0), two_ranks.small_shm_bytes));
	CHECK(shm_segment_alloc(own, 1) == before);
	shm_segment_close(own);
}

static void *allocate(void *context)
{
	struct segment *segment = context;
	struct rng rng;
	uint8_t *held[8] = {0};
	size_t bytes[8] = {0};

	rng_init(&rng, (uint64_t)(uintptr_t)&rng);
	for (int step = 0; step < 300; step++) {
		uint32_t i = (uint32_t)rng_below(&rng, 8);

		if (held[i]) {
			CHECK(held[i][0] == (uint8_t)(i + 1) && held[i][bytes[i] - 1] == (uint8_t)(i + 1));
			shm_segment_free(segment, held[i]);
			held[i] = NULL;
		} else {
			bytes[i] = 1 + rng_below(&rng, 100000);
			held[i] = shm_segment_alloc(segment, bytes[i]);
			CHECK(held[i] && is_zero(held[i], bytes[i]));
			memset(held[i], (int)(i + 1), bytes[i]);
		}
	}
	for (int i = 0; i < 8; i++)
		shm_segment_free(segment, held[i]);
	return NULL;
}

static void threads_allocate(void)
{
	struct segment *own = open_as(0);
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, allocate, own) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_U64(own->heap.count, 0);
	shm_segment_close(own);
}

/* ---- children ---- */

/* How a child ends that touches one byte; 0: well. */
static int child_touches(volatile uint8_t *byte)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); /* sanitizers would write reports */
		*byte = 1;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/* Emulators of a processor may not do what madvise() asks for. */
static bool keeps_from_children(void)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED && madvise(page, 4096, MADV_DONTFORK) == 0);
	bool keeps = child_touches(page) != 0;
	munmap(page, 4096);
	return keeps;
}

static void children(void)
{
	struct segment *own = open_as(0);
	uint8_t *heap = shm_segment_alloc(own, 1), *board = shm_segment_small(own, 0, 0);

	CHECK(heap && shm_segment_small_reserve(own, 0, two_ranks.small_shm_bytes));
	CHECK_U64(child_touches(heap), 0);
	CHECK_U64(heap[0], 1);
	if (keeps_from_children()) {
		CHECK(child_touches(board) != 0);
		CHECK_U64(board[0], 0);
		CHECK(child_touches(own->base) != 0);
	}
	shm_segment_close(own);
}

int main(void)
{
	places();
	peers_read_only();
	peers_store();
	withdrawn();
	no_segments();
	small_path();
	memory();
	colours();
	no_memory();
	threads_allocate();
	children();
	return 0;
}
