#include "network/topo/nodelist.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"

#define DIGITS_MAX 18u /* of a number in a range: its end and the length of a range fit into 64 bits */

/* One item of the list as written: "r[1-2]c[08-11]". */
struct item {
	const char *at;
	size_t length;
	uint64_t count; /* number of names */
};

/* One range of a bracket: "08-11", or "7". */
struct range {
	uint64_t first, count;
	int width; /* digits, with leading zeros */
};

static bool is_name_letter(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* Reads one range at the beginning of a text; returns its length in bytes, 0 if it is none. */
static size_t read_range(const char *text, size_t length, struct range *out)
{
	size_t digits = 0, more = 0;
	uint64_t last;
	while (digits < length && isdigit((unsigned char)text[digits]))
		digits++;
	if (digits == 0 || digits > DIGITS_MAX || !number_parse_u64(text, digits, &out->first))
		return 0;
	out->count = 1;
	out->width = (int)digits;
	if (digits == length || text[digits] != '-')
		return digits;
	const char *end = text + digits + 1;
	while (digits + 1 + more < length && isdigit((unsigned char)end[more]))
		more++;
	if (more == 0 || more > DIGITS_MAX || !number_parse_u64(end, more, &last) || last < out->first)
		return 0;
	out->count = last - out->first + 1;
	return digits + 1 + more;
}

/* Counts the names in a bracket such as "1-3,7"; with `out`, also finds the range with an index. 0: malformed. */
static uint64_t count_bracket(const char *text, size_t length, uint64_t index, struct range *out)
{
	uint64_t count = 0;
	size_t at = 0;
	for (;;) {
		struct range range;
		size_t used = read_range(text + at, length - at, &range);
		if (used == 0 || __builtin_add_overflow(count, range.count, &count))
			return 0;
		if (out && index >= count - range.count && index < count) {
			*out = range;
			out->first += index - (count - range.count);
		}
		at += used;
		if (at == length)
			return count;
		if (text[at] != ',')
			return 0;
		at++;
	}
}

/* The length of the inside of a bracket; text begins behind the '['. False: the bracket does not end. */
static bool bracket_length(const char *text, size_t length, size_t *out)
{
	const char *end = memchr(text, ']', length);
	if (!end)
		return false;
	*out = (size_t)(end - text);
	return true;
}

/* Reads one item: its length and its number of names. */
static bool read_item(const char *text, struct item *out)
{
	unsigned brackets = 0;
	size_t at = 0, inside, rest = strlen(text);
	out->at = text;
	out->count = 1;
	while (at < rest && text[at] != ',') {
		if (is_name_letter(text[at])) {
			at++;
			continue;
		}
		if (text[at] != '[' || ++brackets > NODELIST_BRACKETS || !bracket_length(text + at + 1, rest - at - 1, &inside))
			return false;
		uint64_t count = count_bracket(text + at + 1, inside, 0, NULL);
		if (count == 0 || __builtin_mul_overflow(out->count, count, &out->count))
			return false;
		at += inside + 2;
	}
	out->length = at;
	return at > 0;
}

static enum esp_status bad_list(const char *text, const char *what, struct error *err)
{
	char shown[QUOTE_TEXT];
	return error_set(err, ESP_EINVAL, "%s is a list of host names such as n[1-3,7],m2, not %s", what,
	                 quote(text, strlen(text), shown));
}

/* Counts the names of all items; finds the item of an index and makes the index relative to that item. */
static bool scan_items(const char *text, uint64_t *index, struct item *found, uint64_t *out_count)
{
	struct item item = {0};
	uint64_t count = 0;
	bool seen = false;
	for (;;) {
		if (!read_item(text, &item) || __builtin_add_overflow(count, item.count, &count))
			return false;
		if (!seen && index && *index < count) {
			*index -= count - item.count;
			*found = item;
			seen = true;
		}
		text += item.length;
		if (*text == '\0')
			break;
		text++; /* the comma */
	}
	*out_count = count;
	return true;
}

enum esp_status nodelist_count(const char *text, const char *what, uint64_t *out, struct error *err)
{
	uint64_t count;
	if (!scan_items(text, NULL, NULL, &count))
		return bad_list(text, what, err);
	*out = count;
	return ESP_OK;
}

/* Splits an index into one index per bracket: the last bracket varies fastest. */
static void split_index(const struct item *item, uint64_t index, uint64_t picks[NODELIST_BRACKETS])
{
	uint64_t counts[NODELIST_BRACKETS];
	unsigned brackets = 0;
	size_t inside = 0;
	for (size_t at = 0; at < item->length; at++) {
		if (item->at[at] != '[')
			continue;
		if (!bracket_length(item->at + at + 1, item->length - at - 1, &inside) || brackets == NODELIST_BRACKETS)
			return;
		counts[brackets++] = count_bracket(item->at + at + 1, inside, 0, NULL);
		at += inside + 1;
	}
	while (brackets > 0) {
		brackets--;
		picks[brackets] = index % counts[brackets];
		index /= counts[brackets];
	}
}

/* Writes the name; like snprintf(), returns the full length if it does not fit. */
static size_t write_name(const struct item *item, const uint64_t picks[NODELIST_BRACKETS], char *out, size_t size)
{
	unsigned bracket = 0;
	size_t used = 0, inside = 0;
	out[0] = '\0';
	for (size_t at = 0; at < item->length && used < size;) {
		struct range range = {0};
		if (item->at[at] != '[') {
			used += (size_t)snprintf(out + used, size - used, "%c", item->at[at++]);
			continue;
		}
		if (!bracket_length(item->at + at + 1, item->length - at - 1, &inside) || bracket == NODELIST_BRACKETS)
			break;
		(void)count_bracket(item->at + at + 1, inside, picks[bracket++], &range);
		used += (size_t)snprintf(out + used, size - used, "%0*" PRIu64, range.width, range.first);
		at += inside + 2;
	}
	return used;
}

enum esp_status nodelist_name(const char *text, const char *what, uint64_t index, char *out, size_t size,
                              struct error *err)
{
	struct item item = {0};
	uint64_t count, wanted = index, picks[NODELIST_BRACKETS] = {0};
	if (!scan_items(text, &index, &item, &count))
		return bad_list(text, what, err);
	if (wanted >= count)
		return error_set(err, ESP_EINVAL, "%s has %" PRIu64 " names, and number %" PRIu64 " was asked for", what, count,
		                 wanted);
	split_index(&item, index, picks);
	if (write_name(&item, picks, out, size) >= size)
		return error_set(err, ESP_ELIMIT, "a name of %s is longer than %zu bytes", what, size - 1);
	return ESP_OK;
}

/* ---- membership ---- */

/* True if these digits are a number of the bracket; leading zeros only as in the range. */
static bool bracket_has(const char *inside, size_t length, const char *digits, size_t count)
{
	uint64_t value;
	size_t at = 0;
	if (!number_parse_u64(digits, count, &value))
		return false;
	while (at < length) {
		struct range range;
		size_t used = read_range(inside + at, length - at, &range);
		if (used == 0)
			return false;
		bool is_width = count == (size_t)range.width || (count > (size_t)range.width && digits[0] != '0');
		if (is_width && value >= range.first && value - range.first < range.count)
			return true;
		at += used + 1; /* and the comma */
	}
	return false;
}

/*
 * Numbers of one bracket have different lengths, so a name can be split in several ways: ends[i] tells that the
 * part of the item so far can match the first i characters of the name.
 */
static bool item_has(const struct item *item, const char *name, size_t length)
{
	bool ends[NODELIST_NAME + 1] = {true};
	size_t inside = 0;
	for (size_t at = 0; at < item->length;) {
		bool next[NODELIST_NAME + 1] = {false};
		bool is_bracket = item->at[at] == '[' && bracket_length(item->at + at + 1, item->length - at - 1, &inside);
		for (size_t i = 0; i < length; i++) {
			if (ends[i] && !is_bracket)
				next[i + 1] = name[i] == item->at[at];
			for (size_t n = 1; ends[i] && is_bracket && n <= DIGITS_MAX + 1 && i + n <= length &&
			     isdigit((unsigned char)name[i + n - 1]); n++)
				next[i + n] |= bracket_has(item->at + at + 1, inside, name + i, n);
		}
		memcpy(ends, next, sizeof(ends));
		at += is_bracket ? inside + 2 : 1;
	}
	return ends[length];
}

bool nodelist_has(const char *text, const char *name, size_t length)
{
	struct item item = {0};
	while (length > 0 && length <= NODELIST_NAME && read_item(text, &item)) {
		if (item_has(&item, name, length))
			return true;
		text += item.length;
		if (*text == '\0')
			break;
		text++;
	}
	return false;
}
