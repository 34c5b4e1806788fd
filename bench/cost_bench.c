/*
 * cost_bench.c - what a rank takes: descriptors and memory, against the number of ranks and of groups; and what stays when groups are freed.
 *
 *     cost_bench [--ranks 2,4,8,16] [--transport shm,tcp] [--groups 1,10,100,1000] [--churn 1000] [--json]
 *
 * The ranks are processes of this host that all talk to each other; the most of any of them is shown. Then groups are made and freed
 * again and again, and the growth is shown. Exits with 1 if a rank has more than 32 descriptors and 4 for each neighbour, or if
 * freed groups leave descriptors, or more than a megabyte, behind.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/number.h"
#include "espalier/espalier.h"
#include "report/json.h"
#include "report/table.h"

#define LIST_MOST 8u
/* A sanitizer keeps what is freed for a while: there is no telling what the library would take without it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_MOST_KIB (1 << 20)
#else
#define GROWTH_MOST_KIB 1024
#endif
#define WARM_UP 64u /* groups, before growth is looked at: what the allocator keeps is kept by then */

/* Of one rank, or the most of all. */
struct cost {
	int64_t descriptors;
	int64_t private_kib; /* that nobody else has: heap, stacks, the library's data     */
	int64_t mapped_kib;  /* of shared memory, what this rank has touched, of others too */
	int64_t shared_kib;  /* reserved by this rank for sharing                           */
};
#define COST_FIELDS 4u

struct list {
	uint32_t values[LIST_MOST];
	uint32_t count;
};

struct options {
	struct list ranks, groups;
	bool transports[2]; /* shm, tcp */
	uint32_t churn;
	bool json;
};

/* A job's results, in memory that all ranks share; written by rank 0. */
struct result {
	struct cost by_groups[LIST_MOST];
	struct cost freed;  /* after all groups were freed */
	struct cost grown;  /* by making and freeing `churn` of them */
	bool is_done;
};

static const char *const transport_names[] = {"shm", "tcp"};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "cost_bench: %s\n", what);
	exit(2);
}

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	die(error.text);
}

/* ---- looking at oneself ---- */

static int64_t status_kib(const char *name)
{
	char line[256];
	int64_t found = 0;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, strlen(name)) == 0)
			found = strtoll(line + strlen(name), NULL, 10);
	}
	if (file)
		fclose(file);
	return found;
}

/* Is it memory that this process has made? The first one is; the others came from neighbours. */
static bool is_own_memory(const char *path, ino_t *first)
{
	char target[64] = "";
	struct stat about;

	if (readlink(path, target, sizeof(target) - 1) < 0 || strncmp(target, "/memfd:espalier", 15) != 0 || stat(path, &about) != 0)
		return false;
	if (*first != 0)
		return false;
	*first = about.st_ino;
	return true;
}

static struct cost look(void)
{
	struct cost cost = {.private_kib = status_kib("RssAnon:"), .mapped_kib = status_kib("RssShmem:")};
	DIR *folder = opendir("/proc/self/fd");
	ino_t first = 0;

	if (!folder)
		die("cannot look at /proc/self/fd");
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[300];
		struct stat about;

		if (entry->d_name[0] == '.')
			continue;
		cost.descriptors++;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (is_own_memory(path, &first) && stat(path, &about) == 0)
			cost.shared_kib = (int64_t)about.st_blocks / 2;
	}
	closedir(folder);
	cost.descriptors--; /* the folder's own */
	return cost;
}

/* The most of all ranks; what was open before the library came does not count. */
static struct cost look_everywhere(struct esp_group *world, const struct cost *before)
{
	struct cost mine = look(), most;

	mine.descriptors -= before->descriptors;
	must(esp_allreduce(world, &mine, &most, COST_FIELDS, ESP_I64, ESP_MAX));
	return most;
}

/* ---- a rank ---- */

static void use(struct esp_group *group, int32_t *data, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		data[i] = 1;
	must(esp_allreduce(group, data, data, count, ESP_I32, ESP_SUM));
	for (uint64_t i = 0; i < count; i++) {
		if (data[i] != (int32_t)esp_size(group))
			die("a wrong sum");
	}
}

static struct esp_group *make(struct esp_group *world, int32_t *data)
{
	uint32_t places[64];
	struct esp_group *group;

	for (uint32_t i = 0; i < esp_size(world); i++)
		places[i] = i;
	must(esp_group_create(world, places, esp_size(world), &group));
	use(group, data, 100);
	return group;
}

static struct cost churn(struct esp_group *world, uint32_t count, int32_t *data, const struct cost *before)
{
	struct cost warm = {0};

