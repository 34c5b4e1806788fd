#include "tools/lab/background.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tools/lab/flow.h"

#define OPEN_MS 1000
#define AGAIN_NS NS_PER_S /* pause before a broken flow is opened again */

/* ---- the flows ---- */

/* A random other host, in another rack if there is one. LAB_NOBODY: there is no other host. */
static uint32_t choose_other(const struct lab *lab, uint32_t from, struct rng *rng)
{
	uint32_t hosts = lab->config.hosts, rack = from / hosts;
	if (lab_has_core(lab)) {
		uint32_t other = (uint32_t)rng_below(rng, lab->host_count - hosts);
		return other < rack * hosts ? other : other + hosts;
	}
	if (lab->host_count == 1)
		return LAB_NOBODY;
	uint32_t other = (uint32_t)rng_below(rng, lab->host_count - 1);
	return other < from ? other : other + 1;
}

size_t lab_background_flows(const struct lab *lab, struct background_flow *out, size_t room)
{
	size_t count = 0;
	struct rng rng;
	for (uint32_t i = 0; i < lab->link_count; i++) {
		const struct lab_link *link = lab_link(lab, i);
		rng_init(&rng, lab->config.seed ^ (uint64_t)i << 32);
		for (uint32_t k = 0; k < link->set.background; k++) {
			uint32_t from = link->host != LAB_NOBODY ? link->host : link->rack * lab->config.hosts +
			                k % lab->config.hosts;
			uint32_t to = choose_other(lab, from, &rng);
			if (to == LAB_NOBODY)
				break;
			if (count < room)
				out[count] = (struct background_flow){i, from, to, link->rail};
			count++;
		}
	}
	return count;
}

/* ---- the process ---- */

struct traffic {
	const struct fabric *fabric;
	struct background_flow *plans;
	struct flow *flows;
	uint64_t *again_ns; /* when to open a broken flow again */
	size_t count;
};

static void keep_open(struct traffic *traffic, uint64_t now_ns)
{
	struct error unused;
	for (size_t i = 0; i < traffic->count; i++) {
		const struct background_flow *plan = &traffic->plans[i];
		if (traffic->flows[i].sender >= 0 || now_ns < traffic->again_ns[i])
			continue;
		if (lab_flow_open(&traffic->flows[i], traffic->fabric, plan->from, plan->to, plan->rail, OPEN_MS, &unused) !=
		    ESP_OK)
			traffic->again_ns[i] = clock_now_ns() + AGAIN_NS;
	}
}

static void move_bytes(struct traffic *traffic, size_t i, short sender, short receiver)
{
	struct flow *flow = &traffic->flows[i];
	struct lab_link *link = lab_link(traffic->fabric->lab, traffic->plans[i].link);
	ssize_t got = receiver ? lab_flow_drain(flow) : 0;
	if (got > 0)
		__atomic_fetch_add(&link->background_bytes, (uint64_t)got, __ATOMIC_RELAXED);
	if (got < 0 || (sender && !lab_flow_fill(flow))) {
		lab_flow_close(flow);
		traffic->again_ns[i] = clock_now_ns() + AGAIN_NS;
	}
}

__attribute__((noreturn))
static void run_flows(struct traffic *traffic, struct pollfd *polls)
{
	for (;;) {
		keep_open(traffic, clock_now_ns());
		for (size_t i = 0; i < traffic->count; i++) {
			polls[2 * i] = (struct pollfd){traffic->flows[i].sender, POLLOUT, 0};
			polls[2 * i + 1] = (struct pollfd){traffic->flows[i].receiver, POLLIN, 0};
		}
		if (poll(polls, 2 * traffic->count, (int)(AGAIN_NS / NS_PER_MS)) <= 0)
			continue;
		for (size_t i = 0; i < traffic->count; i++)
			if (traffic->flows[i].sender >= 0)
				move_bytes(traffic, i, polls[2 * i].revents, polls[2 * i + 1].revents);
	}
}

/* In the child, which exits if it has no memory. */
__attribute__((noreturn))
static void traffic_main(struct traffic *traffic)
{
	struct pollfd *polls = calloc(2 * traffic->count, sizeof(*polls));
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "esp-background");
	traffic->flows = malloc(traffic->count * sizeof(*traffic->flows));
	traffic->again_ns = calloc(traffic->count, sizeof(*traffic->again_ns));
	if (!polls || !traffic->flows || !traffic->again_ns)
		_exit(1);
	for (size_t i = 0; i < traffic->count; i++)
		traffic->flows[i] = (struct flow){-1, -1};
	run_flows(traffic, polls);
}

enum esp_status lab_background_start(const struct fabric *fabric, pid_t *out_pid, struct error *err)
{
	struct traffic traffic = {.fabric = fabric, .count = lab_background_flows(fabric->lab, NULL, 0)};
	*out_pid = 0;
	if (traffic.count == 0)
		return ESP_OK;
	traffic.plans = calloc(traffic.count, sizeof(*traffic.plans));
	if (!traffic.plans)
		return error_set(err, ESP_ENOMEM, "no memory for %zu flows", traffic.count);
	lab_background_flows(fabric->lab, traffic.plans, traffic.count);
	pid_t pid = fork();
	if (pid == 0)
		traffic_main(&traffic);
	free(traffic.plans);
	if (pid < 0)
		return error_set(err, ESP_EIO, "cannot start background traffic: %s", strerror(errno));
	*out_pid = pid;
	return ESP_OK;
}

void lab_background_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}
