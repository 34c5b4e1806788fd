/*
 * trace_merge.h - merges the traces of ranks: one clock, one zero, arrows between ranks.
 */
#ifndef TOOLS_DIAGNOSE_TRACE_MERGE_H
#define TOOLS_DIAGNOSE_TRACE_MERGE_H

#include <stdio.h>

#include "tools/diagnose/align.h"
#include "tools/diagnose/trace_read.h"

struct trace_file {
	char *path;
	char *text; /* mapped */
	size_t size;
	struct trace_origin origin;
	uint32_t host; /* number of the host */
	uint64_t events;
	bool is_cut;
};

/* A meeting as one rank had it, and its file and thread. */
struct trace_visit {
	uint64_t call;
	uint32_t file;
	int64_t tid;
	int64_t begin_ns, end_ns;
};

struct trace_merge {
	struct trace_file *files; /* owned */
	uint32_t file_count;
	size_t file_capacity;
	struct trace_visit *visits;
	size_t visit_count, visit_capacity;
	uint64_t *host_ids;       /* by number */
	uint32_t host_count;
	struct align_host *hosts; /* by number */
	int64_t *guesses_ns;      /* by number: difference of the wall clocks, for hosts that share no call with others */
	int64_t zero_ns;          /* time of the first event */
	uint64_t events, arrows;
};

/* ESP_EIO, ESP_EPARSE, ESP_ENOMEM; ESP_EINVAL: of another job than the earlier ones, or a second one of a rank. */
ESP_CHECKED enum esp_status diagnose_trace_merge_add(struct trace_merge *merge, const char *path, struct error *err);
ESP_CHECKED enum esp_status diagnose_trace_merge_align(struct trace_merge *merge, struct error *err);
ESP_CHECKED enum esp_status diagnose_trace_merge_write(struct trace_merge *merge, FILE *out, struct error *err);
/* Prints on stderr the number of ranks and events, and how far clocks may be off. */
void diagnose_trace_merge_tell(const struct trace_merge *merge);
void diagnose_trace_merge_fini(struct trace_merge *merge);

#endif
