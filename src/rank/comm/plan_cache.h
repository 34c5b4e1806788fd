/*
 * plan_cache.h - which plan a call runs by, made once and kept.
 *
 * The choice follows from facts that all ranks of a group know alike: the collective, its size, which ranks share a
 * host and, where there is a topology, what each plan would cost on it. A group keeps its latest plans, so a call that
 * is made again finds its plan ready. Used under the group's lock, but for comm_plan_cache_put().
 */
#ifndef RANK_COMM_PLAN_CACHE_H
#define RANK_COMM_PLAN_CACHE_H

#include <stdatomic.h>

#include "plan/plan.h"
#include "rank/comm/call.h"
#include "tune/choose.h"

/* Where the members of a group are. */
struct layout {
	uint32_t members;
	uint32_t hosts;          /* that are told apart; 1: all share memory   */
	const uint32_t *host_of; /* by member, from 0 without gaps             */
	bool one_machine;        /* they are on one host, told apart or not    */
	bool has_cores;          /* and every rank of the job there has a core */
	/* else, between sockets: members by the core whose turn is theirs (core_affinity.h); NULL: no matter */
	const uint32_t *core_order;
	const struct topology *topology; /* of the network; NULL: not known    */
	const uint32_t *place;   /* by member: the vertex of its host          */
	uint64_t chunk_bytes;    /* the usual size of chunks                   */
	uint64_t slot_bytes;     /* the largest chunks through memory          */
	bool chunk_is_set;       /* by a setting: so large in every plan       */
	uint64_t buffer_bytes;   /* most that may be under way, on each lane   */
	uint32_t credits, lanes;
	const struct plan_masters *masters; /* of plans of two levels with these groups; NULL: spread evenly */
	uint64_t masters_version;     /* counts their changes */
	bool by_masters;              /* a node is slow: large allreduces run by a plan that can spare it (retune.h) */
	uint64_t choice_version;      /* counts changes of that */
	const uint64_t *lane_weights; /* by lane, in the order in which calls take them; NULL: all alike */
};

/* The largest chunks of any plan, where no setting says otherwise, and the usual ones. */
#define PLAN_CACHE_CHUNK_MOST (256u << 10)
#define PLAN_CACHE_CHUNK (64u << 10)
#define CHUNK_LEAST (4u << 10)

struct planned {
	struct plan *plan;
	struct plan_rows *rows;  /* of a small plan; NULL: computed by every call */
	uint8_t *lane_of;        /* by chunk; NULL: one lane                   */
	uint32_t lanes;          /* that have a chunk: the first so many       */
	uint32_t window;         /* chunks in flight on each; 0: the setting   */
	uint32_t window_lent;    /* the same of memory from esp_alloc()        */
	atomic_uint references;  /* its users, and the group that keeps it */
	/* The key that it was made for. */
	enum plan_collective collective;
	const struct planner *planner;
	const struct tune_way *way; /* as it was chosen by the topology; NULL: otherwise */
	uint32_t root, align;
	uint64_t bytes, chunk_bytes;
	bool in_place;
	uint64_t masters_version;
	uint64_t used; /* when, in calls */
	bool is_told;  /* the log has a line about it */
};

#define PLAN_CACHE_KEPT 32u

struct plan_cache {
	struct planned *kept[PLAN_CACHE_KEPT];
	struct tune_menu *menus[PLAN_COLLECTIVE_COUNT]; /* by collective, made when it is first called; NULL: not yet */
	uint64_t calls;
};

/* bytes: of one block; the call's own block size unless it was cut into spans. */
ESP_CHECKED enum esp_status comm_plan_cache_get(struct plan_cache *plans, const struct layout *layout,
                                                const struct call *call, uint64_t bytes, bool in_place,
                                                struct planned **out, struct failure *failure);
/* Has it other masters than such a plan would have now? */
bool comm_plan_cache_is_stale(const struct layout *layout, const struct planned *planned);
/*
 * The groups that a plan with masters would have, where the topology says so; NULL: there is none. Valid as long as the
 * plans.
 */
const uint32_t *comm_plan_cache_groups(struct plan_cache *plans, const struct layout *layout, const struct call *call,
                                       uint64_t bytes);
/* Allreduces above this may be given to a plan with masters. */
#define PLAN_CACHE_BY_MASTERS (64u << 10)
void comm_plan_cache_put(struct planned *planned);
void comm_plan_cache_fini(struct plan_cache *plans);

/* "ring, in the order of the topology", "ring, in the order of the cores" */
#define PLANNED_TEXT 96u
const char *comm_planned_describe(const struct planned *planned, char text[PLANNED_TEXT]);

/*
 * "ring, in the order of the topology: 0.52 s; two-level, 2 groups: 0.61 s": the fastest of the ways that the topology
 * was asked for, to explain the choice. "": it had no say, or masters had.
 */
#define PLAN_CACHE_COMPARED_TEXT 320u
const char *comm_plan_cache_compare(struct plan_cache *plans, const struct layout *layout, const struct call *call,
                                    uint64_t bytes, char text[PLAN_CACHE_COMPARED_TEXT]);

/* The usual chunk, or less, so that what so many neighbours may send ahead finds room in the buffers. */
uint64_t comm_plan_cache_fair_chunk(const struct layout *layout, uint64_t neighbours);

#endif
