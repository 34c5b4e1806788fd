#include "tools/doctor/doctor_finding.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "report/complain.h"
#include "report/json.h"

static const char *const words[] = {"OK", "WARN", "FAIL"};
static const char *const json_words[] = {"ok", "warn", "fail"};

void doctor_findings_fini(struct doctor_findings *findings)
{
	free(findings->list);
	*findings = (struct doctor_findings){0};
}

void doctor_add(struct doctor_findings *findings, const struct doctor_finding *finding)
{
	if (vec_reserve(&findings->list, &findings->capacity, (size_t)findings->count + 1, sizeof(*findings->list)))
		findings->list[findings->count++] = *finding;
	else
		findings->no_memory = true;
}

void doctor_say(struct doctor_findings *findings, enum doctor_verdict verdict, const char *check, const char *format,
                ...)
{
	struct doctor_finding finding = {.verdict = (uint8_t)verdict};
	va_list args;
	snprintf(finding.check, sizeof(finding.check), "%s", check);
	va_start(args, format);
	vsnprintf(finding.what, sizeof(finding.what), format, args);
	va_end(args);
	doctor_add(findings, &finding);
}

void doctor_advise(struct doctor_findings *findings, const char *format, ...)
{
	va_list args;
	if (findings->count == 0)
		return;
	struct doctor_finding *last = &findings->list[findings->count - 1];
	va_start(args, format);
	vsnprintf(last->advice, sizeof(last->advice), format, args);
	va_end(args);
}

static bool same(const struct doctor_finding *a, const struct doctor_finding *b)
{
	return a->verdict == b->verdict && strcmp(a->check, b->check) == 0 && strcmp(a->what, b->what) == 0 &&
	       strcmp(a->advice, b->advice) == 0;
}

/* Appends to "a, b, ..." as far as there is room. */
static void add_host(char hosts[DOCTOR_HOSTS], const char *host)
{
	size_t used = strlen(hosts);
	if (used + strlen(host) + 2 + sizeof(", ...") <= DOCTOR_HOSTS)
		snprintf(hosts + used, DOCTOR_HOSTS - used, "%s%s", used ? ", " : "", host);
	else if (used < 3 || strcmp(hosts + used - 3, "...") != 0)
		snprintf(hosts + used, DOCTOR_HOSTS - used, "%s", ", ...");
}

void doctor_merge(struct doctor_findings *findings, const struct doctor_finding *finding, const char *host)
{
	for (uint32_t i = 0; i < findings->count; i++) {
		if (same(&findings->list[i], finding) && findings->list[i].hosts[0]) {
			add_host(findings->list[i].hosts, host);
			return;
		}
	}
	struct doctor_finding copy = *finding;
	copy.hosts[0] = '\0';
	add_host(copy.hosts, host);
	doctor_add(findings, &copy);
}

enum doctor_verdict doctor_worst(const struct doctor_findings *findings)
{
	enum doctor_verdict worst = DOCTOR_OK;
	for (uint32_t i = 0; i < findings->count; i++)
		if (findings->list[i].verdict > worst)
			worst = (enum doctor_verdict)findings->list[i].verdict;
	return worst;
}

enum esp_status doctor_print(const struct doctor_findings *findings, FILE *out)
{
	unsigned counts[3] = {0, 0, 0};
	for (uint32_t i = 0; i < findings->count; i++) {
		const struct doctor_finding *at = &findings->list[i];
		counts[at->verdict]++;
		fprintf(out, "%-4s  %-14s  %s%s%s\n", words[at->verdict], at->check, at->hosts, at->hosts[0] ? ": " : "",
		        at->what);
		if (at->advice[0])
			fprintf(out, "%-4s  %-14s  do: %s\n", "", "", at->advice);
	}
	fprintf(out, "\n%u ok, %u warning%s, %u failure%s\n", counts[DOCTOR_OK], counts[DOCTOR_WARN],
	        plural(counts[DOCTOR_WARN]), counts[DOCTOR_FAIL], plural(counts[DOCTOR_FAIL]));
	return fflush(out) == 0 && !ferror(out) ? ESP_OK : ESP_EIO;
}

enum esp_status doctor_print_json(const struct doctor_findings *findings, FILE *out)
{
	struct json json;
	json_init(&json, out);
	json_object_begin(&json);
	json_put_string(&json, "verdict", json_words[doctor_worst(findings)]);
	json_key(&json, "findings");
	json_array_begin(&json);
	for (uint32_t i = 0; i < findings->count; i++) {
		const struct doctor_finding *at = &findings->list[i];
		json_object_begin(&json);
		json_put_string(&json, "verdict", json_words[at->verdict]);
		json_put_string(&json, "check", at->check);
		json_put_string(&json, "hosts", at->hosts);
		json_put_string(&json, "what", at->what);
		json_put_string(&json, "do", at->advice);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

/* ---- on the wire ---- */

/* A text is padded with NULs and has at least one; unprintable bytes become '?'. */
static void put_text(uint8_t *at, const char *text, size_t size)
{
	size_t length = strnlen(text, size - 1);
	for (size_t i = 0; i < length; i++)
		at[i] = text[i] >= ' ' && text[i] <= '~' ? (uint8_t)text[i] : '?';
	memset(at + length, 0, size - length);
}

static bool get_text(const uint8_t *at, char *text, size_t size)
{
	size_t length = strnlen((const char *)at, size);
	if (length == size)
		return false;
	for (size_t i = 0; i < size; i++)
		if (i < length ? at[i] < ' ' || at[i] > '~' : at[i] != 0)
			return false;
	memcpy(text, at, size);
	return true;
}

void doctor_finding_encode(const struct doctor_finding *finding, uint8_t out[DOCTOR_FINDING_BYTES])
{
	memset(out, 0, 4);
	out[0] = finding->verdict;
	put_text(out + 4, finding->check, DOCTOR_CHECK);
	put_text(out + 4 + DOCTOR_CHECK, finding->what, DOCTOR_WHAT);
	put_text(out + 4 + DOCTOR_CHECK + DOCTOR_WHAT, finding->advice, DOCTOR_ADVICE);
}

bool doctor_finding_decode(const uint8_t in[DOCTOR_FINDING_BYTES], struct doctor_finding *out)
{
	struct doctor_finding finding = {.verdict = in[0]};
	if (in[0] > DOCTOR_FAIL || in[1] || in[2] || in[3])
		return false;
	if (!get_text(in + 4, finding.check, DOCTOR_CHECK) || !get_text(in + 4 + DOCTOR_CHECK, finding.what, DOCTOR_WHAT) ||
	    !get_text(in + 4 + DOCTOR_CHECK + DOCTOR_WHAT, finding.advice, DOCTOR_ADVICE))
		return false;
	*out = finding;
	return true;
}
