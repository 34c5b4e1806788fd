#include "api/probing_meeting.h"

#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

#define NUMBER_BYTES 8u
#define DEATHS_MOST 64u

void meeting_fini(struct meeting *meeting)
{
	free(meeting->last);
	meeting->last = NULL;
}

/* Can it go on after that? */
static bool is_death(enum esp_status status)
{
	return status == ESP_EPEER || status == ESP_EJOB || status == ESP_ELINK || status == ESP_EABORTED ||
	       status == ESP_ETIMEOUT;
}

/* ---- how a meeting ends ---- */

/* By host: whether it was there, then what each said. */
static size_t outcome_bytes(const struct meeting *meeting, size_t bytes)
{
	return meeting->hosts * (1 + bytes);
}

/* False: a rank is at another meeting. */
static bool note(const struct meeting *meeting, const uint8_t *heard, size_t bytes, uint8_t *outcome)
{
	const struct meeting_calls *calls = &meeting->calls;
	size_t each = NUMBER_BYTES + bytes;

	memset(outcome, 0, outcome_bytes(meeting, bytes));
	for (uint32_t i = 0; i < calls->size(calls->context); i++) {
		uint32_t rank = calls->rank_at(calls->context, i), host = meeting->host_of[rank];
		if (bytes_get64(heard + i * each) != meeting->number)
			return false;
		if (meeting->speaker[host] != rank)
			continue;
		outcome[host] = 1;
		memcpy(outcome + meeting->hosts + host * bytes, heard + i * each + NUMBER_BYTES, bytes);
	}
	return true;
}

static enum esp_status hold_once(struct meeting *meeting, const void *mine, size_t bytes, uint8_t *outcome)
{
	const struct meeting_calls *calls = &meeting->calls;
	size_t each = NUMBER_BYTES + bytes;
	uint8_t *said = calloc(1, each), *heard = malloc(calls->size(calls->context) * each);
	enum esp_status status = ESP_ENOMEM;

	if (said && heard) {
		bytes_put64(said, meeting->number);
		if (mine)
			memcpy(said + NUMBER_BYTES, mine, bytes);
		status = calls->gather(calls->context, said, heard, each);
		if (status == ESP_OK && !note(meeting, heard, bytes, outcome))
			status = ESP_EMISMATCH;
	}
	free(said);
	free(heard);
	return status;
}

/* ---- when a rank has died ---- */

/*
 * How many meetings the remaining ranks have been at: the fewest, the most, and the first rank that has been at the
 * most.
 */
struct standing {
	uint64_t least, most;
	uint32_t ahead; /* place */
};

static enum esp_status compare(struct meeting *meeting, struct standing *out)
{
	const struct meeting_calls *calls = &meeting->calls;
	uint32_t size = calls->size(calls->context);
	uint8_t mine[NUMBER_BYTES], *numbers = malloc((size_t)size * NUMBER_BYTES);

	if (!numbers)
		return ESP_ENOMEM;
	bytes_put64(mine, meeting->number);
	enum esp_status status = calls->gather(calls->context, mine, numbers, NUMBER_BYTES);
	*out = (struct standing){.least = meeting->number, .most = 0};
	for (uint32_t i = size; i-- > 0 && status == ESP_OK;) {
		uint64_t number = bytes_get64(numbers + (size_t)i * NUMBER_BYTES);
		out->least = number < out->least ? number : out->least;
		out->ahead = number >= out->most ? i : out->ahead;
		out->most = number > out->most ? number : out->most;
	}
	free(numbers);
	if (status == ESP_OK && out->most - out->least > 1)
		return ESP_EMISMATCH;
	return status;
}

/* *out_caught_up: this rank had not been at the meeting, and now knows how it ended. */
static enum esp_status catch_up(struct meeting *meeting, size_t bytes, uint8_t *outcome, bool *out_caught_up)
{
	const struct meeting_calls *calls = &meeting->calls;
	struct standing standing;

	*out_caught_up = false;
	enum esp_status status = compare(meeting, &standing);
	if (status != ESP_OK || standing.least == standing.most)
		return status;
	if (meeting->number == standing.most)
		return calls->broadcast(calls->context, meeting->last, meeting->last_bytes, standing.ahead);
	status = calls->broadcast(calls->context, outcome, outcome_bytes(meeting, bytes), standing.ahead);
	*out_caught_up = status == ESP_OK;
	return status;
}

/* With the remaining ranks, as often as one dies. */
static enum esp_status hold(struct meeting *meeting, const void *mine, size_t bytes, uint8_t *outcome)
{
	const struct meeting_calls *calls = &meeting->calls;
	enum esp_status status = hold_once(meeting, mine, bytes, outcome);

	for (uint32_t deaths = 0; is_death(status) && deaths < DEATHS_MOST; deaths++) {
		bool caught_up = false;
		status = calls->shrink(calls->context);
		if (status != ESP_OK)
			return status;
		status = catch_up(meeting, bytes, outcome, &caught_up);
		if (status == ESP_OK && !caught_up)
			status = hold_once(meeting, mine, bytes, outcome);
	}
	return status;
}

enum esp_status meeting_hold(struct meeting *meeting, const void *mine, size_t bytes, void *all, bool *present)
{
	uint8_t *outcome = calloc(1, outcome_bytes(meeting, bytes) + 1);

	if (!outcome)
		return ESP_ENOMEM;
	enum esp_status status = hold(meeting, mine, bytes, outcome);
	if (status != ESP_OK) {
		free(outcome);
		return status;
	}
	for (uint32_t i = 0; i < meeting->hosts; i++)
		present[i] = outcome[i] != 0;
	memcpy(all, outcome + meeting->hosts, meeting->hosts * bytes);
	free(meeting->last);
	meeting->last = outcome;
	meeting->last_bytes = outcome_bytes(meeting, bytes);
	meeting->number++;
	return ESP_OK;
}

/*
 * One more meeting, at which nothing is said: a rank that gets through it knows that all have been at the one before.
 */
void meeting_leave(struct meeting *meeting)
{
	uint8_t *outcome = calloc(1, outcome_bytes(meeting, 0) + 1);

	if (outcome)
		(void)!hold(meeting, NULL, 0, outcome);
	free(outcome);
}
