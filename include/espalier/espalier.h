/*
 * espalier/espalier.h - communication for distributed training.
 *
 * The whole public interface, for C (C99 and later) and C++. Link with -lespalier, or ask pkg-config for espalier. In
 * short:
 *
 *     struct esp_context *job;
 *     esp_init(NULL, &job);                                    // rank and size from the environment
 *     float *grad;
 *     esp_alloc(job, n * sizeof(float), (void **)&grad);       // or malloc(): one copy more
 *     esp_allreduce(esp_world(job), grad, grad, n, ESP_F32, ESP_SUM);
 *     esp_fini(job);
 *
 * Words. A *context* is this process's membership in a job. Its ranks form the *world*; a *group* is some of them in
 * some order. A *call* is one collective, or one send or receive; *work* is a call that runs in the background.
 *
 * Rules that hold everywhere:
 *
 * - Functions that can fail return an esp_status: ESP_OK (0) is success, ESP_PENDING (1) "not yet", a negative value a
 *   failure. esp_status_text() puts it into words; esp_last_error() names the rank at fault, and what was waited for.
 *   Outputs are written only on success.
 * - Any function may be called from any thread. Collective calls on one group must be made in the same order on all its
 *   ranks, or carry a key (struct esp_call); where threads share a group, they settle that order between them. A thread
 *   that waits in a call keeps no other from making calls, on the same group neither. Calls on different groups are
 *   independent.
 * - No call hangs: each ends within its deadline, and at once when a rank that it needs dies. After a failure the group
 *   has failed on every rank, its unfinished calls end with an error that names the culprit, and no buffer is touched
 *   any more. Other groups go on. (A receive can fail alone, a send to oneself, and the making of a group: see there.)
 * - Calls that do not fit together (another count, type, operation, root or order) fail with ESP_EMISMATCH and a
 *   sentence that names both calls; they never give a wrong sum. A rank whose part of a call needs no other rank (a
 *   root that only sends, a rank that only contributes, or whose count is 0) may have returned ESP_OK by then; the
 *   group has failed all the same, as the next call says, or esp_fini().
 * - Every struct begins with its size, which the caller sets (the *_INIT macros do): a struct may grow, and fields that
 *   an older caller does not know are taken as zero. Fields that a newer caller sets and this library does not know are
 *   refused (ESP_EUNSUPPORTED), unless they are zero.
 * - No signal handler is installed; threads of the library block all signals. After fork() the child gets ESP_EFORKED
 *   from every function of an inherited context.
 * - Strings that are returned are constant and are never freed.
 */
#ifndef ESPALIER_ESPALIER_H
#define ESPALIER_ESPALIER_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

/* The version of this header; esp_version() is the version of the library that runs. */
#define ESP_VERSION_MAJOR 0
#define ESP_VERSION_MINOR 1
#define ESP_VERSION_PATCH 0
#define ESP_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define ESP_API __attribute__((visibility("default")))
#else
#define ESP_API
#endif

/* A struct that says how large it is; all else is zero. */
#ifdef __cplusplus
#define ESP_INIT(type) [] { type made = {}; made.struct_size = sizeof(made); return made; }()
#else
#define ESP_INIT(type) {.struct_size = sizeof(type)}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": the version of the library that is loaded. */
ESP_API const char *esp_version(void);

/* The name of a status as it stands in the header, such as "ESP_EINVAL"; "ESP_UNKNOWN" for any other number. */
ESP_API const char *esp_status_name(enum esp_status status);

/* The meaning of a status, for people: one sentence without a full stop. Never NULL. */
ESP_API const char *esp_status_text(enum esp_status status);

/* Bytes of one element of a type (ESP_BYTES: 1); 0 for a number that is not a type. */
ESP_API size_t esp_type_bytes(enum esp_type type);

/* "f32", "bf16", "u8", "bytes" ...; NULL for a number that is not a type. */
ESP_API const char *esp_type_name(enum esp_type type);

/* "sum", "avg", "min" ...; NULL for a number that is not an operation. */
ESP_API const char *esp_op_name(enum esp_op op);

