/*
 * math_bench.c - how fast the reduction kernels are, next to a plain a += b loop.
 *
 * Each sample of a kernel stands beside a sample of the plain float32 loop on the same
 * buffers, freshly filled, in changing order; the ratio of the two is taken pair by pair,
 * so that a noisy neighbour slows both, and time is that of the thread, not of the wall.
 * Bytes are what the operation has to touch: it reads a, reads b and writes dst, so three
 * times the buffer.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* the plain loops below are what -O3 makes of them */
#endif

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "math/fixed.h"
#include "math/kernels.h"
#include "math/math.h"
#include "report/json.h"

#define BUFFERS 3
#define MANY_TERMS 8
#define MANY_BUFFERS (MANY_TERMS + 1)
#define ONE_MIB ((size_t)1 << 20)
#define MAX_ROUNDS 101
#define SAMPLE_NS (200 * NS_PER_US) /* a sample of a small buffer repeats the call for so long */

enum mode { IN_PLACE, THREE_STREAMS, MODE_COUNT };
static const char *const mode_names[] = {"a=a.b", "d=a.b"};

struct options {
	const char *type, *op, *level; /* NULL is all */
	size_t small_bytes, large_bytes;
	int rounds;
	bool json;
};

struct kernel {
	enum math_level level;
	enum esp_type type;
	enum esp_op op;
	math_fold_fn *fold;
};

struct summary {
	double low, median, high; /* first quartile, median, third quartile */
};

struct row {
	const struct kernel *kernel;
	enum mode mode;
	size_t bytes;
	struct summary speed, plain, ratio;
};

static int usage(FILE *out, int status);

static char *buffers[MANY_BUFFERS];
static int buffer_count = BUFFERS;

/* ---- what the kernels are compared with ---- */

__attribute__((noinline)) static void plain_in_place(float *a, const float *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		a[i] += b[i];
}

__attribute__((noinline)) static void plain_three_streams(float *dst, const float *a, const float *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		dst[i] = a[i] + b[i];
}

static void plain_fold(void *dst, const void *a, const void *b, size_t count)
{
	if (dst == a)
		plain_in_place(dst, b, count);
	else
		plain_three_streams(dst, a, b, count);
}

/* ---- buffers ---- */

/* Transparent huge pages where there are any: the measure is of arithmetic, not of page walks. */
static void buffers_open(size_t bytes)
{
	size_t huge = (size_t)2 << 20;
	bytes = (bytes + huge - 1) / huge * huge;
	for (int i = 0; i < buffer_count; i++) {
		buffers[i] = aligned_alloc(huge, bytes);
		if (buffers[i] == NULL) {
			perror("math_bench: buffers");
			exit(1);
		}
		madvise(buffers[i], bytes, MADV_HUGEPAGE);
		memset(buffers[i], 0, bytes);
	}
}

static void buffers_close(void)
{
	for (int i = 0; i < buffer_count; i++)
		free(buffers[i]);
}

/*
 * Ones of the type, which sum and multiply without leaving the ordinary numbers and are
 * ordinary float32 numbers too, for the plain loop.
 */
static void buffers_fill(enum esp_type type, size_t bytes)
{
	static const uint32_t ones[ESP_TYPE_COUNT][2] = {
		[ESP_F64] = {0x3f800000u, 0x3ff00000u},
		[ESP_F16] = {0x3c003c00u, 0x3c003c00u},
		[ESP_BF16] = {0x3f803f80u, 0x3f803f80u},
	};
	uint32_t pattern[2] = {0x3f800000u, 0x3f800000u};
	if (ones[type][0] != 0)
		memcpy(pattern, ones[type], sizeof(pattern));
	for (int i = 0; i < buffer_count; i++) {
		uint32_t *words = (uint32_t *)buffers[i];
		for (size_t at = 0; at < bytes / sizeof(*words); at++)
			words[at] = pattern[at & 1];
	}
}

/* ---- samples ---- */

