/*
 * probe_html.c - what espalier probe has found, for a browser: one file, without scripts and without a network.
 *
 * Groups are told by colour and by number, and every picture has the same in words or in a table.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/complain.h"
#include "report/svg.h"
#include "tools/probe/probe_map.h"
#include "tools/probe/probe_outcome.h"
#include "tools/probe/probe_page.h"

static const char head[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n<title>The network between ";

static const char style[] =
	"<style>\n"
	":root{--page:#fbfaf7;--card:#fff;--ink:#1d2424;--soft:#5b6766;--line:#dcdfda;--warn:#8a4b00;--warnback:#fff4e0;"
	"--h0:#f3f6ec;--h1:#e0ebd3;--h2:#c3dcbc;--h3:#9fcaa9;--h4:#77b49b;--h5:#51998f;--h6:#357c82;--h7:#235c70;--h8:#173c57;--none:#e9e6df;--on:#fff}\n"
	"@media (prefers-color-scheme:dark){:root{--page:#131716;--card:#1b2120;--ink:#e6ebe6;--soft:#9aa6a2;--line:#333c3a;--warn:#ffc46b;"
	"--warnback:#33260f;--h0:#1c2a26;--h1:#1d3a34;--h2:#1e4c43;--h3:#236052;--h4:#2f7762;--h5:#4a9073;--h6:#73a986;--h7:#a5c4a0;--h8:#dde3c3;"
	"--none:#262b2a;--on:#131716}}\n"
	"*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,sans-serif}\n"
	"main{max-width:78rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}\n"
	"h1{font-size:2rem;line-height:1.2;margin:0 0 .5rem}h2{font-size:1.25rem;margin:0 0 .75rem}p{margin:.4rem 0;max-width:70ch}\n"
	".lead{font-size:1.15rem}.soft{color:var(--soft)}.warn{background:var(--warnback);color:var(--warn);border-radius:.5rem;"
	"padding:.75rem 1rem;margin:1rem 0}\n"
	".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.75rem;margin:1.5rem 0;padding:0;list-style:none}\n"
	".facts li,section{background:var(--card);border:1px solid var(--line);border-radius:.75rem}.facts li{padding:.8rem 1rem}\n"
	".facts b{display:block;font-size:1.5rem;line-height:1.2;font-weight:650}section{padding:1.25rem;margin:1rem 0;overflow-x:auto}\n"
	".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem}.pair section{margin:0}\n"
	"svg{display:block;width:100%;height:auto;max-width:46rem}svg text{fill:var(--ink);font:12px system-ui,sans-serif}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{text-align:right;padding:.3rem .6rem;border-bottom:1px solid var(--line)}\n"
	"th:first-child,td:first-child,td.names,th.names{text-align:left}td.names{max-width:40rem;overflow-wrap:anywhere}\n"
	".chip{display:inline-block;min-width:1.7em;padding:0 .45em;border-radius:1em;color:#fff;text-align:center;font-weight:650}\n"
	".g0{--g:#0067a5}.g1{--g:#b3460b}.g2{--g:#007a5a}.g3{--g:#8e3c8b}.g4{--g:#7a6200}.g5{--g:#b02a4c}.g6{--g:#4a5a9e}.g7{--g:#4f6b1f}\n"
	".wide{grid-template-columns:minmax(0,1fr)}.wide svg{max-width:72rem}.legend{max-width:none}.legend>span{display:inline-block;margin-right:1.1rem}\n"
	".name path{fill:none;stroke:var(--g);stroke-opacity:.55}.side{fill:var(--g)}\n"
	".chip{background:var(--g)}.dot circle{fill:var(--g);stroke:var(--card);stroke-width:1.5}svg .dot text.in{fill:#fff;font-weight:650}\n"
	".bar{display:inline-block;height:.7em;background:var(--g);border-radius:.35em;vertical-align:baseline}\n"
	".h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}.h5{fill:var(--h5)}.h6{fill:var(--h6)}"
	".h7{fill:var(--h7)}.h8{fill:var(--h8)}.hn{fill:var(--none)}.hd{fill:var(--card)}svg text.far{fill:var(--on)}.cut{stroke:var(--card);stroke-width:3}\n"
	"pre{background:var(--page);border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem;overflow-x:auto;font-size:.9rem}\n"
	"summary{cursor:pointer}details{margin-top:1rem}\n"
	"@media print{body{background:#fff;font-size:11pt}main{padding:0;max-width:none}section,.facts li{break-inside:avoid;border-color:#999}"
	"details:not([open])>*:not(summary){display:none}svg{max-width:16cm}rect,circle,.chip,.bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
	"</style>\n</head>\n<body>\n<main>\n";

/* ---- the beginning ---- */

