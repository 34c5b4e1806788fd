#include "sim/workload/model.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/infile.h"
#include "base/quote.h"
#include "base/word.h"
#include "sim/workload/accelerator.h"

#define FORMAT "espalier-model-1"
#define COUNT_MOST (INT64_C(1) << 48) /* values of a parameter */
#define MACS_MOST (INT64_C(1) << 60)
#define SUM_MOST (UINT64_C(1) << 60) /* of bytes, and of multiply-adds: sums of several do not overflow */
#define INDEX_MOST (INT64_C(1) << 30)
#define PARAMETERS_MOST ((size_t)1 << 20)
#define FACTOR_MOST 1e6
#define SECONDS_MOST 1e9
#define SHARE_SLACK 1e-6 /* shares are written with nine digits */

const char *const model_set_names[] = {"public", "factors", "calibrated", NULL};

/* Reading one document: the first error ends it. */
struct reader {
	const char *file;
	struct error *err;
	enum esp_status status;
	char place[128]; /* "parameters[3] ('fc8/weights'): ", or "" */
};

__attribute__((format(printf, 3, 4)))
static void fail_at(struct reader *reader, enum esp_status status, const char *format, ...)
{
	char reason[160];
	va_list args;
	if (reader->status != ESP_OK)
		return;
	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	reader->status = error_set(reader->err, status, "%.100s: %s%s", reader->file, reader->place, reason);
}

/* ---- keys ---- */

static const char *const root_keys[] = {"format", "name", "about", "provenance", "batch", "value_bytes", "size_scale",
                                        "times", "accelerator",
                                        "parameters", "moving_averages", "factors", "calibrated", NULL};
static const char *const parameter_keys[] = {"name", "count", "macs", "forward_order", "variable", "forward_share",
                                             "grad_ready", NULL};
static const char *const average_keys[] = {"name", "count", "variable", NULL};
static const char *const times_keys[] = {"forward_s", "backward_s", "source", NULL};
static const char *const factors_keys[] = {"slowest_worker", "distribution_one_server", NULL};
static const char *const calibrated_keys[] = {"worker_factors", "distribution_order", NULL};

static const char *key_at(const void *list, size_t index)
{
	return ((const char *const *)list)[index];
}

/* A misspelt key must not pass for a missing one. Ignores values that are no object. */
static void only(struct reader *reader, const json_t *object, const char *const *known)
{
	char shown[QUOTE_TEXT];
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		size_t i = 0;
		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (known[i])
			continue;
		const char *near = word_nearest(key, key_at, known);
		fail_at(reader, ESP_EPARSE, "there is no key %s%s%s%s", quote(key, strlen(key), shown),
		        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	}
}

/* ---- values ---- */

static int64_t integer(struct reader *reader, const json_t *object, const char *key, int64_t least, int64_t most)
{
	const json_t *value = json_object_get(object, key);
	if (!value)
		fail_at(reader, ESP_EPARSE, "\"%s\" is missing", key);
	else if (!json_is_integer(value))
		fail_at(reader, ESP_EPARSE, "\"%s\" is no whole number", key);
	else if (json_integer_value(value) < least || json_integer_value(value) > most)
		fail_at(reader, ESP_EPARSE, "\"%s\" is %lld, not from %lld to %lld", key, (long long)json_integer_value(value),
		        (long long)least, (long long)most);
	else
		return json_integer_value(value);
	return least;
}

static double real(struct reader *reader, const json_t *object, const char *key, double least, double most)
{
	const json_t *value = json_object_get(object, key);
	double number = json_number_value(value);
	if (!value)
		fail_at(reader, ESP_EPARSE, "\"%s\" is missing", key);
	else if (!json_is_number(value))
		fail_at(reader, ESP_EPARSE, "\"%s\" is no number", key);
	else if (!(number >= least && number <= most))
		fail_at(reader, ESP_EPARSE, "\"%s\" is %g, not from %g to %g", key, number, least, most);
	else
		return number;
	return least;
}

static double real_or(struct reader *reader, const json_t *object, const char *key, double least, double most,
                      double otherwise)
{
	return json_object_get(object, key) ? real(reader, object, key, least, most) : otherwise;
}

