#include "tools/diagnose/trace_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "report/complain.h"
#include "report/trace_event.h"

#define ARROW_LEAST 10000 /* ns: a shorter wait is not worth one */

void diagnose_trace_merge_fini(struct trace_merge *merge)
{
	for (uint32_t i = 0; i < merge->file_count; i++) {
		if (merge->files[i].text)
			munmap(merge->files[i].text, merge->files[i].size);
		free(merge->files[i].path);
	}
	free(merge->files);
	free(merge->visits);
	free(merge->host_ids);
	free(merge->hosts);
	free(merge->guesses_ns);
	*merge = (struct trace_merge){0};
}

static enum esp_status fail_memory(struct error *err)
{
	return error_set(err, ESP_ENOMEM, "no memory for the traces");
}

/* ---- reading ---- */

static enum esp_status map_file(struct trace_file *file, const char *path, struct error *err)
{
	struct stat about;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
		const char *why = fd < 0 ? strerror(errno) : "it is empty, or no file";
		if (fd >= 0)
			close(fd);
		return error_set(err, ESP_EIO, "%.150s: %s", path, why);
	}
	void *text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	int cause = errno;
	close(fd);
	if (text == MAP_FAILED)
		return error_set(err, ESP_EIO, "%.150s: %s", path, strerror(cause));
	file->text = text;
	file->size = (size_t)about.st_size;
	file->path = strdup(path);
	return file->path ? ESP_OK : fail_memory(err);
}

static struct trace_file *new_file(struct trace_merge *merge)
{
	if (!vec_reserve(&merge->files, &merge->file_capacity, (size_t)merge->file_count + 1, sizeof(*merge->files)))
		return NULL;
	merge->files[merge->file_count] = (struct trace_file){0};
	return &merge->files[merge->file_count++];
}

static bool add_visit(struct trace_merge *merge, struct trace_visit visit)
{
	if (!vec_reserve(&merge->visits, &merge->visit_capacity, merge->visit_count + 1, sizeof(*merge->visits)))
		return false;
	merge->visits[merge->visit_count++] = visit;
	return true;
}

static enum esp_status check_origin(const struct trace_merge *merge, const struct trace_file *file, struct error *err)
{
	const struct trace_file *first = &merge->files[0];
	for (uint32_t i = 0; i + 1 < merge->file_count; i++)
		if (merge->files[i].origin.rank == file->origin.rank)
			return error_set(err, ESP_EINVAL, "%.90s and %.90s are both of rank %u", merge->files[i].path, file->path,
			                 file->origin.rank);
	if (first->origin.instance != file->origin.instance || first->origin.size != file->origin.size)
		return error_set(err, ESP_EINVAL, "%.90s and %.90s are of different runs", first->path, file->path);
	return ESP_OK;
}

static enum esp_status read_events(struct trace_merge *merge, struct trace_file *file, struct error *err)
{
	struct trace_reader reader;
	json_t *event = NULL;
	uint32_t origins = 0;
	enum esp_status status = diagnose_trace_reader_open(&reader, file->text, file->size, err);
	while (status == ESP_OK && (status = diagnose_trace_reader_next(&reader, &event, err)) == ESP_OK && event) {
		struct trace_visit visit = {.file = (uint32_t)(file - merge->files)};
		origins += diagnose_trace_origin_read(event, &file->origin);
		bool is_meeting =
			diagnose_trace_meeting(event, &visit.call) && diagnose_trace_times(event, &visit.begin_ns, &visit.end_ns);
		visit.tid = json_integer_value(json_object_get(event, "tid"));
		json_decref(event);
		if (is_meeting && !add_visit(merge, visit))
			return fail_memory(err);
	}
	file->events = reader.events;
	file->is_cut = reader.is_cut;
	if (status == ESP_OK && origins != 1)
		return error_set(err, ESP_EPARSE,
		                 "it is no trace of a rank: there %s espalier_clock in it, as in one that was merged before",
		                 origins == 0 ? "is no" : "is more than one");
	return status;
}

enum esp_status diagnose_trace_merge_add(struct trace_merge *merge, const char *path, struct error *err)
{
	struct trace_file *file = new_file(merge);
	struct error why;
	if (!file)
		return fail_memory(err);
	enum esp_status status = map_file(file, path, err);
	if (status != ESP_OK)
		return status;
	status = read_events(merge, file, &why);
	if (status != ESP_OK)
		return error_set(err, status, "%.90s: %.150s", path, why.text);
	return check_origin(merge, file, err);
}

