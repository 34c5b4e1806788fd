#include "tools/bench/hub_stage.h"

#include <assert.h>
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/child.h"
#include "tools/lab/client.h"

#define HUB_PORT 7700u
#define SETUP_SECONDS 120.0
#define RESULT "hub_contest worker %" SCNu32 " seconds %lf least %lf most %lf optimizer %lf idle %lf wrong %" SCNu64
#define GLOO_SAMPLES_MOST 256u

/* ---- commands of this program ---- */

/* espalier WORD..., on a host of the lab if there is one; host NULL: here. */
static void begin(const struct hub_stage *stage, struct child_words *words, const char *host)
{
	*words = (struct child_words){.count = 0};
	bench_child_add(words, stage->self);
	if (!host || !stage->lab[0])
		return;
	bench_child_add(words, "lab");
	bench_child_add(words, "exec");
	bench_child_add(words, "--name");
	bench_child_add(words, stage->lab);
	bench_child_add(words, host);
	bench_child_add(words, "--");
	bench_child_add(words, stage->self);
}

static void add_all(struct child_words *words, const char *const *more)
{
	for (; *more; more++)
		bench_child_add(words, *more);
}

/* Its output is not wanted. */
static enum esp_status do_command(const struct child_words *words, struct error *err)
{
	char *text = NULL;
	enum esp_status status = bench_child_run(words, SETUP_SECONDS, &text, err);

	if (status == ESP_OK)
		free(text);
	return status;
}

static const char *path_in(const struct hub_stage *stage, const char *name, char path[HUB_STAGE_PATH])
{
	snprintf(path, HUB_STAGE_PATH, "%s/%s", stage->folder, name);
	return path;
}

/* ---- the lab ---- */

static enum esp_status find_hub_address(struct hub_stage *stage, struct error *err)
{
	const struct lab *lab;
	char address[LAB_ADDRESS_TEXT];
	enum esp_status status = lab_client_map(stage->lab, &lab, err);

	if (status != ESP_OK)
		return status;
	snprintf(stage->hub_host, sizeof(stage->hub_host), "%s", lab_host(lab, stage->config.workers)->name);
	snprintf(stage->address, sizeof(stage->address), "%s:%u", lab_address(lab, stage->config.workers, 0, address),
	         HUB_PORT);
	lab_client_unmap(lab);
	return ESP_OK;
}

/* A rack of the workers and one more host, the last, with its faster link. */
static enum esp_status make_lab(struct hub_stage *stage, struct error *err)
{
	char hosts[16], rate[32], hub_rate[32];
	struct child_words words;

	snprintf(stage->lab, sizeof(stage->lab), "benchhub%d", (int)getpid());
	snprintf(hosts, sizeof(hosts), "%u", stage->config.workers + 1);
	snprintf(rate, sizeof(rate), "%" PRIu64 "bit", stage->config.rate);
	snprintf(hub_rate, sizeof(hub_rate), "%.0fbit", (double)stage->config.rate * stage->config.hub_links);
	begin(stage, &words, NULL);
	add_all(&words, (const char *const[]){"lab", "up", "--name", stage->lab, "--racks", "1", "--hosts", hosts, "--rate",
	                                      rate, "--no-check", "--json", NULL});
	enum esp_status status = do_command(&words, err);
	if (status != ESP_OK) {
		stage->lab[0] = '\0';
		return status;
	}
	status = find_hub_address(stage, err);
	if (status != ESP_OK)
		return status;
	begin(stage, &words, NULL);
	add_all(&words, (const char *const[]){"lab", "set", "--name", stage->lab, stage->hub_host, "rate", hub_rate, NULL});
	return do_command(&words, err);
}

/* ---- the hub and its job ---- */

/* The hub's own words, where it could not be used. */
static void show_log(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stderr);
	if (file)
		fclose(file);
}

