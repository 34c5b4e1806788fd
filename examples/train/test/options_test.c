#include "../options.h"

#include "base/check.h"

static struct options options;

/* Parses words, split at blanks. */
static bool parse(const char *line)
{
	static char copy[1024];
	static char *argv[64];
	int argc = 0;
	snprintf(copy, sizeof copy, "train %s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(&options, argc, argv);
}

static void test_defaults(void)
{
	CHECK(parse("") && options.error[0] == '\0' && !options.help && !options.json);
	CHECK(options.seed == 1 && options.batch == 32 && options.corrupt == UINT64_MAX);
	CHECK_U64(options.plan_count, 5);
	CHECK_STR(options.plans[0], OPTIONS_DEFAULT_PLAN);
	CHECK_STR(options.plans[4], "tree");
}

static void test_values(void)
{
	CHECK(parse("--epochs 3 --seed 0 --batch 1 --samples 64 --corrupt 2 --plans ring,two-level"));
	CHECK(options.epochs == 3 && options.seed == 0 && options.batch == 1 && options.samples == 64);
	CHECK_U64(options.corrupt, 2);
	CHECK_U64(options.plan_count, 2);
	CHECK_STR(options.plans[0], "ring");
	CHECK_STR(options.plans[1], "two-level");
	CHECK(parse("--epochs 3 --epochs 4") && options.epochs == 4);
	CHECK(parse("--seed 18446744073709551615") && options.seed == UINT64_MAX);
	CHECK(parse("-h") && options.help);
	CHECK(parse("--help --epochs 2") && options.help && options.epochs == 2);
}

static void test_json(void)
{
	CHECK(parse("--json"));
	CHECK_STR(options.json, "-");
	CHECK(parse("--json --epochs 2") && options.epochs == 2);
	CHECK_STR(options.json, "-");
	CHECK(parse("--json - --epochs 2") && options.epochs == 2);
	CHECK_STR(options.json, "-");
	CHECK(parse("--json out.json --epochs 2") && options.epochs == 2);
	CHECK_STR(options.json, "out.json");
}

static void refused(const char *line, const char *why)
{
	CHECK_MSG(!parse(line), "accepted: %s", line);
	CHECK_MSG(strstr(options.error, why), "%s: \"%s\" does not say \"%s\"", line, options.error, why);
}

static void test_refused(void)
{
	refused("--epoch 3", "unknown option '--epoch'");
	refused("epochs", "unknown option 'epochs'");
	refused("--epochs", "--epochs needs a value");
	refused("--plans", "--plans needs a value");
	refused("--epochs 0", "--epochs must be a number from 1 to 1000, not '0'");
	refused("--epochs 1001", "from 1 to 1000");
	refused("--epochs -1", "not '-1'");
	refused("--epochs 3x", "not '3x'");
	refused("--epochs 99999999999999999999999", "from 1 to 1000");
	refused("--plans ring,,tree", "empty name");
	refused("--plans a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16");
}

int main(void)
{
	test_defaults();
	test_values();
	test_json();
	test_refused();
	return 0;
}
