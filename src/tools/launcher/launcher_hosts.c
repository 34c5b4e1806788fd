#include "tools/launcher/launcher_hosts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "base/vec.h"

/* A part of a text. */
struct span {
	const char *at;
	size_t length;
};

static struct span trim(struct span span)
{
	while (span.length > 0 && isspace((unsigned char)span.at[0])) {
		span.at++;
		span.length--;
	}
	while (span.length > 0 && isspace((unsigned char)span.at[span.length - 1]))
		span.length--;
	return span;
}

/* Returns the part before the first `stop`, which is dropped; *rest is the part behind it. */
static struct span cut(struct span *rest, char stop)
{
	const char *found = memchr(rest->at, stop, rest->length);
	size_t length = found ? (size_t)(found - rest->at) : rest->length;
	struct span word = {rest->at, length};
	rest->at += length + (found ? 1 : 0);
	rest->length -= length + (found ? 1 : 0);
	return word;
}

static bool is_made_of(struct span text, const char *marks)
{
	for (size_t i = 0; i < text.length; i++) {
		char letter = text.at[i];
		bool digit = letter >= '0' && letter <= '9';
		bool alphabetic = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
		if (!digit && !alphabetic && (letter == '\0' || !strchr(marks, letter)))
			return false;
	}
	return text.length > 0;
}

/* host, user@host, user@[v6]. A leading dash would be an option of the remote shell. */
static bool is_host(struct span name)
{
	struct span host = name;
	bool user_ok = true;
	if (memchr(name.at, '@', name.length)) {
		struct span user = cut(&host, '@');
		user_ok = is_made_of(user, "-_.+") && user.at[0] != '-';
	}
	if (host.length > 2 && host.at[0] == '[' && host.at[host.length - 1] == ']')
		return user_ok && is_made_of((struct span){host.at + 1, host.length - 2}, ":.%");
	return user_ok && is_made_of(host, "-_.") && host.at[0] != '-';
}

/* user@[v6] loses its brackets, as remote shells want it. */
static void drop_brackets(char *name)
{
	char *to = name;
	for (const char *from = name; *from; from++)
		if (*from != '[' && *from != ']')
			*to++ = *from;
	*to = '\0';
}

static enum esp_status add_host(struct run_hosts *hosts, struct span name, uint64_t slots, struct error *err)
{
	if (slots > RUN_RANKS_MAX - hosts->ranks)
		return error_set(err, ESP_ELIMIT, "the hosts have more than %u places for ranks", RUN_RANKS_MAX);
	if (!vec_reserve(&hosts->list, &hosts->capacity, (size_t)hosts->count + 1, sizeof(*hosts->list)))
		return error_set(err, ESP_ENOMEM, "no memory for the list of hosts");
	struct run_host *host = &hosts->list[hosts->count];
	*host = (struct run_host){.name = strndup(name.at, name.length), .slots = (uint32_t)slots};
	if (!host->name)
		return error_set(err, ESP_ENOMEM, "no memory for the list of hosts");
	drop_brackets(host->name);
	hosts->count++;
	hosts->ranks += host->slots;
	return ESP_OK;
}

static enum esp_status parse_slots(struct span text, const char *where, uint64_t *out, struct error *err)
{
	char shown[QUOTE_TEXT];
	uint64_t slots;
	if (!number_parse_u64(text.at, text.length, &slots) || slots == 0 || slots > RUN_RANKS_MAX)
		return error_set(err, ESP_EINVAL, "%.100s: the ranks of a host are a whole number from 1 to %u, not %s", where,
		                 RUN_RANKS_MAX, quote(text.at, text.length, shown));
	*out = slots;
	return ESP_OK;
}

/* host, host:4, [v6], [v6]:4; *slots is unchanged without a number */
static enum esp_status parse_host(struct span word, const char *where, struct span *out_name, uint64_t *slots,
                                  struct error *err)
{
	char shown[QUOTE_TEXT];
	const char *bracket = memchr(word.at, ']', word.length);
	size_t inside = bracket ? (size_t)(bracket - word.at) : 0; /* colons before this belong to an address */
	struct span number = {word.at + inside, word.length - inside};
	size_t length = inside + cut(&number, ':').length;
	struct span name = {word.at, length};
	if (!is_host(name) || length >= RUN_HOST_TEXT || memchr(number.at, ':', number.length))
		return error_set(err, ESP_EINVAL,
		                 "%.100s: a host is written host, user@host or [IPv6], with :N behind it for "
		                 "N ranks, not %s",
		                 where, quote(word.at, word.length, shown));
	*out_name = name;
	return length < word.length ? parse_slots(number, where, slots, err) : ESP_OK;
}

enum esp_status launcher_hosts_parse(struct run_hosts *hosts, const char *text, struct error *err)
{
	struct span rest = {text, strlen(text)};
	enum esp_status status = ESP_OK;
	*hosts = (struct run_hosts){0};
	do {
		struct span name = {text, 0};
		uint64_t slots = 1;
		bool more = memchr(rest.at, ',', rest.length) != NULL;
		status = parse_host(trim(cut(&rest, ',')), "--hosts", &name, &slots, err);
		if (status == ESP_OK)
			status = add_host(hosts, name, slots, err);
		if (!more)
			break;
	} while (status == ESP_OK);
	if (status != ESP_OK)
		launcher_hosts_fini(hosts);
	return status;
}

