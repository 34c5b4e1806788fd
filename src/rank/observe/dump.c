#include "rank/observe/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/outfile.h"
#include "node/observe/tally.h"
#include "rank/observe/recorder.h"
#include "rank/rank_log.h"

#define PATIENCE (2 * NS_PER_S) /* for the file, before a failure is returned */
#define FILES_MOST 16u          /* accounts that a rank writes: later failures follow from the first */
#define DUMP_PATH (RANK_PATH + 64u)

struct dump_state {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned references; /* the rank's, and the thread's while it runs */
	bool running;
	bool has_next;
	struct account next;       /* the latest, to be written */
	uint32_t asked, answered;  /* number of accounts */
	struct error err;          /* of the first that could not be written */
	bool is_err_logged, is_file_logged;
	char folder[RANK_PATH];
	char path[DUMP_PATH];
};

static void release(struct dump_state *state)
{
	pthread_mutex_lock(&state->lock);
	bool is_last = --state->references == 0;
	pthread_mutex_unlock(&state->lock);
	if (!is_last)
		return;
	account_fini(&state->next);
	pthread_cond_destroy(&state->changed);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

/* ---- the thread ---- */

static enum esp_status write_file(const struct dump_state *state, const struct account *account, struct error *err)
{
	struct outfile file;

	if (mkdir(state->folder, 0777) != 0 && errno != EEXIST)
		return error_set(err, ESP_EIO, "cannot make the folder %.150s: %s", state->folder, strerror(errno));
	enum esp_status status = outfile_open(&file, state->path, err);
	if (status != ESP_OK)
		return status;
	if (account_write(account, file.file) == ESP_OK)
		return outfile_commit(&file, err);
	status = error_set(err, ESP_EIO, "cannot write %.150s: %s", state->path, strerror(errno));
	outfile_abandon(&file);
	return status;
}

static void *dump_main(void *argument)
{
	struct dump_state *state = argument;

	pthread_setname_np(pthread_self(), "esp-dump");
	pthread_mutex_lock(&state->lock);
	while (state->has_next) {
		struct account account = state->next;
		uint32_t asked = state->asked;
		struct error err = {0};

		state->next = (struct account){0};
		state->has_next = false;
		pthread_mutex_unlock(&state->lock);
		enum esp_status status = write_file(state, &account, &err);
		account_fini(&account);
		pthread_mutex_lock(&state->lock);
		if (status != ESP_OK && state->err.status == ESP_OK)
			state->err = err;
		state->answered = asked;
		pthread_cond_broadcast(&state->changed);
	}
	state->running = false;
	pthread_mutex_unlock(&state->lock);
	release(state);
	return NULL;
}

/* With the state's lock. The thread blocks all signals: they are for the program's threads. */
static void start_thread(struct dump_state *state)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	state->references++;
	int error = pthread_create(&thread, &attributes, dump_main, state);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (error == 0) {
		state->running = true;
		return;
	}
	state->references--;
	state->answered = state->asked;
	if (state->err.status == ESP_OK)
		error_set(&state->err, ESP_ELIMIT, "no thread to write %.150s: %s", state->path, strerror(error));
}

/* ---- the rank ---- */

/* Checked when the job starts: when a call fails it is too late. The folder itself is only made by write_file(). */
static void check_folder(struct rank *context, const char *folder)
{
	char above[RANK_PATH];
	int cannot = access(folder, W_OK | X_OK) == 0 ? 0 : errno;

	if (cannot == ENOENT) {
		snprintf(above, sizeof(above), "%s", folder);
		cannot = access(dirname(above), W_OK | X_OK) == 0 ? 0 : errno;
	}
	if (cannot)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH,
		          "dump_dir: nothing could be written into %s when a call fails: %s", folder, strerror(cannot));
}

