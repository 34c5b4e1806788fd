#include "node/net/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* Shared by the caller and the lookup thread; the later of the two frees it. */
struct lookup {
	struct address address;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool done, abandoned;
	int result; /* of getaddrinfo() */
	struct resolved found;
};

static int look_up(const struct address *address, int flags, struct resolved *out)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *list = NULL;
	char port[8];
	snprintf(port, sizeof(port), "%u", address->port);
	int result = getaddrinfo(address->host, port, &hints, &list);
	if (result != 0)
		return result;
	out->count = 0;
	for (struct addrinfo *at = list; at && out->count < RESOLVE_MAX; at = at->ai_next) {
		if (at->ai_family != AF_INET && at->ai_family != AF_INET6)
			continue;
		memcpy(&out->addresses[out->count], at->ai_addr, at->ai_addrlen);
		out->lengths[out->count++] = at->ai_addrlen;
	}
	freeaddrinfo(list);
	return out->count ? 0 : EAI_NONAME;
}

static void free_lookup(struct lookup *lookup)
{
	pthread_cond_destroy(&lookup->changed);
	pthread_mutex_destroy(&lookup->mutex);
	free(lookup);
}

static void *run_lookup(void *argument)
{
	struct lookup *lookup = argument;
	struct resolved found;
	int result = look_up(&lookup->address, AI_ADDRCONFIG | AI_NUMERICSERV, &found);
	/* AI_ADDRCONFIG does not count loopback on a host without a network */
	if (result == EAI_NONAME || result == EAI_ADDRFAMILY)
		result = look_up(&lookup->address, AI_NUMERICSERV, &found);
	pthread_mutex_lock(&lookup->mutex);
	lookup->done = true;
	lookup->result = result;
	if (result == 0)
		lookup->found = found;
	bool abandoned = lookup->abandoned;
	pthread_cond_signal(&lookup->changed);
	pthread_mutex_unlock(&lookup->mutex);
	if (abandoned)
		free_lookup(lookup);
	return NULL;
}

/* The thread must not take signals that the program handles. */
static int start_lookup(struct lookup *lookup)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int result = pthread_create(&thread, NULL, run_lookup, lookup);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result == 0)
		pthread_detach(thread);
	return result;
}

static struct lookup *make_lookup(const struct address *address)
{
	pthread_condattr_t monotonic;
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	if (!lookup)
		return NULL;
	lookup->address = *address;
	pthread_mutex_init(&lookup->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lookup->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return lookup;
}

/* True if the answer came in time; otherwise the lookup thread frees the lookup. */
static bool wait_for(struct lookup *lookup, uint64_t deadline_ns, int *result, struct resolved *out)
{
	const struct timespec until = {(time_t)(deadline_ns / NS_PER_S), (long)(deadline_ns % NS_PER_S)};
	pthread_mutex_lock(&lookup->mutex);
	while (!lookup->done && pthread_cond_timedwait(&lookup->changed, &lookup->mutex, &until) == 0)
		;
	bool done = lookup->done;
	lookup->abandoned = !done;
	if (done) {
		*result = lookup->result;
		*out = lookup->found;
	}
	pthread_mutex_unlock(&lookup->mutex);
	return done;
}

static enum esp_status fail_lookup(const struct address *address, int result, struct error *err)
{
	return error_set(err, ESP_ELINK, "cannot look up the host %.120s: %s", address->host, gai_strerror(result));
}

static enum esp_status look_up_name(const struct address *address, uint64_t deadline_ns, struct resolved *out,
                                    struct error *err)
{
	struct resolved found;
	int result = 0;
	struct lookup *lookup = make_lookup(address);
	if (!lookup)
		return error_set(err, ESP_ENOMEM, "no memory to look up the host %.120s", address->host);
	if (start_lookup(lookup) != 0) {
		free_lookup(lookup);
		return error_set(err, ESP_ELIMIT, "cannot start_lookup a thread to look up the host %.120s", address->host);
	}
	if (!wait_for(lookup, deadline_ns, &result, &found))
		return error_set(err, ESP_ETIMEOUT, "looking up the host %.120s takes too long", address->host);
	free_lookup(lookup);
	if (result != 0)
		return fail_lookup(address, result, err);
	*out = found;
	return ESP_OK;
}

enum esp_status resolve(const struct address *address, uint64_t deadline_ns, struct resolved *out, struct error *err)
{
	struct resolved found;
	if (!address_is_numeric(address))
		return look_up_name(address, deadline_ns, out, err);
	int result = look_up(address, AI_NUMERICHOST | AI_NUMERICSERV, &found);
	if (result != 0)
		return fail_lookup(address, result, err);
	*out = found;
	return ESP_OK;
}

bool resolve_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}
