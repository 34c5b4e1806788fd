#include "hub/control/host_memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"

#define MAGIC UINT64_C(0x3274736f68627568) /* "hubhost2" */
#define PAGE UINT64_C(4096)
#define RESERVE_STEP (UINT64_C(8) << 20) /* a signal makes the kernel forget a whole step */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

struct host_head {
	uint64_t magic, layout, bytes;
	struct host_owner owner;
	uint32_t members, zeros;
	struct host_member member[HOST_MEMBERS_MOST];
};

/* Offsets of the parts, each at a page. */
struct parts {
	uint64_t posts, answers, weights, gradients, end;
};

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static struct parts parts_of(const struct hub_layout *layout, uint32_t members)
{
	uint64_t model = layout->elements * sizeof(float);
	struct parts parts = {.posts = pages(sizeof(struct host_head))};

	parts.answers = parts.posts + pages((uint64_t)members * layout->tensors * sizeof(struct host_post));
	parts.weights = parts.answers + pages(layout->tensors * sizeof(uint64_t));
	parts.gradients = parts.weights + pages(model);
	parts.end = parts.gradients + pages(members * model);
	return parts;
}

static struct host_head head_of(const struct host_owner *owner, const struct hub_layout *layout,
                                const struct host_member *member, uint32_t members)
{
	struct host_head head = {.magic = MAGIC,
	                         .layout = hub_layout_digest(layout, 0),
	                         .bytes = parts_of(layout, members).end,
	                         .owner = *owner,
	                         .members = members};

	memcpy(head.member, member, members * sizeof(*member));
	return head;
}

static enum esp_status refuse(uint32_t members, uint64_t bytes, int error, struct error *err)
{
	enum esp_status status = error == EMFILE || error == ENFILE || error == EFBIG ? ESP_ELIMIT
	                         : error == ENOSYS || error == EPERM                  ? ESP_EUNSUPPORTED
	                                                                              : ESP_ENOMEM;
	char text[UNITS_TEXT];

	return error_set(err, status,
	                 "no %s of shared memory in which the %u workers of this host add their gradients (%s): "
	                 "with the setting transport=tcp each pushes by itself", units_format_bytes(bytes, text), members,
	                 strerror(error));
}

static int reserve(int fd, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes;) {
		uint64_t step = bytes - at < RESERVE_STEP ? bytes - at : RESERVE_STEP;

		if (fallocate(fd, 0, (off_t)at, (off_t)step) == 0)
			at += step;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* Returns 0 or an errno; the descriptor is the caller's in any case. */
static int make_file(uint64_t bytes, int *out_fd)
{
	struct rlimit limit;

	/* Beyond it the kernel sends a signal that ends the process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
		return EFBIG;
	*out_fd = memfd_create("espalier-hub", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*out_fd < 0 || ftruncate(*out_fd, (off_t)bytes) != 0)
		return errno;
	int error = reserve(*out_fd, bytes);
	if (error == 0 && fcntl(*out_fd, F_ADD_SEALS, SEALS) != 0)
		error = errno;
	return error;
}

/* Returns 0 or an errno. */
static int map(struct host_memory *memory)
{
	struct parts parts = parts_of(memory->layout, memory->members);
	uint8_t *base = mmap(NULL, parts.end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory->fd, 0);

	if (base == MAP_FAILED)
		return errno;
	memory->base = base;
	memory->bytes = parts.end;
	memory->member = ((struct host_head *)(void *)base)->member;
	memory->posts = (struct host_post *)(void *)(base + parts.posts);
	memory->answers = (_Atomic uint64_t *)(void *)(base + parts.answers);
	memory->weights = (float *)(void *)(base + parts.weights);
	memory->gradients = (float *)(void *)(base + parts.gradients);
	if (parts.gradients == parts.weights)
		return 0;
	void *read_only =
		mmap(NULL, parts.gradients - parts.weights, PROT_READ, MAP_SHARED, memory->fd, (off_t)parts.weights);
	if (read_only == MAP_FAILED)
		return errno;
	memory->read_only = read_only;
	return 0;
}

enum esp_status host_memory_make(const struct host_owner *owner, const struct hub_layout *layout,
                                 const struct host_member *member, uint32_t members, struct host_memory *out,
                                 struct error *err)
{
	const struct host_head head = head_of(owner, layout, member, members);

	assert(members >= 2 && members <= HOST_MEMBERS_MOST);
	*out = (struct host_memory){.layout = layout, .members = members, .fd = -1};
	int error = make_file(head.bytes, &out->fd);
	if (error == 0)
		error = map(out);
	if (error != 0) {
		host_memory_fini(out);
		return refuse(members, head.bytes, error, err);
	}
	memcpy(out->base, &head, sizeof(head));
	return ESP_OK;
}

/* Is it sealed, and as long as it has to be? Nothing of it is read before. */
static bool is_safe(int fd, uint64_t bytes)
{
	struct stat info;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &info) == 0 && (uint64_t)info.st_size == bytes;
}

enum esp_status host_memory_map(const struct host_owner *owner, const struct hub_layout *layout,
                                const struct host_member *member, uint32_t members, int fd, struct host_memory *out,
                                struct error *err)
{
	struct host_head head = head_of(owner, layout, member, members);

	assert(members >= 2 && members <= HOST_MEMBERS_MOST);
	*out = (struct host_memory){.layout = layout, .members = members, .fd = fd};
	int error = is_safe(fd, head.bytes) ? map(out) : 0;
	/* The pusher alone knows the processes of all. */
	for (uint32_t i = 0; out->base && i < members; i++)
		head.member[i].pid = out->member[i].pid;
	bool is_good = out->base && memcmp(out->base, &head, sizeof(head)) == 0;
	if (is_good && error == 0)
		return ESP_OK;
	host_memory_fini(out);
	return error != 0 ? refuse(members, head.bytes, error, err)
	                  : error_set(err, ESP_ECORRUPT,
	                              "worker %u handed over memory that is not that of this job's workers",
	                              member[0].worker);
}

void host_memory_fini(struct host_memory *memory)
{
	struct parts parts;

	if (!memory->layout)
		return;
	parts = parts_of(memory->layout, memory->members);
	if (memory->read_only)
		munmap((void *)(uintptr_t)memory->read_only, parts.gradients - parts.weights);
	if (memory->base)
		munmap(memory->base, memory->bytes);
	if (memory->fd >= 0)
		close(memory->fd);
	*memory = (struct host_memory){.fd = -1};
}