/* A copy without unprintable bytes; "" if it is missing and not required. */
static char *text(struct reader *reader, const json_t *object, const char *key, bool is_needed)
{
	const json_t *value = json_object_get(object, key);
	if (value ? !json_is_string(value) : is_needed)
		fail_at(reader, ESP_EPARSE, value ? "\"%s\" is no text" : "\"%s\" is missing", key);
	if (is_needed && json_is_string(value) && json_string_length(value) == 0)
		fail_at(reader, ESP_EPARSE, "\"%s\" is empty", key);
	char *copy = strdup(json_is_string(value) ? json_string_value(value) : "");
	if (!copy)
		fail_at(reader, ESP_ENOMEM, "no memory for a model");
	for (char *at = copy; at && *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	return copy;
}

/* The elements of a list, and memory for as many structs; count 0 if it is missing and not required. */
static void *list(struct reader *reader, const json_t *object, const char *key, bool is_needed, size_t element,
                  uint32_t *out_count)
{
	const json_t *value = json_object_get(object, key);
	*out_count = 0;
	if (!value && !is_needed)
		return NULL;
	if (!json_is_array(value)) {
		fail_at(reader, ESP_EPARSE, value ? "\"%s\" is no list" : "\"%s\" is missing", key);
		return NULL;
	}
	size_t count = json_array_size(value);
	if (count > PARAMETERS_MOST || (count == 0 && is_needed)) {
		fail_at(reader, ESP_EPARSE, "\"%s\" has %zu entries, not from 1 to %zu", key, count, PARAMETERS_MOST);
		return NULL;
	}
	void *memory = calloc(count + 1, element);
	if (!memory)
		fail_at(reader, ESP_ENOMEM, "no memory for a model");
	*out_count = memory ? (uint32_t)count : 0;
	return memory;
}

static void set_place(struct reader *reader, const char *key, uint32_t index, const json_t *entry)
{
	char shown[QUOTE_TEXT];
	const char *name = json_string_value(json_object_get(entry, "name"));
	if (reader->status != ESP_OK)
		return;
	snprintf(reader->place, sizeof reader->place, "%s[%" PRIu32 "]%s%s%s: ", key, index, name ? " (" : "",
	         name ? quote(name, strlen(name), shown) : "", name ? ")" : "");
	if (!json_is_object(entry))
		fail_at(reader, ESP_EPARSE, "it is no object");
}

/* The size of a variable on the wire: at least 1. */
static uint64_t bytes_of(struct reader *reader, const json_t *from, double scale)
{
	double bytes = round((double)integer(reader, from, "count", 1, COUNT_MOST) * scale);
	if (bytes > (double)SUM_MOST)
		fail_at(reader, ESP_EPARSE, "%g bytes are too many", bytes);
	return bytes > (double)SUM_MOST || bytes < 1 ? 1 : (uint64_t)bytes;
}

/* ---- parts ---- */

static void read_parameter(struct reader *reader, const json_t *from, double scale, struct model_parameter *out)
{
	only(reader, from, parameter_keys);
	out->name = text(reader, from, "name", true);
	out->bytes = bytes_of(reader, from, scale);
	out->macs = (uint64_t)(json_object_get(from, "macs") ? integer(reader, from, "macs", 0, MACS_MOST) : 0);
	out->forward_order = (uint32_t)integer(reader, from, "forward_order", 0, INDEX_MOST);
	out->variable = (uint32_t)integer(reader, from, "variable", 0, INDEX_MOST);
	out->forward_share = real_or(reader, from, "forward_share", 0, 1, 0);
	out->distributed = true;
	out->aggregated = !json_is_null(json_object_get(from, "grad_ready"));
	out->grad_ready = out->aggregated ? real(reader, from, "grad_ready", 0, 1) : 0;
}

static int by_ready(const void *a, const void *b)
{
	const struct model_parameter *const *x = a, *const *y = b;
	if ((*x)->grad_ready != (*y)->grad_ready)
		return (*x)->grad_ready < (*y)->grad_ready ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* The time between two gradients belongs to the later one, to the first entry of its layer. */
enum esp_status workload_model_share_backward(struct model *model, struct error *err)
{
	struct model_parameter **order = calloc((size_t)model->parameter_count + 1, sizeof(struct model_parameter *));
	double before = 0;
	size_t count = 0;
	if (!order)
		return error_set(err, ESP_ENOMEM, "no memory for a model");
	for (uint32_t i = 0; i < model->parameter_count; i++)
		if (model->parameters[i].aggregated)
			order[count++] = &model->parameters[i];
	qsort(order, count, sizeof(struct model_parameter *), by_ready);
	for (size_t i = 0; i < count; i++) {
		order[i]->backward_share = order[i]->grad_ready - before;
		before = order[i]->grad_ready;
	}
	free(order);
	return count > 0 ? ESP_OK : error_set(err, ESP_EPARSE,
	                                      "no parameter has \"grad_ready\": there is nothing to aggregate");
}

static void read_parameters(struct reader *reader, const json_t *root, double scale, struct model *model)
{
	const json_t *from = json_object_get(root, "parameters");
	double shares = 0, bytes = 0, macs = 0;
	model->parameters = list(reader, root, "parameters", true, sizeof(*model->parameters), &model->parameter_count);
	for (uint32_t i = 0; i < model->parameter_count && reader->status == ESP_OK; i++) {
		set_place(reader, "parameters", i, json_array_get(from, i));
		read_parameter(reader, json_array_get(from, i), scale, &model->parameters[i]);
		shares += model->parameters[i].forward_share;
		bytes += (double)model->parameters[i].bytes;
		macs += (double)model->parameters[i].macs;
		if (bytes > (double)SUM_MOST || macs > (double)SUM_MOST)
			fail_at(reader, ESP_EPARSE, "the parameters up to here have too many bytes or multiply-adds");
	}
	if (reader->status != ESP_OK)
		return;
	reader->place[0] = '\0';
	if (fabs(shares - 1) > SHARE_SLACK + 1e-9 * model->parameter_count)
		fail_at(reader, ESP_EPARSE, "the parameters' \"forward_share\" sum up to %.9g, not to 1", shares);
	struct error reason = {0};
	enum esp_status status = workload_model_share_backward(model, &reason);
	if (status != ESP_OK)
		fail_at(reader, status, "%s", reason.text);
}

static void read_averages(struct reader *reader, const json_t *root, double scale, struct model *model)
{
	const json_t *from = json_object_get(root, "moving_averages");
	model->averages = list(reader, root, "moving_averages", false, sizeof(*model->averages), &model->average_count);
	for (uint32_t i = 0; i < model->average_count && reader->status == ESP_OK; i++) {
		const json_t *entry = json_array_get(from, i);
		struct model_average *out = &model->averages[i];
		set_place(reader, "moving_averages", i, entry);
		only(reader, entry, average_keys);
		out->name = text(reader, entry, "name", true);
		out->bytes = bytes_of(reader, entry, scale);
		out->variable = (uint32_t)integer(reader, entry, "variable", 0, INDEX_MOST);
	}
	if (reader->status == ESP_OK)
		reader->place[0] = '\0';
}

/* A name is one parameter in traces, a variable is one place on a server. */
static void check_distinct(struct reader *reader, const struct model *model)
{
	json_t *names = json_object(), *variables = json_object();
	char shown[QUOTE_TEXT], number[16];
	for (uint32_t i = 0; i < model->parameter_count + model->average_count && reader->status == ESP_OK; i++) {
		const char *name = i < model->parameter_count ? model->parameters[i].name : NULL;
		snprintf(number, sizeof number, "%" PRIu32,
		         name ? model->parameters[i].variable : model->averages[i - model->parameter_count].variable);
		if (name && json_object_get(names, name))
			fail_at(reader, ESP_EPARSE, "two parameters have the name %s", quote(name, strlen(name), shown));
		if (json_object_get(variables, number))
			fail_at(reader, ESP_EPARSE, "two entries have \"variable\": %s", number);
		if ((name && json_object_set_new(names, name, json_true()) != 0) ||
		    json_object_set_new(variables, number, json_true()) != 0)
			fail_at(reader, ESP_ENOMEM, "no memory for a model");
	}
	json_decref(names);
	json_decref(variables);
}

/* True if the document has a set of this name. */
static bool has_set(struct reader *reader, const json_t *root, const char *name)
{
	const json_t *from = json_object_get(root, name);
	if (from && !json_is_object(from))
		fail_at(reader, ESP_EPARSE, "\"%s\" is no object", name);
	return from != NULL;
}

static void read_factors(struct reader *reader, const json_t *root, struct model *model)
{
	const json_t *from = json_object_get(root, "factors");
	model->slowest_factor = real_or(reader, from, "slowest_worker", 1e-6, FACTOR_MOST, 1);
	model->distribution_factor = real_or(reader, from, "distribution_one_server", 1e-6, FACTOR_MOST, 1);
}

static void read_worker_factors(struct reader *reader, const json_t *from, struct model *model)
{
	const json_t *values = json_object_get(from, "worker_factors");
	model->worker_factors = list(reader, from, "worker_factors", false, sizeof(*model->worker_factors),
	                             &model->worker_factor_count);
	for (uint32_t i = 0; i < model->worker_factor_count; i++) {
		model->worker_factors[i] = json_number_value(json_array_get(values, i));
		if (!(model->worker_factors[i] > 0 && model->worker_factors[i] <= FACTOR_MOST))
			fail_at(reader, ESP_EPARSE, "\"worker_factors\"[%" PRIu32 "] is no number above 0", i);
	}
}

static void read_order(struct reader *reader, const json_t *from, struct model *model)
{
	const json_t *values = json_object_get(from, "distribution_order");
	uint32_t count, parameters = model->parameter_count;
	model->distribution_order = list(reader, from, "distribution_order", false, sizeof(*model->distribution_order),
	                                 &count);
	bool *seen = calloc((size_t)parameters + 1, sizeof(*seen));
	if (!seen) {
		fail_at(reader, ESP_ENOMEM, "no memory for a model");
		return;
	}
	if (values && count != parameters)
		fail_at(reader, ESP_EPARSE, "\"distribution_order\" has %" PRIu32 " entries for %" PRIu32 " parameters", count,
		        parameters);
	for (uint32_t i = 0; i < count && reader->status == ESP_OK; i++) {
		const json_t *index = json_array_get(values, i);
		json_int_t at = json_is_integer(index) ? json_integer_value(index) : -1;
		if (at < 0 || at >= parameters || seen[at]) {
			fail_at(reader, ESP_EPARSE, "\"distribution_order\"[%" PRIu32
			        "] is no index of a parameter that is not there yet", i);
			break;
		}
		seen[at] = true;
		model->distribution_order[i] = (uint32_t)at;
	}
	free(seen);
}

static void read_calibrated(struct reader *reader, const json_t *root, struct model *model)
{
	const json_t *from = json_object_get(root, "calibrated");
	read_worker_factors(reader, from, model);
	read_order(reader, from, model);
}

/* ---- times ---- */

/*
 * Two operations per multiply-add; a backward pass makes two multiply-adds for each: for the weights and for
 * the previous layer.
 */
static void compute_times(struct reader *reader, double flops, const char *rate, struct model *model)
{
	double forward = 2 * (double)workload_model_macs(model) * model->batch / flops;
	if (!(forward > 0 && forward < SECONDS_MOST)) {
		fail_at(reader, ESP_EINVAL, "no times follow from %" PRIu64 " multiply-adds at %g operations per second",
		        workload_model_macs(model), flops);
		return;
	}
	free(model->time_source);
	if (asprintf(&model->time_source,
	             "assumed: %.4g operations forward and twice as many backward at %.4g per second "
	             "(%s)",
	             2 * (double)workload_model_macs(model) * model->batch, flops, rate) < 0) {
		model->time_source = NULL;
		fail_at(reader, ESP_ENOMEM, "no memory for a model");
	}
	model->forward_s = forward;
	model->backward_s = 2 * forward;
	model->times_assumed = true;
}

static void measured_times(struct reader *reader, const json_t *times, uint32_t batch, struct model *model)
{
	if (!json_is_object(times))
		fail_at(reader, ESP_EPARSE, "\"times\" is no object");
	if (model->batch != batch)
		fail_at(reader, ESP_EINVAL, "its times were measured with batches of %" PRIu32
		        "; name an accelerator for other sizes", batch);
	model->forward_s = real(reader, times, "forward_s", 0, SECONDS_MOST);
	model->backward_s = real(reader, times, "backward_s", 0, SECONDS_MOST);
	model->time_source = text(reader, times, "source", true);
}

static void read_times(struct reader *reader, const json_t *root, const struct model_options *options,
                       struct model *model)
{
	const json_t *times = json_object_get(root, "times");
	uint32_t batch = (uint32_t)integer(reader, root, "batch", 1, INDEX_MOST);
	struct error reason = {0};
	double flops = 0;
	model->batch = options->batch ? options->batch : batch;
	if (reader->status != ESP_OK)
		return;
	if (options->flops > 0) {
		compute_times(reader, options->flops, "as asked for", model);
	} else if (times) {
		measured_times(reader, times, batch, model);
	} else {
		char *accelerator = text(reader, root, "accelerator", true);
		if (reader->status == ESP_OK && workload_accelerator_rate(accelerator, &flops, &reason) != ESP_OK)
			fail_at(reader, ESP_EPARSE, "\"accelerator\": %s", reason.text);
		if (reader->status == ESP_OK)
			compute_times(reader, flops, accelerator, model);
		free(accelerator);
	}
}

/* ---- the whole ---- */

static void read_root(struct reader *reader, const json_t *root, const struct model_options *options,
                      struct model *model)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	if (!json_is_object(root) || !format || strcmp(format, FORMAT) != 0) {
		fail_at(reader, ESP_EPARSE, "it is no model: an object with \"format\": \"" FORMAT "\"");
		return;
	}
	only(reader, root, root_keys);
	only(reader, json_object_get(root, "times"), times_keys);
	/* Also if other sets are requested. */
	only(reader, json_object_get(root, "factors"), factors_keys);
	only(reader, json_object_get(root, "calibrated"), calibrated_keys);
	bool has_factors = has_set(reader, root, "factors"), has_calibrated = has_set(reader, root, "calibrated");
	model->name = text(reader, root, "name", true);
	model->about = text(reader, root, "about", false);
	int64_t value_bytes = integer(reader, root, "value_bytes", 1, 64);
	double scale = real_or(reader, root, "size_scale", 1e-6, FACTOR_MOST, 1) *
	               (options->value_bytes ? (double)options->value_bytes : (double)value_bytes);
	model->set = options->set;
	model->slowest_factor = model->distribution_factor = 1;
	read_parameters(reader, root, scale, model);
	read_averages(reader, root, scale, model);
	if (reader->status == ESP_OK)
		check_distinct(reader, model);
	read_times(reader, root, options, model);
	if ((options->set == MODEL_FACTORS && !has_factors) || (options->set == MODEL_CALIBRATED && !has_calibrated))
		fail_at(reader, ESP_EINVAL, "the model has no values of the set '%s'; use the set '%s'",
		        model_set_names[options->set],
		        model_set_names[options->set == MODEL_CALIBRATED && has_factors ? MODEL_FACTORS : MODEL_PUBLIC]);
	if (options->set >= MODEL_FACTORS && has_factors)
		read_factors(reader, root, model);
	if (options->set >= MODEL_CALIBRATED && has_calibrated)
		read_calibrated(reader, root, model);
}

enum esp_status workload_model_parse(struct model *model, const char *file, const char *bytes, size_t size,
                                     const struct model_options *options, struct error *err)
{
	static const struct model_options defaults = {0};
	struct reader reader = {.file = file, .err = err};
	json_error_t where;
	*model = (struct model){0};
	json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &where);
	if (!root)
		return error_set(err, json_error_code(&where) == json_error_out_of_memory ? ESP_ENOMEM : ESP_EPARSE,
		                 "%.100s:%d:%d: %s", file, where.line, where.column, where.text);
	read_root(&reader, root, options ? options : &defaults, model);
	json_decref(root);
	return reader.status;
}

