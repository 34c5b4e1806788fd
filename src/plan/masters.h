/*
 * masters.h - the nodes that sum in a plan of two levels: a small table of slots that all nodes have alike.
 *
 *     slot            0  1  2  3  4  5 ...      chunk c uses slot c modulo their number
 *     global group    0  1  0  1  0  1          where the sums of the groups are added up
 *     local master    0  1  2  3  0  1          in group 0: adds up what its members have
 *                     4  5  6  7  4  5          in group 1
 *
 * The global master of a slot is the local master of its global group. A table may be changed between calls, if all
 * nodes change it alike: which node adds does not change the order of addition, so the bits of results stay the same.
 * Pure; the table belongs to its maker.
 */
#ifndef PLAN_MASTERS_H
#define PLAN_MASTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct plan_masters {
	uint32_t slots, groups, workers;
	uint32_t *global_group; /* by slot                             */
	uint32_t *local_master; /* by group and slot: group * slots + slot */
	uint32_t *group_of;     /* by worker                           */
	uint32_t *group_size;   /* by group                            */
};

#define PLAN_SLOTS_MAX (1u << 16)

/*
 * How many slots suit these groups: every member of every group can have equally many, and moving one changes what a
 * node moves by a few in a hundred. Groups are numbered from 0 without gaps.
 */
uint32_t plan_masters_slots(const uint32_t *group_of, uint32_t workers);

/*
 * An even table: groups have global slots in proportion to their size, members equally many, and the slots of each
 * follow one another as in a round, so that the first few slots alone are even too. slots 0: plan_masters_slots().
 * group_of is copied. ESP_EINVAL (groups with gaps, too many slots), ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status plan_masters_init(struct plan_masters *masters, const uint32_t *group_of, uint32_t workers,
                                              uint32_t slots, struct error *err);
/* to: zeroed, or a table to be replaced; from and to may not be the same. On failure `to` is as before. */
ESP_CHECKED enum esp_status plan_masters_copy(struct plan_masters *to, const struct plan_masters *from);
/* Accepts a zeroed struct. */
void plan_masters_fini(struct plan_masters *masters);

/* Does every slot name a group that there is and, in each group, one of its members? */
bool plan_masters_fit(const struct plan_masters *masters, const uint32_t *group_of, uint32_t workers, uint32_t groups);
/* Is it for these groups? */
bool plan_masters_are_of(const struct plan_masters *masters, const uint32_t *group_of, uint32_t workers);
bool plan_masters_same(const struct plan_masters *a, const struct plan_masters *b);

static inline uint32_t plan_masters_local(const struct plan_masters *masters, uint32_t group, uint32_t slot)
{
	return masters->local_master[(uint64_t)group * masters->slots + slot];
}

static inline uint32_t plan_masters_global(const struct plan_masters *masters, uint32_t slot)
{
	return plan_masters_local(masters, masters->global_group[slot], slot);
}

/*
 * Chunks that a worker sends (and receives as many of), when every slot has one chunk: 1 of each that others sum in its
 * group, size of the group of each that it is local master of, size of the group and groups less 2 as global master.
 */
uint64_t plan_masters_load(const struct plan_masters *masters, uint32_t worker);

#endif
