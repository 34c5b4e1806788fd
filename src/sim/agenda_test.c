#include "sim/agenda.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define MOST 2000

struct note {
	struct agenda *agenda;
	double at;
	uint32_t number;
};

static struct note notes[MOST];
static struct note *seen[MOST];
static uint32_t seen_count;

static void see(void *user)
{
	struct note *note = user;

	CHECK(note->agenda->now == note->at);
	seen[seen_count++] = note;
}

/* Times in order; what is due together in the order in which it was put down. */
static void test_order(uint64_t seed)
{
	struct agenda agenda = {0};
	struct rng rng;

	rng_init(&rng, seed);
	seen_count = 0;
	for (uint32_t i = 0; i < MOST; i++) {
		notes[i] = (struct note){&agenda, (double)rng_below(&rng, 300) / 7, i};
		sim_agenda_at(&agenda, notes[i].at, see, &notes[i]);
	}
	CHECK(sim_agenda_run(&agenda, 20, NULL) == ESP_OK);
	CHECK(agenda.now == 20 && seen_count > 0 && seen[seen_count - 1]->at <= 20);
	CHECK(sim_agenda_run(&agenda, INFINITY, NULL) == ESP_OK);
	CHECK(seen_count == MOST);
	for (uint32_t i = 1; i < MOST; i++)
		CHECK(seen[i - 1]->at < seen[i]->at ||
		      (seen[i - 1]->at == seen[i]->at && seen[i - 1]->number < seen[i]->number));
	sim_agenda_fini(&agenda);
}

static struct agenda shared;
static char story[16];
static uint32_t story_length;

static void say(char what)
{
	story[story_length++] = what;
}

static void say_c(void *user)
{
	(void)user;
	say('c');
}

static void say_last(void *user)
{
	(void)user;
	say('l');
	sim_agenda_at(&shared, shared.now, say_c, NULL);
}

static void say_last_too(void *user)
{
	(void)user;
	say('m');
}

static void say_a(void *user)
{
	(void)user;
	say('a');
	sim_agenda_at_last(&shared, say_last, NULL);
	sim_agenda_at_last(&shared, say_last_too, NULL);
}

static void say_b(void *user)
{
	(void)user;
	say('b');
}

/*
 * The end of the instant is after all that is due now, and what it puts down for now comes before the next of its kind.
 */
static void test_last(void)
{
	sim_agenda_at(&shared, 1, say_a, NULL);
	sim_agenda_at(&shared, 1, say_b, NULL);
	sim_agenda_at(&shared, 2, say_b, NULL);
	CHECK(sim_agenda_run(&shared, INFINITY, NULL) == ESP_OK);
	CHECK_STR(story, "ablcmb");
	CHECK(shared.now == 2 && shared.happened == 6);
	sim_agenda_fini(&shared);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		test_order(seed);
	test_last();
	return 0;
}
