#include "transport/poller.h"

#include <sys/eventfd.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"

/* A descriptor that is told of. */
struct told {
	struct poller_subject subject; /* first member */
	unsigned times;
};

static void on_ready(struct poller_subject *subject, uint32_t events)
{
	CHECK(events & EPOLLIN || events & EPOLLOUT);
	((struct told *)(void *)subject)->times++;
}

/* A sleep that a wake does not end hangs here until the test's time is over. */
static void test_wake_ends_sleep(void)
{
	struct poller poller;

	CHECK(poller_init(&poller) == ESP_OK);
	poller_wake(&poller);
	poller_look(&poller, -1);
	poller_fini(&poller);
}

/* A look that does not sleep may take the wake from the kernel; the sleep behind it ends all the same. */
static void test_wake_outlives_looks(void)
{
	struct poller poller;

	CHECK(poller_init(&poller) == ESP_OK);
	for (int looks = 1; looks <= 3; looks++) {
		poller_wake(&poller);
		for (int i = 0; i < looks; i++)
			poller_look(&poller, 0);
		CHECK(poller.was_woken);
		poller_look(&poller, -1);
		CHECK(!poller.was_woken);
	}
	poller_fini(&poller);
}

/* A sleep that a wake ends still tells of events that are there. */
static void test_events_beside_a_wake(void)
{
	struct poller poller;
	struct told told = {.subject = {on_ready}};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	CHECK(poller_init(&poller) == ESP_OK);
	CHECK(poller_watch(&poller, fd, &told.subject) == ESP_OK);
	poller_look(&poller, 0);
	unsigned before = told.times;
	poller_wake(&poller);
	poller_look(&poller, 0);
	uint64_t one = 1;
	CHECK(write(fd, &one, sizeof(one)) == sizeof(one));
	poller_look(&poller, -1);
	CHECK(told.times == before + 1);
	poller_unwatch(&poller, fd);
	close(fd);
	poller_fini(&poller);
}

int main(void)
{
	test_wake_ends_sleep();
	test_wake_outlives_looks();
	test_events_beside_a_wake();
	return 0;
}
