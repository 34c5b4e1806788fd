#!/usr/bin/env python3
"""espalier sim plan and espalier sim run --collective, as a person or a script uses them.

sim_cli_test.py ESPALIER
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
MECHANISMS = ["server", "aggregation", "multicast", "multicast+aggregation", "flat", "ring", "ring-whole", "ring+multicast", "butterfly",
              "halving-doubling", "tree", "double-tree", "two-level", "hub"]
TOPOLOGY = """topology 1
switch core
switch rack0 under core rate 10gbit delay 2us
hosts 4 under rack0 rate 10gbit delay 1us
switch rack1 under core rate 10gbit delay 2us
hosts 4 under rack1 rate 10gbit delay 1us
"""


def espalier(*words, text=""):
    done = subprocess.run([sys.argv[1], *map(str, words)], input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def good(*words, text=""):
    status, out, err = espalier(*words, text=text)
    assert status == OK and err == "", (words, status, err)
    return out


def refused(*words, says, status=USAGE, text=""):
    got, out, err = espalier(*words, text=text)
    assert got == status and out == "" and says in err, (words, got, out, err)


def document(*words, text=""):
    return json.loads(good(*words, "--json", text=text))


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def in_folder(test):
    with tempfile.TemporaryDirectory() as folder:
        test(folder)


def test_help():
    assert "commands:" in good("sim", "--help")
    for command in ["plan", "run", "topology"]:
        assert f"\n  {command} " in good("sim", "--help")
    assert "--topology" in good("sim", "plan", "--help") and "--trace" in good("sim", "plan", "--help")
    words = good("sim", "run", "--collective", "allreduce", "--help")
    assert all(name in words for name in MECHANISMS)
    refused("sim", "paln", says="did you mean 'plan'")
    assert espalier("sim")[0] == USAGE


def test_plan_closed_forms():
    """One plan, made or read, takes what can be worked out by hand."""
    size, rate = 8 << 20, 10e9 / 8
    made = document("sim", "plan", "--planner", "ring", "--nodes", 8, "--bytes", size)
    assert close(made["seconds"], 2 * 7 / 8 * size / rate) and made["messages"] == 2 * 7 * 8, made
    assert made["link_bytes"]["host_out"] == made["link_bytes"]["host_in"] == made["wire_bytes"] == 14 * size, made
    text = good("plan", "make", "ring", "--nodes", 8, "--bytes", size)
    assert document("sim", "plan", "-", text=text) == made
    slow = document("sim", "plan", "-", "--gbps", 1, text=text)
    assert close(slow["seconds"], 10 * made["seconds"]), slow
    late = document("sim", "plan", "-", "--delay", "5us", text=text)
    assert close(late["seconds"], made["seconds"] + 14 * 10e-6), late
    central = document("sim", "plan", "--planner", "central", "--servers", 1, "--nodes", 6, "--bytes", size, "--network", "fifo")
    assert close(central["seconds"], 2 * 6 * size / rate), central
    both = document("sim", "plan", "--planner", "switch", "--servers", 1, "--nodes", 6, "--bytes", size, "--chunks", 1, "--cut-through")
    assert close(both["seconds"], 2 * size / rate) and both["link_bytes"]["host_out"] == 7 * size, both
    racks = document("sim", "plan", "--planner", "two-level", "--nodes", 8, "--racks", 2, "--bytes", size, "--oversubscribe", 4)
    assert racks["link_bytes"]["rack_out"] == racks["link_bytes"]["rack_in"] == 2 * size, racks
    assert "8 nodes, 8 chunks: 0.0117440512 s; 112 messages, 112M" in good("sim", "plan", "-", text=text)


def test_plans_that_were_read():
    """Laps, turns and what is abreast are in the text: a plan that was read takes as long as the planner's own."""
    for planner, nodes in (("ring", 32), ("halving-doubling", 32), ("two-level", 32), ("three-level", 32), ("ring-switch", 32), ("flat", 96)):
        words = ["--nodes", nodes, "--racks", 4, "--bytes", "64M", "--chunks", 128]
        words += ["--zones", 2] if planner == "three-level" else []
        made = document("sim", "plan", "--planner", planner, *words, "--oversubscribe", 4)
        text = good("plan", "make", planner, *words)
        assert document("sim", "plan", "-", "--oversubscribe", 4, text=text) == made, planner
    by_chunk = re.sub(r"(?m)^lap .*\n| @[0-9]+", "", good("plan", "make", "ring", *words))
    slow = document("sim", "plan", "-", "--oversubscribe", 4, text=by_chunk)
    made = document("sim", "plan", "--planner", "ring", *words, "--oversubscribe", 4)
    assert slow["messages"] == made["messages"] and slow["seconds"] > 2 * made["seconds"], slow


