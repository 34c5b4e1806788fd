#include "node/control/unreachable.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

/* A rank is announced once in a while, and only so many ranks in a period, whatever happens. */
static void tells_seldom(void)
{
	struct unreachable_list list = {0};
	uint32_t told = 0;

	CHECK(unreachable_tells(&list, 3, NS_PER_S));
	CHECK(!unreachable_tells(&list, 3, NS_PER_S) && !unreachable_tells(&list, 3, NS_PER_S + UNREACHABLE_HOLDS_NS - 1));
	CHECK(unreachable_tells(&list, 3, NS_PER_S + UNREACHABLE_HOLDS_NS) &&
	      unreachable_tells(&list, 4, NS_PER_S + UNREACHABLE_HOLDS_NS));
	list = (struct unreachable_list){0};
	for (uint64_t now = NS_PER_S; now < NS_PER_S + 10 * UNREACHABLE_HOLDS_NS; now += 7 * NS_PER_MS)
		told += unreachable_tells(&list, (uint32_t)(now / NS_PER_MS % 31), now);
	CHECK_MSG(told >= 9 * UNREACHABLE_WORDS && told <= 10 * UNREACHABLE_WORDS, "%u words", told);
}

/*
 * Sixteen ranks, each linked to those 1, 2, 4 and 8 ahead, forward all announcements, many at once: each rank forwards
 * each of them once at most.
 */
static void passes_on_once(void)
{
	enum { RANKS = 16, WORDS = 200, ROOM = 1 << 18 };
	static struct { uint32_t to, by; uint64_t at; } queue[ROOM];
	static uint64_t heard[RANKS][RANKS];
	uint32_t first = 0, last = 0, passed = 0;

	for (uint32_t i = 0; i < RANKS * WORDS; i++) { /* all at once, as on a slow network */
		queue[last].to = queue[last].by = i % RANKS;
		queue[last++].at = 1 + i / RANKS;
	}
	for (; first < last; first++) {
		if (!unreachable_is_news(heard[queue[first].to], RANKS, queue[first].by, queue[first].at))
			continue;
		passed++;
		for (uint32_t step = 1; step < RANKS; step *= 2) {
			CHECK(last < ROOM);
			queue[last].to = (queue[first].to + step) % RANKS;
			queue[last].by = queue[first].by;
			queue[last++].at = queue[first].at;
		}
	}
	CHECK(passed <= RANKS * RANKS * WORDS);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK_U64(heard[i][(i + 5) % RANKS], WORDS); /* the last one has reached every rank */
	CHECK(!unreachable_is_news(heard[0], RANKS, RANKS, 1000)); /* no such rank */
}

int main(void)
{
	struct unreachable_list list = {0};
	char text[CONTROL_TEXT], way[ROUTE_TEXT];

	tells_seldom();
	passes_on_once();
	CHECK(!unreachable_find(&list, 3));
	unreachable_forget(&list, 3);
	unreachable_note(&list, 3, "10.0.0.2 port 4711", false);
	unreachable_note(&list, 4, "10.0.0.3 port 4712", true);
	unreachable_note(&list, 3, "10.1.0.2 port 4711 through eth1", false);
	CHECK_U64(list.count, 2);
	CHECK_STR(unreachable_text(unreachable_find(&list, 3), "rank 0 on a", "rank 3 on b", text),
	          "rank 0 on a gets no answer from rank 3 on b at 10.1.0.2 port 4711 through eth1: does a firewall drop "
	          "it? Let the port through, or set "
	          "ESP_PORT to one that passes; espalier doctor, run as the job is, tries all ways");
	/* The host of a stopped rank answers: the sentence blames no firewall. */
	CHECK(strstr(unreachable_text(unreachable_find(&list, 4), "rank 0 on a", "rank 4 on c", text), "stopped"));
	CHECK(!strstr(text, "firewall"));
	unreachable_forget(&list, 3);
	CHECK(!unreachable_find(&list, 3) && unreachable_find(&list, 4));
	/* The list is bounded: further ranks are not kept until there is room. */
	for (uint32_t i = 10; i < 10 + 2 * UNREACHABLE_MOST; i++) {
		snprintf(way, sizeof(way), "10.0.1.%u port 1", i);
		unreachable_note(&list, i, way, false);
	}
	CHECK_U64(list.count, UNREACHABLE_MOST);
	CHECK(unreachable_find(&list, 10) && !unreachable_find(&list, 10 + UNREACHABLE_MOST));
	unreachable_forget(&list, 10);
	unreachable_note(&list, 10 + UNREACHABLE_MOST, "10.0.2.1 port 1", false);
	CHECK(unreachable_find(&list, 10 + UNREACHABLE_MOST) && unreachable_find(&list, 4));
	return 0;
}
