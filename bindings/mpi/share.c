/*
 * share.c - large blocks of malloc() that calls are made on again and again become memory that ranks share, where they are.
 *
 * MPI lets nobody write to the buffers of a call while it runs, so at its beginning their pages can be moved. Only what the call uses is: to
 * the rest of the block somebody may be writing. Who frees the block is seen in heap.c, and it is private again before.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#define BLOCKS_MOST 256u     /* all are looked through in each large call, and when a large block is freed: less than a microsecond */
#define CANDIDATES_MOST 256u
#define SIGHTINGS_LEAST 8u   /* so many calls on a block, then it is shared: what they have cost more is about what sharing costs */
#define SIGHTINGS_MOST 1024u
#define PAYS 16u             /* calls: moving the pages there and back costs about as much as these save */

enum state {
	FREE,   /* nothing is here                                        */
	MOVING, /* somebody shares it or ends that: all others leave it be, and who frees it waits */
	SHARED,
};

struct block {
	void *memory;
	size_t bytes;    /* of it are shared, from its beginning */
	uint32_t uses;   /* calls since                          */
	enum state state;
};

/* Memory that calls were made on. The one that has been here for longest makes room. */
struct candidate {
	const void *memory;
	uint32_t sightings;
};

/* Of all that follows. While it is held nothing is called that might free(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[BLOCKS_MOST];
static struct candidate candidates[CANDIDATES_MOST];
static uint32_t next_candidate;
static uint32_t sightings_needed = SIGHTINGS_LEAST;
static uint64_t total_blocks, total_bytes;

static atomic_bool is_over = true; /* nothing more is shared: the program forks, a device may have pages ... */

/* ---- may anything be shared? ---- */

static bool is_loaded(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

/* Then a device may have pages of the program's memory, and would go on to use those that were there before. */
static bool has_device(void)
{
	return is_loaded("libcuda.so.1") || is_loaded("libhsa-runtime64.so.1") || is_loaded("libze_loader.so.1");
}

/* The same of networks and of io_uring; and pages that were locked would not be any more. */
static bool has_pinned(void)
{
	char line[256];
	int lines = 0;
	unsigned long long sum = 0, kilobytes;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmPin: %llu", &kilobytes) != 1 && sscanf(line, "VmLck: %llu", &kilobytes) != 1)
			continue;
		sum += kilobytes;
		lines++;
	}
	if (status)
		(void)fclose(status);
	return lines < 2 || sum > 0; /* who cannot tell does not share */
}

/* Does "0-3,8" name a processor that is in the set? */
static bool names_one_of(const char *list, const cpu_set_t *set)
{
	char *end;

	for (const char *at = list; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
		long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		for (long i = first; i <= last && i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, set))
				return true;
	}
	return false;
}

/* Memory that threads have laid near themselves, on several nodes, would all go to the node of the one that shares it. */
static bool spans_nodes(void)
{
	cpu_set_t set;
	unsigned nodes = 0, misses = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return true;
	for (unsigned i = 0; misses < 64; i++) { /* numbers of nodes may have gaps */
		char path[64], list[4096];
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", i);
		FILE *file = fopen(path, "re");

		misses = file ? 0 : misses + 1;
		nodes += file && fgets(list, sizeof(list), file) && names_one_of(list, &set);
		if (file)
			(void)fclose(file);
	}
	return nodes > 1;
}

static bool is_wanted(void)
{
	const char *wish = getenv("ESP_MPI_SHARE");

	return !wish || (strcmp(wish, "off") != 0 && strcmp(wish, "0") != 0);
}

/* Is there anybody on this host to share with? */
static bool has_neighbour(struct esp_group *world)
{
	uint32_t rank = esp_rank(world), size = esp_size(world), i = 0;

	while (i < size && (i == rank || strcmp(esp_host(world, i), esp_host(world, rank)) != 0))
		i++;
	return i < size;
}

/* ---- what is shared: with the lock held ---- */

static struct block *find(const void *memory)
{
	for (uint32_t i = 0; i < BLOCKS_MOST; i++) {
		if (blocks[i].state != FREE && blocks[i].memory == memory)
			return &blocks[i];
	}
	return NULL;
}

/* NULL: there is no more room. */
static struct block *claim(void *memory)
{
	for (uint32_t i = 0; i < BLOCKS_MOST; i++) {
		if (blocks[i].state == FREE) {
			blocks[i] = (struct block){.memory = memory, .state = MOVING};
			heap_watch();
			return &blocks[i];
		}
	}
	return NULL;
}

static void forget(struct block *block)
{
	block->state = FREE;
	heap_unwatch();
}

/* It was shared for too few calls, or could not be: the next has to be seen more often. */
static void be_patient(void)
{
	sightings_needed = 2 * sightings_needed < SIGHTINGS_MOST ? 2 * sightings_needed : SIGHTINGS_MOST;
}

