/*
 * launcher_launch.c - starts one rank: its variables, its output, its process or remote shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tools/launcher/launcher_job.h"
#include "tools/launcher/launcher_shell.h"

/* Descriptors for a child, and our own ends of them; -1: none. */
struct ends {
	int theirs[3];
	int ours[3];
};

static void close_fd(int *fd)
{
	if (*fd > STDERR_FILENO)
		close(*fd);
	*fd = -1;
}

static enum esp_status set_number(struct run_env *env, const char *name, uint32_t value, struct error *err)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", value);
	return launcher_env_set(env, name, text, err);
}

/* Sets the variables that differ between ranks. */
static enum esp_status set_rank(struct run_request *request, uint32_t rank, const struct run_host *host,
                                struct error *err)
{
	const struct run_place *place = &request->place;
	uint32_t local_rank = host ? host->local_first + (rank - host->first_rank) : rank;
	uint32_t local_size = host ? host->local_size : request->size;
	if (place->enter) {
		uint32_t rest = request->size - rank / place->per_host * place->per_host;
		local_rank = rank % place->per_host;
		local_size = rest < place->per_host ? rest : place->per_host;
	}
	/* Espalier's own, and those that scripts for torchrun read. */
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {{"ESP_RANK", rank},
	               {"RANK", rank},
	               {"ESP_LOCAL_RANK", local_rank},
	               {"LOCAL_RANK", local_rank},
	               {"ESP_LOCAL_SIZE", local_size},
	               {"LOCAL_WORLD_SIZE", local_size}};
	char mark[32];
	snprintf(mark, sizeof(mark), "%u/%u", rank, request->size);
	/* launch.c: torchrun's variables were set by espalier run */
	enum esp_status status = launcher_env_set(&request->env, "ESPALIER_RUN", mark, err);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status == ESP_OK; i++)
		status = set_number(&request->env, numbers[i].name, numbers[i].value, err);
	return status;
}

/* The child writes the file itself: it grows as the rank prints, and has every byte. */
static enum esp_status open_file(const char *folder, uint32_t rank, const char *suffix, int *out, struct error *err)
{
	char *path = NULL;
	if (asprintf(&path, "%s/rank-%u.%s", folder, rank, suffix) < 0)
		return error_set(err, ESP_ENOMEM, "no memory for the name of a file");
	*out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	int cause = errno;
	enum esp_status status =
		*out >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot write %.150s: %s", path, strerror(cause));
	free(path);
	return status;
}

/* index 0 flows to the child, 1 and 2 from it */
static enum esp_status open_pipe(struct ends *ends, int index, struct error *err)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return error_set(err, ESP_EIO, "cannot make a pipe: %s", strerror(errno));
	ends->theirs[index] = pipes[index == 0 ? 0 : 1];
	ends->ours[index] = pipes[index == 0 ? 1 : 0];
	return ESP_OK;
}