/* Time on the CPU, so that what other programs take of a shared machine is left out. */
static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* GB/s over the buffer's length for one call, or for as many as fill SAMPLE_NS. */
static double sample(math_fold_fn *fold, enum esp_type type, enum mode mode, size_t bytes)
{
	size_t count = bytes / math_type_bytes(type);
	void *dst = mode == IN_PLACE ? buffers[0] : buffers[2];
	uint64_t calls = 0, elapsed = 0;

	buffers_fill(type, bytes);
	if (bytes * BUFFERS < (size_t)4 << 20)
		fold(dst, buffers[0], buffers[1], count); /* warm */
	uint64_t start = now_ns();
	do {
		fold(dst, buffers[0], buffers[1], count);
		calls++;
		elapsed = now_ns() - start;
	} while (elapsed < SAMPLE_NS);
	return 3.0 * (double)bytes * (double)calls / (double)elapsed;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static struct summary summarize(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), by_value);
	return (struct summary){values[count / 4], values[count / 2], values[count - 1 - count / 4]};
}

/* ---- every kernel ---- */

/* Signed and unsigned share what does not depend on the sign, and avg and scaled fold as sums: one row each. */
static bool repeats(enum esp_type type, enum esp_op op)
{
	bool is_unsigned = type == ESP_U8 || type == ESP_U16 || type == ESP_U32 || type == ESP_U64;
	return op == ESP_AVG || op == ESP_SCALED || (is_unsigned && op != ESP_MIN && op != ESP_MAX);
}

static bool chosen(const char *wanted, const char *name)
{
	return wanted == NULL || strcmp(wanted, name) == 0;
}

static int list_kernels(const struct options *options, struct kernel *out)
{
	int count = 0;
	for (int level = 0; level < MATH_LEVEL_COUNT; level++)
		for (int type = 0; type < ESP_TYPE_COUNT; type++)
			for (int op = 0; op < ESP_OP_COUNT; op++) {
				struct kernel k = {(enum math_level)level, (enum esp_type)type, (enum esp_op)op, NULL};
				k.fold = math_fold_at(k.level, k.type, k.op);
				if (k.fold != NULL && !repeats(k.type, k.op) &&
				    chosen(options->level, math_level_name(k.level)) &&
				    chosen(options->type, math_type_name(k.type)) &&
				    chosen(options->op, math_op_name(k.op)))
					out[count++] = k;
			}
	return count;
}

static void print_summary(struct summary summary, struct json *json, const char *key)
{
	json_key(json, key);
	json_array_begin(json);
	json_double(json, summary.low);
	json_double(json, summary.median);
	json_double(json, summary.high);
	json_array_end(json);
}

static void print_json(const struct row *row, struct json *json)
{
	json_object_begin(json);
	json_key(json, "level");
	json_text(json, math_level_name(row->kernel->level));
	json_key(json, "type");
	json_text(json, math_type_name(row->kernel->type));
	json_key(json, "op");
	json_text(json, math_op_name(row->kernel->op));
	json_key(json, "mode");
	json_text(json, mode_names[row->mode]);
	json_key(json, "bytes");
	json_u64(json, row->bytes);
	print_summary(row->speed, json, "gbps");
	print_summary(row->plain, json, "plain_gbps");
	print_summary(row->ratio, json, "ratio");
	json_object_end(json);
}

static void print_text(const struct row *row)
{
	printf("%-8s %-5s %-5s %-5s %10zu  %6.1f %6.1f %6.1f  %6.1f %6.1f %6.1f  %6.3f %6.3f %6.3f\n",
	       math_level_name(row->kernel->level), math_type_name(row->kernel->type), math_op_name(row->kernel->op),
	       mode_names[row->mode], row->bytes, row->speed.low, row->speed.median, row->speed.high, row->plain.low,
	       row->plain.median, row->plain.high, row->ratio.low, row->ratio.median, row->ratio.high);
	fflush(stdout);
}

static struct row measure(const struct kernel *kernel, enum mode mode, size_t bytes, int rounds)
{
	double speed[MAX_ROUNDS] = {0}, plain[MAX_ROUNDS] = {0}, ratio[MAX_ROUNDS] = {0};

	for (int i = 0; i < rounds; i++) {
		if (i % 2 == 0)
			plain[i] = sample(plain_fold, ESP_F32, mode, bytes);
		speed[i] = sample(kernel->fold, kernel->type, mode, bytes);
		if (i % 2 == 1)
			plain[i] = sample(plain_fold, ESP_F32, mode, bytes);
		ratio[i] = speed[i] / plain[i];
	}
	return (struct row){kernel, mode, bytes, summarize(speed, rounds), summarize(plain, rounds),
	                    summarize(ratio, rounds)};
}