/*
 * Combines two buffers of this process: dst[i] = a[i] op b[i] for count elements, with
 * exactly the arithmetic that collectives use. No communication takes place.
 *
 * dst may be the same buffer as a or as b, but may not overlap them in another way. No
 * buffer has to be aligned. With count 0 the pointers are not looked at. ESP_AVG and
 * ESP_SCALED add, since what they do beyond that is done once, to a finished sum.
 *
 * ESP_EINVAL: type or op is not one, a buffer is NULL, dst overlaps a or b in part, or the
 * buffers would be larger than memory can be. ESP_EUNSUPPORTED: op is not defined for
 * type (bitwise and logical operations on floating point; anything on ESP_BYTES). dst is
 * untouched after a failure.
 */
ESP_API enum esp_status esp_reduce_local(void *dst, const void *a, const void *b, uint64_t count, enum esp_type type,
                                         enum esp_op op);

/* ---- errors ---- */

/* How a call failed. Texts end with NUL and are cut off if they are longer. */
struct esp_error {
	size_t struct_size;      /* sizeof(struct esp_error), set by the caller                         */
	enum esp_status status;
	/*
	 * The rank at fault, as a rank of the world; -1: no rank in particular. Where calls do not fit together
	 * (ESP_EMISMATCH) the library cannot know which is right: it is a rank whose call is not as this rank's own. So if
	 * one rank is odd, all others name it.
	 */
	int32_t rank;
	char host[64];           /* the name of its host; "" if rank is -1                              */
	char operation[32];      /* "allreduce", "send", "receive"; "" outside of a call                */
	uint64_t sequence;       /* number of the call in its group, counted from 1; 0: none, a message */
	int32_t waits_for;       /* the rank of the world that the call waited for; -1: none            */
	int64_t chunk;           /* the chunk of the plan that was waited for; -1: none                 */
	int32_t step;            /* its step, as `espalier plan show` counts; -1: none                  */
	char text[512];          /* all of this in one readable sentence                                */
};
#define ESP_ERROR_INIT ESP_INIT(struct esp_error)

/* The last failure of a function that was called by this thread. ESP_OK: *error is filled (status ESP_OK: none yet). */
ESP_API enum esp_status esp_last_error(struct esp_error *error);

/* ---- contexts ---- */

struct esp_context;
struct esp_group;
struct esp_work;

/*
 * Gives `bytes` bytes and gets those of all ranks, one behind the other by rank: what MPI_Allgather
 * does. Returns ESP_OK or what went wrong.
 */
typedef enum esp_status esp_allgather_fn(void *context, const void *mine, void *all, size_t bytes);

/*
 * One line for the log, without a newline. level: 0 error, 1 warning, 2 information, 3 debugging. From any thread, one
 * at a time.
 */
typedef void esp_log_fn(void *context, int level, const char *line);

/*
 * Called again and again by a thread that waits in a call of this context and has nothing to do, for a host that has
 * work of its own to go on with: a runtime in which messages move only while a thread is in it. Must neither block nor
 * call this library.
 */
typedef void esp_idle_fn(void *context);

/* How to join. Everything may be zero. */
struct esp_options {
	size_t struct_size;
	uint32_t rank;           /* counts only if size is not 0                                         */
	uint32_t size;           /* ranks in the job; 0: rank and size from the environment (below)      */
	const char *leader;      /* "host:port" on which rank 0 is to be found; NULL: from the environment */
	const char *job;         /* a name; ranks of different jobs never meet. NULL: from the environment */
	esp_allgather_fn *allgather; /* join through this instead of the leader; needs rank and size     */
	void *allgather_context;
	const char *const *settings; /* "chunk_bytes=256K" ..., ends with NULL; stronger than the environment. NULL: none */
	esp_log_fn *log;         /* NULL: stderr                                                         */
	void *log_context;
	esp_idle_fn *idle;       /* NULL: a waiting thread sleeps */
	void *idle_context;
};
#define ESP_OPTIONS_INIT ESP_INIT(struct esp_options)

