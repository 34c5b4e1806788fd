#include "tools/launcher/launcher_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

#define READ_BYTES 16384u
#define FULL_BYTES 65536u
#define WRITE_BYTES 4096u /* a pipe that poll() reports as writable takes this much without blocking: PIPE_BUF */
#define PREFIX_TEXT 16

static bool is_same_file(int a, int b)
{
	struct stat left, right;
	return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

enum esp_status launcher_output_open(struct run_output *output, uint32_t ranks, bool prefixed, bool all_to_stderr,
                                     struct error *err)
{
	*output = (struct run_output){
		.sinks = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}},
		.sources = malloc(2 * (size_t)ranks * sizeof(struct run_source)),
		.ranks = ranks,
		.prefixed = prefixed,
		.shared = is_same_file(STDOUT_FILENO, STDERR_FILENO),
	};
	if (!output->sources)
		return error_set(err, ESP_ENOMEM, "no memory for the output of %u ranks", ranks);
	output->targets[RUN_OUT] = &output->sinks[all_to_stderr ? 1 : 0];
	output->targets[RUN_ERR] = &output->sinks[1];
	for (size_t i = 0; i < 2 * (size_t)ranks; i++)
		output->sources[i] = (struct run_source){.fd = -1};
	return ESP_OK;
}

static struct run_source *source_of(struct run_output *output, uint32_t rank, enum run_stream stream)
{
	return &output->sources[2 * (size_t)rank + stream];
}

enum esp_status launcher_output_attach(struct run_output *output, uint32_t rank, enum run_stream stream, int fd,
                                       struct error *err)
{
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		close(fd);
		return error_set(err, ESP_EIO, "cannot read the output of rank %u: %s", rank, strerror(errno));
	}
	source_of(output, rank, stream)->fd = fd;
	return ESP_OK;
}

static void sink_put(struct run_sink *sink, const char *text, size_t length)
{
	if (sink->error || length == 0)
		return;
	if (length > sink->capacity - sink->used && sink->sent > 0) {
		memmove(sink->text, sink->text + sink->sent, sink->used - sink->sent);
		sink->used -= sink->sent;
		sink->sent = 0;
	}
	/* bounded: see launcher_output_is_full() */
	if (!vec_reserve(&sink->text, &sink->capacity, sink->used + length, sizeof(*sink->text))) {
		sink->error = ENOMEM;
		return;
	}
	memcpy(sink->text + sink->used, text, length);
	sink->used += length;
}

/* The source of a line. */
struct author {
	struct run_sink *sink;
	uint32_t rank;
	const struct run_output *output;
};

/* Writes "[3] text", and "[3]+text" for the rest of a line that was too long. */
static void put_line(void *context, bool continued, const char *head, size_t head_length, const char *tail,
                     size_t tail_length)
{
	const struct author *author = context;
	const struct run_output *output = author->output;
	char prefix[PREFIX_TEXT];
	int length = snprintf(prefix, sizeof(prefix), "[%u]%c", author->rank, continued ? '+' : ' ');
	if (output->take && output->take(output->take_context, head, head_length, tail, tail_length))
		return;
	if (output->prefixed)
		sink_put(author->sink, prefix, (size_t)length);
	sink_put(author->sink, head, head_length);
	sink_put(author->sink, tail, tail_length);
	sink_put(author->sink, "\n", 1);
}

static void end_source(struct run_source *source, struct author *author)
{
	if (source->fd < 0)
		return;
	close(source->fd); /* which removes it from every epoll set */
	source->fd = -1;
	launcher_line_end(&source->line, put_line, author);
}

bool launcher_output_read(struct run_output *output, uint32_t rank, enum run_stream stream)
{
	char data[READ_BYTES];
	struct run_source *source = source_of(output, rank, stream);
	struct author author = {output->targets[stream], rank, output};
	if (source->fd < 0)
		return false;
	ssize_t got = read(source->fd, data, sizeof(data));
	if (got > 0)
		launcher_line_feed(&source->line, data, (size_t)got, put_line, &author);
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		end_source(source, &author);
	return got > 0;
}

void launcher_output_end(struct run_output *output, uint32_t rank)
{
	for (int stream = RUN_OUT; stream <= RUN_ERR; stream++) {
		struct author author = {output->targets[stream], rank, output};
		end_source(source_of(output, rank, (enum run_stream)stream), &author);
	}
}

void launcher_output_say(struct run_output *output, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	struct run_sink *sink = &output->sinks[1];
	if (output->clears)
		sink_put(sink, RUN_OUTPUT_CLEAR, strlen(RUN_OUTPUT_CLEAR));
	sink_put(sink, "espalier: ", strlen("espalier: "));
	sink_put(sink, output->said_by, strlen(output->said_by));
	sink_put(sink, ": ", 2);
	sink_put(sink, text, strlen(text));
	sink_put(sink, "\n", 1);
}

int launcher_output_target(const struct run_output *output, enum run_stream stream)
{
	return output->targets[stream] == &output->sinks[0] ? 0 : 1;
}

bool launcher_output_is_full(const struct run_output *output, int index)
{
	return output->sinks[index].used - output->sinks[index].sent >= FULL_BYTES;
}

static void sink_fail(struct run_sink *sink, int error)
{
	sink->error = error;
	sink->used = sink->sent = 0;
	sink->midline = false;
}

/* As many whole lines as fit; a part of a line if none does. */
static size_t next_write(const struct run_sink *sink)
{
	const char *text = sink->text + sink->sent;
	size_t length = sink->used - sink->sent;
	if (length <= WRITE_BYTES)
		return length;
	const char *end = memrchr(text, '\n', WRITE_BYTES);
	return end ? (size_t)(end - text) + 1 : WRITE_BYTES;
}

/*
 * Polls before each write instead of making the descriptor non-blocking, which would change it for all
 * processes that share it, such as the parent shell.
 */
static void sink_flush(struct run_sink *sink)
{
	while (sink->sent < sink->used) {
		struct pollfd ready = {sink->fd, POLLOUT, 0};
		if (poll(&ready, 1, 0) <= 0)
			return;
		ssize_t written = write(sink->fd, sink->text + sink->sent, next_write(sink));
		if (written > 0) {
			sink->sent += (size_t)written;
			sink->midline = sink->text[sink->sent - 1] != '\n';
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			sink_fail(sink, errno);
		}
	}
	sink->used = sink->sent = 0;
}

/* A sink in the middle of a line goes first, and the other only when that line is complete. */
void launcher_output_flush(struct run_output *output)
{
	int first = output->sinks[1].midline ? 1 : 0;
	sink_flush(&output->sinks[first]);
	if (!output->shared || !output->sinks[first].midline)
		sink_flush(&output->sinks[1 - first]);
}

int launcher_output_pending(const struct run_output *output, int index)
{
	const struct run_sink *sink = &output->sinks[index];
	return sink->used > sink->sent ? sink->fd : -1;
}

int launcher_output_error(const struct run_output *output)
{
	return output->sinks[0].error ? output->sinks[0].error : output->sinks[1].error;
}

void launcher_output_close(struct run_output *output)
{
	for (size_t i = 0; output->sources && i < 2 * (size_t)output->ranks; i++) {
		if (output->sources[i].fd >= 0)
			close(output->sources[i].fd);
		free(output->sources[i].line.text);
	}
	free(output->sources);
	free(output->sinks[0].text);
	free(output->sinks[1].text);
	*output = (struct run_output){0};
}
