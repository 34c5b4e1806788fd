/*
 * Probers in threads over loopback: all get the same result, whichever host vanishes or sends wrong reports.
 * Nothing here depends on speed.
 */
#include "network/probe/probe.h"

#include <math.h>
#include <pthread.h>

#include "base/check.h"

#define HOSTS 5u
#define NEVER UINT32_MAX

/* The meeting of all remaining hosts. */
struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t members, arrived;
	uint64_t generation;
	bool present[HOSTS], was_present[HOSTS];
	uint8_t *all, *was_all;
};

enum trick {
	TRICK_NONE,
	TRICK_VANISH,   /* leaves in the middle */
	TRICK_GROUPING, /* leaves after it has grouped the others */
	TRICK_NONSENSE, /* its reports are random bytes */
	TRICK_LIE,      /* its latencies are a thousand times the others' */
	TRICK_NAN,
	TRICK_NEGATIVE,
	TRICK_HUGE,     /* more bytes than were sent to it */
	TRICK_ZERO,     /* it reports no measurements */
	TRICK_HALF,     /* half of its report is missing */
};

struct member {
	struct meeting *meeting;
	uint32_t host;
	bool observes;
	enum trick trick;
	uint32_t meetings;
	bool has_grouped;
	struct found found;
	enum esp_status status;
	struct error err;
	uint32_t told, told_all;
};

static void close_meeting(struct meeting *meeting)
{
	free(meeting->was_all);
	meeting->was_all = meeting->all;
	meeting->all = NULL;
	memcpy(meeting->was_present, meeting->present, sizeof(meeting->present));
	memset(meeting->present, 0, sizeof(meeting->present));
	meeting->arrived = 0;
	meeting->generation++;
	pthread_cond_broadcast(&meeting->changed);
}

static void falsify_row(enum trick trick, struct report_row *row)
{
	row->rtt_count = row->rtt_count ? row->rtt_count : 1;
	row->rtt_low = row->rtt_median = trick == TRICK_NAN ? NAN : trick == TRICK_NEGATIVE ? -1e-6 : 50;
	if (trick == TRICK_HUGE)
		row->received = UINT64_C(1) << 50;
}

/* Replaces the report of a host that plays a trick. */
static void falsify(const struct member *member, uint8_t *said, size_t bytes)
{
	struct report_row rows[HOSTS];

	if (bytes != report_bytes(HOSTS))
		return;
	if (member->trick == TRICK_NONSENSE)
		memset(said, 0xff, bytes);
	if (member->trick == TRICK_ZERO || member->trick == TRICK_HALF)
		memset(said + (member->trick == TRICK_HALF ? bytes / 2 : 0), 0,
		       bytes - (member->trick == TRICK_HALF ? bytes / 2 : 0));
	if (member->trick < TRICK_LIE || member->trick > TRICK_HUGE ||
	    !probe_report_decode(said, HOSTS, member->host, rows))
		return;
	for (uint32_t i = 0; i < HOSTS; i++)
		if (i != member->host)
			falsify_row(member->trick, &rows[i]);
	probe_report_encode(rows, HOSTS, said);
}

static enum esp_status exchange(void *context, const void *mine, size_t bytes, void *all, bool *present,
                                struct error *err)
{
	struct member *member = context;
	struct meeting *meeting = member->meeting;

	if ((member->trick == TRICK_VANISH && member->meetings == 3) ||
	    (member->trick == TRICK_GROUPING && member->has_grouped))
		return error_set(err, ESP_EPEER, "vanished");
	member->meetings++;
	pthread_mutex_lock(&meeting->lock);
	if (!meeting->all)
		meeting->all = calloc(HOSTS, bytes);
	CHECK(meeting->all);
	if (mine) {
		memcpy(meeting->all + member->host * bytes, mine, bytes);
		falsify(member, meeting->all + member->host * bytes, bytes);
		meeting->present[member->host] = true;
	}
	uint64_t generation = meeting->generation;
	if (++meeting->arrived == meeting->members)
		close_meeting(meeting);
	while (meeting->generation == generation)
		pthread_cond_wait(&meeting->changed, &meeting->lock);
	memcpy(all, meeting->was_all, HOSTS * bytes);
	memcpy(present, meeting->was_present, sizeof(meeting->was_present));
	pthread_mutex_unlock(&meeting->lock);
	return ESP_OK;
}

