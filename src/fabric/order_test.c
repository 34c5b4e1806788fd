/*
 * Orders: figure 5, ties, updates that wait; random batches by a checker that knows the rules and not the algorithm;
 * and all orders of up to five updates.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "fabric/order.h"

#define MBIT UINT64_C(125000)
#define MOST 64u
#define LINKS (MOST + 1) /* one of each worker, and the hub's */
#define PARTS_MOST 4096u

static struct calendar *open_calendar(void)
{
	struct calendar *calendar;

	CHECK(calendar_open(LINKS, 4096, 256, &calendar, NULL) == ESP_OK);
	return calendar;
}

static struct order_update update(uint32_t worker, uint64_t bytes, int64_t deadline)
{
	return (struct order_update){.path = {2, {worker, MOST}}, .bytes = bytes, .deadline = deadline};
}

/* g1 behind 10 Mbit/s takes 10 s and has deadline 1; g2 takes 1.1 s beside it: g1 is dropped, and g2 takes 1.0 s. */
static void test_figure_5(void)
{
	struct calendar *calendar = open_calendar();
	struct order_update updates[] = {update(0, 100 * MBIT, 1), update(1, 100 * MBIT, 5)};
	struct calendar_span span;

	CHECK(calendar_set_rate(calendar, 0, 0, 10 * MBIT) && calendar_set_rate(calendar, 1, 0, 100 * MBIT) &&
	      calendar_set_rate(calendar, MOST, 0, 100 * MBIT));
	CHECK_U64(calendar_fit(calendar, &updates[0].path, 0, updates[0].bytes), 10 * NS_PER_S);
	uint64_t mark = calendar_mark(calendar);
	CHECK(calendar_take(calendar, &updates[0].path, 0, updates[0].bytes, &span) != CALENDAR_NONE);
	CHECK_U64(calendar_fit(calendar, &updates[1].path, 0, updates[1].bytes) / NS_PER_MS, 1111);
	calendar_rollback(calendar, mark);
	CHECK_U64(order_run(calendar, updates, 2), 1);
	CHECK(updates[0].fate == ORDER_OVERTAKEN && updates[1].fate == ORDER_SENT && updates[1].place == 1);
	CHECK_U64(updates[1].span.end, NS_PER_S);
	calendar_close(calendar);
}

static void test_rules(void)
{
	struct calendar *calendar = open_calendar();
	struct order_update crowd[] = {update(0, 30, 1), update(1, 10, 1), update(2, 20, 1), update(3, 5, 0),
	                               update(4, 5, 9)};
	struct order_update waits[] = {update(0, 30, 9), update(1, 10, 9), update(2, 20, 9)};
	struct order_update tied[] = {update(0, 30, 2), update(1, 20, 2), update(2, 10, 9)};

	for (uint32_t link = 0; link < LINKS; link++)
		CHECK(calendar_set_rate(calendar, link, 0, 1000));
	CHECK_U64(order_run(calendar, crowd, 5), 2);
	CHECK(crowd[0].fate == ORDER_CROWDED && crowd[2].fate == ORDER_CROWDED && crowd[3].fate == ORDER_LATE);
	CHECK(crowd[1].place == 1 && crowd[1].is_forced && crowd[4].place == 2);
	waits[0].has_waited = true;
	CHECK_U64(order_run(calendar, waits, 3), 3);
	CHECK(waits[0].place == 1 && waits[1].place == 2 && waits[2].place == 3);
	CHECK_U64(order_run(calendar, tied, 3), 3);
	CHECK(tied[1].place == 1 && tied[0].place == 2 && tied[2].place == 3);
	CHECK_U64(order_deadline(7, 5, 10), 2);
	CHECK(order_deadline(0, 5, 10) == -5);
	calendar_close(calendar);
}

/* ---- random batches ---- */

struct counts {
	uint64_t batches, sent, late, crowded, overtaken, forced, waited;
	uint64_t with_drop, with_forced, with_change;
};

static struct order_update updates[MOST];

static void draw_rates(struct calendar *calendar, struct rng *rng, struct counts *counts)
{
	bool changes = false;

	for (uint32_t link = 0; link < LINKS; link++) {
		uint64_t change = rng_below(rng, 8) * 100 * NS_PER_MS;

		CHECK(calendar_set_rate(calendar, link, 0, (rng_below(rng, 10) + 1) * 100 * MBIT));
		if (rng_chance(rng, 1, 4)) {
			CHECK(calendar_set_rate(calendar, link, change, (rng_below(rng, 10) + 1) * 100 * MBIT));
			changes = true;
		}
	}
	counts->with_change += changes;
}

static uint32_t draw_batch(struct rng *rng, uint32_t most)
{
	uint32_t count = (uint32_t)rng_below(rng, most) + 1;

	for (uint32_t i = 0; i < count; i++) {
		updates[i] = update(i, (rng_below(rng, 64) + 1) * 100 * MBIT / 8, (int64_t)rng_below(rng, 2 * count) + 1);
		updates[i].from = rng_chance(rng, 1, 4) ? rng_below(rng, 500) * NS_PER_MS : 0;
		updates[i].has_waited = rng_chance(rng, 1, 16);
	}
	return count;
}

