/*
 * Batches: random ones by each way, with a checker that knows links, deadlines and groups, and not the algorithms; each
 * rule binds in a part of them. Small ones beside every order, dropped subset and cut.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "fabric/batch.h"

#define MBIT UINT64_C(125000)
#define MOST 64u
#define HOSTS 32u
#define OUT(host) (host)
#define IN(host) (HOSTS + (host))
#define HUB_IN (2 * HOSTS)
#define LINKS (2 * HOSTS + 1)
#define PARTS_MOST 16384u
#define BATCH_NS (100 * NS_PER_MS)

enum rule {
	R_DEADLINE, R_TIE, R_CROWDED, R_OVERTAKEN, R_WAITED, R_LEFT, R_GROUP, R_GROUPS, R_OWN_HOST, R_MOVED, RULES
};
static const char *const rule_names[RULES] = {
	"next by its deadline", "equal deadlines", "crowded out", "overtaken", "waited first", "left for the next batch",
	"a group", "several groups", "two of a host", "a chain in another order"};

static struct batch_update updates[MOST];
static struct batch batch;
static struct calendar *calendar;
static uint64_t counts[3][RULES], batches[3], sent_count[3], dropped[3];

static void draw_rates(struct rng *rng)
{
	for (uint32_t link = 0; link < LINKS; link++) {
		CHECK(calendar_set_rate(calendar, link, 0, (rng_below(rng, 10) + 1) * 100 * MBIT));
		if (rng_chance(rng, 1, 4))
			CHECK(calendar_set_rate(calendar, link, rng_below(rng, 8) * 100 * NS_PER_MS,
			                        (rng_below(rng, 10) + 1) * 100 * MBIT));
	}
	CHECK(calendar_set_rate(calendar, HUB_IN, 0, 1000 * MBIT));
}

static uint32_t draw_batch(struct rng *rng)
{
	uint32_t count = (uint32_t)rng_below(rng, MOST) + 1;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t host = (uint32_t)rng_below(rng, HOSTS);

		updates[i] = (struct batch_update){.host = host, .in = IN(host), .out = OUT(host),
		                                   .bytes = (rng_below(rng, 64) + 1) * 2 * MBIT,
		                                   .deadline = (int64_t)rng_below(rng, 2 * count) + 1,
		                                   .has_waited = rng_chance(rng, 1, 16)};
	}
	return count;
}

/* ---- capacity ---- */

static struct { struct calendar_part part; uint32_t link; } parts[PARTS_MOST];
static uint32_t part_count;

static void add_parts(uint32_t booking, uint32_t link)
{
	struct calendar_part part;

	for (uint32_t at = 0; calendar_part(calendar, booking, &at, &part); part_count++) {
		CHECK(part_count < PARTS_MOST);
		parts[part_count].part = part;
		parts[part_count].link = link;
	}
}

/* The links that an update's way takes: none between workers of one host. */
static void add_way(const struct batch_update *update, enum batch_way way)
{
	uint32_t booking = way == BATCH_CHAINS ? batch.group[update->group - 1].booking : update->booking;
	const struct batch_update *next = update->next == BATCH_HUB ? NULL : &updates[update->next];

	if (booking == CALENDAR_NONE || (next && next->host == update->host)) {
		CHECK(next || way == BATCH_BUNDLES);
		return;
	}
	add_parts(booking, update->out);
	add_parts(booking, next ? next->in : HUB_IN);
}

static int by_link(const void *a, const void *b)
{
	const uint32_t *x = (const uint32_t *)((const char *)a + sizeof(struct calendar_part)),
				   *y = (const uint32_t *)((const char *)b + sizeof(struct calendar_part));

	return *x < *y ? -1 : *x > *y;
}

