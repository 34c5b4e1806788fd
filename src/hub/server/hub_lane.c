#include "hub/server/hub_lane.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/poller.h"

#define TURNS_PER_LOOK 4 /* for events, while something moves */
#define PUBLISH_PAUSE (100 * NS_PER_MS) /* between two looks at all chunks of a part */

struct mail {
	struct hub_lane_msg *first, *last;
};

struct hub_lane {
	uint32_t number;
	bool is_pinned;
	struct loop *loop;
	hub_lane_fn *returned;
	void *context;
	pthread_t thread;
	struct poller poller;
	struct hub_part *parts;    /* the lane thread's */
	uint64_t published_ns;     /* the lane thread's */
	/*
	 * Twice the nanoseconds slept so far; while the thread sleeps: twice the time at which it would have fallen asleep
	 * had it slept ever since, plus one. One word, so that any thread reads a sum that never decreases.
	 */
	_Atomic uint64_t slept;

	pthread_mutex_t lock;
	struct mail in, out; /* guarded by the lock */
	bool stops;          /* guarded by the lock */
	struct loop_task returns;
};

/* ---- mail ---- */

static void mail_put(struct mail *mail, struct hub_lane_msg *msg)
{
	msg->next = NULL;
	if (mail->last)
		mail->last->next = msg;
	else
		mail->first = msg;
	mail->last = msg;
}

static struct hub_lane_msg *mail_take_all(struct mail *mail)
{
	struct hub_lane_msg *first = mail->first;

	mail->first = mail->last = NULL;
	return first;
}

static void free_msg(struct hub_lane_msg *msg)
{
	struct hub_part *part = msg->part;

	if (msg != &part->open && msg != &part->trouble && msg != &part->close && msg != &part->news)
		free(msg);
}

static void post(struct hub_lane_msg *msg)
{
	struct hub_lane *lane = msg->part->lane;

	pthread_mutex_lock(&lane->lock);
	mail_put(&lane->in, msg);
	pthread_mutex_unlock(&lane->lock);
	poller_wake(&lane->poller);
}

enum esp_status hub_lane_send(const struct hub_lane_msg *msg)
{
	struct hub_lane_msg *copy = malloc(sizeof(*copy));

	if (!copy)
		return ESP_ENOMEM;
	*copy = *msg;
	post(copy);
	return ESP_OK;
}

void hub_part_open(struct hub_part *part)
{
	part->open = (struct hub_lane_msg){.kind = HUB_LANE_OPEN, .part = part, .fd = -1};
	post(&part->open);
}

void hub_part_close(struct hub_part *part)
{
	part->close = (struct hub_lane_msg){.kind = HUB_LANE_CLOSE, .part = part, .fd = -1};
	post(&part->close);
}

/* In the loop's thread. A function of the owner's may free the part of a message, but not the lane. */
static void on_returns(struct loop_task *task)
{
	struct hub_lane *lane = (struct hub_lane *)(void *)((char *)task - offsetof(struct hub_lane, returns));

	pthread_mutex_lock(&lane->lock);
	struct hub_lane_msg *msg = mail_take_all(&lane->out);
	pthread_mutex_unlock(&lane->lock);
	while (msg) {
		struct hub_lane_msg *next = msg->next, copy = *msg;

		if (msg == &msg->part->news) /* from here on the lane posts it again */
			atomic_store(&msg->part->has_news, false);
		free_msg(msg);
		lane->returned(lane->context, &copy);
		msg = next;
	}
}

static void give_back(struct hub_lane *lane, struct hub_lane_msg *msg)
{
	pthread_mutex_lock(&lane->lock);
	mail_put(&lane->out, msg);
	pthread_mutex_unlock(&lane->lock);
	loop_post(lane->loop, &lane->returns);
}

/* ---- parts ---- */

enum esp_status hub_part_make(struct hub_lane *lane, struct hub_session *session,
                              const struct store_lane_config *config, uint32_t weight, struct hub_part **out,
                              struct error *err)
{
	struct hub_part *part = calloc(1, sizeof(*part));
	struct tcp_config tcp = {.peers = config->workers, .poller = &lane->poller};

	assert(weight > 0 && config->lane == lane->number);
	if (!part)
		return error_set(err, ESP_ENOMEM, "no memory for a lane of the job");
	part->lane = lane;
	part->session = session;
	part->weight = weight;
	part->trouble = (struct hub_lane_msg){.kind = HUB_LANE_TROUBLE, .part = part, .fd = -1};
	part->news = (struct hub_lane_msg){.kind = HUB_LANE_NEWS, .part = part, .fd = -1};
	enum esp_status status = store_lane_open(config, &part->store, err);
	if (status == ESP_OK)
		status = tcp_open(&tcp, &store_lane_user, part->store, &part->tcp, err);
	if (status != ESP_OK) {
		hub_part_free(part);
		return status;
	}
	*out = part;
	return ESP_OK;
}

