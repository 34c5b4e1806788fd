#include "tools/doctor/doctor_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "node/auth/key.h"
#include "node/net/listen.h"
#include "tools/doctor/doctor_facts.h"
#include "tools/doctor/doctor_gather.h"
#include "tools/doctor/doctor_reach.h"

#define GATHER_PATIENCE (120 * NS_PER_S) /* for the slowest rank to have tried all others */

#define JOIN_SEGMENT 500u                /* so that doctors join where large packets are lost */

struct doctor_job {
	struct conf conf;
	struct join_config join;
	struct listener listener;
	struct roster roster;
	struct doctor_server *server;
	struct leader_listen listen;             /* of rank 0 */
	struct announcement announcement;           /* of rank 0, if the job has a place for it */
	struct doctor_report *reports;  /* by rank on rank 0, one elsewhere */
	uint32_t report_count;
};

bool doctor_is_launched(void)
{
	return launch_is_told(conf_environment, NULL);
}

/* ---- joining ---- */

static enum esp_status find_key(struct doctor_job *job, bool loopback, struct error *err)
{
	struct key key;
	enum key_policy policy;
	enum esp_status status = key_find(conf_environment, NULL, &key, err);
	if (status != ESP_OK)
		return status;
	struct key_situation situation = {key.origin, loopback, job->join.launch.size == 1, job->conf.insecure,
	                                  announce_keeps_secrets(&job->join.launch.place)};
	status = key_settle(&key, &situation, &policy, err);
	job->join.key_in_announcement = status == ESP_OK && policy == KEY_POSTED;
	memcpy(job->join.key, key.bytes, sizeof(job->join.key));
	key_wipe(&key);
	return status;
}

static enum esp_status listen_as_a_job(struct doctor_job *job, bool loopback, struct error *err)
{
	struct listen_config config = {
		.loopback_only = loopback,
		.family = (enum conf_family)job->conf.family,
		.port = job->conf.port,
		.segment_bytes = job->conf.segment_bytes,
	};
	enum esp_status status = interface_filter_parse(job->conf.interfaces, &config.filter, err);
	return status == ESP_OK ? listen_open(&config, &job->listener, &job->join.info, err) : status;
}

static enum esp_status join(struct doctor_job *job, struct error *err)
{
	const struct launch_surroundings around = {conf_environment, NULL, launch_system_fact, NULL, NULL};
	enum esp_status status = conf_load(&job->conf, NULL, NULL, err);
	if (status == ESP_OK)
		status = launch_find(&LAUNCH_NO_ARGUMENTS, &around, &job->join.launch, err);
	if (status != ESP_OK)
		return status;
	bool loopback = job->join.launch.leader.port != 0 && address_is_loopback(&job->join.launch.leader);
	status = find_key(job, loopback, err);
	if (status != ESP_OK)
		return status;
	join_prepare(&job->join, &job->conf);
	status = listen_as_a_job(job, loopback, err);
	if (status != ESP_OK)
		return status;
	host_info_describe(&job->join.info);
	job->join.deadline_ns = clock_now_ns() + job->conf.join_seconds * NS_PER_S;
	job->join.segment_bytes = JOIN_SEGMENT;
	status = join_run(&job->join, &job->roster, NULL, err);
	if (status == ESP_OK && job->join.launch.rank == 0 && job->join.launch.size > 1)
		status = doctor_listen_open(&job->join, &job->listen, &job->announcement, err);
	return status;
}

/* ---- this rank's part ---- */

static bool make_reports(struct doctor_job *job)
{
	uint32_t size = job->roster.size;
	uint32_t count = job->join.launch.rank == 0 ? size : 1;
	job->reports = calloc(count, sizeof(*job->reports));
	job->report_count = job->reports ? count : 0;
	for (uint32_t i = 0; i < job->report_count; i++) {
		job->reports[i].ways = calloc((size_t)size * NODE_ADDRESSES, sizeof(struct doctor_way));
		if (!job->reports[i].ways)
			return false;
	}
	return job->reports != NULL;
}

static void examine_host(struct doctor_job *job, struct doctor_report *report)
{
	struct doctor_findings findings = {0};
	struct doctor_facts *facts = malloc(sizeof(*facts));
	uint32_t host = job->roster.host_of[job->join.launch.rank];
	if (!facts)
		return;
	doctor_facts_collect(facts, job->roster.host_ranks[host], job->roster.size);
	doctor_judge(facts, &findings);
	for (uint32_t i = 0; i < findings.count && i < DOCTOR_REPORT_FINDINGS; i++)
		report->findings[report->finding_count++] = findings.list[i];
	doctor_findings_fini(&findings);
	free(facts);
}

static void examine(struct doctor_job *job, struct doctor_report *report)
{
	job->server = doctor_server_start(&job->join, &job->listener);
	examine_host(job, report);
	doctor_reach_all(&job->join, &job->roster, &job->listener.interfaces, job->conf.segment_bytes, &doctor_patience,
	                 report->ways);
}

/* ---- all ranks ---- */