static void leave(struct member *member)
{
	struct meeting *meeting = member->meeting;

	pthread_mutex_lock(&meeting->lock);
	meeting->members--;
	if (meeting->arrived == meeting->members && meeting->members > 0 && meeting->all)
		close_meeting(meeting);
	pthread_mutex_unlock(&meeting->lock);
}

/* The first half of the present hosts, and the rest. */
static enum esp_status group(void *context, const struct survey *survey, struct grouping *out, struct error *err)
{
	struct member *member = context;
	uint32_t labels[HOSTS];

	member->has_grouped = true;
	for (uint32_t i = 0; i < survey->count; i++)
		labels[i] = i >= survey->count / 2;
	return grouping_from(out, labels, survey->count, err);
}

static void progress(void *context, const char *what, uint32_t done, uint32_t all)
{
	struct member *member = context;

	CHECK(what && done == member->told + 1 && done <= all);
	member->told = done;
	member->told_all = all;
}

static void *take_part(void *argument)
{
	static const char *const names[HOSTS] = {"a", "b", "c", "d", "e"};
	static const uint8_t loopback[4] = {127, 0, 0, 1};
	struct member *member = argument;
	struct place places[HOSTS] = {0};

	for (uint32_t i = 0; i < HOSTS; i++)
		probe_place_set(&places[i], loopback, sizeof(loopback), 0);
	const struct probe_config config = {
		.hosts = HOSTS,
		.self = member->observes ? PROBE_OBSERVER : member->host,
		.names = names,
		.places = places,
		.key = "the key of a job ..............",
		.latency = true,
		.bandwidth = true,
		.seconds = 1,
		.streams = 2,
		.seed = 7,
		.exchange = exchange,
		.exchange_context = member,
		.group = group,
		.group_context = member,
		.progress = progress,
		.progress_context = member,
	};
	member->status = probe_run(&config, &member->found, &member->err);
	leave(member);
	return NULL;
}

static void check_same(const struct found *a, const struct found *b)
{
	size_t hosts = a->survey.count;

	CHECK_U64(b->survey.count, hosts);
	CHECK(grouping_equal(&a->grouping, &b->grouping));
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		CHECK(memcmp(a->survey.matrices[k].at, b->survey.matrices[k].at, hosts * hosts * sizeof(double)) == 0);
	CHECK(memcmp(a->rate_out, b->rate_out, hosts * sizeof(double)) == 0 &&
	      memcmp(a->rate_in, b->rate_in, hosts * sizeof(double)) == 0);
	CHECK(memcmp(a->uplink_out, b->uplink_out, a->grouping.count * sizeof(double)) == 0);
	CHECK_U64(a->lost_count, b->lost_count);
}

