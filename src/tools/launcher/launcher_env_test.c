#include "tools/launcher/launcher_env.h"

#include "base/check.h"

static const char *value(const struct run_env *env, const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->words[i], name, length) == 0 && env->words[i][length] == '=')
			return env->words[i] + length + 1;
	return NULL;
}

static void test_set(void)
{
	struct run_env env = {0};
	struct error err;
	CHECK(launcher_env_set(&env, "ESP_RANK", "0", &err) == ESP_OK);
	CHECK(launcher_env_set(&env, "ESP_RANKS", "x", &err) == ESP_OK);
	CHECK(launcher_env_set(&env, "ESP_RANK", "1", &err) == ESP_OK);
	CHECK_U64(env.count, 2);
	CHECK(!env.words[2]);
	CHECK_STR(value(&env, "ESP_RANK"), "1");
	CHECK_STR(value(&env, "ESP_RANKS"), "x");
	CHECK(launcher_env_has(&env, "ESP_RANK") && !launcher_env_has(&env, "ESP_RAN") &&
	      !launcher_env_has(&env, "ESP_RANK=1"));
	launcher_env_fini(&env);
	CHECK(env.count == 0 && !env.words);
}

static void test_add(void)
{
	static const char *const bad[] = {"", "A", "=x", "1A=x", "A B=x", "A-B=x", "\xc3\xa4=x", "A'=x"};
	struct run_env env = {0};
	struct error err;
	CHECK(launcher_env_add(&env, "A_1=b=c\n'", &err) == ESP_OK);
	CHECK_STR(value(&env, "A_1"), "b=c\n'");
	CHECK(launcher_env_add(&env, "A_1=", &err) == ESP_OK);
	CHECK_STR(value(&env, "A_1"), "");
	CHECK(launcher_env_add(&env, "ESP_LANES=4", &err) == ESP_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(launcher_env_add(&env, bad[i], &err) == ESP_EINVAL, "'%s' was accepted", bad[i]);
	CHECK(launcher_env_add(&env, "ESP_RANK=4", &err) == ESP_EINVAL && strstr(err.text, "espalier run itself"));
	CHECK(launcher_env_add(&env, "ESP_KEY=0123456789abcdef", &err) == ESP_EINVAL && strstr(err.text, "command line"));
	CHECK(!strstr(err.text, "0123456789abcdef"));
	CHECK(launcher_env_add(&env, "ESP_KEY_FILE=x", &err) == ESP_EINVAL);
	CHECK(launcher_env_add(&env, "ESP_KEYS=x", &err) == ESP_OK);
	launcher_env_fini(&env);
}

static void test_settings(void)
{
	struct run_env env = {0};
	struct error err;
	setenv("ESP_LANES", "3", 1);
	setenv("ESP_EPOCH", "2", 1);
	setenv("ESP_RANK", "7", 1);
	setenv("ESP_KEY_FILE", "x", 1);
	setenv("OTHER", "x", 1);
	unsetenv("ESP_CREDITS");
	CHECK(launcher_env_add_settings(&env, &err) == ESP_OK);
	CHECK_STR(value(&env, "ESP_LANES"), "3");
	CHECK_STR(value(&env, "ESP_EPOCH"), "2");
	CHECK(!value(&env, "ESP_RANK") && !value(&env, "ESP_KEY_FILE"));
	CHECK(!value(&env, "OTHER") && !value(&env, "ESP_CREDITS"));
	launcher_env_fini(&env);
}

int main(void)
{
	test_set();
	test_add();
	test_settings();
	return 0;
}
