#include "fabric/server/sched_picture.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "report/svg.h"

#define WIDTH 960.0
#define LEFT 110.0   /* of the times */
#define RIGHT 640.0
#define NOTES 654.0
#define TOP 84.0
#define ROW 30.0
#define BAR 16.0
#define BOTTOM 44.0
#define COLOURS 6u
#define BAR_LEAST 2.0 /* pixels */
#define TEXT 200u

/* Sums have colours, updates by themselves are grey; both are told in words, too. */
static const char style[] =
	"text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#24242b}\n"
	".title{font-size:18px;font-weight:600}.note{font-size:12px;fill:#5c5c68}.name{font-size:13px;font-weight:600}\n"
	".paper{fill:#fcfbf8;stroke:#e3e1da}.grid{stroke:#e3e1da}.arrow{stroke:#5c5c68;fill:none}.head{fill:#5c5c68}\n"
	".alone{fill:#8a8a94}.s0{fill:#0072b2}.s1{fill:#c04e00}.s2{fill:#007d5b}.s3{fill:#a8407f}.s4{fill:#8a6a00}"
	".s5{fill:#5456a8}\n"
	"@media (prefers-color-scheme:dark){text{fill:#ecebf0}.note{fill:#a9a9b6}.paper{fill:#1c1c22;stroke:#3a3a44}"
	".grid{stroke:#3a3a44}.arrow{stroke:#a9a9b6}.head{fill:#a9a9b6}.s0{fill:#56b4e9}.s1{fill:#ff9a52}"
	".s2{fill:#3fd0a4}.s3{fill:#e39bc8}.s4{fill:#f0d04a}.s5{fill:#b3b4ff}}\n";

void sched_picture_add(struct sched_picture *picture, uint64_t batch, const struct sched_decision *decision,
                       uint64_t bytes)
{
	if (picture->batch != batch)
		*picture = (struct sched_picture){.batch = batch};
	assert(picture->count < LEDGER_WORKERS_MOST);
	picture->rows[picture->count++] = (struct sched_picture_row){*decision, bytes};
}

/* ---- times ---- */

static double begin_ms(const struct sched_picture_row *row)
{
	return (double)row->decision.start_ns / (double)NS_PER_MS;
}

static double end_ms(const struct sched_picture_row *row)
{
	double rate = (double)row->decision.rate;

	return begin_ms(row) + (rate > 0 ? (double)row->bytes / rate * 1e3 : 0);
}

static bool is_sent(const struct sched_picture_row *row)
{
	return row->decision.end == LEDGER_APPLIED;
}

static double last_ms(const struct sched_picture *picture)
{
	double last = 1;

	for (uint32_t i = 0; i < picture->count; i++) {
		if (is_sent(&picture->rows[i]))
			last = fmax(last, end_ms(&picture->rows[i]));
	}
	return last;
}

static double place(double ms, double last)
{
	return LEFT + (RIGHT - LEFT) * ms / last;
}

/* 1, 2 or 5 times a power of ten; about six ticks. */
static double tick_step(double last)
{
	double raw = last / 6, power = pow(10, floor(log10(raw))), digit = raw / power;

	return (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10) * power;
}

/* ---- parts ---- */

static double row_top(uint32_t row)
{
	return TOP + row * ROW;
}

static void draw_axis(double last, uint32_t workers, FILE *out)
{
	double bottom = row_top(workers + 1), step = tick_step(last);
	char text[TEXT];

	for (uint32_t i = 0; i * step <= last * 1.001; i++) {
		double x = place(i * step, last);

		svg_path_begin(out);
		svg_path_line(out, x, TOP - 6, x, bottom);
		svg_path_end(out, "class=\"grid\"");
		snprintf(text, sizeof(text), "%g ms", i * step);
		svg_text(out, x, bottom + 18, "note", "middle", text);
	}
}

static void draw_names(uint32_t workers, FILE *out)
{
	char text[TEXT];

	for (uint32_t worker = 0; worker < workers; worker++) {
		snprintf(text, sizeof(text), "worker %u", worker);
		svg_text(out, LEFT - 12, row_top(worker) + BAR - 3, "name", "end", text);
	}
	svg_text(out, LEFT - 12, row_top(workers) + BAR - 3, "name", "end", "hub");
}