void hub_part_free(struct hub_part *part)
{
	if (!part)
		return;
	tcp_close(part->tcp);
	store_lane_close(part->store);
	free(part);
}

static void part_remove(struct hub_part *part)
{
	struct hub_part **at = &part->lane->parts;

	while (*at != part)
		at = &(*at)->next;
	*at = part->next;
	tcp_close(part->tcp);
	part->tcp = NULL;
}

static void publish(struct hub_part *part)
{
	struct store_lane_stats stats = store_lane_stats(part->store);
	uint64_t least = 0, most;

	(void)store_lane_versions(part->store, &least, &most);
	atomic_store_explicit(&part->counts.rounds, stats.rounds, memory_order_relaxed);
	atomic_store_explicit(&part->counts.pushed_bytes, stats.pushed_bytes, memory_order_relaxed);
	atomic_store_explicit(&part->counts.pulled_bytes, stats.pulled_bytes, memory_order_relaxed);
	atomic_store_explicit(&part->counts.parked, stats.parked, memory_order_relaxed);
	atomic_store_explicit(&part->counts.least_version, least, memory_order_relaxed);
}

/* Of an asynchronous job. The message is given back once until the control thread takes it. */
static void look_for_news(struct hub_part *part)
{
	uint64_t whole = 0, lost = 0;
	uint32_t worker;

	while (store_lane_take_whole(part->store, &worker))
		whole |= UINT64_C(1) << worker;
	while (store_lane_take_lost(part->store, &worker))
		lost |= UINT64_C(1) << worker;
	if (whole == 0 && lost == 0)
		return;
	atomic_fetch_or(&part->whole, whole);
	atomic_fetch_or(&part->lost, lost);
	if (!atomic_exchange(&part->has_news, true))
		give_back(part->lane, &part->news);
}

/* Has the part anything to say that the control thread must hear? */
static void look_for_trouble(struct hub_part *part)
{
	look_for_news(part);
	if (part->is_in_trouble || !store_lane_take_trouble(part->store, &part->trouble.trouble))
		return;
	part->is_in_trouble = true;
	give_back(part->lane, &part->trouble);
}

static bool part_has_work(const struct hub_part *part)
{
	return part->is_active || tcp_has_work(part->tcp);
}

/* True: it has had one. */
static bool take_turn(struct hub_part *part)
{
	if (!part_has_work(part) || !store_turn_may(&part->turn))
		return false;
	uint64_t began = clock_now_ns();
	part->is_active = tcp_poll(part->tcp, 0) > 0;
	store_turn_end(&part->turn, clock_now_ns() - began);
	look_for_trouble(part);
	return true;
}

static void take_turns(struct hub_lane *lane)
{
	bool is_over = true;

	for (struct hub_part *part = lane->parts; part; part = part->next)
		is_over &= !take_turn(part);
	for (struct hub_part *part = lane->parts; is_over && part; part = part->next)
		store_turn_next_round(&part->turn, part->weight);
}

/* ---- the thread ---- */

static void adopt(struct hub_part *part, struct hub_lane_msg *msg)
{
	struct error err;

	/* A worker that is lost already is trouble that has been told. */
	if (tcp_adopt(part->tcp, msg->worker, msg->fd, msg->is_checked, &err) == ESP_OK)
		part->is_active = true;
	else
		tcp_drop(part->tcp, msg->worker, ESP_ELINK);
	look_for_trouble(part);
}

/* True: the message goes back. */
static bool obey(struct hub_lane *lane, struct hub_lane_msg *msg)
{
	struct hub_part *part = msg->part;

	switch ((enum hub_lane_kind)msg->kind) {
	case HUB_LANE_OPEN:
		part->next = lane->parts;
		lane->parts = part;
		return false;
	case HUB_LANE_ADOPT:
		adopt(part, msg);
		return false;
	case HUB_LANE_LEAVE:
		store_lane_leave(part->store, msg->worker);
		look_for_trouble(part);
		return true;
	case HUB_LANE_ASK:
		msg->workers = store_lane_missing(part->store, msg->tensor);
		return true;
	case HUB_LANE_SHARE:
		store_lane_share(part->store, msg->worker, &msg->shared);
		return false;
	case HUB_LANE_APPLY:
		store_lane_apply(part->store, msg->worker, msg->count);
		part->is_active = true;
		return false;
	case HUB_LANE_DROP:
		store_lane_drop(part->store, msg->worker);
		part->is_active = true;
		return false;
	case HUB_LANE_LOST:
		tcp_drop(part->tcp, msg->worker, ESP_EPEER);
		look_for_trouble(part);
		return false;
	case HUB_LANE_CLOSE:
		publish(part);
		part_remove(part);
		return true;
	case HUB_LANE_TROUBLE:
	case HUB_LANE_NEWS:
		break;
	}
	assert(false && "a lane tells of trouble, and is told of none");
	return false;
}

