/*
 * traces_files.c - reads and writes a folder of traces with its model.json.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/infile.h"
#include "base/outfile.h"
#include "base/quote.h"
#include "base/word.h"
#include "report/json.h"
#include "sim/workload/traces.h"

#define SECONDS_MOST 1e9
#define LAYERS_MOST ((size_t)1 << 20)
#define SHARE_SLACK 1e-6

/* ---- model.json ---- */

static const char *const model_keys[] = {"name", "forward_s", "first_gradient_s", "forward_order", "forward_share",
                                         NULL};

static const char *key_at(const void *list, size_t index)
{
	return ((const char *const *)list)[index];
}

/* The text while it is read: errors tell the line of the key. */
struct document {
	const char *file, *text;
	size_t size;
	struct error *err;
};

/* The line of a key of the outermost object; 1: it is missing. */
static int line_of(const struct document *document, const char *key)
{
	int line = 1, depth = 0;
	size_t length = strlen(key);
	for (const char *at = document->text, *end = at + document->size; at < end; at++) {
		if (*at == '"') {
			const char *from = at + 1;
			for (at = from; at < end && *at != '"'; at++)
				at += *at == '\\';
			const char *behind = at + 1;
			while (behind < end && strchr(" \t\r\n", *behind))
				behind++;
			if (depth == 1 && at < end && behind < end && *behind == ':' && (size_t)(at - from) == length &&
			    memcmp(from, key, length) == 0)
				return line;
		}
		if (at < end) {
			line += *at == '\n';
			depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
		}
	}
	return 1;
}

__attribute__((format(printf, 3, 4)))
static enum esp_status fail_key(const struct document *document, const char *key, const char *format, ...)
{
	char reason[160];
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	return error_set(document->err, ESP_EPARSE, "%.80s:%d: %s", document->file, line_of(document, key), reason);
}

static bool seconds(const json_t *value, double *out)
{
	if (!json_is_number(value) || !(json_number_value(value) >= 0 && json_number_value(value) <= SECONDS_MOST))
		return false;
	*out = json_number_value(value);
	return true;
}

static enum esp_status check_keys(const struct document *document, const json_t *root)
{
	char shown[QUOTE_TEXT];
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)root, key, value) {
		bool is_known = false;
		for (size_t i = 0; model_keys[i]; i++)
			is_known = is_known || strcmp(model_keys[i], key) == 0;
		if (is_known)
			continue;
		const char *near = word_nearest(key, key_at, model_keys);
		return fail_key(document, key, "there is no key %s%s%s%s", quote(key, strlen(key), shown),
		                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	}
	return ESP_OK;
}

/* "forward_order": names; "forward_share": as many numbers with a sum of 1. */
static enum esp_status read_layers(struct traces *traces, const struct document *document, const json_t *root)
{
	const json_t *order = json_object_get(root, "forward_order"), *shares = json_object_get(root, "forward_share");
	double sum = 0;
	traces->order_line = line_of(document, "forward_order");
	if (!order)
		return shares ? fail_key(document, "forward_share", "\"forward_share\" without \"forward_order\"") : ESP_OK;
	if (!json_is_array(order) || json_array_size(order) > LAYERS_MOST)
		return fail_key(document, "forward_order", "\"forward_order\" is no list of names");
	if (shares && (!json_is_array(shares) || json_array_size(shares) != json_array_size(order)))
		return fail_key(document, "forward_share", "\"forward_share\" is no list as long as \"forward_order\"");
	for (size_t i = 0; i < json_array_size(order); i++) {
		const char *name = json_string_value(json_array_get(order, i));
		const json_t *value = json_array_get(shares, i);
		double share = json_number_value(value);
		if (!name || !*name || strpbrk(name, "\n\r"))
			return fail_key(document, "forward_order", "\"forward_order\"[%zu] is no name", i);
		if (shares && (!json_is_number(value) || !(share >= 0 && share <= 1)))
			return fail_key(document, "forward_share", "\"forward_share\"[%zu] is no share from 0 to 1", i);
		if (!workload_traces_add_layer(traces, name, shares ? share : -1))
			return error_set(document->err, ESP_ENOMEM, "no memory for %.80s", document->file);
		sum += share;
	}
	if (shares && fabs(sum - 1) > SHARE_SLACK + 1e-9 * traces->layer_count)
		return fail_key(document, "forward_share", "\"forward_share\" sums up to %.9g, not to 1", sum);
	return ESP_OK;
}

static enum esp_status read_model(struct traces *traces, const struct document *document, const json_t *root)
{
	const json_t *name = json_object_get(root, "name"), *first = json_object_get(root, "first_gradient_s");
	if (!json_is_object(root))
		return fail_key(document, "", "it is no object");
	enum esp_status status = check_keys(document, root);
	if (status != ESP_OK)
		return status;
	if (!seconds(json_object_get(root, "forward_s"), &traces->forward_s))
		return fail_key(document, "forward_s",
		                "\"forward_s\", the seconds of a forward pass, is missing or no number from 0 on");
	if (first && !seconds(first, &traces->first_gradient_s))
		return fail_key(document, "first_gradient_s", "\"first_gradient_s\" is no number of seconds from 0 on");
	if (name && !json_is_string(name))
		return fail_key(document, "name", "\"name\" is no text");
	traces->name = strdup(name ? json_string_value(name) : "");
	return traces->name ? read_layers(traces, document, root)
	                    : error_set(document->err, ESP_ENOMEM, "no memory for %.80s", document->file);
}

