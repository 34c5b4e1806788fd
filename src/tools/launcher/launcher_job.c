#include "tools/launcher/launcher_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/complain.h"
#include "tools/launcher/launcher_report.h"
#include "tools/launcher/launcher_stopped.h"

#define EVENTS 64                  /* of the ranks, handled per turn */
#define SPARE_FILES 32u            /* descriptors that are not for a rank */
#define STOPPED_CHECK_NS NS_PER_S  /* between checks for stopped ranks; the shells on other hosts count seconds */
#define ANNOUNCE_NS (NS_PER_S / 2) /* from a failure to the message, if ranks still run: most often they end at once \
	                                */
/* between checks while more ranks are left than may be lost: most likely they just run */
#define MANY_CHECK_NS (5 * NS_PER_S)

/* ---- opening and closing ---- */

/*
 * Opens /dev/null at descriptors 0 to 2 that are closed, which would otherwise become pipes of ranks. It is
 * read-only, so that output written to it still fails.
 */
static enum esp_status fill_standard_files(int *out_nothing, struct error *err)
{
	int fd;
	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return error_set(err, ESP_EIO, "cannot open /dev/null: %s", strerror(errno));
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	*out_nothing = fd;
	return ESP_OK;
}

/* Raises the limit of open files as far as the ranks need it; they themselves get the old limit. */
static enum esp_status raise_file_limit(struct run_job *job, struct error *err)
{
	const struct run_request *request = job->request;
	uint64_t pipes = (request->output ? 0 : 2) + (request->hosts.count ? 1 : 0);
	uint64_t needed = request->size * pipes + SPARE_FILES;
	if (getrlimit(RLIMIT_NOFILE, &job->files) != 0)
		return error_set(err, ESP_EIO, "cannot ask for the limit on open files: %s", strerror(errno));
	uint64_t most = job->files.rlim_max;
	if (needed > most)
		return error_set(err, ESP_ELIMIT,
		                 "%u ranks need %" PRIu64 " open files, and the hard limit is %" PRIu64
		                 " (ulimit -Hn); --output needs fewer",
		                 request->size, needed, most);
	struct rlimit raised = {.rlim_cur = most, .rlim_max = most};
	if (needed > job->files.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) != 0)
		return error_set(err, ESP_ELIMIT, "cannot raise the limit on open files: %s", strerror(errno));
	return ESP_OK;
}

