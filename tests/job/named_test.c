/*
 * named_test.c - a rank has joined and does not connect, as it is stopped: all others name it, also those that have nothing to do with it.
 *
 * The ranks of a host wait for each other's memory until all have come, and each knows only of some whether they are there. The time of
 * one that does not know whom it waits for is over first.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

enum { RANKS = 8, CARD_MOST = 1 << 16 };

struct trial {
	uint32_t victim;
	uint32_t helpless;         /* does not connect either, as it waits for the victim; or the victim itself */
	uint32_t hasty;            /* whose time is over before that of the others */
	const char *join_seconds;  /* of that one                                  */
	uint8_t *cards;
	pthread_barrier_t in, out; /* of the all-gather */
	pthread_barrier_t ended;
};

struct seat {
	struct trial *trial;
	uint32_t rank;
	uint32_t gathered;
	struct esp_error error;
};

static bool stands_still(const struct seat *seat)
{
	return seat->rank == seat->trial->victim || seat->rank == seat->trial->helpless;
}

static enum esp_status gather(void *argument, const void *mine, void *all, size_t bytes)
{
	struct seat *seat = argument;
	struct trial *trial = seat->trial;

	CHECK(bytes <= CARD_MOST);
	memcpy(trial->cards + seat->rank * bytes, mine, bytes);
	pthread_barrier_wait(&trial->in);
	memcpy(all, trial->cards, RANKS * bytes);
	pthread_barrier_wait(&trial->out); /* the next one may write there */
	if (!stands_still(seat) || ++seat->gathered < 2) /* a key comes first, and then the cards */
		return ESP_OK;
	pthread_barrier_wait(&trial->ended); /* it stands still until all others are through */
	return ESP_EABORTED;
}

static void *be_rank(void *argument)
{
	struct seat *seat = argument;
	const char *settings[] = {"transport=shm", seat->rank == seat->trial->hasty ? seat->trial->join_seconds : "join_seconds=600", "liveness_ms=1000",
	                          "linger_seconds=1", "log=off", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;

	options.rank = seat->rank;
	options.size = RANKS;
	options.job = "named";
	options.settings = settings;
	options.allgather = gather;
	options.allgather_context = seat;
	CHECK(esp_init(&options, &context) != ESP_OK);
	esp_last_error(&seat->error);
	if (!stands_still(seat))
		pthread_barrier_wait(&seat->trial->ended);
	return NULL;
}

/* Do all name the victim? If not, *out is what one of them says. */
static bool play(uint32_t victim, uint32_t helpless, uint32_t hasty, const char *join_seconds, struct seat *out)
{
	struct trial trial = {.victim = victim, .helpless = helpless, .hasty = hasty, .join_seconds = join_seconds, .cards = calloc(RANKS, CARD_MOST)};
	struct seat seats[RANKS];
	pthread_t threads[RANKS];
	bool all_name_it = true;

	CHECK(trial.cards);
	pthread_barrier_init(&trial.in, NULL, RANKS);
	pthread_barrier_init(&trial.out, NULL, RANKS);
	pthread_barrier_init(&trial.ended, NULL, RANKS);
	for (uint32_t i = 0; i < RANKS; i++) {
		seats[i] = (struct seat){.trial = &trial, .rank = i, .error = ESP_ERROR_INIT};
		CHECK(pthread_create(&threads[i], NULL, be_rank, &seats[i]) == 0);
	}
	for (uint32_t i = 0; i < RANKS; i++) {
		pthread_join(threads[i], NULL);
		if (stands_still(&seats[i]) || seats[i].error.rank == (int32_t)victim)
			continue;
		all_name_it = false;
		*out = seats[i];
	}
	pthread_barrier_destroy(&trial.in);
	pthread_barrier_destroy(&trial.out);
	pthread_barrier_destroy(&trial.ended);
	free(trial.cards);
	return all_name_it;
}

/* On a busy machine others may not have connected to each other either. */
static void check(uint32_t victim, uint32_t helpless, uint32_t hasty)
{
	static const char *const seconds[] = {"join_seconds=1", "join_seconds=5", "join_seconds=30"};
	struct seat seat;
	bool all_name_it = false;

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]) && !all_name_it; i++)
		all_name_it = play(victim, helpless, hasty, seconds[i], &seat);
	CHECK_MSG(all_name_it, "rank %u was stopped, the time of rank %u over first: rank %u names %d: %s", victim, hasty, seat.rank, seat.error.rank,
	          seat.error.text);
}

/* Of eight ranks, those that are three apart do not connect while they join. */
int main(void)
{
	check(0, 0, 3); /* through whom all get each other's memory */
	check(1, 1, 4);
	check(3, 3, 0);
	check(3, 3, 4); /* who knows */
	check(0, 7, 3); /* who does not get the cards of the others from rank 0 does not connect to them either */
	return 0;
}
