/*
 * The planners still write the plans that are kept here, byte by byte.
 *
 *     golden_test DIR            compares; a difference is shown with its first line
 *     golden_test --renew DIR    writes the files anew
 *
 * A difference is not always a mistake, but it is always a decision: `make golden` renews
 * the files, and their diff belongs in the commit and in its message.
 */
#include <dirent.h>
#include <errno.h>

#include "base/check.h"
#include "plan/check.h"
#include "plan/text.h"

#define WORKERS_MAX 16u

struct golden {
	const char *planner;
	enum plan_collective collective;
	uint32_t workers;
	const char *variant; /* the end of the file's name; NULL: none */
	uint32_t root;
	uint32_t fanout;
	uint32_t servers;
	bool in_place, leaves, groups, unequal;
};

/* Besides: every planner's allreduce of 1, 2, 3, 4, 5 and 8 nodes. */
static const uint32_t allreduce_workers[] = {1, 2, 3, 4, 5, 8};
static const struct golden special[] = {
	{"ring", PLAN_ALLREDUCE, .workers = 4, .variant = "in-place", .in_place = true},
	{"halving-doubling", PLAN_ALLREDUCE, .workers = 5, .variant = "in-place", .in_place = true},
	{"butterfly", PLAN_ALLREDUCE, .workers = 6, .variant = "in-place", .in_place = true},
	{"exchange", PLAN_ALLREDUCE, .workers = 4, .variant = "in-place", .in_place = true},
	{"twin", PLAN_ALLREDUCE, .workers = 2, .variant = "in-place", .in_place = true},
	{"twin", PLAN_ALLREDUCE, .workers = 3, .variant = "in-place", .in_place = true},
	{"flat", PLAN_ALLREDUCE, .workers = 4, .variant = "in-place", .in_place = true},
	{"two-level", PLAN_ALLREDUCE, .workers = 7, .variant = "in-place", .in_place = true},
	{"tree", PLAN_ALLREDUCE, .workers = 8, .variant = "fanout-3", .fanout = 3},
	{"tree", PLAN_ALLREDUCE, .workers = 7, .variant = "leaves", .leaves = true, .fanout = 3, .groups = true},
	{"central", PLAN_ALLREDUCE, .workers = 4, .variant = "dedicated", .servers = 1, .groups = true},
	{"central", PLAN_ALLREDUCE, .workers = 4, .variant = "servers-2", .servers = 2},
	{"switch", PLAN_ALLREDUCE, .workers = 5, .variant = "servers-1-groups", .servers = 1, .groups = true},
	{"switch-sum", PLAN_REDUCE, .workers = 4, .root = 3},
	{"switch-copy", PLAN_BROADCAST, .workers = 4, .root = 3},
	{"ring-switch", PLAN_ALLREDUCE, .workers = 5, .variant = "groups", .groups = true},
	{"hub", PLAN_REDUCE, .workers = 7, .root = 4},
	{"ring", PLAN_REDUCE_SCATTER, .workers = 4},
	{"halving-doubling", PLAN_REDUCE_SCATTER, .workers = 5, .unequal = true, .variant = "unequal"},
	{"exchange", PLAN_REDUCE_SCATTER, .workers = 4, .in_place = true, .variant = "in-place"},
	{"ring", PLAN_ALLGATHER, .workers = 4},
	{"double-tree", PLAN_ALLGATHER, .workers = 5, .unequal = true, .variant = "unequal"},
	{"ring", PLAN_BROADCAST, .workers = 4, .root = 3},
	{"tree", PLAN_BROADCAST, .workers = 6, .root = 2},
	{"double-tree", PLAN_BROADCAST, .workers = 6, .root = 1},
	{"exchange", PLAN_BROADCAST, .workers = 4, .root = 2},
	{"tree", PLAN_REDUCE, .workers = 6, .root = 5, .fanout = 3},
	{"two-level", PLAN_REDUCE, .workers = 7, .root = 4},
	{"flat", PLAN_GATHER, .workers = 4, .root = 1},
	{"tree", PLAN_GATHER, .workers = 4, .variant = "leaves", .leaves = true},
	{"ring", PLAN_SCATTER, .workers = 4, .root = 2, .in_place = true, .variant = "in-place"},
	{"flat", PLAN_ALLTOALL, .workers = 3},
	{"flat", PLAN_ALLTOALL, .workers = 3, .unequal = true, .variant = "unequal"},
	{"ring", PLAN_ALLTOALL, .workers = 3},
	{"butterfly", PLAN_BARRIER, .workers = 6},
	{"twin", PLAN_BARRIER, .workers = 5},
	{"twin", PLAN_BROADCAST, .workers = 4, .root = 2},
	{"exchange", PLAN_BARRIER, .workers = 3},
	{"two-level", PLAN_BARRIER, .workers = 8},
};

#define SPECIAL_COUNT (sizeof(special) / sizeof(special[0]))
#define ALLREDUCE_SIZES (sizeof(allreduce_workers) / sizeof(allreduce_workers[0]))

/* Case number `index`; false beyond the last. */
static bool golden_case(size_t index, struct golden *out)
{
	if (index < SPECIAL_COUNT) {
		*out = special[index];
		return true;
	}
	index -= SPECIAL_COUNT;
	const struct planner *planner = plan_planner((unsigned)(index / ALLREDUCE_SIZES));
	if (!planner)
		return false;
	*out =
		(struct golden){.planner = plan_planner_name(planner), .workers = allreduce_workers[index % ALLREDUCE_SIZES]};
	return true;
}