static enum esp_status open_events(struct run_job *job, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	signal(SIGCHLD, SIG_DFL); /* a parent that ignores SIGCHLD would have the kernel reap our ranks unseen */
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	job->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	bool opened = job->signals >= 0;
	for (int i = 0; i < RUN_EPOLLS && opened; i++)
		opened = (job->epolls[i] = epoll_create1(EPOLL_CLOEXEC)) >= 0;
	/*
	 * Processes that ranks leave behind become our children to reap, so that a group is seen to be empty under
	 * any init.
	 */
	if (!opened || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return error_set(err, ESP_EIO, "cannot watch over processes: %s", strerror(errno));
	return ESP_OK;
}

/* Without a socket the name is empty, which overrides the name of an outer espalier run. */
static enum esp_status open_ended_ranks(struct run_job *job, struct error *err)
{
	launcher_ended_open(&job->ended_ranks, job->request->size);
	launcher_blame_open(&job->blame, job->ended_ranks.name, job->request->size);
	return launcher_env_set(&job->request->env, "ESP_LAUNCHER", job->ended_ranks.name, err);
}

static enum esp_status allocate(struct run_job *job, struct error *err)
{
	uint32_t size = job->request->size;
	job->children = calloc(size, sizeof(*job->children));
	job->pids = calloc(size, sizeof(*job->pids));
	if (job->request->hosts.count)
		job->controls = malloc(size * sizeof(*job->controls));
	if (!job->children || !job->pids || (job->request->hosts.count && !job->controls))
		return error_set(err, ESP_ENOMEM, "no memory for %u ranks", size);
	for (uint32_t rank = 0; job->controls && rank < size; rank++)
		job->controls[rank] = RUN_CONTROL_CLOSED;
	return ESP_OK;
}

enum esp_status launcher_job_open(struct run_job *job, struct run_request *request, struct error *err)
{
	*job = (struct run_job){
		.request = request, .signals = -1, .epolls = {-1, -1, -1}, .nothing = -1, .ended_ranks.fd = -1, .blame.fd = -1};
	enum esp_status status = fill_standard_files(&job->nothing, err);
	if (status == ESP_OK)
		status = raise_file_limit(job, err);
	if (status == ESP_OK)
		status = allocate(job, err);
	if (status == ESP_OK)
		status = launcher_output_open(&job->output, request->size, request->prefixed, request->json, err);
	job->output.said_by = request->said_by;
	job->output.clears = request->is_inner && isatty(STDERR_FILENO) == 1;
	if (status == ESP_OK && request->watch) {
		job->output.take = request->watch->take;
		job->output.take_context = request->watch->context;
	}
	if (status == ESP_OK)
		status = open_events(job, err);
	if (status == ESP_OK)
		status = open_ended_ranks(job, err);
	if (status != ESP_OK)
		launcher_job_close(job);
	return status;
}

void launcher_job_close(struct run_job *job)
{
	const int files[] = {job->signals, job->nothing, job->epolls[0], job->epolls[1], job->epolls[2]};
	for (uint32_t rank = 0; job->controls && rank < job->request->size; rank++)
		launcher_control_close(&job->controls[rank]);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i] >= 0)
			close(files[i]);
	launcher_ended_close(&job->ended_ranks);
	launcher_blame_close(&job->blame);
	launcher_input_close(&job->input);
	launcher_output_close(&job->output);
	free(job->controls);
	free(job->pids);
	free(job->children);
	*job = (struct run_job){.signals = -1, .epolls = {-1, -1, -1}, .nothing = -1, .ended_ranks.fd = -1, .blame.fd = -1};
}

/* ---- signals to the ranks ---- */

/* Polls a control for writing while it has bytes, otherwise only for the end of its reader. */
static void watch_control(struct run_job *job, uint32_t rank)
{
	struct run_control *control = &job->controls[rank];
	struct epoll_event event = {.events = launcher_control_pending(control) ? EPOLLOUT : 0,
	                            .data.u32 = run_event_tag(rank, RUN_EVENT_CONTROL)};
	if (control->fd >= 0)
		epoll_ctl(job->epolls[RUN_EPOLL_CONTROL], EPOLL_CTL_MOD, control->fd, &event);
}

/* A rank on another host is signalled through its shell; if that is not possible or did not help, the shell is. */
static void signal_rank(struct run_job *job, uint32_t rank, int signal_number)
{
	struct run_child *child = &job->children[rank];
	bool by_word = job->controls && child->state == RUN_CHILD_RUNS && job->end.stage < RUN_CUT;
	child->was_told = child->was_told || child->state == RUN_CHILD_RUNS;
	if (by_word && launcher_control_signal(&job->controls[rank], signal_number))
		watch_control(job, rank);
	else
		launcher_child_signal(child, signal_number);
}

static void signal_all(struct run_job *job, int signal_number)
{
	for (uint32_t rank = 0; signal_number && rank < job->started; rank++)
		signal_rank(job, rank, signal_number);
}

/* ---- events ---- */

static void start_next(struct run_job *job, uint64_t now_ns)
{
	struct error err = {0};
	uint32_t rank = job->started;
	int failed = launcher_launch(job, rank, now_ns, &err);
	if (job->children[rank].state == RUN_CHILD_RUNS) {
		job->pids[rank] = job->children[rank].pid;
		job->started++;
	}
	if (!failed)
		return;
	job->start_status = failed;
	job->stopped = true;
	launcher_output_say(&job->output, "rank %u: %s", rank, err.text);
	signal_all(job, launcher_end_on_trouble(&job->end, now_ns));
}

