#include "hub/server/hub_job.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "hub/control/hub_dial.h"

struct hub_job *hub_job_find(const struct hub *hub, uint64_t number)
{
	struct hub_job *job = hub->jobs;

	while (job && job->number != number)
		job = job->next;
	return job;
}

static uint64_t make_number(const struct hub *hub)
{
	uint64_t number;

	do
		randombytes_buf(&number, sizeof(number));
	while (number == 0 || number == hub->own_job || hub_job_find(hub, number));
	return number;
}

struct hub_job *hub_job_make(struct hub *hub, const struct hub_msg_create *create, const struct optimizer *optimizer)
{
	struct hub_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->hub = hub;
	memcpy(job->name, create->name, sizeof(job->name));
	job->workers = create->workers;
	job->chunk_bytes = create->chunk_bytes;
	job->weight = create->weight;
	job->delay_bound = create->delay_bound;
	job->hubs = create->hubs;
	job->own = create->own;
	job->optimizer = *optimizer;
	job->number = create->job ? create->job : make_number(hub);
	hub_dial_job_key(hub->config.key, job->number, job->key);
	job->used_ns = loop_now(&hub->loop);
	job->next = hub->jobs;
	hub->jobs = job;
	hub->job_count++;
	hub->jobs_made++;
	return job;
}

/* ---- the end ---- */

static void unlink_job(struct hub_job *job)
{
	struct hub_job **at = &job->hub->jobs;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job->hub->job_count--;
}

void hub_job_free(struct hub_job *job)
{
	assert(!job->session);
	unlink_job(job);
	sodium_memzero(job, sizeof(*job));
	free(job);
}
