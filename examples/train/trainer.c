#include "trainer.h"

#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "watch.h"

static const uint32_t widths[] = {GLYPH_PIXELS, 512, 512, 256, GLYPH_CLASSES};
#define LAYERS (sizeof widths / sizeof widths[0] - 1)

/* Tuned for 256 samples a step: fewer make it less sure, and so more careful. */
#define RATE 0.1f
#define RATE_SAMPLES 256.0f
#define MOMENTUM 0.9f
#define DECAY 1e-4f

void trainer_open(struct trainer *trainer, const struct options *options, struct esp_context *context)
{
	memset(trainer, 0, sizeof *trainer);
	trainer->options = options;
	trainer->context = context;
	trainer->world = esp_world(context);
	trainer->rank = esp_rank(trainer->world);
	trainer->ranks = esp_size(trainer->world);
	uint32_t samples = (uint32_t)options->samples, batch = (uint32_t)options->batch;
	if (share_open(&trainer->training, options->seed, RANDOM_TRAINING, samples, trainer->rank, trainer->ranks) != 0 ||
	    share_open(&trainer->test, options->seed, RANDOM_TEST, samples / 4, trainer->rank, trainer->ranks) != 0 ||
	    model_open(&trainer->model, widths, LAYERS, batch) != 0)
		must_stop("out of memory");
	trainer->steps = trainer->training.count / batch;
	trainer->rows = must_have(calloc((size_t)batch * GLYPH_PIXELS, sizeof trainer->rows[0]));
	trainer->labels = must_have(calloc(batch, sizeof trainer->labels[0]));
	trainer->order = must_have(calloc(trainer->training.count + 1, sizeof trainer->order[0]));
	must(esp_alloc(context, model_floats(&trainer->model) * sizeof(float), (void **)&trainer->gradient), "esp_alloc");
	progress_open(&trainer->progress, trainer->rank == 0);
}

void trainer_close(struct trainer *trainer)
{
	must(esp_free(trainer->context, trainer->gradient), "esp_free");
	share_close(&trainer->training);
	share_close(&trainer->test);
	model_close(&trainer->model);
	free(trainer->rows);
	free(trainer->labels);
	free(trainer->order);
}

void training_open(struct training *training, struct trainer *trainer, const char *plan)
{
	size_t floats = model_floats(&trainer->model);
	memset(training, 0, sizeof *training);
	training->plan = plan;
	training->weights = must_have(calloc(floats, sizeof(float)));
	training->velocity = must_have(calloc(floats, sizeof(float)));
	if (trainer->rank == 0)
		model_init(&trainer->model, training->weights, trainer->options->seed);
	must(esp_broadcast(trainer->world, training->weights, floats, ESP_F32, 0), "esp_broadcast");
	buckets_open(&training->buckets, trainer->world, &trainer->model, trainer->gradient,
	             strcmp(plan, OPTIONS_DEFAULT_PLAN) == 0 ? NULL : plan, &training->times);
}

void training_close(struct training *training)
{
	buckets_close(&training->buckets);
	free(training->weights);
	free(training->velocity);
}

/* Losses and counts that are added up over a rank's batches, then over all ranks. */
struct tally {
	double loss, correct, samples;
};

static void tally_batch(struct tally *tally, double loss, uint32_t correct, uint32_t samples)
{
	tally->loss += loss;
	tally->correct += correct;
	tally->samples += samples;
}

static struct tally tally_ranks(struct trainer *trainer, const struct tally *mine)
{
	double in[3] = {mine->loss, mine->correct, mine->samples}, out[3];
	must(esp_allreduce(trainer->world, in, out, 3, ESP_F64, ESP_SUM), "esp_allreduce");
	return (struct tally){out[0], out[1], out[2]};
}

/* Each rank shuffles its own samples, each epoch anew. */
static void shuffle(struct trainer *trainer, uint64_t epoch)
{
	struct random random = random_stream(trainer->options->seed, RANDOM_ORDER, epoch, trainer->rank);
	uint32_t *order = trainer->order;
	for (uint32_t i = 0; i < trainer->training.count; i++) {
		uint32_t j = random_below(&random, i + 1);
		order[i] = order[j];
		order[j] = i;
	}
}

/* The rate sinks evenly to nearly nothing. */
static struct step step_at(const struct trainer *trainer, uint64_t epoch, uint64_t number)
{
	float all = (float)(trainer->steps * trainer->options->epochs);
	float done = (float)(epoch * trainer->steps + number);
	float together = (float)(trainer->options->batch * trainer->ranks) / RATE_SAMPLES;
	float rate = RATE * (together < 1 ? together : 1);
	return (struct step){rate * (1 - done / all), MOMENTUM, DECAY};
}