static void fact(FILE *file, const char *value, const char *what)
{
	fputs("<li><b>", file);
	svg_escaped(file, value);
	fputs("</b>", file);
	svg_escaped(file, what);
	fputs("</li>\n", file);
}

static void write_facts(const struct probe_page *page)
{
	const struct probe_outcome *outcome = page->outcome;
	const struct verdict *verdict = &outcome->verdict;
	char text[PROBE_NUMBER];

	fputs("<ul class=\"facts\">\n", page->file);
	snprintf(text, sizeof(text), "%u", outcome->found.survey.count);
	fact(page->file, text, "hosts");
	snprintf(text, sizeof(text), "%u", outcome->found.grouping.count);
	fact(page->file, text, outcome->found.grouping.count == 1 ? "group" : "groups");
	fact(page->file, verdict_word_text(verdict->word), "is the verdict");
	if (isfinite(verdict->within) && isfinite(verdict->across)) {
		fact(page->file, probe_distance_text(verdict->kind, verdict->within, text), "within groups");
		fact(page->file, probe_distance_text(verdict->kind, verdict->across, text), "between groups");
	}
	if (!outcome->stored) {
		snprintf(text, sizeof(text), "%.1f s", outcome->found.seconds);
		fact(page->file, text, "of probing");
	}
	fputs("</ul>\n", page->file);
}

static void write_paragraph(const struct probe_page *page, const char *css, const char *text)
{
	if (!text[0])
		return;
	fprintf(page->file, "<p class=\"%s\">%c", css, text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0]);
	svg_escaped(page->file, text + 1);
	fputs(".</p>\n", page->file);
}

static void write_beginning(const struct probe_page *page)
{
	const struct probe_outcome *outcome = page->outcome;
	uint32_t hosts = outcome->found.survey.count;
	char text[PROBE_SENTENCE];

	fprintf(page->file, "%s%u hosts</title>\n%s", head, hosts, style);
	fprintf(page->file, "<h1>The network between %u hosts</h1>\n", hosts);
	write_paragraph(page, "lead", probe_say_sure(outcome, text));
	write_paragraph(page, "lead", probe_say_uplinks(outcome, text));
	for (uint32_t i = 0; i < outcome->found.lost_count; i++)
		write_paragraph(page, "warn", probe_say_lost(outcome, i, text));
	write_facts(page);
}

/* ---- groups, and how sure ---- */

static void write_group(const struct probe_page *page, uint32_t group)
{
	const struct found *found = &page->outcome->found;
	char out[PROBE_NUMBER], in[PROBE_NUMBER];
	uint32_t size = 0;
	double least = INFINITY, most = 0;

	for (uint32_t i = 0; i < found->survey.count; i++)
		if (found->grouping.group_of[i] == group) {
			size++;
			least = fmin(least, found->rate_out[i]);
			most = fmax(most, found->rate_out[i]);
		}
	fprintf(page->file, "<tr><td><span class=\"chip g%u\">%u</span></td><td>%u</td><td>%s</td><td>%s</td>", group % PAGE_COLOURS, group, size,
	        probe_rate_text(found->grouping.count > 1 ? found->uplink_out[group] : 0, out),
	        probe_rate_text(found->grouping.count > 1 ? found->uplink_in[group] : 0, in));
	fprintf(page->file, "<td>%s to %s</td><td class=\"names\">", probe_rate_text(least, out), probe_rate_text(most, in));
	for (uint32_t i = 0; i < found->survey.count; i++) {
		if (found->grouping.group_of[i] != group)
			continue;
		svg_escaped(page->file, found->survey.names[i]);
		fputc(' ', page->file);
	}
	fputs("</td></tr>\n", page->file);
}

