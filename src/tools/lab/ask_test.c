#include "tools/lab/ask.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

static struct ask question(enum ask_kind kind)
{
	return (struct ask){.version = ASK_VERSION, .kind = kind, .seconds = 1};
}

static void test_words(void)
{
	struct ask ask = question(ASK_SET);
	char *words[ASK_WORDS + 1];
	size_t count;
	CHECK(lab_ask_add_word(&ask, "node1") && lab_ask_add_word(&ask, "") && lab_ask_add_word(&ask, "5ms"));
	CHECK(lab_ask_decode(&ask, sizeof(ask), words, &count));
	CHECK_U64(count, 3);
	CHECK_STR(words[0], "node1");
	CHECK_STR(words[1], "");
	CHECK_STR(words[2], "5ms");
	CHECK(words[3] == NULL);
}

static void test_room(void)
{
	struct ask ask = question(ASK_SET);
	char *words[ASK_WORDS + 1], half[ASK_BYTES / 2];
	size_t count;
	memset(half, 'x', sizeof(half));
	half[sizeof(half) - 1] = '\0';
	CHECK(lab_ask_add_word(&ask, half) && lab_ask_add_word(&ask, half) && !lab_ask_add_word(&ask, ""));
	CHECK(lab_ask_decode(&ask, sizeof(ask), words, &count) && count == 2);
	ask = question(ASK_SET);
	for (size_t i = 0; i <= ASK_WORDS; i++)
		CHECK(lab_ask_add_word(&ask, "x"));
	CHECK(!lab_ask_decode(&ask, sizeof(ask), words, &count)); /* more words than there is room for */
}

static void test_bad(void)
{
	char *words[ASK_WORDS + 1];
	size_t count;
	struct ask ask;
#define REFUSED(kind, change) \
	(ask = question(kind), ask.change, CHECK_MSG(!lab_ask_decode(&ask, sizeof(ask), words, &count), #change))
	REFUSED(ASK_MAP, version++);
	REFUSED(ASK_MAP, kind = ASK_KINDS);
	REFUSED(ASK_SET, flag = 3);
	REFUSED(ASK_SET, length = ASK_BYTES + 1);
	REFUSED(ASK_SET, length = UINT32_MAX);
	REFUSED(ASK_CHECK, seconds = 0);
	REFUSED(ASK_CHECK, seconds = (double)NAN);
#undef REFUSED
	ask = question(ASK_SET);
	memset(ask.words, 'x', sizeof(ask.words));
	ask.length = ASK_BYTES;
	CHECK(!lab_ask_decode(&ask, sizeof(ask), words, &count)); /* no NUL */
	ask = question(ASK_MAP);
	CHECK(!lab_ask_decode(&ask, sizeof(ask) - 1, words, &count) &&
	      !lab_ask_decode(&ask, sizeof(ask) + 1, words, &count));
}

/* Whatever bytes arrive, no word points outside. */
static void test_noise(struct rng *rng)
{
	char *words[ASK_WORDS + 1];
	size_t count;
	for (int i = 0; i < 20000; i++) {
		struct ask ask = question((enum ask_kind)rng_below(rng, ASK_KINDS));
		for (size_t k = 0; k < sizeof(ask.words); k++)
			ask.words[k] = rng_chance(rng, 1, 30) ? '\0' : 'x';
		ask.length = (uint32_t)rng_below(rng, ASK_BYTES + 8);
		if (!lab_ask_decode(&ask, sizeof(ask), words, &count))
			continue;
		for (size_t k = 0; k < count; k++)
			CHECK(words[k] >= ask.words && words[k] + strlen(words[k]) < ask.words + ask.length);
	}
}

static void test_address(void)
{
	struct sockaddr_un address;
	socklen_t length = lab_ask_address("lab", 7, &address);
	CHECK(address.sun_path[0] == '\0');
	CHECK_STR(address.sun_path + 1, "espalier-lab/7/lab");
	CHECK_U64(length, offsetof(struct sockaddr_un, sun_path) + 1 + strlen("espalier-lab/7/lab"));
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_words();
	test_room();
	test_bad();
	test_noise(&rng);
	test_address();
	return 0;
}