static int kernels_main(const struct options *options)
{
	static struct kernel kernels[MATH_LEVEL_COUNT * ESP_TYPE_COUNT * ESP_OP_COUNT];
	int count = list_kernels(options, kernels);
	const size_t sizes[] = {options->small_bytes, options->large_bytes};
	struct json json;

	json_init(&json, stdout);
	if (options->json)
		json_array_begin(&json);
	else
		printf("GB/s and the ratio to the plain loop: quartile, median, quartile of %d rounds\n"
		       "level    type  op    mode       bytes  kernel                plain                 ratio\n",
		       options->rounds);
	for (int i = 0; i < 2 * MODE_COUNT * count; i++) {
		struct row row = measure(&kernels[i % count], (enum mode)(i / count % MODE_COUNT),
		                         sizes[i / count / MODE_COUNT], options->rounds);
		if (options->json)
			print_json(&row, &json);
		else
			print_text(&row);
	}
	if (options->json)
		json_array_end(&json);
	return !options->json || json_fini(&json) == ESP_OK ? 0 : 1;
}

/* ---- do stores around the cache pay? ---- */

/* dst = a + b in f32 with non-temporal stores, where the CPU has such. */
static void streaming_fold(void *dst, const void *a, const void *b, size_t count)
{
	const void *sources[] = {a, b};
	math_fold_many_streaming(ESP_F32, ESP_SUM, dst, sources, 2, count);
}

static volatile uint64_t sink;

/* Reads dst as a send would that copies it to a socket. */
__attribute__((noinline)) static void read_back(const char *data, size_t bytes)
{
	uint64_t sum = 0, word;
	for (size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
		memcpy(&word, data + at, sizeof(word));
		sum += word;
	}
	sink = sum;
}

struct walk {
	size_t chunk;
	bool reuse;     /* every result goes to the same place: a scratch buffer in cache */
	bool then_read; /* and is read at once, as by a send                              */
};

/* Goes through large buffers a chunk at a time, as the engine does. */
static double walk_sample(math_fold_fn *fold, size_t bytes, struct walk walk)
{
	buffers_fill(ESP_F32, bytes);
	uint64_t start = now_ns();
	for (size_t at = 0; at + walk.chunk <= bytes; at += walk.chunk) {
		char *dst = buffers[2] + (walk.reuse ? 0 : at);
		fold(dst, buffers[0] + at, buffers[1] + at, walk.chunk / sizeof(float));
		if (walk.then_read)
			read_back(dst, walk.chunk);
	}
	return 3.0 * (double)bytes / (double)(now_ns() - start);
}

static void measure_stores(const struct options *options, struct walk walk)
{
	double ordinary[MAX_ROUNDS] = {0}, streaming[MAX_ROUNDS] = {0}, ratio[MAX_ROUNDS] = {0};
	for (int i = 0; i < options->rounds; i++) {
		ordinary[i] = walk_sample(math_fold(ESP_F32, ESP_SUM), options->large_bytes, walk);
		streaming[i] = walk_sample(streaming_fold, options->large_bytes, walk);
		ratio[i] = streaming[i] / ordinary[i];
	}
	struct summary o = summarize(ordinary, options->rounds), s = summarize(streaming, options->rounds),
		       r = summarize(ratio, options->rounds);
	printf("%10zu  %-6s  %-4s  %6.1f %6.1f %6.1f  %6.1f %6.1f %6.1f  %6.3f %6.3f %6.3f\n", walk.chunk,
	       walk.reuse ? "reused" : "new", walk.then_read ? "yes" : "no", o.low, o.median, o.high, s.low, s.median,
	       s.high, r.low, r.median, r.high);
}

static int stores_main(const struct options *options)
{
	printf("d = a + b in f32, GB/s: quartile, median, quartile of %d rounds\n", options->rounds);
	printf("     chunk  dst     read  ordinary stores       non-temporal          ratio\n");
	const struct walk walks[] = {
		{(size_t)256 << 10, false, false}, {(size_t)4 << 20, false, false}, {options->large_bytes, false, false},
		{(size_t)256 << 10, false, true},  {(size_t)4 << 20, false, true},  {options->large_bytes, false, true},
		{(size_t)256 << 10, true, false},  {(size_t)256 << 10, true, true},
	};
	for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++)
		measure_stores(options, walks[i]);
	return 0;
}