/* lanes NULL: as many as there are cores. */
static enum esp_status start_hub(const struct hub_stage *stage, const char *host, const char *address,
                                 const char *lanes, pid_t *out, struct error *err)
{
	char key[HUB_STAGE_PATH], log[HUB_STAGE_PATH];
	struct child_words words;

	path_in(stage, "hub.log", log);
	path_in(stage, "hub.key", key);
	begin(stage, &words, host);
	add_all(&words, (const char *const[]){"hub", "--listen", address, "--key-file", key, NULL});
	if (lanes)
		add_all(&words, (const char *const[]){"--lanes", lanes, NULL});
	return bench_child_start(&words, log, out, err);
}

/* Of the hubs at these addresses; its ticket is NAME.ticket. */
static enum esp_status create_job(const struct hub_stage *stage, const char *name, const char *addresses,
                                  const char *optimizer, struct error *err)
{
	char key[HUB_STAGE_PATH], ticket[HUB_STAGE_PATH], file[32], log[HUB_STAGE_PATH], workers[16];
	struct child_words words;

	path_in(stage, "hub.log", log);
	path_in(stage, "hub.key", key);
	snprintf(file, sizeof(file), "%s.ticket", name);
	path_in(stage, file, ticket);
	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	begin(stage, &words, stage->hub_host);
	add_all(&words, (const char *const[]){"hub", "create", name, "--hub", addresses, "--key-file", key, "--workers",
	                                      workers, "--optimizer", optimizer, "--ticket-file", ticket, NULL});
	enum esp_status status = do_command(&words, err);
	if (status != ESP_OK)
		show_log(log);
	return status;
}

static enum esp_status start_shard(struct hub_stage *stage, const struct lab *lab, uint32_t number, char *addresses,
                                   size_t room, struct error *err)
{
	char address[LAB_ADDRESS_TEXT + 8], host[LAB_ADDRESS_TEXT];
	size_t length = strlen(addresses);

	snprintf(address, sizeof(address), "%s:%u", lab_address(lab, number, 0, host), HUB_PORT);
	snprintf(addresses + length, room - length, "%s%s", number > 0 ? "," : "", address);
	/* A lane suffices for a part of the chunks, and more threads than needed would slow all down on this machine. */
	enum esp_status status = start_hub(stage, lab_host(lab, number)->name, address, "1", &stage->shards[number], err);
	stage->shard_count += status == ESP_OK;
	return status;
}

/* A hub on each worker's host, which share out the chunks of one job. The key is there. */
static enum esp_status start_shards(struct hub_stage *stage, struct error *err)
{
	char addresses[HUB_STAGE_SHARDS * (LAB_ADDRESS_TEXT + 8)] = "";
	const struct lab *lab;

	assert(stage->config.workers <= HUB_STAGE_SHARDS);
	enum esp_status status = lab_client_map(stage->lab, &lab, err);
	if (status != ESP_OK)
		return status;
	for (uint32_t i = 0; status == ESP_OK && i < stage->config.workers; i++)
		status = start_shard(stage, lab, i, addresses, sizeof(addresses), err);
	lab_client_unmap(lab);
	return status == ESP_OK ? create_job(stage, "shards", addresses, stage->config.optimizer, err) : status;
}

static enum esp_status start_hubs(struct hub_stage *stage, struct error *err)
{
	enum esp_status status = start_hub(stage, stage->hub_host, stage->address, NULL, &stage->hub, err);

	if (status == ESP_OK)
		status = create_job(stage, "job", stage->address, stage->config.optimizer, err);
	if (status == ESP_OK)
		status = create_job(stage, "mean", stage->address, "avg", err);
	return status == ESP_OK && stage->config.has_shards ? start_shards(stage, err) : status;
}

static enum esp_status find_free_port(struct hub_stage *stage, struct error *err)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_known = fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0 &&
	                getsockname(fd, (struct sockaddr *)&name, &length) == 0;

	if (fd >= 0)
		close(fd);
	snprintf(stage->address, sizeof(stage->address), "127.0.0.1:%u", ntohs(name.sin_port));
	return is_known ? ESP_OK : error_set(err, ESP_EIO, "no port of the loopback is free");
}

/* allreduce.gloo, where `make bench` has built it: beside this program. */
static void find_gloo(struct hub_stage *stage)
{
	const char *end = strrchr(stage->self, '/');

	snprintf(stage->gloo, sizeof(stage->gloo), "%.*s/peers/allreduce.gloo", (int)(end - stage->self), stage->self);
	if (access(stage->gloo, X_OK) != 0)
		stage->gloo[0] = '\0';
}