/* The heart: compute, and send what is ready while the rest is computed. */
static void train_step(struct training *training, struct trainer *trainer, const uint32_t *samples, struct step step,
                       struct tally *tally)
{
	struct model *model = &trainer->model;
	uint32_t batch = (uint32_t)trainer->options->batch, correct;
	share_batch(&trainer->training, samples, batch, trainer->rows, trainer->labels);
	double loss = model_loss(model, training->weights, trainer->rows, trainer->labels, batch, &correct);
	for (uint32_t l = model->layers; l-- > 0;) {
		model_backward(model, training->weights, l, trainer->gradient);
		buckets_start(&training->buckets, l);
	}
	for (uint32_t l = model->layers; l-- > 0;) {
		buckets_wait(&training->buckets, l);
		model_update(model, l, training->weights, training->velocity, trainer->gradient, &step);
	}
	buckets_land(&training->buckets);
	tally_batch(tally, loss, correct, batch);
}

static struct esp_stats stats_of(struct trainer *trainer)
{
	struct esp_stats stats = ESP_STATS_INIT;
	must(esp_get_stats(trainer->context, &stats), "esp_get_stats");
	return stats;
}

static void add_bytes(struct plan_bytes *bytes, const struct esp_stats *before, const struct esp_stats *after)
{
	bytes->sent += after->sent_bytes - before->sent_bytes;
	bytes->shared += after->shared_bytes - before->shared_bytes;
	bytes->network += after->network_bytes - before->network_bytes;
	bytes->messages += after->sent_messages - before->sent_messages;
}

static struct tally train(struct training *training, struct trainer *trainer, uint64_t epoch)
{
	struct tally tally = {0};
	struct times *times = &training->times;
	shuffle(trainer, epoch);
	/* All begin together: nobody waits in the first step for those who were late in the test. */
	must(esp_barrier(trainer->world), "esp_barrier");
	struct esp_stats stats = stats_of(trainer);
	int64_t begin = watch_now(), cpu = watch_process_cpu(), thread_cpu = watch_thread_cpu();
	for (uint64_t s = 0; s < trainer->steps; s++) {
		uint32_t *samples = trainer->order + s * trainer->options->batch;
		train_step(training, trainer, samples, step_at(trainer, epoch, s), &tally);
		progress_step(&trainer->progress, "epoch %u of %u, plan %s, step %u of %u, loss %.3f", (unsigned)epoch + 1,
		              (unsigned)trainer->options->epochs, training->plan, (unsigned)s + 1, (unsigned)trainer->steps,
		              tally.loss / tally.samples);
	}
	cpu = watch_process_cpu() - cpu;
	times->total += watch_now() - begin;
	times->cpu += cpu;
	times->communication_cpu += cpu - (watch_thread_cpu() - thread_cpu);
	struct esp_stats now = stats_of(trainer);
	add_bytes(&training->bytes, &stats, &now);
	return tally_ranks(trainer, &tally);
}

static struct tally test(struct training *training, struct trainer *trainer)
{
	struct tally tally = {0};
	uint32_t batch = (uint32_t)trainer->options->batch, count = trainer->test.count, correct;
	for (uint32_t i = 0; i < count; i++)
		trainer->order[i] = i;
	for (uint32_t first = 0; first < count; first += batch) {
		uint32_t some = count - first < batch ? count - first : batch;
		share_batch(&trainer->test, trainer->order + first, some, trainer->rows, trainer->labels);
		double loss = model_loss(&trainer->model, training->weights, trainer->rows, trainer->labels, some, &correct);
		tally_batch(&tally, loss, correct, some);
	}
	return tally_ranks(trainer, &tally);
}

struct epoch_result training_epoch(struct training *training, struct trainer *trainer, uint64_t epoch)
{
	struct tally learned = train(training, trainer, epoch);
	struct tally tested = test(training, trainer);
	return (struct epoch_result){
		.loss = learned.loss / learned.samples,
		.accuracy = learned.correct / learned.samples,
		.test_loss = tested.loss / tested.samples,
		.test_accuracy = tested.correct / tested.samples,
	};
}

void training_sum_up(struct training *training, struct trainer *trainer, struct plan_result *out)
{
	const struct times *times = &training->times;
	double seconds[] = {(double)times->total * 1e-9, (double)times->waiting * 1e-9, (double)times->in_flight * 1e-9,
	                    (double)times->cpu * 1e-9, (double)times->communication_cpu * 1e-9};
	const struct plan_bytes *mine = &training->bytes;
	uint64_t bytes[] = {mine->sent, mine->shared, mine->network, mine->messages}, busiest;
	must(esp_allreduce(trainer->world, seconds, seconds, 5, ESP_F64, ESP_AVG), "esp_allreduce");
	must(esp_allreduce(trainer->world, &mine->sent, &busiest, 1, ESP_U64, ESP_MAX), "esp_allreduce");
	must(esp_allreduce(trainer->world, bytes, bytes, 4, ESP_U64, ESP_SUM), "esp_allreduce");
	out->seconds = (struct plan_seconds){seconds[0], seconds[1], seconds[2], seconds[3], seconds[4]};
	out->bytes = (struct plan_bytes){bytes[0], bytes[1], bytes[2], bytes[3], busiest};
	snprintf(out->planner, sizeof out->planner, "%s", buckets_planner(&training->buckets));
}
