/*
 * shm_bench.c - messages between two ranks of one host: microseconds per message, and GB/s.
 *
 *     shm_bench [--rounds N] [--json]
 *
 * Two threads with a segment each, mapped as between processes. "echo": what was received is
 * sent back from where it was received, the time is half of a round trip. "stream": one end sends
 * a buffer of 64 MiB, over and over, within a window of 32 messages, the other copies it into
 * memory of its own; the time is that of all messages divided by their number. Data is copied into
 * a slot (copied) or lies in the segment (offered); beside them stands a memcpy() of the same
 * bytes by one thread (memcpy). Whoever waits polls (spin), or sleeps at once (sleep). Rounds alternate
 * between the ways; medians are shown, and the best of all, as others may use the machine.
 */
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "duet.h"
#include "report/json.h"
#include "transport/shm/shm.h"

#define LARGEST (1u << 20)
#define WINDOW 32u
#define BUFFER_BYTES (64u << 20)

enum way { MEMCPY, COPIED, OFFERED, WAYS };
static const char *const way_names[] = {"memcpy", "copied", "offered"};

struct job {
	bool echoes;
	bool sleeps;
	uint32_t bytes, messages;
};

/* One of the two ends. */
struct end {
	struct duet_end duet;
	struct job job;
	enum way way;
	struct segment *segment;
	struct segment_view *view;
	struct shm *shm;
	uint8_t *memory;  /* what is sent; in the segment if it is offered */
	uint8_t *into;    /* what is received; the same if it echoes       */
	uint32_t acked, told;
};

/* ---- the user ---- */

/* Messages lie one after the other, as the chunks of a buffer do; an echo has one place. */
static size_t place_of(const struct job *job, uint32_t index)
{
	return job->echoes ? 0 : (size_t)(index % (BUFFER_BYTES / job->bytes)) * job->bytes;
}

static bool user_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct end *end = user;
	(void)peer;

	if (end->duet.received - end->told >= WINDOW / 2 && !end->job.echoes) {
		end->told = end->duet.received;
		*out = (struct transport_message){.is_credit = true, .ack = end->told};
		return true;
	}
	if (end->duet.pulled == end->duet.to_send || end->duet.pulled - end->acked == WINDOW)
		return false;
	*out = (struct transport_message){
		.index = end->duet.pulled,
		.ack = end->duet.received,
		.bytes = end->job.bytes,
		.data = end->memory + place_of(&end->job, end->duet.pulled),
	};
	end->duet.pulled++;
	return true;
}

static enum esp_status user_offer(void *user, uint32_t peer, const struct transport_message *message)
{
	struct end *end = user;
	(void)peer;

	memcpy(end->into + place_of(&end->job, message->index), message->data, message->bytes);
	duet_receive(&end->duet);
	end->acked = message->ack;
	end->duet.ready |= end->duet.received - end->told >= WINDOW / 2;
	return ESP_OK;
}

static uint32_t user_consumed(void *user, uint32_t peer, uint16_t channel)
{
	const struct end *end = user;
	(void)peer, (void)channel;

	return end->duet.received;
}

static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	struct end *end = user;
	(void)peer;

	end->acked = message->ack;
	end->duet.ready = true;
	return ESP_OK;
}

static const struct transport_user table = {
	.next = user_next,
	.ready = duet_ready,
	.sent = duet_sent,
	.offer = user_offer,
	.consumed = user_consumed,
	.credit = user_credit,
	.lost = duet_lost,
	.failed = duet_failed,
};

/* ---- an end ---- */