static void write_groups(const struct probe_page *page)
{
	fputs("<section><h2>Groups</h2>\n<table><thead><tr><th scope=\"col\">group</th><th scope=\"col\">hosts</th><th scope=\"col\">out together</th>"
	      "<th scope=\"col\">in together</th><th scope=\"col\">each host</th><th scope=\"col\" class=\"names\">members</th></tr></thead><tbody>\n",
	      page->file);
	for (uint32_t g = 0; g < page->outcome->found.grouping.count; g++)
		write_group(page, g);
	fputs("</tbody></table>\n<p class=\"soft\">Rates are what TCP carried, in the best of a few rounds; a dash was not measured.</p></section>\n",
	      page->file);
}

static void write_belonging(const struct probe_page *page, uint32_t host)
{
	double value = page->outcome->verdict.belonging[host];

	fputs("<tr><td>", page->file);
	svg_escaped(page->file, page_name(page, host));
	fprintf(page->file, "</td><td>%.2f</td><td class=\"names\"><span class=\"bar g%u\" style=\"width:%.1fem\"></span></td></tr>\n", value,
	        page_group(page, host) % PAGE_COLOURS, 12 * fmin(fmax(value, 0.02), 1));
}

static void write_sure(const struct probe_page *page)
{
	const struct verdict *verdict = &page->outcome->verdict;
	const struct candidates_choice *choice = &verdict->kinds[verdict->kind].choice;

	fputs("<section><h2>How sure</h2>\n", page->file);
	if (verdict->grouping.count > 1)
		fprintf(page->file, "<p>Of the evidence for all groupings that were looked at, this one has %.1f %%. Groupings from other random starts agree with "
		        "it to %.2f (adjusted mutual information: 1 is the same, 0 is chance).</p>\n", choice->sure * 100, choice->agreement);
	else
		fputs("<p>What is measured does not tell groups from each other.</p>\n", page->file);
	uint32_t by_latency = verdict_groups_by(verdict, SURVEY_LATENCY), by_bandwidth = verdict_groups_by(verdict, SURVEY_INVERSE_BANDWIDTH);
	if (by_latency > 1 && by_bandwidth > 1)
		fprintf(page->file, "<p>Latency and bandwidth were grouped separately, too: their groups agree to %.2f.</p>\n", verdict->kinds_agree);
	else if (by_latency > 1 || by_bandwidth > 1)
		fprintf(page->file, "<p>Only %s shows groups.</p>\n", by_latency > 1 ? "latency" : "bandwidth");
	if (page->outcome->truth.known)
		fprintf(page->file, "<p>Against the racks that were given, the groups agree to %.3f.</p>\n", page->outcome->truth.ami);
	if (verdict->grouping.count > 1 && page->outcome->found.survey.count <= PAGE_CELLS_MOST) {
		fprintf(page->file, "<details%s><summary>How much each host belongs to its group: 1 is entirely, 0 as much as to the next one, below 0 "
		        "less</summary>\n<table><tbody>\n", page->outcome->found.survey.count > PAGE_WIDE_MOST ? "" : " open");
		for (uint32_t i = 0; i < page->outcome->found.survey.count; i++)
			write_belonging(page, page->order[i]);
		fputs("</tbody></table></details>\n", page->file);
	}
	fputs("</section>\n", page->file);
}