/*
 * Joins a job: every rank calls this once per context, and it returns when all have. options may be NULL. Rank, size
 * and leader come from the options, else from ESP_RANK, ESP_SIZE and ESP_LEADER (`espalier run` sets them), else from
 * the variables of torchrun, mpirun (Open MPI, MPICH), srun or an indexed job of Kubernetes. ESP_STORE (file:/FOLDER,
 * redis://HOST) finds a leader whose address is not known. A process that finds none of these is a job of one rank. A
 * key (ESP_KEY_FILE, ESP_KEY) is needed as soon as the job leaves this machine. `espalier conf` lists the settings.
 *
 * ESP_EINVAL, ESP_ETIMEOUT (a rank is missing: the text names it), ESP_EMISMATCH (a rank came twice or has another
 * size, version, settings, key), ESP_EPEER, ESP_ELINK, ESP_ENOMEM, ESP_ELIMIT.
 */
ESP_API enum esp_status esp_init(const struct esp_options *options, struct esp_context **out);

/*
 * Leaves the job and frees everything that belongs to the context: groups, work, memory. Waits until the other ranks
 * have called it too (they may still need data that this rank has sent), but for no longer than the setting
 * linger_seconds. Work that has not ended is dropped, with a warning in the log. No other thread may use the context
 * any more. NULL is fine.
 *
 * ESP_OK, also if the job had failed before; ESP_EFORKED. ESP_EMISMATCH: the context is freed as ever, but the last
 * call of the world was another one on another rank that left with this one, and no rank had noticed.
 */
ESP_API enum esp_status esp_fini(struct esp_context *context);

/* The group of all ranks. It belongs to the context. */
ESP_API struct esp_group *esp_world(struct esp_context *context);

/* A setting's value as text, by its name in `espalier conf`; NULL: there is none of that name. Until esp_fini(). */
ESP_API const char *esp_setting(struct esp_context *context, const char *name);

/* Counts of the traffic of a context so far. */
struct esp_stats {
	size_t struct_size;
	uint64_t calls;            /* collectives, sends and receives that have ended here        */
	uint64_t sent_bytes;       /* data of this rank's messages, to other ranks                */
	uint64_t received_bytes;
	uint64_t sent_messages;
	uint64_t shared_bytes;     /* of sent_bytes: read by others where they lay (esp_alloc)    */
	uint64_t network_bytes;    /* of sent_bytes: through sockets                              */
	uint64_t small_calls;      /* of calls: in one round through shared memory                */
	uint64_t retunes;          /* times that masters of two-level plans were moved (autotune) */
	uint64_t moved_masters;    /* how many, together                                          */
};
#define ESP_STATS_INIT ESP_INIT(struct esp_stats)
ESP_API enum esp_status esp_get_stats(struct esp_context *context, struct esp_stats *stats);

/*
 * The calls of one kind and one class of size that have ended here. Bandwidth is bytes / time_ns, in GB/s (10^9); that
 * of the busiest link at least, as nccl-tests counts it, bus_bytes / time_ns.
 */
struct esp_call_stats {
	size_t struct_size;
	char operation[32];        /* "allreduce" ... "send", "receive"; "group": groups were made or freed      */
	uint64_t least_bytes, most_bytes; /* of the class: calls of so many bytes, of the whole vector or all blocks */
	uint64_t calls;            /* that ended well; all that follows is about these                           */
	uint64_t failed;
	uint64_t bytes, bus_bytes;
	uint64_t time_ns;          /* of all of them together                                                    */
	uint64_t waited_ns;        /* of that: nothing could be done but wait for other ranks                    */
	uint64_t min_ns, p50_ns, p99_ns, max_ns; /* of one call; p50 and p99 are at most a quarter too long      */
};
#define ESP_CALL_STATS_INIT ESP_INIT(struct esp_call_stats)
/*
 * Fills up to `capacity` of an array whose elements all have their struct_size set, and *out_count with how many there
 * are, which may be more. stats may be NULL if capacity is 0. Classes without any call are left out.
 */
ESP_API enum esp_status esp_get_call_stats(struct esp_context *context, struct esp_call_stats *stats, uint32_t capacity,
                                           uint32_t *out_count);

/* ---- memory ---- */

