#include "api/hub_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fabric/gate.h"
#include "fabric/worker/aggregator.h"
#include "fabric/worker/aggregator_send.h"
#include "math/math.h"

/* ---- a member ---- */

/* An update that is sent to its aggregator once the hub has granted it. */
struct member {
	struct hub_link *link;
	const struct sched_link_decision *decision;
	const struct hub_update *full;
	uint64_t start_ns, until_ns;
	uint64_t took_ns; /* 0: the aggregator may not have it */
};

/* No time of a scheduler holds a caller up for longer than the gate's patience, or than its own deadline. */
static uint64_t at_most(uint64_t ns, const struct hub_update *full)
{
	uint64_t most = full->deadline_ns < GATE_PATIENCE_MOST ? full->deadline_ns : GATE_PATIENCE_MOST;

	return ns < most ? ns : most;
}

static void sleep_until(uint64_t until_ns)
{
	const struct timespec at = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

/* If it fails the aggregator goes without this member, and the hub says so. */
static void send_member(void *context)
{
	struct member *member = context;
	const struct hub_layout *layout = hub_link_layout(member->link);
	struct aggregator_part *parts = calloc(layout->tensors + 1u, sizeof(*parts));
	const struct aggregator_sending sending = {.ticket = hub_link_ticket(member->link),
	                                           .worker = hub_link_worker(member->link),
	                                           .decision = member->decision,
	                                           .parts = parts,
	                                           .count = layout->tensors,
	                                           .until_ns = member->until_ns};
	uint64_t took;

	if (!parts)
		return;
	for (uint32_t i = 0; i < layout->tensors; i++)
		parts[i] = (struct aggregator_part){member->full->gradients[i], layout->tensor[i].elements * sizeof(float)};
	sleep_until(member->start_ns < member->until_ns ? member->start_ns : member->until_ns);
	if (aggregator_send(&sending, &took, NULL) == ESP_OK)
		member->took_ns = took;
	free(parts);
}

static enum esp_status update_member(struct hub_link *link, const struct sched_link_decision *decision,
                                     struct hub_update *full, struct hub_update_result *out, struct error *err)
{
	uint64_t now = clock_now_ns();
	struct member member = {.link = link,
	                        .decision = decision,
	                        .full = full,
	                        .start_ns = now + at_most(decision->decide.start_ns, full),
	                        .until_ns = now + at_most(decision->decide.patience_ns, full)};

	full->send = send_member;
	full->context = &member;
	enum esp_status status = hub_link_update(link, full, out, err);
	if (status == ESP_OK)
		out->took_ns = out->why == GATE_BROKEN ? 0 : member.took_ns;
	return status;
}

/* ---- the aggregator ---- */

/* Updates of others, added to this worker's own. */
struct sum {
	float *data;            /* owned; tensor by tensor */
	const void **gradients; /* owned; into data */
};

static void sum_fini(struct sum *sum)
{
	free(sum->data);
	free(sum->gradients);
}

static bool sum_init(struct sum *sum, struct hub_link *link, const void *const *own)
{
	const struct hub_layout *layout = hub_link_layout(link);
	uint64_t at = 0;

	*sum = (struct sum){malloc(hub_link_bytes(link)), calloc(layout->tensors + 1u, sizeof(*sum->gradients))};
	if (!sum->data || !sum->gradients) {
		sum_fini(sum);
		return false;
	}
	for (uint32_t i = 0; i < layout->tensors; i++) {
		uint64_t elements = layout->tensor[i].elements;

		sum->gradients[i] = sum->data + at;
		if (elements > 0)
			memcpy(sum->data + at, own[i], elements * sizeof(float));
		at += elements;
	}
	return true;
}

/* In the order of the workers' numbers, so that equal updates give equal bits. */
static uint64_t sum_add(struct sum *sum, uint64_t elements, const struct aggregator_update *updates, uint32_t count)
{
	uint64_t members = 0;

	for (uint32_t i = 0; i < count; i++) {
		math_fold(ESP_F32, ESP_SUM)(sum->data, sum->data, updates[i].data, elements);
		members |= UINT64_C(1) << updates[i].worker;
	}
	return members;
}

/* Members that have not come in time are left out: the hub tells them so. */
static enum esp_status update_sum(struct hub_link *link, struct peer_port *port,
                                  const struct sched_link_decision *decision, struct hub_update *full,
                                  struct hub_update_result *out, struct error *err)
{
	uint64_t wait = at_most(decision->decide.wait_ns, full);
	uint64_t began = clock_now_ns(), own = UINT64_C(1) << hub_link_worker(link);
	struct aggregator_update updates[64];
	struct sum sum = {0};

	uint32_t count = aggregator_collect(port, decision->epoch, decision->decide.bundle,
	                                    decision->decide.members & ~own, began + wait, updates);
	bool has_sum = count > 0 && sum_init(&sum, link, full->gradients);
	if (has_sum) {
		full->members = own | sum_add(&sum, hub_link_bytes(link) / sizeof(float), updates, count);
		full->gradients = sum.gradients;
	} else { /* its own update alone */
		full->bundle = 0;
		full->aggregator = UINT32_MAX;
	}
	for (uint32_t i = 0; i < count; i++)
		aggregator_put(port, &updates[i]);
	if (full->deadline_ns != UINT64_MAX) {
		uint64_t passed = clock_now_ns() - began;

		full->deadline_ns = passed < full->deadline_ns ? full->deadline_ns - passed : 0;
	}
	enum esp_status status = hub_link_update(link, full, out, err);
	if (has_sum)
		sum_fini(&sum);
	return status;
}

enum esp_status api_sum_update(struct hub_link *link, struct peer_port *port,
                               const struct sched_link_decision *decision, struct hub_update *full,
                               struct hub_update_result *out, struct error *err)
{
	full->bundle = decision->decide.bundle;
	full->aggregator = decision->decide.aggregator;
	if (decision->decide.aggregator == hub_link_worker(link))
		return update_sum(link, port, decision, full, out, err);
	return update_member(link, decision, full, out, err);
}
