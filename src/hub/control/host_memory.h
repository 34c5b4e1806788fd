/*
 * host_memory.h - memory that the workers of a host share, one of which pushes to the hub for all (the *pusher*).
 *
 *     head        its job, its session, names of the members: the pusher writes it before the others map the memory
 *     posts       by member and tensor: how many gradients the member has put into its area, and its optimizer's values
 *     answers     by tensor: 0, or one more than the rounds of the weights that lie here; the pusher's
 *     weights     of the model, as the hub has answered them; the pusher's
 *     gradients   of the model, by member. The pusher's are there only if the hub reads them
 *
 * A member writes its gradient of the next round only after it has taken the weights of the former one, and the pusher
 * or the hub writes weights only after all members have posted: so nothing is written that another process still reads.
 * A hub on the same machine maps the memory, too, adds the gradients by itself and writes the weights. One file
 * in memory, sealed so that it cannot shrink, and reserved as a whole: no access to it fails later. Maps memory; any
 * thread.
 */
#ifndef HUB_CONTROL_HOST_MEMORY_H
#define HUB_CONTROL_HOST_MEMORY_H

#include <stdatomic.h>

#include "base/error.h"
#include "hub/layout.h"
#include "math/optimizer.h"

#define HOST_MEMBERS_MOST 64u

struct host_member {
	uint32_t worker, pid;
};

/* Whose the memory is: that of another job, or of an earlier session, is refused. */
struct host_owner {
	uint64_t job, session;
};

struct host_post {
	_Atomic uint64_t rounds;         /* gradients so far; the other fields are those of the latest */
	uint8_t values[OPTIMIZER_BYTES]; /* of the tensor's parameter group */
};

struct host_memory {
	const struct hub_layout *layout; /* borrowed */
	uint32_t members;
	int fd;
	void *base;
	size_t bytes;
	struct host_member *member;  /* by index; 0: the pusher */
	struct host_post *posts;     /* by member and tensor */
	_Atomic uint64_t *answers;   /* by tensor */
	float *weights;
	float *gradients;            /* of member 0 */
	const float *read_only;      /* the weights, in pages that cannot be written */
};

/* The pusher's: makes the file. ESP_ENOMEM, ESP_ELIMIT, ESP_EUNSUPPORTED. */
ESP_CHECKED enum esp_status host_memory_make(const struct host_owner *owner, const struct hub_layout *layout,
                                             const struct host_member *member, uint32_t members,
                                             struct host_memory *out, struct error *err);
/* Another member's: takes the descriptor, also if this fails. ESP_ECORRUPT: it is no such memory of these workers. */
ESP_CHECKED enum esp_status host_memory_map(const struct host_owner *owner, const struct hub_layout *layout,
                                            const struct host_member *member, uint32_t members, int fd,
                                            struct host_memory *out, struct error *err);
void host_memory_fini(struct host_memory *memory); /* accepts a zeroed struct */

static inline struct host_post *host_memory_post(const struct host_memory *memory, uint32_t member, uint32_t tensor)
{
	return &memory->posts[(size_t)member * memory->layout->tensors + tensor];
}

/* Where a member puts its gradients of a tensor. */
static inline float *host_memory_gradient(const struct host_memory *memory, uint32_t member, uint32_t tensor)
{
	return memory->gradients + member * memory->layout->elements + memory->layout->place[tensor].at;
}

#endif