/* ---- folds of many terms ---- */

typedef void many_fn(enum esp_type type, enum esp_op op, void *dst, const void *const *sources, size_t source_count,
                     size_t count);

/* What math_fold_many() is compared with: folds of two, one after the other over the whole chunk. */
static void pairs_fold(enum esp_type type, enum esp_op op, void *dst, const void *const *sources, size_t source_count,
                       size_t count)
{
	math_fold_fn *fold = math_fold(type, op);

	fold(dst, sources[0], sources[1], count);
	for (size_t i = 2; i < source_count; i++)
		fold(dst, dst, sources[i], count);
}

struct many_case {
	enum esp_type type;
	enum esp_op op;
	size_t terms, chunk;
	size_t span;  /* bytes of each source that are gone through, again and again */
	size_t total; /* bytes of dst in a sample */
	bool reuse;   /* every result goes to the same place */
};

static double many_sample(many_fn *fold, const struct many_case *c)
{
	size_t count = c->chunk / math_type_bytes(c->type);

	uint64_t start = now_ns();
	for (size_t at = 0; at + c->chunk <= c->total; at += c->chunk) {
		const void *sources[MANY_TERMS] = {0};
		for (size_t i = 0; i < c->terms; i++)
			sources[i] = buffers[i] + at % c->span;
		fold(c->type, c->op, buffers[MANY_TERMS] + (c->reuse ? 0 : at), sources, c->terms, count);
	}
	return (double)(c->terms + 1) * (double)c->total / (double)(now_ns() - start);
}

static const char *where(size_t span, size_t terms)
{
	return span * terms <= ONE_MIB ? "L2" : span * terms <= 16 * ONE_MIB ? "L3" : "memory";
}

static void measure_many(const struct many_case *c, int rounds)
{
	double pairs[MAX_ROUNDS] = {0}, many[MAX_ROUNDS] = {0}, streaming[MAX_ROUNDS] = {0};

	for (int i = 0; i < rounds; i++) {
		pairs[i] = many_sample(pairs_fold, c);
		many[i] = many_sample(math_fold_many, c) / pairs[i];
		streaming[i] = many_sample(math_fold_many_streaming, c) / pairs[i];
	}
	struct summary p = summarize(pairs, rounds), m = summarize(many, rounds), s = summarize(streaming, rounds);
	printf("%-5s %-5s %zu %8zu  %-6s %-6s  %6.1f %6.1f %6.1f  %6.2f %6.2f %6.2f  %6.2f %6.2f %6.2f\n",
	       math_type_name(c->type), math_op_name(c->op), c->terms, c->chunk, where(c->span, c->terms),
	       c->reuse ? "reused" : "new", p.low, p.median, p.high, m.low, m.median, m.high, s.low, s.median, s.high);
	fflush(stdout);
}

static int many_main(const struct options *options)
{
	static const size_t terms[] = {2, 3, 4, MANY_TERMS}, chunks[] = {(size_t)64 << 10, (size_t)256 << 10};
	struct many_case c = {.total = options->large_bytes};

	if (options->large_bytes < ONE_MIB)
		return usage(stderr, 2);
	if ((options->type && !math_type_parse(options->type, &c.type)) ||
	    (options->op && !math_op_parse(options->op, &c.op)) || !math_op_defined(c.type, c.op))
		return usage(stderr, 2);
	printf("k terms into one: GB/s by pairs (k reads and one write counted), and the ratio to it of math_fold_many() and\n"
	       "of math_fold_many_streaming(): quartile, median, quartile of %d rounds\n"
	       "type  op    k    chunk  from   dst     pairs                 many                  streaming\n",
	       options->rounds);
	buffers_fill(c.type, options->large_bytes);
	for (int row = 0; row < 4 * 2 * 3 * 2; row++) {
		c.terms = terms[row / 12];
		c.chunk = chunks[row / 6 % 2];
		const size_t spans[] = {c.chunk, ONE_MIB, options->large_bytes};
		c.span = spans[row / 2 % 3];
		c.reuse = row % 2 == 0;
		measure_many(&c, options->rounds);
	}
	return 0;
}