def test_halving_doubling():
    """One message at a time fills the links, with a window for half of the nodes: so many pieces go to one neighbour in the first round."""
    for nodes, credits in ((8, 16), (32, 16), (64, 32)):
        size, rate = 16 << 20, 10e9 / 8
        words = ["sim", "plan", "--planner", "halving-doubling", "--nodes", nodes, "--chunks", nodes, "--bytes", size]
        least = 2 * (nodes - 1) / nodes * size / rate
        ready = document(*words, "--order", "ready", "--credits", credits)
        assert ready["network"]["order"] == "ready" and 0.999999 <= ready["seconds"] / least < 1.001, (nodes, ready["seconds"], least)
        assert close(document(*words, "--order", "ready", "--credits", 64)["seconds"], ready["seconds"])
        if credits > 16:  # what the window keeps back of the first round leaves behind later rounds
            assert document(*words, "--order", "ready")["seconds"] > 1.3 * least
        shared, block = document(*words), document(*words, "--order", "block")
        assert 1.1 < shared["seconds"] / least < 1.6 and block["seconds"] > ready["seconds"], (nodes, shared["seconds"], block["seconds"])


def test_hub():
    """Hubs of several racks are as fast as their links, unless what queues at them is never held back."""
    size, rate = 100 << 20, 25e9 / 8
    words = ["sim", "run", "--collective", "allreduce", "--bytes", size, "--workers", 32, "--racks", 4, "--gbps", 25, "--mechanism", "hub"]
    least = (8 + 2 * 3 / 4) * size / rate  # a hub sends to its 8 workers, a quarter to 3 hubs, three quarters to their owners
    fluid = document(*words)["results"][1]["seconds"]
    queued, held = (document(*words, "--network", "fifo", "--credits", n)["results"][1]["seconds"] for n in (64, 4))
    assert 1 <= fluid / least < 1.05 and held / least < 1.1 and queued / least > 1.15, (least, fluid, queued, held)


def test_commands_that_moved():
    for old, new in {"discover": "discover", "paper": "netop", "money": "money"}.items():
        for words in ([], ["--help"], ["speed"]):
            refused("sim", old, *words, says=f"espalier: sim: '{old}' is now the command espalier-study {new}\n")
    refused("help", "sim", "money", says="espalier-study money")


def test_plan_refusals():
    refused("sim", "plan", says="which plan?")
    refused("sim", "plan", "no/such/file", says="cannot read no/such/file")
    refused("sim", "plan", "-", status=NO, says="line 1", text="nonsense\n")
    text = good("plan", "make", "ring", "--nodes", 4)
    refused("sim", "plan", "-", status=NO, says="updated twice", text=text.replace("; update out", "; update out; update out"))
    refused("sim", "plan", "-", status=NO, says="what the row waited for before has turn 4", text=text.replace("@5", "@4"))
    refused("sim", "plan", "-", status=NO, says="line 5: lap 9: the plan has 4 chunks", text=text.replace("lap 4", "lap 9"))
    refused("sim", "plan", "-", "--nodes", 4, says="holds its plan already", text=text)
    refused("sim", "plan", "-", "--gbps", 0, says="--gbps", text=text)
    refused("sim", "plan", "-", "--delay", "5", "--uplink-delay", "5parsec", says="such as 5us", text=text)
    refused("sim", "plan", "-", "--delay", "1e10", says="a number alone counts microseconds", text=text)
    assert document("sim", "plan", "-", "--delay", 5, text=text) == document("sim", "plan", "-", "--delay", "5us", text=text)
    refused("sim", "plan", "-", "--mtu", 100, says="--mtu", text=text)
    refused("sim", "plan", "-", "--trace", "no/such/folder/t.json", status=NO, says="no/such/folder", text=text)


