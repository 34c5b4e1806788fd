#!/usr/bin/env python3
"""espalier plan from outside: every subcommand, its exit statuses, its JSON and what it says about bad input.

plan_cli_test.py ESPALIER DRAW_PICTURES PICTURES
"""
import json
import math
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

OK, NO, USAGE = 0, 1, 2
ESPALIER = sys.argv[1]
PLANNERS = ["ring", "halving-doubling", "butterfly", "exchange", "tree", "double-tree", "flat", "central", "twin", "two-level",
            "three-level"]
BESIDE = ["hub", "switch", "switch-sum", "switch-copy", "ring-switch"]  # need nodes beside the workers: not compared by cost
SERVED = ["central", "switch", "switch-sum", "switch-copy"]
COLLECTIVES = ["allreduce", "reduce-scatter", "allgather", "broadcast", "reduce", "gather", "scatter", "alltoall",
               "barrier"]
ROOTED = ["broadcast", "reduce", "gather", "scatter"]
COMMANDS = ["make", "check", "show", "cost", "draw"]


def run(*words, text=None):
    done = subprocess.run([ESPALIER, "plan", *map(str, words)], capture_output=True, text=True, input=text)
    assert done.returncode in (OK, NO, USAGE), (words, done)
    return done.returncode, done.stdout, done.stderr


def good(*words, text=None):
    status, out, err = run(*words, text=text)
    assert status == OK and err == "", (words, status, err)
    return out


def document(*words, text=None):
    return json.loads(good(*words, "--json", text=text))


def refused(*words, status=USAGE, says, text=None):
    got, out, err = run(*words, text=text)
    assert got == status and out == "", (words, got, out, err)
    assert says in err, (words, err)
    assert err.startswith("espalier: plan") and err.count("\n") == 1, err