/* ---- copies ---- */

typedef void copy_fn(void *dst, const void *src, size_t bytes);

static void plain_copy(void *dst, const void *src, size_t bytes)
{
	memcpy(dst, src, bytes);
}

struct copy_case {
	size_t chunk, span; /* as in many_case */
	size_t reach;       /* bytes of dst that are gone through, again and again */
};

static double copy_sample(copy_fn *copy, const struct copy_case *c, size_t total)
{
	uint64_t start = now_ns();
	for (size_t at = 0; at + c->chunk <= total; at += c->chunk)
		copy(buffers[1] + at % c->reach, buffers[0] + at % c->span, c->chunk);
	return (double)total / (double)(now_ns() - start);
}

static void measure_copy(const struct options *options, const struct copy_case *c)
{
	double plain[MAX_ROUNDS] = {0}, streaming[MAX_ROUNDS] = {0}, ratio[MAX_ROUNDS] = {0};

	for (int i = 0; i < options->rounds; i++) {
		plain[i] = copy_sample(plain_copy, c, options->large_bytes);
		streaming[i] = copy_sample(math_copy_streaming, c, options->large_bytes);
		ratio[i] = streaming[i] / plain[i];
	}
	struct summary p = summarize(plain, options->rounds), s = summarize(streaming, options->rounds),
		       r = summarize(ratio, options->rounds);
	printf("%8zu  %-6s %-6s  %6.1f %6.1f %6.1f  %6.1f %6.1f %6.1f  %6.2f %6.2f %6.2f\n", c->chunk, where(c->span, 1),
	       where(c->reach, 1), p.low, p.median, p.high, s.low, s.median, s.high, r.low, r.median, r.high);
	fflush(stdout);
}

static int copies_main(const struct options *options)
{
	const size_t l2 = ONE_MIB / 4, l3 = 8 * ONE_MIB, all = options->large_bytes;
	const struct copy_case cases[] = {
		{(size_t)4 << 10, l2, all},  {(size_t)16 << 10, l2, all},  {(size_t)32 << 10, l2, all},
		{(size_t)64 << 10, l2, all}, {(size_t)256 << 10, l2, all}, {(size_t)4 << 10, l3, all},
		{(size_t)16 << 10, l3, all}, {(size_t)32 << 10, l3, all},  {(size_t)64 << 10, l3, all},
		{(size_t)256 << 10, l3, all}, {(size_t)64 << 10, all, all}, {(size_t)64 << 10, l2, l2},
		{(size_t)64 << 10, l3, l3},
	};

	if (all < l3)
		return usage(stderr, 2);
	printf("memcpy() and math_copy_streaming(), GB/s copied: quartile, median, quartile of %d rounds\n"
	       "   chunk  from   to      memcpy                streaming             ratio\n", options->rounds);
	buffers_fill(ESP_F32, all);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		measure_copy(options, &cases[i]);
	return 0;
}

/* ---- the cost of one call ---- */

static int calls_main(const struct options *options)
{
	static const enum esp_type types[] = {ESP_F32, ESP_I32};
	const int calls = 100000;

	printf("one call on 16 elements in ns: quartile, median, quartile of %d rounds\n", options->rounds);
	for (int i = 0; i < 2; i++) {
		math_fold_fn *fold = math_fold(types[i], ESP_SUM);
		double ns[MAX_ROUNDS] = {0};
		for (int round = 0; round < options->rounds; round++) {
			uint64_t start = now_ns();
			for (int call = 0; call < calls; call++)
				fold(buffers[0], buffers[0], buffers[1], 16);
			ns[round] = (double)(now_ns() - start) / calls;
		}
		struct summary s = summarize(ns, options->rounds);
		printf("%-5s %5.1f %5.1f %5.1f\n", math_type_name(types[i]), s.low, s.median, s.high);
	}
	return 0;
}

/* ---- finishing ---- */

/* In place: one read and one write. */
static double finish_sample(enum esp_type type, enum esp_op op, size_t bytes)
{
	uint64_t calls = 0, elapsed = 0;

	buffers_fill(type, bytes);
	uint64_t start = now_ns();
	do {
		math_finish(buffers[0], bytes / math_type_bytes(type), type, op, 1, 3);
		calls++;
		elapsed = now_ns() - start;
	} while (elapsed < SAMPLE_NS);
	return 2.0 * (double)bytes * (double)calls / (double)elapsed;
}