def test_trace(folder):
    path = os.path.join(folder, "t.json")
    made = document("sim", "plan", "--planner", "flat", "--nodes", 4, "--bytes", "4M", "--trace", path)
    events = json.load(open(path))
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 2 * made["messages"] and {e["pid"] for e in slices} == {0, 1, 2, 3}
    assert close(max(e["ts"] + e["dur"] for e in slices), made["seconds"] * 1e6)
    assert sum(e["args"]["bytes"] for e in slices) == 2 * made["wire_bytes"]
    tracks = {}
    for event in sorted(slices, key=lambda e: e["ts"]):  # slices of one track do not overlap
        key = (event["pid"], event["tid"])
        assert event["ts"] >= tracks.get(key, 0) - 1e-5, event
        tracks[key] = event["ts"] + event["dur"]
    starts, ends = ([e["id"] for e in events if e["ph"] == ph] for ph in "sf")
    assert sorted(starts) == sorted(ends) and len(set(starts)) == made["messages"]


def test_topology(folder):
    path = os.path.join(folder, "hall")
    words = ["sim", "run", "--collective", "allreduce", "--bytes", "8M", "--topology", path, "--mechanism", "two-level"]
    open(path, "w").write(TOPOLOGY)
    result = document(*words)
    assert result["workers"] == 8 and result["network"]["topology"] == path
    assert result["results"][1]["link_bytes"]["rack_out"] == 2 * (8 << 20), result
    open(path, "w").write(TOPOLOGY + "at 0 rack1 rate 100mbit\n")
    slow = document(*words)
    assert slow["results"][1]["seconds"] > 5 * result["results"][1]["seconds"]
    open(path, "w").write(TOPOLOGY + "from 0 node00 > node04 flows 3\n")
    shared = document(*words)
    assert result["results"][1]["seconds"] < shared["results"][1]["seconds"] < slow["results"][1]["seconds"]
    refused(*words, "--network", "fifo", says="give the background a rate")
    for option in ("--gbps", "--server-gbps", "--oversubscribe", "--delay", "--uplink-delay", "--nics", "--racks"):
        refused(*words, option, 1, says=f"--topology FILE says what the network is; {option} is for one that is made")
    open(path, "w").write(TOPOLOGY + "hosts many\n")
    refused(*words, status=NO, says=f"{path}: line 7: hosts wants")


def test_topology_text(folder):
    text = good("sim", "topology", "--hosts", 6, "--racks", 2, "--gbps", 25, "--oversubscribe", 3, "--delay", "1us", "--nics", 2)
    assert text == ("topology 1\nswitch core\n"
                    "switch rack0 under core rate 50gbit\nhosts 3 under rack0 rate 25gbit delay 1us nics 2\n"
                    "switch rack1 under core rate 50gbit\nhosts 3 under rack1 rate 25gbit delay 1us nics 2\n"), text
    assert good("sim", "topology", "-", text="# mine\n" + text.replace(" nics", "   nics")) == text
    path = os.path.join(folder, "hall")
    open(path, "w").write(text)
    words = ["sim", "run", "--collective", "allreduce", "--workers", 6, "--bytes", "6M", "--mechanism", "two-level"]
    read = document(*words, "--topology", path)["results"][1]
    made = document(*words, "--racks", 2, "--gbps", 25, "--oversubscribe", 3, "--delay", "1us", "--nics", 2)["results"][1]
    assert read == {**made, "speedup": read["speedup"]}, (read, made)
    refused("sim", "topology", says="Give --hosts N")
    refused("sim", "topology", "--hosts", 2, "--racks", 3, says="each rack needs one")
    refused("sim", "topology", "-", status=NO, says="-: line 1: a topology begins", text="hosts 3\n")


def test_servers_links():
    words = ["sim", "run", "--collective", "allreduce", "--workers", 8, "--bytes", "8M", "--mechanism", "server"]
    slow, fast = (document(*words, "--server-gbps", g)["results"][0]["seconds"] for g in [10, 40])
    assert slow > 3.5 * fast, (slow, fast)


