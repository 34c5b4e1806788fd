/*
 * world.c - draws a world from its seed, and lets it happen.
 */
#include "wire/bytes.h"
#include "world_state.h"

static const char *const fault_names[WORLD_FAULTS] = {
	"loss", "repetition", "reordering", "late packets", "corruption", "switch restarts", "switch deaths",
	    "member deaths", "forgers", "stragglers", "few slots", "few numbers of a flow",
};

const char *world_fault_name(enum world_fault fault)
{
	return fault_names[fault];
}

#define OFF_TIME_MAX (1000 * SECOND) /* with a rule off: longer is no progress; with all rules it is less */
#define CALLS_OF_A_KILL 120u

/* ---- drawing ---- */

static uint32_t below(struct world *world, uint32_t n)
{
	return (uint32_t)rng_below(&world->rng, n);
}

static void draw_faults(struct world *world)
{
	for (int i = 0; i < WORLD_FAULTS; i++) {
		uint32_t of_8 = i == FAULT_SWITCH_DEATH || i == FAULT_MEMBER_DEATH ? 1 : i == FAULT_CORRUPT ||
		    i == FAULT_FORGER ? 2 : i == FAULT_FEW_NUMBERS ? 7 : 4;
		world->faults[i] = !world->options.is_plain && below(world, 8) < of_8;
		if (world->options.is_shut && (i == FAULT_REBOOT || i == FAULT_SWITCH_DEATH || i == FAULT_FEW_NUMBERS))
			world->faults[i] = false;
		world->totals->faults[i] += world->faults[i];
	}
	world->loss = world->faults[FAULT_LOSS] ? 1 + below(world, below(world, 4) ? 300 : 3000) : 0;
	world->repeat = world->faults[FAULT_REPEAT] ? 1 + below(world, 1000) : 0;
	world->delay = world->faults[FAULT_DELAY] ? 1 + below(world, 200) : 0;
	world->corrupt = world->faults[FAULT_CORRUPT] ? 1 + below(world, 200) : 0;
	world->mark = world->options.is_plain ? 0 : below(world, 100);
}

static void draw_groups(struct world *world, struct job *job)
{
	for (uint32_t member = 0; member < job->members; member++)
		job->group_of[member] = (uint16_t)below(world, world->switches_count);
	/* Headers name the owner's switch where it is another one. */
	for (uint16_t home = 0; home < world->switches_count; home++)
		for (uint32_t node = 0; node <= job->members; node++) {
			uint16_t owners = node < job->members ? job->group_of[node] : 0;
			job->next[home][node] = owners == home ? ATP_NO_NEXT : owners;
		}
}

/* A server follows no change of the flow number: it counts no calls. */
static void draw_numbers(struct world *world, struct job *job)
{
	bool has_few = world->faults[FAULT_FEW_NUMBERS] && !job->has_server;
	uint32_t calls = !has_few ? job->calls : below(world, 4) ? 1 : 2;

	job->per_generation = calls * job->per_call;
	job->limit = has_few ? job->per_generation + below(world, job->per_call) : SENDER_NUMBERS;
}

static void open_job(struct world *world, uint16_t number)
{
	bool is_large = world->options.is_large;
	struct job *job = &world->jobs[number];
	struct error err;

	*job = (struct job){
		.members = 4 + below(world, is_large ? WORLD_MEMBERS - 3 : 3), .calls = 3,
		.per_call = is_large ? 200 + below(world, 800) : 64 + below(world, 32), .words = 1 + below(world, WORLD_WORDS),
		.window = is_large ? 64u << below(world, 3) : 8u << below(world, 3), .has_server = below(world, 4) == 0,
		.is_two_level = below(world, 2),
	};
	bytes_put64(job->secret, rng_next(&world->rng));
	for (uint32_t i = 0; i < WORLD_GENERATIONS; i++)
		job->flows[i] = generation_flow(job->secret, i);
	if (world->options.kills)
		job->calls = world->options.kills * CALLS_OF_A_KILL;
	if (world->options.kills || world->options.is_shut) { /* as in the product: no servers */
		job->has_server = false;
	}
	draw_numbers(world, job);
	draw_groups(world, job);
	CHECK(shape_open(job->group_of, job->members, job->is_two_level ? 2 : 1, &job->shape, &err) == ESP_OK);
	for (uint16_t node = 0; node < job->members + job->has_server; node++)
		world_open_node(world, number, node);
}