void dump_open(struct rank *context)
{
	struct dump_state *state;
	struct error err;

	if (!context->conf.dump_dir[0] || !(state = calloc(1, sizeof(*state))))
		return;
	if (rank_path(context, context->conf.dump_dir, state->folder, &err) != ESP_OK) {
		log_write(&context->log, LOG_LEVEL_WARN, LOG_CONF, "dump_dir: %s; nothing will be written", err.text);
		free(state);
		return;
	}
	snprintf(state->path, sizeof(state->path), "%s/espalier-%016" PRIx64 "-rank%u.json", state->folder,
	         context->instance, context->rank);
	pthread_mutex_init(&state->lock, NULL);
	rank_cond_init(&state->changed);
	state->references = 1;
	context->mod.dump->state = state;
	check_folder(context, state->folder);
}

/* Logs the outcome of the file, once; by a thread that may log. */
static void log_outcome(struct rank *context)
{
	struct dump_state *state = context->mod.dump->state;

	pthread_mutex_lock(&state->lock);
	struct error err = state->err;
	bool logs_err = err.status != ESP_OK && !state->is_err_logged;
	bool logs_file = err.status == ESP_OK && state->answered > 0 && !state->is_file_logged;
	state->is_err_logged |= logs_err;
	state->is_file_logged |= logs_file;
	pthread_mutex_unlock(&state->lock);
	if (logs_err)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "%s", err.text);
	if (logs_file)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_WATCH, "what this rank knew when a call failed is in %s",
		          state->path);
}

/* Logs that there could be files: as a warning on one rank only, the first that is still there. */
static void log_hint(struct rank *context)
{
	uint32_t rank = 0;

	if (atomic_exchange(&context->mod.dump->is_hint_logged, true) || context->conf.dump_dir[0])
		return;
	pthread_mutex_lock(&context->lock);
	while (rank < context->rank && context->fates.of[rank] != FATE_HERE)
		rank++;
	pthread_mutex_unlock(&context->lock);
	log_write(&context->log, rank == context->rank ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, LOG_WATCH,
	          "a call has failed; with ESP_DUMP_DIR=FOLDER each rank writes down what it knew, and espalier diagnose "
	          "FOLDER names the culprit");
}

void dump_failures(struct rank *context)
{
	struct dump *dump = context->mod.dump;
	struct dump_state *state = dump->state;
	unsigned failures = atomic_load(&context->mod.recorder->failures);
	struct account_wishes wishes = {.ended = RING_RECORDS};
	struct account account;

	if (failures == atomic_load(&dump->seen) || atomic_exchange(&dump->seen, failures) == failures)
		return;
	if (!state) {
		log_hint(context);
		return;
	}
	if (dump->take(context, &wishes, &account) != ESP_OK)
		return;
	pthread_mutex_lock(&state->lock);
	if (state->asked < FILES_MOST) {
		account_fini(&state->next);
		state->next = account;
		account = (struct account){0};
		state->has_next = true;
		state->asked++;
		if (!state->running)
			start_thread(state);
	}
	pthread_mutex_unlock(&state->lock);
	account_fini(&account);
}

static void wait_for_file(struct rank *context)
{
	struct dump_state *state = context->mod.dump->state;
	uint64_t until = clock_now_ns() + PATIENCE;
	struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	if (!state)
		return;
	pthread_mutex_lock(&state->lock);
	while (state->answered < state->asked && clock_now_ns() < until)
		pthread_cond_timedwait(&state->changed, &state->lock, &at);
	pthread_mutex_unlock(&state->lock);
	log_outcome(context);
}

void dump_failures_and_wait(struct rank *context)
{
	if (atomic_load(&context->mod.recorder->failures) == 0)
		return;
	dump_failures(context);
	wait_for_file(context);
}

void dump_close(struct rank *context)
{
	if (!context->mod.dump->state)
		return;
	dump_failures(context);
	wait_for_file(context);
	release(context->mod.dump->state);
	context->mod.dump->state = NULL;
}
