#include "base/outfile.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

static char folder[] = "/tmp/outfile_test_XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[2][256];
	static unsigned turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static bool has(const char *path, const char *text)
{
	char got[64] = "";
	FILE *file = fopen(path, "r");

	if (!file)
		return false;
	size_t length = fread(got, 1, sizeof(got) - 1, file);
	fclose(file);
	return length == strlen(text) && strcmp(got, text) == 0;
}

static unsigned entries(void)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

static void write_text(const char *path, const char *text)
{
	struct outfile out;

	CHECK(outfile_open(&out, path, NULL) == ESP_OK);
	fputs(text, out.file);
	CHECK(outfile_commit(&out, NULL) == ESP_OK);
}

static void whole_or_not_at_all(void)
{
	struct outfile out;
	struct stat rights;
	mode_t mask = umask(0027);

	write_text(in_folder("a"), "first");
	umask(mask);
	CHECK(has(in_folder("a"), "first"));
	CHECK(stat(in_folder("a"), &rights) == 0 && (rights.st_mode & 0777) == 0640);
	CHECK(outfile_open(&out, in_folder("a"), NULL) == ESP_OK);
	fputs("second", out.file);
	fflush(out.file);
	CHECK(has(in_folder("a"), "first")); /* until it is complete */
	outfile_abandon(&out);
	CHECK(has(in_folder("a"), "first"));
	CHECK_U64(entries(), 1);
	write_text(in_folder("a"), "third");
	CHECK(has(in_folder("a"), "third"));
	CHECK_U64(entries(), 1);
}

static void links_stay(void)
{
	struct stat kind;

	CHECK(symlink("a", in_folder("link")) == 0);
	write_text(in_folder("link"), "through");
	CHECK(has(in_folder("a"), "through"));
	CHECK(lstat(in_folder("link"), &kind) == 0 && S_ISLNK(kind.st_mode));
}

static void refusals(void)
{
	struct outfile out;
	struct error err;

	CHECK(outfile_open(&out, folder, &err) == ESP_EIO && strstr(err.text, "directory"));
	CHECK(outfile_open(&out, in_folder("none/b"), &err) == ESP_EIO && strstr(err.text, "none/b"));
}

/* A device that takes nothing is an error, and is still there afterwards. */
static void devices_stay(void)
{
	struct outfile out;
	struct error err;
	struct stat kind;

	if (stat("/dev/full", &kind) != 0 || !S_ISCHR(kind.st_mode))
		return;
	CHECK(outfile_open(&out, "/dev/full", &err) == ESP_OK);
	fputs("text", out.file);
	CHECK(outfile_commit(&out, &err) == ESP_EIO);
	CHECK(outfile_open(&out, "/dev/full", &err) == ESP_OK);
	outfile_abandon(&out);
	CHECK(stat("/dev/full", &kind) == 0 && S_ISCHR(kind.st_mode));
}

int main(void)
{
	CHECK(mkdtemp(folder));
	whole_or_not_at_all();
	links_stay();
	refusals();
	devices_stay();
	unlink(in_folder("link"));
	unlink(in_folder("a"));
	rmdir(folder);
	return 0;
}
