/*
 * main.c - trains a small network on all ranks of a job, once per plan, and proves that they agree.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gallery.h"
#include "must.h"
#include "proof.h"
#include "trainer.h"
#include "watch.h"

/* Once the job is joined, so that rank 0 alone can explain. Returns the exit status. */
static int explain(const struct options *options, uint32_t rank)
{
	if (rank == 0 && options->error[0] != '\0')
		fprintf(stderr, "train: %s\n", options->error);
	else if (rank == 0)
		options_help(stdout);
	return options->error[0] != '\0' ? 2 : 0;
}

static bool fits(struct options *options, uint32_t ranks)
{
	if (options->samples < 4 * (uint64_t)ranks || options->samples / ranks < options->batch)
		snprintf(options->error, sizeof options->error,
		         "--samples %" PRIu64 " is not a batch of %" PRIu64 " for each of %u ranks", options->samples,
		         options->batch, (unsigned)ranks);
	else if (options->corrupt != UINT64_MAX && options->corrupt >= ranks)
		snprintf(options->error, sizeof options->error, "--corrupt %" PRIu64 ": there are %u ranks", options->corrupt,
		         (unsigned)ranks);
	return options->error[0] == '\0';
}

/* What is to be done, and four of the samples. */
static void introduce(const struct trainer *trainer, FILE *out)
{
	size_t floats = model_floats(&trainer->model);
	const struct glyph *glyphs[GALLERY_WIDTH];
	char labels[GALLERY_WIDTH][16];
	const char *captions[GALLERY_WIDTH];
	uint32_t count = trainer->training.count < GALLERY_WIDTH ? trainer->training.count : GALLERY_WIDTH;
	for (uint32_t i = 0; i < count; i++) {
		glyphs[i] = &trainer->training.glyphs[i];
		snprintf(labels[i], sizeof labels[i], "%u", glyphs[i]->label);
		captions[i] = labels[i];
	}
	fprintf(out,
	        "%u workers learn to read digits, %u samples each; all share one network of %zu weights in %u layers and\n"
	        "average %.1f megabytes of gradients in each of %" PRIu64 " steps an epoch. Some of what they see:\n\n",
	        (unsigned)trainer->ranks, (unsigned)trainer->training.count, floats, (unsigned)trainer->model.layers,
	        (double)(floats * sizeof(float)) / 1e6, trainer->steps);
	gallery_print(out, glyphs, captions, count);
	fputc('\n', out);
	fflush(out);
}

/* Everything that the report says, apart from what the trainings add. */
static void report_open(struct report *report, const struct trainer *trainer)
{
	const struct options *options = trainer->options;
	*report = (struct report){
		.version = esp_version(),
		.ranks = trainer->ranks,
		.plan_count = options->plan_count,
		.epochs = options->epochs,
		.seed = options->seed,
		.batch = options->batch,
		.samples = (uint64_t)trainer->training.count * trainer->ranks,
		.test_samples = (uint64_t)trainer->test.count * trainer->ranks,
		.steps = trainer->steps,
		.parameters = model_floats(&trainer->model),
		.layers = trainer->model.layers,
	};
	report->plans = must_have(calloc(options->plan_count, sizeof report->plans[0]));
	for (uint32_t p = 0; p < options->plan_count; p++) {
		report->plans[p].plan = options->plans[p];
		report->plans[p].epochs = must_have(calloc(options->epochs, sizeof report->plans[p].epochs[0]));
		report->plans[p].hashes = must_have(calloc(trainer->ranks, sizeof report->plans[p].hashes[0]));
	}
}

static void report_close(struct report *report)
{
	for (uint32_t p = 0; p < report->plan_count; p++) {
		free(report->plans[p].epochs);
		free(report->plans[p].hashes);
	}
	free(report->plans);
}

