#include "tools/plan/plan_words.h"

#include <stdlib.h>

#include "tools/plan/plan_json.h"

#define TEXT(place) plan_tool_place_name((place), (char[16]){0})

/* ---- cells ---- */

/* The number of consecutive steps that send from the same place: printed as one "send". */
static uint32_t sends_together(const struct plan_step *steps, uint32_t count)
{
	uint32_t used = 1;

	while (used < count && steps[used].verb == PLAN_SEND && steps[used].place == steps->place)
		used++;
	return used;
}

static void put_terms(const struct plan_step *terms, uint32_t count, FILE *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (terms[i].verb == PLAN_LOCAL)
			fprintf(out, " %s", TEXT(terms[i].place));
		else
			fprintf(out, " %u", terms[i].node);
	}
}

static uint32_t put_step(const struct plan_step *step, uint32_t count, FILE *out)
{
	uint32_t used = 1;

	switch ((enum plan_verb)step->verb) {
	case PLAN_FETCH:
		fputs("fetch", out);
		break;
	case PLAN_SEND:
		used = sends_together(step, count);
		fprintf(out, "send %s >", TEXT(step->place));
		for (uint32_t i = 0; i < used; i++)
			fprintf(out, " %u", step[i].node);
		break;
	case PLAN_RECV:
		fprintf(out, "recv= %s < %u", TEXT(step->place), step->node);
		break;
	case PLAN_FOLD:
		used = 1 + step->count;
		fprintf(out, "recv+ %s <", TEXT(step->place));
		put_terms(step + 1, step->count, out);
		break;
	case PLAN_COPY:
		fprintf(out, "copy %s < %s", TEXT(step->place), TEXT(step->source));
		break;
	case PLAN_UPDATE:
		fprintf(out, "update %s", TEXT(step->place));
		break;
	case PLAN_DELIVER:
		fputs("deliver", out);
		break;
	case PLAN_TERM:
	case PLAN_LOCAL:
		break;
	}
	return used;
}

static void put_peers(const struct plan_row *row, bool sends, FILE *out)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < row->count; i++) {
		uint8_t verb = row->steps[i].verb;

		if (sends ? verb == PLAN_SEND : verb == PLAN_RECV || verb == PLAN_TERM)
			fprintf(out, "%s%u", found++ ? " " : "", row->steps[i].node);
	}
	if (!found)
		fputc('-', out);
}

static void put_steps(const struct plan_row *row, FILE *out)
{
	for (uint32_t i = 0; i < row->count;) {
		fputs(i ? "; " : "", out);
		i += put_step(&row->steps[i], row->count - i, out);
	}
}

enum cell { WAITS, SENDS, STEPS };

/* NULL: out of memory. */
static char *text_of(const struct plan_row *row, enum cell cell)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	if (cell == STEPS)
		put_steps(row, out);
	else
		put_peers(row, cell == SENDS, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

enum esp_status plan_tool_words_init(struct plan_words *words, const struct plan_row *row)
{
	*words = (struct plan_words){text_of(row, WAITS), text_of(row, SENDS), text_of(row, STEPS)};
	if (words->waits && words->sends && words->steps)
		return ESP_OK;
	plan_tool_words_fini(words);
	return ESP_ENOMEM;
}

void plan_tool_words_fini(struct plan_words *words)
{
	free(words->waits);
	free(words->sends);
	free(words->steps);
	words->waits = words->sends = words->steps = NULL;
}

/* ---- sentences ---- */

static const char *place_phrase(uint32_t place, char text[40])
{
	if (place == PLAN_IN)
		return "its input";
	if (place == PLAN_OUT)
		return "its output";
	snprintf(text, 40, "scratch slot %u", place - PLAN_TMP);
	return text;
}

#define PHRASE(place) place_phrase((place), (char[40]){0})

/* "1, 2 and 5" */
static const char *joint(uint32_t index, uint32_t count)
{
	return index == 0 ? "" : index + 1 == count ? " and " : ", ";
}

static void explain_sends(const struct plan_step *steps, uint32_t count, FILE *out)
{
	fprintf(out, "sends what is in %s to node%s ", PHRASE(steps->place), count > 1 ? "s" : "");
	for (uint32_t i = 0; i < count; i++)
		fprintf(out, "%s%u", joint(i, count), steps[i].node);
}

static void explain_fold(const struct plan_step *fold, FILE *out)
{
	uint32_t count = fold->count;

	fprintf(out, "adds, in this order, ");
	for (uint32_t i = 1; i <= count; i++) {
		fputs(joint(i - 1, count), out);
		if (fold[i].verb == PLAN_LOCAL)
			fputs(PHRASE(fold[i].place), out);
		else
			fprintf(out, "what node %u sends", fold[i].node);
	}
	fprintf(out, ", into %s", PHRASE(fold->place));
}

uint32_t plan_tool_explain(const struct plan_row *row, uint32_t at, FILE *out)
{
	const struct plan_step *step = &row->steps[at];
	uint32_t used = 1;

	switch ((enum plan_verb)step->verb) {
	case PLAN_FETCH:
		fputs("waits until the caller's input may be read", out);
		break;
	case PLAN_SEND:
		used = sends_together(step, row->count - at);
		explain_sends(step, used, out);
		break;
	case PLAN_RECV:
		fprintf(out, "waits for the chunk from node %u and puts it into %s", step->node, PHRASE(step->place));
		break;
	case PLAN_FOLD:
		used = 1 + step->count;
		explain_fold(step, out);
		break;
	case PLAN_COPY:
		fprintf(out, "copies %s into %s", PHRASE(step->source), PHRASE(step->place));
		break;
	case PLAN_UPDATE:
		fprintf(out, "has the complete sum in %s: does to it what is done once (average, scale, optimizer)",
		        PHRASE(step->place));
		break;
	case PLAN_DELIVER:
		fputs("hands the chunk to the caller: its output is final", out);
		break;
	case PLAN_TERM:
	case PLAN_LOCAL:
		break;
	}
	return used;
}
