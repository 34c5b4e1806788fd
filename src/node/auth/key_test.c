#include "node/auth/key.h"
#include "node/auth/key_user.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "node/auth/private_file.h"

static struct error err;

static void texts(void)
{
	static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
	struct key key, other;
	char back[KEY_HEX];

	CHECK(key_from_text(hex, 64, "ESP_KEY", &key, &err) == ESP_OK);
	CHECK(key.bytes[0] == 0 && key.bytes[31] == 31);
	CHECK(strcasecmp(key_to_hex(&key, back), hex) == 0);
	CHECK(key_from_text(hex, 63, "ESP_KEY", &other, &err) == ESP_OK); /* a passphrase of 63 hexadecimal digits */
	CHECK(memcmp(key.bytes, other.bytes, 32) != 0);
	CHECK(key_from_text("sixteen bytes ok", 16, "ESP_KEY", &key, &err) == ESP_OK);
	CHECK(key_from_text("sixteen bytes oK", 16, "ESP_KEY", &other, &err) == ESP_OK);
	CHECK(memcmp(key.bytes, other.bytes, 32) != 0);
	CHECK(key_from_text("fifteen bytes n", 15, "ESP_KEY", &key, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "ESP_KEY holds 15 bytes: a key is 64 hexadecimal digits or a text of at least 16 bytes");
	key_generate(&key);
	key_generate(&other);
	CHECK(memcmp(key.bytes, other.bytes, 32) != 0 && key.origin == KEY_GENERATED);
	key_wipe(&key);
	CHECK(key.bytes[5] == 0 && key.origin == KEY_NONE);
}

static void write_file(const char *path, const char *text, size_t length, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	CHECK(fchmod(fd, mode) == 0 && close(fd) == 0);
}

static void files(const char *folder)
{
	static const char phrase[] = "a phrase that is long enough";
	struct key from_file, from_text;
	char path[256], longer[PRIVATE_FILE_MOST + 1];

	snprintf(path, sizeof(path), "%s/key", folder);
	CHECK(key_from_text(phrase, strlen(phrase), "", &from_text, &err) == ESP_OK);
	write_file(path, "a phrase that is long enough\r\n", 30, 0600);
	CHECK_MSG(key_from_file(path, &from_file, &err) == ESP_OK, "%s", err.text);
	CHECK(memcmp(from_file.bytes, from_text.bytes, 32) == 0 && from_file.origin == KEY_FILE);
	CHECK(chmod(path, 0400) == 0 && key_from_file(path, &from_file, &err) == ESP_OK);

	static const mode_t modes[] = {0604, 0602, 0601, 0620};
	for (size_t i = 0; i < 4; i++) {
		CHECK(chmod(path, modes[i]) == 0);
		CHECK_MSG(key_from_file(path, &from_file, &err) == ESP_EIO, "%o", modes[i]);
		CHECK(strstr(err.text, "can be read by others: chmod 600 ") && strstr(err.text, path));
	}
	CHECK(chmod(path, 0640) == 0); /* a container's secret: root's, readable by a group */
	CHECK(key_from_file(path, &from_file, &err) == (geteuid() == 0 ? ESP_OK : ESP_EIO));

	memset(longer, 'k', sizeof(longer));
	write_file(path, longer, PRIVATE_FILE_MOST, 0600);
	CHECK(key_from_file(path, &from_file, &err) == ESP_OK);
	write_file(path, longer, PRIVATE_FILE_MOST + 1, 0600);
	CHECK(key_from_file(path, &from_file, &err) == ESP_ELIMIT);
	write_file(path, "", 0, 0600);
	CHECK(key_from_file(path, &from_file, &err) == ESP_EINVAL);
	CHECK(unlink(path) == 0 && key_from_file(path, &from_file, &err) == ESP_EIO);
	CHECK(strstr(err.text, "cannot open"));
	CHECK(mkfifo(path, 0600) == 0);
	CHECK(key_from_file(path, &from_file, &err) == ESP_EIO);
	CHECK(strstr(err.text, "not a regular file"));
	CHECK(unlink(path) == 0 && key_from_file(folder, &from_file, &err) == ESP_EIO);
}

/* context: {ESP_KEY_FILE, ESP_KEY} */
static const char *look_up(void *context, const char *name)
{
	const char **values = context;
	return strcmp(name, "ESP_KEY_FILE") == 0 ? values[0] : strcmp(name, "ESP_KEY") == 0 ? values[1] : NULL;
}

static void environment(const char *folder)
{
	struct key key;
	char path[256];

	snprintf(path, sizeof(path), "%s/key", folder);
	write_file(path, "a phrase that is long enough", 28, 0600);
	CHECK(key_find(look_up, (const char *[]){path, "another phrase, long"}, &key, &err) == ESP_OK);
	CHECK_U64(key.origin, KEY_FILE);
	CHECK(key_find(look_up, (const char *[]){"", "another phrase, long"}, &key, &err) == ESP_OK);
	CHECK_U64(key.origin, KEY_ENVIRONMENT);
	CHECK(key_find(look_up, (const char *[]){NULL, ""}, &key, &err) == ESP_OK);
	CHECK_U64(key.origin, KEY_NONE);
	CHECK(key_find(look_up, (const char *[]){NULL, "short"}, &key, &err) == ESP_EINVAL);
	CHECK(!strstr(err.text, "short")); /* a key is never shown, not even a bad one */
	unlink(path);
}

struct taker {
	pthread_t thread;
	const char *const *folders;
	struct key key;
};

static void *take(void *argument)
{
	struct taker *taker = argument;
	struct error own;

	CHECK(key_of_user(taker->folders, &taker->key, &own) == ESP_OK);
	return NULL;
}

/*
 * Unrelated processes of one user get the same key, whichever is first; a file that another user could have
 * left is refused.
 */
static void users(const char *folder)
{
	char path[256], first[128], second[128], target[300];
	const char *const folders[] = {first, second, NULL}, *const none[] = {first, NULL};
	struct taker takers[8];
	struct key again;

	snprintf(first, sizeof(first), "%s/there-is-no-such-folder", folder);
	snprintf(second, sizeof(second), "%s", folder);
	snprintf(path, sizeof(path), "%s/espalier-%u.key", folder, geteuid());
	CHECK(key_of_user(none, &again, &err) == ESP_EIO);
	CHECK(strstr(err.text, "ESP_KEY_FILE") && strstr(err.text, "ESP_INSECURE=yes"));
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 8; i++) {
			takers[i] = (struct taker){.folders = folders};
			CHECK(pthread_create(&takers[i].thread, NULL, take, &takers[i]) == 0);
		}
		for (int i = 0; i < 8; i++) {
			CHECK(pthread_join(takers[i].thread, NULL) == 0);
			CHECK_U64(takers[i].key.origin, KEY_USER);
			CHECK(memcmp(takers[i].key.bytes, takers[0].key.bytes, sizeof(again.bytes)) == 0);
		}
		CHECK(key_of_user(folders, &again, &err) == ESP_OK &&
		      memcmp(again.bytes, takers[0].key.bytes, sizeof(again.bytes)) == 0);
		CHECK(unlink(path) == 0); /* no other file is left: main() removes the folder */
	}
	write_file(path, "a key that others know, too", 27, 0644);
	CHECK(key_of_user(folders, &again, &err) == ESP_EIO);
	CHECK_MSG(strstr(err.text, "the key of this user: ") && strstr(err.text, "chmod 600"), "%s", err.text);
	CHECK(unlink(path) == 0);
	snprintf(target, sizeof(target), "%s/other", folder);
	write_file(target, "a key that lies elsewhere", 25, 0600);
	CHECK(symlink(target, path) == 0);
	CHECK(key_of_user(folders, &again, &err) == ESP_EIO);
	CHECK(unlink(path) == 0 && unlink(target) == 0);
	if (geteuid() != 0)
		return;
	/* A file of another user is passed over. */
	snprintf(first, sizeof(first), "%s", folder);
	snprintf(second, sizeof(second), "%s/next", folder);
	snprintf(target, sizeof(target), "%s/espalier-0.key", second);
	write_file(path, "a key of another user", 22, 0600);
	CHECK(chown(path, 65534, 65534) == 0 && mkdir(second, 0700) == 0);
	CHECK(key_of_user(folders, &again, &err) == ESP_OK && access(target, F_OK) == 0);
	CHECK(unlink(path) == 0 && unlink(target) == 0 && rmdir(second) == 0);
}

