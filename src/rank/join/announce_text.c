/*
 * announce_text.c - an announcement as text: a line per item in a fixed order, and a last line that shows that
 * it is complete. Pure.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "rank/join/announce.h"

static const char title[] = "espalier notice 1";
static const char name_label[32] = "espalier notice name 1";

/* Longest lines: "address " with a full IPv6 address, "reason " with a reason. */
static_assert(sizeof(title) + 40 + 40 + 20 + 80 + 12 + 8 * 60 + 80 + 8 + RENDEZVOUS_FAILURE_TEXT + 8 < ANNOUNCE_BYTES *
              5 / 6, "a fifth more than the longest");

struct writer {
	char *text;
	size_t used;
};

__attribute__((format(printf, 2, 3)))
static void add_line(struct writer *writer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(writer->text + writer->used, ANNOUNCE_BYTES - writer->used, format, args);
	va_end(args);
	assert(length >= 0 && writer->used + (size_t)length < ANNOUNCE_BYTES);
	writer->used += (size_t)length;
}

static void add_hex(struct writer *writer, const char *what, const uint8_t *bytes, size_t n)
{
	char hex[2 * HANDSHAKE_KEY_BYTES + 1];
	sodium_bin2hex(hex, sizeof(hex), bytes, n);
	add_line(writer, "%s %s\n", what, hex);
	sodium_memzero(hex, sizeof(hex));
}

static void add_address(struct writer *writer, const struct node_address *address)
{
	char text[INET6_ADDRSTRLEN] = "";
	inet_ntop(address->family == NODE_IPV4 ? AF_INET : AF_INET6, address->bytes, text, sizeof(text));
	add_line(writer, "address %s\n", text);
}

size_t announce_encode(const struct announcement *announcement, char text[ANNOUNCE_BYTES])
{
	struct writer writer = {text, 0};
	add_line(&writer, "%s\n", title);
	add_hex(&writer, "nonce", announcement->nonce, sizeof(announcement->nonce));
	add_line(&writer, "at %" PRIu64 "\nprocess %u\nhost %s\nport %u\n", announcement->at_s, announcement->pid,
	         announcement->host_name, announcement->port);
	for (uint32_t i = 0; i < announcement->address_count; i++)
		add_address(&writer, &announcement->addresses[i]);
	if (announcement->has_key)
		add_hex(&writer, "key", announcement->key, sizeof(announcement->key));
	if (announcement->reason[0])
		add_line(&writer, "reason %s\n", announcement->reason);
	add_line(&writer, "end\n");
	return writer.used;
}

/* The text that is not read yet. */
struct reader {
	const char *at, *end;
};

/* The rest of the next line if it begins with this word; advances the reader to the line after it. */
static bool take_line(struct reader *reader, const char *word, const char **out, size_t *out_length)
{
	size_t length = strlen(word);
	const char *newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
	if (!newline || (size_t)(newline - reader->at) < length || memcmp(reader->at, word, length) != 0)
		return false;
	*out = reader->at + length;
	*out_length = (size_t)(newline - *out);
	reader->at = newline + 1;
	return true;
}

static bool take_number(struct reader *reader, const char *word, uint64_t max, uint64_t *out)
{
	const char *text;
	size_t length;
	bool canonical = take_line(reader, word, &text, &length) && (length == 1 || (length > 1 && text[0] != '0'));
	return canonical && number_parse_u64(text, length, out) && *out <= max;
}

