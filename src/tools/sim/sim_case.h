/*
 * sim_case.h - the question that espalier sim run, sweep and advise answer: a model or traces, a cluster, and how it
 * is trained. Main thread; reads files, prints errors on stderr.
 */
#ifndef TOOLS_SIM_SIM_CASE_H
#define TOOLS_SIM_SIM_CASE_H

#include "report/json.h"
#include "report/options.h"
#include "sim/trial.h"
#include "sim/workload/load_replay.h"

struct sim_case {
	const char *command; /* for messages */
	const char *model, *traces, *topology, *accelerator, *delay;
	uint64_t workers, servers, iterations, seed, batch, value_bytes, split, racks;
	double gbps, server_gbps, compute, oversubscribe, jitter;
	uint64_t delay_ns; /* --delay, parsed */
	int set;
	bool set_given, servers_given, even_split, block, no_barrier, fluid, cut_through;
	/* options that contradict --topology */
	bool gbps_given, server_gbps_given, racks_given, oversubscribe_given, delay_given;
};

#define SIM_CASE_INIT(name) \
	{.command = (name), .workers = 32, .servers = 1, .gbps = 25, .compute = 1, .oversubscribe = 1, .racks = 1, \
	 .delay = "0"}

/* The rows of a table of options that all these commands have; c is a struct sim_case *. */
#define SIM_CASE_OPTIONS(c) \
	{"model", 'm', OPTION_STRING, &(c)->model, "MODEL", "a name of espalier sim models, or a file"}, \
	{"traces", 0, OPTION_STRING, &(c)->traces, "FOLDER", \
	 "what was recorded of a training, instead of a model (docs/traces.md)"}, \
	{"workers", 'w', OPTION_U64, &(c)->workers, "N", "workers (default 32)", .min = 1, .max = LOAD_WORKERS_MAX}, \
	{"gbps", 'g', OPTION_DOUBLE, &(c)->gbps, "G", "Gbit/s of a host's link, each way (default 25)", \
	 .given = &(c)->gbps_given}, \
	{"server-gbps", 0, OPTION_DOUBLE, &(c)->server_gbps, "G", \
	 "Gbit/s of a server's or hub's link (default: as --gbps)", \
	 .given = &(c)->server_gbps_given}, \
	{"servers", 'p', OPTION_U64, &(c)->servers, "N", "parameter servers (default 1, or as many as the traces have)", \
	 .min = 1, \
	 .max = LOAD_WORKERS_MAX, .given = &(c)->servers_given}, \
	{"topology", 0, OPTION_STRING, &(c)->topology, "FILE", \
	 "hosts, switches and links; instead of --gbps, --server-gbps and the next three"}, \
	{"racks", 0, OPTION_U64, &(c)->racks, "N", "racks, with the workers spread over them in order (default 1)", \
	 .min = 1, .max = LOAD_WORKERS_MAX, \
	 .given = &(c)->racks_given}, \
	{"oversubscribe", 0, OPTION_DOUBLE, &(c)->oversubscribe, "N", "a rack's uplink has hosts * rate / N (default 1)", \
	 .given = &(c)->oversubscribe_given}, \
	{"delay", 0, OPTION_STRING, &(c)->delay, "TIME", \
	 "of a host's link, one way, such as 5us; a number alone counts microseconds (default 0)", \
	 .given = &(c)->delay_given}, \
	{"iterations", 'i', OPTION_U64, &(c)->iterations, "N", "iterations (default 1, without the barrier 3)", \
	 .min = 1, .max = 10000}, \
	{"seed", 's', OPTION_U64, &(c)->seed, "S", \
	 "draws the order of sending and the workers' speeds (default 0: the model's)"}, \
	{"jitter", 0, OPTION_DOUBLE, &(c)->jitter, "X", \
	 "a worker's gradients come up to 1 + X times as late, as the seed draws (default 0)"}, \
	{"compute", 'c', OPTION_DOUBLE, &(c)->compute, "X", "all computing is X times as fast (default 1)"}, \
	{"set", 0, OPTION_CHOICE, &(c)->set, "SET", \
	 "which of the model's values: public, factors, calibrated (default: the last it has)", \
	 .choices = model_set_names, .given = &(c)->set_given}, \
	{"accelerator", 'a', OPTION_STRING, &(c)->accelerator, "NAME|RATE", "compute the times with it instead"}, \
	{"batch", 'b', OPTION_U64, &(c)->batch, "N", "samples of a worker and an iteration", .min = 1, .max = 1u << 30}, \
	{"value-bytes", 0, OPTION_U64, &(c)->value_bytes, "N", "bytes of a value on the wire", .min = 1, .max = 64}, \
	{"even-split", 0, OPTION_FLAG, &(c)->even_split, NULL, \
	 "every server has a part of every parameter, not whole ones in turn"}, \
	{"block", 0, OPTION_FLAG, &(c)->block, NULL, \
	 "servers send all parameters to one worker after the other, not one parameter to all"}, \
	{"no-barrier", 0, OPTION_FLAG, &(c)->no_barrier, NULL, "a sum goes out as soon as it is complete"}, \
	{"split", 0, OPTION_U64, &(c)->split, "N", "messages of a parameter (default: as the mechanism has it)", \
	 .min = 1, .max = 4096}, \
	{"fluid", 0, OPTION_FLAG, &(c)->fluid, NULL, \
	 "links are shared fairly; otherwise one message at a time, in order"}, \
	{"cut-through", 0, OPTION_FLAG, &(c)->cut_through, NULL, \
	 "switches add while data streams in; otherwise when a parameter is there"}