static void end_open(struct end *end, uint32_t self, const struct job *job, enum way way)
{
	static const uint32_t numbers[2] = {0, 0}; /* each calls the other 0 */
	struct segment_config config = {
		.lanes = 1,
		.peers = 2,
		.self = self,
		.slot_bytes = LARGEST,
		.slots = 2 * WINDOW,
		.small_shm_bytes = 64,
		.heap_bytes = BUFFER_BYTES,
	};
	size_t bytes = job->echoes ? LARGEST : BUFFER_BYTES;

	*end = (struct end){.job = *job, .way = way};
	end->duet = (struct duet_end){.is_sender = self == 0, .echoes = job->echoes, .messages = job->messages};
	if (shm_segment_open(&config, &end->segment, NULL) != ESP_OK)
		duet_die("no segment");
	struct shm_config shm_config = {.segment = end->segment, .peers = 1, .peer_of = numbers};
	if (shm_open_lane(&shm_config, &table, end, &end->shm, NULL) != ESP_OK)
		duet_die("no lane");
	end->memory = way == OFFERED ? shm_segment_alloc(end->segment, bytes) : aligned_alloc(4096, bytes);
	end->into = job->echoes ? end->memory : aligned_alloc(4096, bytes);
	if (!end->memory || !end->into)
		duet_die("no memory");
	memset(end->memory, 1, bytes);
	memset(end->into, 1, bytes);
}

static void end_meet(struct end *end, uint32_t peer, const struct end *other)
{
	if (shm_segment_view_open(end->segment, peer, dup(shm_segment_descriptor(other->segment)), &end->view, NULL) !=
	    ESP_OK)
		duet_die("no view");
	shm_adopt(end->shm, peer, end->view, dup(shm_descriptor(other->shm)));
}

static void end_close(struct end *end)
{
	shm_close(end->shm);
	shm_segment_view_close(end->view);
	if (end->way != OFFERED)
		free(end->memory);
	if (!end->job.echoes)
		free(end->into);
	shm_segment_close(end->segment);
}

static void *end_main(void *context)
{
	struct end *end = context;
	struct pollfd fd = {.fd = shm_descriptor(end->shm), .events = POLLIN};

	duet_begin(&end->duet);
	while (!duet_is_done(&end->duet)) {
		if (shm_poll(end->shm) == 0 && end->job.sleeps && shm_doze(end->shm)) {
			poll(&fd, 1, -1);
			shm_rouse(end->shm);
		}
	}
	shm_poll(end->shm); /* what was consumed last */
	return NULL;
}

/* ---- a round ---- */

/* Per message, or per way of an echo. */
struct cost {
	double ns, cpu_ns, wakes, best_ns;
};

static void *take_memory(size_t bytes)
{
	void *memory = aligned_alloc(4096, bytes);

	if (!memory)
		duet_die("no memory");
	return memory;
}

static struct cost run_memcpy(const struct job *job)
{
	size_t bytes = BUFFER_BYTES;
	uint8_t *from = take_memory(bytes), *into = take_memory(bytes);

	memset(from, 1, bytes);
	memset(into, 1, bytes);
	uint64_t start = clock_now_ns();
	for (uint32_t i = 0; i < job->messages; i++) {
		size_t at = place_of(job, i);

		memcpy(into + at, from + at, job->bytes);
		__asm__ volatile("" : : "r"(into) : "memory");
	}
	double took = (double)(clock_now_ns() - start) / (double)job->messages;
	free(from);
	free(into);
	return (struct cost){.ns = took, .cpu_ns = took};
}

static struct cost run_job(const struct job *job, enum way way)
{
	struct end ends[2];

	if (way == MEMCPY)
		return run_memcpy(job);
	for (uint32_t i = 0; i < 2; i++)
		end_open(&ends[i], i, job, way);
	for (uint32_t i = 0; i < 2; i++)
		end_meet(&ends[i], 1 - i, &ends[1 - i]);
	struct duet_time took = duet_run(end_main, &ends[0], &ends[1]);
	uint64_t wakes = shm_stats(ends[0].shm).wakes + shm_stats(ends[1].shm).wakes;
	double moves = (double)job->messages * (job->echoes ? 2 : 1);
	for (uint32_t i = 0; i < 2; i++)
		end_close(&ends[i]);
	return (struct cost){
		.ns = (double)took.ns / moves, .cpu_ns = (double)took.cpu_ns / moves, .wakes = (double)wakes / moves};
}

