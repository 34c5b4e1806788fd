#include "rank/join/rendezvous.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/quote.h"

/* A rank is told this long before its own deadline, so that the reason reaches it. */
#define MARGIN_NS (500 * NS_PER_MS)

static void break_off(struct rendezvous *rendezvous, int32_t culprit, const struct error *reason)
{
	if (rendezvous->state != RENDEZVOUS_GATHERS)
		return; /* the first reason is the cause; later ones are its consequences */
	rendezvous->error = *reason;
	rendezvous->culprit = culprit;
	rendezvous->state = RENDEZVOUS_BROKEN;
}

enum esp_status rendezvous_init(struct rendezvous *rendezvous, const struct node_info *own, const char *settings,
                                uint64_t now_ns, uint64_t deadline_ns, struct error *err)
{
	assert(own->rank == 0 && own->size > 0);
	*rendezvous = (struct rendezvous){
		.culprit = -1, .size = own->size, .present = 1, .settings = settings, .begin_ns = now_ns,
		    .deadline_ns = deadline_ns};
	rendezvous->nodes = calloc(own->size, sizeof(*rendezvous->nodes));
	rendezvous->arrived = calloc(own->size, 1);
	rendezvous->elsewhere = calloc(own->size, 1);
	if (!rendezvous->nodes || !rendezvous->arrived || !rendezvous->elsewhere) {
		rendezvous_fini(rendezvous);
		return error_set(err, ESP_ENOMEM, "no memory for the node infos of %u ranks", own->size);
	}
	rendezvous->nodes[0] = *own;
	rendezvous->arrived[0] = 1;
	rendezvous->state = own->size == 1 ? RENDEZVOUS_COMPLETE : RENDEZVOUS_GATHERS;
	return ESP_OK;
}

/* Appends a word to a text; if there is no room, dots, after which nothing is appended. */
static void add_word(char *text, size_t size, const char *word, size_t length)
{
	static const char rest[] = "...";
	size_t used = strlen(text);
	if (used >= strlen(rest) && strcmp(text + used - strlen(rest), rest) == 0)
		return;
	if (used + 1 + length + 1 + sizeof(rest) > size) {
		word = rest;
		length = strlen(rest);
	}
	snprintf(text + used, size - used, "%s%.*s", used ? " " : "", (int)length, word);
}

/* Copies the settings that differ between two texts with the same settings in the same order. */
static void find_differences(const char *one, const char *other, char *of_one, char *of_other, size_t size)
{
	of_one[0] = of_other[0] = '\0';
	while (*one && *other) {
		size_t length = strcspn(one, " "), other_length = strcspn(other, " ");
		if (length != other_length || memcmp(one, other, length) != 0) {
			add_word(of_one, size, one, length);
			add_word(of_other, size, other, other_length);
		}
		one += length + (one[length] == ' ');
		other += other_length + (other[other_length] == ' ');
	}
}

static enum esp_status other_settings(const struct node_info *info, const char *settings, const struct node_info *first,
                                      const char *first_settings, struct error *err)
{
	char own[48], firsts[48];
	find_differences(settings ? settings : "", first_settings ? first_settings : "", own, firsts, sizeof(own));
	if (own[0])
		return error_set(err, ESP_EMISMATCH, "rank %u on %.40s has %s, but the leader, rank 0 on %.40s, has %s",
		                 info->rank, info->host_name, own, first->host_name, firsts);
	return error_set(err, ESP_EMISMATCH, "rank %u has other settings than rank 0: compare what `espalier conf` prints "
	                                     "on both", info->rank);
}

enum esp_status rendezvous_check_node(const struct node_info *info, const char *settings, const struct node_info *first,
                                 const char *first_settings, struct error *err)
{
	if (info->version != first->version)
		return error_set(err, ESP_EMISMATCH, "rank %u speaks version %u of the protocol, rank 0 version %u", info->rank,
		                 info->version, first->version);
	if (info->size != first->size)
		return error_set(err, ESP_EMISMATCH, "rank %u was started for %u ranks, rank 0 for %u", info->rank, info->size,
		                 first->size);
	if (memcmp(info->settings, first->settings, HELLO_DIGEST_BYTES) != 0)
		return other_settings(info, settings, first, first_settings, err);
	return ESP_OK;
}