/*
 * A rank that is killed drops its connections a moment before its end is reported here, and other ranks may
 * return an error sooner. So a death by a signal that espalier run did not send is the cause of a failure just
 * before it.
 */
static bool is_cause(const struct run_job *job, const struct run_child *child, uint64_t now_ns)
{
	const struct run_child *first = &job->children[job->first_failed];
	bool ours = job->end.stage >= RUN_TERM || job->end.asked;
	return child->signal && !first->signal && !ours && now_ns - first->ended_ns <= RUN_CAUSE_NS;
}

/* True if the signals of the time limit ended the rank. A remote shell reports a signal as a status. */
static bool is_cut_off(const struct run_job *job, const struct run_child *child)
{
	int number = child->signal || !job->controls ? child->signal : child->status - 128;
	return job->end.timed_out && (number == SIGTERM || number == SIGKILL);
}

static void on_stopped(void *context, pid_t group)
{
	struct run_job *job = context;
	for (uint32_t rank = 0; rank < job->started; rank++)
		if (job->pids[rank] == group)
			job->children[rank].is_stopped = true;
}

static void find_stopped(struct run_job *job)
{
	for (uint32_t rank = 0; rank < job->started; rank++)
		job->children[rank].is_stopped = false;
	launcher_stopped_each(on_stopped, job);
}

/* True if ranks are left and all of them are stopped, as found by find_stopped(). */
static bool are_all_stopped(const struct run_job *job)
{
	for (uint32_t rank = 0; rank < job->started; rank++)
		if (job->pids[rank] != 0 && !job->children[rank].is_stopped)
			return false;
	return job->started > job->ended;
}

/*
 * A job that may lose ranks goes on without this one. If all other ranks were stopped when it failed, they do
 * not go on: this rank has given up all of them. That check is made at most `lose` times.
 */
static bool is_allowed(struct run_job *job, uint32_t rank)
{
	bool is_ours = job->end.stage != RUN_CALM || is_cut_off(job, &job->children[rank]);
	char how[RUN_HOW_TEXT];

	if (is_ours || job->failed || job->lost == job->request->lose)
		return false;
	job->lost++;
	job->children[rank].was_lost = true;
	if (!job->controls && job->started == job->request->size) {
		find_stopped(job);
		job->is_deserted = job->is_deserted || are_all_stopped(job);
	}
	if (!job->request->watch)
		launcher_output_say(&job->output, "rank %u %s; the others %s", rank, launcher_report_how(job, rank, how),
		                    job->ended == job->request->size ? "have ended"
		                    : job->is_deserted               ? "are stopped"
		                                                     : "go on");
	return true;
}

static void note_failure(struct run_job *job, uint32_t rank, uint64_t now_ns)
{
	if (is_allowed(job, rank))
		return;
	launcher_end_on_failure(&job->end, now_ns);
	job->stopped = true;
	if (is_cut_off(job, &job->children[rank])) {
		job->cut_off++;
	} else if (!job->failed) {
		job->failed = true;
		job->first_failed = rank;
		job->first_order = job->ended;
		job->announce_ns = job->request->watch || job->end.asked ? 0 : now_ns + ANNOUNCE_NS;
		job->after_first = job->started - job->ended;
	} else if (is_cause(job, &job->children[rank], now_ns)) {
		job->first_failed = rank; /* the previous one counts as ended after it */
	}
}

static void on_rank_end(struct run_job *job, uint32_t rank, int wait_status, uint64_t now_ns)
{
	launcher_child_on_end(&job->children[rank], wait_status, now_ns);
	job->pids[rank] = 0;
	job->children[rank].order = ++job->ended;
	if (job->controls)
		launcher_control_close(&job->controls[rank]);
	if (launcher_child_failed(&job->children[rank]))
		note_failure(job, rank, now_ns);
}

