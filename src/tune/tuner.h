/*
 * tuner.h - Autotune: given what a window measured, what the masters shall be from the next one on.
 *
 *     sample ─▶ watch ─┬─ a change that lasts ─▶ Quicktune: all masters anew, by fresh rates
 *                      └─ else ─▶ Finetune, as long as there is something to move
 *
 * Pure and deterministic: every member of a group has one, gives it the same samples, and so has the same masters. If
 * Quicktune has made steps longer, the masters before it come back.
 */
#ifndef TUNE_TUNER_H
#define TUNE_TUNER_H

#include "tune/fine.h"
#include "tune/quick.h"
#include "tune/watch.h"

enum tune_act {
	TUNE_NOTHING,
	TUNE_QUICK,    /* all masters were dealt anew          */
	TUNE_FINE,     /* some were moved                      */
	TUNE_TAKEN_BACK, /* Quicktune did no good: as before it */
};

struct tune_report {
	enum tune_act act;
	enum tune_verdict verdict;
	uint64_t cost, reference; /* ns of 2^20 bytes, now and before the change; 0: unknown */
	uint32_t slowest;         /* the node with the lowest rate                           */
	uint64_t slowest_rate, median_rate; /* bytes per second                              */
	uint32_t moved;           /* masters that sit elsewhere now                          */
	struct tune_move move;    /* of Finetune                                             */
};

struct tuner {
	struct plan_masters masters; /* to be used from now on  */
	struct plan_masters before;  /* Quicktune's last change */
	struct tune_watch watch;
	struct tune_fine fine;
	uint64_t steps;
	uint64_t cost_before;  /* Quicktune's last change; 0: nothing to compare with  */
	uint64_t scale;        /* ns in which the busiest node moved 2^20 bytes when all was well; 0: not known yet */
	bool is_explained;     /* the last window took as long as its busiest node needs when all is well */
	uint32_t distrust;     /* windows for which nothing is made of that: it was wrong */
	bool *is_light;        /* by node: it had less to do than the busiest             */
	bool has_rates;
	bool broken; /* memory ran out: nothing is changed any more, and the code that installs masters must say so */
	uint64_t *rates;       /* measured, bytes per second, smoothed over windows without doubt */
	uint64_t *cross;       /* the same, to other groups                            */
	uint64_t *doubted, *doubted_cross; /* the same, of the windows in doubt: what they make of it if it lasts */
	uint64_t *dealt;       /* weights that masters were dealt by                   */
	uint64_t *weights, *cross_weights, *sorted; /* scratch                         */
	struct tune_scratch scratch;
};

/* The even table of masters. group_of is copied. ESP_EINVAL, ESP_ENOMEM; fini is due only if it succeeds. */
ESP_CHECKED enum esp_status tuner_init(struct tuner *tuner, const uint32_t *group_of, uint32_t workers,
                                       struct error *err);
/* Accepts a zeroed struct. */
void tuner_fini(struct tuner *tuner);

/* True: the masters have changed. A sample without time or bytes changes nothing. */
bool tuner_step(struct tuner *tuner, const struct tune_sample *sample, struct tune_report *out);

/*
 * A plan without masters, a ring, has every node move the same, as fast as the slowest. By the rates that masters were
 * dealt by: would a plan with these masters be faster by more than a tenth? False while all nodes are alike.
 */
bool tuner_needs_masters(const struct tuner *tuner);

/*
 * The measured rate of a node, bytes per second; 0: not known yet. For a topology that says what the network is like
 * now (choose.h): a host's rate.
 */
uint64_t tuner_rate(const struct tuner *tuner, uint32_t node);

/* "quicktune: steps take 1.9 times as long; rank 3 carries 40 % of the others: 12 masters moved". Returns text. */
#define TUNE_TEXT 200u
const char *tuner_explain(const struct tune_report *report, char text[TUNE_TEXT]);

#endif