static int finish_main(const struct options *options)
{
	const size_t sizes[] = {options->small_bytes, options->large_bytes};

	printf("math_finish() at level %s, GB/s: quartile, median, quartile of %d rounds\n",
	       math_level_name(math_level_best()), options->rounds);
	for (int row = 0; row < 4 * ESP_BYTES; row++) {
		enum esp_type type = (enum esp_type)(row / 2 % ESP_BYTES);
		enum esp_op op = row % 2 == 0 ? ESP_AVG : ESP_SCALED;
		size_t bytes = sizes[row / (2 * ESP_BYTES)];
		double gbps[MAX_ROUNDS] = {0};
		for (int i = 0; i < options->rounds; i++)
			gbps[i] = finish_sample(type, op, bytes);
		struct summary s = summarize(gbps, options->rounds);
		printf("%-5s %-6s %10zu  %6.1f %6.1f %6.1f\n", math_type_name(type), math_op_name(op), bytes, s.low,
		       s.median, s.high);
	}
	return 0;
}

/* ---- fixed point ---- */

#define FIXED_WORDS 356u /* what fits a packet of 1,500 bytes */
#define FIXED_STEPS 3

struct fixed_case {
	const struct math_kernels *kernels;
	struct fixed fixed;
	size_t count; /* elements of FIXED_WORDS words */
	uint8_t exponents[4];
};

/* 0: exponents, 1: quantize, 2: dequantize and divide nothing. */
static void fixed_step(struct fixed_case *c, int step)
{
	if (step == 0)
		math_kernels_exponents(c->kernels, c->fixed.type, buffers[0], c->count, c->exponents);
	else if (step == 1)
		math_kernels_quantize(c->kernels, &c->fixed, buffers[0], c->count, c->exponents, buffers[1]);
	else
		math_kernels_dequantize(c->kernels, &c->fixed, buffers[1], c->count, c->exponents, 1, buffers[2]);
}

/* Nanoseconds for the elements of one packet, which are in the first cache. */
static double fixed_sample(struct fixed_case *c, int step)
{
	const int calls = 20000;

	fixed_step(c, step);
	uint64_t start = now_ns();
	for (int i = 0; i < calls; i++)
		fixed_step(c, step);
	return (double)(now_ns() - start) / calls;
}

static void measure_fixed(struct fixed_case *c, enum math_level level, int rounds)
{
	double ns[FIXED_STEPS][MAX_ROUNDS] = {{0}};

	buffers_fill(c->fixed.type, FIXED_WORDS * 4);
	for (int i = 0; i < rounds; i++)
		for (int step = 0; step < FIXED_STEPS; step++)
			ns[step][i] = fixed_sample(c, step);
	printf("%-8s %-5s %-7s", math_level_name(level), math_type_name(c->fixed.type),
	       c->fixed.form == FIXED_32 ? "fixed" : "fixed16");
	for (int step = 0; step < FIXED_STEPS; step++) {
		struct summary s = summarize(ns[step], rounds);
		printf("  %6.0f %6.0f %6.0f", s.low, s.median, s.high);
	}
	printf("\n");
	fflush(stdout);
}

static int fixed_main(const struct options *options)
{
	static const enum esp_type types[] = {ESP_F32, ESP_F16, ESP_BF16};

	printf("elements of %u words, 8 workers, in ns: quartile, median, quartile of %d rounds\n"
	       "level    type  form     exponents             quantize              dequantize\n",
	       FIXED_WORDS, options->rounds);
	for (int row = 0; row < MATH_LEVEL_COUNT * 6; row++) {
		enum math_level level = (enum math_level)(row / 6);
		enum fixed_form form = row % 2 ? FIXED_16 : FIXED_32;
		struct fixed_case c = {.kernels = math_kernels_at(level), .fixed = {form, types[row / 2 % 3], 8}};
		c.count = form == FIXED_32 ? FIXED_WORDS : 2 * FIXED_WORDS;
		if (c.kernels && chosen(options->level, math_level_name(level)))
			measure_fixed(&c, level, options->rounds);
	}
	return 0;
}

/* ---- command line ---- */

typedef int main_fn(const struct options *options);

