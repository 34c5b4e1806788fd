#include "network/topo/nodelist.h"

#include "base/check.h"

static const struct {
	const char *text;
	const char *names; /* separated by blanks */
} lists[] = {
	{"vm", "vm"},
	{"a,b,c", "a b c"},
	{"n[1-3,7],m2", "n1 n2 n3 n7 m2"},
	{"n[08-11]", "n08 n09 n10 n11"},
	{"n[98-101]", "n98 n99 n100 n101"},
	{"r[1-2]c[0-1]-ib", "r1c0-ib r1c1-ib r2c0-ib r2c1-ib"},
	{"gpu-node.rack_3[5]", "gpu-node.rack_35"},
	{"[1-2]", "1 2"},
	{"x[1,1-2]y,z", "x1y x1y x2y z"},
};

static void expand(void)
{
	char all[200], name[64];
	struct error err;
	uint64_t count;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t used = 0;
		CHECK(nodelist_count(lists[i].text, "L", &count, &err) == ESP_OK);
		for (uint64_t k = 0; k < count; k++) {
			CHECK_MSG(nodelist_name(lists[i].text, "L", k, name, sizeof(name), &err) == ESP_OK, "%s", err.text);
			used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", k ? " " : "", name);
		}
		CHECK_STR(all, lists[i].names);
		CHECK(nodelist_name(lists[i].text, "L", count, name, sizeof(name), &err) == ESP_EINVAL);
	}
}

static bool has(const char *text, const char *name)
{
	return nodelist_has(text, name, strlen(name));
}

static void find(void)
{
	char name[64];
	struct error err;
	uint64_t count;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		CHECK(nodelist_count(lists[i].text, "L", &count, &err) == ESP_OK);
		for (uint64_t k = 0; k < count; k++) {
			CHECK(nodelist_name(lists[i].text, "L", k, name, sizeof(name), &err) == ESP_OK);
			CHECK_MSG(has(lists[i].text, name), "%s in %s", name, lists[i].text);
			CHECK(!has(lists[i].text, strcat(name, "0")) || strcmp(lists[i].text, "n[98-101]") == 0);
		}
	}
	CHECK(has("n[1-999999999999999999]", "n77777777777777") && !has("n[1-999999999999999999]", "n0"));
	CHECK(has("n[08-11]", "n09") && !has("n[08-11]", "n9") && !has("n[08-11]", "n009") && !has("n[08-11]", "n12"));
	CHECK(has("n[98-101]", "n100") && !has("n[98-101]", "n098") && !has("n[98-101]", "n"));
	CHECK(has("a[1-20][1-20]b", "a119b") && has("a[1-20][1-20]b", "a911b") && !has("a[1-20][1-20]b", "a2121b"));
	CHECK(!has("n[1-3],,m", "m") && !has("", "") && !has("n", ""));
}

/* A short list may have very many names. */
static void huge(void)
{
	char name[64];
	struct error err;
	uint64_t count;

	CHECK(nodelist_count("n[1-999999999999999999]", "L", &count, &err) == ESP_OK);
	CHECK_U64(count, 999999999999999999);
	CHECK(nodelist_name("a,n[0-9][0-999999999999999]", "L", 5000000000000001, name, sizeof(name), &err) == ESP_OK);
	CHECK_STR(name, "n50");
	CHECK(nodelist_name("abcdefgh[1-3]", "L", 0, name, 9, &err) == ESP_ELIMIT);
	CHECK_STR(err.text, "a name of L is longer than 8 bytes");
	CHECK(nodelist_name("abcdefgh[1-3]", "L", 0, name, 10, &err) == ESP_OK);
	CHECK_STR(name, "abcdefgh1");
}

static void refuse(void)
{
	static const char *const bad[] = {
		"", ",", "a,", ",a", "a,,b", "n[", "n[]", "n[1", "n[1-]", "n[-3]", "n[3-1]", "n[1,]", "n[,1]", "n[a]", "n]1[",
		    "n[1]]",
		"n[[1]]", "a b", "a\n", "n[1-2-3]", "n[1234567890123456789]", "n[1][1][1][1][1][1][1][1][1]", "(null)",
		"n[0-999999999999999999][0-999999999999999999]",
	};
	struct error err;
	uint64_t count = 5;
	char name[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_MSG(nodelist_count(bad[i], "L", &count, &err) == ESP_EINVAL, "%s", bad[i]);
		CHECK(nodelist_name(bad[i], "L", 0, name, sizeof(name), &err) == ESP_EINVAL);
	}
	CHECK_U64(count, 5);
	CHECK(nodelist_count("n[", "SLURM_JOB_NODELIST", &count, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "SLURM_JOB_NODELIST is a list of host names such as n[1-3,7],m2, not 'n['");
}

int main(void)
{
	expand();
	find();
	huge();
	refuse();
	return 0;
}