static void write_end(const struct probe_page *page)
{
	const char *path = page->outcome->options->out ? page->outcome->options->out : "topology.txt";

	fputs("<section><h2>What to do with it</h2>\n", page->file);
	if (!page->outcome->has_rates) {
		write_paragraph(page, "warn", page->outcome->rates_missing);
	} else {
		fprintf(page->file, "<p>The topology%s says all this to the library, so that plans keep traffic within groups:</p>\n<pre>",
		        page->outcome->options->out ? "" : " (written with <code>--out</code>)");
		fputs("espalier run --topology ", page->file);
		svg_escaped(page->file, path);
		fputs(" --hosts ... -- ./train\nESP_TOPOLOGY=", page->file);
		svg_escaped(page->file, path);
		fputs(" torchrun ... train.py\nespalier sim run --topology ", page->file);
		svg_escaped(page->file, path);
		fputs(" ...     # what would another plan take?</pre>\n", page->file);
	}
	fputs("<p class=\"soft\">Networks change: probe again when hosts do, or when steps take longer than they did.</p></section>\n"
	      "</main>\n</body>\n</html>\n", page->file);
}

static enum esp_status write_page(const struct probe_page *page)
{
	write_beginning(page);
	fprintf(page->file, "<div class=\"pair%s\">\n", page->outcome->found.survey.count > PAGE_WIDE_MOST ? " wide" : "");
	enum esp_status status = page_write_map(page);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		page_write_heat(page, (enum survey_kind)k);
	fputs("</div>\n", page->file);
	write_groups(page);
	write_sure(page);
	write_end(page);
	return status != ESP_OK ? status : ferror(page->file) ? ESP_EIO : ESP_OK;
}

/* All distances less the shortest: what is usual between neighbours is no distance in a picture. */
static enum esp_status beyond_shortest(const struct matrix *matrix, struct matrix *out)
{
	size_t count = (size_t)matrix->size * matrix->size;
	double least = INFINITY;
	enum esp_status status = matrix_copy(out, matrix, NULL);

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++)
			least = fmin(least, matrix_get(matrix, i, j)); /* passes over NAN */
	for (size_t i = 0; i < count && status == ESP_OK && isfinite(least); i++)
		out->at[i] = out->at[i] > least ? out->at[i] - least : isnan(out->at[i]) ? NAN : 0;
	return status;
}

/*
 * Where hosts stand in the map. Groups are made of an embedding of many dimensions whose distances are roots of what was measured, which makes much of
 * little in a picture, and racks that are all equally far from each other fall onto each other in it. So latencies are embedded again, in a plane and in proportion.
 */
static enum esp_status find_places(const struct probe_outcome *outcome, double *x, double *y)
{
	const struct verdict_kind *kind = &outcome->verdict.kinds[outcome->verdict.kind];
	const struct embed_options options = {.alpha = 1, .dimensions = 2, .no_startup = true, .seed = outcome->options->seed};
	struct embedding embedding = {0};
	struct matrix distances = {0};

	if (outcome->verdict.kind != SURVEY_LATENCY)
		return probe_map(&kind->candidates.embedding, x, y);
	enum esp_status status = beyond_shortest(&kind->tamed, &distances);
	if (status == ESP_OK)
		status = embed(&distances, &options, &embedding, NULL);
	if (status == ESP_OK)
		status = probe_map(&embedding, x, y);
	embedding_fini(&embedding);
	matrix_fini(&distances);
	return status;
}

enum esp_status probe_print_html(const struct probe_outcome *outcome, FILE *file, struct error *err)
{
	uint32_t hosts = outcome->found.survey.count;
	struct probe_page page = {
		.outcome = outcome,
		.file = file,
		.order = calloc(hosts, sizeof(uint32_t)),
		.x = calloc(hosts, sizeof(double)),
		.y = calloc(hosts, sizeof(double)),
	};
	enum esp_status status = page.order && page.x && page.y ? ESP_OK : ESP_ENOMEM;

	if (status == ESP_OK)
		status = find_places(outcome, page.x, page.y);
	if (status == ESP_OK) {
		probe_order(outcome, page.order);
		page.domain = page_find_domain(&page);
		page.edge = page_find_edge(&page);
		status = write_page(&page);
	}
	free(page.order);
	free(page.x);
	free(page.y);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "the report cannot be written");
}