enum choice { OPT_TYPE = 1, OPT_OP, OPT_LEVEL, OPT_SMALL, OPT_LARGE, OPT_ROUNDS, OPT_JSON, OPT_STORES, OPT_CALLS,
              OPT_FINISH, OPT_MANY, OPT_COPIES, OPT_FIXED, OPT_HELP };

static const struct option long_options[] = {
	{"type", required_argument, NULL, OPT_TYPE},
	{"op", required_argument, NULL, OPT_OP},
	{"level", required_argument, NULL, OPT_LEVEL},
	{"small", required_argument, NULL, OPT_SMALL},
	{"large", required_argument, NULL, OPT_LARGE},
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"json", no_argument, NULL, OPT_JSON},
	{"stores", no_argument, NULL, OPT_STORES},
	{"calls", no_argument, NULL, OPT_CALLS},
	{"finish", no_argument, NULL, OPT_FINISH},
	{"many", no_argument, NULL, OPT_MANY},
	{"copies", no_argument, NULL, OPT_COPIES},
	{"fixed", no_argument, NULL, OPT_FIXED},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int usage(FILE *out, int status)
{
	fputs("usage: math_bench [--type T] [--op O] [--level portable|avx2|avx512] [--rounds N]\n"
	      "                  [--small BYTES] [--large BYTES] [--json]\n"
	      "       math_bench --stores | --calls | --finish | --copies [--small BYTES] [--large BYTES] [--rounds N]\n"
	      "       math_bench --fixed [--level portable|avx2|avx512] [--rounds N]\n"
	      "       math_bench --many [--type T] [--op O] [--large BYTES] [--rounds N]\n"
	      "\n"
	      "Speed of every reduction kernel in GB/s (two reads and one write counted) beside a plain\n"
	      "a += b loop over float32, on buffers of 128 KiB (in L2) and 64 MiB each, 9 rounds:\n"
	      "in place (a=a.b) and into a third buffer (d=a.b).\n"
	      "--stores compares ordinary with non-temporal stores. --calls times very short calls,\n"
	      "where setting the floating-point mode shows. --finish measures averages and factors.\n"
	      "--fixed times the three steps of fixed-point sums on the elements of one packet.\n"
	      "--many compares one fold of many terms with folds of two, --copies memcpy with a copy\n"
	      "that goes around the caches; the chunks come from L2, L3 (up to 16 MiB) or memory.\n",
	      out);
	return status;
}

/* False if the text is not a whole multiple of 64 in range. */
static bool parse_bytes(const char *text, size_t *out)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);
	if (*text == '\0' || *end != '\0' || value < 64 || value > (1ull << 32) || value % 64 != 0)
		return false;
	*out = (size_t)value;
	return true;
}

static bool parse_option(struct options *options, int option, main_fn **what)
{
	switch (option) {
	case OPT_TYPE: options->type = optarg; return true;
	case OPT_OP: options->op = optarg; return true;
	case OPT_LEVEL: options->level = optarg; return true;
	case OPT_SMALL: return parse_bytes(optarg, &options->small_bytes);
	case OPT_LARGE: return parse_bytes(optarg, &options->large_bytes);
	case OPT_ROUNDS: options->rounds = atoi(optarg); return options->rounds >= 1 && options->rounds <= MAX_ROUNDS;
	case OPT_JSON: options->json = true; return true;
	case OPT_STORES: *what = stores_main; return true;
	case OPT_CALLS: *what = calls_main; return true;
	case OPT_FINISH: *what = finish_main; return true;
	case OPT_MANY: *what = many_main; buffer_count = MANY_BUFFERS; return true;
	case OPT_FIXED: *what = fixed_main; return true;
	case OPT_COPIES: *what = copies_main; return true;
	default: return false;
	}
}

int main(int argc, char **argv)
{
	struct options options = {.small_bytes = 128 << 10, .large_bytes = 64 << 20, .rounds = 9};
	main_fn *what = kernels_main;
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPT_HELP)
			return usage(stdout, 0);
		if (!parse_option(&options, option, &what))
			return usage(stderr, 2);
	}
	if (optind != argc)
		return usage(stderr, 2);

	buffers_open(options.large_bytes > options.small_bytes ? options.large_bytes : options.small_bytes);
	int status = what(&options);
	buffers_close();
	return status;
}
