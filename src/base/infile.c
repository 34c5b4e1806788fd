#include "base/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

#define FIRST_READ ((size_t)1 << 16)

static const char *file_name(const char *name)
{
	return strcmp(name, "-") == 0 ? "the standard input" : name;
}

static enum esp_status system_error(const char *name, struct error *err)
{
	return error_set(err, ESP_EIO, "cannot read %s: %s", file_name(name), strerror(errno));
}

static enum esp_status map(struct infile *file, int fd, size_t length)
{
	void *at = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED)
		return ESP_EIO;
	*file = (struct infile){.text = at, .length = length, .mapped = true};
	return ESP_OK;
}

/* Room for at least one more byte. */
static enum esp_status grow(struct infile *file, size_t *capacity, const char *name, struct error *err)
{
	if (file->length < *capacity)
		return ESP_OK;
	if (*capacity >= INFILE_MAX)
		return error_set(err, ESP_ELIMIT, "%s goes on beyond %zu bytes", file_name(name), INFILE_MAX);
	size_t needed = *capacity ? file->length + 1 : FIRST_READ;
	if (!vec_reserve(&file->text, capacity, needed, sizeof(*file->text)))
		return error_set(err, ESP_ENOMEM, "no memory for %zu bytes of %s", needed, file_name(name));
	return ESP_OK;
}

static enum esp_status read_all(struct infile *file, int fd, const char *name, struct error *err)
{
	size_t capacity = 0;
	enum esp_status status;

	while ((status = grow(file, &capacity, name, err)) == ESP_OK) {
		ssize_t got = read(fd, file->text + file->length, capacity - file->length);

		if (got == 0)
			return ESP_OK;
		if (got < 0 && errno != EINTR)
			return system_error(name, err);
		if (got > 0)
			file->length += (size_t)got;
	}
	return status;
}

enum esp_status infile_open(struct infile *file, const char *name, struct error *err)
{
	bool input = strcmp(name, "-") == 0;
	struct stat facts;
	enum esp_status status;

	*file = (struct infile){0};
	if (name[0] == '\0')
		return error_set(err, ESP_EINVAL, "the name of a file is empty");
	int fd = input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &facts) != 0)
		status = system_error(name, err);
	else if (!input && S_ISREG(facts.st_mode) && facts.st_size > 0 && map(file, fd, (size_t)facts.st_size) == ESP_OK)
		status = ESP_OK;
	else
		status = read_all(file, fd, name, err);
	if (fd >= 0 && !input)
		close(fd);
	if (status != ESP_OK)
		infile_close(file);
	return status;
}

void infile_close(struct infile *file)
{
	if (file->mapped)
		munmap(file->text, file->length);
	else
		free(file->text);
	*file = (struct infile){0};
}