enum esp_status workload_model_load(struct model *model, const char *path, const struct model_options *options,
                                    struct error *err)
{
	struct infile file;
	*model = (struct model){0};
	enum esp_status status = infile_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = file.length > MODEL_FILE_MAX ? error_set(err, ESP_ELIMIT, "%.100s is no model: it is too long", path)
	                                      : workload_model_parse(model, path, file.text, file.length, options, err);
	infile_close(&file);
	return status;
}

void workload_model_fini(struct model *model)
{
	for (uint32_t i = 0; i < model->parameter_count; i++)
		free(model->parameters[i].name);
	for (uint32_t i = 0; i < model->average_count; i++)
		free(model->averages[i].name);
	free(model->name);
	free(model->about);
	free(model->time_source);
	free(model->parameters);
	free(model->averages);
	free(model->worker_factors);
	free(model->distribution_order);
	*model = (struct model){0};
}

uint64_t workload_model_bytes(const struct model *model)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < model->parameter_count; i++)
		sum += model->parameters[i].distributed ? model->parameters[i].bytes : 0;
	return sum;
}

uint64_t workload_model_aggregated_bytes(const struct model *model)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < model->parameter_count; i++)
		sum += model->parameters[i].aggregated ? model->parameters[i].bytes : 0;
	return sum;
}

uint64_t workload_model_macs(const struct model *model)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < model->parameter_count; i++)
		sum += model->parameters[i].macs;
	return sum;
}