static bool is_aggregator(const struct sched_decision *decision)
{
	return decision->bundle == 0 || decision->aggregator == decision->worker || decision->aggregator == SCHED_ALONE;
}

/* The worker that gets this one's bytes, or SCHED_HUB. */
static uint32_t target_of(const struct sched_decision *decision)
{
	if (decision->is_chain)
		return decision->next_hop;
	return is_aggregator(decision) ? SCHED_HUB : decision->aggregator;
}

static void put_target(const struct sched_decision *decision, char text[48])
{
	uint32_t target = target_of(decision);

	if (target == SCHED_HUB)
		snprintf(text, 48, "the hub");
	else
		snprintf(text, 48, "worker %u", target);
}

static void draw_note(const struct sched_picture_row *row, FILE *out)
{
	const struct sched_decision *decision = &row->decision;
	char text[TEXT], target[48], sum[64] = "";

	if (decision->bundle > 0)
		snprintf(sum, sizeof(sum), ", sum %" PRIu64 "%s", decision->bundle, is_aggregator(decision) ? " (adds)" : "");
	put_target(decision, target);
	if (is_sent(row))
		snprintf(text, sizeof(text), "%" PRIu64 ". to %s at %.3f MB/s%s", decision->position, target,
		         (double)decision->rate / 1e6, sum);
	else
		snprintf(text, sizeof(text), "dropped: %s", ledger_end_name(decision->end));
	svg_text(out, NOTES, row_top(decision->worker) + BAR - 3, "note", "start", text);
}

static void draw_arrow(const struct sched_decision *decision, double x, uint32_t workers, FILE *out)
{
	uint32_t target = target_of(decision), to = target == SCHED_HUB ? workers : target;
	double from_y = row_top(decision->worker) + BAR / 2, to_y = row_top(to) + (to > decision->worker ? 0 : BAR);

	svg_path_begin(out);
	svg_path_line(out, x, from_y, x, to_y);
	svg_path_end(out, "class=\"arrow\"");
	svg_path_begin(out);
	svg_path_head(out, x, from_y, x, to_y);
	svg_path_end(out, "class=\"head\"");
}

static void draw_bar(const struct sched_picture_row *row, double last, uint32_t workers, FILE *out)
{
	const struct sched_decision *decision = &row->decision;
	double left = place(begin_ms(row), last), right = place(end_ms(row), last);
	char css[32] = "class=\"alone\"";

	if (decision->bundle > 0)
		snprintf(css, sizeof(css), "class=\"s%u\"", (unsigned)(decision->bundle % COLOURS));
	svg_rect(out, left, row_top(decision->worker), fmax(right - left, BAR_LEAST), BAR, 3, css);
	draw_arrow(decision, right, workers, out);
}

static void draw_head(const struct sched_picture *picture, const char *job, FILE *out)
{
	uint32_t sent = 0;
	char text[TEXT];

	for (uint32_t i = 0; i < picture->count; i++)
		sent += is_sent(&picture->rows[i]);
	svg_text(out, 24, 32, "title", "start", job);
	if (picture->count == 0)
		snprintf(text, sizeof(text), "no batch was decided yet");
	else
		snprintf(text, sizeof(text), "batch %" PRIu64 ": %u updates, %u sent; time from its end, as it was booked",
		         picture->batch, picture->count, sent);
	svg_text(out, 24, 54, "note", "start", text);
}

void sched_picture_draw(const struct sched_picture *picture, const char *job, uint32_t workers, FILE *out)
{
	double height = row_top(workers + 1) + BOTTOM, last = last_ms(picture);

	svg_begin(out, WIDTH, height, "the latest batch of updates", style);
	svg_rect(out, 0.5, 0.5, WIDTH - 1, height - 1, 8, "class=\"paper\"");
	draw_head(picture, job, out);
	draw_axis(last, workers, out);
	draw_names(workers, out);
	for (uint32_t i = 0; i < picture->count; i++) {
		assert(picture->rows[i].decision.worker < workers);
		if (is_sent(&picture->rows[i]))
			draw_bar(&picture->rows[i], last, workers, out);
		draw_note(&picture->rows[i], out);
	}
	svg_end(out);
}
