#include "network/topo/racks.h"

#include <string.h>

#include "base/check.h"

#define HOSTS_MAX 8u

static const char *const hosts[] = {"n0", "n1", "n2", "n3"};

typedef enum esp_status reader_fn(const char *text, size_t length, const char *const *hosts, uint32_t count,
                                  struct racks *out, struct error *err);

static enum esp_status read_any(const char *text, size_t length, const char *const *names, uint32_t count,
                                struct racks *out, struct error *err)
{
	return racks_read(text, length, NULL, names, count, out, err);
}

/* The places of n0 to n3 as text, level by level, separated by blanks: "00 00 01 12". */
static void check_good(reader_fn *reader, const char *text, uint32_t levels, const char *wanted)
{
	struct racks racks;
	struct error err = {0};
	char shown[64] = "";
	size_t used = 0;

	CHECK_MSG(reader(text, strlen(text), hosts, 4, &racks, &err) == ESP_OK, "%s: %s", text, err.text);
	CHECK_U64(racks.levels, levels);
	for (uint32_t i = 0; i < 4 * levels; i++)
		used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s%u", i > 0 && i % levels == 0 ? " " : "",
		                         racks.place[i]);
	CHECK_STR(shown, wanted);
	racks_fini(&racks);
	racks_fini(&racks);
}

static void check_bad(reader_fn *reader, const char *text, const char *reason)
{
	struct racks racks;
	struct error err = {0};

	CHECK_MSG(reader(text, strlen(text), hosts, 4, &racks, &err) == ESP_EPARSE, "%s was accepted", text);
	CHECK_STR(err.text, reason);
}

static void test_map(void)
{
	check_good(racks_read_map, "n0 a\nn1 a\nn2 b\nn3 c\n", 1, "0 0 1 2");
	check_good(read_any, "# racks\n\nn3\tc # last\r\nother z\nN0.example.org a\n n2 b\nn1 a", 1, "0 0 1 2");
	check_good(racks_read_map, "n0 r1/a\nn1 /r1/b\nn2 r2/a\nn3 r2/a\nn3 r2/a\n", 2, "00 01 12 12");
	check_bad(racks_read_map, "", "the rack map is empty: write a line for each host, such as: node7 rack3");
	check_bad(racks_read_map, "n0 a\nn1\n", "line 2: a line is a host and its rack, such as: node7 row1/rack3");
	check_bad(racks_read_map, "n0 a b\n", "line 1: a line is a host and its rack, such as: node7 row1/rack3");
	check_bad(racks_read_map, "n0 a/b\nn1 a\n", "line 2: the rack 'a' has 1 levels, and those before it have 2");
	check_bad(racks_read_map, "n0 a//b\n", "line 1: 'a//b' is no rack, such as rack3, and no path to one, such as "
	                                       "row1/rack3");
	check_bad(racks_read_map, "n0 1/2/3/4/5/6/7/8/9\n",
	          "line 1: '1/2/3/4/5/6/7/8/9' is no rack, such as rack3, and no path to one, such as row1/rack3");
	check_bad(racks_read_map, "n0 a\nn1 a\nn0 b\n", "line 3: host 'n0' has a rack already, and this is another");
	check_bad(racks_read_map, "n0 a\nn1 a\nn3 b\n", "the rack map says nothing of host 'n2'");
}

/* Several ranks of a host; names with and without a domain. */
static void test_names(void)
{
	static const char *const names[] = {"b.x.org", "A", "b", "b.x.org", "b.y.org", "10.0.0.1"};
	static const char text[] = "a 1\nB.X.ORG 2\nb.y.org 3\n10.0.0.1 4\n10.0.0.2 5\n",
	    ambiguous[] = "b.x.org 1\nb.y.org 2\n";
	struct racks racks;
	struct error err;

	/* the short name b matches two hosts */
	CHECK(racks_read_map(ambiguous, strlen(ambiguous), names + 2, 1, &racks, &err) == ESP_EPARSE);
	CHECK(racks_read_map(text, strlen(text), (const char *const[]){names[0], names[1], names[3], names[4], names[5]}, 5,
	                     &racks, &err) == ESP_OK);
	CHECK(memcmp(racks.place, (uint32_t[]){1, 0, 1, 2, 3}, sizeof(uint32_t[5])) == 0);
	CHECK(racks_common(&racks, 0, 2) == 1 && racks_common(&racks, 0, 1) == 0);
	struct grouping grouping;
	CHECK(racks_grouping(&racks, &grouping, &err) == ESP_OK && grouping.count == 4 && grouping.group_of[2] == 0);
	grouping_fini(&grouping);
	racks_fini(&racks);
	CHECK(racks_read_map(text, strlen(text), names, 0, &racks, &err) == ESP_ELIMIT);
	/* an address has no domain */
	CHECK(racks_read_map("10.0.0.1 1\n", 11, (const char *const[]){"10"}, 1, &racks, &err) == ESP_EPARSE);
}

