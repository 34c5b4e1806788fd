/*
 * rack.h - where ways to train are compared: this program, a temporary folder, and perhaps a lab with a rack of workers
 * and one more host, the last, whose link has a rate of its own. Main thread; starts this program's own commands.
 */
#ifndef TOOLS_BENCH_RACK_H
#define TOOLS_BENCH_RACK_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/bench/child.h"

#define RACK_PATH 512u
#define RACK_SETUP_SECONDS 120.0 /* that a command which sets up may take */

struct bench_rack {
	char self[RACK_PATH];  /* this program */
	char folder[64];       /* temporary; "": none */
	char lab[24];          /* name; "": none */
	char last_host[32];    /* in the lab */
	char last_address[64]; /* of that host, without a port */
};

/* Without a lab yet. ESP_EIO. */
ESP_CHECKED enum esp_status bench_rack_open(struct bench_rack *rack, struct error *err);
/* Removes lab and folder, also those that are only half made. */
void bench_rack_close(struct bench_rack *rack);

/* Rates in bits a second; rates: of the workers' links; prefix: of the lab's name. Words of commands go to stderr. */
ESP_CHECKED enum esp_status bench_rack_make_lab(struct bench_rack *rack, const char *prefix, uint32_t workers,
                                                uint64_t rate, uint64_t last_rate, struct error *err);

/* espalier WORD..., on the last host if there is a lab. */
void bench_rack_begin(const struct bench_rack *rack, struct child_words *words, bool is_at_last);
/* espalier run -n N, or lab run, of a command that follows. */
void bench_rack_launch(const struct bench_rack *rack, struct child_words *words, const char *workers,
                       const char *variable);
/* A file in the folder. Returns path. */
const char *bench_rack_path(const struct bench_rack *rack, const char *name, char path[RACK_PATH]);
/* A file's lines to stderr: the words of a server that could not be used. */
void bench_rack_show_log(const struct bench_rack *rack, const char *name);

#endif
