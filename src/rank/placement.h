/*
 * placement.h - where the hosts of a job stand in its network, once a topology says so.
 *
 * The setting `topology` names a file. Rank 0 reads it, and its content (or why it could not be read) reaches all ranks
 * right behind the barrier that joining ends with; each then looks for its hosts in it. So all have the same topology,
 * or all refuse it with the same message. With `probe` the network is measured by the code that opens the context
 * (src/api), and the result is used if all ranks have found the same. Plans of the world, and of groups made from then
 * on, are chosen by it (plan_cache.h).
 *
 * When a rank dies at a bad moment some ranks may have a topology and others none; the world has failed then. So the
 * ranks that are left of a group compare their topologies, and the new group has one if they all have the same; groups
 * that are made out of a group have the topology of that group.
 */
#ifndef RANK_PLACEMENT_H
#define RANK_PLACEMENT_H

#include "network/topo/topology.h"
#include "rank/failure.h"

struct rank;
struct comm;

struct placement {
	struct topology *topology; /* NULL: nothing is known */
	uint32_t *place;           /* by rank: the vertex of its host */
	uint64_t digest;           /* of the topology as text; 0: nothing is known */
	bool wants_probe;          /* rank 0 has topology=probe: the same on all ranks */
};

struct placement_text {
	const char *text; /* a topology (network/topo/topology.h) */
	size_t length;
	const char *source;       /* for messages: a file's name, or what made the text */
	/* by host of the roster: what the text calls it. NULL: hosts are found by their own names and addresses */
	const char *const *names;
};

/*
 * From now on plans are chosen by this topology. On all ranks of the job, with the same text, while no call is under
 * way. ESP_EPARSE: it is no topology, with the line; ESP_EINVAL: a host of the job is not in it. Ranks come to the
 * same.
 */
ESP_CHECKED enum esp_status rank_use_topology(struct rank *context, const struct placement_text *text,
                                              struct failure *failure);

/* Does the job want its network measured? Then its opener does that, and calls rank_use_topology(). */
bool rank_wants_probe(const struct rank *context);
/*
 * text: the topology that this rank has found, or none (NULL). All ranks tell each other, in a call that is not
 * counted, and if all have the same text plans are chosen by it, as with rank_use_topology(). *out_used: they are. If
 * it is not ESP_OK the world has failed.
 */
ESP_CHECKED enum esp_status rank_agree_on_topology(struct rank *context, const struct placement_text *text,
                                                   bool *out_used, struct failure *failure);
/* How long a sum of 256 KiB took by the topology and without, on the slowest rank, the shorter of a few. */
struct placement_trial {
	bool was_made, is_kept; /* is_kept: plans are chosen by it further on */
	uint64_t with_ns, without_ns;
};
/*
 * After rank_agree_on_topology() has said that it is used, by all ranks: if any of them doubts it a few calls are timed
 * with it and without, and the faster stays, the same on all ranks. The calls are not counted. If it is not ESP_OK the
 * world has failed.
 */
ESP_CHECKED enum esp_status rank_try_topology(struct rank *context, bool is_doubted, struct placement_trial *out,
                                              struct failure *failure);
/*
 * A communicator of all ranks, for measuring: when a rank dies meanwhile this group is shrunk, and the world is left to
 * the caller, which may want to do that itself. A call of all ranks that is not counted, before the caller's first one.
 * As comm_split().
 */
ESP_CHECKED enum esp_status rank_make_internal_comm(struct rank *context, struct comm **out, struct failure *failure);

/*
 * For joining. Returns rank 0's value: 0: nothing; rank_placement_tell() is then not called. Others say 0. *out_text:
 * the name of the file and, behind a NUL, its content or why it cannot be read; to be freed.
 */
uint64_t rank_placement_ask(struct rank *context, char **out_text);
/* all: the most that a rank has said. Hands out the text and uses it. */
ESP_CHECKED enum esp_status rank_placement_tell(struct rank *context, uint64_t all, char *text,
                                                struct failure *failure);

/*
 * The message of a member about the topology; the least of all their digests and of all their inverses says whether
 * they are equal.
 */
struct placement_word {
	uint64_t digest, inverse;
};

struct placement_word rank_placement_word(const struct placement *placement);
/* least: of all members. Plans of the group follow the topology if all have it, or none. False: no memory. */
ESP_CHECKED bool rank_placement_settle(struct comm *group, struct placement_word least);

void rank_placement_fini(struct placement *placement);

#endif