static void run_epochs(struct trainer *trainer, struct training *trainings, struct report *report)
{
	for (uint64_t e = 0; e < report->epochs; e++) {
		for (uint32_t p = 0; p < report->plan_count; p++)
			report->plans[p].epochs[e] = training_epoch(&trainings[p], trainer, e);
		const struct epoch_result *result = &report->plans[0].epochs[e];
		progress_line(&trainer->progress, "epoch %u of %u: loss %.3f, %.1f %% of the test set right", (unsigned)e + 1,
		              (unsigned)report->epochs, result->loss, 100 * result->test_accuracy);
	}
	progress_clear(&trainer->progress);
}

static void prove(struct trainer *trainer, struct training *trainings, struct report *report)
{
	size_t floats = model_floats(&trainer->model);
	if (trainer->options->corrupt == trainer->rank)
		proof_corrupt(trainings[report->plan_count - 1].weights, floats);
	for (uint32_t p = 0; p < report->plan_count; p++)
		proof_gather(trainer->world, proof_hash(trainings[p].weights, floats), report->plans[p].hashes);
}

/* Trains under all plans; fills the report on all ranks. */
static void train_all(struct trainer *trainer, struct report *report)
{
	struct training *trainings = must_have(calloc(report->plan_count, sizeof trainings[0]));
	for (uint32_t p = 0; p < report->plan_count; p++)
		training_open(&trainings[p], trainer, report->plans[p].plan);
	run_epochs(trainer, trainings, report);
	for (uint32_t p = 0; p < report->plan_count; p++)
		training_sum_up(&trainings[p], trainer, &report->plans[p]);
	prove(trainer, trainings, report);
	for (uint32_t p = 0; p < report->plan_count; p++)
		training_close(&trainings[p]);
	free(trainings);
}

/* A file that cannot be written should be known before the training, not after it. NULL: no JSON is wanted. */
static FILE *open_json(const char *name)
{
	if (!name)
		return NULL;
	FILE *file = strcmp(name, "-") == 0 ? stdout : fopen(name, "w");
	if (!file)
		must_stop("cannot write to %s", name);
	return file;
}

static void close_output(FILE *file, const char *name)
{
	bool failed = fflush(file) != 0 || ferror(file);
	if (file != stdout)
		failed |= fclose(file) != 0;
	if (failed)
		must_stop("cannot write to %s", name);
}

static void print(const struct report *report, FILE *json, const char *json_name)
{
	if (json)
		report_json(report, json);
	if (json && json != stdout)
		close_output(json, json_name);
	if (json != stdout)
		report_tables(report, stdout);
	close_output(stdout, "the standard output");
}

/* On all ranks: rank 0 speaks. Returns the exit status. */
static int run(const struct options *options, struct esp_context *context, int64_t begin)
{
	struct trainer trainer;
	struct report report;
	bool speaks = esp_rank(esp_world(context)) == 0;
	FILE *json = speaks ? open_json(options->json) : NULL;
	trainer_open(&trainer, options, context);
	report_open(&report, &trainer);
	if (speaks)
		introduce(&trainer, json == stdout ? stderr : stdout);
	train_all(&trainer, &report);
	report.seconds = (double)(watch_now() - begin) * 1e-9;
	if (speaks)
		print(&report, json, options->json);
	int status = report_agrees(&report) ? 0 : 1;
	report_close(&report);
	trainer_close(&trainer);
	return status;
}

int main(int argc, char **argv)
{
	int64_t begin = watch_now();
	struct options options;
	struct esp_context *context;
	bool go = options_parse(&options, argc, argv) && !options.help;
	must(esp_init(NULL, &context), "esp_init");
	uint32_t rank = esp_rank(esp_world(context)), ranks = esp_size(esp_world(context));
	must_name(rank);
	go = go && fits(&options, ranks);
	int status = go ? run(&options, context, begin) : explain(&options, rank);
	/* Waits for rank 0: whoever starts us may end the job as soon as one of us has failed. */
	must(esp_fini(context), "esp_fini");
	return status;
}