static void check_capacity(uint32_t count, enum batch_way way)
{
	part_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (updates[i].fate == ORDER_SENT)
			add_way(&updates[i], way);
	}
	for (uint32_t i = 0; way == BATCH_BUNDLES && i < batch.groups; i++) {
		add_parts(batch.group[i].booking, updates[batch.group[i].relay].out);
		add_parts(batch.group[i].booking, HUB_IN);
	}
	qsort(parts, part_count, sizeof(parts[0]), by_link);
	for (uint32_t first = 0, i = 0; i < part_count; i++) {
		uint64_t all = 0, at = parts[i].part.from;

		first = parts[i].link == parts[first].link ? first : i;
		for (uint32_t j = first; j < part_count && parts[j].link == parts[i].link; j++)
			all += parts[j].part.from <= at && at < parts[j].part.to ? parts[j].part.rate : 0;
		CHECK_MSG(all <= calendar_rate(calendar, parts[i].link, at), "link %u carries %" PRIu64 " of %" PRIu64,
		          parts[i].link, all, calendar_rate(calendar, parts[i].link, at));
	}
}

/* ---- places and groups ---- */

static void check_places(uint32_t count)
{
	uint32_t rows[MOST + 1], sent = 0;

	memset(rows, 0xff, sizeof(rows));
	for (uint32_t i = 0; i < count; i++) {
		if (updates[i].fate != ORDER_SENT)
			continue;
		sent++;
		CHECK(updates[i].place >= 1 && updates[i].place <= batch.sent && rows[updates[i].place] == UINT32_MAX);
		CHECK_MSG(updates[i].deadline >= updates[i].place, "update %u with deadline %" PRId64 " is at place %u", i,
		          updates[i].deadline, updates[i].place);
		rows[updates[i].place] = i;
	}
	CHECK_U64(sent, batch.sent);
	for (uint32_t group = 1; group <= batch.groups; group++) {
		const struct batch_group *of = &batch.group[group - 1];

		for (uint32_t i = 0; i < of->members; i++)
			CHECK_U64(updates[rows[of->first + i]].group, group);
	}
}

/* Each member's way ends at its group's carrier, and each worker knows how many streams come to it. */
static void check_ways(uint32_t count, enum batch_way way)
{
	uint32_t inputs[MOST] = {0}, members[MOST + 1] = {0};

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i, steps = 0;

		if (updates[i].fate != ORDER_SENT)
			continue;
		members[updates[i].group]++;
		if (updates[i].next != BATCH_HUB)
			inputs[updates[i].next]++;
		while (way == BATCH_CHAINS && updates[at].next != BATCH_HUB) {
			CHECK(steps++ < count && updates[updates[at].next].group == updates[i].group);
			at = updates[at].next;
		}
		CHECK(way != BATCH_CHAINS || batch.group[updates[i].group - 1].carrier == at);
		CHECK(way != BATCH_BUNDLES || updates[i].group == 0 || updates[i].next == BATCH_HUB ||
		      updates[i].next == batch.group[updates[i].group - 1].relay);
		CHECK(way != BATCH_DIRECT || (updates[i].group == 0 && updates[i].next == BATCH_HUB));
	}
	for (uint32_t group = 1; group <= batch.groups; group++)
		CHECK_U64(members[group], batch.group[group - 1].members);
	for (uint32_t i = 0; way == BATCH_CHAINS && i < count; i++)
		CHECK(updates[i].fate != ORDER_SENT || updates[i].inputs == inputs[i]);
}

static bool shares_deadline(uint32_t count, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++) {
		if (updates[j].deadline == updates[i].deadline && updates[i].deadline <= count)
			return true;
	}
	return false;
}

