/*
 * p2p_test.c - messages between two ranks that end badly, or late: which error each rank gets. (What is well:
 * groups_test.c.)
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

#define SOON 30000000 /* ns */

static void check_error(const struct esp_error *error, const char *operation, int32_t culprit, const char *const *words)
{
	CHECK_STR(error->operation, operation);
	CHECK_MSG(error->rank == culprit, "it was rank %d: %s", error->rank, error->text);
	for (; *words; words++)
		CHECK_MSG(strstr(error->text, *words) != NULL, "not \"%s\": %s", *words, error->text);
}

static struct esp_error end_late(struct esp_work *work)
{
	struct esp_error error = ESP_ERROR_INIT;

	EXPECT(esp_wait(work, -1), ESP_ETIMEOUT);
	OK(esp_work_error(work, &error));
	esp_work_free(work);
	return error;
}

/* Nobody else knows of a receive that nothing came for: it ends, and the group goes on. */
static void late_receives(struct job_rank *rank)
{
	static const char *const any[] = {"receive of up to 100 bytes from any rank with tag 8", "deadline (0.03 s)", NULL};
	static const char *const named[] = {"receive of up to 100 bytes from rank 0 on ", " with tag 7", "deadline", NULL};
	struct esp_work *work;
	struct esp_error error;
	char data[100];

	OK(esp_recv_start(rank->world, data, 100, 0, 7, SOON, &work));
	error = end_late(work);
	check_error(&error, "receive", 0, named);
	CHECK(error.waits_for == 0);
	OK(esp_recv_start(rank->world, data, 100, ESP_ANY_RANK, 8, SOON, &work));
	error = end_late(work);
	check_error(&error, "receive", -1, any);
	CHECK(error.waits_for == -1);
	/* What comes later is there for whoever asks for it. */
	OK(esp_barrier(rank->world));
	OK(esp_send_start(rank->world, &rank->rank, 4, (rank->rank + 1) % rank->size, 7, 0, &work));
	uint32_t from = 77;
	OK(esp_recv(rank->world, data, 100, ESP_ANY_RANK, 7, NULL, &from));
	CHECK(from == (rank->rank + rank->size - 1) % rank->size);
	OK(esp_wait(work, -1));
	esp_work_free(work);
	OK(esp_barrier(rank->world));
}

struct receiver {
	struct job_rank *rank;
	int got;
};

static void *receive_own(void *argument)
{
	struct receiver *receiver = argument;
	struct job_rank *rank = receiver->rank;

	OK(esp_recv(rank->world, &receiver->got, sizeof(receiver->got), rank->rank, 9, NULL, NULL));
	return NULL;
}

/* To oneself: it waits for a receive, which another thread may make; without one it ends alone, and is gone. */
static void to_oneself(struct job_rank *rank)
{
	static const char *const words[] = {"send of 4 bytes to rank ", " with tag 9", "itself", "deadline (0.03 s): start the receive before", NULL};
	struct receiver receiver = {.rank = rank};
	struct esp_work *work;
	pthread_t thread;
	int number = 5;

	OK(esp_send_start(rank->world, &number, sizeof(number), rank->rank, 9, SOON, &work));
	struct esp_error error = end_late(work);
	check_error(&error, "send", (int32_t)rank->rank, words);
	number = 6;
	CHECK(pthread_create(&thread, NULL, receive_own, &receiver) == 0);
	OK(esp_send(rank->world, &number, sizeof(number), rank->rank, 9));
	pthread_join(thread, NULL);
	CHECK(receiver.got == 6);
	OK(esp_barrier(rank->world));
}

/* A send has been announced to its receiver: the group fails, and everybody is told in which message. */
static void late_send(struct job_rank *rank)
{
	static const char *const own[] = {"send of 8 bytes to rank 1 on ", " with tag 5: it was not received", NULL};
	static const char *const told[] = {"rank 0", "(0.03 s)", "send of 8 bytes to rank 1 on ", " with tag 5", NULL};
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_work *work;
	uint64_t data = 0;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank == 0) {
		OK(esp_send_start(rank->world, &data, sizeof(data), 1, 5, SOON, &work));
		error = end_late(work);
		check_error(&error, "send", 1, own);
		CHECK(error.waits_for == 1);
	}
	job_meet(rank);
	while (esp_barrier(rank->world) == ESP_OK)
		;
	OK(esp_last_error(&error));
	CHECK(error.status == ESP_ETIMEOUT);
	CHECK(error.rank == 1);
	for (const char *const *word = told; *word; word++)
		CHECK_MSG(strstr(error.text, *word) != NULL, "not \"%s\": %s", *word, error.text);
}

