#include "tools/diagnose/status_ask.h"

#include "base/check.h"

static uint32_t user, rank;
static uint64_t instance;

static bool parse(const char *line)
{
	return diagnose_status_parse_socket(line, &user, &instance, &rank);
}

static bool answers(const char *text, const char **body, size_t *size)
{
	return diagnose_status_parse_answer(text, strlen(text), body, size);
}

int main(void)
{
	const char *body;
	size_t size;
	CHECK(parse("00000000e004e80c: 00000002 00000000 00010000 0001 01 11813937 @espalier/1000/d3f9dfb6236f9801/2\n"));
	CHECK(user == 1000 && instance == UINT64_C(0xd3f9dfb6236f9801) && rank == 2);
	CHECK(parse("x @espalier/0/0000000000000000/65535"));
	CHECK(!parse("x @espalier/0/d3f9dfb6236f980/2\n"));
	CHECK(!parse("x @espalier/0/d3f9dfb6236f98011/2\n"));
	CHECK(!parse("x @espalier/0/d3f9dfb6236f9801/2/3\n"));
	CHECK(!parse("x @espalier/0/d3f9dfb6236f9801/\n"));
	CHECK(!parse("x /run/espalier/0/d3f9dfb6236f9801/2\n"));
	CHECK(!parse(""));
	CHECK(answers("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}", &body, &size) && size == 2 && memcmp(body, "{}", 2) == 0);
	CHECK(answers("HTTP/1.1 200 OK\r\n\r\n", &body, &size) && size == 0);
	CHECK(!answers("HTTP/1.0 404 Not Found\r\n\r\n{}", &body, &size));
	CHECK(!answers("HTTP/1.0 200 OK\r\n", &body, &size));
	CHECK(!answers("\r\n\r\n", &body, &size));
	CHECK(!answers("", &body, &size));
	return 0;
}
