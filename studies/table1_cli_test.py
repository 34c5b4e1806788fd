#!/usr/bin/env python3
"""espalier-study table1 from outside: counts worked out by hand, and those of the same plans when they are run.

table1_cli_test.py STUDY ESPALIER
"""
import json
import math
import subprocess
import sys

OK, USAGE = 0, 2
STUDY, ESPALIER = sys.argv[1:3]


def study(*words):
    done = subprocess.run([STUDY, "table1", *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = study(*words)
    assert status == OK and err == "", (words, status, err)
    return out


def document(*words):
    return json.loads(good(*words, "--json"))


def refused(*words, says):
    status, out, err = study(*words)
    assert status == USAGE and out == "" and says in err, (words, status, out, err)
    assert err.startswith("espalier-study: table1: ") and err.count("\n") == 1, err


def espalier(*words):
    """The document that a command of the product prints."""
    return json.loads(subprocess.run([ESPALIER, *map(str, words), "--json"], capture_output=True, text=True, check=True).stdout)


def levels(nodes, fanout):
    """Widths of a tree above its leaves."""
    widths = []
    while nodes > 1:
        nodes = -(-nodes // fanout)
        widths.append(nodes)
    return widths


def paper(n, c):
    """The formulas of table 1, None where they divide by zero."""
    all_nodes = n * c
    tree = [None] * 3
    if c > 1:
        tree = [2 * (math.log(n, c) + 1), 2 * c * (all_nodes - 1) / (c - 1), 2 * c * (n - 1) / (c - 1)]
    return {
        "PS (fully sharded)": [2, 2 * (all_nodes - 1), 2 * n * (c - 1)],
        "Halving doubling": [2 * math.log2(all_nodes), 2 * (all_nodes - 1), 2 * (c - 1)],
        "Ring-Chunked": [2 * all_nodes - 1, 2 * all_nodes - 1, 2 * c - 1],
        "Tree, workers as leaves": tree,
        "Tree, workers inside": tree,
        "2-level hierarchical": [4, 2 * (all_nodes - 1), 2 * (c - 1)],
    }


def counted(n, c, interleaved):
    """What the counts have to be, worked out by hand; halving-doubling's third is left to check_table()."""
    m = n * c
    bits = m.bit_length() - 1
    fanout = max(c, 2)
    depth, room = 0, 1
    while room < m:
        depth, room = depth + 1, room * fanout + 1
    rack = (lambda node: node % c) if interleaved else (lambda node: node // n)
    ring = 0 if c == 1 else 2 * (m - 1) if interleaved else 2 * c - 2 / n
    heap = 2 * sum(rack(i) != rack((i - 1) // fanout) for i in range(1, m))
    return {
        "PS (fully sharded)": [2 if m > 1 else 0, 2 * (m - 1), 2 * n * (c - 1)],
        "Halving doubling": [2 * bits if m == 1 << bits else 2 * bits + 2, 2 * (m - 1), None],
        "Ring-Chunked": [2 * (m - 1), 2 * (m - 1), ring],
        "Tree, workers as leaves": [2 * len(levels(m, fanout)), 2 * (m + sum(levels(m, fanout)) - 1) if m > 1 else 0,
                                    leaf_crossings(m, fanout, rack)],
        "Tree, workers inside": [2 * depth, 2 * (m - 1), heap],
        "2-level hierarchical": [2 * (n > 1) + 2 * (c > 1), 2 * (m - 1), 2 * (c - 1)],
    }


def leaf_crossings(nodes, fanout, rack):
    """Twice the edges between racks, where an inner node stands with its first leaf."""
    racks = [rack(node) for node in range(nodes)]
    count = 0
    while len(racks) > 1:
        above = racks[::fanout]
        count += sum(r != above[i // fanout] for i, r in enumerate(racks))
        racks = above
    return 2 * count


def halving_parts(n, c, place):
    """By chunk: into how many parts each rack falls, whose sums leave it apart from each other."""
    rack = (lambda node: node % c) if place == "interleaved" else (lambda node: node // n)
    chunks = 1 << (n * c).bit_length() - 1
    shown = espalier("plan", "show", "--planner", "halving-doubling", "--nodes", n * c, "--chunks", chunks)
    for chunk in shown["chunks"]:
        parts = [0] * c
        for row in chunk["rows"]:
            owns = any(step["verb"] == "update" for step in row["steps"])
            first = next((step["to"] for step in row["steps"] if step["verb"] == "send"), None)
            if owns or rack(first) != rack(row["node"]):
                parts[rack(row["node"])] += 1
        yield parts


def check_reason(n, c, place, name, column, entry):
    why, m, count = entry["why"], n * c, entry["counted"]
    if name.startswith("Tree") and c == 1:
        assert "divides by zero" in why and "fan-out of 2" in why
    elif m == 1:
        assert "single node" in why
    elif (name, column) == ("Halving doubling", "rounds"):
        bits = m.bit_length() - 1
        assert m & (m - 1) and f"NC = {m} is no power of two" in why
        assert f"beyond {1 << bits} ({m - (1 << bits)} of them)" in why and f"the {bits} rounds back" in why
        assert count == 2 * bits + 2
    elif (name, column) == ("Halving doubling", "cross"):
        assert "some rack is not" in why and count > 2 * (c - 1)
        assert any(max(parts) > 1 for parts in halving_parts(n, c, place))
    elif name == "Ring-Chunked" and column != "cross":
        assert "one less" in why or "one S less" in why
        assert entry["paper"] - count == 1
    elif name == "Ring-Chunked" and c == 1:
        assert "nothing leaves it" in why and count == 0
    elif name == "Ring-Chunked" and place == "interleaved":
        assert "all 2(NC-1)S cross" in why and count == 2 * (m - 1)
    elif name == "Ring-Chunked":
        assert "(2C - 2/N)S" in why and math.isclose(count, 2 * c - 2 / n)
    elif (name, column) == ("Tree, workers as leaves", "rounds"):
        assert f"has {len(levels(m, c))} above the leaves" in why and f"N = {n} is no power of C = {c}" in why
        assert not any(c ** k == n for k in range(16))
    elif (name, column) == ("Tree, workers as leaves", "wire"):
        assert f"there are {m + sum(levels(m, c)) - 1} edges" in why and not any(c ** k == m for k in range(16))
    elif column == "cross" and name.startswith("Tree"):
        edges = round(count / 2)
        words = {0: "no edge joins", 1: "one edge joins"}
        assert words.get(edges, f"{edges} edges join") in why, why
    elif (name, column) == ("Tree, workers inside", "rounds"):
        assert f"on {round(count / 2)} levels below the top" in why
    elif (name, column) == ("Tree, workers inside", "wire"):
        assert "no extra nodes" in why and count == 2 * (m - 1)
    elif (name, column) == ("2-level hierarchical", "rounds"):
        assert ("one rack" in why) == (c == 1) and ("racks of one node" in why) == (c > 1) and (c == 1 or n == 1)
    else:
        raise AssertionError(f"{name} {column} should not differ for N = {n}, C = {c}: {entry}")


def check_table(n, c, place):
    out = document("--nodes-per-rack", n, "--racks", c, "--place", place)
    formulas, counts = paper(n, c), counted(n, c, place == "interleaved")
    # Everything but the top of a chunk's tree is handed on once; between racks, what ends a part of one.
    parts = list(halving_parts(n, c, place))
    counts["Halving doubling"][2] = sum(2 * (sum(of_chunk) - 1) for of_chunk in parts) / len(parts)
    assert [row["algorithm"] for row in out["rows"]] == list(formulas)
    for row in out["rows"]:
        for index, column in enumerate(["rounds", "wire", "cross"]):
            entry, formula = row[column], formulas[row["algorithm"]][index]
            expected = counts[row["algorithm"]][index]
            where = (n, c, place, row["algorithm"], column, entry)
            assert math.isclose(entry["counted"], expected, abs_tol=1e-9), (where, expected)
            assert (entry["paper"] is None) == (formula is None), where
            same = formula is not None and math.isclose(entry["counted"], formula, rel_tol=1e-9, abs_tol=1e-9)
            assert entry["same"] is same and (entry["why"] is None) == same, where
            if not same:
                check_reason(n, c, place, row["algorithm"], column, entry)


def test_grid():
    for n in range(1, 10):
        for c in range(1, 8):
            for place in ["contiguous", "interleaved"]:
                check_table(n, c, place)
    check_table(16, 16, "contiguous")
    check_table(12, 11, "contiguous")


def test_text():
    text = good("--nodes-per-rack", 4, "--racks", 2)
    assert "8 nodes in C = 2 racks of N = 4 each, placed contiguously" in text
    assert text.split("why they differ")[0].count("same") == 12 and text.split("why they differ")[0].count("differs") == 6
    assert good("--nodes", 8, "--racks", 2) == text == good()
    assert "undefined" in good("--racks", 1)
    assert good("--racks", 1, "--nodes-per-rack", 1).startswith("1 node in C = 1 rack of N = 1 each")
    assert "up to 2,048 nodes" in good("--help")
    refused("--nodes", 9, "--racks", 2, says="9 nodes do not fill 2 racks evenly")
    refused("--nodes", 8, "--nodes-per-rack", 4, says="give one of them")
    refused("--nodes-per-rack", 2048, "--racks", 2048, says="too many to count")


def test_run():
    """Rounds and bytes of PLink's table 1 when the plans are run: with a second for each way, seconds are rounds."""
    for size, racks in ((4, 4), (4, 2), (8, 4), (3, 3)):
        nodes = size * racks
        table = document("--nodes-per-rack", size, "--racks", racks)["rows"]
        assert len(table) == 6, table
        for row in table:
            chunks = 1 if row["planner"] == "tree" else 1 << nodes.bit_length() - 1 if row["planner"] == "halving-doubling" else nodes
            more = ["--fanout", racks] if row["planner"] == "tree" else []
            more += ["--leaves"] if row["algorithm"] == "Tree, workers as leaves" else []
            length = nodes << 16
            ran = espalier("sim", "plan", "--planner", row["planner"], "--nodes", nodes, "--racks", racks, "--bytes", length, "--chunks", chunks,
                           *more, "--gbps", 1e6, "--delay", "500ms", "--credits", 64)
            assert abs(ran["seconds"] - row["rounds"]["counted"]) < 1e-3, (row, ran)
            assert math.isclose(ran["wire_bytes"] / length, row["wire"]["counted"]), (row, ran)
            assert math.isclose(ran["link_bytes"]["rack_out"] / length, row["cross"]["counted"]), (row, ran)
            assert ran["link_bytes"]["rack_out"] == ran["link_bytes"]["rack_in"]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
