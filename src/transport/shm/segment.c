#include "transport/shm/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "transport/shm/parts.h"

#define VERSION 3u
#define MAGIC UINT64_C(0x746e656d67657345) /* "Esegment" */

/*
 * The kernel gives up on a signal and forgets the whole step, so steps are short: a profiler sends a hundred a second.
 */
#define RESERVE_STEP (UINT64_C(8) << 20)

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

/* At the beginning of a segment: its writer's version and layout. Read once, and compared as a whole. */
struct head {
	uint64_t magic;
	uint32_t version;
	uint32_t page;
	uint32_t lanes, peers, self, slot_bytes, slots, small_shm_bytes;
	uint64_t heap_bytes, bytes;
};

static struct head make_head(const struct segment_config *config, const struct layout *layout)
{
	return (struct head){
		.magic = MAGIC,
		.version = VERSION,
		.page = (uint32_t)layout->page,
		.lanes = config->lanes,
		.peers = config->peers,
		.self = config->self,
		.slot_bytes = config->slot_bytes,
		.slots = config->slots,
		.small_shm_bytes = config->small_shm_bytes,
		.heap_bytes = config->heap_bytes,
		.bytes = layout->bytes,
	};
}

/* ---- memory of the file ---- */

bool shm_segment_reserve(const struct segment *segment, uint64_t at, uint64_t bytes)
{
	uint64_t page = segment->layout.page, from = at / page * page, end = (at + bytes + page - 1) / page * page;

	while (from < end) {
		uint64_t step = end - from < RESERVE_STEP ? end - from : RESERVE_STEP;

		if (fallocate(segment->fd, 0, (off_t)from, (off_t)step) == 0)
			from += step;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

bool shm_segment_release(const struct segment *segment, uint64_t at, uint64_t bytes)
{
	int done;

	do {
		done = fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes);
	} while (done != 0 && errno == EINTR);
	return done == 0;
}

/* Memory that was reserved reads as zero from now on. */
static void give_back(const struct segment *segment, uint64_t at, uint64_t bytes)
{
	if (!shm_segment_release(segment, at, bytes))
		memset(segment->base + at, 0, bytes);
}

/* ---- open and close ---- */

static enum esp_status no_file(struct error *err, const char *what)
{
	int error = errno;
	enum esp_status status = error == EMFILE || error == ENFILE || error == EFBIG ? ESP_ELIMIT
	                         : error == ENOSYS || error == EPERM                  ? ESP_EUNSUPPORTED
	                                                                              : ESP_ENOMEM;

	return error_set(err, status, "no shared memory: %s (%s)", what, strerror(error));
}

/* It is not memory that is lacking, mostly: what is mapped costs nothing until it is used. */
static enum esp_status no_addresses(struct error *err, const char *what, uint64_t bytes)
{
	struct rlimit limit;

	if (errno != ENOMEM || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return no_file(err, what);
	return error_set(err, ESP_ELIMIT,
	                 "no shared memory: addresses of this process are limited to %llu MiB (ulimit -v), and it maps "
	                 "%llu MiB for each rank of its "
	                 "host: raise the limit, or set transport to tcp",
	                 (unsigned long long)limit.rlim_cur >> 20, (unsigned long long)bytes >> 20);
}

static enum esp_status file_make(struct segment *segment, struct error *err)
{
	struct rlimit limit;
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

	/* Beyond it the kernel sends a signal that ends the process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < segment->layout.bytes)
		return error_set(err, ESP_ELIMIT, "a segment of %llu bytes is larger than a file may be (ulimit -f)",
		                 (unsigned long long)segment->layout.bytes);
	segment->fd = memfd_create("espalier", flags | MFD_NOEXEC_SEAL);
	if (segment->fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		segment->fd = memfd_create("espalier", flags);
	if (segment->fd < 0)
		return no_file(err, "memfd_create");
	if (ftruncate(segment->fd, (off_t)segment->layout.bytes) != 0)
		return no_file(err, "ftruncate");
	return ESP_OK;
}

/*
 * Unless the heap is open, the descriptor for peers can only be read through. Where it cannot be had, because there is
 * no /proc, a seal keeps all processes from writing; but then we cannot give memory back either.
 */
static int open_for_reading(const struct segment *segment, unsigned *seals)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", segment->fd);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || errno == EMFILE || errno == ENFILE)
		return fd;
	*seals |= F_SEAL_FUTURE_WRITE;
	return fcntl(segment->fd, F_DUPFD_CLOEXEC, 0);
}

static enum esp_status file_seal(struct segment *segment, struct error *err)
{
	unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	segment->shared_fd =
		segment->config.is_open ? fcntl(segment->fd, F_DUPFD_CLOEXEC, 0) : open_for_reading(segment, &seals);
	if (segment->shared_fd < 0 || fcntl(segment->fd, F_ADD_SEALS, seals) != 0)
		return no_file(err, "a descriptor for the peers");
	return ESP_OK;
}

/* Maps all of a segment so that its huge pages can be mapped as such. NULL: errno says why. */
static void *map_aligned(uint64_t bytes, int protection, int fd)
{
	uint8_t *room = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	uint64_t before = (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
	void *base = mmap(room + before, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
	if (base == MAP_FAILED) {
		munmap(room, bytes + HUGE_PAGE);
		return NULL;
	}
	if (before > 0)
		munmap(room, before);
	munmap(room + before + bytes, HUGE_PAGE - before);
	return base;
}

/*
 * Many views are quickest to map into a span of addresses that is known to be free: it is looked for once. It is not
 * reserved: if another mapping is made there meanwhile, a view goes elsewhere.
 */
static void find_room(struct segment *segment)
{
	uint64_t stride = (segment->layout.bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uint64_t bytes = stride * segment->config.peers + HUGE_PAGE;
	void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return;
	munmap(room, bytes);
	segment->room = ((uintptr_t)room + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	segment->stride = stride;
}

static void *map_view(const struct segment *own, uint32_t peer, int fd)
{
	uint64_t bytes = own->layout.bytes;
	void *wanted = (void *)(own->room + peer * own->stride), *base = MAP_FAILED;

	if (own->room)
		base = mmap(wanted, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);
	if (base == wanted)
		return base;
	if (base != MAP_FAILED) /* before Linux 4.17 the address is a wish */
		munmap(base, bytes);
	return map_aligned(bytes, PROT_READ, fd);
}

/*
 * Children made by fork() share the mapping. They keep the heap, where an application may have
 * the data that it forked to work on; everything else they must not be able to disturb, not even
 * by a call of the library that comes too late, so there they find nothing. A core has only
 * the heap that is in use: the kernel would make every page of the rest in order to write it.
 */
static enum esp_status file_map(struct segment *segment, struct error *err)
{
	const struct layout *layout = &segment->layout;
	void *base = map_aligned(layout->bytes, PROT_READ | PROT_WRITE, segment->fd);

	if (!base)
		return no_addresses(err, "mmap", segment->layout.bytes);
	segment->base = base;
	madvise(base, layout->heap_at, MADV_DONTFORK);
	madvise(base, layout->bytes, MADV_DONTDUMP);
	if (layout->heap_bytes > 0)
		madvise(segment->base + layout->heap_at, layout->heap_bytes, MADV_HUGEPAGE);
	return ESP_OK;
}

uint64_t shm_segment_slot_cost(uint32_t slot_bytes)
{
	return shm_layout_slot_cost(slot_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

enum esp_status shm_segment_open(const struct segment_config *config, struct segment **out, struct error *err)
{
	struct segment *segment = calloc(1, sizeof(*segment));

	if (!segment)
		return error_set(err, ESP_ENOMEM, "no memory for a segment");
	shm_forks_watch(); /* early: what others do before fork() then comes before what we do */
	segment->config = *config;
	segment->fd = segment->shared_fd = -1;
	pthread_mutex_init(&segment->lock, NULL);
	enum esp_status status = shm_layout_make(config, (uint64_t)sysconf(_SC_PAGESIZE), &segment->layout, err);
	if (status == ESP_OK)
		status = file_make(segment, err);
	if (status == ESP_OK)
		status = file_map(segment, err);
	if (status == ESP_OK)
		status = file_seal(segment, err);
	if (status == ESP_OK && !shm_segment_reserve(segment, 0, segment->layout.lanes_at))
		status = no_file(err, "fallocate");
	if (status != ESP_OK) {
		shm_segment_close(segment);
		return status;
	}
	find_room(segment);
	*(struct head *)segment->base = make_head(config, &segment->layout);
	shm_heap_init(&segment->heap, segment->layout.heap_bytes / segment->layout.page);
	*out = segment;
	return ESP_OK;
}

void shm_segment_close(struct segment *segment)
{
	if (!segment)
		return;
	shm_annexes_close(segment);
	if (segment->has_kept && shm_kept_remains(segment))
		return;
	if (segment->base)
		munmap(segment->base, segment->layout.bytes);
	shm_segment_dispose(segment);
}

void shm_segment_close_files(struct segment *segment)
{
	if (segment->shared_fd >= 0)
		close(segment->shared_fd);
	if (segment->fd >= 0)
		close(segment->fd);
	segment->shared_fd = segment->fd = -1;
}

void shm_segment_dispose(struct segment *segment)
{
	shm_segment_close_files(segment);
	shm_heap_fini(&segment->heap);
	free(segment->withdrawn);
	pthread_mutex_destroy(&segment->lock);
	free(segment);
}

int shm_segment_descriptor(const struct segment *segment)
{
	return segment->shared_fd;
}

/* ---- views ---- */

/* May it be mapped without fear that its owner makes it shorter, which ends its readers? */
static bool is_steady(int fd, uint64_t bytes)
{
	struct stat stat;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &stat) == 0 && (uint64_t)stat.st_size == bytes;
}

static enum esp_status view_check(const struct segment *own, uint32_t peer, const struct segment_view *view,
                                  struct error *err)
{
	struct segment_config config = own->config;
	struct head head = *(const struct head *)view->base;

	config.self = peer;
	struct head expected = make_head(&config, &own->layout);
	if (memcmp(&head, &expected, sizeof(head)) != 0)
		return error_set(err, ESP_ECORRUPT,
		                 "rank %u of this host has another segment: version %u, %u lanes, %u ranks, number %u", peer,
		                 head.version, head.lanes, head.peers, head.self);
	return ESP_OK;
}

static enum esp_status view_map(const struct segment *own, uint32_t peer, int fd, struct segment_view *view,
                                struct error *err)
{
	uint64_t bytes = own->layout.bytes;

	if (!is_steady(fd, bytes))
		return error_set(err, ESP_ECORRUPT, "what rank %u of this host shares is no segment of %llu bytes", peer,
		                 (unsigned long long)bytes);
	void *base = map_view(own, peer, fd);
	if (!base)
		return no_addresses(err, "mmap of a peer's", bytes);
	/* A child would only keep the memory from going away. */
	madvise(base, bytes, MADV_DONTFORK);
	madvise(base, bytes, MADV_DONTDUMP);
	view->base = base;
	/* If its owner does not let us, this fails. */
	if (own->config.is_open && own->layout.heap_bytes > 0)
		view->is_open =
			mprotect((uint8_t *)base + own->layout.heap_at, own->layout.heap_bytes, PROT_READ | PROT_WRITE) == 0;
	return view_check(own, peer, view, err);
}

static struct segment_view *view_make(const struct segment *own, uint32_t peer)
{
	struct segment_view *view = calloc(1, sizeof(*view));

	if (view) {
		view->layout = own->layout;
		view->peer = peer;
	}
	return view;
}

static enum esp_status view_hand_out(struct segment_view *view, enum esp_status status, struct segment_view **out)
{
	if (status == ESP_OK)
		*out = view;
	else
		shm_segment_view_close(view);
	return status;
}

enum esp_status shm_segment_view_open(const struct segment *own, uint32_t peer, int fd, struct segment_view **out,
                                      struct error *err)
{
	struct segment_view *view = view_make(own, peer);
	enum esp_status status =
		view ? view_map(own, peer, fd, view, err) : error_set(err, ESP_ENOMEM, "no memory for a view");

	close(fd);
	return view_hand_out(view, status, out);
}

enum esp_status shm_segment_view_borrow(const struct segment *own, uint32_t peer, const struct segment *of,
                                        struct segment_view **out, struct error *err)
{
	struct segment_view *view = view_make(own, peer);

	if (!view)
		return error_set(err, ESP_ENOMEM, "no memory for a view");
	view->base = of->base;
	view->is_borrowed = true;
	view->is_open = own->config.is_open && of->config.is_open;
	return view_hand_out(view, view_check(own, peer, view, err), out);
}

void shm_segment_view_close(struct segment_view *view)
{
	if (!view)
		return;
	if (view->base && !view->is_borrowed)
		munmap((void *)(uintptr_t)view->base, view->layout.bytes);
	free(view);
}

/* ---- small path ---- */

bool shm_segment_small_reserve(struct segment *segment, uint16_t channel, uint32_t bytes)
{
	bool is_reserved = true;

	assert(bytes <= segment->layout.cell_bytes);
	for (uint32_t cell = 0; cell < SEGMENT_CELLS; cell++)
		is_reserved = is_reserved && shm_segment_reserve(segment, layout_small(&segment->layout, channel, cell), bytes);
	if (!is_reserved)
		(void)shm_segment_release(segment, layout_small(&segment->layout, channel, 0), segment->layout.small_shm_bytes);
	return is_reserved;
}

void *shm_segment_small(const struct segment *segment, uint16_t channel, uint32_t cell)
{
	assert(cell < SEGMENT_CELLS);
	return segment->base + layout_small(&segment->layout, channel, cell);
}

const void *shm_segment_view_small(const struct segment_view *view, uint16_t channel, uint32_t cell)
{
	assert(cell < SEGMENT_CELLS);
	return view_at(view, layout_small(&view->layout, channel, cell));
}

void shm_segment_small_clear(struct segment *segment, uint16_t channel, uint32_t bytes)
{
	if (shm_segment_release(segment, layout_small(&segment->layout, channel, 0), segment->layout.small_shm_bytes))
		return;
	for (uint32_t cell = 0; cell < SEGMENT_CELLS; cell++)
		memset(shm_segment_small(segment, channel, cell), 0, bytes);
}

/* ---- the heap ---- */

static void heap_put(struct segment *segment, uint64_t first)
{
	pthread_mutex_lock(&segment->lock);
	shm_heap_give(&segment->heap, first);
	pthread_mutex_unlock(&segment->lock);
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/*
 * Where the system has huge pages only on request (or never: this asks all the same). A page of each is there first, as
 * the kernel does not begin with nothing; it makes the rest by itself. To reserve all of it before, page by page, takes
 * far longer: each is cleared and then copied. If there are no huge pages it stays as it is.
 */
void shm_segment_use_huge_pages(const struct segment *segment, uint64_t at, uint64_t bytes)
{
	uint64_t from = (at + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, end = (at + bytes) / HUGE_PAGE * HUGE_PAGE;

	for (uint64_t huge = from; huge < end; huge += HUGE_PAGE)
		if (!shm_segment_reserve(segment, huge, 1))
			return;
	/* The first by itself: a part of it may be others', and mapped otherwise, and the kernel stops where it cannot. */
	if (from < end)
		(void)madvise(segment->base + from, HUGE_PAGE, MADV_COLLAPSE);
	if (from + HUGE_PAGE < end)
		(void)madvise(segment->base + from + HUGE_PAGE, end - from - HUGE_PAGE, MADV_COLLAPSE);
}

/*
 * Ranks make the same allocations and sum the same elements of all of them. If these lay at the same place of huge
 * pages, a core would have them in the same sets of its second cache, and they would drive each other out. So each rank
 * begins elsewhere within the bytes that a way of such a cache has.
 */
#define CACHE_WAY (128u << 10)

/* Pages. */
static uint64_t own_colour(const struct segment *segment)
{
	uint64_t colours = CACHE_WAY / segment->layout.page;

	return colours > 1 ? segment->config.self * UINT64_C(5) % colours : 0;
}

/*
 * Memory that was taken at first, and given back to the system, may be taken again. With it goes the part before it of
 * its first huge page, where no other allocation has that.
 */
static void put_with_gap(struct segment *segment, uint64_t first)
{
	uint64_t heap_at = segment->layout.heap_at, page = segment->layout.page, begin = first;

	pthread_mutex_lock(&segment->lock);
	if (shm_heap_taken(&segment->heap, first) * page >= HUGE_PAGE)
		begin = shm_heap_reach_back(&segment->heap, first, own_colour(segment));
	pthread_mutex_unlock(&segment->lock);
	if (begin < first)
		/* if not: no thread has written there */
		(void)shm_segment_release(segment, heap_at + begin * page, (first - begin) * page);
	heap_put(segment, begin);
}

void *shm_segment_alloc(struct segment *segment, size_t bytes)
{
	const struct layout *layout = &segment->layout;
	uint64_t page = layout->page, pages = (bytes > 0 ? bytes - 1 : 0) / page + 1, first;
	uint64_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : bytes >= CACHE_WAY ? CACHE_WAY : page;
	uint64_t colour = align > page ? own_colour(segment) : 0;

	pthread_mutex_lock(&segment->lock);
	bool fits = shm_heap_take(&segment->heap, pages, align > page ? align / page : 1, colour, &first);
	pthread_mutex_unlock(&segment->lock);
	if (!fits)
		return NULL;
	uint64_t at = layout->heap_at + first * page;
	uint8_t *memory = segment->base + at;
	/*
	 * Without the lock: it takes long. The range is ours; other allocations may have the part of the first huge page
	 * before it, and do not notice. Memory for dumps is in whole huge pages, as these are divided where a mapping ends.
	 */
	if (align == HUGE_PAGE) {
		uint64_t end = (at + pages * page + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

		madvise(memory - colour * page, (end < layout->bytes ? end : layout->bytes) - (at - colour * page),
		        MADV_DODUMP);
		shm_segment_use_huge_pages(segment, at - colour * page, (colour + pages) * page);
	} else {
		madvise(memory, pages * page, MADV_DODUMP);
	}
	if (!shm_segment_reserve(segment, at, pages * page)) {
		(void)shm_segment_release(segment, at, pages * page);
		put_with_gap(segment, first);
		return NULL;
	}
	return memory;
}

/* ---- what is withdrawn ---- */

static bool is_in_heap(const struct segment *segment, const void *memory, size_t bytes)
{
	uintptr_t base = (uintptr_t)segment->base, at = (uintptr_t)memory;

	return at >= base && layout_is_heap(&segment->layout, at - base, bytes);
}

struct withdrawn *shm_segment_withdrawn_in(const struct segment *segment, uint64_t at, uint64_t bytes)
{
	for (uint32_t i = 0; i < segment->withdrawn_count; i++) {
		struct withdrawn *withdrawn = &segment->withdrawn[i];

		if (withdrawn->at < at + bytes && at < withdrawn->at + withdrawn->bytes)
			return withdrawn;
	}
	return NULL;
}

static bool withdrawn_add(struct segment *segment, uint64_t at, uint64_t bytes)
{
	uint32_t count = segment->withdrawn_count;

	if (!vec_reserve(&segment->withdrawn, &segment->withdrawn_capacity, (size_t)count + 1, sizeof(*segment->withdrawn)))
		return false;
	segment->withdrawn[count] = (struct withdrawn){.at = at, .bytes = bytes};
	atomic_store(&segment->withdrawn_count, count + 1);
	return true;
}

bool shm_segment_move_pages(void *from, uint64_t bytes, void *to)
{
	return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)(uintptr_t)to;
}

/* Whole pages. */
static bool withdraw_pages(struct segment *segment, uint64_t at, uint64_t bytes)
{
	if (!shm_annexes_withdraw(segment, at, bytes))
		return false;
	void *place = segment->base + at;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, place, bytes);
	pthread_mutex_lock(&segment->lock);
	/* In this order: a thread that finds it in the list does not use it. */
	bool is_listed = withdrawn_add(segment, at, bytes);
	bool is_private = is_listed && shm_segment_move_pages(copy, bytes, place);
	if (is_listed && !is_private)
		atomic_store(&segment->withdrawn_count, segment->withdrawn_count - 1);
	pthread_mutex_unlock(&segment->lock);
	if (!is_private)
		munmap(copy, bytes);
	return is_private;
}

bool shm_segment_withdraw(struct segment *segment, void *memory, size_t bytes)
{
	uint64_t page = segment->layout.page, at = (uint64_t)((uint8_t *)memory - segment->base);
	uint64_t from = at / page * page, end = (at + bytes + page - 1) / page * page;

	assert(is_in_heap(segment, memory, bytes));
	if (withdraw_pages(segment, from, end - from))
		return true;
	while (from < end && withdraw_pages(segment, from, page)) /* there may be room for one at a time */
		from += page;
	return from == end;
}

/* With the lock held. False: it is not the first time. */
static bool free_withdrawn(struct segment *segment, struct withdrawn *one, uint64_t at, uint64_t bytes)
{
	if (one->was_freed)
		return false;
	one->was_freed = true;
	shm_heap_keep(&segment->heap, (at - segment->layout.heap_at) / segment->layout.page, false);
	(void)shm_segment_release(segment, at, bytes);
	(void)madvise(segment->base + at, bytes, MADV_DONTNEED); /* shared pages stay as they are */
	return true;
}

bool shm_segment_free(struct segment *segment, void *memory)
{
	const struct layout *layout = &segment->layout;

	if (!memory)
		return true;
	if (!is_in_heap(segment, memory, 1))
		return false;
	uint64_t at = (uint64_t)((uint8_t *)memory - segment->base), first = (at - layout->heap_at) / layout->page;
	pthread_mutex_lock(&segment->lock);
	uint64_t bytes = shm_heap_taken(&segment->heap, first) * layout->page;
	struct withdrawn *withdrawn =
		bytes > 0 && at % layout->page == 0 ? shm_segment_withdrawn_in(segment, at, bytes) : NULL;
	bool stays_taken = withdrawn && free_withdrawn(segment, withdrawn, at, bytes);
	pthread_mutex_unlock(&segment->lock);
	if (at % layout->page != 0 || bytes == 0 || (withdrawn && !stays_taken))
		return false;
	if (stays_taken) /* its place is not used again */
		return true;
	give_back(segment, at, bytes); /* nothing is there then, so it need not be kept from dumps again */
	put_with_gap(segment, first);
	return true;
}

bool shm_segment_owns(const struct segment *segment, const void *memory, size_t bytes)
{
	if (!is_in_heap(segment, memory, bytes))
		return false;
	if (atomic_load_explicit(&segment->withdrawn_count, memory_order_acquire) == 0)
		return true;
	struct segment *own = (struct segment *)(uintptr_t)segment;
	pthread_mutex_lock(&own->lock);
	bool is_shared = !shm_segment_withdrawn_in(segment, (uint64_t)((const uint8_t *)memory - segment->base), bytes);
	pthread_mutex_unlock(&own->lock);
	return is_shared;
}

bool shm_segment_is_open(const struct segment *segment)
{
	return segment->config.is_open;
}