static void reap(struct run_job *job, uint64_t now_ns)
{
	int wait_status;
	pid_t pid;
	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
		uint32_t rank = 0;
		while (rank < job->started && job->pids[rank] != pid)
			rank++;
		if (rank < job->started) /* other children are processes that ranks have left behind */
			on_rank_end(job, rank, wait_status, now_ns);
	}
}

/* Checks the groups whose leader has ended. */
static void check_groups(struct run_job *job, uint64_t now_ns)
{
	for (uint32_t rank = 0; job->gone < job->ended && rank < job->started; rank++) {
		struct run_child *child = &job->children[rank];
		if (child->state != RUN_CHILD_LEFT)
			continue;
		launcher_child_check(child, now_ns);
		if (child->state == RUN_CHILD_GONE)
			job->gone++;
	}
}

static bool all_gone(const struct run_job *job)
{
	return job->gone == job->started && (job->stopped || job->started == job->request->size);
}

static void on_signals(struct run_job *job, uint64_t now_ns)
{
	struct signalfd_siginfo info;
	while (read(job->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(job, now_ns);
			continue;
		}
		job->stopped = true;
		job->deaf = all_gone(job);
		signal_all(job, launcher_end_on_signal(&job->end, (int)info.ssi_signo, now_ns));
	}
}

static void on_event(struct run_job *job, uint32_t tag)
{
	uint32_t rank = tag >> 2;
	if ((tag & 3) == RUN_EVENT_OUT || (tag & 3) == RUN_EVENT_ERR) {
		launcher_output_read(&job->output, rank, (tag & 3) == RUN_EVENT_OUT ? RUN_OUT : RUN_ERR);
		return;
	}
	struct run_control *control = &job->controls[rank];
	if (launcher_control_pending(control))
		launcher_control_flush(control);
	else
		launcher_control_close(control); /* its reader is gone */
	watch_control(job, rank);
}

/* True if so much output waits for its reader that reading more of it would only cost memory. */
static bool is_held_up(const struct run_job *job, enum run_epoll which)
{
	return which != RUN_EPOLL_CONTROL && launcher_output_is_full(&job->output, which == RUN_EPOLL_OUT ? 0 : 1);
}

static void on_ranks(struct run_job *job, enum run_epoll which)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(job->epolls[which], events, EVENTS, 0);
	for (int i = 0; i < count && !is_held_up(job, which); i++)
		on_event(job, events[i].data.u32);
}

/* Tells the user why the job does not end yet. */
static void announce_failure(struct run_job *job, uint64_t now_ns)
{
	char how[RUN_HOW_TEXT];
	uint32_t rank = launcher_blame_follow(&job->blame, job->children, job->first_failed);
	if (job->announce_ns == 0 || now_ns < job->announce_ns)
		return;
	job->announce_ns = 0;
	if (job->end.stage == RUN_GRACE && !job->end.asked && job->started > job->ended)
		launcher_output_say(&job->output, "rank %u %s; the others have %.15g s from then on to end%s", rank,
		                    launcher_report_how(job, rank, how), (double)job->request->grace_ns / NS_PER_S,
		                    job->request->is_inner ? "" : " (--grace)");
}

/* Tells the user why the ranks get SIGTERM or SIGKILL. */
static void say_why(struct run_job *job, int signal_number, uint32_t running)
{
	const char *name = signal_number == SIGTERM ? "SIGTERM" : "SIGKILL",
			   *still = running == 1 ? " still runs" : "s still run";
	double grace = (double)job->request->grace_ns / NS_PER_S;
	if (job->end.stage == RUN_TERM && job->end.timed_out)
		launcher_output_say(&job->output, "the job has not ended within %.15g s: SIGTERM for %u rank%s",
		                    (double)job->request->limit_ns / NS_PER_S, running, plural(running));
	else if (job->end.stage == RUN_TERM && job->failed && running)
		launcher_output_say(&job->output, "%.15g s after rank %u has failed, %u rank%s: SIGTERM", grace,
		                    launcher_blame_follow(&job->blame, job->children, job->first_failed), running, still);
	else if (job->end.stage <= RUN_KILL && job->end.asked && running)
		launcher_output_say(&job->output, "%u rank%s although told to end: %s", running, still, name);
}