static void golden_name(const struct golden *golden, char name[128])
{
	snprintf(name, 128, "%s-%s-%u%s%s.plan", plan_collective_name(golden->collective), golden->planner,
	         golden->workers, golden->variant ? "-" : "", golden->variant ? golden->variant : "");
}

/* ---- making ---- */

static struct plan *golden_plan(const struct golden *golden)
{
	const struct planner *planner = plan_planner_find(golden->planner);
	uint64_t counts[WORKERS_MAX * WORKERS_MAX];
	uint32_t group_of[WORKERS_MAX];
	struct plan_report report;
	struct plan *plan;
	struct error err = {0};

	CHECK_MSG(planner && golden->workers <= WORKERS_MAX, "%s", golden->planner);
	for (uint32_t i = 0; i < WORKERS_MAX * WORKERS_MAX; i++)
		counts[i] = i % 5 * 12; /* some are empty, some are cut in two */
	for (uint32_t i = 0; i < WORKERS_MAX; i++)
		group_of[i] = i / 3;
	bool blocks = golden->collective != PLAN_ALLREDUCE && golden->collective != PLAN_BROADCAST &&
	              golden->collective != PLAN_REDUCE;
	struct plan_spec spec = {
		.chunks =
			{
				.collective = golden->collective,
				.workers = golden->workers,
				.root = golden->root,
				.bytes = golden->collective == PLAN_BARRIER ? 0
	                     : blocks                           ? 24
	                                                        : 76,
				.counts = golden->unequal ? counts : NULL,
				.chunk_bytes = 36,
				.align = 8,
			},
		.in_place = golden->in_place,
		.group_of = golden->groups || plan_planner_needs_groups(planner) ? group_of : NULL,
		.fanout = golden->fanout,
		.leaves = golden->leaves,
		.servers = golden->servers,
	};
	CHECK_MSG(plan_open(planner, &spec, &plan, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(plan_check(plan, NULL, &report, NULL, &err) == ESP_OK, "%s of %s: %s",
	          plan_collective_name(golden->collective), golden->planner, err.text);
	return plan;
}

static char *golden_text(const struct golden *golden)
{
	struct plan *plan = golden_plan(golden);
	struct error err = {0};
	char *text;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	CHECK(file);
	CHECK_MSG(plan_print(plan, file, &err) == ESP_OK, "%s", err.text);
	fclose(file);
	plan_close(plan);
	return text;
}

/* ---- comparing ---- */

/* The whole file, ending in NUL; NULL if there is none. */
static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		CHECK(text = calloc(1, 1));
	}
	fclose(file);
	return text;
}

static int line_length(const char *line)
{
	return (int)strcspn(line, "\n");
}

static void show_difference(const char *path, const char *kept, const char *made)
{
	unsigned line = 1;

	while (line_length(kept) == line_length(made) && memcmp(kept, made, (size_t)line_length(kept)) == 0) {
		kept += line_length(kept) + (kept[line_length(kept)] == '\n');
		made += line_length(made) + (made[line_length(made)] == '\n');
		line++;
		if (*kept == '\0' && *made == '\0')
			break; /* they differ in the last newline */
	}
	printf("%s:%u: the plan has changed\n  kept: %.*s\n  made: %.*s\n", path, line, line_length(kept), kept,
	       line_length(made), made);
}

static bool compare(const char *path, const char *made)
{
	char *kept = read_file(path);
	bool same = kept && strcmp(kept, made) == 0;

	if (!kept)
		printf("%s: %s\n", path, strerror(errno));
	else if (!same)
		show_difference(path, kept, made);
	free(kept);
	return same;
}

static bool is_made(const char *name)
{
	struct golden golden;
	char known[128];

	for (size_t i = 0; golden_case(i, &golden); i++) {
		golden_name(&golden, known);
		if (strcmp(known, name) == 0)
			return true;
	}
	return false;
}

/* A file that no case makes any more would be compared with nothing. */
static unsigned count_strays(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned strays = 0;

	CHECK_MSG(dir, "%s: %s", folder, strerror(errno));
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		const char *dot = strrchr(entry->d_name, '.');

		if (dot && strcmp(dot, ".plan") == 0 && !is_made(entry->d_name)) {
			printf("%s/%s: no case makes this file; remove it\n", folder, entry->d_name);
			strays++;
		}
	}
	closedir(dir);
	return strays;
}

static bool renew(const char *path, const char *made)
{
	FILE *file = fopen(path, "w");
	bool good = file && fputs(made, file) >= 0;

	if (file && fclose(file) != 0)
		good = false;
	if (!good)
		printf("%s: %s\n", path, strerror(errno));
	return good;
}

int main(int argc, char **argv)
{
	bool renews = argc == 3 && strcmp(argv[1], "--renew") == 0;
	const char *folder = argv[argc - 1];
	unsigned bad = 0;
	struct golden golden;

	if (argc != 2 && !renews) {
		fprintf(stderr, "usage: golden_test [--renew] DIR\n");
		return 2;
	}
	for (size_t i = 0; golden_case(i, &golden); i++) {
		char name[128], path[4096];
		char *made = golden_text(&golden);

		golden_name(&golden, name);
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		bad += renews ? !renew(path, made) : !compare(path, made);
		free(made);
	}
	bad += count_strays(folder);
	if (bad && !renews)
		printf("if this is meant, `make golden` writes the files anew; say why in the commit\n");
	return bad > 0;
}