enum esp_status bench_hub_stage_open(struct hub_stage *stage, const struct hub_stage_config *config, struct error *err)
{
	*stage = (struct hub_stage){.config = *config};
	ssize_t length = readlink("/proc/self/exe", stage->self, sizeof(stage->self) - 1);
	enum esp_status status;

	if (length <= 0 || length == (ssize_t)sizeof(stage->self) - 1)
		return error_set(err, ESP_EIO, "cannot find out which program this is");
	find_gloo(stage);
	snprintf(stage->folder, sizeof(stage->folder), "/tmp/espalier-bench-XXXXXX");
	if (!mkdtemp(stage->folder)) {
		stage->folder[0] = '\0';
		return error_set(err, ESP_EIO, "cannot make a temporary folder");
	}
	status = config->rate > 0 ? make_lab(stage, err) : find_free_port(stage, err);
	if (status == ESP_OK)
		status = start_hubs(stage, err);
	if (status != ESP_OK)
		bench_hub_stage_close(stage);
	return status;
}

void bench_hub_stage_close(struct hub_stage *stage)
{
	char path[HUB_STAGE_PATH];
	struct child_words words;
	struct error err;

	bench_child_stop(stage->hub);
	stage->hub = 0;
	for (; stage->shard_count > 0; stage->shard_count--)
		bench_child_stop(stage->shards[stage->shard_count - 1]);
	if (stage->lab[0]) {
		begin(stage, &words, NULL);
		add_all(&words, (const char *const[]){"lab", "down", "--name", stage->lab, NULL});
		(void)do_command(&words, &err);
		stage->lab[0] = '\0';
	}
	if (stage->folder[0]) {
		unlink(path_in(stage, "hub.key", path));
		unlink(path_in(stage, "hub.log", path));
		unlink(path_in(stage, "job.ticket", path));
		unlink(path_in(stage, "mean.ticket", path));
		unlink(path_in(stage, "shards.ticket", path));
		rmdir(stage->folder);
		stage->folder[0] = '\0';
	}
}

/* ---- runs ---- */

static const char *ticket_of(enum hub_way way)
{
	return way == HUB_WAY_SHARDS ? "shards.ticket" : way == HUB_WAY_MEAN ? "mean.ticket" : "job.ticket";
}

/* espalier run -n N, or lab run. */
static void add_launcher(const struct hub_stage *stage, struct child_words *words, const char *workers,
                         const char *variable)
{
	begin(stage, words, NULL);
	if (stage->lab[0])
		add_all(words, (const char *const[]){"lab", "run", "--name", stage->lab, NULL});
	else
		bench_child_add(words, "run");
	add_all(words, (const char *const[]){"-n", workers, "--no-prefix", "--env", variable, "--", NULL});
}

void bench_hub_stage_tell(const struct hub_contest_result *result)
{
	printf("hub_contest worker %" PRIu32 " seconds %.9f least %.9f most %.9f optimizer %.9f idle %.6f wrong %" PRIu64
	       "\n",
	       result->worker, result->seconds, result->least, result->most, result->optimizer_seconds, result->idle,
	       result->wrong);
}

/* Worker 0's times; the wrong elements of all. */
static enum esp_status read_results(const char *text, uint32_t workers, struct hub_contest_result *out,
                                    struct error *err)
{
	uint32_t found = 0;
	uint64_t wrong = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		struct hub_contest_result one;

		if (sscanf(line, RESULT, &one.worker, &one.seconds, &one.least, &one.most, &one.optimizer_seconds, &one.idle,
		           &one.wrong) != 7)
			continue;
		found++;
		wrong += one.wrong;
		if (one.worker == 0)
			*out = one;
	}
	if (found != workers)
		return error_set(err, ESP_EIO, "%u of %u workers told their times", found, workers);
	out->wrong = wrong;
	return ESP_OK;
}

