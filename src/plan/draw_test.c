#include "plan/draw.h"

#include "base/check.h"
#include "plan/draw_scene.h"
#include "plan/text.h"

static struct plan *make(const char *name, uint32_t workers, enum plan_collective collective, uint64_t chunk_count,
                         const uint32_t *group_of)
{
	struct plan_spec spec = {
		.chunks =
			{
				.collective = collective,
				.workers = workers,
				.bytes = collective == PLAN_BARRIER ? 0 : chunk_count,
				.chunk_bytes = 1,
			},
		.group_of = group_of,
	};
	struct plan *plan = NULL;
	struct error err = {0};

	CHECK_MSG(plan_open(plan_planner_find(name), &spec, &plan, &err) == ESP_OK, "%s: %s", name, err.text);
	return plan;
}

static enum esp_status draw(const struct plan *plan, uint64_t chunk, char **out_text, struct error *err)
{
	size_t length;
	FILE *file = open_memstream(out_text, &length);

	CHECK(file != NULL);
	enum esp_status status = plan_draw(plan, chunk, file, err);
	fclose(file);
	return status;
}

/* ---- the scene ---- */

/* After a chunk's last round all its receivers have all of it, and before the first only their own. */
static void check_scene(const struct plan *plan, uint64_t chunk)
{
	struct draw_scene scene;
	struct error err = {0};

	CHECK_MSG(plan_draw_scene_init(&scene, plan, chunk, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(scene.message_count, scene.report.messages);
	for (uint32_t c = 0; c < scene.chunk_count; c++) {
		struct plan_piece piece = plan_draw_scene_piece(&scene, c);
		uint64_t whole = plan_draw_scene_whole(&scene, c);

		for (uint32_t node = 0; node < plan->nodes; node++) {
			uint64_t own = piece_gives(&plan->chunks, &piece, node) ? (uint64_t)1 << node : 0;

			CHECK_U64(plan_draw_scene_held(&scene, 0, c, node), own);
			if (piece_wants(&plan->chunks, &piece, node))
				CHECK_U64(plan_draw_scene_held(&scene, scene.report.rounds, c, node), whole);
		}
	}
	plan_draw_scene_fini(&scene);
}

static void test_scenes(void)
{
	for (unsigned p = 0; plan_planner(p); p++) {
		for (unsigned collective = 0; collective < PLAN_COLLECTIVE_COUNT; collective++) {
			for (uint32_t workers = 1; workers <= 4; workers++) {
				const uint32_t group_of[] = {0, 0, 1, 1};
				struct plan *plan =
					make(plan_planner_name(plan_planner(p)), workers, (enum plan_collective)collective, 1, group_of);

				check_scene(plan, DRAW_ALL_CHUNKS);
				check_scene(plan, 0);
				plan_close(plan);
			}
		}
	}
}

/* A final message never carries less than everything, and others never more than a part. */
static void test_finals(void)
{
	struct plan *plan = make("halving-doubling", 7, PLAN_ALLREDUCE, 7, NULL);
	struct draw_scene scene;
	struct error err = {0};

	CHECK(plan_draw_scene_init(&scene, plan, DRAW_ALL_CHUNKS, &err) == ESP_OK);
	for (uint32_t i = 0; i < scene.message_count; i++) {
		const struct draw_message *message = &scene.messages[i];

		CHECK(message->final == (message->carried == plan_draw_scene_whole(&scene, message->chunk)));
	}
	plan_draw_scene_fini(&scene);
	plan_close(plan);
}

static struct plan *read_plan(const char *text)
{
	struct plan *plan;
	struct error err = {0};

	CHECK_MSG(plan_parse(text, strlen(text), &plan, &err) == ESP_OK, "%s", err.text);
	return plan;
}

/*
 * Contributions that have come in but were not asked for are not in the next message: node 1 passes on its own part
 * alone.
 */
static void test_cargo(void)
{
	struct plan *plan = read_plan("espalier-plan 1\n"
	                              "planner flat\n"
	                              "collective allreduce\n"
	                              "nodes 3\n"
	                              "in-place yes\n"
	                              "input 8*3\n"
	                              "output 8*3\n"
	                              "chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
	                              "  0: fetch; send in > 1; recv= out < 2; deliver\n"
	                              "  1: fetch; recv= tmp0 < 0; send in > 2; send tmp0 > 2; recv= out < 2; deliver\n"
	                              "  2: fetch; recv+ out < in 1 1; update out; send out > 0 1; deliver\n"
	                              "end\n");
	struct draw_scene scene;
	struct error err = {0};
	uint64_t to_owner = 0;

	CHECK_MSG(plan_draw_scene_init(&scene, plan, 0, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(scene.message_count, 5);
	CHECK_U64(scene.messages[0].carried, 1);
	for (uint32_t i = 1; i <= 2; i++) {
		CHECK(scene.messages[i].carried == 1 || scene.messages[i].carried == 2);
		to_owner += scene.messages[i].carried;
	}
	CHECK_U64(to_owner, 3);
	CHECK_U64(scene.messages[3].carried, 7);
	CHECK_U64(plan_draw_scene_held(&scene, 1, 0, 1), 3);
	plan_draw_scene_fini(&scene);
	plan_close(plan);
}

/* ---- the picture ---- */

static unsigned occurrences(const char *text, const char *what)
{
	unsigned count = 0;

	for (; (text = strstr(text, what)); text++)
		count++;
	return count;
}

static void test_picture(void)
{
	const uint32_t group_of[] = {0, 0, 1, 1};
	struct plan *plan = make("two-level", 4, PLAN_ALLREDUCE, 4, group_of);
	struct error err = {0};
	char *first, *second;

	CHECK(draw(plan, DRAW_ALL_CHUNKS, &first, &err) == ESP_OK);
	CHECK(draw(plan, DRAW_ALL_CHUNKS, &second, &err) == ESP_OK);
	CHECK_STR(first, second);
	CHECK(strstr(first, "two-level allreduce, 4 nodes</text>"));
	CHECK(strstr(first, "4 rounds · 24 messages · 4 chunks · 24 on the wire · 8 between groups</text>"));
	CHECK_U64(occurrences(first, "class=\"node\""), 4);
	CHECK_U64(occurrences(first, "class=\"group\""), 2);
	CHECK_U64(occurrences(first, "class=\"round\""), 4);
	free(first);
	free(second);
	plan_close(plan);
}

/* Every arrow is in it: a head each, besides those of the legend. */
static void test_arrows(void)
{
	struct plan *plan = make("ring", 5, PLAN_ALLREDUCE, 5, NULL);
	struct error err = {0};
	char *text;
	unsigned heads = 0;

	CHECK(draw(plan, DRAW_ALL_CHUNKS, &text, &err) == ESP_OK);
	/* A head is the one closed shape that is made of L: count z that follow two of them. */
	for (const char *at = text; (at = strchr(at, 'M')); at++) {
		const char *end = at + strcspn(at + 1, "Mz\"") + 1;
		unsigned lines = 0;

		for (const char *c = at; c < end; c++)
			lines += *c == 'L';
		heads += lines == 2 && *end == 'z';
	}
	CHECK_U64(heads, 5 * 2 * 4 + 2);
	free(text);
	plan_close(plan);
}

/* ---- refusals ---- */

static void check_refused(const struct plan *plan, uint64_t chunk, enum esp_status status, const char *reason)
{
	struct error err = {0};
	char *text;

	CHECK(draw(plan, chunk, &text, &err) == status);
	CHECK_MSG(strstr(err.text, reason), "\"%s\" does not say \"%s\"", err.text, reason);
	CHECK_STR(text, "");
	free(text);
}

static void test_limits(void)
{
	struct plan *many_nodes = make("ring", DRAW_WORKERS_MAX + 1, PLAN_ALLREDUCE, 1, NULL);
	struct plan *many_chunks = make("ring", 4, PLAN_ALLREDUCE, DRAW_CHUNKS_MAX + 1, NULL);
	struct plan *largest = make("ring", DRAW_WORKERS_MAX, PLAN_ALLREDUCE, DRAW_CHUNKS_MAX, NULL);
	struct error err = {0};
	char *text;

	check_refused(many_nodes, DRAW_ALL_CHUNKS, ESP_ELIMIT, "33 nodes are too many");
	check_refused(many_nodes, 0, ESP_ELIMIT, "33 nodes are too many");
	check_refused(many_chunks, DRAW_ALL_CHUNKS, ESP_ELIMIT, "--chunk");
	check_refused(many_chunks, DRAW_CHUNKS_MAX + 1, ESP_EINVAL, "there is no chunk 17");
	CHECK(draw(many_chunks, DRAW_CHUNKS_MAX, &text, &err) == ESP_OK);
	CHECK(strstr(text, "chunk 16 of 17"));
	free(text);
	CHECK(draw(largest, DRAW_ALL_CHUNKS, &text, &err) == ESP_OK);
	free(text);
	plan_close(many_nodes);
	plan_close(many_chunks);
	plan_close(largest);
}

/* A plan that does not compute the sum has no picture. */
static void test_wrong_plan(void)
{
	struct plan *plan = read_plan("espalier-plan 1\n"
	                              "planner ring\n"
	                              "collective allreduce\n"
	                              "nodes 2\n"
	                              "input 8*2\n"
	                              "output 8*2\n"
	                              "chunk 0: 8 bytes, in+0, out+0, from *, to *\n"
	                              "  0: fetch; send in > 1; recv= out < 1; deliver\n"
	                              "  1: fetch; send in > 0; recv= out < 0; deliver\n"
	                              "end\n");

	check_refused(plan, DRAW_ALL_CHUNKS, ESP_EPLAN, "");
	plan_close(plan);
}

int main(void)
{
	test_scenes();
	test_finals();
	test_cargo();
	test_picture();
	test_arrows();
	test_limits();
	test_wrong_plan();
	return 0;
}