/* Rules that drop packets do not matter if all ranks reach each other. */
static void settle_firewall(struct doctor_finding *finding, bool all_reached)
{
	if (!all_reached || strcmp(finding->check, "firewall") != 0 || finding->verdict != DOCTOR_WARN)
		return;
	finding->verdict = DOCTOR_OK;
	finding->advice[0] = '\0';
	snprintf(finding->what, sizeof(finding->what),
	         "rules of this host drop some of what comes in, but none of what the ranks tried");
}

static void judge_all(struct doctor_job *job, const bool *has, struct doctor_findings *out)
{
	struct doctor_findings pairs = {0};
	const struct roster *roster = &job->roster;
	struct doctor_way **ways = calloc(roster->size, sizeof(struct doctor_way *));
	bool *said = calloc(roster->hosts, sizeof(bool));
	if (!ways || !said) {
		doctor_say(out, DOCTOR_FAIL, "memory", "no memory for the findings of %u ranks", roster->size);
	} else {
		for (uint32_t i = 0; i < roster->size; i++)
			ways[i] = has[i] ? job->reports[i].ways : NULL;
		bool all_reached = doctor_judge_pairs(roster, ways, &pairs);
		for (uint32_t i = 0; i < roster->size; i++) {
			uint32_t host = roster->host_of[i];
			for (uint32_t f = 0; has[i] && !said[host] && f < job->reports[i].finding_count; f++) {
				settle_firewall(&job->reports[i].findings[f], all_reached);
				doctor_merge(out, &job->reports[i].findings[f], roster->nodes[i].host_name);
			}
			said[host] = said[host] || has[i];
		}
	}
	doctor_say(out, DOCTOR_OK, "joining", "%u rank%s on %u host%s, with one version, key and settings", roster->size,
	           roster->size == 1 ? "" : "s", roster->hosts, roster->hosts == 1 ? "" : "s");
	for (uint32_t i = 0; i < pairs.count; i++)
		doctor_add(out, &pairs.list[i]);
	doctor_findings_fini(&pairs);
	free(ways);
	free(said);
}

static bool lead(struct doctor_job *job, struct doctor_findings *out)
{
	bool *has = calloc(job->roster.size, sizeof(*has));
	if (!has) {
		doctor_say(out, DOCTOR_FAIL, "memory", "no memory for %u ranks", job->roster.size);
		return true;
	}
	has[0] = true;
	if (job->roster.size > 1)
		doctor_gather(&job->join, &job->listen, job->reports, has, clock_now_ns() + GATHER_PATIENCE);
	judge_all(job, has, out);
	free(has);
	return true;
}

static bool follow(struct doctor_job *job, struct doctor_findings *out)
{
	struct error err;
	if (doctor_hand_in(&job->join, &job->roster, &job->reports[0], clock_now_ns() + GATHER_PATIENCE, &err) == ESP_OK)
		return false;
	doctor_say(out, DOCTOR_FAIL, "report", "%.200s", err.text);
	doctor_advise(out, "rank 0 may have ended before: see what it printed");
	return true;
}

static void finish(struct doctor_job *job)
{
	doctor_server_stop(job->server);
	doctor_listen_close(&job->join, &job->listen, &job->announcement);
	listener_close(&job->listener);
	for (uint32_t i = 0; i < job->report_count; i++)
		free(job->reports[i].ways);
	free(job->reports);
	roster_fini(&job->roster);
	explicit_bzero(job->join.key, sizeof(job->join.key));
	free(job);
}

/* Joining has failed: the facts about this host may tell why. */
static void examine_alone(struct doctor_findings *out)
{
	struct doctor_facts *facts = malloc(sizeof(*facts));
	if (!facts)
		return;
	doctor_facts_collect(facts, 1, 2);
	doctor_judge(facts, out);
	free(facts);
}

/* Of the ranks of this host, if their launcher numbers them, only the first one reports about it. */
static bool is_first_here(void)
{
	static const char *const names[] = {"ESP_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
	                                    "SLURM_LOCALID"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = conf_environment(NULL, names[i]);
		if (text && text[0])
			return strcmp(text, "0") == 0;
	}
	return true;
}

bool doctor_run_job(struct doctor_findings *out)
{
	struct doctor_job *job = calloc(1, sizeof(*job));
	struct error err = {0};
	bool prints = true;
	if (!job) {
		doctor_say(out, DOCTOR_FAIL, "memory", "no memory");
		return true;
	}
	if (join(job, &err) != ESP_OK && job->join.is_told) {
		prints = false; /* rank 0 reports the same, and the facts about its host */
	} else if (err.status != ESP_OK) {
		if (is_first_here())
			examine_alone(out);
		doctor_say(out, DOCTOR_FAIL, "joining", "%.230s", err.text);
		doctor_advise(out, "every rank must reach the leader's address and port, with the same key (ESP_KEY, "
		                   "ESP_KEY_FILE), version and settings");
	} else if (!make_reports(job)) {
		doctor_say(out, DOCTOR_FAIL, "memory", "no memory for %u ranks", job->roster.size);
	} else {
		examine(job, &job->reports[0]);
		prints = job->join.launch.rank == 0 ? lead(job, out) : follow(job, out);
	}
	finish(job);
	return prints;
}