	for (uint32_t i = 0; i < WARM_UP + count; i++) {
		if (i == WARM_UP)
			warm = look_everywhere(world, before);
		must(esp_group_free(make(world, data)));
	}
	struct cost after = look_everywhere(world, before);
	return (struct cost){after.descriptors - warm.descriptors, after.private_kib - warm.private_kib,
	                     after.mapped_kib - warm.mapped_kib, after.shared_kib - warm.shared_kib};
}

static void be_rank(const struct options *options, const char *transport, uint32_t rank, uint32_t size, const char *leader,
                    struct result *result)
{
	enum { LARGE = 1 << 18 };
	char setting[40];
	const char *settings[] = {setting, "log=error", NULL};
	struct esp_options how = ESP_OPTIONS_INIT;
	struct esp_context *job;
	struct cost before = look();
	int32_t *data = malloc(LARGE * sizeof(*data));
	uint32_t most = options->groups.values[options->groups.count - 1], made = 1;
	struct esp_group **groups = calloc(most, sizeof(struct esp_group *));
	struct result mine = {0};

	if (!data || !groups)
		die("no memory");
	snprintf(setting, sizeof(setting), "transport=%s", transport);
	how.rank = rank;
	how.size = size;
	how.leader = leader;
	how.settings = settings;
	must(esp_init(&how, &job));
	struct esp_group *world = esp_world(job);
	use(world, data, LARGE); /* everybody talks to everybody */
	must(esp_alltoall(world, data, data + LARGE / 2, LARGE / 2 / size, ESP_I32));
	for (uint32_t i = 0; i < options->groups.count; i++) {
		for (; made < options->groups.values[i]; made++)
			groups[made] = make(world, data);
		mine.by_groups[i] = look_everywhere(world, &before);
	}
	while (--made > 0)
		must(esp_group_free(groups[made]));
	mine.freed = look_everywhere(world, &before);
	mine.grown = churn(world, options->churn, data, &before);
	must(esp_fini(job));
	mine.is_done = true;
	if (rank == 0)
		*result = mine;
	free(groups);
	free(data);
}

/* ---- jobs ---- */

/* Not one that the system gives to whoever asks for any: another process may have it before rank 0 listens. */
static void find_port(char leader[32])
{
	for (int tries = 0; tries < 100; tries++) {
		uint16_t port = 0;

		if (getrandom(&port, sizeof(port), 0) != (ssize_t)sizeof(port))
			continue;
		port = (uint16_t)(20000 + port % 10000);
		struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			break;
		bool is_free = bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0;
		close(fd);
		if (is_free) {
			snprintf(leader, 32, "127.0.0.1:%u", port);
			return;
		}
	}
	die("no port");
}