static const char *name_job(const char *job, char text[QUOTE_TEXT])
{
	return job[0] ? quote(job, strlen(job), text) : "without a name";
}

enum esp_status rendezvous_explain_joiner(const struct rendezvous_arrival *joiner, uint32_t rank, const char *job,
                                          const char *settings, struct error *err)
{
	const struct node_info *info = &joiner->info;
	char one[QUOTE_TEXT], other[QUOTE_TEXT], own[64], ranks[64];
	if (strcmp(joiner->job, job) != 0)
		return error_set(err, ESP_EMISMATCH, "the newcomer, process %u on %.40s, belongs to the job %s, but rank %u at "
		                                     "the door to the job %s: set ESP_JOB to that (espalier run --job)",
		                 info->pid, info->host_name, name_job(joiner->job, one), rank, name_job(job, other));
	find_differences(joiner->settings, settings, own, ranks, sizeof(own));
	return error_set(err, ESP_EMISMATCH, "the newcomer, process %u on %.40s, has %s, but rank %u at the door has %s: "
	                                     "they must be the same on all ranks", info->pid, info->host_name,
	                 own[0] ? own : "other settings", rank, own[0] ? ranks : "others");
}

static enum esp_status fail_twice(const struct node_info *one, const struct node_info *other, struct error *err)
{
	return error_set(err, ESP_EMISMATCH,
	                 "two processes say that they are rank %u: process %u on %s and process %u on %s", one->rank,
	                 one->pid, one->host_name, other->pid, other->host_name);
}

static void shorten_deadline(struct rendezvous *rendezvous, uint64_t patience_ns, uint64_t now_ns)
{
	uint64_t margin = patience_ns / 4 < MARGIN_NS ? patience_ns / 4 : MARGIN_NS;
	uint64_t deadline = now_ns + patience_ns - margin;
	if (deadline < rendezvous->deadline_ns)
		rendezvous->deadline_ns = deadline;
}

void rendezvous_on_arrival(struct rendezvous *rendezvous, uint32_t proved_rank,
                           const struct rendezvous_arrival *arrival, uint64_t now_ns)
{
	struct error reason;
	const struct node_info *info = &arrival->info;
	if (rendezvous->state != RENDEZVOUS_GATHERS)
		return;
	if (info->rank != proved_rank)
		error_set(&reason, ESP_EMISMATCH, "rank %u sent the node info of rank %u", proved_rank, info->rank);
	else if (rendezvous_check_node(info, arrival->settings, &rendezvous->nodes[0], rendezvous->settings,
	                               &reason) == ESP_OK) {
		if (!rendezvous->arrived[info->rank]) {
			rendezvous->arrived[info->rank] = 1;
			rendezvous->nodes[info->rank] = *info;
			rendezvous->present++;
			shorten_deadline(rendezvous, arrival->patience_ms * NS_PER_MS, now_ns);
			if (rendezvous->present == rendezvous->size)
				rendezvous->state = RENDEZVOUS_COMPLETE;
			return;
		}
		fail_twice(&rendezvous->nodes[info->rank], info, &reason);
	}
	break_off(rendezvous, (int32_t)proved_rank, &reason);
}

void rendezvous_withdraw(struct rendezvous *rendezvous, uint32_t rank)
{
	assert(rank < rendezvous->size && rendezvous->arrived[rank] && rendezvous->state == RENDEZVOUS_GATHERS);
	rendezvous->arrived[rank] = 0;
	rendezvous->present--;
}

void rendezvous_on_left(struct rendezvous *rendezvous, uint32_t rank)
{
	struct error reason;
	assert(rank < rendezvous->size);
	error_set(&reason, ESP_EPEER, "rank %u (process %u on %s) went away while the group was joining", rank,
	          rendezvous->nodes[rank].pid, rendezvous->nodes[rank].host_name);
	break_off(rendezvous, (int32_t)rank, &reason);
}

void rendezvous_on_ended(struct rendezvous *rendezvous, uint32_t rank, int32_t status)
{
	struct error reason;
	if (rank >= rendezvous->size || rendezvous->arrived[rank])
		return; /* a rank that has arrived is missed when its connection ends */
	error_set(&reason, ESP_EPEER, "rank %u has ended with status %d before it joined", rank, (int)status);
	break_off(rendezvous, (int32_t)rank, &reason);
}

