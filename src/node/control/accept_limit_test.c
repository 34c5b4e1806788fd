/*
 * accept_limit_test.c - ports in virtual time: ranks and strangers connect at random moments, the kernel's backlog is
 * short while the limit is locked, and a connection that finds it full tries again as a kernel does, after 1, 3, 7 ...
 * seconds.
 */
#include "node/control/accept_limit.h"

#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define PROOF_NS (2 * NS_PER_MS)
enum { QUEUE_FREE = 1024, QUEUE_LOCKED = 33, RANKS_MOST = 200 };

struct comer {
	bool is_rank;
	uint32_t rank;
};

/* A listening socket with its backlog, and the ranks whose proofs are under way. */
struct port {
	struct accept_limit accept_limit;
	struct comer queue[QUEUE_FREE];
	uint32_t waiting;
	uint64_t proofs[RANKS_MOST]; /* when they are done */
	uint32_t proving;
	uint64_t strangers, dropped, locked_ns, arrived[RANKS_MOST];
	bool was_locked;
};

static bool knock(struct port *port, struct comer comer)
{
	uint32_t room = port->accept_limit.locked ? QUEUE_LOCKED : QUEUE_FREE;

	if (port->waiting >= room) {
		port->dropped++;
		return false;
	}
	port->queue[port->waiting++] = comer;
	return true;
}

static void let_in(struct port *port, uint64_t now)
{
	while (port->waiting > 0 && accept_limit_admits(&port->accept_limit, now)) {
		struct comer comer = port->queue[0];

		accept_limit_take(&port->accept_limit, now);
		memmove(port->queue, port->queue + 1, --port->waiting * sizeof(comer));
		if (!comer.is_rank) {
			port->strangers++;
			continue;
		}
		port->arrived[comer.rank] = now;
		port->proofs[port->proving++] = now + PROOF_NS;
	}
	if (port->waiting == 0)
		accept_limit_empty(&port->accept_limit);
}

static void step(struct port *port, uint64_t now)
{
	for (uint32_t i = 0; i < port->proving;) {
		if (port->proofs[i] > now) {
			i++;
			continue;
		}
		port->proofs[i] = port->proofs[--port->proving];
		accept_limit_proved(&port->accept_limit);
	}
	uint64_t when = accept_limit_due_ns(&port->accept_limit, now);
	CHECK(when == UINT64_MAX || when >= now);
	CHECK(when == UINT64_MAX || when <= now + ACCEPT_LIMIT_PAUSE_NS);
	if (when == UINT64_MAX || when == now)
		let_in(port, now);
}

static void run(struct port *port, struct rng *rng, uint64_t from, uint64_t until, uint64_t strangers_a_second)
{
	for (uint64_t now = from; now < until; now += NS_PER_MS) {
		uint64_t count = strangers_a_second / 1000 + (rng_below(rng, 1000) < strangers_a_second % 1000);

		for (uint64_t i = 0; i < count; i++)
			knock(port, (struct comer){0});
		step(port, now);
	}
}

static void open_port(struct port *port, uint32_t ranks)
{
	memset(port, 0, sizeof(*port));
	accept_limit_init(&port->accept_limit, ranks, NS_PER_S);
}

/* No more strangers are accepted than there are tokens, however many connect; after the flood all tokens grow back. */
static void test_flood(struct rng *rng)
{
	struct port port;
	uint32_t ranks = 1 + (uint32_t)rng_below(rng, RANKS_MOST - 1);
	uint64_t rate = 500 + rng_below(rng, 20000), began = 2 * NS_PER_S, seconds = 1 + rng_below(rng, 10);
	uint64_t end = began + seconds * NS_PER_S;

	open_port(&port, ranks);
	accept_limit_settle(&port.accept_limit);
	run(&port, rng, began, end, rate);
	uint64_t allowed = ranks + ACCEPT_LIMIT_SPARE + seconds * ACCEPT_LIMIT_RATE;
	CHECK_MSG(port.strangers <= allowed, "%lu strangers were let in of %lu", (unsigned long)port.strangers,
	          (unsigned long)allowed);
	/* And nearly as many: connections that the limit can afford are accepted. */
	uint64_t wanted = rate * seconds * 9 / 10 < allowed * 9 / 10 ? rate * seconds * 9 / 10 : allowed * 9 / 10;
	CHECK_MSG(port.strangers + port.waiting >= wanted, "%lu strangers were let in, not %lu",
	          (unsigned long)port.strangers, (unsigned long)wanted);
	run(&port, rng, end, end + NS_PER_S, 0);
	CHECK(port.waiting == 0 && !port.accept_limit.locked);
	run(&port, rng, end + NS_PER_S, end + 600 * NS_PER_S, 0);
	CHECK(accept_limit_admits(&port.accept_limit, end + 600 * NS_PER_S));
	CHECK_U64(port.accept_limit.tokens, port.accept_limit.most);
}

/* All ranks of a job connect at once, again and again: none waits, whether ranks are expected or not. */
static void test_ranks_alone(struct rng *rng)
{
	struct port port;
	uint32_t ranks = 1 + (uint32_t)rng_below(rng, RANKS_MOST - 1);
	uint64_t now = 2 * NS_PER_S;

	open_port(&port, ranks);
	if (rng_chance(rng, 1, 2))
		accept_limit_settle(&port.accept_limit);
	for (unsigned turn = 0; turn < 50; turn++) {
		for (uint32_t i = 0; i < ranks; i++)
			CHECK(knock(&port, (struct comer){.is_rank = true, .rank = i}));
		step(&port, now);
		CHECK_MSG(port.waiting == 0 && !port.accept_limit.locked, "ranks were kept waiting in turn %u", turn);
		now += PROOF_NS + rng_below(rng, NS_PER_S);
		step(&port, now);
	}
}

/* In a flood an announced rank is accepted within its kernel's first tries, however strong the flood is. */
static void test_announced(struct rng *rng)
{
	struct port port;
	uint64_t now = 10 * NS_PER_S, rate = 1000 + rng_below(rng, 50000);

	open_port(&port, 4);
	accept_limit_settle(&port.accept_limit);
	run(&port, rng, now, now + 3 * NS_PER_S, rate);
	now += 3 * NS_PER_S;
	CHECK(port.accept_limit.locked);
	if (!knock(&port, (struct comer){.is_rank = true, .rank = 1})) {
		uint64_t word = now + NS_PER_S / 4 + rng_below(rng, NS_PER_S / 2);

		run(&port, rng, now, word, rate);
		accept_limit_expect(&port.accept_limit, word);
		run(&port, rng, word, now + NS_PER_S, rate);
		now += NS_PER_S;
		CHECK_MSG(knock(&port, (struct comer){.is_rank = true, .rank = 1}), "an announced rank found no room");
	}
	run(&port, rng, now, now + NS_PER_S, rate);
	CHECK(port.arrived[1] != 0);
	run(&port, rng, now + NS_PER_S, now + 10 * NS_PER_S, rate); /* and it is locked again */
	CHECK(port.accept_limit.locked);
}

/* In the beginning every connection is accepted. */
static void test_opening(struct rng *rng)
{
	struct port port;

	open_port(&port, 2);
	run(&port, rng, NS_PER_S, 4 * NS_PER_S, 5000);
	CHECK(port.strangers == 15000 && port.dropped == 0 && !port.accept_limit.locked);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_opening(&rng);
	for (unsigned i = 0; i < 30; i++) {
		test_flood(&rng);
		test_ranks_alone(&rng);
		test_announced(&rng);
	}
	return 0;
}