static void too_long(struct job_rank *rank)
{
	static const char *const words[] = {"receive of up to 4 bytes from rank ", " with tag 3", "8 bytes", NULL};
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_work *work;
	uint64_t number = 0;
	uint32_t before = (rank->rank + rank->size - 1) % rank->size;

	OK(esp_send_start(rank->world, &number, sizeof(number), (rank->rank + 1) % rank->size, 3, 0, &work));
	EXPECT(esp_recv(rank->world, &number, 4, ESP_ANY_RANK, 3, NULL, NULL), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	check_error(&error, "receive", (int32_t)before, words);
	OK(esp_wait(work, -1));
	esp_work_free(work);
	OK(esp_barrier(rank->world));
}

/* The group fails for another reason: the message says which it was all the same. */
static void aborted(struct job_rank *rank)
{
	static const char *const words[] = {"receive of up to 4 bytes from rank 0 on ", " with tag 1", "enough", NULL};
	struct esp_error error = ESP_ERROR_INIT;
	int data;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank == 0)
		OK(esp_abort(rank->world, "enough"));
	else if (esp_recv(rank->world, &data, sizeof(data), 0, 1, NULL, NULL) != ESP_OK && esp_last_error(&error) == ESP_OK &&
	         strncmp(error.text, "the group has failed before", 10) != 0)
		check_error(&error, "receive", 0, words);
	job_meet(rank);
}

enum { CROWD = 16, LONG = 1 << 20 };

/* Many long messages both ways, with little memory: receives do not keep sends from moving. */
static void crowd(struct job_rank *rank)
{
	uint32_t next = (rank->rank + 1) % rank->size, before = (rank->rank + rank->size - 1) % rank->size;
	struct esp_work *works[2 * CROWD];
	uint8_t *in = malloc((size_t)CROWD * LONG), *out = malloc(LONG);

	CHECK(in && out);
	memset(out, (int)rank->rank + 1, LONG);
	for (uint32_t i = 0; i < CROWD; i++)
		OK(esp_recv_start(rank->world, in + (size_t)i * LONG, LONG, before, 5, 0, &works[i]));
	for (uint32_t i = 0; i < CROWD; i++)
		OK(esp_send_start(rank->world, out, LONG, next, 5, 0, &works[CROWD + i]));
	for (uint32_t i = 0; i < 2 * CROWD; i++) {
		OK(esp_wait(works[i], -1));
		esp_work_free(works[i]);
	}
	for (size_t i = 0; i < (size_t)CROWD * LONG; i++)
		CHECK(in[i] == before + 1);
	free(in);
	free(out);
}

enum { MANY = 10000 };

static void wait_for_all(struct esp_work **works, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		OK(esp_wait(works[i], -1));
		esp_work_free(works[i]);
	}
}

/* Many messages, and receives in the other order: whichever of both comes first, each pair is matched. */
static void many(struct job_rank *rank)
{
	bool sends = rank->rank == 0, receives_first = *(bool *)rank->argument;
	struct esp_work **works = calloc(MANY, sizeof(struct esp_work *));
	uint64_t *data = calloc(MANY, sizeof(*data));

	if (sends && receives_first)
		OK(esp_recv(rank->world, NULL, 0, 1, MANY, NULL, NULL));
	for (uint64_t i = 0; i < MANY; i++) {
		uint64_t tag = sends ? i : MANY - 1 - i;

		data[tag] = sends ? tag : 0;
		if (sends)
			OK(esp_send_start(rank->world, &data[tag], sizeof(*data), 1, tag, 0, &works[i]));
		else if (i % 2)
			OK(esp_recv_start(rank->world, &data[tag], sizeof(*data), 0, tag, 0, &works[i]));
		else
			OK(esp_recv_start(rank->world, &data[tag], sizeof(*data), ESP_ANY_RANK, tag, 0, &works[i]));
		/* Letters are announced in order: when this one has come, all have. */
		if (sends && i + 1 == MANY && !receives_first)
			OK(esp_send(rank->world, NULL, 0, 1, MANY));
		if (!sends && i == 0 && !receives_first)
			OK(esp_recv(rank->world, NULL, 0, 0, MANY, NULL, NULL));
	}
	if (!sends && receives_first)
		OK(esp_send(rank->world, NULL, 0, 0, MANY));
	wait_for_all(works, MANY);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_U64(data[i], i);
	free(works);
	free(data);
}

