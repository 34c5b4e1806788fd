#include "transport/poller.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#define EVENTS 64 /* that one look takes from the kernel */

static enum esp_status watch(struct poller *poller, int fd, uint32_t mask, void *subject)
{
	struct epoll_event event = {.events = mask | EPOLLET, .data.ptr = subject};

	if (epoll_ctl(poller->events, EPOLL_CTL_ADD, fd, &event) == 0)
		return ESP_OK;
	return errno == ENOMEM ? ESP_ENOMEM : ESP_ELIMIT;
}

enum esp_status poller_init(struct poller *poller)
{
	poller->events = epoll_create1(EPOLL_CLOEXEC);
	poller->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	poller->lacks_pwait2 = poller->was_woken = false;
	if (poller->events < 0 || poller->wakeup < 0)
		return errno == ENOMEM ? ESP_ENOMEM : ESP_ELIMIT;
	/* Watched for edges, so that it need not be read: every write is one. */
	return watch(poller, poller->wakeup, EPOLLIN, NULL);
}

void poller_fini(struct poller *poller)
{
	if (poller->wakeup >= 0)
		close(poller->wakeup);
	if (poller->events >= 0)
		close(poller->events);
}

enum esp_status poller_watch(struct poller *poller, int fd, struct poller_subject *subject)
{
	assert(fd >= 0 && subject && subject->ready);
	return watch(poller, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, subject);
}

void poller_unwatch(struct poller *poller, int fd)
{
	epoll_ctl(poller->events, EPOLL_CTL_DEL, fd, NULL);
}

static int sleep_for(struct poller *poller, int64_t timeout_ns, struct epoll_event *out)
{
	struct timespec time = {timeout_ns / (int64_t)NS_PER_S, timeout_ns % (int64_t)NS_PER_S};

	if (timeout_ns > 0 && !poller->lacks_pwait2) {
		int count = epoll_pwait2(poller->events, out, EVENTS, &time, NULL);

		if (count >= 0 || errno != ENOSYS)
			return count;
		poller->lacks_pwait2 = true;
	}
	/* Rounded up, so that a short sleep does not become none, and a loop of them a spin. */
	int64_t ms = timeout_ns < 0 ? -1 : timeout_ns / (int64_t)NS_PER_MS + (timeout_ns % (int64_t)NS_PER_MS > 0);
	return epoll_wait(poller->events, out, EVENTS, ms > INT32_MAX ? INT32_MAX : (int)ms);
}

void poller_look(struct poller *poller, int64_t timeout_ns)
{
	struct epoll_event events[EVENTS];
	bool sleeps = timeout_ns != 0;
	int count = sleep_for(poller, poller->was_woken ? 0 : timeout_ns, events);

	if (sleeps)
		poller->was_woken = false;
	for (int i = 0; i < count; i++) { /* below 0: interrupted by a signal, which is no event */
		struct poller_subject *subject = events[i].data.ptr;

		if (subject)
			subject->ready(subject, events[i].events);
		else
			poller->was_woken |= !sleeps;
	}
}

void poller_wake(struct poller *poller)
{
	uint64_t one = 1;

	/* It fails only once 2^64 - 2 wakes were counted. */
	ssize_t written = write(poller->wakeup, &one, sizeof(one));
	(void)written;
}
