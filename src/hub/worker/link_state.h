/*
 * link_state.h - the parts of a worker's link to its hub. Private to hub/worker.
 */
#ifndef HUB_WORKER_LINK_STATE_H
#define HUB_WORKER_LINK_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/pace.h"
#include "hub/client/client_lane.h"
#include "hub/worker/host_meet.h"
#include "hub/control/msg_socket.h"
#include "hub/control/silence.h"
#include "hub/worker/hub_link.h"
#include "transport/poller.h"
#include "transport/tcp/tcp.h"

struct link_host;

/* Of a call that the thread has taken. */
enum hub_op_state {
	HUB_OP_HANDED,  /* the lanes have it                                                     */
	HUB_OP_QUEUED,  /* of a worker that pushes with others of its host: earlier calls on the tensor have not ended */
	HUB_OP_WAITING, /* the same: other workers of the host are awaited, or their pusher      */
};

/* A call, or a change of an optimizer, on its way to the lanes. */
struct hub_op {
	const void *kind;        /* &hub_op_kind; first member */
	atomic_uint references;  /* the caller's and the link's */
	struct hub_link *link;   /* until it has ended */
	struct hub_op_call call;
	struct optimizer optimizer; /* HUB_HYPER */
	uint64_t version;           /* HUB_HYPER: from which it holds; HUB_PULL: what it has read */
	uint64_t *told;             /* HUB_HYPER: where that version is written when it is put into the queue */
	uint64_t until_ns;
	_Atomic int status;      /* ESP_PENDING until it has ended */
	struct error failure;    /* once it has failed */
	uint32_t left;           /* the thread's: parts that have not ended */
	uint8_t state;           /* the thread's: enum hub_op_state */
	struct hub_op *behind;   /* the thread's: the next call on the tensor; of a worker that pushes with others */
	uint8_t values[OPTIMIZER_BYTES]; /* the same: of the tensor's parameter group */
	struct hub_op *next, *previous; /* in the queue; then among those under way */
	struct client_part parts[]; /* by lane */
};

struct hub_op_list {
	struct hub_op *first, *last;
};

struct link_lane {
	struct client_lane *client; /* owned */
	struct tcp *tcp;            /* owned */
	bool is_active;             /* its last turn moved something, or it was given work */
};

enum link_control_state {
	LINK_CONTROL_OPEN,
	LINK_CONTROL_LEAVING, /* LEAVE is sent, and OK has not come */
	LINK_CONTROL_ENDED,   /* OK has come, or the connection is no more */
};

/* A hub of the job; the thread's while it runs. */
struct link_hub {
	struct poller_subject subject; /* of its control connection; first member */
	struct msg_socket *socket;     /* the same; of link->sockets */
	uint64_t session;
	uint32_t first_lane, lanes;    /* of the link's */
	bool readable, writable;
	uint8_t state;                 /* enum link_control_state */
	struct silence silence;
	bool is_asked;                 /* which workers a call waits for; no answer has come */
};

/* Of the control connections together; the thread's. */
struct link_control {
	/* A call is late, and the hubs were asked which workers it waits for. */
	struct hub_op *late; /* NULL: none, or it has ended meanwhile */
	uint64_t answer_by_ns;
	/* A data connection has failed: the reason is awaited on this connection. 0: none has. */
	uint64_t reason_by_ns;
	struct error suspicion;
	uint32_t culprit; /* the worker that the hub is told of with it: one of its set; UINT32_MAX: the hub knows */
};

enum link_update_state {
	LINK_UPDATE_NONE,
	LINK_UPDATE_OFFERED, /* the hub's answer is awaited */
	LINK_UPDATE_GRANTED, /* it may be sent              */
	LINK_UPDATE_SETTLED, /* applied, or dropped         */
};

/* An update of an asynchronous job. */
struct link_update {
	uint8_t state;   /* enum link_update_state */
	bool is_unsent;  /* the offer */
	bool is_late;    /* its deadline has passed */
	bool spoils, is_spoiled; /* the hub is to be told to drop it; and has said that it will */
	struct hub_msg_offer offer;
	struct hub_msg_result result;
};

struct hub_link {
	struct hub_link_config config;
	struct ticket ticket;
	pid_t process; /* that opened it */
	struct msg_socket *sockets; /* control connections, by hub; owned */
	struct link_hub *hubs;      /* as in the ticket; owned */
	uint32_t hub_count;
	uint32_t lane_count, chunk_bytes; /* lane_count: of all hubs */
	struct optimizer optimizer; /* the job's */
	struct hub_layout layout;
	bool is_declared;
	uint32_t delay_bound;     /* of an asynchronous job; 0: it trains in rounds */

	struct poller poller;
	pthread_t thread;
	bool runs;
	struct link_lane *lanes;  /* of all hubs, in a row */
	struct host_meet meet;    /* until all are ready */
	char host_name[HUB_HOST_NAME];
	struct link_host *host;   /* NULL: this worker pushes by itself */
	struct link_control control;
	struct pace push_pace, pull_pace; /* of an asynchronous job; the thread's */
	_Atomic uint32_t chunks_ready;    /* of an update that is pushed while it comes: chunks of the layout below this */
	uint32_t chunks_seen;             /* the thread's: as of its latest turn */
	struct hub_op_list under_way; /* the thread's; the one that is due first stands first */

