/*
 * The memory that workers of a host share: both ends see the same, and what is not that memory is refused.
 */
#include "hub/control/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

static const struct host_member members[3] = {{2, 100}, {5, 101}, {6, 102}};
static struct hub_layout layout;

static int copy_fd(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	CHECK(copy >= 0);
	return copy;
}

static void make_layout(uint64_t elements, struct hub_layout *out)
{
	const struct layout_tensor tensors[] = {{1, elements, ESP_F32, 0}, {2, 0, ESP_F32, 0}, {3, 7, ESP_F32, 1}};

	CHECK(hub_layout_make(tensors, 3, LAYOUT_CHUNK_LEAST, 2, out, NULL) == ESP_OK);
}

static const struct host_owner owner = {7, 3};

/* The places of members, and of tensors, are apart from each other. */
static void test_both_ends(void)
{
	struct host_memory one, other;
	struct host_member known[3] = {{2, 0}, {5, 0}, {6, 102}}; /* a member knows its own process only */

	CHECK(host_memory_make(&owner, &layout, members, 3, &one, NULL) == ESP_OK);
	CHECK(host_memory_map(&owner, &layout, known, 3, copy_fd(one.fd), &other, NULL) == ESP_OK);
	CHECK(other.member[1].pid == 101 && other.member[0].worker == 2);
	for (uint32_t tensor = 0; tensor < 3; tensor += 2) {
		for (uint64_t i = 0; i < layout.tensor[tensor].elements; i++) {
			one.weights[layout.place[tensor].at + i] = 1;
			host_memory_gradient(&one, 1, tensor)[i] = 2;
			host_memory_gradient(&one, 2, tensor)[i] = 3;
		}
		atomic_store(&host_memory_post(&one, 2, tensor)->rounds, 10 + tensor);
		atomic_store(&one.answers[tensor], 20 + tensor);
	}
	for (uint32_t tensor = 0; tensor < 3; tensor += 2) {
		for (uint64_t i = 0; i < layout.tensor[tensor].elements; i++) {
			uint64_t at = layout.place[tensor].at + i;

			CHECK(other.weights[at] == 1 && other.read_only[at] == 1 && one.read_only[at] == 1);
			CHECK(host_memory_gradient(&other, 1, tensor)[i] == 2 && host_memory_gradient(&other, 2, tensor)[i] == 3);
		}
		CHECK_U64(atomic_load(&host_memory_post(&other, 2, tensor)->rounds), 10 + tensor);
		CHECK_U64(atomic_load(&host_memory_post(&other, 1, tensor)->rounds), 0);
		CHECK_U64(atomic_load(&other.answers[tensor]), 20 + tensor);
	}
	host_memory_fini(&one); /* the other end's stays */
	CHECK(other.weights[0] == 1);
	host_memory_fini(&other);
}

static void check_refused(const struct host_owner *by, const struct hub_layout *of, const struct host_member *member,
                          uint32_t count, int fd)
{
	struct host_memory memory;
	struct error err;

	CHECK(host_memory_map(by, of, member, count, fd, &memory, &err) == ESP_ECORRUPT);
	CHECK_MSG(strstr(err.text, "worker 2 handed over memory"), "%s", err.text);
}

static void test_refused(void)
{
	static const struct host_member others[3] = {{2, 0}, {5, 0}, {7, 0}};
	struct host_memory memory;
	static const struct host_owner other_job = {8, 3}, other_session = {7, 4};
	struct hub_layout larger;

	make_layout(1001, &larger);
	CHECK(host_memory_make(&owner, &layout, members, 3, &memory, NULL) == ESP_OK);
	check_refused(&owner, &larger, members, 3, copy_fd(memory.fd));
	check_refused(&owner, &layout, members, 2, copy_fd(memory.fd));
	check_refused(&owner, &layout, others, 3, copy_fd(memory.fd));
	check_refused(&other_job, &layout, members, 3, copy_fd(memory.fd));
	check_refused(&other_session, &layout, members, 3, copy_fd(memory.fd));
	int fd = memfd_create("not sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(ftruncate(fd, (off_t)memory.bytes) == 0);
	check_refused(&owner, &layout, members, 3, fd);
	fd = memfd_create("zeros", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(ftruncate(fd, (off_t)memory.bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	check_refused(&owner, &layout, members, 3, fd);
	fd = memfd_create("short", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	check_refused(&owner, &layout, members, 3, fd);
	check_refused(&owner, &layout, members, 3, open("/dev/null", O_RDWR | O_CLOEXEC));
	host_memory_fini(&memory);
	hub_layout_fini(&larger);
}

/* A model without elements. */
static void test_empty(void)
{
	struct hub_layout empty;
	struct host_memory memory;

	CHECK(hub_layout_make(NULL, 0, LAYOUT_CHUNK_LEAST, 1, &empty, NULL) == ESP_OK);
	CHECK(host_memory_make(&owner, &empty, members, 2, &memory, NULL) == ESP_OK);
	host_memory_fini(&memory);
	host_memory_fini(&memory);
	hub_layout_fini(&empty);
}

int main(void)
{
	make_layout(1000, &layout);
	test_both_ends();
	test_refused();
	test_empty();
	hub_layout_fini(&layout);
	return 0;
}