static struct candidate *candidate_of(const void *memory)
{
	for (uint32_t i = 0; i < CANDIDATES_MOST; i++) {
		if (candidates[i].memory == memory)
			return &candidates[i];
	}
	struct candidate *added = &candidates[next_candidate++ % CANDIDATES_MOST];
	*added = (struct candidate){.memory = memory};
	return added;
}

/* Counts a call on this memory. Have there been enough of them? */
static bool is_due(const void *memory)
{
	struct candidate *candidate = candidate_of(memory);

	if (candidate->sightings < SIGHTINGS_MOST)
		candidate->sightings++;
	/* A call that is under way may use it too. Another time, then. */
	if (candidate->sightings < sightings_needed || requests_are_under_way())
		return false;
	candidate->sightings = 0;
	return true;
}

/* ---- sharing ---- */

/* Of the block, which is MOVING: so much is shared instead of what was so far. */
static void move(struct block *block, size_t bytes)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; /* heap_is_known() is */
	struct esp_context *world = shim_world();
	size_t before = block->bytes, now = before;

	pthread_mutex_lock(&one_at_a_time);
	if (has_device() || has_pinned() || !heap_is_known()) {
		atomic_store(&is_over, true);
	} else if (before == 0 || esp_unshare(world, block->memory) == ESP_OK) {
		now = esp_share(world, block->memory, bytes) == ESP_OK ? bytes : 0;
	}
	pthread_mutex_unlock(&one_at_a_time);

	pthread_mutex_lock(&lock);
	if (now != bytes || (before > 0 && block->uses < PAYS))
		be_patient();
	if (now == bytes) {
		block->uses = 0;
		total_blocks++;
		total_bytes += bytes;
	}
	block->bytes = now;
	block->state = SHARED;
	if (now == 0)
		forget(block);
	pthread_mutex_unlock(&lock);
}

void share_see(void *memory, size_t bytes)
{
	struct block *due = NULL;

	if (!heap_is_block(memory, bytes))
		return;
	pthread_mutex_lock(&lock);
	struct block *block = find(memory);
	if (block)
		block->uses++;
	if (!atomic_load(&is_over) && (!block || (block->state == SHARED && block->bytes < bytes)) && is_due(memory)) {
		due = block ? block : claim(memory);
		if (due)
			due->state = MOVING;
	}
	pthread_mutex_unlock(&lock);
	if (due)
		move(due, bytes);
}

/* ---- its end ---- */

/* With the lock held. Waits until nobody else has it in hand. */
static struct block *find_settled(const void *memory)
{
	struct block *block = find(memory);

	while (block && block->state == MOVING) {
		pthread_mutex_unlock(&lock);
		sched_yield();
		pthread_mutex_lock(&lock);
		block = find(memory);
	}
	return block;
}

bool share_leave(void *memory)
{
	pthread_mutex_lock(&lock);
	struct block *block = find_settled(memory);
	if (block)
		block->state = MOVING;
	pthread_mutex_unlock(&lock);
	if (!block)
		return true;
	enum esp_status status = esp_unshare(shim_world(), memory);
	/*
	 * Freed in the middle of a call, or no memory for private pages: it stays shared, and so nobody else may get it. What came to lie in its place
	 * would be taken for shared.
	 */
	bool stays = status == ESP_ESTATE || status == ESP_ENOMEM;

	pthread_mutex_lock(&lock);
	if (block->uses < PAYS)
		be_patient();
	block->state = SHARED;
	if (!stays)
		forget(block);
	pthread_mutex_unlock(&lock);
	return !stays;
}

void share_open(struct esp_context *world)
{
	if (is_wanted() && has_neighbour(esp_world(world)) && !spans_nodes())
		atomic_store(&is_over, false);
}

void share_close(void)
{
	atomic_store(&is_over, true);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < BLOCKS_MOST; i++) {
		if (blocks[i].state != FREE && find_settled(blocks[i].memory) == &blocks[i])
			blocks[i].state = MOVING;
	}
	pthread_mutex_unlock(&lock);
}

void share_closed(void)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < BLOCKS_MOST; i++) {
		if (blocks[i].state != FREE)
			forget(&blocks[i]);
	}
	pthread_mutex_unlock(&lock);
}

void share_count(uint64_t *out_blocks, uint64_t *out_bytes)
{
	pthread_mutex_lock(&lock);
	*out_blocks = total_blocks;
	*out_bytes = total_bytes;
	pthread_mutex_unlock(&lock);
}

/* ---- fork() ---- */

/* It has made private whatever was shared, and would again each time. What there is has to be unshared all the same, before it is freed. */
void share_in_parent(void)
{
	atomic_store(&is_over, true);
}

/* Nothing is shared here. Another thread may have had the lock, and is not here either. */
void share_in_child(void)
{
	atomic_store(&is_over, true);
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(blocks, 0, sizeof(blocks));
	heap_in_child();
}