	pthread_mutex_t lock;     /* guards what follows */
	pthread_cond_t changed;   /* a call has ended */
	struct hub_op_list queue; /* started, not taken by the thread yet */
	uint32_t unfinished;      /* calls; a change of an optimizer needs no answer and is none */
	uint64_t *next_version;   /* by tensor: that the next push begins from */
	bool stops;               /* the thread is to end */
	bool leaves;              /* after it has left the job in order */
	struct error failure;     /* status ESP_OK: none */
	struct hub_link_stats stats;
	struct link_update update;
	uint64_t updates, version; /* offers so far; the newest version that a result has told */
};

/* ---- hub_op.c ---- */
void op_list_append(struct hub_op_list *list, struct hub_op *op);
/* Behind those that are due at the same time or before. */
void op_list_insert(struct hub_op_list *list, struct hub_op *op);
void op_list_remove(struct hub_op_list *list, struct hub_op *op);
/* With the lock held: no call of the link stands in it any more. */
void op_end_locked(struct hub_link *link, struct hub_op *op, enum esp_status status);

/* ---- link_thread.c ---- */
ESP_CHECKED enum esp_status link_thread_start(struct hub_link *link, struct error *err);
/* Wakes the thread, which leaves the job in order if `leaves`, and waits until it has ended. */
void link_thread_stop(struct hub_link *link, bool leaves);
/* The thread's: the first failure stays, all calls end with it, and all hubs are told. */
void link_fail(struct hub_link *link, const struct error *why);

/* Gives a call to the lanes, as a request of this kind with this memory: of the tensor's first element. */
void link_thread_hand(struct hub_link *link, struct hub_op *op, uint8_t kind, const void *gradient, void *weights);
/* The same with values of a group's optimizer. Fails the link if it fails. */
ESP_CHECKED enum esp_status link_thread_change(struct hub_link *link, uint16_t group, uint64_t from,
                                               const struct optimizer *optimizer);
/* Of a call that has ended well: its bytes. */
void link_thread_count(struct hub_link *link, const struct hub_op *op);
/* The op stands in no list any more. */
void link_thread_end_op(struct hub_link *link, struct hub_op *op, enum esp_status status);

/* ---- link_host.c: for a worker that pushes with others of its host; otherwise these do nothing ---- */
/* Of the set of workers that the hub has named. Blocks up to the time. */
ESP_CHECKED enum esp_status link_host_open(struct hub_link *link, const struct hub_msg_ready *ready, uint64_t until_ns,
                                           struct error *err);
void link_host_close(struct hub_link *link);
/* The thread's, as all that follows: a call begins, if link->host. */
void link_host_begin(struct hub_link *link, struct hub_op *op);
/* The lanes have ended a call well; then: any call has ended. */
void link_host_answered(struct hub_link *link, struct hub_op *op);
void link_host_ended(struct hub_link *link, const struct hub_op *op);
/* Values of a group's pushes from this version on, if link->host: the hub is told with the first of them. */
ESP_CHECKED enum esp_status link_host_change(struct hub_link *link, uint16_t group, uint64_t from,
                                             const struct optimizer *optimizer);
/* The link has failed: calls that no lane has end. */
void link_host_fail(struct hub_link *link);
/* Lets calls go on that can. True: one has ended. */
bool link_host_turn(struct hub_link *link);
bool link_host_has_work(const struct hub_link *link);
/* The workers of this host that a call waits for, as a text; false: none. */
#define HOST_MEMBER_TEXT (HUB_HOST_NAME + 48u)
bool link_host_missing(const struct hub_link *link, const struct hub_op *op, char *text, size_t room);
/* Any thread: this worker's gradient of a tensor in shared memory; NULL: there is none. */
float *link_host_gradient(const struct hub_link *link, uint32_t tensor);
/* The same: its weights, to write and to read. */
float *link_host_weights(const struct hub_link *link, uint32_t tensor);
const float *link_host_map(const struct hub_link *link, uint32_t tensor);

/* ---- link_update.c: the thread's ---- */
/* True: *out is to be sent. */
bool link_update_take_msg(struct hub_link *link, struct hub_msg *out);
/* False: no such message is awaited. */
bool link_update_on_msg(struct hub_link *link, const struct hub_msg *msg);
bool link_update_is_late(struct hub_link *link);
/* Fills the budgets of paced calls. Returns when to call again at the latest. */
uint64_t link_pace_turn(struct hub_link *link, uint64_t now_ns);

/* ---- link_control.c: the thread's ---- */
ESP_CHECKED enum esp_status link_control_begin(struct hub_link *link, struct error *err);
void link_control_end(struct hub_link *link);
/* At each hub: moves messages, looks after silence and late calls. Returns when to call again at the latest. */
uint64_t link_control_turn(struct hub_link *link, uint64_t now_ns);
/* A lane has failed: the hub's reason is awaited for a while. */
void link_control_suspect(struct hub_link *link, enum esp_status status, uint32_t lane, uint64_t now_ns);
/* The same for any reason. culprit: a worker that the hub is told of; UINT32_MAX: none. */
void link_control_suspect_why(struct hub_link *link, const struct error *why, uint32_t culprit);
/* The hub that has this lane. */
const struct link_hub *link_control_hub_of(const struct hub_link *link, uint32_t lane);
/* All hubs are told that the worker leaves. */
void link_control_leave(struct hub_link *link);
/* Is an answer of a hub awaited to that? */
bool link_control_is_leaving(const struct hub_link *link);
bool link_control_has_work(const struct hub_link *link);
/* Tells the hubs that a worker has failed: of those that this one pushes with, or of a job with several hubs. */
void link_control_tell(struct hub_link *link, const struct error *why, uint32_t worker);

#endif