static bool take_text(struct reader *reader, const char *word, char *out, size_t size)
{
	const char *text;
	size_t length;
	if (!take_line(reader, word, &text, &length) || length >= size)
		return false;
	for (size_t i = 0; i < length; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	memcpy(out, text, length);
	memset(out + length, 0, size - length);
	return true;
}

static bool take_hex(struct reader *reader, const char *word, uint8_t *out, size_t bytes)
{
	const char *text;
	size_t length, got = 0;
	if (!take_line(reader, word, &text, &length) || length != 2 * bytes)
		return false;
	for (size_t i = 0; i < length; i++)
		if (isupper((unsigned char)text[i]))
			return false;
	return sodium_hex2bin(out, bytes, text, length, NULL, &got, NULL) == 0 && got == bytes;
}

static bool decode_address(const char *text, struct node_address *out)
{
	char again[INET6_ADDRSTRLEN];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	out->family = family == AF_INET6 ? NODE_IPV6 : NODE_IPV4;
	return inet_pton(family, text, out->bytes) == 1 && inet_ntop(family, out->bytes, again, sizeof(again)) &&
	       strcmp(text, again) == 0;
}

static bool peek(const struct reader *reader, const char *word)
{
	return (size_t)(reader->end - reader->at) >= strlen(word) && memcmp(reader->at, word, strlen(word)) == 0;
}

static bool take_addresses(struct reader *reader, struct announcement *out)
{
	char text[INET6_ADDRSTRLEN];
	while (peek(reader, "address ")) {
		if (out->address_count == NODE_ADDRESSES || !take_text(reader, "address ", text, sizeof(text)) ||
		    !decode_address(text, &out->addresses[out->address_count]))
			return false;
		out->address_count++;
	}
	return true;
}

/* Either a port with addresses, or no port and a reason. */
static bool is_sound(const struct announcement *announcement)
{
	if (announcement->port == 0)
		return announcement->address_count == 0 && !announcement->has_key && announcement->reason[0];
	return announcement->address_count > 0 && !announcement->reason[0];
}

bool announce_decode(const char *text, size_t length, struct announcement *out)
{
	struct reader reader = {text, text + length};
	struct announcement announcement = {0};
	const char *rest;
	size_t rest_length;
	uint64_t pid, port;
	bool fine = length < ANNOUNCE_BYTES && take_line(&reader, title, &rest, &rest_length) && rest_length == 0 &&
	            take_hex(&reader, "nonce ", announcement.nonce, sizeof(announcement.nonce)) &&
	            take_number(&reader, "at ", UINT64_MAX, &announcement.at_s) &&
	            take_number(&reader, "process ", UINT32_MAX, &pid) &&
	            take_text(&reader, "host ", announcement.host_name, sizeof(announcement.host_name)) &&
	            take_number(&reader, "port ", UINT16_MAX, &port) && take_addresses(&reader, &announcement);
	if (fine && peek(&reader, "key "))
		fine = announcement.has_key = take_hex(&reader, "key ", announcement.key, sizeof(announcement.key));
	if (fine && peek(&reader, "reason "))
		fine = take_text(&reader, "reason ", announcement.reason, sizeof(announcement.reason)) &&
		       announcement.reason[0];
	fine = fine && take_line(&reader, "end", &rest, &rest_length) && rest_length == 0 && reader.at == reader.end;
	if (fine) {
		announcement.pid = (uint32_t)pid;
		announcement.port = (uint16_t)port;
		fine = is_sound(&announcement);
	}
	if (fine)
		*out = announcement;
	sodium_memzero(&announcement, sizeof(announcement));
	return fine;
}

/* The job's name, as far as it is fit for a file's name, is for people; the hash tells jobs apart. */
const char *announce_name(const char *job, uint64_t epoch, char text[ANNOUNCE_NAME])
{
	uint8_t digest[crypto_generichash_BYTES_MIN];
	char shown[25] = "", hex[17];
	for (size_t i = 0; job[i] && i + 1 < sizeof(shown); i++)
		shown[i] = isalnum((unsigned char)job[i]) && (unsigned char)job[i] < 0x80 ? job[i] : '_';
	crypto_generichash(digest, sizeof(digest), (const uint8_t *)job, strlen(job), (const uint8_t *)name_label,
	                   sizeof(name_label));
	sodium_bin2hex(hex, sizeof(hex), digest, sizeof(hex) / 2);
	snprintf(text, ANNOUNCE_NAME, "espalier-%s%s%s-%" PRIu64, shown, shown[0] ? "-" : "", hex, epoch);
	return text;
}
