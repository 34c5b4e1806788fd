/*
 * work.h - a call under way: its parts on the lanes, its end, and what is told about it.
 *
 * A call becomes one or more *parts*, each an executor's call on one lane: one per lane that has
 * chunks of it, and per span of memory where the caller gave many buffers. Small calls
 * of ranks that share a host have no part; they go over the group's small (shm_small.h).
 *
 * Work is counted: the caller has it until work_put(), the library until it has ended.
 */
#ifndef RANK_COMM_WORK_H
#define RANK_COMM_WORK_H

#include "rank/comm/comm_state.h"

/* ---- for callers ---- */

/* Makes work of a checked call; nothing is started. */
ESP_CHECKED enum esp_status work_make(struct comm *group, const struct call *call, const struct work_options *options,
                                      struct work **out, struct failure *failure);
/*
 * The same for a plain blocking call: if one of those before it was alike, of what that has left behind, so that
 * nothing is planned or allocated (work_leave()). Eight ranks on two cores that sum 4 bytes between sockets run a sixth
 * fewer instructions by it.
 */
ESP_CHECKED enum esp_status work_make_plain(struct comm *group, const struct call *call,
                                            const struct work_options *options, struct work **out,
                                            struct failure *failure);
/* Instead of work_put(), if it was made so and has ended well: for the next call. */
void work_leave(struct work *work);
/* So small that it matters whether another thread is woken for it: see wait_hint.h. */
static inline bool work_is_small(const struct work *work)
{
	const struct call *call = &work->call;

	return work->kind == WORK_CALL && !call->keyed && !work->options.gate && call->in_bytes <= WAIT_HINT_BYTES &&
	       call->out_bytes <= WAIT_HINT_BYTES;
}
/* Starts it, in order with the group's other calls. is_blocking: the caller waits for it at once. */
ESP_CHECKED enum esp_status work_start(struct work *work, bool is_blocking, struct failure *failure);
bool work_is_done(void *work);
enum esp_status work_test(struct work *work);
/* ESP_PENDING: until_ns has come first. */
enum esp_status work_wait(struct work *work, uint64_t until_ns);
/* The index of one that has ended; count: none has by then. NULLs are skipped. */
uint32_t work_wait_any(struct work *const *works, uint32_t count, uint64_t until_ns);
/* "call 3, allreduce of 1024 f32, sum", or as p2p_describe(). Returns text. */
const char *work_describe(const struct work *work, char text[WORK_TEXT]);
/* The planner that it runs by, or "". */
const char *work_plan(const struct work *work);
enum esp_status work_descriptor(struct work *work, int *out_fd);
/* The callback of this start will not come. False: it will, or has, or there is none. */
bool work_forgo_callback(struct work *work);
void work_put(struct work *work);
/* Even if it has other users: the context is being closed. */
void work_free(struct work *work);

/* ---- for drivers and small paths ---- */

/*
 * Makes the parts of what is to run by a plan, on a stream of the group (enum comm_stream). plans: NULL: none is kept.
 */
ESP_CHECKED enum esp_status work_plan_parts(struct work *work, struct plan_cache *plans, unsigned stream,
                                            struct failure *failure);
/* Was it planned with other masters than its group has now? Under the group's lock; work that is not under way. */
bool work_is_stale(const struct work *work);
/* Then it is planned again. */
ESP_CHECKED enum esp_status work_plan_anew(struct work *work, struct failure *failure);
/* It is its turn on the lanes. */
void work_launch(struct work *work, enum drive_by help);
/* The same with context->lock held, of work that has parts. */
void work_launch_locked(struct work *work, enum drive_by help);
/* Takes the plan and the parts away again. */
void work_clear_parts(struct work *work);
/* An empty one, with one reference; NULL: no memory. */
struct work *work_new(struct comm *group, const struct call *call, const struct work_options *options);
/*
 * The source of a deadline (options.deadline_ns), for sentences about it: "deadline_seconds is 300", or "0.5 s".
 * Returns text.
 */
#define DEADLINE_TEXT 40u
const char *work_deadline_text(const struct rank *context, int64_t deadline_ns, char text[DEADLINE_TEXT]);
/* With context->lock held: it runs from now on, as far as its caller knows. */
void work_set_out(struct work *work);
/* A part has ended on its lane. */
void work_part_done(struct work_part *part, enum esp_status status);
/* All of its parts have, and nothing is left to be done for it: it ends, once the cause of a failure is known. */
void work_parts_ended(struct work *work, enum esp_status status);
/* Everything has ended. */
void work_end(struct work *work, enum esp_status status);

#endif
