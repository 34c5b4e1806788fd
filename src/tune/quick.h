/*
 * quick.h - Quicktune: all masters at once, in proportion to the nodes' rates.
 *
 * The program: choose masters so that the longest of t(i) = bytes(i) / rate(i) is least. Solved as the paper does, by
 * an approximation: first the slots' global masters are dealt to groups in proportion to the bandwidth that their
 * members together have towards other groups, then the local masters of each group to its members in proportion to
 * their own.
 *
 * "In proportion" is the longest-first partition with weights: slot after slot goes to the node that would finish
 * first. The paper counts only chunks that masters move as masters. Chunks that a node moves for others to sum, one
 * each way for each, are just as real, and with a rate of 40 % they are all that a node can take: TUNE_COUNT_ALL starts
 * from there. TUNE_COUNT_MASTERS is the paper's own program.
 */
#ifndef TUNE_QUICK_H
#define TUNE_QUICK_H

#include "plan/masters.h"

enum tune_count {
	TUNE_COUNT_ALL,     /* member 1, local master |G(i)|, global master |G(i)| + |G| - 2 */
	TUNE_COUNT_MASTERS, /* member 0, local master |G(i)|, global master |G(i)| + |G|     */
};

/*
 * Fills the table of masters anew; its slots, groups and members stay. rates: by worker, none is 0; cross: what a
 * worker can carry to other groups, or NULL: as rates. ESP_EINVAL (a rate is 0), ESP_ENOMEM: the table is as before.
 */
ESP_CHECKED enum esp_status tune_quick(struct plan_masters *masters, const uint64_t *rates, const uint64_t *cross,
                                       enum tune_count count);

/* Chunks that a worker moves by that count, when every slot has one. */
uint64_t tune_quick_load(const struct plan_masters *masters, uint32_t worker, enum tune_count count);

#endif