/* Ranks inherit a terminal if their lines have no prefix: they may draw on it. */
static enum esp_status share_terminal(int terminal, int *out, struct error *err)
{
	*out = fcntl(terminal, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return *out >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot share the terminal: %s", strerror(errno));
}

static enum esp_status open_output(const struct run_job *job, uint32_t rank, enum run_stream stream, struct ends *ends,
                                   struct error *err)
{
	const struct run_request *request = job->request;
	int index = stream == RUN_OUT ? 1 : 2;
	int target = launcher_output_target(&job->output, stream) == 0 ? STDOUT_FILENO : STDERR_FILENO;
	if (request->output)
		return open_file(request->output, rank, stream == RUN_OUT ? "out" : "err", &ends->theirs[index], err);
	bool is_read = request->watch && request->watch->take; /* the watcher's lines are not for the terminal */
	if (!request->prefixed && !is_read && isatty(target))
		return share_terminal(target, &ends->theirs[index], err);
	return open_pipe(ends, index, err);
}

static enum esp_status open_input(struct run_job *job, uint32_t rank, struct ends *ends, struct error *err)
{
	if (job->controls)
		return open_pipe(ends, 0, err);
	if (rank > 0) {
		ends->theirs[0] = fcntl(job->nothing, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		return ends->theirs[0] >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot open /dev/null: %s", strerror(errno));
	}
	ends->theirs[0] = launcher_input_open(&job->input);
	return ends->theirs[0] >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot make a pipe: %s", strerror(errno));
}

static enum esp_status watch(int epoll, int fd, uint32_t events, uint32_t tag, struct error *err)
{
	struct epoll_event event = {.events = events, .data.u32 = tag};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
		return ESP_OK;
	return error_set(err, ESP_EIO, "cannot watch a pipe: %s", strerror(errno));
}

/* Hands our ends to the output. */
static enum esp_status keep_ends(struct run_job *job, uint32_t rank, struct ends *ends, struct error *err)
{
	enum esp_status status = ESP_OK;
	for (int i = 1; i <= 2 && status == ESP_OK; i++) {
		enum run_stream stream = i == 1 ? RUN_OUT : RUN_ERR;
		uint32_t tag = run_event_tag(rank, stream == RUN_OUT ? RUN_EVENT_OUT : RUN_EVENT_ERR);
		int fd = ends->ours[i], epoll = job->epolls[launcher_output_target(&job->output, stream)];
		if (fd < 0)
			continue;
		ends->ours[i] = -1;
		status = launcher_output_attach(&job->output, rank, stream, fd, err);
		if (status == ESP_OK)
			status = watch(epoll, fd, EPOLLIN, tag, err);
	}
	return status;
}

static int start_local(struct run_job *job, uint32_t rank, const struct ends *ends, uint64_t now_ns, struct error *err)
{
	const struct run_request *request = job->request;
	const struct run_start start = {
		.argv = request->command,
		.words = request->env.words,
		.cwd = request->cwd,
		.in = ends->theirs[0],
		.out = ends->theirs[1],
		.err = ends->theirs[2],
		.files = &job->files,
		.place = &request->place,
		.rank = rank,
	};
	return launcher_child_start(&job->children[rank], &start, now_ns, err);
}

static int start_remote(struct run_job *job, uint32_t rank, const struct run_host *host, struct ends *ends,
                        uint64_t now_ns, struct error *err)
{
	const struct run_request *request = job->request;
	const struct run_shell_job script = {
		.command = request->command,
		.words = request->env.words,
		.folder = request->cwd ? request->cwd : request->here,
		.host = host->name,
	};
	char *text = NULL;
	size_t length = 0;
	enum esp_status status = launcher_shell_script(&script, &text, &length, err);
	if (status != ESP_OK)
		return 1;
	request->rsh[request->rsh_host] = host->name;
	const struct run_start start = {
		.argv = request->rsh,
		.in = ends->theirs[0],
		.out = ends->theirs[1],
		.err = ends->theirs[2],
		.files = &job->files,
	};
	int failed = launcher_child_start(&job->children[rank], &start, now_ns, err);
	if (failed) {
		free(text);
		return failed;
	}
	launcher_control_open(&job->controls[rank], ends->ours[0], text, length);
	ends->ours[0] = -1;
	uint32_t tag = run_event_tag(rank, RUN_EVENT_CONTROL);
	status = watch(job->epolls[RUN_EPOLL_CONTROL], job->controls[rank].fd, EPOLLOUT, tag, err);
	return status == ESP_OK ? 0 : 1;
}

int launcher_launch(struct run_job *job, uint32_t rank, uint64_t now_ns, struct error *err)
{
	struct run_request *request = job->request;
	const struct run_host *host = job->controls ? launcher_hosts_of(&request->hosts, rank) : NULL;
	struct ends ends = {{-1, -1, -1}, {-1, -1, -1}};
	int failed = 1;
	enum esp_status status = set_rank(request, rank, host, err);
	if (status == ESP_OK)
		status = open_output(job, rank, RUN_OUT, &ends, err);
	if (status == ESP_OK)
		status = open_output(job, rank, RUN_ERR, &ends, err);
	if (status == ESP_OK)
		status = open_input(job, rank, &ends, err);
	if (status == ESP_OK)
		status = keep_ends(job, rank, &ends, err);
	if (status == ESP_OK)
		failed = host ? start_remote(job, rank, host, &ends, now_ns, err) : start_local(job, rank, &ends, now_ns, err);
	for (int i = 0; i < 3; i++) {
		close_fd(&ends.theirs[i]);
		close_fd(&ends.ours[i]);
	}
	return failed;
}