/* No link carries more than its rate at any time at which a part begins. */
static void check_capacity(const struct calendar *calendar, uint32_t count)
{
	static struct { struct calendar_part part; uint32_t worker; } parts[PARTS_MOST];
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = 0;

		if (updates[i].fate != ORDER_SENT)
			continue;
		for (uint32_t at = 0; calendar_part(calendar, updates[i].booking, &at, &parts[n].part); n++) {
			const struct calendar_part *part = &parts[n].part;

			CHECK(n + 1 < PARTS_MOST && part->from >= updates[i].from && part->to <= updates[i].span.end);
			CHECK(part->rate <= calendar_rate(calendar, i, part->from));
			bytes += (uint64_t)((unsigned __int128)part->rate * (part->to - part->from) / NS_PER_S) + 1;
			parts[n].worker = i;
		}
		CHECK_MSG(bytes >= updates[i].bytes, "update %u: %" PRIu64 " of %" PRIu64 " bytes are booked", i, bytes,
		          updates[i].bytes);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t all = 0, at = parts[i].part.from;

		for (uint32_t j = 0; j < n; j++)
			all += parts[j].part.from <= at && at < parts[j].part.to ? parts[j].part.rate : 0;
		CHECK_MSG(all <= calendar_rate(calendar, MOST, at), "the hub's link carries %" PRIu64 " of %" PRIu64, all,
		          calendar_rate(calendar, MOST, at));
	}
}

static uint32_t at_place(uint32_t count, uint32_t place)
{
	for (uint32_t i = 0; i < count; i++) {
		if (updates[i].fate == ORDER_SENT && updates[i].place == place)
			return i;
	}
	CHECK(false && "each place is taken once");
	return 0;
}

/* Undecided at this place: sent there or later. */
static bool is_rest(uint32_t i, uint32_t place)
{
	return updates[i].fate == ORDER_SENT && updates[i].place >= place;
}

/* An update that was dropped as it would hold up others: some other one would have been there before it. */
static void check_overtaken(struct calendar *fresh, uint32_t count, uint32_t place)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct order_update *own = &updates[i];
		uint64_t mark = calendar_mark(fresh);
		struct calendar_span span;
		bool is_overtaken = false;

		if (own->fate != ORDER_OVERTAKEN || own->place != place)
			continue;
		CHECK(own->is_forced && calendar_take(fresh, &own->path, own->from, own->bytes, &span) != CALENDAR_NONE);
		for (uint32_t j = 0; j < count; j++) {
			const struct order_update *other = &updates[j];

			if (j != i && (is_rest(j, place) || (other->fate == ORDER_OVERTAKEN && other->place >= place)))
				is_overtaken |= calendar_fit(fresh, &other->path, other->from, other->bytes) < span.end;
		}
		CHECK_MSG(is_overtaken, "update %u was dropped and would hold up no other", i);
		calendar_rollback(fresh, mark);
	}
}

/*
 * Replays the order on a fresh calendar. A pick that deadlines do not force is there before all others that were sent
 * later and have waited as long; a forced one is due with so many others that one of them has to be next.
 */
static void check_order(struct calendar *fresh, uint32_t count, uint32_t sent)
{
	for (uint32_t place = 1; place <= sent; place++) {
		uint32_t picked = at_place(count, place);
		const struct order_update *own = &updates[picked];
		uint64_t end = calendar_fit(fresh, &own->path, own->from, own->bytes);
		struct calendar_span span;

		check_overtaken(fresh, count, place);
		CHECK_MSG(own->deadline >= place, "update %u with deadline %" PRId64 " is at place %u", picked, own->deadline,
		          place);
		CHECK_U64(own->span.end, end);
		for (uint32_t i = 0; i < count; i++) {
			const struct order_update *other = &updates[i];

			if (own->is_forced || i == picked || !is_rest(i, place) || (own->has_waited && !other->has_waited))
				continue;
			CHECK_MSG(!other->has_waited || own->has_waited, "update %u has waited and is behind %u", i, picked);
			CHECK_MSG(end <= calendar_fit(fresh, &other->path, other->from, other->bytes),
			          "update %u would be there before %u at place %u", i, picked, place);
		}
		CHECK(calendar_take(fresh, &own->path, own->from, own->bytes, &span) != CALENDAR_NONE);
	}
}

/* Fewest updates that any order has to leave out: those that are over as deadlines go up. */
static uint32_t fewest_drops(uint32_t count)
{
	uint32_t due[2 * MOST + 1] = {0}, kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (updates[i].deadline >= 1)
			due[updates[i].deadline < 2 * MOST ? updates[i].deadline : 2 * MOST]++;
	}
	for (uint32_t m = 1; m <= 2 * MOST; m++)
		kept = kept + due[m] < m ? kept + due[m] : m;
	return count - kept;
}

