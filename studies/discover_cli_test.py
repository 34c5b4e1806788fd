#!/usr/bin/env python3
"""espalier-study discover, as a person or a script uses it.

discover_cli_test.py STUDY MAN_PAGE ESPALIER
"""
import json
import os
import re
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
COMMANDS = ["accuracy", "agreement", "autotune", "best", "calibrate", "network", "speed"]
NOISES = ["cloud", "jitter", "startup", "hot", "outliers", "quiet", "busy"]
# A row of four racks with four hosts each, all taken; no noise unless said.
SMALL = ["--datacenters", 1, "--clusters", 1, "--rows", 1, "--racks", 4, "--rack-hosts", 4, "--machines", 16]


def study(*words):
    done = subprocess.run([sys.argv[1], "discover", *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = study(*words)
    assert status == OK and err == "", (words, status, err)
    return out


def refused(*words, says, status=USAGE):
    got, out, err = study(*words)
    assert got == status and out == "" and says in err, (words, got, out, err)


def document(*words):
    return json.loads(good(*words, "--json"))


def test_help():
    text = good("--help")
    with open(sys.argv[2], encoding="utf-8") as page:
        manual = page.read().replace("\\-", "-")
    for command in COMMANDS:
        assert f"\n  {command} " in text, text
        for option in re.findall(r"--[a-z-]+", good(command, "--help").split("options:")[-1]):
            assert option == "--help" or option in manual, f"{command}: {option} is not in the manual"
    refused("spede", says="did you mean 'speed'")
    assert study()[0] == USAGE


def test_refused():
    refused("accuracy", "--machines", 900, says="no room for 900 machines")
    refused("accuracy", "--racks", 1, says="each needs one")
    refused("accuracy", "--raw", 1.5, says="--raw")
    refused("accuracy", "--gbps", -1, says="--gbps")
    refused("accuracy", "--oversubscribe", -3, says="--oversubscribe")
    refused("agreement", "--elasticity", 3, says="--elasticity")
    refused("best", "--machines", 11, says="too many groupings")
    refused("autotune", "--slow", 0, says="--slow")
    refused("autotune", "--slow-at", 9, "--restore-at", 3, says="--restore-at")
    refused("autotune", "--racks", 9, says="each rack needs a machine")
    refused("network", "--json", says="no --json")
    refused("accuracy", "--noise", "loud", says="loud")


def test_network(folder):
    """The region is a topology that the simulator takes, the same each time, with the truth beside it."""
    racks, survey, topology = (os.path.join(folder, name) for name in ("racks", "survey", "topology"))
    text = good("network", *SMALL, "--racks-file", racks, "--survey", survey, "--level", 2)
    assert text == good("network", *SMALL, "--level", 2)
    assert text != good("network", *SMALL, "--seed", 2)
    assert text.count("\nhost vm") == 16 and text.count("\nswitch rack") == 4 and " flows " in text, text
    assert " flows " not in good("network", *SMALL, "--quiet")
    places = dict(line.split() for line in open(racks, encoding="utf-8"))
    assert len(places) == 16 and len(set(places.values())) == 4
    for host, under in re.findall(r"host (\w+) under (\w+)", text):
        assert places[host].endswith("/" + under)
    with open(survey, encoding="utf-8") as lines:
        first = lines.readline()
        assert first == "survey 1\n" and sum(line.startswith("vm") for line in lines) == 32
    with open(topology, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([sys.argv[3], "sim", "run", "--collective", "allreduce", "--bytes", "1M", "--topology", topology, "--mechanism", "flat"],
                          capture_output=True, text=True)
    assert done.returncode == OK and "flat" in done.stdout, done.stderr


def test_calibrate():
    made = document("calibrate", "--raw", 0.9)
    assert [row["noise"] for row in made["noises"]] == NOISES
    cloud = made["noises"][0]
    assert abs(cloud["raw_paia"] - 0.9) < 1e-3 and cloud["level"] > 0
    quiet = made["noises"][NOISES.index("quiet")]
    assert quiet["raw_paia"] == 1 and quiet["level"] == 0
    assert "cloud" in good("calibrate", "--raw", 0.9)


def test_accuracy(folder):
    svg = os.path.join(folder, "accuracy.svg")
    words = ["accuracy", *SMALL, "--cases", 2, "--level", 4, "--dimensions", 3]
    made = document(*words, "--all-noises", "--svg", svg)
    assert [row["readings"] for row in made["rows"]] == NOISES + ["bandwidth"]
    assert made["held"]["rack"] == 4 and made["triplets"] == 16 * 3 * 12
    quiet = made["rows"][NOISES.index("quiet")]
    assert quiet["raw_paia"]["mean"] == 1 and quiet["alpha2_better"] == 0
    for row in made["rows"]:
        for kind in ("raw_paia", "alpha1_paia", "alpha2_paia"):
            assert 0 <= row[kind]["least"] <= row[kind]["mean"] + 1e-12 and row[kind]["mean"] <= row[kind]["most"] + 1e-12 <= 1 + 1e-9
    assert open(svg, encoding="utf-8").read().rstrip().endswith("</svg>")
    assert good(*words) == good(*words)
    assert good(*words) != good(*words, "--seed", 5)
    refused(*words, "--svg", os.path.join(folder, "no", "such.svg"), says="such.svg", status=NO)


def test_agreement():
    made = document("agreement", *SMALL, "--runs", 3, "--noise", "quiet")
    assert made["groups"] == 4 and len(made["results"]) == 4
    assert all(row["agreement"] > 0.9 and row["with_racks"] > 0.9 for row in made["results"]), made
    assert "readings" in good("agreement", *SMALL, "--runs", 2, "--noise", "quiet")
    # Several regions: the mean of what each has by itself.
    each = [document("agreement", *SMALL, "--runs", 3, "--level", 3, "--seed", seed)["results"] for seed in (5, 6)]
    both = document("agreement", *SMALL, "--runs", 3, "--level", 3, "--seed", 5, "--cases", 2)
    assert both["cases"] == 2
    for row, one, two in zip(both["results"], *each):
        for key in ("agreement", "with_racks", "with_rows"):
            assert abs(row[key] - (one[key] + two[key]) / 2) < 1e-9, (key, row, one, two)
        assert row["more_in"] == one["more_in"] + two["more_in"], (row, one, two)


def test_speed(folder):
    svg = os.path.join(folder, "speed.svg")
    words = ["speed", *SMALL, "--runs", 2, "--bytes", "4M", "--chunk", "256K", "--level", 0.5]
    made = document(*words, "--svg", svg)
    plans = {plan["plan"]: plan for plan in made["plans"]}
    assert list(plans) == ["flat", "probed", "probed+tuned", "probed-root", "random", "truth"]
    assert plans["truth"]["groups"] == 4 and plans["truth"]["ami"] == 1 and plans["flat"]["ami"] is None
    for plan in plans.values():
        assert len(plan["seconds"]) == 2 and min(plan["seconds"]) <= plan["p50_s"] <= plan["p95_s"] <= max(plan["seconds"])
    assert open(svg, encoding="utf-8").read().rstrip().endswith("</svg>")
    assert good(*words) == good(*words)
    assert "bandwidth" in good(*words, "--by", "bandwidth")
    assert document(*words, "--whole-hosts")["whole_hosts"]
    # However many run at a time, and whatever is not said: every machine has a chunk to sum.
    assert good(*words, "--jobs", 1) == good(*words, "--jobs", 2)
    made = document("speed", "--setting", "corner", "--runs", 1, "--bytes", 1000, "--level", 0.5)
    assert made["chunk_bytes"] == 128 and made["grain_s"] == 0, made
    assert document("speed", "--setting", "corner", "--runs", 1, "--bytes", 1000, "--level", 0.5, "--grain", "1ms")["grain_s"] == 0.001


def test_best():
    made = document("best", "--machines", 6, "--racks", 2, "--cases", 2, "--bytes", "4M", "--level", 0.5)
    for case in made["cases"]:
        assert case["groupings"] == 86 and case["best_s"] <= case["flat_s"] and case["best_s"] <= case["median_s"] <= case["worst_s"]
        assert 0 <= case["found_beats"] <= 1
    assert "times as long as the best" in good("best", "--machines", 6, "--racks", 2, "--cases", 1, "--bytes", "1M", "--level", 0.5)


def test_autotune(folder):
    svg = os.path.join(folder, "autotune.svg")
    made = document("autotune", "--bytes", "16M", "--chunk", "32K", "--svg", svg)
    steps = made["steps"]
    assert len(steps) == 30 and made["gain_while_slow"] > 1.27 and steps[-1]["balance"] < 1.05
    assert "quicktune" in [step["act"] for step in steps]
    assert steps[made["slow_from"]]["seconds"] > 2 * steps[0]["seconds"]
    assert open(svg, encoding="utf-8").read().rstrip().endswith("</svg>")
    assert "quicktune" in good("autotune", "--bytes", "16M", "--chunk", "32K", "--racks", 2)


def main():
    test_help()
    test_refused()
    test_calibrate()
    test_agreement()
    test_best()
    with tempfile.TemporaryDirectory() as folder:
        for test in (test_network, test_accuracy, test_speed, test_autotune):
            test(folder)


if __name__ == "__main__":
    main()
