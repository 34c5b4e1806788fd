#include "base/word.h"

#include "base/check.h"

static const char *at(const void *list, size_t index)
{
	return ((const char *const *)list)[index];
}

int main(void)
{
	static const char *const known[] = {"conf", "plan", "chunk_bytes", "log", NULL};
	CHECK_U64(word_distance("", ""), 0);
	CHECK_U64(word_distance("", "abc"), 3);
	CHECK_U64(word_distance("plan", "PLAN"), 0);
	CHECK_U64(word_distance("plan", "plna"), 1);
	CHECK_U64(word_distance("plan", "lan"), 1);
	CHECK_U64(word_distance("plan", "plant"), 1);
	CHECK_U64(word_distance("kitten", "sitting"), 3);
	CHECK_STR(word_nearest("cnof", at, known), "conf");
	CHECK_STR(word_nearest("chunkbyte", at, known), "chunk_bytes");
	CHECK_STR(word_nearest("zzzzz", at, known), NULL);
	CHECK_STR(word_nearest("lo", at, known), "log");
	CHECK_STR(word_nearest("lgo", at, known), "log");
	CHECK_STR(word_nearest("foo", at, known), NULL);
	CHECK_STR(word_nearest("plants", at, known), "plan");
	CHECK_STR(word_nearest("bytes", at, known), NULL);
	CHECK_STR(word_nearest("", at, known), NULL);

	char longer[500];
	memset(longer, 'q', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	CHECK(word_distance(longer, "conf") > 50);
	CHECK(word_distance("conf", longer) > 50);
	return 0;
}