/* ---- the report ---- */

static struct cost middle_of(const struct cost *costs, unsigned count)
{
	return (struct cost){
		.ns = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, ns), count / 2),
		.cpu_ns = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, cpu_ns), count / 2),
		.wakes = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, wakes), count / 2),
		.best_ns = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, ns), 0),
	};
}

static void put_json(struct json *json, const struct job *job, enum way way, const struct cost *cost)
{
	json_object_begin(json);
	json_put_string(json, "pattern", job->echoes ? "echo" : "stream");
	json_put_string(json, "waits", job->sleeps ? "sleep" : "spin");
	json_put_u64(json, "bytes", job->bytes);
	json_put_string(json, "way", way_names[way]);
	json_put_double(json, "us_per_message", cost->ns / 1e3);
	json_put_double(json, "best_us_per_message", cost->best_ns / 1e3);
	json_put_double(json, "cpu_us_per_message", cost->cpu_ns / 1e3);
	json_put_double(json, "gb_per_s", (double)job->bytes / cost->ns);
	json_put_double(json, "wakes_per_message", cost->wakes);
	json_object_end(json);
}

static void put_line(const struct job *job, enum way way, const struct cost *cost)
{
	printf("%-7s  %-5s  %8u  %-7s  %10.3f  %8.3f  %8.3f  %7.3f  %13.3f\n", job->echoes ? "echo" : "stream",
	       job->sleeps ? "sleep" : "spin", job->bytes, way_names[way], cost->ns / 1e3, cost->best_ns / 1e3, cost->cpu_ns / 1e3,
	       (double)job->bytes / cost->ns, cost->wakes);
	fflush(stdout);
}

static void measure(struct json *json, const struct job *job, unsigned rounds)
{
	static struct cost costs[WAYS][DUET_ROUNDS];

	for (unsigned round = 0; round < rounds; round++) {
		for (enum way way = MEMCPY; way < WAYS; way++)
			costs[way][round] = run_job(job, way);
	}
	for (enum way way = MEMCPY; way < WAYS; way++) {
		struct cost middle = middle_of(costs[way], rounds);

		if (json)
			put_json(json, job, way, &middle);
		else
			put_line(job, way, &middle);
	}
}

static const char usage[] =
	"usage: shm_bench [--rounds N] [--json]\n"
	"Shared memory between two threads as between two ranks, beside memcpy() in one: medians of N\n"
	"rounds, which alternate, and the best. Processor time is that of both ends together.\n";

int main(int argc, char **argv)
{
	static const struct job jobs[] = {
		{.bytes = 8, .messages = 20000, .echoes = true},
		{.bytes = 4096, .messages = 10000, .echoes = true},
		{.bytes = 65536, .messages = 2000, .echoes = true},
		{.bytes = 8, .messages = 5000, .echoes = true, .sleeps = true},
		{.bytes = 8, .messages = 300000},
		{.bytes = 1024, .messages = 200000},
		{.bytes = 65536, .messages = 4096},
		{.bytes = LARGEST, .messages = 512},
	};
	struct duet_options options = duet_parse(argc, argv, usage);
	struct json json;

	if (options.json) {
		json_init(&json, stdout);
		json_array_begin(&json);
	} else {
		printf("%-7s  %-5s  %8s  %-7s  %10s  %8s  %8s  %7s  %13s\n", "pattern", "waits", "bytes", "way", "us/message",
		       "best us", "cpu us", "GB/s", "wakes/message");
	}
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		measure(options.json ? &json : NULL, &jobs[i], options.rounds);
	if (!options.json)
		return 0;
	json_array_end(&json);
	return json_fini(&json) == ESP_OK ? 0 : 1;
}