static void policies(void)
{
	static const struct {
		struct key_situation situation;
		enum key_policy policy;
	} table[] = {
		/* origin, loopback, alone, insecure, store */
		{{KEY_NONE, false, false, false}, KEY_REFUSED},
		{{KEY_NONE, false, false, true}, KEY_OPEN_INSECURE},
		{{KEY_NONE, false, true, false}, KEY_SECRET},
		{{KEY_NONE, false, true, true}, KEY_SECRET},
		{{KEY_NONE, true, false, false}, KEY_SHARED_BY_USER},
		{{KEY_NONE, true, false, true}, KEY_OPEN_LOCAL},
		{{KEY_NONE, true, true, false}, KEY_SECRET},
		{{KEY_NONE, true, true, true}, KEY_SECRET},
		{{KEY_NONE, false, false, false, true}, KEY_POSTED},
		{{KEY_NONE, false, false, true, true}, KEY_POSTED},
		{{KEY_NONE, false, true, false, true}, KEY_SECRET},
		{{KEY_FILE, false, false, false, true}, KEY_SECRET},
		{{KEY_FILE, false, false, false}, KEY_SECRET},
		{{KEY_FILE, true, false, true}, KEY_SECRET},
		{{KEY_ENVIRONMENT, false, false, false}, KEY_SECRET},
		{{KEY_ENVIRONMENT, false, false, true}, KEY_SECRET},
		{{KEY_ENVIRONMENT, true, false, false}, KEY_SECRET},
		{{KEY_GENERATED, false, false, false}, KEY_SECRET},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		CHECK_MSG(key_policy(&table[i].situation) == table[i].policy, "row %zu", i);
}

static void settled(void)
{
	struct key one = {.origin = KEY_NONE}, two = {.origin = KEY_NONE}, own;
	enum key_policy policy = KEY_REFUSED;

	CHECK(key_settle(&one, &(struct key_situation){.loopback = true, .insecure = true}, &policy, &err) == ESP_OK);
	CHECK(policy == KEY_OPEN_LOCAL);
	CHECK(key_settle(&two, &(struct key_situation){.insecure = true}, &policy, &err) == ESP_OK);
	/* the public key that all ranks derive */
	CHECK(policy == KEY_OPEN_INSECURE && memcmp(one.bytes, two.bytes, 32) == 0);
	CHECK(key_settle(&two, &(struct key_situation){.alone = true}, &policy, &err) == ESP_OK);
	CHECK(policy == KEY_SECRET && memcmp(one.bytes, two.bytes, 32) != 0);
	own = two;
	CHECK(key_settle(&two, &(struct key_situation){.origin = KEY_FILE}, &policy, &err) == ESP_OK);
	CHECK(memcmp(own.bytes, two.bytes, 32) == 0);
	CHECK(key_settle(&two, &(struct key_situation){.store = true}, &policy, &err) == ESP_OK);
	CHECK(policy == KEY_POSTED && two.origin == KEY_STORE && memcmp(own.bytes, two.bytes, 32) != 0);
	CHECK(key_settle(&two, &(struct key_situation){.origin = KEY_NONE}, &policy, &err) == ESP_EINVAL);
	CHECK(strstr(err.text, "ESP_KEY_FILE") && strstr(err.text, "ESP_INSECURE=yes"));
}

static void descriptions(void)
{
	CHECK_STR(key_describe(&(struct key_situation){.origin = KEY_ENVIRONMENT, .loopback = true}), "from ESP_KEY");
	CHECK_STR(key_describe(&(struct key_situation){.origin = KEY_FILE}), "from the file that ESP_KEY_FILE names");
	CHECK_STR(key_describe(&(struct key_situation){.origin = KEY_GENERATED}), "made by rank 0");
	CHECK_STR(key_describe(&(struct key_situation){.alone = true}), "none, for a group of one");
	CHECK(strstr(key_describe(&(struct key_situation){.store = true}), "only this user can read"));
	CHECK(strstr(key_describe(&(struct key_situation){.loopback = true}), "this user's on this machine"));
	CHECK(strstr(key_describe(&(struct key_situation){.loopback = true, .insecure = true}),
	             "any process on this machine could join"));
	CHECK(strstr(key_describe(&(struct key_situation){.insecure = true}), "any process on the network can join"));
}

static const char *run_dir;

static const char *environment_of(void *context, const char *name)
{
	(void)context;
	return strcmp(name, "XDG_RUNTIME_DIR") == 0 ? run_dir : NULL;
}

/* The user's own folder is first, with the variable and without it. */
static void user_folders(void)
{
	struct key_user_folders folders;
	char own[64], much[300];

	run_dir = "/run/somewhere";
	CHECK_STR(key_user_folders(environment_of, NULL, &folders)[0], "/run/somewhere");
	CHECK(strcmp(folders.all[1], "/tmp") == 0 && strcmp(folders.all[2], "/dev/shm") == 0 && !folders.all[3]);
	snprintf(own, sizeof(own), "/run/user/%u", geteuid());
	run_dir = NULL;
	CHECK_STR(key_user_folders(environment_of, NULL, &folders)[0], own);
	run_dir = "relative"; /* the specification asks for an absolute path */
	CHECK_STR(key_user_folders(environment_of, NULL, &folders)[0], own);
	memset(much, '/', sizeof(much));
	much[sizeof(much) - 1] = '\0';
	run_dir = much;
	CHECK_STR(key_user_folders(environment_of, NULL, &folders)[0], "");
}

/* As the kernel says: "dd" stands for "do not dump". */
static bool is_dumped(const void *at)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	char line[512];
	bool is_inside = false;

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		unsigned long first, last;

		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
			is_inside = (uintptr_t)at >= first && (uintptr_t)at < last;
		if (is_inside && strncmp(line, "VmFlags:", 8) == 0)
			break;
	}
	fclose(file);
	CHECK(is_inside);
	return !strstr(line, " dd");
}

static void hidden(void)
{
	struct key *key = malloc(sizeof(*key));

	CHECK(key && is_dumped(key));
	key_hide(key->bytes, sizeof(key->bytes));
	CHECK(!is_dumped(key));
	free(key);
}

int main(void)
{
	char folder[] = "/tmp/espalier-key-XXXXXX";
	CHECK(mkdtemp(folder));
	texts();
	files(folder);
	environment(folder);
	users(folder);
	user_folders();
	hidden();
	policies();
	settled();
	rmdir(folder);
	descriptions();
	return 0;
}