static void count_rules(uint32_t count, enum batch_way way)
{
	bool binds[RULES] = {false};
	bool hosts[HOSTS + 1] = {false};

	for (uint32_t i = 0; i < count; i++) {
		const struct batch_update *update = &updates[i];
		const struct order_update *order = &batch.orders[i];

		binds[R_DEADLINE] |= order->fate == ORDER_SENT && order->is_forced;
		binds[R_TIE] |= shares_deadline(count, i);
		binds[R_CROWDED] |= update->fate == ORDER_CROWDED;
		binds[R_OVERTAKEN] |= update->fate == ORDER_OVERTAKEN;
		binds[R_WAITED] |= order->fate == ORDER_SENT && order->has_waited && !order->is_forced;
		binds[R_LEFT] |= update->fate == ORDER_UNBOOKED;
		binds[R_OWN_HOST] |= update->group > 0 && hosts[update->host];
		hosts[update->host] |= update->group > 0;
		binds[R_MOVED] |= way == BATCH_CHAINS && update->fate == ORDER_SENT && update->place != order->place;
		sent_count[way] += update->fate == ORDER_SENT;
		dropped[way] += update->fate != ORDER_SENT && update->fate != ORDER_UNBOOKED;
	}
	for (uint32_t i = 0; i < batch.groups; i++)
		binds[R_GROUP] |= batch.group[i].members > 1;
	binds[R_GROUPS] = batch.groups > 1;
	for (uint32_t rule = 0; rule < RULES; rule++)
		counts[way][rule] += binds[rule];
	batches[way]++;
}

static void play(uint64_t seed)
{
	static const enum batch_way ways[] = {BATCH_DIRECT, BATCH_BUNDLES, BATCH_CHAINS, BATCH_BUNDLES};
	struct rng rng;
	const struct batch_config config = {.calendar = calendar, .hub = HUB_IN, .way = ways[seed % 4],
	                                    .goal = seed / 4 % 2 ? BUNDLE_LAST : BUNDLE_MEAN, .next_batch = BATCH_NS,
	                                    .rng = &rng};

	rng_init(&rng, seed);
	draw_rates(&rng);
	uint32_t count = draw_batch(&rng);
	batch_run(&config, updates, count, &batch);
	check_places(count);
	check_ways(count, config.way);
	check_capacity(count, config.way);
	count_rules(count, config.way);
	calendar_rollback(calendar, 0);
}

/* Rules that the way has bind in a tenth of the batches. */
static void print_rules(void)
{
	for (uint32_t way = 0; way < 3; way++) {
		printf("%s: %" PRIu64 " batches, %" PRIu64 " updates sent, %" PRIu64 " dropped;", batch_way_names[way],
		       batches[way], sent_count[way], dropped[way]);
		for (uint32_t rule = 0; rule < RULES; rule++) {
			bool has_rule = rule <= R_WAITED || (rule == R_LEFT ? way == BATCH_DIRECT : way != BATCH_DIRECT);

			has_rule &= rule != R_MOVED || way == BATCH_CHAINS;
			if (!has_rule)
				continue;
			printf(" %s %.0f %%,", rule_names[rule], 100 * (double)counts[way][rule] / (double)batches[way]);
			CHECK_MSG(batches[way] < 1000 || counts[way][rule] * 10 >= batches[way], "'%s' binds in %" PRIu64
			          " of %" PRIu64 " batches", rule_names[rule], counts[way][rule], batches[way]);
		}
		puts("");
	}
}

/* ---- all orders, dropped subsets and cuts ---- */

#define SMALL 5u
#define AGGREGATORS 3u
#define UNIT UINT64_C(1000000)

struct small {
	uint32_t count, most, order[SMALL];
	struct order_update updates[SMALL];
	uint32_t host[SMALL];
	struct bundle_aggregator aggregators[AGGREGATORS];
	bool used[SMALL];
	unsigned __int128 best;
};

static void keep(struct small *small, uint32_t placed, unsigned __int128 sum)
{
	if (placed < small->most || (placed == small->most && sum >= small->best))
		return;
	small->most = placed;
	small->best = sum;
}

static uint64_t take(uint32_t out, uint32_t in, uint64_t from)
{
	const struct calendar_path path = {2, {out, in}};
	struct calendar_span span;

	CHECK(calendar_take(calendar, &path, from, UNIT, &span) != CALENDAR_NONE);
	return span.end;
}

