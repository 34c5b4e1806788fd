/*
 * returner.c - a training into which another process comes when a rank has died: espalier run -n 4 --lose 1 -- returner
 *
 * As in survivor.c every rank has the same weights, and one of them dies on the way. Those who are left go on without it, and the first
 * of them starts another process, as whoever looks after a job would do. It waits at a door of the job until it is let in, is given
 * the weights and the number of the step, and trains with the others. In the end there are as many ranks as in the beginning, with the
 * same weights.
 */
#include <espalier/espalier.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define COUNT 10000
#define STEPS 60

extern char **environ; /* NOLINT(readability-redundant-declaration): headers have it only with _GNU_SOURCE */

static double weights[COUNT], before[COUNT], gradient[COUNT], average[COUNT];

/* Where a job is, which newcomers have to be told. */
static struct {
	uint64_t step, wanted; /* wanted: so many ranks there were in the beginning */
} state;

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "returner: %s\n", error.text);
	exit(1);
}

/* On every new world, by those who were there and by those who come: all have what rank 0 has. */
static struct esp_group *begin(struct esp_context *job)
{
	struct esp_group *world = esp_world(job);

	must(esp_broadcast(world, &state, 2, ESP_U64, 0));
	must(esp_broadcast(world, weights, COUNT, ESP_F64, 0));
	return world;
}

static bool train(struct esp_group *group)
{
	for (int i = 0; i < COUNT; i++)
		gradient[i] = (double)(state.step * 7 + esp_rank(group) * 3 + (uint64_t)i % 5);
	if (esp_allreduce(group, gradient, average, COUNT, ESP_F64, ESP_AVG) != ESP_OK)
		return false;
	memcpy(before, weights, sizeof(weights));
	for (int i = 0; i < COUNT; i++)
		weights[i] -= 0.01 * average[i];
	state.step++;
	return true;
}

/* Those who are left; used: the number of the last call whose result is in the weights. */
static struct esp_group *go_on(struct esp_group *world, uint64_t used)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_group *left;

	esp_last_error(&error);
	must(esp_group_shrink(world, &shrink, &left));
	if (used > shrink.completed_everywhere) { /* a step that has ended well here, but not everywhere */
		memcpy(weights, before, sizeof(weights));
		state.step--;
	}
	if (esp_rank(left) == 0)
		printf("step %llu: %s; %u ranks go on\n", (unsigned long long)state.step, error.text, esp_size(left));
	return left;
}

/*
 * The same program once more, which has the name and the key of the job from our environment, and knows one door of it instead of a rank.
 * On other machines it is started by somebody else, who finds doors where the ranks have written them.
 */
static pid_t start_another(struct esp_context *job, char **argv)
{
	static const char *const rank_words[] = {"ESP_RANK", "ESP_SIZE", "ESP_LEADER", "ESP_LOCAL_RANK", "ESP_LOCAL_SIZE", "ESP_LAUNCHER"};
	char door[64];
	pid_t child;

	must(esp_door(job, door, sizeof(door)));
	for (size_t i = 0; i < sizeof(rank_words) / sizeof(rank_words[0]); i++)
		unsetenv(rank_words[i]);
	setenv("ESP_DOOR", door, 1);
	if (posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) != 0) {
		perror("returner: cannot start another process");
		exit(1);
	}
	return child;
}

/* It comes to its end with the others, and not before. */
static void must_live(pid_t child)
{
	if (child == 0 || waitpid(child, NULL, WNOHANG) == 0)
		return;
	fprintf(stderr, "returner: the process that was to come has ended\n");
	exit(1);
}

/* Lets in who waits: true, and *job and *group are new. */
static bool let_in(struct esp_context **job, struct esp_group **group)
{
	struct esp_context *grown;

	must(esp_grow(*group, 0, 0, &grown));
	if (!grown) /* nobody waits yet */
		return false;
	must(esp_fini(*job)); /* the weights are not its memory */
	*job = grown;
	*group = begin(grown);
	if (esp_rank(*group) == 0)
		printf("step %llu: another rank is here; %u ranks go on\n", (unsigned long long)state.step, esp_size(*group));
	return true;
}

static bool do_all_agree(struct esp_group *group)
{
	double least, most, sum = 0;

	for (int i = 0; i < COUNT; i++)
		sum += weights[i];
	must(esp_allreduce(group, &sum, &least, 1, ESP_F64, ESP_MIN));
	must(esp_allreduce(group, &sum, &most, 1, ESP_F64, ESP_MAX));
	return least == most;
}

int main(int argc, char **argv)
{
	bool is_first = getenv("ESP_DOOR") == NULL; /* was there from the beginning */
	struct esp_context *job;
	pid_t child = 0;
	int status = 0;

	(void)argc;
	must(esp_init(NULL, &job)); /* who has ESP_DOOR waits here */
	state.wanted = esp_size(esp_world(job));
	struct esp_group *group = begin(job);
	bool is_victim = is_first && esp_rank(group) == 1;
	uint64_t used = 0;
	while (state.step < STEPS || esp_size(group) < state.wanted) {
		if (is_victim && state.step == 20)
			raise(SIGKILL); /* what may happen to anybody */
		if (train(group)) {
			used = esp_group_calls(group);
		} else {
			group = go_on(group, used);
			used = 0; /* of the new group none */
			if (esp_rank(group) == 0)
				child = start_another(job, argv);
		}
		if (esp_size(group) >= state.wanted)
			continue;
		must_live(child); /* once it is in, its end is found like anybody's */
		if (let_in(&job, &group))
			used = 0; /* nor of this one, whose calls gave out what was there */
	}
	bool agree = do_all_agree(group);
	if (esp_rank(group) == 0)
		printf("%u ranks after %d steps or more, and they %s\n", esp_size(group), STEPS, agree ? "agree" : "DO NOT AGREE");
	must(esp_fini(job));
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
		return 1;
	return agree ? 0 : 1;
}