/* ---- clocks ---- */

static int compare_files(const void *a, const void *b)
{
	const struct trace_file *x = a, *y = b;
	return x->origin.rank < y->origin.rank ? -1 : x->origin.rank > y->origin.rank;
}

static void number_hosts(struct trace_merge *merge)
{
	for (uint32_t i = 0; i < merge->file_count; i++) {
		struct trace_file *file = &merge->files[i];
		while (file->host < merge->host_count && merge->host_ids[file->host] != file->origin.host_id)
			file->host++;
		if (file->host < merge->host_count)
			continue;
		const struct trace_origin *first = &merge->files[0].origin;
		merge->guesses_ns[file->host] = file->origin.real_ns - file->origin.now_ns - (first->real_ns - first->now_ns);
		merge->host_ids[merge->host_count++] = file->origin.host_id;
	}
}

/* The nanoseconds to add to a moment of this file. */
static int64_t difference(const struct trace_merge *merge, const struct trace_file *file, int64_t at_ns)
{
	const struct align_host *host = &merge->hosts[file->host];
	return host->is_known ? diagnose_align_at(host, at_ns) : merge->guesses_ns[file->host];
}

static int compare_visits(const void *a, const void *b)
{
	const struct trace_visit *x = a, *y = b;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* Files are sorted by rank, so their numbers change: visits are told. */
static enum esp_status sort_files(struct trace_merge *merge, struct error *err)
{
	uint32_t *ranks = calloc(merge->file_count, sizeof(*ranks)), *places = calloc(merge->file_count, sizeof(*places));
	if (!ranks || !places) {
		free(ranks);
		free(places);
		return fail_memory(err);
	}
	for (uint32_t i = 0; i < merge->file_count; i++)
		ranks[i] = merge->files[i].origin.rank;
	qsort(merge->files, merge->file_count, sizeof(*merge->files), compare_files);
	for (uint32_t i = 0; i < merge->file_count; i++)
		while (merge->files[places[i]].origin.rank != ranks[i])
			places[i]++;
	for (size_t i = 0; i < merge->visit_count; i++)
		merge->visits[i].file = places[merge->visits[i].file];
	free(ranks);
	free(places);
	return ESP_OK;
}

enum esp_status diagnose_trace_merge_align(struct trace_merge *merge, struct error *err)
{
	struct align_meeting *meetings = calloc(merge->visit_count + 1, sizeof(*meetings));
	enum esp_status status = sort_files(merge, err);
	merge->host_ids = calloc(merge->file_count, sizeof(*merge->host_ids));
	merge->guesses_ns = calloc(merge->file_count, sizeof(*merge->guesses_ns));
	merge->hosts = calloc(merge->file_count, sizeof(*merge->hosts));
	if (!meetings || !merge->host_ids || !merge->guesses_ns || !merge->hosts) {
		free(meetings);
		return fail_memory(err);
	}
	if (status == ESP_OK) {
		number_hosts(merge);
		for (size_t i = 0; i < merge->visit_count; i++) {
			const struct trace_visit *visit = &merge->visits[i];
			meetings[i] =
				(struct align_meeting){visit->call, merge->files[visit->file].host, visit->begin_ns, visit->end_ns};
		}
		status = diagnose_align_hosts(meetings, merge->visit_count, merge->host_count, merge->hosts);
	}
	for (size_t i = 0; status == ESP_OK && i < merge->visit_count; i++) {
		struct trace_visit *visit = &merge->visits[i];
		int64_t shift = difference(merge, &merge->files[visit->file], visit->begin_ns);
		visit->begin_ns += shift;
		visit->end_ns += shift;
	}
	if (merge->visit_count > 0)
		qsort(merge->visits, merge->visit_count, sizeof(*merge->visits), compare_visits);
	free(meetings);
	return status;
}

/* ---- writing ---- */

static enum esp_status find_zero(struct trace_merge *merge, struct error *err)
{
	merge->zero_ns = INT64_MAX;
	for (uint32_t i = 0; i < merge->file_count; i++) {
		const struct trace_file *file = &merge->files[i];
		struct trace_reader reader;
		json_t *event = NULL;
		enum esp_status status = diagnose_trace_reader_open(&reader, file->text, file->size, err);
		while (status == ESP_OK && (status = diagnose_trace_reader_next(&reader, &event, err)) == ESP_OK && event) {
			int64_t begin, end;
			if (diagnose_trace_times(event, &begin, &end) && begin + difference(merge, file, begin) < merge->zero_ns)
				merge->zero_ns = begin + difference(merge, file, begin);
			json_decref(event);
		}
		if (status != ESP_OK)
			return status;
	}
	if (merge->zero_ns == INT64_MAX)
		merge->zero_ns = 0;
	return ESP_OK;
}

static void put_value(struct json *json, json_t *value);

static void put_keys(struct json *json, json_t *object)
{
	const char *key;
	json_t *value;
	json_object_foreach(object, key, value) {
		json_key(json, key);
		put_value(json, value);
	}
}

static void put_list(struct json *json, const json_t *list)
{
	json_array_begin(json);
	for (size_t i = 0; i < json_array_size(list); i++)
		put_value(json, json_array_get(list, i));
	json_array_end(json);
}

static void put_value(struct json *json, json_t *value)
{
	if (json_is_object(value)) {
		json_object_begin(json);
		put_keys(json, value);
		json_object_end(json);
	} else if (json_is_array(value)) {
		put_list(json, value);
	} else if (json_is_string(value)) {
		json_string_n(json, json_string_value(value), json_string_length(value));
	} else if (json_is_integer(value)) {
		json_i64(json, json_integer_value(value));
	} else if (json_is_real(value)) {
		json_double(json, json_real_value(value));
	} else if (json_is_boolean(value)) {
		json_bool(json, json_is_true(value));
	} else {
		json_none(json);
	}
}

/* The same event at its time of the common clock. */
static void write_event(struct trace_merge *merge, const struct trace_file *file, json_t *event,
                        struct trace_events *events)
{
	int64_t begin, end;
	bool has_time = diagnose_trace_times(event, &begin, &end), has_length = json_object_get(event, "dur") != NULL;
	(void)json_object_del(event, "ts");
	(void)json_object_del(event, "dur");
	merge->events++;
	json_object_begin(&events->json);
	put_keys(&events->json, event);
	if (has_time) {
		int64_t at = begin + difference(merge, file, begin) - merge->zero_ns;
		trace_put_time(events, "ts", at > 0 ? at : 0);
		if (has_length)
			trace_put_time(events, "dur", end - begin);
	}
	json_object_end(&events->json);
}

static enum esp_status write_file(struct trace_merge *merge, const struct trace_file *file, struct trace_events *events,
                                  struct error *err)
{
	struct trace_reader reader;
	json_t *event = NULL;
	enum esp_status status = diagnose_trace_reader_open(&reader, file->text, file->size, err);
	while (status == ESP_OK && (status = diagnose_trace_reader_next(&reader, &event, err)) == ESP_OK && event) {
		/* its clock does not tell these times, and the result is not to be taken for a rank's trace */
		struct trace_origin own;
		if (!diagnose_trace_origin_read(event, &own))
			write_event(merge, file, event, events);
		json_decref(event);
	}
	return status;
}

/* Where a visit stands, at a moment of it. */
static struct trace_spot spot_of(const struct trace_merge *merge, const struct trace_visit *visit, int64_t at_ns)
{
	return (struct trace_spot){merge->files[visit->file].origin.rank, (uint32_t)visit->tid, at_ns - merge->zero_ns};
}

/* From the one that came last to each that had waited for it. */
static void write_arrows(struct trace_merge *merge, struct trace_events *events, const struct trace_visit *visits,
                         size_t count)
{
	const struct trace_visit *last = visits;
	for (size_t i = 1; i < count; i++)
		last = visits[i].begin_ns > last->begin_ns ? &visits[i] : last;
	for (size_t i = 0; i < count; i++) {
		const struct trace_visit *visit = &visits[i];
		if (last->begin_ns - visit->begin_ns < ARROW_LEAST || visit->end_ns < last->begin_ns)
			continue;
		int64_t until = visit->end_ns > last->begin_ns ? last->begin_ns + 1 : visit->end_ns;
		trace_flow(events, ++merge->arrows, "flow", "waited for", spot_of(merge, last, last->begin_ns),
		           spot_of(merge, visit, until));
	}
}

static void write_all_arrows(struct trace_merge *merge, struct trace_events *events)
{
	for (size_t from = 0, to; from < merge->visit_count; from = to) {
		for (to = from + 1; to < merge->visit_count && merge->visits[to].call == merge->visits[from].call; to++)
			;
		write_arrows(merge, events, &merge->visits[from], to - from);
	}
}

#define HOST_WORDS 96u

/* "node7 (rank 12)", by the first of its ranks, as hosts may have equal names. */
static const char *host_words(const struct trace_merge *merge, uint32_t host, char text[HOST_WORDS])
{
	const struct trace_origin *first = NULL;
	for (uint32_t i = 0; i < merge->file_count && !first; i++) { /* in the order of their ranks */
		if (merge->files[i].host == host)
			first = &merge->files[i].origin;
	}
	snprintf(text, HOST_WORDS, "%.63s (rank %u)", first ? first->host : "?", first ? first->rank : 0);
	return text;
}

static void print_clocks(const struct trace_merge *merge, FILE *out)
{
	char words[HOST_WORDS];
	for (uint32_t i = 0; i < merge->host_count; i++) {
		const struct align_host *host = &merge->hosts[i];
		if (i == 0)
			fprintf(out, "%s is the measure", host_words(merge, i, words));
		else if (host->is_known)
			fprintf(out, "; %s is off by at most %.1f us", host_words(merge, i, words), (double)host->error_ns / 1e3);
		else
			fprintf(out, "; %s by the clock on the wall, as it met no other host", host_words(merge, i, words));
	}
}

/* How far clocks may be off, beside the events: one text. */
static enum esp_status put_clocks(const struct trace_merge *merge, struct json *json, struct error *err)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return fail_memory(err);
	print_clocks(merge, out);
	bool is_whole = fclose(out) == 0;
	if (is_whole) {
		json_put_string(json, "displayTimeUnit", "ms");
		json_key(json, "otherData");
		json_object_begin(json);
		json_put_string(json, "clocks", text);
		json_object_end(json);
	}
	free(text);
	return is_whole ? ESP_OK : fail_memory(err);
}

