/*
 * replay_main.c - runs a fuzz target over files: NAME_replay FILE|FOLDER...
 *
 * Each file is given whole and cut off at every byte, in a buffer of exactly its size, so
 * that a sanitizer sees the first byte too many. Finding no file at all is a failure: a
 * corpus that got lost must not pass.
 */
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define PREFIXES_UP_TO 4096 /* bytes; larger files are only given whole */

static unsigned file_count;

static void run_prefix(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);
	if (!exact)
		abort();
	if (size)
		memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static bool run_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);
	bool read = file && data && fread(data, 1, size, file) == size;
	if (read) {
		fprintf(stderr, "%s\n", path); /* the last line before a crash names the input */
		file_count++;
		for (size_t cut = size <= PREFIXES_UP_TO ? 0 : size; cut <= size; cut++)
			run_prefix(data, cut);
	} else {
		fprintf(stderr, "cannot read %s\n", path);
	}
	free(data);
	if (file)
		fclose(file);
	return read;
}

static bool run_path(const char *path);

static bool run_folder(const char *path)
{
	struct dirent **entries;
	bool ok = true;
	int count = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char inner[4096];
		snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			ok = run_path(inner) && ok;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return ok && count >= 0;
}

static bool run_path(const char *path)
{
	struct stat info;
	if (stat(path, &info) != 0) {
		fprintf(stderr, "there is no %s\n", path);
		return false;
	}
	return S_ISDIR(info.st_mode) ? run_folder(path) : run_file(path, (size_t)info.st_size);
}

int main(int argc, char **argv)
{
	bool ok = true;
	for (int i = 1; i < argc; i++)
		ok = run_path(argv[i]) && ok;
	printf("%u inputs\n", file_count);
	return ok && file_count > 0 ? 0 : 1;
}