enum esp_status workload_traces_parse_model(struct traces *traces, const char *file, const char *text, size_t size,
                                            struct error *err)
{
	const struct document document = {file, text, size, err};
	json_error_t where;
	if (traces->name)
		return error_set(err, ESP_EPARSE, "%.80s is there twice", file);
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	if (!root)
		return error_set(err, json_error_code(&where) == json_error_out_of_memory ? ESP_ENOMEM : ESP_EPARSE,
		                 "%.80s:%d:%d: %s", file, where.line, where.column, where.text);
	enum esp_status status = read_model(traces, &document, root);
	json_decref(root);
	return status;
}

static enum esp_status write_model(const struct traces *traces, FILE *out)
{
	struct json json;
	json_init(&json, out);
	json_object_begin(&json);
	if (traces->name[0])
		json_put_string(&json, "name", traces->name);
	json_put_double(&json, "forward_s", traces->forward_s);
	if (traces->first_gradient_s > 0)
		json_put_double(&json, "first_gradient_s", traces->first_gradient_s);
	if (traces->layer_count > 0) {
		json_key(&json, "forward_order");
		json_array_begin(&json);
		for (uint32_t i = 0; i < traces->layer_count; i++)
			json_text(&json, traces->layers[i].name);
		json_array_end(&json);
	}
	if (traces->layer_count > 0 && traces->layers[0].share >= 0) {
		json_key(&json, "forward_share");
		json_array_begin(&json);
		for (uint32_t i = 0; i < traces->layer_count; i++)
			json_double(&json, traces->layers[i].share);
		json_array_end(&json);
	}
	json_object_end(&json);
	return json_fini(&json);
}

/* ---- the folder ---- */

/* True for names that must not be ignored. */
static bool is_named_as_trace(const char *name)
{
	const char *end = strrchr(name, '.');
	bool is_csv = end && strcmp(end, ".csv") == 0;
	return strcmp(name, "model.json") == 0 ||
	       (is_csv && (strncmp(name, "worker-", strlen("worker-")) == 0 ||
	                   strncmp(name, "distribution-", strlen("distribution-")) == 0));
}

static enum esp_status load_file(struct traces *traces, const char *folder, const char *name, struct error *err)
{
	char *path = NULL;
	struct infile file;
	struct stat facts;
	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return error_set(err, ESP_ENOMEM, "no memory for the name of a file");
	enum esp_status status = ESP_OK;
	if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
		status = infile_open(&file, path, err);
		if (status == ESP_OK) {
			status = workload_traces_parse_file(traces, name, file.text, file.length, err);
			infile_close(&file);
		}
	} else if (is_named_as_trace(name)) {
		status = error_set(err, ESP_EPARSE, "%.100s is not a file, or a link to nothing", name);
	}
	free(path);
	return status;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

enum esp_status workload_traces_load(struct traces *traces, const char *folder, struct error *err)
{
	struct dirent **entries = NULL;
	struct error reason = {0};
	*traces = (struct traces){0};
	/* Sorted, so that of two errors always the same one is reported. */
	int count = scandir(folder, &entries, is_visible, alphasort);
	if (count < 0)
		return error_set(err, ESP_EIO, "cannot read the folder %.100s: %s", folder, strerror(errno));
	enum esp_status status = ESP_OK;
	for (int i = 0; i < count; i++) {
		if (status == ESP_OK)
			status = load_file(traces, folder, entries[i]->d_name, &reason);
		free(entries[i]);
	}
	free(entries);
	if (status == ESP_OK)
		status = workload_traces_finish(traces, &reason);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "%.60s: %s", folder, reason.text);
}

static enum esp_status is_free(const char *folder, struct error *err)
{
	struct dirent **entries = NULL;
	if (mkdir(folder, 0777) == 0)
		return ESP_OK;
	if (errno != EEXIST)
		return error_set(err, ESP_EIO, "cannot make the folder %.100s: %s", folder, strerror(errno));
	int count = scandir(folder, &entries, is_visible, NULL);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	if (count < 0)
		return error_set(err, ESP_EIO, "cannot write into %.100s: it is no folder", folder);
	return count == 0 ? ESP_OK : error_set(err, ESP_EINVAL, "the folder %.100s is not empty; name a new one", folder);
}

/* trace NULL: the model. */
static enum esp_status save_file(const struct traces *traces, const struct trace *trace, const char *folder,
                                 const char *name, struct error *err)
{
	char *path = NULL;
	struct outfile out;
	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return error_set(err, ESP_ENOMEM, "no memory for the name of a file");
	enum esp_status status = outfile_open(&out, path, err);
	free(path);
	if (status != ESP_OK)
		return status;
	status = trace ? workload_trace_write(trace, out.file, err) : write_model(traces, out.file);
	if (status == ESP_OK)
		return outfile_commit(&out, err);
	outfile_abandon(&out);
	return error_set(err, status, "cannot write %s in %.100s", name, folder);
}

enum esp_status workload_traces_save(const struct traces *traces, const char *folder, struct error *err)
{
	char name[TRACES_FILE_NAME];
	enum esp_status status = is_free(folder, err);
	for (uint32_t i = 0; i < traces->worker_count && status == ESP_OK; i++)
		status = save_file(traces, &traces->workers[i].trace, folder,
		                   workload_traces_worker_file(&traces->workers[i], name), err);
	for (uint32_t i = 0; i < traces->server_count && status == ESP_OK; i++)
		status = save_file(traces, &traces->servers[i].trace, folder,
		                   workload_traces_server_file(&traces->servers[i], name), err);
	return status == ESP_OK ? save_file(traces, NULL, folder, "model.json", err) : status;
}