static void on_time(struct run_job *job, uint64_t now_ns)
{
	uint32_t running = job->started - job->ended;
	int signal_number = launcher_end_on_time(&job->end, now_ns);
	if (!signal_number)
		return;
	if (!job->is_done)
		say_why(job, signal_number, running);
	if (job->end.stage == RUN_TERM) {
		job->told = job->failed ? running : 0; /* otherwise the first rank that fails was told to end as well */
		job->stopped = true;
	}
	signal_all(job, signal_number);
}

/* The reader of our output is gone: as for any command in a pipeline, that ends it. */
static void on_broken_pipe(struct run_job *job, uint64_t now_ns)
{
	if (job->broken_pipe || launcher_output_error(&job->output) != EPIPE)
		return;
	job->broken_pipe = true;
	job->stopped = true;
	signal_all(job, launcher_end_on_trouble(&job->end, now_ns));
}

/* The lab of the ranks has ended. */
static void on_lab_end(struct run_job *job, uint64_t now_ns)
{
	job->has_no_place = true;
	job->stopped = true;
	job->start_status = EXIT_NO;
	launcher_output_say(&job->output, "the lab has ended, so its ranks are ended too");
	signal_all(job, launcher_end_on_trouble(&job->end, now_ns));
}

/* The watcher has its result and needs no more of the job. */
static void on_done(struct run_job *job, uint64_t now_ns)
{
	const struct run_watch *watch = job->request->watch;
	if (job->is_done || !watch || !watch->is_done || !watch->is_done(watch->context, job))
		return;
	job->is_done = true;
	job->stopped = true;
	launcher_end_on_failure(&job->end, now_ns);
}

/* ---- ranks that are left, and stopped ---- */

/*
 * The others have given up a stopped rank, have gone on without it and are done; it would keep the job running
 * for ever. A rank that runs may take its time. While no rank has ended well, stopped ranks may be the whole
 * rest of the job, stopped on purpose; unless they were stopped when the last one failed.
 */
static bool are_some_left(const struct run_job *job)
{
	bool has_good = job->ended > job->lost || job->is_deserted;
	return has_good && job->request->lose > 0 && job->started == job->request->size && job->started > job->ended &&
	       job->end.stage == RUN_CALM;
}

/* No more than may be lost: then each is judged by itself. */
static bool are_few_left(const struct run_job *job)
{
	return are_some_left(job) && job->started - job->ended <= job->request->lose;
}

/*
 * SIGKILL and not SIGTERM with SIGCONT: the rank would resume where the others were long ago, and might
 * overwrite their newer files.
 */
static void judge_stopped(struct run_job *job, uint32_t rank)
{
	struct run_child *child = &job->children[rank];
	uint64_t grace_ns = job->request->grace_ns;
	child->still = child->is_stopped ? child->still + 1 : 0;
	if (child->still == 1)
		launcher_output_say(&job->output,
		                    "rank %u is stopped, and others have ended: SIGKILL in %.15g s, unless it goes on", rank,
		                    (double)grace_ns / NS_PER_S);
	if (child->still > grace_ns / STOPPED_CHECK_NS)
		signal_rank(job, rank, SIGKILL);
}

/* Writes "1, 2, 5". */
static void list_left(const struct run_job *job, char *text, size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t rank = 0; rank < job->started && used < size; rank++)
		if (job->pids[rank] != 0)
			used += (size_t)snprintf(text + used, size - used, "%s%u", used > 0 ? ", " : "", rank);
	if (used >= size)
		memcpy(text + size - sizeof("..."), "...", sizeof("..."));
}