/* False: the lane is to end. */
static bool take_mail(struct hub_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	struct hub_lane_msg *msg = mail_take_all(&lane->in);
	bool stops = lane->stops;
	pthread_mutex_unlock(&lane->lock);
	while (msg) {
		struct hub_lane_msg *next = msg->next;

		if (obey(lane, msg))
			give_back(lane, msg);
		else
			free_msg(msg);
		msg = next;
	}
	return !stops;
}

static bool has_news(const struct hub_lane *lane)
{
	for (const struct hub_part *part = lane->parts; part; part = part->next) {
		if (store_lane_stats(part->store).rounds !=
		    atomic_load_explicit(&part->counts.rounds, memory_order_relaxed))
			return true;
	}
	return false;
}

static void publish_all(struct hub_lane *lane, uint64_t now_ns)
{
	for (struct hub_part *part = lane->parts; part; part = part->next)
		publish(part);
	lane->published_ns = now_ns;
}

static void sleep_until_events(struct hub_lane *lane)
{
	uint64_t before = clock_now_ns(), due = lane->published_ns + PUBLISH_PAUSE;
	bool news = has_news(lane);

	if (news && due <= before)
		publish_all(lane, before);
	uint64_t slept = atomic_load_explicit(&lane->slept, memory_order_relaxed) / 2;
	atomic_store_explicit(&lane->slept, 2 * (before - slept) + 1, memory_order_relaxed);
	poller_look(&lane->poller, news && due > before ? (int64_t)(due - before) : -1);
	atomic_store_explicit(&lane->slept, 2 * (slept + clock_now_ns() - before), memory_order_relaxed);
}

static void look_for_events(struct hub_lane *lane)
{
	uint64_t now = clock_now_ns();

	poller_look(&lane->poller, 0);
	if (now >= lane->published_ns + PUBLISH_PAUSE)
		publish_all(lane, now);
}

/* A part whose turn was over may have been told of events in the turn of another one. */
static bool has_work(const struct hub_lane *lane)
{
	for (const struct hub_part *part = lane->parts; part; part = part->next) {
		if (part_has_work(part))
			return true;
	}
	return false;
}

/* To the core with the lane's number among those that the process may use. A lane that cannot be pinned runs anywhere.
 */
static void pin(const struct hub_lane *lane)
{
	cpu_set_t allowed, one;
	uint32_t left;

	if (!lane->is_pinned || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	left = lane->number % (uint32_t)CPU_COUNT(&allowed);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &allowed) || left-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(core, &one);
		(void)sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void *lane_main(void *argument)
{
	struct hub_lane *lane = argument;
	char name[16];
	unsigned turns = 0;

	snprintf(name, sizeof(name), "esp-hub-%u", lane->number);
	pthread_setname_np(pthread_self(), name);
	pin(lane);
	while (take_mail(lane)) {
		take_turns(lane);
		if (!has_work(lane))
			sleep_until_events(lane);
		else if (++turns % TURNS_PER_LOOK == 0)
			look_for_events(lane);
	}
	return NULL;
}

enum esp_status hub_lane_start(uint32_t number, bool is_pinned, struct loop *loop, hub_lane_fn *returned,
                               void *context, struct hub_lane **out, struct error *err)
{
	struct hub_lane *lane = calloc(1, sizeof(*lane));
	sigset_t all, before;

	if (!lane)
		return error_set(err, ESP_ENOMEM, "no memory for lane %u", number);
	lane->number = number;
	lane->is_pinned = is_pinned;
	lane->loop = loop;
	lane->returned = returned;
	lane->context = context;
	lane->returns.run = on_returns;
	pthread_mutex_init(&lane->lock, NULL);
	bool is_ready = poller_init(&lane->poller) == ESP_OK;
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool runs = is_ready && pthread_create(&lane->thread, NULL, lane_main, lane) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!runs) {
		poller_fini(&lane->poller);
		pthread_mutex_destroy(&lane->lock);
		free(lane);
		return error_set(err, ESP_ELIMIT, "no thread or descriptors for lane %u", number);
	}
	*out = lane;
	return ESP_OK;
}

void hub_lane_stop(struct hub_lane *lane)
{
	if (!lane)
		return;
	pthread_mutex_lock(&lane->lock);
	lane->stops = true;
	pthread_mutex_unlock(&lane->lock);
	poller_wake(&lane->poller);
	pthread_join(lane->thread, NULL);
	assert(!lane->parts && !lane->in.first);
	poller_fini(&lane->poller);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

uint32_t hub_lane_number(const struct hub_lane *lane)
{
	return lane->number;
}

uint64_t hub_lane_idle_ns(const struct hub_lane *lane)
{
	uint64_t slept = atomic_load_explicit(&lane->slept, memory_order_relaxed);

	return slept % 2 == 0 ? slept / 2 : clock_now_ns() - slept / 2;
}
