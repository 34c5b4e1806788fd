#include "tools/bench/bench_job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

/* ---- joining ---- */

void bench_last_error(enum esp_status status, struct esp_error *err)
{
	if (esp_last_error(err) == ESP_OK && err->status == status && err->text[0])
		return;
	*err = (struct esp_error){.struct_size = sizeof(*err), .status = status, .rank = -1};
	snprintf(err->text, sizeof(err->text), "%s", esp_status_text(status));
}

/* rank: the rank at fault; -1: the command line is, which is the same on all ranks. */
__attribute__((format(printf, 4, 5)))
static enum esp_status fail(struct esp_error *err, enum esp_status status, int32_t rank, const char *format, ...)
{
	va_list args;

	*err = (struct esp_error){.struct_size = sizeof(*err), .status = status, .rank = rank};
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return status;
}

static enum esp_status join(struct bench_job *job, struct esp_error *err)
{
	struct esp_options options = ESP_OPTIONS_INIT;

	options.settings = job->options->settings;
	enum esp_status status = esp_init(&options, &job->context);
	if (status != ESP_OK) {
		bench_last_error(status, err);
		return status;
	}
	job->world = esp_world(job->context);
	job->rank = esp_rank(job->world);
	job->ranks = esp_size(job->world);
	return ESP_OK;
}

static enum esp_status check_ranks(const struct bench_job *job, struct esp_error *err)
{
	if (job->options->ranks && job->options->ranks != job->ranks)
		return fail(err, ESP_EINVAL, -1, "--ranks %" PRIu64 ", but the job was started with %u", job->options->ranks,
		            job->ranks);
	if (job->options->root >= job->ranks)
		return fail(err, ESP_EINVAL, -1, "--root %" PRIu64 ", but ranks end at %u", job->options->root, job->ranks - 1);
	return ESP_OK;
}

/* ---- memory ---- */

enum esp_numerics bench_job_numerics(const struct bench_job *job)
{
	const char *setting = esp_setting(job->context, "numerics");

	if (job->options->numerics != ESP_NUMERICS_DEFAULT)
		return job->options->numerics;
	return strcmp(setting, "fixed") == 0     ? ESP_NUMERICS_FIXED
	       : strcmp(setting, "fixed16") == 0 ? ESP_NUMERICS_FIXED16
	                                         : ESP_NUMERICS_FLOAT;
}

struct bench_shape bench_job_shape(const struct bench_job *job, enum esp_collective collective, uint64_t bytes)
{
	return (struct bench_shape){
		.collective = collective,
		.type = job->options->type,
		.op = job->options->op,
		.numerics = bench_job_numerics(job),
		.rank = job->rank,
		.ranks = job->ranks,
		.root = (uint32_t)job->options->root,
		.count = bench_count(collective, job->options->type, job->ranks, bytes),
	};
}

static uint64_t largest(const struct bench_job *job)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < job->options->collective_count; i++) {
		struct bench_shape shape = bench_job_shape(job, job->options->collectives[i], job->options->sizes.most);
		most = bench_bytes(&shape) > most ? bench_bytes(&shape) : most;
	}
	return most;
}

static enum esp_status allocate_area(struct bench_job *job, uint64_t bytes, void **out, struct esp_error *err)
{
	char text[NUMBER_BYTES_TEXT];
	enum esp_status status = ESP_OK;

	if (job->options->memory == BENCH_ALLOC) {
		status = esp_alloc(job->context, bytes, out);
	} else {
		*out = malloc(bytes);
		status = *out ? ESP_OK : ESP_ENOMEM;
	}
	if (status == ESP_OK && job->options->memory == BENCH_SHARED)
		status = esp_share(job->context, *out, bytes);
	if (status != ESP_OK && status != ESP_ENOMEM)
		bench_last_error(status, err);
	if (status == ESP_ENOMEM)
		status = fail(err, ESP_ENOMEM, (int32_t)job->rank, "rank %u has no memory for two buffers of %s; see --size",
		              job->rank, number_format_bytes(bytes, text));
	return status;
}

static enum esp_status allocate(struct bench_job *job, struct esp_error *err)
{
	uint64_t bytes = largest(job);

	job->capacity = bench_pace_capacity(job->options->iters);
	job->samples = calloc(BENCH_JOB_ARRAYS * job->capacity, sizeof(*job->samples));
	job->times_ns = calloc((size_t)2 * job->ranks, sizeof(*job->times_ns));
	if (!job->samples || !job->times_ns)
		return fail(err, ESP_ENOMEM, (int32_t)job->rank, "rank %u has no memory for its samples", job->rank);
	enum esp_status status = allocate_area(job, bytes, &job->areas[0], err);
	return status == ESP_OK ? allocate_area(job, bytes, &job->areas[1], err) : status;
}

enum esp_status bench_job_open(struct bench_job *job, const struct bench_options *options, struct esp_error *err)
{
	*job = (struct bench_job){.options = options};
	enum esp_status status = join(job, err);
	if (status == ESP_OK) {
		status = check_ranks(job, err);
		job->is_misused = status != ESP_OK;
	}
	if (status == ESP_OK) {
		status = allocate(job, err);
		if (status != ESP_OK)
			(void)esp_abort(job->world, err->text); /* the other ranks have memory, and would wait */
	}
	if (status != ESP_OK)
		bench_job_close(job);
	return status;
}

void bench_job_close(struct bench_job *job)
{
	free(job->samples);
	free(job->times_ns);
	job->samples = NULL;
	job->times_ns = NULL;
	(void)esp_fini(job->context);
	job->context = NULL;
	for (int i = 0; i < 2; i++) {
		/* esp_fini() has freed memory of esp_alloc(); shared memory is private again */
		if (job->options->memory != BENCH_ALLOC)
			free(job->areas[i]);
		job->areas[i] = NULL;
	}
}

enum esp_status bench_job_ranks(struct bench_job *job, struct bench_rank **out)
{
	uint64_t pid = (uint64_t)getpid();
	struct bench_rank *ranks = calloc(job->ranks, sizeof(*ranks));
	enum esp_status status = ranks ? esp_allgather(job->world, &pid, job->times_ns, 1, ESP_U64) : ESP_ENOMEM;

	if (status != ESP_OK) {
		free(ranks);
		return status;
	}
	for (uint32_t i = 0; i < job->ranks; i++)
		ranks[i] = (struct bench_rank){.host = esp_host(job->world, i), .pid = job->times_ns[i]};
	*out = ranks;
	return ESP_OK;
}