/* More are left than may be lost: if all of them are stopped, the job has failed. */
static void judge_all(struct run_job *job, uint64_t now_ns)
{
	uint64_t grace_ns = job->request->grace_ns;
	char left[200];
	job->still = are_all_stopped(job) ? job->still + 1 : 0;
	if (job->still == 1) {
		list_left(job, left, sizeof(left));
		launcher_output_say(&job->output,
		                    "ranks %s are stopped, more than --lose %u allows, and all others have ended: the "
		                    "job is given up, with SIGKILL in %.15g s, unless one goes on",
		                    left, job->request->lose, (double)grace_ns / NS_PER_S);
	}
	if (job->still <= grace_ns / STOPPED_CHECK_NS)
		return;
	job->stopped = true;
	signal_all(job, launcher_end_on_standstill(&job->end, now_ns));
}

static void check_stopped(struct run_job *job, bool are_few, uint64_t now_ns)
{
	if (!job->controls)
		find_stopped(job);
	for (uint32_t rank = 0; rank < job->started; rank++) {
		if (job->pids[rank] == 0)
			continue;
		if (!job->controls && are_few)
			judge_stopped(job, rank);
		/* otherwise the last request is not even sent */
		else if (job->controls && !launcher_control_pending(&job->controls[rank]))
			(void)launcher_control_look(&job->controls[rank], job->request->grace_ns / STOPPED_CHECK_NS);
	}
	if (!job->controls && !are_few)
		judge_all(job, now_ns);
}

static void say_ranks_left(struct run_job *job)
{
	for (uint32_t rank = 0; rank < job->started; rank++)
		if (job->pids[rank] != 0 && !job->children[rank].is_stopped)
			launcher_output_say(&job->output, "rank %u%s%s still runs, and is waited for", rank,
			                    job->controls ? " on " : "",
			                    job->controls ? launcher_hosts_of(&job->request->hosts, rank)->name : "");
	job->has_said = true;
}

static void check_last(struct run_job *job, uint64_t now_ns)
{
	bool are_few = are_few_left(job);
	bool is_new = are_few && !job->last_ns; /* from now on each second counts */
	if (!are_some_left(job) || (now_ns < job->look_ns && !is_new))
		return;
	/* the shells there cannot tell that other ranks are just about to end */
	if (!are_few && job->controls && !job->look_ns) {
		job->look_ns = now_ns + MANY_CHECK_NS;
		return;
	}
	job->last_ns = is_new ? now_ns : job->last_ns;
	check_stopped(job, are_few, now_ns);
	job->look_ns = now_ns + (are_few || job->still > 0 ? STOPPED_CHECK_NS : MANY_CHECK_NS);
	if (are_few && !job->has_said && !job->request->watch && now_ns - job->last_ns > job->request->grace_ns)
		say_ranks_left(job);
}

/* ---- the loop ---- */

static int timeout_ms(const struct run_job *job, uint64_t now_ns)
{
	uint64_t next_ns = launcher_end_next_ns(&job->end);
	if (are_some_left(job) && job->look_ns < next_ns)
		next_ns = job->look_ns;
	if (job->announce_ns && job->announce_ns < next_ns)
		next_ns = job->announce_ns;
	if (!job->stopped && job->started < job->request->size)
		return 0;
	if (job->gone < job->ended && next_ns > now_ns + RUN_CHILD_CHECK_NS)
		next_ns = now_ns + RUN_CHILD_CHECK_NS;
	if (next_ns == RUN_END_NEVER || all_gone(job))
		return -1;
	uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
	return wait_ms < 3600000 ? (int)wait_ms : 3600000;
}

