#include "node/observe/metrics.h"

#include <inttypes.h>

#include "base/number.h"

#define LEAST_OCTAVE 10u /* bucket edges: from a microsecond ... */
#define MOST_OCTAVE 36u  /* ... to a minute, every fourth power of two */

struct writer {
	const struct metrics *metrics;
	FILE *out;
};

static void write_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
}

static void head(const struct writer *writer, const char *name, const char *type, const char *help)
{
	fprintf(writer->out, "# HELP espalier_%s %s\n# TYPE espalier_%s %s\n", name, help, name, type);
}

/* Writes 'espalier_NAME{job="a",rank="3"', without the closing brace. */
static void begin(const struct writer *writer, const char *name)
{
	fprintf(writer->out, "espalier_%s{job=\"", name);
	write_text(writer->out, writer->metrics->job);
	fprintf(writer->out, "\",rank=\"%u\"", writer->metrics->rank);
}

static void put_number(const struct writer *writer, const char *name, const char *type, const char *help, double value)
{
	char text[NUMBER_DOUBLE_TEXT];
	head(writer, name, type, help);
	begin(writer, name);
	fprintf(writer->out, "} %s\n", number_format_double(value, text));
}

static void put_count(const struct writer *writer, const char *name, const char *help, uint64_t value)
{
	head(writer, name, "counter", help);
	begin(writer, name);
	fprintf(writer->out, "} %" PRIu64 "\n", value);
}

static void begin_cell(const struct writer *writer, const char *name, uint32_t kind, uint32_t class)
{
	begin(writer, name);
	fprintf(writer->out, ",operation=\"%s\",size=\"%s\"", record_kind_name(kind), tally_class_name(class));
}

typedef void cell_fn(const struct writer *writer, const char *name, uint32_t kind, uint32_t class,
                     const struct tally_cell *cell);

static void each_cell(const struct writer *writer, const char *name, const char *type, const char *help, cell_fn *put)
{
	head(writer, name, type, help);
	for (uint32_t kind = 0; kind < RECORD_KINDS; kind++) {
		for (uint32_t class = 0; class < TALLY_CLASSES; class++) {
			const struct tally_cell *cell = &writer->metrics->tally->cells[kind][class];
			if (!tally_is_empty(cell))
				put(writer, name, kind, class, cell);
		}
	}
}

static void put_cell_count(const struct writer *writer, const char *name, uint32_t kind, uint32_t class, uint64_t value)
{
	begin_cell(writer, name, kind, class);
	fprintf(writer->out, "} %" PRIu64 "\n", value);
}

static void put_failed(const struct writer *writer, const char *name, uint32_t kind, uint32_t class,
                       const struct tally_cell *cell)
{
	put_cell_count(writer, name, kind, class, cell->failed);
}

static void put_bytes(const struct writer *writer, const char *name, uint32_t kind, uint32_t class,
                      const struct tally_cell *cell)
{
	put_cell_count(writer, name, kind, class, cell->bytes);
}

static void put_bus_bytes(const struct writer *writer, const char *name, uint32_t kind, uint32_t class,
                          const struct tally_cell *cell)
{
	put_cell_count(writer, name, kind, class, cell->bus_bytes);
}

static void put_waited(const struct writer *writer, const char *name, uint32_t kind, uint32_t class,
                       const struct tally_cell *cell)
{
	char text[NUMBER_DOUBLE_TEXT];
	begin_cell(writer, name, kind, class);
	fprintf(writer->out, "} %s\n", number_format_double((double)cell->waited_ns / 1e9, text));
}

static void put_histogram(const struct writer *writer, const char *name, uint32_t kind, uint32_t class,
                          const struct tally_cell *cell)
{
	char text[NUMBER_DOUBLE_TEXT], full[64];
	snprintf(full, sizeof full, "%s_bucket", name);
	for (uint32_t octave = LEAST_OCTAVE; octave <= MOST_OCTAVE; octave += 2) {
		begin_cell(writer, full, kind, class);
		fprintf(writer->out, ",le=\"%s\"} %" PRIu64 "\n",
		        number_format_double((double)(UINT64_C(1) << octave) / 1e9, text), tally_within(cell, octave));
	}
	begin_cell(writer, full, kind, class);
	fprintf(writer->out, ",le=\"+Inf\"} %" PRIu64 "\n", cell->count);
	snprintf(full, sizeof full, "%s_sum", name);
	begin_cell(writer, full, kind, class);
	fprintf(writer->out, "} %s\n", number_format_double((double)cell->time_ns / 1e9, text));
	snprintf(full, sizeof full, "%s_count", name);
	put_cell_count(writer, full, kind, class, cell->count);
}

static void put_info(const struct writer *writer)
{
	head(writer, "info", "gauge", "Version, host and size of the job; always 1.");
	begin(writer, "info");
	fprintf(writer->out, ",ranks=\"%u\",host=\"", writer->metrics->size);
	write_text(writer->out, writer->metrics->host);
	fputs("\",version=\"", writer->out);
	write_text(writer->out, writer->metrics->version);
	fputs("\"} 1\n", writer->out);
}

enum esp_status metrics_write(const struct metrics *metrics, FILE *out)
{
	struct writer writer = {metrics, out};
	put_info(&writer);
	each_cell(&writer, "call_seconds", "histogram", "Time of calls that ended well.", put_histogram);
	each_cell(&writer, "call_wait_seconds_total", "counter", "Of that time: waiting for other ranks.", put_waited);
	each_cell(&writer, "call_bytes_total", "counter", "Bytes of these calls, as benchmarks count them.", put_bytes);
	each_cell(&writer, "call_bus_bytes_total", "counter", "Bytes that the busiest link had to carry for them at least.",
	          put_bus_bytes);
	each_cell(&writer, "call_failures_total", "counter", "Calls that failed.", put_failed);
	put_number(&writer, "calls_under_way", "gauge", "Calls that have not ended.", metrics->under_way);
	put_number(&writer, "oldest_call_seconds", "gauge", "How long the oldest of them has taken so far.",
	           metrics->oldest_seconds);
	put_count(&writer, "sent_bytes_total", "Bytes of messages to other ranks.", metrics->sent_bytes);
	put_count(&writer, "received_bytes_total", "Bytes of messages from other ranks.", metrics->received_bytes);
	put_count(&writer, "sent_messages_total", "Messages to other ranks.", metrics->sent_messages);
	put_count(&writer, "shared_bytes_total", "Of the bytes sent: read by others where they lay.",
	          metrics->shared_bytes);
	put_count(&writer, "network_bytes_total", "Of the bytes sent: through sockets.", metrics->network_bytes);
	put_count(&writer, "retunes_total", "Times that masters of two-level plans were moved.", metrics->retunes);
	put_count(&writer, "moved_masters_total", "How many of them.", metrics->moved_masters);
	put_number(&writer, "groups", "gauge", "Groups that this rank is in.", metrics->groups);
	put_number(&writer, "groups_failed", "gauge", "Of those: that have failed.", metrics->failed_groups);
	put_number(&writer, "ranks_left", "gauge", "Ranks of the job that have left in good order.", metrics->left);
	put_number(&writer, "ranks_died", "gauge", "Ranks of the job that are gone without that.", metrics->died);
	put_count(&writer, "trace_lost_total", "Events that the trace had no room for.", metrics->trace_lost);
	return ferror(out) ? ESP_EIO : ESP_OK;
}