bool rendezvous_on_mismatch(struct rendezvous *rendezvous, enum hello_verdict verdict, uint32_t rank,
                            const struct error *reason)
{
	/* A process of another job or an earlier epoch, or a misdirected one: nothing is wrong with this job. */
	if (verdict == HELLO_OTHER_JOB || verdict == HELLO_OTHER_EPOCH || verdict == HELLO_NOT_ME ||
	    verdict == HELLO_OTHER_PURPOSE || verdict == HELLO_OTHER_LANE)
		return false;
	break_off(rendezvous, rank < INT32_MAX ? (int32_t)rank : -1, reason);
	return true;
}

static bool count_refused(struct rendezvous_refused *refused, const char *origin)
{
	uint32_t named = refused->origins < RENDEZVOUS_ORIGINS ? refused->origins : RENDEZVOUS_ORIGINS;
	for (uint32_t i = 0; i < named; i++)
		if (strncmp(refused->origin[i], origin, RENDEZVOUS_ORIGIN - 1) == 0)
			return refused->count++ == 0;
	if (refused->origins < RENDEZVOUS_ORIGINS)
		snprintf(refused->origin[refused->origins], RENDEZVOUS_ORIGIN, "%s", origin);
	if (refused->origins <= RENDEZVOUS_ORIGINS)
		refused->origins++;
	return refused->count++ == 0;
}

bool rendezvous_on_stranger(struct rendezvous *rendezvous, const char *origin)
{
	return count_refused(&rendezvous->strangers, origin);
}

bool rendezvous_on_other(struct rendezvous *rendezvous, const char *origin)
{
	return count_refused(&rendezvous->others, origin);
}

void rendezvous_on_called_off(struct rendezvous *rendezvous, int32_t culprit, const struct error *reason)
{
	break_off(rendezvous, culprit, reason);
}

void rendezvous_on_rival(struct rendezvous *rendezvous, const struct error *reason)
{
	break_off(rendezvous, 0, reason);
}

/* Appends "; refused: 8 connections from 10.0.0.7 without the job's key". */
static void describe_refused(const struct rendezvous_refused *refused, const char *lead, const char *what, char *text,
                             size_t size)
{
	char origins[40] = "";
	if (refused->count == 0)
		return;
	for (uint32_t i = 0; i < refused->origins && i < RENDEZVOUS_ORIGINS; i++)
		add_word(origins, sizeof(origins), refused->origin[i], strlen(refused->origin[i]));
	if (refused->origins > RENDEZVOUS_ORIGINS)
		add_word(origins, sizeof(origins), "...", 3);
	size_t used = strlen(text);
	snprintf(text + used, size - used, "%s%llu connection%s from %s %s", lead, (unsigned long long)refused->count,
	         refused->count == 1 ? "" : "s", origins, what);
}

/* The missing rank if there is only one, which is then at fault; -1 otherwise. */
static int32_t only_missing(const struct rendezvous *rendezvous)
{
	int32_t found = -1;
	for (uint32_t i = 0; i < rendezvous->size; i++) {
		if (rendezvous->arrived[i])
			continue;
		if (found >= 0)
			return -1;
		found = (int32_t)i;
	}
	return found;
}

const char *rendezvous_wait_text(const struct rendezvous *rendezvous, char text[RENDEZVOUS_WAIT_TEXT])
{
	char missing[72], here[104], refused[144] = "";
	describe_refused(&rendezvous->strangers, "; refused: ", "without the job's key", refused, sizeof(refused));
	describe_refused(&rendezvous->others, refused[0] ? ", " : "; refused: ", "of another job", refused,
	                 sizeof(refused));
	snprintf(text, RENDEZVOUS_WAIT_TEXT, "%u of %u ranks have not arrived: %s%s; here: %s", rendezvous->size -
	         rendezvous->present, rendezvous->size, rendezvous_missing_text(rendezvous->arrived, rendezvous->size,
	                                                                        missing, sizeof(missing)), refused,
	         rendezvous_here_text(rendezvous, here, sizeof(here)));
	return text;
}