static void check_complete(const struct found *found)
{
	struct topology *topology;
	struct error err = {0};

	/* Not all pairs: on a very busy machine one may get nothing through in its slot. */
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		CHECK(4 * matrix_known(&found->survey.matrices[k]) >= (uint64_t)found->survey.count *
		      (found->survey.count - 1));
	CHECK_MSG(probe_topology(found, &topology, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(topology->host_count, found->survey.count);
	topology_close(topology);
}

/* One host with a trick, or none; with an observer beside the probers. */
static void test(enum trick trick, enum probe_fate fate)
{
	struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER,
	                          .members = HOSTS + 1};
	struct member members[HOSTS + 1] = {0};
	pthread_t threads[HOSTS + 1];
	uint32_t odd = 3;

	for (uint32_t i = 0; i <= HOSTS; i++) {
		members[i] = (struct member){.meeting = &meeting, .host = i % HOSTS, .observes = i == HOSTS,
		                             .trick = i == odd ? trick : TRICK_NONE};
		CHECK(pthread_create(&threads[i], NULL, take_part, &members[i]) == 0);
	}
	for (uint32_t i = 0; i <= HOSTS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (uint32_t i = 0; i <= HOSTS; i++) {
		if (i == odd && trick == TRICK_VANISH) {
			CHECK(members[i].status == ESP_EPEER);
			continue;
		}
		CHECK_MSG(members[i].status == ESP_OK, "host %u: %s", i, members[i].err.text);
		CHECK(members[i].told == members[i].told_all && members[i].told > 0);
		check_same(&members[0].found, &members[i].found);
	}
	CHECK_U64(members[0].found.survey.count, fate == PROBE_IN ? HOSTS : HOSTS - 1);
	CHECK_U64(members[0].found.lost_count, fate != PROBE_IN);
	if (fate != PROBE_IN) {
		CHECK_STR(members[0].found.lost[0].name, "d");
		CHECK_STR(probe_fate_text(members[0].found.lost[0].fate), probe_fate_text(fate));
	}
	check_complete(&members[0].found);
	for (uint32_t i = 0; i <= HOSTS; i++)
		probe_found_fini(&members[i].found);
	free(meeting.was_all);
}

/*
 * The first two hosts vanish while grouping: the third one does it; they are in the result, as all had been
 * measured.
 */
static void test_grouping_host_vanishes(void)
{
	struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .members = HOSTS};
	struct member members[HOSTS];
	pthread_t threads[HOSTS];

	for (uint32_t i = 0; i < HOSTS; i++) {
		members[i] = (struct member){.meeting = &meeting, .host = i, .trick = i < 2 ? TRICK_GROUPING : TRICK_NONE};
		CHECK(pthread_create(&threads[i], NULL, take_part, &members[i]) == 0);
	}
	for (uint32_t i = 0; i < HOSTS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (uint32_t i = 0; i < HOSTS; i++) {
		CHECK(members[i].has_grouped == (i <= 2));
		CHECK_MSG(members[i].status == (i < 2 ? ESP_EPEER : ESP_OK), "host %u: %s", i, members[i].err.text);
		if (i >= 2)
			check_same(&members[2].found, &members[i].found);
	}
	CHECK_U64(members[2].found.survey.count, HOSTS);
	for (uint32_t i = 0; i < HOSTS; i++)
		probe_found_fini(&members[i].found);
	free(meeting.was_all);
}

static void test_arguments(void)
{
	struct found found;
	struct error err;

	CHECK(probe_run(&(struct probe_config){.hosts = 1, .latency = true}, &found, &err) == ESP_EINVAL);
	CHECK(probe_run(&(struct probe_config){.hosts = PROBE_HOSTS_MAX + 1, .latency = true}, &found, &err) == ESP_EINVAL);
	CHECK(probe_run(&(struct probe_config){.hosts = 2}, &found, &err) == ESP_EINVAL);
}

int main(void)
{
	test_arguments();
	test(TRICK_NONE, PROBE_IN);
	test(TRICK_VANISH, PROBE_ABSENT);
	test(TRICK_NONSENSE, PROBE_NONSENSE);
	test(TRICK_LIE, PROBE_LIES);
	test(TRICK_NAN, PROBE_NONSENSE);
	test(TRICK_NEGATIVE, PROBE_NONSENSE);
	test(TRICK_HUGE, PROBE_LIES);
	test(TRICK_ZERO, PROBE_LIES); /* the others have received data from it */
	test(TRICK_HALF, PROBE_NONSENSE);
	test_grouping_host_vanishes();
	return 0;
}