/*
 * Memory that the other ranks of this host can read where it lies, and into which they store the results of calls that
 * are under way (nothing else, and nothing after a call has failed): collectives on it move no byte that they need not.
 * Page-aligned, zeroed, reserved. Any other memory works as well and is copied once more. ESP_EINVAL, ESP_ENOMEM.
 */
ESP_API enum esp_status esp_alloc(struct esp_context *context, size_t bytes, void **out);

/*
 * No call may still use it. NULL is fine. Without a context: memory that was kept (esp_keep()). ESP_EINVAL: not from
 * esp_alloc() of this context, or, without one, nothing that this process has kept.
 */
ESP_API enum esp_status esp_free(struct esp_context *context, void *memory);

/*
 * For memory from esp_alloc() that may be used for longer than its context, as the objects of many languages are:
 * esp_fini() leaves it where it is, as memory of this process alone; esp_free(NULL, memory) frees it, before and after,
 * from any thread. NULL is fine. ESP_EINVAL: not from esp_alloc() of this context.
 */
ESP_API enum esp_status esp_keep(struct esp_context *context, void *memory);

/*
 * Makes memory that is there already, from malloc() or new, as good for calls as that of esp_alloc(): its pages go into
 * shared memory, and stay where they are, with their content. Worth it for buffers that many calls are made on. While
 * this runs no other thread may write to the memory, no call that is under way neither; from then on, until
 * esp_unshare(), it must be neither freed nor given back otherwise (realloc(), munmap(), madvise(MADV_DONTNEED)). Nor
 * may a device have its pages (cudaHostRegister(), ibv_reg_mr()) from before. A call may be made on any part of it.
 *
 * fork() and esp_fini() end the sharing: the memory is private again at one instant, whichever threads write to it
 * then, so that a child has the content of that instant, and calls on it copy as ever; after fork() esp_unshare() is
 * still called. (A call that is using it then goes on; until it has ended the child sees the bytes that it, and others,
 * write there.) Memory that no other rank of the host could read is left as it is, and so is that of esp_alloc(). 0
 * bytes are fine.
 *
 * ESP_EINVAL: some of it is shared already. ESP_EUNSUPPORTED: not private memory that can be written. ESP_ENOMEM. Then
 * nothing has changed.
 */
ESP_API enum esp_status esp_share(struct esp_context *context, void *memory, size_t bytes);
/*
 * The memory at `memory`, which esp_share() was given, is private again, and may be freed; no other thread may write to
 * it meanwhile. NULL is fine, and so is memory from esp_alloc(). ESP_EINVAL: was not shared. ESP_ESTATE: a call still
 * uses it. ESP_ENOMEM: it must not be freed yet.
 */
ESP_API enum esp_status esp_unshare(struct esp_context *context, void *memory);

/* ---- groups ---- */

/* Our place in the group, and the number of its ranks. */
ESP_API uint32_t esp_rank(const struct esp_group *group);
ESP_API uint32_t esp_size(const struct esp_group *group);
/* The rank of the world that has this place; UINT32_MAX: none. */
ESP_API uint32_t esp_world_rank(const struct esp_group *group, uint32_t rank);
/* The name of the host of this place; NULL: no such place. Until esp_fini(). */
ESP_API const char *esp_host(const struct esp_group *group, uint32_t rank);

/*
 * A new group of some ranks of `parent` (given as places in parent), in this order. Called by all ranks of the parent,
 * all with the same list, in order with its other calls; *out is NULL on ranks that are not in the list. ESP_EINVAL:
 * refused here, and nothing has happened: the others wait until this rank calls again. All ranks of the parent get
 * three failures alike, and the parent goes on: ESP_EMISMATCH: the lists differ; ESP_ENOMEM, ESP_ELIMIT: a rank has no
 * memory, or too many groups. All others as of any call on the parent, which has failed then.
 */
ESP_API enum esp_status esp_group_create(struct esp_group *parent, const uint32_t *ranks, uint32_t count,
                                         struct esp_group **out);

/*
 * Splits the parent: ranks that give the same color form a group, ordered by key, then by their place in the parent. A
 * negative color: in no group, *out is NULL. Called by all ranks of the parent, and fails as esp_group_create().
 */
