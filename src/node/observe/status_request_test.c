#include "node/observe/status_request.h"

#include "base/check.h"

static char path[REQUEST_PATH];

static enum request_verdict parse(const char *text)
{
	return request_parse(text, strlen(text), path);
}

int main(void)
{
	static const char whole[] = "GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
	char longest[REQUEST_BYTES + 1];
	CHECK(parse(whole) == REQUEST_GET);
	CHECK_STR(path, "/metrics");
	for (size_t i = 0; i + 1 < sizeof whole - 1; i++)
		CHECK(request_parse(whole, i, path) == REQUEST_UNFINISHED);
	CHECK(parse("GET / HTTP/1.0\n\n") == REQUEST_GET);
	CHECK_STR(path, "/");
	CHECK(parse("POST /metrics HTTP/1.0\r\n\r\n") == REQUEST_OTHER);
	CHECK(parse("GET metrics HTTP/1.0\r\n\r\n") == REQUEST_BAD);
	CHECK(parse("GET /\r\n\r\n") == REQUEST_BAD);
	CHECK(parse("\r\n\r\n") == REQUEST_BAD);
	CHECK(parse("GET  / HTTP/1.0\r\n\r\n") == REQUEST_BAD);
	CHECK(parse("\x16\x03\x01\n\n") == REQUEST_BAD);
	memset(longest, 'x', sizeof longest);
	CHECK(request_parse(longest, REQUEST_BYTES - 1, path) == REQUEST_UNFINISHED);
	CHECK(request_parse(longest, REQUEST_BYTES, path) == REQUEST_BAD);
	memcpy(longest, "GET /", 5);
	memcpy(longest + 200, " HTTP/1.0\n\n", 11);
	CHECK(request_parse(longest, 211, path) == REQUEST_GET && strlen(path) == REQUEST_PATH - 1);
	return 0;
}