class Folder:
    """A file with this text, for the time of a with."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name, "file")
        path.write_text(self.text)
        return path

    def __exit__(self, *_):
        self.folder.cleanup()


# ---- help and usage ----

def test_help():
    assert "commands:" in good("--help") and good("-h") == good("--help")
    for command in COMMANDS:
        assert command in good("--help")
        text = good(command, "--help")
        assert text.startswith(f"usage: espalier plan {command}") and "--json" in text, text
    for planner in PLANNERS + BESIDE:
        assert f"\n  {planner} " in good("make", "--help")


def test_usage():
    status, out, err = run()
    assert status == USAGE and out == "" and "commands:" in err
    refused("chek", says="did you mean 'check'")
    refused("zzzzzzzz", says="espalier plan --help")
    refused("make", says="an argument is missing: PLANNER")
    refused("make", "rign", "--nodes", 4, says="did you mean 'ring'")
    refused("make", "zzzzzzz", "--nodes", 4, says="there are ring, halving-doubling")
    refused("make", "ring", says="Give --nodes N")
    refused("make", "ring", "--nodes", 0, says="whole number from 1")
    refused("make", "ring", "--nodes", 4, "--collective", "allredcue", says="one of allreduce")
    refused("make", "ring", "--nodes", 4, "--chunks", 0, says="--chunks")
    refused("make", "two-level", "--nodes", 4, says="--racks C or --groups FILE")
    refused("make", "two-level", "--nodes", 4, "--racks", 5, says="5 racks are too many for 4 nodes")
    refused("make", "two-level", "--nodes", 4, "--racks", 2, "--groups", "x", says="give one of them")
    refused("make", "two-level", "--nodes", 1, "--racks", 2, says="2 racks are too many for 1 node\n")
    refused("make", "tree", "--nodes", 4, "--leaves", "--fanout", 1, says="fan-out of 2 or more")
    refused("make", "ring", "--nodes", 4, "--collective", "broadcast", "--root", 4, says="root 4 is not among the 4 nodes")
    refused("make", "ring", "--nodes", 4, "--collective", "barrier", "--bytes", 8, says="a barrier moves no bytes")
    refused("make", "flat", "--nodes", 4, "--collective", "alltoall", "--in-place", says="in place")
    for command in ["check", "show", "draw"]:
        refused(command, says="which plan?")
        refused(command, "--nodes", 4, says="which plan?")
        refused(command, "-", "--planner", "ring", "--nodes", 4, says="holds its plan already", text="")
        refused(command, "no/such/file", says="cannot read no/such/file: No such file")
        refused(command, "/", says="cannot read /: Is a directory")
        refused(command, "", says="the name of a file is empty")
        refused(command, "-", status=NO, says="-: line 1:", text="nonsense\n")
        refused(command, "-", status=NO, says="-: ", text="")


def test_command_that_moved():
    refused("table1", "--racks", 2, says="'table1' is now the command espalier-study table1")


def test_idle_options():
    """An option that would mean nothing is refused, with a sentence."""
    for option, words in [("fanout", ["--fanout", 3]), ("leaves", ["--leaves"])]:
        for planner in PLANNERS + BESIDE:
            if planner != "tree":
                refused("make", planner, "--nodes", 4, "--racks", 2, *words,
                        says=f"--{option} is for the planner tree, and means nothing to {planner}")
        good("cost", "--nodes", 4, *words)
        refused("cost", "--nodes", 4, "--planner", "ring", *words, says=f"--{option} is for the planner tree")
    refused("check", "--planner", "tree", "--nodes", 4, "--dedicated", says="--dedicated is for the planner central")
    for planner in PLANNERS + BESIDE:
        if planner in SERVED:
            good("make", planner, "--nodes", 4, "--servers", 2)
        else:
            refused("make", planner, "--nodes", 4, "--racks", 2, "--servers", 2, says=f"means nothing to {planner}")
    for command in [["make", "ring"], ["check", "--planner", "ring"], ["cost"]]:
        refused(*command, "--nodes", 4, "--place", "contiguous", says="give --racks C with it")
    with Folder("0-1\n2-3\n") as path:
        refused("make", "ring", "--nodes", 4, "--groups", path, "--place", "interleaved", says="give --racks C with it")
    refused("make", "ring", "--nodes", 4, "--root", 1, says="allreduce of ring has none")
    good("make", "central", "--nodes", 4, "--root", 1)
    good("cost", "--nodes", 4, "--root", 1)
    given = {"nodes": 4, "collective": "allreduce", "chunks": 2, "bytes": 8, "racks": 2, "place": "contiguous",
             "groups": "x", "root": 0, "fanout": 2, "leaves": None, "dedicated": None, "servers": 2, "in-place": None,
             "counts": 8, "planner": "ring"}
    for command in ["check", "show", "draw"]:
        for option, value in given.items():
            words = [f"--{option}"] + ([] if value is None else [value])
            refused(command, "-", *words, text="", says=f"holds its plan already; --{option} is for a plan that is made")


def test_options_are_written_out():
    refused("make", "ring", "--nodes", 4, "--chunk", 2, says="unknown option '--chunk' (did you mean --chunks?)")
    refused("make", "ring", "--node", 4, says="did you mean --nodes?")
    refused("make", "ring", "--coll", "reduce", says="did you mean --collective?")
    refused("show", "--planner", "ring", "--nodes", 4, "--chunk", 2**64 - 1, says="from 0 to 18446744073709551614")
    refused("draw", "--planner", "ring", "--nodes", 4, "--chunk", 2**64 - 1, says="from 0 to 18446744073709551614")


def test_collective_names():
    for alias, name in [("all-to-all", "alltoall"), ("all_to_all", "alltoall"), ("all-reduce", "allreduce"),
                        ("AllGather", "allgather"), ("reducescatter", "reduce-scatter"), ("Barrier", "barrier")]:
        assert f"\ncollective {name}\n" in good("make", "ring", "--nodes", 2, "--collective", alias)
        assert document("check", "--planner", "ring", "--nodes", 2, "--collective", alias)["collective"] == name
        text = good("make", "ring", "--nodes", 2, "--collective", name)
        if alias != name:
            refused("check", "-", status=NO, says="line 3", text=text.replace(f"collective {name}", f"collective {alias}"))
    for wrong, meant in [("altoall", "alltoall"), ("all2all", "alltoall"), ("allredcue", "allreduce"),
                         ("brodcast", "broadcast")]:
        refused("make", "ring", "--nodes", 2, "--collective", wrong, says=f"did you mean '{meant}'?")
    status, _, err = run("make", "ring", "--nodes", 2, "--collective", "zzz")
    assert status == USAGE and "one of allreduce" in err and "did you mean" not in err


# ---- make and check ----

def variants():
    for planner in PLANNERS + BESIDE:
        for collective in COLLECTIVES:
            for nodes in [1, 2, 5, 6]:
                words = ["--nodes", nodes, "--collective", collective, "--racks", (nodes + 1) // 2]
                yield planner, words
                if nodes > 1 and collective != "alltoall":
                    rooted = planner == "central" or collective in ROOTED
                    yield planner, [*words, "--in-place", "--place", "interleaved", *(["--root", nodes - 1] * rooted)]
    for nodes in [1, 5, 8]:
        yield "tree", ["--nodes", nodes, "--leaves", "--fanout", 3]
        yield "central", ["--nodes", nodes, "--dedicated"]
        yield "central", ["--nodes", nodes, "--dedicated", "--racks", 1]
        for planner in SERVED:
            yield planner, ["--nodes", nodes, "--servers", 3, "--racks", (nodes + 1) // 2]


def test_make_and_check_agree():
    """A made plan and its text are the same plan, and every one of them is right."""
    for planner, words in variants():
        text = good("make", planner, *words)
        assert text.startswith(f"espalier-plan 1\nplanner {planner}\n") and text.endswith("end\n")
        made = document("check", "--planner", planner, *words)
        read = document("check", "-", text=text)
        assert made["ok"] is True and made == read, (planner, words, made, read)
        if "--collective" in words:
            assert f"\ncollective {words[words.index('--collective') + 1]}\n" in text


def test_check_says():
    line = good("check", "--planner", "ring", "--nodes", 4)
    assert line == ("ok: ring allreduce, 4 nodes, 4 chunks: 6 rounds, 24 messages, 96K on the wire, "
                    "busiest node 0 moves 48K\n"), line
    line = good("check", "--planner", "two-level", "--nodes", 8, "--racks", 2, "--bytes", "8M")
    assert line.endswith(", 16M between 2 groups\n"), line
    line = good("check", "--planner", "flat", "--nodes", 2, "--chunks", 1, "--collective", "broadcast")
    assert "2 nodes, 1 chunk: 1 round, 1 message, 4K" in line, line
    assert "1 node, 1 chunk: 0 rounds, 0 messages" in good("check", "--planner", "flat", "--nodes", 1)
    assert "chunk 0: 1 byte, from" in good("show", "--planner", "flat", "--nodes", 1, "--bytes", 1)
    report = document("check", "--planner", "ring", "--nodes", 4)
    assert (report["rounds"], report["messages"], report["wire_bytes"], report["cross_bytes"]) == (6, 24, 98304, None)
    assert report["workers"] == report["nodes"] == 4 and report["chunk_count"] == 4


def test_check_finds_mistakes():
    text = good("make", "flat", "--nodes", 3, "--chunks", 1)
    assert "recv+ out < in 1 2" in text
    wrong = {
        text.replace("recv+ out < in 1 2", "recv+ out < in 1 1"),
        text.replace("  1: fetch; send in > 0", "  1: fetch"),
        text.replace("; deliver", "", 1),
        text.replace("update out; ", ""),
    }
    assert len(wrong) == 4 and text not in wrong
    for plan in wrong:
        refused("check", "-", status=NO, says="plan check: ", text=plan)
        status, out, err = run("check", "-", "--json", text=plan)
        found = json.loads(out)
        assert status == NO and err == "" and found["ok"] is False and found["reason"], out
        assert {"chunk", "node", "step"} <= found.keys() and found["chunk"] in (0, None)
        refused("draw", "-", status=NO, says="plan draw: ", text=plan)
    with Folder(text) as path:
        assert good("check", path) == good("check", "-", text=text)
    with Folder("") as path:
        refused("check", path, status=NO, says=f"{path}: ")


def test_check_of_malformed_text():
    """A text that is no plan is an answer, not wrong usage; what cannot be read is."""
    text = good("make", "ring", "--nodes", 3)
    for broken, line in [("nonsense\n", 1), (text.replace("nodes 3", "nodes three"), 4), (text.replace("end\n", ""), 0),
                         (text.replace("send in > 1", "send in > 9", 1), 0)]:
        assert broken != text
        refused("check", "-", status=NO, says=f"-: line {line or ''}", text=broken)
        status, out, err = run("check", "-", "--json", text=broken)
        found = json.loads(out)
        assert status == NO and err == "" and found["ok"] is False
        assert found["reason"].startswith(f"line {line or ''}"), found
        assert found["chunk"] is found["node"] is found["step"] is None
    status, out, err = run("check", "no/such/file", "--json")
    assert status == USAGE and out == "" and "cannot read" in err


def test_make_json_is_the_whole_plan():
    plan = document("make", "tree", "--nodes", 4, "--collective", "gather", "--root", 2, "--racks", 2, "--counts", "8,0,4,1")
    assert plan["root"] == 2 and plan["group_of"] == [0, 0, 1, 1]
    assert plan["input_bytes"] == [8, 0, 4, 1] and plan["output_bytes"] == [0, 0, 13, 0]
    text = good("make", "tree", "--nodes", 4, "--collective", "gather", "--root", 2, "--racks", 2, "--counts", "8,0,4,1")
    assert document("show", "-", text=text) == plan
    plan = document("make", "tree", "--nodes", 3, "--leaves")
    assert plan["root"] is None and plan["group_of"] == [] and plan["input_bytes"] == plan["output_bytes"] == [4096] * 3


def test_large():
    """A thousand nodes are checked without ever being written down."""
    line = good("check", "--planner", "two-level", "--nodes", 1024, "--chunks", 1600, "--racks", 32, "--bytes", 1600)
    assert "1024 nodes, 1600 chunks: 4 rounds, 3273600 messages" in line, line


LONG = ["check", "--planner", "ring", "--nodes", "16384", "--chunks", "65536", "--bytes", "64K"]


def started(words, **where):
    return subprocess.Popen([ESPALIER, "plan", *words], stdout=subprocess.DEVNULL, **where)


def test_long_work_is_announced():
    for words in [LONG, ["cost", *LONG[3:]], ["make", "ring", *LONG[3:]]]:
        with started(words, stderr=subprocess.PIPE, text=True) as process:
            try:
                line = process.stderr.readline()
            finally:
                process.kill()
            assert line.startswith(f"espalier: plan {words[0]}: ") and "rows" in line and "will take about" in line, line
    # What is wrong is said at once, without a word about how long it would have taken.
    refused("check", "--planner", "ring", "--nodes", 1 << 24, "--root", 1, says="--root")
    refused("check", "--planner", "ring", "--nodes", 1 << 24, "--collective", "alltoall", says="--bytes")


def test_progress_on_a_terminal():
    ours, theirs = pty.openpty()
    said = b""
    with started(LONG, stderr=theirs) as process:
        os.close(theirs)
        try:
            while b"\respalier: plan check: 0 %" not in said:
                said += os.read(ours, 1000)
        finally:
            process.kill()
    os.close(ours)
    assert said.startswith(b"espalier: plan check: 1073741824 rows"), said


def test_output_errors():
    if not os.path.exists("/dev/full"):
        return
    for words in [["make", "ring"], ["show", "--planner", "ring"], ["draw", "--planner", "ring"],
                  ["check", "--planner", "ring"], ["check", "--planner", "ring", "--json"], ["cost"]]:
        with open("/dev/full", "w") as full:
            done = subprocess.run([ESPALIER, "plan", *words, "--nodes", "4"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        assert done.returncode == NO and "cannot write" in done.stderr, (words, done)


# ---- sizes ----

def pieces(*words):
    return [(c["bytes"], c["in_at"], c["out_at"]) for c in document("show", *words)["chunks"]]


def test_sizes():
    assert [b for b, _, _ in pieces("--planner", "ring", "--nodes", 3, "--bytes", 10)] == [4, 3, 3]
    assert [b for b, _, _ in pieces("--planner", "ring", "--nodes", 3, "--bytes", 12, "--chunks", 2)] == [6, 6]
    assert len(pieces("--planner", "tree", "--nodes", 5)) == len(pieces("--planner", "exchange", "--nodes", 5)) == 1
    assert len(pieces("--planner", "double-tree", "--nodes", 5)) == 2
    assert len(pieces("--planner", "flat", "--nodes", 5)) == 5
    # Blocks: the buffer is that of one node, and its odd bytes go to the first blocks.
    scatter = ["--planner", "ring", "--nodes", 3, "--collective", "reduce-scatter"]
    assert pieces(*scatter, "--bytes", 10) == [(4, 0, 0), (3, 4, 0), (3, 7, 0)]
    assert pieces(*scatter, "--bytes", 12, "--chunks", 6) == [(2, 0, 0), (2, 2, 2), (2, 4, 0), (2, 6, 2), (2, 8, 0),
                                                              (2, 10, 2)]
    assert pieces(*scatter, "--counts", "1K,0,8") == [(1024, 0, 0), (8, 1024, 0)]
    with Folder("1K 0\n8\n") as path:
        assert pieces(*scatter, "--counts", f"@{path}") == pieces(*scatter, "--counts", "1K,0,8")
    assert len(pieces(*scatter, "--counts", "4,0,8", "--chunks", 6)) == 6
    every = pieces("--planner", "flat", "--nodes", 3, "--collective", "alltoall", "--bytes", 7)
    assert len(every) == 9 and sum(b for b, _, _ in every) == 21
    refused("show", *scatter, "--counts", "1,2", says="2 sizes for 3 blocks")
    refused("show", *scatter, "--counts", "1,2,x", says="'x' is no number of bytes")
    refused("show", *scatter, "--counts", "1,2,1KB", says="K, M, G and T")
    for empty, which in [("1,,3", 2), (",2,3", 1), ("1,2,", 3), ("1, ,3", 2), (",", 1)]:
        refused("show", *scatter, "--counts", empty, says=f"size number {which} is empty")
    refused("show", *scatter, "--counts", "", says="0 sizes for 3 blocks")
    refused("show", *scatter, "--counts", "1", says="1 size for 3 blocks")
    refused("show", *scatter, "--counts", "@", says="the name of a file is empty")
    with Folder("1K, 0,\n8\n") as path:
        assert pieces(*scatter, "--counts", f"@{path}") == pieces(*scatter, "--counts", "1K,0,8")
    refused("show", "--planner", "ring", "--nodes", 4, "--bytes", "1KB", says="such as 4096 or 64K (K, M, G and T: powers of")
    # The largest number is a size like others, and more than can be counted.
    for nodes, most in [(1, "2097152T"), (4, "524288T"), (5, "262144T")]:
        for wrong in [2**64 - 1, 2**63, "16777215T"]:
            refused("show", "--planner", "ring", "--nodes", nodes, "--bytes", wrong, says=f": at most {most}\n")
        good("check", "--planner", "ring", "--nodes", nodes, "--bytes", most)
    refused("show", *scatter, "--bytes", 2**64 - 2, says="--bytes: so many bytes cannot be counted on 3 nodes")
    refused("show", *scatter, "--counts", "8388608T,1,1", says="--counts: so many bytes cannot be counted on 3 nodes")
    refused("show", *scatter, "--counts", "16777215T,16777215T,16777215T", says="--counts: so many bytes")
    refused("show", *scatter, "--counts", "1,2,3", "--bytes", 6, says="give one of them")
    refused("show", *scatter, "--counts", "@no/such/file", says="cannot read no/such/file")


# ---- groups ----

def test_groups():
    with Folder("# racks\n0-1 5\n\n2, 3-4\n") as path:
        text = good("make", "two-level", "--nodes", 6, "--groups", path)
        assert "\ngroups 0*2 1*3 0\n" in text, text
        assert document("check", "--planner", "two-level", "--nodes", 6, "--groups", path)["groups"] == 2
    assert "\ngroups 0*2 1*2\n" in good("make", "ring", "--nodes", 4, "--racks", 2)
    assert "\ngroups 0 1 0 1\n" in good("make", "ring", "--nodes", 4, "--racks", 2, "--place", "interleaved")
    for bad, says in [("0-1\n1-3\n", "line 2: node 1 is in group 0 already"), ("0-4\n", "line 1: node 4 is not among"),
                      ("0-2\n", "node 3 is in none"), ("0 zwei\n", "line 1: 'zwei' is no node")]:
        with Folder(bad) as path:
            refused("make", "two-level", "--nodes", 4, "--groups", path, says=f"{path}: ")
            refused("make", "two-level", "--nodes", 4, "--groups", path, says=says)
    for empty in ["", "\n", "# nothing\n"]:
        with Folder(empty) as path:
            refused("make", "two-level", "--nodes", 4, "--groups", path, says=f"{path}: there is no group in it")
    with Folder("\ufeff0-1\n2-3\n") as path:
        assert "\ngroups 0*2 1*2\n" in good("make", "ring", "--nodes", 4, "--groups", path)
    refused("make", "two-level", "--nodes", 4, "--groups", "", says="the name of a file is empty")


# ---- show ----

def test_show():
    text = good("show", "--planner", "two-level", "--nodes", 4, "--racks", 2)
    assert "groups      2: 0-1 | 2-3\n" in text and text.count("\nchunk ") == 4 and "waits for" in text
    assert good("show", "-", text=good("make", "two-level", "--nodes", 4, "--racks", 2)) == text
    one = good("show", "--planner", "ring", "--nodes", 4, "--chunk", 2, "--node", 1)
    assert one.count("\nchunk ") == 1 and "recv+ out < 0 in; send out > 2" in one, one
    words = good("show", "--planner", "ring", "--nodes", 4, "--chunk", 2, "--node", 1, "--explain")
    assert "adds, in this order, what node 0 sends and its input, into its output" in words, words
    assert "4. waits for the chunk from node 0 and puts it into its output" in words, words
    out = document("show", "--planner", "ring", "--nodes", 4, "--chunk", 2, "--node", 1)
    assert [c["chunk"] for c in out["chunks"]] == [2] and [r["node"] for r in out["chunks"][0]["rows"]] == [1]
    assert out["chunks"][0]["rows"][0]["steps"][1] == {"verb": "recv+", "place": "out", "terms": [0, "in"]}
    refused("show", "--planner", "ring", "--nodes", 4, "--node", 4, says="there is no node 4")
    refused("show", "--planner", "ring", "--nodes", 4, "--chunk", 4, says="there is no chunk 4")
    refused("show", "--planner", "ring", "--nodes", 4, "--explain", says="--node N")
    assert document("make", "ring", "--nodes", 4) == document("show", "--planner", "ring", "--nodes", 4)


# ---- cost ----

def test_cost():
    out = document("cost", "--nodes", 16, "--racks", 4, "--bytes", "16M", "--alpha", 10, "--beta", 100)
    assert [p["planner"] for p in out["planners"]] == PLANNERS
    for planner in out["planners"]:
        most = max(planner["busiest_sent"], planner["busiest_received"])
        assert math.isclose(planner["time_us"], planner["rounds"] * 10 + 8 * most / 100e3), planner
        alone = document("check", "--planner", planner["planner"], "--nodes", 16, "--racks", 4, "--bytes", "16M",
                         "--chunks", 16)
        assert all(planner[key] == alone[key] for key in ["rounds", "wire_bytes", "cross_bytes", "busiest_bytes"])
    by_name = {p["planner"]: p for p in out["planners"]}
    assert by_name["two-level"]["cross_bytes"] == 2 * 3 * (16 << 20) < by_name["flat"]["cross_bytes"]
    assert by_name["central"]["time_us"] > by_name["ring"]["time_us"]
    text = good("cost", "--nodes", 4)
    assert "left out: two-level" in text and "time = rounds x 20 us" in text and "not modelled" in text
    rows = good("cost", "--nodes", 16, "--racks", 4).split("\n\n")[0].splitlines()[1:]
    times = [float(row.split()[-1]) for row in rows]
    assert len(rows) == len(PLANNERS) and times == sorted(times), rows
    slow, fast = (document("cost", "--nodes", 8, "--bytes", "16M", "--switch-link", links)["switch"] for links in ("4x", 8))
    assert not slow["pays"] and fast["pays"] and math.isclose(slow["needs_links"], 64 / 14) and slow["ring_us"] == fast["ring_us"]
    text = good("cost", "--nodes", 8, "--switch-link", "4x")
    assert "does not pay" in text and "carries it 8 times" in text and "from 4.6 times" in text, text
    assert "router or DPU" in text and "espalier hub" in text and "ESP_SWITCH" not in text, text
    assert "ESP_SWITCH=HOST:PORT" in good("cost", "--nodes", 8, "--switch-link", "8x")
    for words in [("fast",), ("0x",), ("4x", "--collective", "barrier"), ("4y",)]:
        refused("cost", "--nodes", 8, "--switch-link", *words, says="--switch-link is how many times")
    text = good("cost", "--nodes", 4)
    helps = good("cost", "--help")
    assert "default 64M" in helps and "4K a chunk" not in helps
    assert good("cost", "--nodes", 4, "--bytes", "64M", "--chunks", 4) == text
    left_out = document("cost", "--nodes", 4)["planners"][-1]
    assert "--racks" in left_out["left_out"] and "rounds" not in left_out
    only = document("cost", "--nodes", 4, "--planner", "ring")["planners"]
    assert [p["planner"] for p in only] == ["ring"] and only[0]["cross_bytes"] is None
    refused("cost", says="--nodes")
    refused("cost", "--nodes", 4, "--planner", "two-level", says="--racks C")
    refused("cost", "--nodes", 4, "--planner", "rign", says="did you mean")
    refused("cost", "--nodes", 4, "--groups", "-", says="read only once", text="0-1\n2-3\n")
    good("cost", "--nodes", 4, "--groups", "-", "--planner", "two-level", text="0-1\n2-3\n")
    refused("cost", "--nodes", 4, "--beta", 0, says="--beta must be above 0")
    refused("cost", "--nodes", 4, "--alpha", -1, says="--alpha must not be negative")


# ---- draw ----

def elements(svg, kind):
    return xml.fromstring(svg).findall(f".//{{http://www.w3.org/2000/svg}}{kind}")


def texts(svg):
    return [element.text for element in elements(svg, "text")]


def check_inside(svg, words):
    """Nothing sticks out of the picture, and no two labels start at the same place."""
    root = xml.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    places = [(t.get("x"), t.get("y")) for t in elements(svg, "text")]
    assert len(places) == len(set(places)), words
    for text in elements(svg, "text"):
        if text.get("class") in ("title", "facts", "note"):
            letters = {"title": 19, "facts": 12.5, "note": 12}[text.get("class")]
            assert float(text.get("x")) + len(text.text) * letters * 0.55 <= width, (words, text.text)
    for kind in ["text", "rect"]:
        for element in elements(svg, kind):
            x, y = float(element.get("x")), float(element.get("y"))
            assert 0 <= x and x + float(element.get("width", 0)) <= width, (words, element.attrib)
            assert 0 <= y and y + float(element.get("height", 0)) <= height, (words, element.attrib)


def test_draw():
    for planner, words in variants():
        many = "alltoall" in words and max(w for w in words if isinstance(w, int)) > 4
        svg = good("draw", "--planner", planner, *words, *(["--chunk", 1] if many else []))
        check_inside(svg, (planner, words))
    svg = good("draw", "--planner", "two-level", "--nodes", 8, "--racks", 2)
    assert "two-level allreduce, 8 nodes" in texts(svg) and "group 1" in texts(svg) and "round 4" in texts(svg)
    assert "round 5" not in texts(svg)
    text = good("make", "two-level", "--nodes", 8, "--racks", 2)
    assert good("draw", "-", text=text) == svg == good("draw", "--planner", "two-level", "--nodes", 8, "--racks", 2)
    assert document("draw", "--planner", "two-level", "--nodes", 8, "--racks", 2)["svg"] == svg


def drawn_words(*words):
    return set(texts(good("draw", "--planner", "ring", "--nodes", 4, *words)))


def test_draw_words():
    phases = {"sum up", "hand out", "pass on", "collect", "share", "exchange", "report", "release"}
    for collective, expected in [("allreduce", {"sum up", "hand out"}), ("reduce", {"sum up"}), ("gather", {"collect"}),
                                 ("reduce-scatter", {"sum up"}), ("scatter", {"hand out"}), ("allgather", {"share"}),
                                 ("broadcast", {"hand out"}), ("alltoall", {"exchange"}),
                                 ("barrier", {"report", "release"})]:
        said = drawn_words("--collective", collective)
        assert said & phases == expected, (collective, said)
        assert ("part of the sum" in said) == (collective in ("allreduce", "reduce", "reduce-scatter")), collective
        facts = next(text for text in said if " on the wire" in text)
        assert facts.startswith("root 0 · ") == (collective in ROOTED), facts
    assert any(text.startswith("root 3 · ") for text in drawn_words("--collective", "gather", "--root", 3))


def test_draw_warns_of_a_thicket():
    for nodes, chunks, more, warns in [(9, 9, [], True), (8, 9, [], False), (9, 8, [], False), (9, 9, ["--chunk", 0], False)]:
        status, out, err = run("draw", "--planner", "flat", "--nodes", nodes, "--chunks", chunks, *more)
        assert status == OK and out.startswith("<svg") and (err.count("\n") == 1 and "--chunk C" in err) == warns, err
        assert warns or err == ""


def test_draw_output():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "ring.svg")
        assert good("draw", "--planner", "ring", "--nodes", 4, "-o", path) == ""
        assert path.read_text() == good("draw", "--planner", "ring", "--nodes", 4)
        broken = good("make", "flat", "--nodes", 3, "--chunks", 1).replace("update out; ", "")
        wrong = pathlib.Path(folder, "wrong.svg")
        refused("draw", "-", "-o", wrong, status=NO, says="plan draw: ", text=broken)
        assert not wrong.exists(), "half a picture was left"
        refused("draw", "--planner", "ring", "--nodes", 4, "-o", f"{folder}/no/such", status=NO, says="cannot write")
    refused("draw", "--planner", "ring", "--nodes", 33, says="draw the plan for at most 32")
    refused("draw", "--planner", "ring", "--nodes", 8, "--chunks", 17, says="draw one of them, with --chunk")
    refused("draw", "--planner", "ring", "--nodes", 8, "--chunk", 8, says="there is no chunk 8")
    refused("draw", "--planner", "ring", "--nodes", 8, "--json", "-o", "x", says="leave out --output")
    refused("draw", "--planner", "ring", "--nodes", 8, "-o", "", says="--output: the name of the file is empty")
    good("draw", "--planner", "flat", "--nodes", 8, "--chunks", 17, "--chunk", 16)


def test_pictures_are_current():
    script, pictures = sys.argv[2], pathlib.Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([script, ESPALIER, folder], check=True)
        drawn = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
    stored = {path.name: path.read_text() for path in pictures.glob("*.svg")}
    assert len(drawn) >= 12 and drawn.keys() == stored.keys(), drawn.keys() ^ stored.keys()
    old = [name for name in drawn if drawn[name] != stored[name]]
    assert not old, f"{old} are not what the command draws: run scripts/draw-pictures build/espalier"


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()


if __name__ == "__main__":
    main()