static enum esp_status decode_line(struct run_hosts *hosts, struct span line, const char *where, struct error *err)
{
	static const char key[] = "slots=";
	char shown[QUOTE_TEXT];
	struct span name = {line.at, 0};
	uint64_t slots = 0;
	size_t first = 0;
	while (first < line.length && !isspace((unsigned char)line.at[first]))
		first++;
	struct span rest = trim((struct span){line.at + first, line.length - first});
	enum esp_status status = parse_host((struct span){line.at, first}, where, &name, &slots, err);
	if (status != ESP_OK)
		return status;
	if (rest.length > 0 && (slots > 0 || rest.length < strlen(key) || memcmp(rest.at, key, strlen(key)) != 0))
		return error_set(err, ESP_EINVAL, "%.100s: behind a host stands :N or slots=N or nothing, not %s", where,
		                 quote(rest.at, rest.length, shown));
	if (rest.length > 0)
		status = parse_slots((struct span){rest.at + strlen(key), rest.length - strlen(key)}, where, &slots, err);
	return status == ESP_OK ? add_host(hosts, name, slots ? slots : 1, err) : status;
}

enum esp_status launcher_hosts_decode(struct run_hosts *hosts, const char *text, size_t length, const char *name,
                                      struct error *err)
{
	size_t mark = utf8_mark(text, length);
	struct span rest = {text + mark, length - mark};
	enum esp_status status = ESP_OK;
	*hosts = (struct run_hosts){0};
	if (utf8_is_utf16(text, length))
		return error_set(err, ESP_EINVAL, "%.150s is UTF-16; save it as UTF-8", name);
	for (unsigned number = 1; rest.length > 0 && status == ESP_OK; number++) {
		char where[128];
		struct span line = cut(&rest, '\n');
		line = trim(cut(&line, '#'));
		snprintf(where, sizeof(where), "%.100s:%u", name, number);
		if (line.length > 0)
			status = decode_line(hosts, line, where, err);
	}
	if (status == ESP_OK && hosts->count == 0)
		status = error_set(err, ESP_EINVAL, "%.150s names no host", name);
	if (status != ESP_OK)
		launcher_hosts_fini(hosts);
	return status;
}

static int by_name(const void *a, const void *b)
{
	const struct run_host *left = *(struct run_host *const *)a, *right = *(struct run_host *const *)b;
	int order = strcmp(left->name, right->name);
	return order ? order : (left > right) - (left < right);
}

/* The hosts are sorted by name; hosts of one name are in the order in which they were given. */
static void number_locals(struct run_host **sorted, uint32_t count)
{
	uint32_t begin = 0, size = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(sorted[i]->name, sorted[begin]->name) != 0) {
			begin = i;
			size = 0;
		}
		sorted[i]->local_first = size;
		size += sorted[i]->slots;
		bool last = i + 1 == count || strcmp(sorted[i + 1]->name, sorted[begin]->name) != 0;
		for (uint32_t j = begin; last && j <= i; j++)
			sorted[j]->local_size = size;
	}
}

enum esp_status launcher_hosts_settle(struct run_hosts *hosts, uint32_t size, struct error *err)
{
	uint32_t left = size ? size : hosts->ranks;
	if (size > hosts->ranks)
		return error_set(err, ESP_EINVAL, "%u ranks do not fit: the hosts have places for %u", size, hosts->ranks);
	hosts->ranks = left;
	struct run_host **sorted = malloc(hosts->count * sizeof(struct run_host *));
	if (!sorted)
		return error_set(err, ESP_ENOMEM, "no memory for the list of hosts");
	for (uint32_t i = 0, rank = 0; i < hosts->count; i++) {
		struct run_host *host = &hosts->list[i];
		host->slots = host->slots < left ? host->slots : left;
		host->first_rank = rank;
		rank += host->slots;
		left -= host->slots;
		sorted[i] = host;
	}
	qsort(sorted, hosts->count, sizeof(struct run_host *), by_name);
	number_locals(sorted, hosts->count);
	free(sorted);
	return ESP_OK;
}

const struct run_host *launcher_hosts_of(const struct run_hosts *hosts, uint32_t rank)
{
	uint32_t low = 0, high = hosts->count; /* the last host that begins at or below rank */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (hosts->list[middle].first_rank <= rank && hosts->list[middle].slots > 0)
			low = middle;
		else
			high = middle;
	}
	return &hosts->list[low];
}

const char *launcher_host_address(const struct run_host *host)
{
	const char *at = strchr(host->name, '@');
	return at ? at + 1 : host->name;
}

void launcher_hosts_fini(struct run_hosts *hosts)
{
	for (uint32_t i = 0; i < hosts->count; i++)
		free(hosts->list[i].name);
	free(hosts->list);
	*hosts = (struct run_hosts){0};
}
