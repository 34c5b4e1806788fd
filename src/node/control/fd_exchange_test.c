/*
 * fd_exchange_test.c - ranks of a host in one process, at random moments: each gets the descriptors of all others,
 * once, and none is left open. A descriptor is known by the two bytes of its file: the rank's number and its own.
 */
#include "node/control/fd_exchange.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"

enum { RANKS_MOST = 36, EACH_MOST = 8 };

struct member {
	struct fd_exchange exchange;
	int own[EACH_MOST];
	int here, there; /* the ends of its connection; -1: closed */
	bool has_left, is_put, is_served;
	uint32_t fetched_at, handed_at;
	uint32_t got[RANKS_MOST];
};

struct house {
	uint32_t count, each;
	struct member members[RANKS_MOST];
};

static struct house house;

static uint32_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;

	CHECK(folder != NULL);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static int make_file(uint32_t rank, uint32_t number)
{
	uint8_t name[2] = {(uint8_t)rank, (uint8_t)number};
	int fd = memfd_create("fd_exchange_test", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, name, sizeof(name)) == (ssize_t)sizeof(name));
	return fd;
}

static void take(void *context, uint32_t rank, const int *fds)
{
	struct member *member = context;

	CHECK(rank < house.count && rank != (uint32_t)(member - house.members));
	member->got[rank]++;
	for (uint32_t i = 0; i < house.each; i++) {
		uint8_t name[2];

		CHECK(pread(fds[i], name, sizeof(name), 0) == (ssize_t)sizeof(name) && name[0] == rank && name[1] == i);
		close(fds[i]);
	}
}

static void open_house(struct rng *rng)
{
	house = (struct house){.count = 2 + (uint32_t)rng_below(rng, RANKS_MOST - 1),
	                       .each = 1 + (uint32_t)rng_below(rng, EACH_MOST)};
	for (uint32_t i = 0; i < house.count; i++) {
		struct member *member = &house.members[i];
		int ends[2];

		for (uint32_t k = 0; k < house.each; k++)
			member->own[k] = make_file(i, k);
		CHECK(control_fd_exchange_init(&member->exchange, i, house.count, member->own, house.each) == ESP_OK);
		CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
		member->here = ends[0];
		member->there = ends[1];
	}
}

static void close_house(void)
{
	for (uint32_t i = 0; i < house.count; i++) {
		struct member *member = &house.members[i];

		control_fd_exchange_fini(&member->exchange);
		for (uint32_t k = 0; k < house.each; k++)
			close(member->own[k]);
		if (member->here >= 0)
			close(member->here);
		if (member->there >= 0)
			close(member->there);
	}
}

static void step_other(struct member *member)
{
	struct error err;
	bool busy;

	if (!member->has_left) {
		enum esp_status status = control_fd_exchange_leave(&member->exchange, member->here, &busy, &err);

		CHECK(status == ESP_OK || busy);
		member->has_left = status == ESP_OK;
	} else if (member->fetched_at < house.count) {
		enum esp_status status =
			control_fd_exchange_fetch(&member->exchange, member->here, &member->fetched_at, take, member, &err);

		CHECK_MSG(status == ESP_OK || status == ESP_PENDING, "%s", err.text);
	}
}

/* A turn of the first rank for the connection of another. */
static void step_first(struct member *member, uint32_t rank)
{
	struct fd_exchange *exchange = &house.members[0].exchange;
	struct error err;
	bool busy = false;
	enum esp_status status = ESP_PENDING;

	if (!member->is_put) {
		status = control_fd_exchange_put(exchange, member->there, rank, &err);
		member->is_put = status == ESP_OK;
	} else if (control_fd_exchange_is_full(exchange) && !member->is_served) {
		status = control_fd_exchange_hand(exchange, member->there, rank, &member->handed_at, &busy, &err);
		member->is_served = status == ESP_OK;
		if (member->is_served) { /* messages in flight arrive nevertheless */
			close(member->there);
			member->there = -1;
		}
	}
	CHECK_MSG(status == ESP_OK || status == ESP_PENDING, "%s", err.text);
}

static bool are_done(void)
{
	bool done = true;

	for (uint32_t i = 1; i < house.count; i++)
		done = done && house.members[i].is_served && house.members[i].fetched_at == house.count;
	return done;
}

static void test_all_get_all(struct rng *rng)
{
	uint32_t before = open_descriptors();

	open_house(rng);
	while (!are_done()) {
		uint32_t rank = 1 + (uint32_t)rng_below(rng, house.count - 1);

		if (rng_chance(rng, 1, 2))
			step_other(&house.members[rank]);
		else
			step_first(&house.members[rank], rank);
	}
	control_fd_exchange_clear(&house.members[0].exchange, take, &house.members[0]);
	for (uint32_t i = 0; i < house.count; i++) {
		for (uint32_t k = 0; k < house.count; k++)
			CHECK_U64(house.members[i].got[k], i == k ? 0 : 1);
	}
	close_house();
	CHECK_U64(open_descriptors(), before);
}

/* A closed connection is noticed, and descriptors that were sent before are closed. */
static void test_gone(struct rng *rng)
{
	uint32_t before = open_descriptors();
	struct error err;

	open_house(rng);
	struct member *member = &house.members[1];
	step_other(member);
	step_first(member, 1);
	CHECK(member->is_put);
	close(member->there);
	member->there = -1;
	CHECK(control_fd_exchange_fetch(&member->exchange, member->here, &member->fetched_at, take, member, &err) ==
	      ESP_EPEER);
	close_house();
	CHECK_U64(open_descriptors(), before);
}

/* Refused: another number of descriptors than agreed, a second message, a wrong rank. */
static void test_nonsense(struct rng *rng)
{
	uint32_t before = open_descriptors();
	struct error err;

	open_house(rng);
	struct member *first = &house.members[0], *member = &house.members[1];
	struct fd_exchange other = member->exchange;
	other.each = house.each + 1;
	int more[EACH_MOST + 1];
	for (uint32_t i = 0; i < other.each; i++)
		more[i] = member->own[i < house.each ? i : 0];
	other.own = more;
	bool busy;
	CHECK(control_fd_exchange_leave(&other, member->here, &busy, &err) == ESP_OK);
	CHECK(control_fd_exchange_put(&first->exchange, member->there, 1, &err) == ESP_ELIMIT);
	CHECK(send(member->here, "D", 1, 0) == 1);
	CHECK(control_fd_exchange_put(&first->exchange, member->there, 1, &err) == ESP_ELIMIT);
	step_other(member);
	step_first(member, 1);
	CHECK(member->is_put);
	CHECK(control_fd_exchange_put(&first->exchange, member->there, 1, &err) == ESP_ELINK);
	CHECK(control_fd_exchange_put(&first->exchange, member->there, 0, &err) == ESP_ELINK);
	CHECK(control_fd_exchange_put(&first->exchange, member->there, house.count, &err) == ESP_ELINK);
	CHECK(control_fd_exchange_put(&member->exchange, member->here, 1, &err) == ESP_ELINK);
	close_house();
	CHECK_U64(open_descriptors(), before);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (unsigned i = 0; i < 20; i++) {
		test_all_get_all(&rng);
		test_gone(&rng);
		test_nonsense(&rng);
	}
	return 0;
}