enum esp_status diagnose_trace_merge_write(struct trace_merge *merge, FILE *out, struct error *err)
{
	enum esp_status status = find_zero(merge, err);
	struct trace_events events;
	trace_events_begin_object(&events, out, TRACE_TICK_NS);
	for (uint32_t i = 0; i < merge->file_count && status == ESP_OK; i++)
		status = write_file(merge, &merge->files[i], &events, err);
	if (status != ESP_OK)
		return status;
	write_all_arrows(merge, &events);
	json_array_end(&events.json);
	status = put_clocks(merge, &events.json, err);
	json_object_end(&events.json);
	if (json_fini(&events.json) != ESP_OK)
		return error_set(err, ESP_EIO, "cannot write the trace: %s", strerror(errno));
	return status;
}

/* "1, 4, 5, ...": the files are in the order of their ranks, and none of them twice. */
static void tell_missing(const struct trace_merge *merge)
{
	char list[80];
	size_t used = 0;
	uint32_t size = merge->files[0].origin.size, missing = size - merge->file_count, file = 0;
	for (uint32_t rank = 0; rank < size && used < sizeof(list) - 16; rank++) {
		if (file < merge->file_count && merge->files[file].origin.rank == rank)
			file++;
		else
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", used ? ", " : "", rank);
	}
	if (missing > 0)
		complain_note(
			"trace: %u of %u ranks %s not in it: %s%s; ranks that were killed leave a file that ends in .part", missing,
			size, missing == 1 ? "is" : "are", list, used >= sizeof(list) - 16 ? ", ..." : "");
}

void diagnose_trace_merge_tell(const struct trace_merge *merge)
{
	uint32_t cut = 0;
	char words[HOST_WORDS];
	for (uint32_t i = 0; i < merge->file_count; i++)
		cut += merge->files[i].is_cut;
	complain_note("trace: %" PRIu64 " events of %u rank%s on %u host%s, %" PRIu64 " arrow%s", merge->events,
	              merge->file_count, plural(merge->file_count), merge->host_count, plural(merge->host_count),
	              merge->arrows, plural(merge->arrows));
	tell_missing(merge);
	if (cut > 0)
		complain_note("trace: %u of %u files end%s in the middle: the rank was killed", cut, merge->file_count,
		              cut == 1 ? "s" : "");
	for (uint32_t i = 1; i < merge->host_count; i++) {
		if (merge->hosts[i].is_known)
			complain_note("trace: the clock of %s is known to %.1f us", host_words(merge, i, words),
			              (double)merge->hosts[i].error_ns / 1e3);
		else
			complain_note("trace: the clock of %s is only known from the wall, as its ranks met no others",
			              host_words(merge, i, words));
	}
}