ESP_API enum esp_status esp_group_split(struct esp_group *parent, int64_t color, int64_t key, struct esp_group **out);

/*
 * Frees a group: called by all its ranks, after all calls on it have ended; returns when all have come, or at once if
 * the group has failed. NULL is fine. ESP_ESTATE: a call is unfinished, or the group is the world.
 */
ESP_API enum esp_status esp_group_free(struct esp_group *group);

/* Why the group has failed; ESP_OK in *error: it has not. */
ESP_API enum esp_status esp_group_error(struct esp_group *group, struct esp_error *error);

/*
 * Ends every unfinished call of the group, and all later ones, on all its ranks with ESP_EABORTED and this
 * reason (one line; control characters become spaces; NULL: none). The calls may end a moment after this returns.
 */
ESP_API enum esp_status esp_abort(struct esp_group *group, const char *reason);

/*
 * How many calls (collectives without a key) were made on the group here; the last one has this number, as in
 * esp_error. Calls that the library makes count too: one for esp_grow() if no joiner waits, some for a group that is
 * made.
 */
ESP_API uint64_t esp_group_calls(struct esp_group *group);

/* ---- going on without some ---- */

/*
 * How a group was shrunk. Zero fields have their defaults. Calls have the numbers that esp_group_calls() gives right
 * after they were made.
 */
struct esp_shrink {
	size_t struct_size;
	int64_t deadline_ns;           /* in: most time that it may take; 0: the setting deadline_seconds              */
	uint32_t *lost;                /* in: gets the places of ranks that do not go on, in order; NULL: not wanted */
	uint32_t lost_room;            /* in: how many fit there                                                       */
	uint32_t lost_count;           /* out: how many there are                                                      */
	uint64_t completed_everywhere; /* out: all calls up to this number have ended well on all ranks that go on */
	uint64_t completed_somewhere;  /* out: no call beyond this number has ended well on any rank that was heard */
};
#define ESP_SHRINK_INIT ESP_INIT(struct esp_shrink)

/*
 * The ranks that are left of a failed group agree on the survivors, and go on in a new group, in their old order.
 * Called by all of them; a rank that does not call it is waited for, and one that frees the group instead is not in the
 * new one, but stays in the job. A group that has not failed fails: ESP_EABORTED on the others. The old group is freed
 * as ever, afterwards. All ranks that get a new group get the same, with the same report. A rank that dies meanwhile is
 * left out, or fails the new group; then shrink that one. May be called again if the time was too short. A launcher may
 * end all ranks when one has died: `espalier run` does, unless --lose says how many may.
 *
 * ESP_EEXCLUDED: the others go on without this rank, of which they had heard nothing for too long (the setting
 * liveness_ms). ESP_EQUORUM: the setting quorum asks for more than half of the group, and fewer are left. ESP_ETIMEOUT:
 * the error names a rank that has not called. ESP_ESTATE: it was shrunk before, or another thread is in a call.
 * ESP_ELIMIT: this rank has as many groups as there can be. shrink may be NULL.
 */
ESP_API enum esp_status esp_group_shrink(struct esp_group *group, struct esp_shrink *shrink, struct esp_group **out);

/* ---- letting others in ---- */

/*
 * Every rank has a join address. A process whose environment has ESP_DOOR=host:port (or several, with commas), and
 * ESP_JOB and the key as the job has them, and says nothing of a rank, waits in esp_init() until the ranks call
 * esp_grow(), for the setting join_seconds at the most. Writes the join address of this rank, which stays the same when
 * the job grows; ESP_ELIMIT: text is too short, 64 bytes are enough for a numerical address.
 */
ESP_API enum esp_status esp_door(struct esp_context *context, char *text, size_t size);

/* The number of joiners that wait at the join address of this rank. */
ESP_API uint32_t esp_newcomers(struct esp_context *context);