static void count_fates(struct counts *counts, uint32_t count)
{
	uint32_t fates[ORDER_UNBOOKED + 1] = {0}, forced = 0;

	for (uint32_t i = 0; i < count; i++) {
		fates[updates[i].fate]++;
		forced += updates[i].fate == ORDER_SENT && updates[i].is_forced;
		counts->waited += updates[i].fate == ORDER_SENT && updates[i].has_waited;
	}
	CHECK_U64(fates[ORDER_UNBOOKED], 0);
	CHECK_U64(fates[ORDER_LATE] + fates[ORDER_CROWDED], fewest_drops(count));
	counts->batches++;
	counts->sent += fates[ORDER_SENT];
	counts->late += fates[ORDER_LATE];
	counts->crowded += fates[ORDER_CROWDED];
	counts->overtaken += fates[ORDER_OVERTAKEN];
	counts->forced += forced;
	counts->with_forced += forced > 0;
	counts->with_drop += fates[ORDER_SENT] < count;
}

static void play(uint64_t seed, struct calendar *calendar, struct calendar *fresh, struct counts *counts)
{
	struct rng rng, again;

	rng_init(&rng, seed);
	again = rng;
	draw_rates(calendar, &rng, counts);
	draw_rates(fresh, &again, &(struct counts){0});
	uint32_t count = draw_batch(&rng, MOST), sent = order_run(calendar, updates, count);
	count_fates(counts, count);
	check_capacity(calendar, count);
	check_order(fresh, count, sent);
	calendar_rollback(calendar, 0);
	calendar_rollback(fresh, 0);
}

/* ---- all orders of small batches ---- */

struct search {
	struct calendar *calendar;
	uint32_t count, most;  /* the most that any order sends */
	uint64_t best;         /* the least sum of completion times of an order that sends so many */
	bool used[MOST];
};

static void search(struct search *all, uint32_t placed, uint64_t sum)
{
	if (placed > all->most || (placed == all->most && sum < all->best)) {
		all->most = placed;
		all->best = sum;
	}
	for (uint32_t i = 0; i < all->count; i++) {
		struct calendar_span span;
		uint64_t mark = calendar_mark(all->calendar);

		if (all->used[i] || updates[i].deadline < placed + 1 ||
		    calendar_take(all->calendar, &updates[i].path, updates[i].from, updates[i].bytes, &span) == CALENDAR_NONE)
			continue;
		all->used[i] = true;
		search(all, placed + 1, sum + span.end);
		all->used[i] = false;
		calendar_rollback(all->calendar, mark);
	}
}

struct ratios {
	double sum, worst;
	uint64_t batches, same_drops;
};

static void play_small(uint64_t seed, struct calendar *calendar, struct calendar *fresh, struct ratios *ratios)
{
	struct rng rng, again;
	struct search all = {.calendar = fresh};
	struct counts unused = {0};

	rng_init(&rng, seed);
	again = rng;
	draw_rates(calendar, &rng, &unused);
	draw_rates(fresh, &again, &unused);
	all.count = draw_batch(&rng, 5);
	uint32_t sent = order_run(calendar, updates, all.count);
	search(&all, 0, 0);
	CHECK(sent <= all.most && all.most == all.count - fewest_drops(all.count));
	ratios->batches++;
	if (sent == all.most && sent > 0) {
		uint64_t sum = 0;
		double ratio;

		for (uint32_t i = 0; i < all.count; i++)
			sum += updates[i].fate == ORDER_SENT ? updates[i].span.end : 0;
		ratio = (double)sum / (double)all.best;
		CHECK(sum >= all.best);
		ratios->same_drops++;
		ratios->sum += ratio;
		ratios->worst = ratio > ratios->worst ? ratio : ratios->worst;
	}
	calendar_rollback(calendar, 0);
	calendar_rollback(fresh, 0);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 20000);
	struct calendar *calendar = open_calendar(), *fresh = open_calendar();
	struct counts counts = {0};
	struct ratios ratios = {0};

	test_figure_5();
	test_rules();
	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed, calendar, fresh, &counts);
	printf("%" PRIu64 " batches: %" PRIu64 " sent (%" PRIu64 " by their deadline), dropped: %" PRIu64 " late, %" PRIu64
	       " crowded, %" PRIu64 " overtaken; batches with drops %" PRIu64 ", with forced picks %" PRIu64
	       ", with rates that change %" PRIu64 "\n",
	       counts.batches, counts.sent, counts.forced, counts.late, counts.crowded, counts.overtaken, counts.with_drop,
	       counts.with_forced, counts.with_change);
	for (uint64_t seed = first; seed < first + count; seed++)
		play_small(seed, calendar, fresh, &ratios);
	printf("up to 5 updates beside all orders: %" PRIu64 " batches, %" PRIu64
	       " with as few drops; sum of completion times"
	       " %.3f of the best in the mean, %.3f at worst\n",
	       ratios.batches, ratios.same_drops, ratios.sum / (double)ratios.same_drops, ratios.worst);
	calendar_close(calendar);
	calendar_close(fresh);
	return 0;
}