static void test_slurm(void)
{
	check_good(racks_read_slurm, "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\n", 1, "0 0 1 1");
	check_good(read_any, "# tree\nSwitchName=s0 Nodes=n0,n1 LinkSpeed=100\nswitchname=s1 nodes=n2\nSwitchName=s2 "
	                     "Nodes=n[3-900]\nSwitchName=r0 Switches=s[0-1]\nSwitchName=r1 Switches=s2\nSwitchName=top "
	                     "Switches=r[0-1] # all\n", 3, "000 000 001 012");
	check_good(racks_read_slurm, "SwitchName=s0 \\\n Nodes=n[0-1,2] # two lines\nSwitchName=x "
	                             "Switches=s0\nSwitchName=s1 Nodes=n3\n", 2, "11 11 11 00");
	check_good(read_any, "BlockName=b0 Nodes=n[0-2]\nBlockName=b1 Nodes=n3\nBlockSizes=3\n", 1, "0 0 0 1");
	check_bad(racks_read_slurm, "", "line 1: there is no switch: SwitchName=s0 Nodes=n[0-3]");
	check_bad(racks_read_slurm, "Nodes=n[0-3]\n", "line 1: SwitchName= is missing");
	check_bad(racks_read_slurm, "SwitchName=s0\n", "line 1: a switch has either Nodes= or Switches=");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n0 Switches=s1\n",
	          "line 1: a switch has either Nodes= or Switches=");
	check_bad(racks_read_slurm, "\nSwitchName=s0 Nodes=n[0-\n",
	          "line 2: Nodes is a list of host names such as n[1-3,7],m2, not 'n[0-'");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes n0\n", "line 1: 'Nodes' is not Key=value");
	check_bad(racks_read_slurm, "SwitchName=s0 Hosts=n0\n",
	          "line 1: 'Hosts' is not known; SwitchName, BlockName, Nodes and Switches are");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n0 nodes=n1\n", "line 1: 'nodes' is there a second time");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n0\n\\\n\nSwitchName=s0 Nodes=n1\n",
	          "line 4: switch 's0' is on line 1 already");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n[0-3]\nSwitchName=t Switches=s[0-1]\n",
	          "line 2: Switches names 2 switches, and 1 of them are in the file");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n[0-3]\nSwitchName=t Switches=s0\nSwitchName=u Switches=s0\n",
	          "line 3: switch 's0' is below another one already");
	check_bad(racks_read_slurm, "SwitchName=t Switches=t\n", "line 1: switch 't' is below itself");
	check_bad(racks_read_slurm, "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
	          "line 1: more than 8 switches are above each other, or they go round in a ring");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n2\n",
	          "line 2: host 'n2' is below the switch of line 1 as well");
	check_bad(racks_read_slurm, "SwitchName=s0 Nodes=n[0-2]\n", "topology.conf says nothing of host 'n3'");
}

#define NODE(name, labels) "{\"metadata\":{\"name\":\"" name "\",\"labels\":{" labels "}}}"
#define RACK(name) "\"topology.kubernetes.io/rack\":\"" name "\""
#define ZONE(name) "\"topology.kubernetes.io/zone\":\"" name "\""
#define LEAF(name) "\"network.topology.nvidia.com/leaf\":\"" name "\""

static enum esp_status read_kubernetes(const char *text, size_t length, const char *const *names, uint32_t count,
                                       struct racks *out, struct error *err)
{
	return racks_read_kubernetes(text, length, "here", names, count, out, err);
}

static void test_kubernetes(void)
{
	static const char by_address[] =
	    "{\"items\":[{\"metadata\":{\"name\":\"k8s-a\",\"labels\":{\"kubernetes.io/hostname\":\"n0\"," RACK("r") "}}},"
					 "{\"metadata\":{\"name\":\"k8s-b\",\"labels\":{" RACK("s") "}},\"status\":{\"addresses\":["
					 "{\"type\":\"InternalIP\",\"address\":\"10.1.1.1\"},{\"type\":\"Hostname\",\"address\":\"n1\"}]}},"
					 NODE("n2", RACK("r")) ","
					 NODE("n3", RACK("r")) "]}";

	check_good(read_any, " {\"items\":[" NODE("n0", RACK("a")) "," NODE("n1", RACK("b")) "," NODE("n2", RACK("a")) ","
	           NODE("n3", RACK("b")) "," NODE("n4", "") "]}", 1, "0 1 0 1");
	check_good(read_any, "{\"items\":[" NODE("n0", ZONE("x") "," LEAF("a")) "," NODE("n1", ZONE("y") "," LEAF("a")) ","
	           NODE("n2", ZONE("y") "," LEAF("b")) "," NODE("n3", LEAF("a") "," ZONE("x")) "]}", 2, "00 11 12 00");
	check_good(read_any, "{\"items\":[" NODE("n0", ZONE("x")) "," NODE("n1", ZONE("x")) "," NODE("n2", ZONE("x")) ","
	           NODE("n3", ZONE("y")) "]}", 1, "0 0 0 1");
	check_good(read_kubernetes, "{\"items\":[" NODE("n0", "\"here\":\"x\"") "," NODE("n1", "\"here\":\"x\"") ","
	           NODE("n2", "\"here\":\"y\"") "," NODE("n3", "\"here\":\"x\"") "]}", 1, "0 0 1 0");
	check_good(read_any, by_address, 1, "0 1 0 0");
	check_bad(read_any, "{\"items\":\n[}", "line 2: no JSON: 'unexpected token near '}''");
	check_bad(read_any, "{}", "\"items\" is missing; kubectl get nodes -o json prints what is wanted");
	check_bad(read_any, "{\"items\":3}", "\"items\" is no list; kubectl get nodes -o json prints what is wanted");
	check_bad(read_any, "{\"items\":[{}]}", "items[0] has no metadata.name; kubectl get nodes -o json prints what is "
	                                        "wanted");
	check_bad(read_any, "{\"items\":[" NODE("n0", RACK("a")) "]}",
	          "none of Kubernetes' nodes that have labels is host 'n1'");
	check_bad(read_any, "{\"items\":[" NODE("n0", "") "," NODE("n1", "") "," NODE("n2", "") "," NODE("n3", "") "]}",
	          "the nodes have none of the labels that usually name racks, such as topology.kubernetes.io/rack: say "
	          "which one does (--rack-label)");
	check_bad(read_kubernetes, "{\"items\":[" NODE("n0", "\"here\":\"x\"") "," NODE("n1", "\"here\":7") ","
	          NODE("n2", "") "," NODE("n3", "") "]}", "host 'n1' has no label 'here'");
	check_bad(read_any, "{\"items\":[" NODE("n0", RACK("a")) "," NODE("n0", RACK("b")) "]}",
	          "two of Kubernetes' nodes are host 'n0'");
}