static void open_switches(struct world *world)
{
	uint32_t window = world->options.is_large ? 256 : 32;

	world->slots_count = world->faults[FAULT_FEW_SLOTS] ? 1 + below(world, 16) : window * (1 + below(world, 16));
	world->limits = (struct step_limits){.age_ns = (50 + below(world, 500)) * MS, .words_max = WORLD_WORDS};
	/* Of some, slots are shorter than their welcomes say. */
	if (!world->options.is_plain && !world->options.is_shut && below(world, 8) == 0)
		world->limits.words_max = (uint16_t)(1 + below(world, WORLD_WORDS));
	for (uint16_t i = 0; i < world->switches_count; i++) {
		for (uint32_t hop = 0; hop < ATP_HOPS; hop++) {
			world->switches[i].slots[hop] = calloc(world->slots_count, sizeof(struct table_slot));
			CHECK(world->switches[i].slots[hop]);
		}
		world_reboot(world, i);
	}
}

static void post_at(struct world *world, uint64_t at, enum event_kind kind, uint32_t job, uint32_t node)
{
	world_post(world, &(struct event){.at = at, .kind = kind, .job = (uint16_t)job, .node = (uint16_t)node});
}

static void post_faults(struct world *world)
{
	uint64_t span = world->faults[FAULT_STRAGGLER] || world->faults[FAULT_LOSS] ? 500 * MS : 30 * MS;

	for (uint32_t i = 0; world->faults[FAULT_REBOOT] && i < 1 + below(world, 5); i++)
		post_at(world, rng_below(&world->rng, span), REBOOT, 0, below(world, world->switches_count));
	if (world->faults[FAULT_SWITCH_DEATH])
		post_at(world, rng_below(&world->rng, span), SWITCH_DEATH, 0, below(world, world->switches_count));
	if (world->faults[FAULT_MEMBER_DEATH])
		post_at(world, rng_below(&world->rng, span), MEMBER_DEATH, 0, below(world, world->jobs[0].members));
	if (world->faults[FAULT_FORGER])
		post_at(world, rng_below(&world->rng, MS), FORGE, 0, 0);
}

static void open_world(struct world *world, const struct world_options *options, struct world_totals *totals)
{
	*world = (struct world){.options = *options, .totals = totals, .heap = world->heap, .heap_max = world->heap_max};
	rng_init(&world->rng, options->seed);
	draw_faults(world);
	world->switches_count = options->kills || options->is_shut || options->trip_ns ? 1 : 1 + below(world, WORLD_SWITCHES);
	world->jobs_count = options->is_plain ? 1 : 1 + below(world, WORLD_JOBS);
	open_switches(world);
	for (uint16_t job = 0; job < world->jobs_count; job++) {
		open_job(world, job);
		for (uint32_t node = 0; node < WORLD_NODES; node++)
			if (world->jobs[job].nodes[node].is_there) {
				post_at(world, below(world, 1000) * US, WAKE, job, node);
				world->jobs[job].nodes[node].wake_at = 0;
				if (node < world->jobs[job].members)
					post_at(world, (options->is_plain ? 5000 + 10 * options->trip_ns / US + below(world, 100) : below(world, 2000)) * US, CALL, job,
					        node);
			}
	}
	post_faults(world);
	if (options->kills)
		world_begin_kills(world);
}

/* ---- happening ---- */

static bool has_ended(const struct job *job)
{
	for (uint32_t i = 0; i < WORLD_NODES; i++) {
		const struct node *node = &job->nodes[i];
		if (!node->is_there)
			continue;
		if ((node->is_member && !node->has_finished) || (node->owns && !owner_is_quiet(node->stream.current->owner)))
			return false;
	}
	return true;
}

