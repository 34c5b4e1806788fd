/*
 * traces.h - a folder of traces: a recorded training, which can be simulated on another network.
 *
 *     worker-0-0.csv         times of worker 0's gradients in iteration 0, since the first one
 *     worker-1-0.csv ...
 *     distribution-0.csv     the order in which server 0 sends its parameters; the time may be an index
 *     model.json             {"forward_s": 0.17, "forward_order": ["conv1/weights", ...]}
 *
 * The names in the two kinds of file may differ: TensorFlow names a parameter and its gradient differently.
 * Without distribution files there is one server, which sends in the reverse order of the gradients. Other
 * files are ignored.
 *
 * docs/traces.md describes the format. Everything here is plain data of one thread; only load and save access
 * files.
 */
#ifndef SIM_WORKLOAD_TRACES_H
#define SIM_WORKLOAD_TRACES_H

#include <stdbool.h>

#include "sim/workload/trace.h"

#define TRACES_FILES_MAX (1u << 16)

struct traces_worker {
	uint32_t rank, iteration;
	struct trace trace;
};

#define TRACES_SERVER_NAME 32 /* with its NUL */

struct traces_server {
	char name[TRACES_SERVER_NAME]; /* as in the file's name: usually a number */
	struct trace trace;
};

/* A parameter and its share of the forward pass. */
struct traces_layer {
	char *name;
	double share; /* of forward_s, with a sum of 1; negative: unknown, then all are equal */
};

struct traces {
	struct traces_worker *workers; /* by iteration and rank; at least one */
	uint32_t worker_count;
	size_t worker_room;
	struct traces_server *servers; /* numbers by value, then other names */
	uint32_t server_count;
	size_t server_room;
	char *name;              /* of the model; "": unknown */
	double forward_s;        /* of an iteration on one worker */
	double first_gradient_s; /* from the end of the forward pass to the first event; 0 unless model.json has it */
	struct traces_layer *layers; /* in the order of the forward pass; none: unknown */
	uint32_t layer_count;
	size_t layer_room;
	int order_line; /* line of model.json with the names of the layers */
};

/*
 * Reads the folder and checks that its files are consistent. Errors tell file, line and reason: ESP_EPARSE,
 * ESP_EIO, ESP_ENOMEM, ESP_ELIMIT. workload_traces_fini() is allowed in any case.
 */
ESP_CHECKED enum esp_status workload_traces_load(struct traces *traces, const char *folder, struct error *err);

/* Writes all files into a new or empty folder. ESP_EINVAL: it is not empty; ESP_EIO. */
ESP_CHECKED enum esp_status workload_traces_save(const struct traces *traces, const char *folder, struct error *err);

void workload_traces_fini(struct traces *traces);

/* ---- the parts of loading, for texts in memory ---- */

/* model.json. */
ESP_CHECKED enum esp_status workload_traces_parse_model(struct traces *traces, const char *file, const char *text,
                                                        size_t size, struct error *err);
/* Parses a file according to its name. ESP_EPARSE; ESP_OK without effect for other names. */
ESP_CHECKED enum esp_status workload_traces_parse_file(struct traces *traces, const char *name, const char *text,
                                                       size_t size, struct error *err);
/* Sorts, and checks the whole: all workers send the same parameters, none twice, the first at 0. */
ESP_CHECKED enum esp_status workload_traces_finish(struct traces *traces, struct error *err);

/* Writes "worker-3-0.csv". Returns text. */
#define TRACES_FILE_NAME 64
const char *workload_traces_worker_file(const struct traces_worker *worker, char text[TRACES_FILE_NAME]);
const char *workload_traces_server_file(const struct traces_server *server, char text[TRACES_FILE_NAME]);

/* Appends an empty one; NULL: no memory, or too many. */
struct traces_worker *workload_traces_add_worker(struct traces *traces, uint32_t rank, uint32_t iteration);
struct traces_server *workload_traces_add_server(struct traces *traces, const char *name);
/* Appends a copy. False: no memory. */
bool workload_traces_add_layer(struct traces *traces, const char *name, double share);

#endif