/* Members of the open group are there at ready; sum: of those before the group. */
static void search(struct small *small, uint32_t placed, uint32_t group, uint32_t members, uint64_t ready,
                   unsigned __int128 sum)
{
	uint64_t mark = calendar_mark(calendar);
	unsigned __int128 closed = sum;

	if (group > 0 && members > 0)
		closed += (unsigned __int128)take(small->aggregators[group - 1].out, HUB_IN, ready) * members;
	keep(small, placed, closed);
	if (group < AGGREGATORS && (members > 0 || group == 0))
		search(small, placed, group + 1, 0, 0, closed);
	calendar_rollback(calendar, mark);
	for (uint32_t i = 0; i < small->count; i++) {
		const struct bundle_aggregator *at = group > 0 ? &small->aggregators[group - 1] : NULL;
		uint64_t there = 0;

		if (small->used[i] || small->updates[i].deadline < placed + 1)
			continue;
		if (!at || at->host != small->host[i])
			there = take(OUT(small->host[i]), at ? at->in : HUB_IN, 0);
		small->used[i] = true;
		search(small, placed + 1, group, members + 1, there > ready ? there : ready, at ? sum : sum + there);
		small->used[i] = false;
		calendar_rollback(calendar, mark);
	}
}

struct ratios {
	uint64_t batches, equal;
	double sum, worst;
	uint64_t more;
};

static void play_small(uint64_t seed, struct ratios *ratios)
{
	struct small small = {.best = (unsigned __int128)-1};
	struct bundle_update bundles[SMALL];
	struct bundle bundle = {0};
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t link = 0; link < LINKS; link++)
		CHECK(calendar_set_rate(calendar, link, 0, (rng_below(&rng, 4) + 1) * UNIT / 4));
	small.count = (uint32_t)rng_below(&rng, SMALL) + 1;
	for (uint32_t i = 0; i < small.count; i++) {
		small.host[i] = (uint32_t)rng_below(&rng, HOSTS);
		small.updates[i] = (struct order_update){.path = {2, {OUT(small.host[i]), HUB_IN}}, .bytes = UNIT,
		                                         .deadline = (int64_t)rng_below(&rng, 2 * small.count) + 1};
	}
	for (uint32_t i = 0; i < AGGREGATORS; i++) {
		uint32_t host = (uint32_t)rng_below(&rng, HOSTS);

		small.aggregators[i] = (struct bundle_aggregator){host, IN(host), OUT(host)};
	}
	uint32_t sent = order_run(calendar, small.updates, small.count);
	calendar_rollback(calendar, 0);
	for (uint32_t i = 0; i < small.count; i++) {
		if (small.updates[i].fate == ORDER_SENT)
			bundles[small.updates[i].place - 1] =
				(struct bundle_update){.host = small.host[i], .out = OUT(small.host[i]), .bytes = UNIT};
	}
	CHECK(bundle_run(calendar, bundles, sent, small.aggregators, AGGREGATORS, HUB_IN, BUNDLE_MEAN, &bundle));
	calendar_rollback(calendar, 0);
	search(&small, 0, 0, 0, 0, 0);
	CHECK(sent <= small.most);
	ratios->batches++;
	ratios->more += small.most - sent;
	if (sent < small.most || sent == 0)
		return;
	double ratio = (double)bundle.sum / (double)small.best;
	CHECK_MSG(ratio > 0.999999, "better than the best of all: %f", ratio);
	ratios->equal++;
	ratios->sum += ratio;
	ratios->worst = ratio > ratios->worst ? ratio : ratios->worst;
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 20000);
	struct ratios ratios = {0};

	CHECK(calendar_open(LINKS, 4096, 512, &calendar, NULL) == ESP_OK);
	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed);
	print_rules();
	for (uint64_t seed = first; seed < first + count / 50; seed++)
		play_small(seed, &ratios);
	printf("up to %u updates and %u aggregators beside every order, dropped subset and cut: %" PRIu64 " batches,"
	       " %" PRIu64 " with as few drops,", SMALL, AGGREGATORS, ratios.batches, ratios.equal);
	printf(" %" PRIu64 " more drops in the others; mean completion %.3f of the best in the mean, %.3f at worst\n",
	       ratios.more, ratios.sum / (double)ratios.equal, ratios.worst);
	calendar_close(calendar);
	return 0;
}
