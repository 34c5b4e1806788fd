#include "node/net/resolve.h"

#include <netinet/in.h>

#include "base/check.h"
#include "base/clock.h"

static struct address to(const char *host)
{
	struct address address = {.port = 4242};
	snprintf(address.host, sizeof(address.host), "%s", host);
	return address;
}

static uint64_t soon(void)
{
	return clock_now_ns() + 20 * NS_PER_S;
}

static void numbers(void)
{
	struct resolved found;
	struct error err;
	struct address v4 = to("10.1.2.3"), v6 = to("::1"), mapped = to("::ffff:127.0.0.1");

	CHECK(resolve(&v4, 0, &found, &err) == ESP_OK);
	CHECK_U64(found.count, 1);
	CHECK(found.addresses[0].any.sa_family == AF_INET && !resolve_is_loopback(&found.addresses[0].any));
	CHECK(resolve(&v6, 0, &found, &err) == ESP_OK);
	CHECK(found.addresses[0].any.sa_family == AF_INET6 && resolve_is_loopback(&found.addresses[0].any));
	CHECK(ntohs(((struct sockaddr_in6 *)&found.addresses[0])->sin6_port) == 4242);
	CHECK(resolve(&mapped, 0, &found, &err) == ESP_OK);
	CHECK(resolve_is_loopback(&found.addresses[0].any));
}

static void names(void)
{
	struct resolved found;
	struct error err;
	struct address local = to("localhost"), none = to("no-such-host.invalid");

	CHECK_MSG(resolve(&local, soon(), &found, &err) == ESP_OK, "%s", err.text);
	CHECK(found.count >= 1);
	for (uint32_t i = 0; i < found.count; i++)
		CHECK(resolve_is_loopback(&found.addresses[i].any));
	/* Either answer is right: not every machine has a name server. */
	enum esp_status status = resolve(&none, soon(), &found, &err);
	CHECK(status == ESP_ELINK || status == ESP_ETIMEOUT);
	CHECK(strstr(err.text, "no-such-host.invalid"));
}

/* After the deadline a lookup may return an answer that is there already, but does not wait for one. */
static void too_late(void)
{
	struct resolved found;
	struct error err;
	struct address slow = to("slow.invalid");

	enum esp_status status = resolve(&slow, 1, &found, &err);
	CHECK(status == ESP_ETIMEOUT || status == ESP_ELINK);
}

int main(void)
{
	numbers();
	names();
	too_late();
	return 0;
}