void rendezvous_on_tick(struct rendezvous *rendezvous, uint64_t now_ns)
{
	struct error reason;
	char text[RENDEZVOUS_WAIT_TEXT];
	if (rendezvous->state != RENDEZVOUS_GATHERS || now_ns < rendezvous->deadline_ns)
		return;
	error_set(&reason, ESP_ETIMEOUT, "after %.1f s %s", (double)(now_ns - rendezvous->begin_ns) / (double)NS_PER_S,
	          rendezvous_wait_text(rendezvous, text));
	break_off(rendezvous, only_missing(rendezvous), &reason);
}

void rendezvous_write_roster(const struct rendezvous *rendezvous, uint8_t *out)
{
	assert(rendezvous->state == RENDEZVOUS_COMPLETE);
	for (uint32_t i = 0; i < rendezvous->size; i++)
		node_info_encode(&rendezvous->nodes[i], out + (size_t)i * NODE_INFO_BYTES);
}

void rendezvous_fini(struct rendezvous *rendezvous)
{
	free(rendezvous->nodes);
	free(rendezvous->arrived);
	free(rendezvous->elsewhere);
	*rendezvous = (struct rendezvous){0};
}

const char *rendezvous_missing_text(const uint8_t *marks, uint32_t size, char *text, size_t text_size)
{
	static const char rest[] = " ...";
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < size; i++) {
		char item[32];
		uint32_t end = i;
		if (marks[i])
			continue;
		while (end + 1 < size && !marks[end + 1])
			end++;
		int length = end == i ? snprintf(item, sizeof(item), "%s%u", used ? ", " : "", i)
		                      : snprintf(item, sizeof(item), "%s%u%s%u", used ? ", " : "", i, end > i + 1 ? "-" : ", ",
		                                 end);
		if (used + (size_t)length + sizeof(rest) > text_size) {
			memcpy(text + used, rest, sizeof(rest));
			break;
		}
		memcpy(text + used, item, (size_t)length + 1);
		used += (size_t)length;
		i = end;
	}
	return text;
}

static bool shares_host(const struct rendezvous *rendezvous, uint32_t one, uint32_t other)
{
	return strcmp(rendezvous->nodes[one].host_name, rendezvous->nodes[other].host_name) == 0;
}

/*
 * True if a rank before this one has listed its host. Neighbours mostly share a host, so the nearest is checked
 * first.
 */
static bool is_listed(const struct rendezvous *rendezvous, uint32_t rank)
{
	for (uint32_t i = rank; i-- > 0;)
		if (rendezvous->arrived[i] && shares_host(rendezvous, i, rank))
			return true;
	return false;
}

const char *rendezvous_here_text(const struct rendezvous *rendezvous, char *text, size_t text_size)
{
	char ranks[40];
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < rendezvous->size; i++) {
		if (!rendezvous->arrived[i] || is_listed(rendezvous, i))
			continue;
		for (uint32_t k = 0; k < rendezvous->size; k++)
			rendezvous->elsewhere[k] = !rendezvous->arrived[k] || !shares_host(rendezvous, i, k);
		rendezvous_missing_text(rendezvous->elsewhere, rendezvous->size, ranks, sizeof(ranks));
		size_t length = strlen(ranks) + strlen(rendezvous->nodes[i].host_name) + sizeof(",  on ");
		if (used + length + sizeof(" ...") > text_size) {
			snprintf(text + used, text_size - used, " ...");
			break;
		}
		used += (size_t)snprintf(text + used, text_size - used, "%s%s on %s", used ? ", " : "", ranks,
		                         rendezvous->nodes[i].host_name);
	}
	return text;
}

enum esp_status rendezvous_check_nodes(const struct node_info *nodes, uint32_t size, struct error *err)
{
	for (uint32_t i = 0; i < size; i++) {
		if (nodes[i].rank != i)
			return error_set(err, ESP_EMISMATCH, "the node info of rank %u stands where that of rank %u should",
			                 nodes[i].rank, i);
		enum esp_status status = rendezvous_check_node(&nodes[i], NULL, &nodes[0], NULL, err);
		if (status != ESP_OK)
			return status;
	}
	if (size && nodes[0].size != size)
		return error_set(err, ESP_EMISMATCH, "rank 0 was started for %u ranks, and there are %u node infos",
		                 nodes[0].size, size);
	return ESP_OK;
}