/*
 * Lets in joiners that wait at a join address of the group's ranks, `most` of them at the most (0: all). Called by all
 * ranks of the group, in order with its other calls. All join anew, in the job's next epoch: *out is a new context with
 * the settings of this one, whose world has the group's ranks, in their order, and behind them the joiners, whose
 * esp_init() returns now too. This context stays as it is until esp_fini(), which also takes its memory (esp_alloc()).
 * Nothing tells joiners that they are new, so the first calls on a world are the same for all: broadcasts of how far
 * rank 0 is, which was a member before, say. *out is NULL, and ESP_OK returned, if no joiner waits.
 *
 * All members that are left get the same outcome, whichever of them die meanwhile: ESP_EPEER, and this group is to be
 * shrunk; or ESP_OK, and if the new world has failed that one is. deadline_ns: most time that the call may take, and a
 * fifth of liveness_ms more; 0: the setting join_seconds, once all ranks of the group have come, which may be as late
 * as to any call. Errors as of esp_init(), and of any call.
 */
ESP_API enum esp_status esp_grow(struct esp_group *group, uint32_t most, int64_t deadline_ns, struct esp_context **out);

/* ---- collectives ---- */

/*
 * All of these block until the result is there, in order with the group's other calls. Counts are elements of `type`.
 * "In place" is in == out for allreduce and reduce; where blocks are smaller than the whole (reduce-scatter, allgather,
 * gather, scatter) the small buffer is then the block of this rank within the large one. Any other overlap of in and
 * out is ESP_EINVAL, and an alltoall cannot be in place at all. Buffers need no alignment, and with a count of 0 they
 * are not looked at. Results are the same bits on all ranks, and from run to run with the same ranks, hosts, cores that
 * ranks may use, and settings.
 */

/* out = the combination over all ranks, on all ranks. */
ESP_API enum esp_status esp_allreduce(struct esp_group *group, const void *in, void *out, uint64_t count,
                                      enum esp_type type, enum esp_op op);
/* Rank i gets the i-th block of `count` elements of the combination; in holds size * count. */
ESP_API enum esp_status esp_reduce_scatter(struct esp_group *group, const void *in, void *out, uint64_t count,
                                           enum esp_type type, enum esp_op op);
/* out gets the `count` elements of every rank, by rank. */
ESP_API enum esp_status esp_allgather(struct esp_group *group, const void *in, void *out, uint64_t count,
                                      enum esp_type type);
/* data of root, on all ranks. */
ESP_API enum esp_status esp_broadcast(struct esp_group *group, void *data, uint64_t count, enum esp_type type,
                                      uint32_t root);
/* As esp_allreduce(), on root only; the others' out is not looked at. */
ESP_API enum esp_status esp_reduce(struct esp_group *group, const void *in, void *out, uint64_t count,
                                   enum esp_type type, enum esp_op op, uint32_t root);
/* As esp_allgather(), on root only. */
ESP_API enum esp_status esp_gather(struct esp_group *group, const void *in, void *out, uint64_t count,
                                   enum esp_type type, uint32_t root);
/* Rank i gets the i-th block of root's in; the others' in is not looked at. */
ESP_API enum esp_status esp_scatter(struct esp_group *group, const void *in, void *out, uint64_t count,
                                    enum esp_type type, uint32_t root);
/* Block i of in goes to rank i, where it is block number (our rank) of out. in and out may not overlap. */
ESP_API enum esp_status esp_alltoall(struct esp_group *group, const void *in, void *out, uint64_t count,
                                     enum esp_type type);
/* Returns when all ranks have called it. */
ESP_API enum esp_status esp_barrier(struct esp_group *group);

/* ---- any call: in the background, persistent, of many buffers ---- */

enum esp_collective {
	ESP_ALLREDUCE = 0,
	ESP_REDUCE_SCATTER = 1,
	ESP_ALLGATHER = 2,
	ESP_BROADCAST = 3,
	ESP_REDUCE = 4,
	ESP_GATHER = 5,
	ESP_SCATTER = 6,
	ESP_ALLTOALL = 7,
	ESP_BARRIER = 8
};
/* "allreduce", "reduce-scatter" ...; NULL for a number that is not a collective. */
ESP_API const char *esp_collective_name(enum esp_collective collective);

/* Where memory is. This version moves host memory; anything else gives ESP_EUNSUPPORTED. */
enum esp_memory {
	ESP_HOST = 0,
	ESP_CUDA = 1,
	ESP_ROCM = 2
};

