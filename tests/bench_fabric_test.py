#!/usr/bin/env python3
"""espalier bench fabric: bench_fabric_test.py ESPALIER.

Every way runs in a small lab, in which every weight is right; the lab is gone afterwards, also after a signal.
"""
import json
import os
import signal
import subprocess
import sys

import netns

OK, NO, USAGE, PATIENCE = 0, 1, 2, 240
ESPALIER = os.path.abspath(sys.argv[1])
SMALL = ["--lab", "200mbit", "--workers", "3", "--size", "100K", "--warmup", "0.2", "--rounds", "1"]


def bench(*words):
    return subprocess.run([ESPALIER, "bench", "fabric", *map(str, words)], env=netns.CLEAN, capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


def labs():
    return subprocess.run([ESPALIER, "lab", "list"], env=netns.CLEAN, capture_output=True, text=True, check=True).stdout


def test_usage():
    for words in (["--lab", "fast"], ["--lab", "1kbit"], ["--workers", 0], ["--workers", 65], ["--hub-links", 0], ["--size", 1], ["--batch", "1us"],
                  ["--weather", "N9"], ["--stragglers", "x"], ["--ways", "best,"], ["--ways", "rings"], ["--seconds", 0], ["--period", "1ms"],
                  ["--rounds", 21], ["--compute-ms", -1], ["--as", "best"], ["--ways", "plain,plain,plain,plain,plain"]):
        done = bench(*words)
        assert done.returncode == USAGE and done.stderr and not done.stdout, (words, done)


def test_all_ways():
    """Rates change while a run goes on. The exit status says whether a weight was wrong."""
    done = bench(*SMALL, "--seconds", 1.5, "--weather", "N3", "--period", "1s", "--stragglers", "C2", "--json")
    assert done.returncode == OK, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    rows = {row["way"]: row for row in found["results"]}
    assert list(rows) == ["best", "paper", "plain", "ring"], rows
    assert found["workers"] == 3 and found["bytes"] == 102400 and found["weather"] == "N3" and found["delay_bound"] == 6, found
    for row in rows.values():
        assert row["wrong"] == 0 and row["updates_per_second"] > 0 and row["bound"] > 0 and row["model"] > 0 and row["limit"], row
        assert row["least"] <= row["updates_per_second"] <= row["most"] and row["delay_most"] <= 6, row
        assert abs(row["share"] - row["updates_per_second"] / row["bound"]) < 1e-9, row
        assert abs(row["lab_beside_model"] - row["updates_per_second"] / row["model"]) < 1e-9, row
        assert abs(row["beside_plain"] - row["updates_per_second"] / rows["plain"]["updates_per_second"]) < 1e-9, row
    assert "benchfabric" not in labs()


def test_table():
    done = bench(*SMALL, "--seconds", 0.5, "--ways", "plain")
    assert done.returncode == OK, (done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and lines[0].startswith("3 workers at 200mbit") and lines[2].startswith("plain"), done.stdout


def test_no_lab():
    """Bounds and the model alone: of 16 workers, with the hub's link at a quarter, 6.2 times plain asynchronous at most."""
    words = ["--workers", 16, "--weather", "N0", "--stragglers", "C0", "--rounds", 0, "--json"]
    rows = {row["way"]: row for row in json.loads(bench(*words).stdout)["results"]}
    assert 6.2 < rows["best"]["bound"] / rows["plain"]["bound"] < 6.3, rows
    assert all(row["updates_per_second"] is None and row["idle"] is None and 0 < row["model"] < 1.05 * row["bound"] for row in rows.values()), rows
    ideal = {row["way"]: row for row in json.loads(bench(*words, "--ideal-model").stdout)["results"]}
    assert ideal["best"]["model"] > rows["best"]["model"] and ideal["plain"]["model"] < rows["plain"]["model"], (rows, ideal)


def test_signal():
    """Sent when the lab is there: nothing is left of it."""
    with subprocess.Popen([ESPALIER, "bench", "fabric", *SMALL, "--seconds", "60"], env=netns.CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as one:
        while f"benchfabric{one.pid}" not in labs():
            assert one.poll() is None, one.communicate()
        one.send_signal(signal.SIGINT)
        _, err = one.communicate(timeout=PATIENCE)
    assert one.returncode == NO and "interrupted" in err, (one.returncode, err)
    assert f"benchfabric{one.pid}" not in labs()


def main():
    netns.timed(test_usage)
    netns.timed(test_no_lab)
    netns.skip_unless_possible("tc", "nft")
    for test in (test_all_ways, test_table, test_signal):
        netns.timed(test)
    return OK


if __name__ == "__main__":
    sys.exit(main())
