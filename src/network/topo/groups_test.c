#include "network/topo/groups.h"

#include "base/check.h"

static enum esp_status parse(const char *text, uint32_t nodes, uint32_t *of, struct error *err)
{
	return groups_parse(text, strlen(text), nodes, of, err);
}

static void check_good(const char *text, uint32_t nodes, const uint32_t *wanted)
{
	uint32_t of[16];
	struct error err = {0};

	CHECK_MSG(parse(text, nodes, of, &err) == ESP_OK, "\"%s\": %s", text, err.text);
	for (uint32_t i = 0; i < nodes; i++)
		CHECK_MSG(of[i] == wanted[i], "\"%s\": node %u is in group %u, not %u", text, i, of[i], wanted[i]);
}

static void check_bad(const char *text, const char *reason)
{
	uint32_t of[16];
	struct error err = {0};

	CHECK_MSG(parse(text, 4, of, &err) == ESP_EPARSE, "\"%s\" was accepted", text);
	CHECK_STR(err.text, reason);
}

static void test_good(void)
{
	check_good("0-1\n2-3\n", 4, (uint32_t[]){0, 0, 1, 1});
	check_good("3, 0\n1 2", 4, (uint32_t[]){0, 1, 1, 0});
	check_good("# racks\n\n  \n0 # first\r\n\t1-2,3\r\n", 4, (uint32_t[]){0, 1, 1, 1});
	check_good("0", 1, (uint32_t[]){0});
	check_good("\xef\xbb\xbf" "0-1\n2-3\n", 4, (uint32_t[]){0, 0, 1, 1});
}

static void test_bad(void)
{
	check_bad("0-1\n2-4\n", "line 2: node 4 is not among the nodes 0 to 3");
	check_bad("0-1\n1-3\n", "line 2: node 1 is in group 0 already");
	check_bad("0 0\n1-3\n", "line 1: node 0 stands in it twice");
	check_bad("0-2\n", "line 1: the groups end, and node 3 is in none of them");
	check_bad("", "there is no group in it: write a line for each, such as 0-3 7");
	check_bad("\xef\xbb\xbf# none\n\n", "there is no group in it: write a line for each, such as 0-3 7");
	check_bad("0-3\n\xef\xbb\xbf\n", "line 2: '\xef\xbb\xbf' is no node, such as 7, and no range, such as 4-6");
	check_bad("3-0\n", "line 1: the range 3-0 ends before it begins");
	check_bad("0 x\n", "line 1: 'x' is no node, such as 7, and no range, such as 4-6");
	check_bad("0-\n", "line 1: '0-' is no node, such as 7, and no range, such as 4-6");
	check_bad("-1\n", "line 1: '-1' is no node, such as 7, and no range, such as 4-6");
	check_bad("0-18446744073709551616\n",
	          "line 1: '0-18446744073709551616' is no node, such as 7, and no range, such as 4-6");
	check_bad("0-18446744073709551615\n", "line 1: node 18446744073709551615 is not among the nodes 0 to 3");
}

static void test_racks(void)
{
	for (uint32_t nodes = 1; nodes <= 12; nodes++) {
		for (uint32_t racks = 1; racks <= nodes; racks++) {
			for (int place = PLACE_CONTIGUOUS; place <= PLACE_INTERLEAVED; place++) {
				uint32_t of[12], size[12] = {0};

				groups_racks(nodes, racks, (enum placement)place, of);
				for (uint32_t i = 0; i < nodes; i++) {
					CHECK(of[i] < racks);
					size[of[i]]++;
				}
				for (uint32_t g = 0; g < racks; g++)
					CHECK(size[g] == nodes / racks || size[g] == nodes / racks + 1);
				if (place == PLACE_INTERLEAVED && racks > 1)
					CHECK(of[0] != of[1]);
			}
		}
	}
}

int main(void)
{
	test_good();
	test_bad();
	test_racks();
	return 0;
}