/* A span of memory. All elements of an array have the same struct_size. */
struct esp_buffer {
	size_t struct_size;
	void *data;
	uint64_t bytes;
	enum esp_memory memory;
	int32_t device;           /* which of that kind; 0 for host memory                            */
	const void *registration; /* of memory that was made known to a device; NULL in this version  */
};
#define ESP_BUFFER_INIT ESP_INIT(struct esp_buffer)

/*
 * Called once when work has ended, by the context's thread "esp-lane-0", after the buffers are the caller's again,
 * perhaps after esp_wait() has returned. It may start calls and free this one; it must neither block nor wait.
 */
typedef void esp_done_fn(void *context, struct esp_work *work, enum esp_status status);

enum esp_call_flag {
	ESP_KEYED = 1 /* key says which call this is: see there */
};

/* A collective with all its properties. Zero fields have their defaults. */
struct esp_call {
	size_t struct_size;
	enum esp_collective collective;
	enum esp_type type;
	enum esp_op op;
	uint32_t flags;          /* enum esp_call_flag                                                      */
	double factor;           /* ESP_SCALED                                                              */
	uint32_t root;           /* broadcast, reduce, gather, scatter                                      */
	uint64_t count;          /* elements of one block, as in the functions above                        */
	/*
	 * Blocks of different sizes: one count per rank (reduce-scatter, allgather, gather, scatter), or size x size
	 * by sender and receiver (alltoall), the same on all ranks; count is then ignored. NULL: all blocks have count.
	 */
	const uint64_t *counts;
	const void *in;          /* one buffer ...                                                          */
	void *out;
	/*
	 * ... or many, which stand for all of them one behind the other: a bucket of tensors. Each holds whole elements;
	 * their division is the same on all ranks. With in_buffers, in is ignored; the same for out. A broadcast has out
	 * only: another in is refused. In place, each byte of memory is the same byte of all of in and of all of out;
	 * buffers of out may not overlap each other.
	 */
	const struct esp_buffer *in_buffers, *out_buffers;
	uint32_t in_buffer_count, out_buffer_count;
	const char *plan;        /* a planner of `espalier plan`, the same on all ranks; NULL: the best known */
	/*
	 * ESP_KEYED: ranks may make such calls in different orders; those with the same key belong together. A key may be
	 * used again once the call before it has ended. Such a call has no gate. It costs a message to the group's first
	 * rank and back.
	 */
	uint64_t key;
	int64_t deadline_ns;     /* most time from the start to the end; 0: the setting deadline_seconds    */
	/*
	 * The call waits until *gate >= gate_value, and stores signal_value in *signal when it has ended, well or
	 * not. Both are 64-bit words that are written by others with release order; esp_poke() says that one has
	 * changed, otherwise that is noticed within about a millisecond. For streams of accelerators. NULL: none.
	 */
	const uint64_t *gate;
	uint64_t gate_value;
	uint64_t *signal;
	uint64_t signal_value;
	esp_done_fn *done;       /* NULL: none */
	void *done_context;
	/*
	 * How an allreduce adds floats, the same on all ranks. If a number is a NaN or an infinity, on any rank, the call
	 * is made as ESP_NUMERICS_FLOAT, on all. A call with a key cannot be in fixed point: the setting does not count
	 * for it.
	 */
	enum esp_numerics numerics;
};
#define ESP_CALL_INIT ESP_INIT(struct esp_call)

/* Makes the call and waits for its end. */
ESP_API enum esp_status esp_run(struct esp_group *group, const struct esp_call *call);

/*
 * Starts the call and returns; buffers are the library's until it has ended. The struct, its arrays and the plan's
 * name may go at once, counts too. *out is freed with esp_work_free(). A call that cannot be made (ESP_EINVAL ...) is
 * refused here, and then nothing has happened.
 */
ESP_API enum esp_status esp_start(struct esp_group *group, const struct esp_call *call, struct esp_work **out);

/*
 * A call that will be made many times with the same buffers: everything is planned now, and nothing is sent.
 * esp_restart() starts it; again, once it has ended. ESP_ESTATE: it is running, or was not prepared.
 */