/* Returns -1 if the options fit each other; otherwise the exit status, after printing the reason. */
int sim_tool_case_check(struct sim_case *c);

/* The mechanisms to compare, and the ones that were left out. */
#define SIM_MECHANISMS_MAX 32u
struct sim_choice {
	const char *names; /* as given: "all", or names with commas between them */
	const struct mechanism *list[SIM_MECHANISMS_MAX];
	size_t count;
	char left_out[256]; /* the first mechanism that the cluster cannot run, and why; "": it can run all */
};
#define SIM_CHOICE_INIT {.names = "all"}
#define SIM_CHOICE_OPTION(choice, help_text) \
	{"mechanism", 0, OPTION_STRING, &(choice)->names, "A,B,...|all", help_text " (default all)"}

/*
 * options_parse(), sim_tool_case_check(), and the mechanisms' names. Returns -1 to go on; otherwise the exit status,
 * after printing the reason.
 */
int sim_tool_case_parse(const struct options_usage *usage, int *argc, char **argv, struct sim_case *c,
                        struct sim_choice *choice) __attribute__((warn_unused_result));
/* Finds the mechanism of that name; returns as above. */
int sim_tool_case_mechanism(const struct sim_case *c, const char *name, const struct mechanism **out)
	__attribute__((warn_unused_result));

/* The input of a case, once it is read; it does not depend on the number of workers. */
struct sim_source {
	struct replay replay; /* replay.model is also the model if there are no traces */
	bool is_replay;
	struct topology *topology; /* NULL: made from options for each number of workers */
};

/*
 * Reads model or traces, and the topology. Traces set the number of servers in c unless it was given. Call
 * sim_tool_source_close() even after an error.
 */
ESP_CHECKED enum esp_status sim_tool_source_open(struct sim_source *source, struct sim_case *c, struct error *err);
void sim_tool_source_close(struct sim_source *source);

/* Makes the load of c->workers workers, which may have changed since sim_tool_source_open(). Errors of
 * workload_load_init(). */
ESP_CHECKED enum esp_status sim_tool_source_load(const struct sim_source *source, const struct sim_case *c,
                                                 struct load *load, struct error *err);

struct trial sim_tool_case_trial(const struct sim_case *c, const struct sim_source *source, const struct load *load,
                                 const struct mechanism *mechanism);
/* sim_trial_run(). If the cluster cannot run the mechanism, returns ESP_OK with the time NAN, and notes it in choice.
 */
ESP_CHECKED enum esp_status sim_tool_case_try(const struct trial *trial, struct sim_choice *choice,
                                              struct train_result *out, struct error *err);
/* complain_end(), and a note about mechanisms that were left out. */
int sim_tool_case_end(const struct sim_case *c, const struct sim_choice *choice, enum esp_status status,
                      const struct error *err);

/*
 * "vgg-16 (calibrated values), 32 workers, 25 Gbps": the case, with all options that are not at their defaults.
 * Returns text. varied: an option that takes several values, such as "workers", and so is left out; NULL: none.
 */
#define SIM_CASE_TEXT 800
const char *sim_tool_case_text(const struct sim_case *c, const struct sim_source *source, const char *varied,
                               char text[SIM_CASE_TEXT]);

/*
 * Caveats of the result: times that were drawn because they were not recorded, a seed without effect. "": none.
 * Returns text.
 */
const char *sim_tool_case_notes(const struct sim_case *c, const struct sim_source *source, char text[SIM_CASE_TEXT]);

/* Puts case and notes into the open object, without the varied option. */
void sim_tool_case_put(struct json *json, const struct sim_case *c, const struct sim_source *source,
                       const char *varied);

#endif
