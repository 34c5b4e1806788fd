#include "tools/lab/ask.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

bool lab_ask_add_word(struct ask *ask, const char *word)
{
	size_t length = strlen(word) + 1;
	if (ask->length + length > sizeof(ask->words))
		return false;
	memcpy(ask->words + ask->length, word, length);
	ask->length += (uint32_t)length;
	return true;
}

bool lab_ask_decode(struct ask *ask, size_t bytes, char *out_words[ASK_WORDS + 1], size_t *out_count)
{
	size_t count = 0;
	if (bytes != sizeof(*ask) || ask->version != ASK_VERSION || ask->kind >= ASK_KINDS)
		return false;
	if (ask->length > sizeof(ask->words) || (ask->length > 0 && ask->words[ask->length - 1] != '\0'))
		return false;
	if (ask->kind == ASK_SET && ask->flag > LAB_ONLY_TO)
		return false;
	if (ask->kind == ASK_CHECK && !(ask->seconds >= 0.01 && ask->seconds <= 3600))
		return false;
	for (char *word = ask->words; word < ask->words + ask->length; word += strlen(word) + 1) {
		if (count == ASK_WORDS)
			return false;
		out_words[count++] = word;
	}
	out_words[count] = NULL;
	*out_count = count;
	return true;
}

socklen_t lab_ask_address(const char *name, unsigned user, struct sockaddr_un *out)
{
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	int length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%s/%u/%s", ASK_PREFIX, user, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
