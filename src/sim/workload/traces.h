/*
 * traces.h - a folder of traces: what was seen of a training, and can be simulated on another network.
 *
 *     worker-0-0.csv         when worker 0 had each gradient in iteration 0, since the first one
 *     worker-1-0.csv ...
 *     distribution-0.csv     the order in which server 0 sends its parameters; the time may be an index
 *     model.json             {"forward_s": 0.17, "forward_order": ["conv1/weights", ...]}
 *
 * The names of the two kinds of file need not match: TensorFlow calls a parameter and its gradient differently. Without
 * distribution files there is one server, which sends in the reverse of the order of the gradients. Other files are left alone.
 *
 * docs/traces.md describes the format. Everything here is plain data of one thread; only load and save touch files.
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

#define TRACES_SERVER_NAME 32 /* with the NUL */

struct traces_server {
	char name[TRACES_SERVER_NAME]; /* as the file has it: usually a number */
	struct trace trace;
};

/* A parameter and its share of the forward pass. */
struct traces_layer {
	char *name;
	double share; /* of forward_s, all of them sum up to 1; negative: nobody knows, they are equal */
};

struct traces {
	struct traces_worker *workers; /* by iteration and rank; at least one */
	uint32_t worker_count;
	struct traces_server *servers; /* numbers by value, then other names */
	uint32_t server_count;
	char *name;              /* of the model; "" if nobody said */
	double forward_s;        /* of an iteration on one worker */
	double first_gradient_s; /* from the end of the forward pass to the first event; 0 unless model.json says so */
	struct traces_layer *layers; /* in the order of the forward pass; none: nobody knows it */
	uint32_t layer_count;
	int order_line; /* of model.json, where the layers are named */
};

/*
 * Reads the folder and checks that its files fit together. What is wrong is said with file, line and reason: ESP_EPARSE, ESP_EIO,
 * ESP_ENOMEM, ESP_ELIMIT. Either way traces_fini() is allowed.
 */
ESP_CHECKED enum esp_status traces_load(struct traces *traces, const char *folder, struct error *err);

/* Writes all files into a folder that does not exist yet, or is empty. ESP_EINVAL: it is not; ESP_EIO. */
ESP_CHECKED enum esp_status traces_save(const struct traces *traces, const char *folder, struct error *err);

void traces_fini(struct traces *traces);

/* ---- the parts of loading, for whoever has the texts already ---- */

/* model.json. */
ESP_CHECKED enum esp_status traces_parse_model(struct traces *traces, const char *file, const char *text, size_t size, struct error *err);
/* A file by its name: takes the place of what it is, or ESP_EPARSE; ESP_OK and nothing happens for other names. */
ESP_CHECKED enum esp_status traces_parse_file(struct traces *traces, const char *name, const char *text, size_t size, struct error *err);
/* Sorts, and checks the whole: every worker sends the same, nothing twice, the first at 0. */
ESP_CHECKED enum esp_status traces_finish(struct traces *traces, struct error *err);

/* "worker-3-0.csv"; returns text. */
#define TRACES_FILE_NAME 64
const char *traces_worker_file(const struct traces_worker *worker, char text[TRACES_FILE_NAME]);
const char *traces_server_file(const struct traces_server *server, char text[TRACES_FILE_NAME]);

/* Appends an empty one; NULL: no memory, or too many. */
struct traces_worker *traces_add_worker(struct traces *traces, uint32_t rank, uint32_t iteration);
struct traces_server *traces_add_server(struct traces *traces, const char *name);
/* Appends a copy. False: no memory. */
bool traces_add_layer(struct traces *traces, const char *name, double share);

#endif