enum esp_status bench_hub_stage_run(const struct hub_stage *stage, enum hub_way way, struct hub_contest_result *out,
                                    struct error *err)
{
	char workers[16], iterations[16], warmup[16], ticket[HUB_STAGE_PATH], variable[HUB_STAGE_PATH + 20], *text;
	struct child_words words;

	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	snprintf(iterations, sizeof(iterations), "%u", stage->config.iterations);
	snprintf(warmup, sizeof(warmup), "%u", stage->config.warmup);
	snprintf(variable, sizeof(variable), "ESP_HUB_TICKET=%s", path_in(stage, ticket_of(way), ticket));
	if (way == HUB_WAY_LOOP)
		begin(stage, &words, NULL);
	else
		add_launcher(stage, &words, workers, variable);
	if (way != HUB_WAY_LOOP)
		bench_child_add(&words, stage->self);
	add_all(&words,
	        (const char *const[]){"bench", "hub", "--as", hub_way_names[way], "--workers", workers, "--iters",
	                              iterations, "--warmup", warmup, "--optimizer", stage->config.optimizer, NULL});
	add_all(&words, stage->config.model);
	enum esp_status status = bench_child_run(&words, stage->config.seconds, &text, err);
	if (status != ESP_OK)
		return status;
	status = read_results(text, way == HUB_WAY_LOOP ? 1 : stage->config.workers, out, err);
	free(text);
	return status;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One line of JSON of contest.h: "samples_us": [..], "wrong": N. */
static enum esp_status read_gloo(const char *text, struct hub_contest_result *out, struct error *err)
{
	static const char samples_key[] = "\"samples_us\": [", wrong_key[] = "\"wrong\": ";
	const char *at = strstr(text, samples_key), *wrong = strstr(text, wrong_key);
	double samples[GLOO_SAMPLES_MOST];
	uint32_t count = 0;

	if (!at || !wrong)
		return error_set(err, ESP_EIO, "Gloo's program printed no samples");
	for (at += sizeof(samples_key) - 1; count < GLOO_SAMPLES_MOST && *at != ']' && *at != '\0'; at++) {
		char *end;
		samples[count] = strtod(at, &end) / 1e6;
		if (end == at)
			break;
		count++;
		at = end;
		if (*at != ',')
			break;
	}
	if (count == 0)
		return error_set(err, ESP_EIO, "Gloo's program printed no samples");
	qsort(samples, count, sizeof(samples[0]), compare);
	*out = (struct hub_contest_result){.seconds = samples[count / 2],
	                                   .least = samples[0],
	                                   .most = samples[count - 1],
	                                   .wrong = strtoull(wrong + sizeof(wrong_key) - 1, NULL, 10)};
	return ESP_OK;
}

enum esp_status bench_hub_stage_run_gloo(const struct hub_stage *stage, const char *variant, uint64_t bytes,
                                         struct hub_contest_result *out, struct error *err)
{
	char folder[] = "/tmp/espalier-gloo-XXXXXX", variable[64], workers[16], size[24], iterations[16], *text;
	struct child_words words = {.count = 0}, remove = {.count = 0};

	assert(stage->gloo[0]);
	if (!mkdtemp(folder))
		return error_set(err, ESP_EIO, "cannot make a temporary folder");
	snprintf(variable, sizeof(variable), "GLOO_FOLDER=%s", folder);
	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	snprintf(size, sizeof(size), "%" PRIu64, bytes / 4 * 4);
	snprintf(iterations, sizeof(iterations), "%u", stage->config.iterations);
	if (stage->lab[0])
		add_launcher(stage, &words, workers, variable);
	bench_child_add(&words, stage->gloo);
	add_all(&words, (const char *const[]){"--ranks", workers, "--sizes", size, "--seconds", "0.001", "--iters",
	                                      iterations, "--in-place", "--peer", "gloo", "--variant", variant, NULL});
	enum esp_status status = bench_child_run(&words, stage->config.seconds, &text, err);
	if (status == ESP_OK) {
		status = read_gloo(text, out, err);
		free(text);
	}
	struct error ignored;
	add_all(&remove, (const char *const[]){"rm", "-rf", folder, NULL});
	(void)do_command(&remove, &ignored);
	return status;
}
