#include "hub/control/hub_dial.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "node/auth/proof.h"
#include "node/net/resolve.h"
#include "wire/bytes.h"

#define RETRY_PAUSE (50 * NS_PER_MS)
#define PROOF_PATIENCE (5 * NS_PER_S)

uint64_t hub_dial_own_job(const uint8_t key[HANDSHAKE_KEY_BYTES])
{
	static const uint8_t name[HELLO_JOB_BYTES] = "espalier hub";

	return handshake_job_number(key, name);
}

void hub_dial_listener_hello(uint32_t workers, struct hello *out)
{
	/* The hub's row in the roster is the one behind the workers. */
	*out = (struct hello){
		.from = workers, .to = HANDSHAKE_ANY_RANK, .role = NODE_HUB, .to_role = NODE_WORKER, .size = workers};
}

void hub_dial_scheduler_hello(struct hello *out)
{
	*out = (struct hello){
		.from = HUB_SCHEDULER_ROW, .to = HANDSHAKE_ANY_RANK, .role = NODE_SCHEDULER, .to_role = NODE_WORKER};
}

void hub_dial_job_key(const uint8_t hub_key[HANDSHAKE_KEY_BYTES], uint64_t job, uint8_t out[HANDSHAKE_KEY_BYTES])
{
	static const uint8_t purpose[] = "espalier hub job";
	crypto_generichash_state state;
	uint8_t number[8];

	bytes_put64(number, job);
	crypto_generichash_init(&state, hub_key, HANDSHAKE_KEY_BYTES, HANDSHAKE_KEY_BYTES);
	crypto_generichash_update(&state, purpose, sizeof(purpose) - 1);
	crypto_generichash_update(&state, number, sizeof(number));
	crypto_generichash_final(&state, out, HANDSHAKE_KEY_BYTES);
	sodium_memzero(&state, sizeof(state));
}

/* Settings are compared between workers only; a hub finds the session there. */
uint64_t hub_dial_session(const struct hello *hello)
{
	return bytes_get64(hello->settings);
}

static void make_config(const struct hub_dial *dial, struct handshake_config *out)
{
	*out = (struct handshake_config){
		.job = dial->job,
		.hello =
			{
				.purpose = dial->purpose,
				.from = dial->worker,
				.to = dial->is_worker      ? dial->to
			          : dial->is_scheduler ? HUB_SCHEDULER_ROW
			                               : dial->workers,
				.role = NODE_WORKER,
				.to_role = dial->is_worker      ? NODE_WORKER
			               : dial->is_scheduler ? NODE_SCHEDULER
			                                    : NODE_HUB,
				.size = dial->workers,
				.lane = dial->lane,
			},
	};
	memcpy(out->key, dial->key, sizeof(out->key));
	bytes_put64(out->hello.settings, dial->session);
}

/* A connected socket, or -1 and errno. */
static int connect_one(const struct sockaddr *name, socklen_t length, uint64_t until_ns)
{
	int on = 1, cause = 0;
	socklen_t size = sizeof(cause);
	int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, name, length) != 0 && errno != EINPROGRESS)
		cause = errno;
	else if (!ready_by(fd, POLLOUT, until_ns))
		cause = ETIMEDOUT;
	else
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size);
	if (cause == 0 && !address_meets_itself(fd))
		return fd;
	close(fd);
	errno = cause ? cause : ECONNREFUSED;
	return -1;
}

static int connect_any(const struct resolved *resolved, uint64_t until_ns)
{
	int fd = -1;

	for (uint32_t i = 0; fd < 0 && i < resolved->count; i++)
		fd = connect_one(&resolved->addresses[i].any, resolved->lengths[i], until_ns);
	return fd;
}

static void pause_before_retry(void)
{
	const struct timespec pause = {.tv_nsec = (long)RETRY_PAUSE};

	nanosleep(&pause, NULL);
}

/* A hub that is being started does not listen yet: no cause but the deadline ends the attempts. */
static enum esp_status connect_by(const struct address *hub, uint64_t until_ns, int *out_fd, struct error *err)
{
	char text[ADDRESS_TEXT];
	struct resolved resolved;
	enum esp_status status = resolve(hub, until_ns, &resolved, err);

	if (status != ESP_OK)
		return status;
	for (;;) {
		int fd = connect_any(&resolved, until_ns);

		if (fd >= 0) {
			*out_fd = fd;
			return ESP_OK;
		}
		if (errno == EMFILE || errno == ENFILE || clock_now_ns() + RETRY_PAUSE >= until_ns)
			return error_set(err, ESP_ELINK, "cannot connect to the hub at %s: %s", address_format(hub, text),
			                 strerror(errno));
		pause_before_retry();
	}
}

enum esp_status hub_dial(const struct hub_dial *dial, int *out_fd, uint8_t out_session[HANDSHAKE_KEY_BYTES],
                         struct error *err)
{
	uint64_t now = clock_now_ns();
	struct handshake_config config;
	char text[ADDRESS_TEXT];
	struct handshake hs;
	struct error why;
	int fd = -1;

	assert(dial->worker < dial->workers);
	enum esp_status status = connect_by(dial->hub, dial->until_ns, &fd, err);
	if (status != ESP_OK)
		return status;
	uint64_t proof_by = now + (dial->proof_ns ? dial->proof_ns : PROOF_PATIENCE);
	uint64_t patience = dial->until_ns > proof_by ? dial->until_ns : proof_by;
	make_config(dial, &config);
	status = proof_run(fd, HANDSHAKE_DIALER, &config, patience, &hs, &why);
	explicit_bzero(&config, sizeof(config));
	if (status == ESP_OK) {
		memcpy(out_session, hs.session, HANDSHAKE_KEY_BYTES);
		handshake_fini(&hs);
		*out_fd = fd;
		return ESP_OK;
	}
	close(fd);
	address_format(dial->hub, text);
	if (status == ESP_ELINK && hs.refused)
		return error_set(err, ESP_EPEER,
		                 "the hub at %.100s does not know this key: the job was removed or replaced, the hub was started "
		                 "anew, or the key is another hub's",
		                 text);
	return error_set(err, status, "the hub at %.80s: %.150s", text, why.text);
}