static void run_job(const struct options *options, const char *transport, uint32_t size, struct result *out)
{
	struct result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char leader[32];
	int status, worst = 0;

	if (shared == MAP_FAILED)
		die("no memory");
	find_port(leader);
	fflush(NULL);
	for (uint32_t i = 0; i < size; i++) {
		pid_t child = fork();

		if (child < 0)
			die("no process");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be_rank(options, transport, i, size, leader, shared);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		worst |= status;
	if (worst != 0 || !shared->is_done)
		die("a rank has failed");
	*out = *shared;
	munmap(shared, sizeof(*shared));
}

/* ---- results ---- */

static int64_t allowed(uint32_t ranks)
{
	return 32 + 4 * ((int64_t)ranks - 1);
}

struct sink {
	struct table table;
	struct json json;
	bool is_json, is_bad;
};

static void put(struct sink *sink, const char *transport, uint32_t ranks, const char *what, const struct cost *cost, bool is_bad)
{
	sink->is_bad = sink->is_bad || is_bad;
	if (!sink->is_json) {
		table_cell(&sink->table, "%s", transport);
		table_cell(&sink->table, "%u", ranks);
		table_cell(&sink->table, "%s", what);
		table_cell(&sink->table, "%" PRId64, cost->descriptors);
		table_cell(&sink->table, "%" PRId64, allowed(ranks));
		table_cell(&sink->table, "%.1f", (double)cost->private_kib / 1024);
		table_cell(&sink->table, "%.1f", (double)cost->mapped_kib / 1024);
		table_cell(&sink->table, "%.1f", (double)cost->shared_kib / 1024);
		table_cell(&sink->table, "%s", is_bad ? "too much" : "");
		return;
	}
	json_object_begin(&sink->json);
	json_put_string(&sink->json, "transport", transport);
	json_put_u64(&sink->json, "ranks", ranks);
	json_put_string(&sink->json, "what", what);
	json_put_i64(&sink->json, "descriptors", cost->descriptors);
	json_put_i64(&sink->json, "descriptors_allowed", allowed(ranks));
	json_put_i64(&sink->json, "private_kib", cost->private_kib);
	json_put_i64(&sink->json, "mapped_kib", cost->mapped_kib);
	json_put_i64(&sink->json, "shared_kib", cost->shared_kib);
	json_put_bool(&sink->json, "too_much", is_bad);
	json_object_end(&sink->json);
}

static void report(struct sink *sink, const struct options *options, const char *transport, uint32_t ranks, const struct result *result)
{
	char what[64];
	int64_t most = 0; /* connections come when they are first needed: with the first group, or with the last */

	for (uint32_t i = 0; i < options->groups.count; i++) {
		most = result->by_groups[i].descriptors > most ? result->by_groups[i].descriptors : most;
		snprintf(what, sizeof(what), "%u group%s", options->groups.values[i], options->groups.values[i] == 1 ? "" : "s");
		put(sink, transport, ranks, what, &result->by_groups[i], result->by_groups[i].descriptors > allowed(ranks));
	}
	put(sink, transport, ranks, "all freed", &result->freed, result->freed.descriptors > most);
	snprintf(what, sizeof(what), "growth by %u more", options->churn);
	put(sink, transport, ranks, what, &result->grown, result->grown.descriptors > 0 || result->grown.private_kib > GROWTH_MOST_KIB ||
	                                                      result->grown.shared_kib > GROWTH_MOST_KIB);
}

/* ---- options ---- */

static void parse_list(const char *option, char *text, uint32_t least, uint32_t most, struct list *out)
{
	char *rest = NULL;

	out->count = 0;
	for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		uint64_t value;

		if (!number_parse_u64(word, strlen(word), &value) || value < least || value > most || out->count == LIST_MOST ||
		    (out->count > 0 && value <= out->values[out->count - 1])) {
			fprintf(stderr, "cost_bench: %s takes up to %u growing numbers from %u to %u\n", option, LIST_MOST, least, most);
			exit(2);
		}
		out->values[out->count++] = (uint32_t)value;
	}
}

static void set_option(struct options *options, int option, char *value)
{
	struct list churn;

	switch (option) {
	case 'r':
		parse_list("--ranks", value, 2, 64, &options->ranks);
		break;
	case 'g':
		parse_list("--groups", value, 1, 10000, &options->groups);
		break;
	case 't':
		options->transports[0] = strcmp(value, "tcp") != 0;
		options->transports[1] = strcmp(value, "shm") != 0;
		if (options->transports[0] && options->transports[1] && strcmp(value, "shm,tcp") != 0)
			die("--transport takes shm, tcp or shm,tcp");
		break;
	case 'c':
		parse_list("--churn", value, 1, 1000000, &churn);
		options->churn = churn.count ? churn.values[0] : 1;
		break;
	case 'j':
		options->json = true;
		break;
	default:
		fputs("usage: cost_bench [--ranks LIST] [--transport shm|tcp|shm,tcp] [--groups LIST] [--churn N] [--json]\n",
		      option == 'h' ? stdout : stderr);
		exit(option == 'h' ? 0 : 2);
	}
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"ranks", required_argument, NULL, 'r'}, {"transport", required_argument, NULL, 't'}, {"groups", required_argument, NULL, 'g'},
		{"churn", required_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'},            {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static const char *const headers[] = {"transport",   "ranks",      "holds",      "descriptors", "allowed",
	                                      "private MiB", "mapped MiB", "shared MiB", "",            NULL};
	struct options options = {
		.ranks = {{2, 4, 8, 16}, 4}, .groups = {{1, 10, 100, 1000}, 4}, .transports = {true, true}, .churn = 1000};
	struct sink sink = {0};

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;)
		set_option(&options, c, optarg);
	if (optind < argc || options.ranks.count == 0 || options.groups.count == 0)
		set_option(&options, '?', NULL);
	sink.is_json = options.json;
	table_init(&sink.table, headers);
	json_init(&sink.json, stdout);
	if (options.json)
		json_array_begin(&sink.json);
	for (uint32_t t = 0; t < 2; t++) {
		for (uint32_t i = 0; options.transports[t] && i < options.ranks.count; i++) {
			struct result result;

			run_job(&options, transport_names[t], options.ranks.values[i], &result);
			report(&sink, &options, transport_names[t], options.ranks.values[i], &result);
		}
	}
	if (options.json)
		json_array_end(&sink.json);
	enum esp_status status = options.json ? json_fini(&sink.json) : table_print(&sink.table, stdout);
	table_fini(&sink.table);
	return sink.is_bad || status != ESP_OK;
}