/* A job with a dead member has failed, and ends; its packets may go on arriving at switches. */
static bool all_ended(struct world *world)
{
	bool all = true;

	for (uint32_t i = 0; i < world->jobs_count; i++) {
		struct job *job = &world->jobs[i];
		if (!job->is_over && (job->has_failed || has_ended(job))) {
			job->is_over = true;
			if ((double)world->now / 1e9 > world->totals->longest_s)
				world->totals->longest_s = (double)world->now / 1e9;
		}
		all = all && job->is_over;
	}
	return all;
}

static void at_node(struct world *world, const struct event *event)
{
	struct job *job = &world->jobs[event->job];
	struct node *node = event->node < WORLD_NODES ? &job->nodes[event->node] : NULL;

	if (!node || !node->is_there || node->is_dead || job->has_failed)
		return;
	if (event->kind == WAKE) {
		if (event->at < node->wake_at)
			return; /* another one has come before, and set a later one */
		node->wake_at = UINT64_MAX;
	}
	if (event->kind == TO_NODE)
		world_at_node(world, node, &event->datagram);
	else if (event->kind == CALL)
		world_call(world, node);
	else if (event->kind == LINGER)
		world_linger(world, node);
	world_pump(world, node);
}

static void happen(struct world *world, const struct event *event)
{
	switch (event->kind) {
	case TO_SWITCH: world_at_switch(world, event); break;
	case REBOOT: world_reboot(world, event->node); break;
	case SWITCH_DEATH: world->switches[event->node].is_dead = true; break;
	case FORGE: world_forge(world); break;
	case MEMBER_DEATH:
		world->jobs[0].nodes[event->node].is_dead = true;
		/* Its peers notice a little later, and the job has failed. */
		if (world->jobs[0].is_over)
			break;
		world->jobs[0].has_failed = true;
		world->totals->failed_jobs++;
		break;
	case KILL:
	case START:
	case SHARE: world_kill(world, event); break;
	default: at_node(world, event);
	}
}

static void describe_hang(const struct world *world)
{
	for (uint32_t i = 0; i < world->jobs_count; i++)
		for (uint32_t k = 0; k < WORLD_NODES; k++) {
			const struct node *node = &world->jobs[i].nodes[k];
			if (node->is_there && !world->jobs[i].is_over)
				fprintf(stderr, "job %u node %u of %u: %u of %u results, %u offered, membership %u, quiet %d\n", i, k,
				        world->jobs[i].members,
				        node->received, world_elements(&world->jobs[i]), node->offered,
				        node->stream.current->membership.state,
				        node->owns ? owner_is_quiet(node->stream.current->owner) : -1);
		}
}

static void close_world(struct world *world)
{
	for (uint32_t i = 0; i < world->jobs_count; i++) {
		for (uint32_t node = 0; node < WORLD_NODES; node++)
			if (world->jobs[i].nodes[node].is_there)
				world_close_node(world, &world->jobs[i].nodes[node]);
		shape_close(world->jobs[i].shape);
	}
	for (uint32_t i = 0; i < world->switches_count; i++)
		for (uint32_t hop = 0; hop < ATP_HOPS; hop++)
			free(world->switches[i].slots[hop]);
}

static uint64_t slots_held(const struct world *world)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < world->switches_count; i++)
		for (uint32_t slot = 0; slot < ATP_HOPS * world->slots_count; slot++)
			count += world->switches[i].slots[slot / world->slots_count][slot % world->slots_count].slot.is_used;
	return count;
}

void world_run(const struct world_options *options, struct world_totals *totals)
{
	static struct world world;
	struct event event;

	open_world(&world, options, totals);
	while (!all_ended(&world) && world_take(&world, &event)) {
		if (options->off == OFF_O2 && event.at > OFF_TIME_MAX) {
			totals->hangs++;
			break;
		}
		if (event.at > TIME_MAX)
			describe_hang(&world);
		WORLD_CHECK(&world, event.at <= TIME_MAX, "a job hangs");
		happen(&world, &event);
	}
	bool is_over = all_ended(&world) || options->off == OFF_O2;
	if (!is_over)
		describe_hang(&world);
	WORLD_CHECK(&world, is_over, "nothing happens any more, and a job is not over");
	totals->runs++;
	totals->leaked += slots_held(&world);
	close_world(&world);
}
