#include "base/infile.h"

#include <unistd.h>

#include "base/check.h"

static void put(const char *path, const char *text, size_t length)
{
	FILE *file = fopen(path, "w");
	CHECK(file && fwrite(text, 1, length, file) == length && fclose(file) == 0);
}

static void check(const char *name, const char *text, size_t length)
{
	struct infile file;
	struct error err = {0};
	CHECK_MSG(infile_open(&file, name, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(file.length, length);
	CHECK(length == 0 || memcmp(file.text, text, length) == 0);
	infile_close(&file);
	CHECK(!file.text && file.length == 0);
}

/* A pipe as the standard input is read to its end, and left open for others. */
static void test_pipe(void)
{
	enum { LENGTH = 300000 }; /* more than a pipe holds, and than the first read */
	int ends[2];
	char *text = malloc(LENGTH);
	CHECK(text && pipe(ends) == 0);
	for (size_t i = 0; i < LENGTH; i++)
		text[i] = (char)(i % 251);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(ends[0]);
		for (size_t sent = 0; sent < LENGTH;) {
			ssize_t wrote = write(ends[1], text + sent, LENGTH - sent);
			if (wrote <= 0)
				_exit(1);
			sent += (size_t)wrote;
		}
		_exit(0);
	}
	close(ends[1]);
	CHECK(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO && close(ends[0]) == 0);
	check("-", text, LENGTH);
	check("-", "", 0);
	free(text);
}

int main(void)
{
	char folder[] = "/tmp/infile-test-XXXXXX", path[64];
	struct infile file;
	struct error err = {0};
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/file", folder);
	put(path, "one\0two\n", 8);
	check(path, "one\0two\n", 8);
	put(path, "", 0);
	check(path, "", 0);
	CHECK(unlink(path) == 0);
	CHECK(infile_open(&file, path, &err) == ESP_EIO && strstr(err.text, path) && strstr(err.text, "No such file"));
	CHECK(infile_open(&file, folder, &err) == ESP_EIO);
	CHECK(infile_open(&file, "", &err) == ESP_EINVAL);
	infile_close(&file); /* a file that failed to open may be closed */
	CHECK(rmdir(folder) == 0);
	test_pipe();
	return 0;
}