/* Receives of one tag get messages in the order in which both came, those from any rank and those from a certain one alike. */
static void in_order(struct job_rank *rank)
{
	struct esp_work *works[12];
	uint32_t numbers[12];

	for (uint32_t round = 0; round < 2; round++) {
		if (rank->rank == 0 && round == 0)
			OK(esp_recv(rank->world, NULL, 0, 1, 1, NULL, NULL));
		for (uint32_t i = 0; i < 12; i++) {
			uint32_t from = i % 3 == 0 ? ESP_ANY_RANK : 0;

			numbers[i] = rank->rank == 0 ? i : 99;
			if (rank->rank == 0)
				OK(esp_send_start(rank->world, &numbers[i], 4, 1, 5, 0, &works[i]));
			else
				OK(esp_recv_start(rank->world, &numbers[i], 4, from, 5, 0, &works[i]));
		}
		if (rank->rank == 1 && round == 0)
			OK(esp_send(rank->world, NULL, 0, 0, 1));
		wait_for_all(works, 12);
		for (uint32_t i = 0; i < 12; i++)
			CHECK_U64(numbers[i], i);
	}
}

/* Nobody receives them: the one too many is refused at once, and alone. */
static void too_many_to_oneself(struct job_rank *rank)
{
	enum { MOST = 65536 };
	static struct esp_work *works[MOST + 1];
	char data = 0;

	for (uint32_t i = 0; i <= MOST; i++)
		OK(esp_send_start(rank->world, &data, 1, rank->rank, 6, 0, &works[i]));
	EXPECT(esp_wait(works[MOST], -1), ESP_ELIMIT);
	OK(esp_barrier(rank->world));
	OK(esp_abort(rank->world, "enough"));
	for (uint32_t i = 0; i <= MOST; i++) {
		if (i < MOST)
			EXPECT(esp_wait(works[i], -1), ESP_EABORTED);
		esp_work_free(works[i]);
	}
}

int main(void)
{
	static const char *const memory[] = {"linger_seconds=0", NULL};
	static const char *const sockets[] = {"linger_seconds=0", "transport=tcp", NULL};
	static const char *const *const all[] = {memory, sockets};
	/* So many messages may be under way that chunks have to be smaller. */
	static const char *const narrower[][6] = {
		{"deadline_seconds=20", "lanes=1", "buffer_bytes=1M", "credits=64", NULL},
		{"deadline_seconds=20", "lanes=1", "buffer_bytes=1M", "credits=64", "transport=tcp", NULL},
	};
	static const char *const narrow[][5] = {
		{"deadline_seconds=20", "lanes=1", "buffer_bytes=1M", NULL},
		{"deadline_seconds=20", "lanes=1", "buffer_bytes=1M", "transport=tcp", NULL},
	};

	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t size = 1; size <= 3; size++) {
			job_run(size, all[i] + 1, late_receives, NULL);
			job_run(size, all[i] + 1, to_oneself, NULL);
			job_run(size, all[i] + 1, too_long, NULL);
		}
		job_run(3, all[i], late_send, NULL);
		job_run(4, narrow[i], crowd, NULL);
		job_run(4, narrower[i], crowd, NULL);
		job_run(2, all[i], aborted, NULL);
	}
	for (unsigned i = 0; i < 2; i++) {
		bool receives_first = i == 1;

		job_run(2, all[i] + 1, many, &receives_first);
		job_run(2, all[i] + 1, in_order, NULL);
	}
	job_run(1, memory, too_many_to_oneself, NULL);
	return 0;
}