/* The names of the hosts as text, separated by blanks. */
static void check_names(const char *text, const char *wanted)
{
	struct racks_names names;
	struct error err = {0};
	char shown[128] = "";

	CHECK_MSG(racks_names_read(text, strlen(text), &names, &err) == ESP_OK, "%s: %s", text, err.text);
	for (uint32_t i = 0; i < names.count; i++)
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "%s%s", i > 0 ? " " : "", names.list[i]);
	CHECK_STR(shown, wanted);
	racks_names_fini(&names);
	racks_names_fini(&names);
}

static void check_no_names(const char *text, size_t length, enum esp_status status, const char *reason)
{
	struct racks_names names;
	struct error err = {0};

	CHECK(racks_names_read(text, length, &names, &err) == status);
	CHECK_STR(err.text, reason);
}

static void test_listing(void)
{
	static const char none[] = "there is no host in it: it is a rack map (lines such as: node7 rack3), Slurm's "
	                           "topology.conf, or what kubectl get nodes -o json "
				   "prints";

	check_names("# racks\nn9 a\nn10 b # b\n\n N9 a\nn1 a\n", "n9 n10 n1");
	check_names("SwitchName=t Switches=s[1-2]\nSwitchName=s2 Nodes=n[08-10],m\nSwitchName=s1 Nodes=n0\n",
	            "n08 n09 n10 m n0");
	check_names("{\"items\":[" NODE("n1", RACK("a")) "," NODE("n0", "") "]}", "n1 n0");
	check_no_names("", 0, ESP_EPARSE, none);
	check_no_names("{}", 2, ESP_EPARSE, none);
	check_no_names("{", 1, ESP_EPARSE, "line 1: no JSON: 'string or '}' expected near end of file'");
	check_no_names("n0 a\nn\0 b\n", 10, ESP_EPARSE, "line 2: a byte that is no text");
	check_no_names("SwitchName=s Nodes=n[0-65536]", 29, ESP_ELIMIT, "line 1: more than 65536 hosts");
	check_no_names("SwitchName=s Nodes=n[0-\n", 24, ESP_EPARSE,
	               "line 1: Nodes is a list of host names such as n[1-3,7],m2, not 'n[0-'");
}

/* Files from Windows editors. */
static void test_marks(void)
{
	check_good(read_any, "\xef\xbb\xbfn0 a\r\nn1 a\r\nn2 b\r\nn3 b\r\n", 1, "0 0 1 1");
	check_good(read_any, "\xef\xbb\xbfSwitchName=s0 \\\r\n Nodes=n[0-2]\r\nSwitchName=s1 Nodes=n3\r\n", 1, "0 0 0 1");
	check_good(read_any, "\xef\xbb\xbf{\"items\":[\r\n" NODE("n0", RACK("a")) "," NODE("n1", RACK("b")) ","
	           NODE("n2", RACK("a")) "," NODE("n3", RACK("b")) "]}\r\n", 1, "0 1 0 1");
	check_bad(read_any, "\xff\xfen", "line 1: this text is UTF-16; save it as UTF-8");
	check_names("\xef\xbb\xbfn0 a\r\nn1 a\r\n", "n0 n1");
	check_names("\xef\xbb\xbfSwitchName=s0 Nodes=n[0-1]\r\n", "n0 n1");
	check_no_names("\xfe\xff\0n", 4, ESP_EPARSE, "line 1: this text is UTF-16; save it as UTF-8");
}

int main(void)
{
	test_listing();
	test_marks();
	test_map();
	test_names();
	test_slurm();
	test_kubernetes();
	return 0;
}