def test_many_workers():
    """A thousand of them are no matter of minutes; their bytes are those of the formulas."""
    size = 100 << 20
    for planner in ["ring", "two-level"]:
        result = document("sim", "plan", "--planner", planner, "--nodes", 1024, "--racks", 32, "--bytes", size, "--chunks", 100)
        assert result["messages"] == 2 * 1023 * 100 and result["wire_bytes"] == 2 * 1023 * size, result
        assert result["seconds"] > 2 * size * 8 / 10e9 * 0.99, result
    assert result["link_bytes"]["rack_out"] == 2 * 31 * size, result


def test_grain():
    """Rates that are computed now and then: less to compute, nearly the same time, the same bytes."""
    words = ["sim", "plan", "--planner", "two-level", "--nodes", 64, "--racks", 8, "--bytes", "16M", "--chunks", 128, "--oversubscribe", 4]
    exact, coarse = document(*words), document(*words, "--grain", "100us")
    assert exact["network"]["grain_s"] == 0 and coarse["network"]["grain_s"] == 0.0001, coarse
    assert exact["link_bytes"] == coarse["link_bytes"] and exact["seconds"] != coarse["seconds"], (exact, coarse)
    assert math.isclose(exact["seconds"], coarse["seconds"], rel_tol=0.05), (exact, coarse)
    assert document(*words, "--grain", 0) == exact and document(*words, "--grain", 100) == coarse
    words = ["sim", "run", "--collective", "allreduce", "--workers", 16, "--racks", 4, "--bytes", "4M", "--mechanism", "two-level"]
    assert document(*words, "--grain", "50us")["network"]["grain_s"] == 0.00005
    refused(*words, "--grain", "soon", says="--grain is a time such as 100us")
    refused(*words, "--grain", "50us", "--network", "fifo", says="--grain is for --network fluid")


def test_collective():
    all_of_them = document("sim", "run", "--collective", "allreduce", "--bytes", "16M", "--workers", 8, "--racks", 2)
    by_name = {r["mechanism"]: r for r in all_of_them["results"]}
    assert list(by_name) == MECHANISMS and by_name["server"]["speedup"] == 1
    for name, result in by_name.items():
        assert close(result["speedup"], by_name["server"]["seconds"] / result["seconds"]), result
    assert by_name["multicast+aggregation"]["speedup"] > 3 and by_name["ring"]["speedup"] > 3
    for collective in ["broadcast", "reduce", "allgather", "reduce-scatter", "gather", "scatter", "alltoall", "barrier"]:
        results = document("sim", "run", "--collective", collective, "--bytes", "1M", "--workers", 5, "--racks", 2)["results"]
        assert len(results) == len(MECHANISMS) and not any(r["left_out"] for r in results), results
    words = ["sim", "run", "--collective", "allreduce", "--workers", 6, "--bytes", "3M", "--racks", 3, "--delay", "3us"]
    assert good(*words) == good(*words)
    assert good(*words, "--network", "fifo", "--json") == good(*words, "--network", "fifo", "--json")
    refused(*words, "--mechanism", "rign", says="did you mean 'ring'")
    refused("sim", "run", "--collective", "allreduce", "--model", "vgg-16", says="--collective runs one collective alone")
    # No message has more than 1 GiB; the one mechanism whose chunk is the whole buffer is left out.
    large = document("sim", "run", "--collective", "allreduce", "--workers", 2, "--bytes", "2G", "--chunk", "1G")["results"]
    assert [r["mechanism"] for r in large if r["left_out"]] == ["ring-whole"], large
    refused("sim", "run", "--collective", "allreduce", "--workers", 2, "--bytes", "2G", "--mechanism", "ring-whole", says="smaller chunks")
    refused("sim", "plan", "--planner", "ring", "--nodes", 2, "--bytes", "4G", "--chunks", 2, status=NO, says="smaller chunks")
    # Where nothing can be run there is nothing to print.
    refused("sim", "run", "--collective", "broadcast", "--workers", 4, "--root", 7, says="no mechanism can be run: root 7 is not among")
    refused(*words, "--trace", "t.json", says="--trace shows one mechanism")
    refused("sim", "run", "--collective", "allreduce", "--workers", 2, "--racks", 3, says="3 racks are too many")


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            in_folder(test) if test.__code__.co_argcount else test()


main()