ESP_API enum esp_status esp_prepare(struct esp_group *group, const struct esp_call *call, struct esp_work **out);
ESP_API enum esp_status esp_restart(struct esp_work *work);

/* One of the gates of this context may have opened. */
ESP_API void esp_poke(struct esp_context *context);

/* ---- the end of work ---- */

/*
 * ESP_PENDING, or how it ended; after esp_restart(), how the last start ended. ESP_ESTATE: it was prepared and not
 * started yet. The functions that wait return that at once, too.
 */
ESP_API enum esp_status esp_test(struct esp_work *work);

/* Waits for the end; ESP_PENDING: timeout_ns has passed before (negative: no limit but its own deadline). */
ESP_API enum esp_status esp_wait(struct esp_work *work, int64_t timeout_ns);

/*
 * Waits until one of them has ended: *out_index says which, and its status is returned. NULLs are skipped; ESP_EINVAL:
 * all are NULL.
 */
ESP_API enum esp_status esp_wait_any(struct esp_work *const *works, uint32_t count, int64_t timeout_ns,
                                     uint32_t *out_index);

/*
 * A descriptor that becomes readable when it has ended, and is not while it runs again; never read from it. It lives as
 * long as the work.
 */
ESP_API enum esp_status esp_work_descriptor(struct esp_work *work, int *out_fd);

/*
 * The callback of this start is not wanted any more, as a thread that waits for the work sees its end: no thread has to
 * be woken to make it. ESP_OK: it was not made and will not be. ESP_ESTATE: the work has ended, so it was made or will
 * be; or there is none. After esp_restart() there is one again.
 */
ESP_API enum esp_status esp_work_no_callback(struct esp_work *work);

/* How it failed; status ESP_OK in *error if it did not (yet), or was not started. */
ESP_API enum esp_status esp_work_error(struct esp_work *work, struct esp_error *error);

/* The planner that the last start of this work used, "exchange", "flat" ...; "" if none. */
ESP_API const char *esp_work_plan(struct esp_work *work);

/* Frees it. One that has not ended is freed when it has: its buffers are the library's until then. NULL is fine. */
ESP_API void esp_work_free(struct esp_work *work);

/* ---- messages between two ranks ---- */

#define ESP_ANY_RANK UINT32_MAX /* where a receive names its sender: any rank */

/*
 * Sends a message with a tag to a rank of the group. Messages from one rank to another with one tag arrive in order.
 * Sends and receives are not ordered with collectives. A send may return before the message is received, or wait for
 * that: a program may rely on neither. To oneself, too: the receive has been started before, or another thread makes
 * it. ESP_ETIMEOUT: no rank has received it, and the group has failed; but a send to oneself fails alone.
 */
ESP_API enum esp_status esp_send(struct esp_group *group, const void *data, uint64_t bytes, uint32_t to, uint64_t tag);
/*
 * Receives the first message with this tag from `from`, which may be ESP_ANY_RANK. out_bytes and out_from may be NULL.
 * Two failures leave the group as it is: ESP_EMISMATCH: the message is longer than `bytes`, and is lost. ESP_ETIMEOUT:
 * none has come; one that comes later is there for the next receive. If one was on its way then, the group has failed.
 */
ESP_API enum esp_status esp_recv(struct esp_group *group, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                                 uint64_t *out_bytes, uint32_t *out_from);
/* In the background. deadline_ns: 0: the setting deadline_seconds. */
ESP_API enum esp_status esp_send_start(struct esp_group *group, const void *data, uint64_t bytes, uint32_t to,
                                       uint64_t tag, int64_t deadline_ns, struct esp_work **out);
ESP_API enum esp_status esp_recv_start(struct esp_group *group, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                                       int64_t deadline_ns, struct esp_work **out);
/*
 * The size and sender of a receive that has ended. Either may be NULL. ESP_ESTATE: it has not ended, or is no receive.
 */
ESP_API enum esp_status esp_work_received(struct esp_work *work, uint64_t *out_bytes, uint32_t *out_from);

#ifdef __cplusplus
}
#endif

#endif