static void run_turn(struct run_job *job)
{
	enum {
		SIGNALS,
		ENDED,
		BLAME,
		PLACE,
		RANKS,
		SINKS = RANKS + RUN_EPOLLS,
		INPUT = SINKS + 2,
		COUNT = INPUT + RUN_INPUT_POLLS
	};
	struct pollfd polls[COUNT] = {
		[SIGNALS] = {job->signals, POLLIN, 0},
		[ENDED] = {job->ended_ranks.fd, POLLIN, 0},
		[BLAME] = {job->blame.fd, POLLIN, 0},
		[PLACE] = {job->request->place.enter && !job->has_no_place ? job->request->place.gone_fd : -1, POLLIN, 0},
		[SINKS] = {launcher_output_pending(&job->output, 0), POLLOUT, 0},
		[SINKS + 1] = {launcher_output_pending(&job->output, 1), POLLOUT, 0},
	};
	for (int i = 0; i < RUN_EPOLLS; i++)
		polls[RANKS + i] = (struct pollfd){is_held_up(job, (enum run_epoll)i) ? -1 : job->epolls[i], POLLIN, 0};
	launcher_input_poll(&job->input, polls + INPUT);
	if (poll(polls, COUNT, timeout_ms(job, clock_now_ns())) < 0)
		return; /* interrupted, or short of memory for a moment */
	uint64_t now_ns = clock_now_ns();
	if (polls[BLAME].revents)
		launcher_blame_read(&job->blame);
	if (polls[SIGNALS].revents)
		on_signals(job, now_ns);
	for (int i = 0; i < RUN_EPOLLS; i++)
		if (polls[RANKS + i].revents)
			on_ranks(job, (enum run_epoll)i);
	if (polls[PLACE].revents)
		on_lab_end(job, now_ns);
	launcher_input_move(&job->input, polls + INPUT);
	check_groups(job, now_ns);
	check_last(job, now_ns);
	on_done(job, now_ns);
	announce_failure(job, now_ns);
	on_time(job, now_ns);
	if (!job->stopped && job->started < job->request->size)
		start_next(job, now_ns);
	launcher_output_flush(&job->output);
	on_broken_pipe(job, now_ns);
	if (polls[ENDED].revents)
		launcher_ended_answer(&job->ended_ranks, job->children, job->started,
		                      job->stopped ? job->request->size : job->started);
}

static bool has_news(const struct run_job *job)
{
	struct pollfd ready[] = {{job->epolls[RUN_EPOLL_OUT], POLLIN, 0}, {job->epolls[RUN_EPOLL_ERR], POLLIN, 0}};
	return poll(ready, 2, 0) > 0;
}

/* All ranks are gone; their last output may still be in the pipes. */
static void drain(struct run_job *job)
{
	if (job->drained || has_news(job))
		return;
	job->drained = true;
	for (uint32_t rank = 0; rank < job->request->size; rank++)
		launcher_output_end(&job->output, rank);
	launcher_output_flush(&job->output);
}

static bool is_over(struct run_job *job)
{
	if (!all_gone(job))
		return false;
	drain(job);
	if (job->deaf || job->end.interrupts == RUN_END_INTERRUPTS)
		return true; /* the rest of the output has no reader */
	return job->drained && launcher_output_pending(&job->output, 0) < 0 && launcher_output_pending(&job->output, 1) < 0;
}

/* The ranks sent their reports before they ended. */
static void find_cause(struct run_job *job)
{
	for (uint32_t turns = 0; turns <= job->started / RUN_BLAME_EACH && launcher_blame_read(&job->blame) > 0; turns++)
		;
	job->first_seen = job->first_failed;
	if (job->failed)
		job->first_failed = launcher_blame_follow(&job->blame, job->children, job->first_seen);
}

void launcher_job_run(struct run_job *job)
{
	job->began_ns = clock_now_ns();
	launcher_end_init(&job->end, job->request->grace_ns, job->request->limit_ns, job->began_ns);
	while (!is_over(job))
		run_turn(job);
	find_cause(job);
	job->over_ns = clock_now_ns();
}
