"""espalier sim fabric as a user sees it: sim_fabric_cli_test.py ESPALIER"""

import json
import os
import subprocess
import sys

ESPALIER = os.path.abspath(sys.argv[1])
SMALL = ("--hosts", "4", "--per-host", "1", "--seeds", "1", "--seconds", "20")


def run(*words, status=0):
    done = subprocess.run([ESPALIER, "sim", "fabric", *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def check_run():
    ways = {way["way"]: way for way in json.loads(run("run", *SMALL, "--ablation", "--json"))["ways"]}
    assert len(ways) == 10, sorted(ways)
    for name, way in ways.items():
        assert way["updates_per_second"] > 0 and way["seconds"] > 0, way
        if way["delay_bound"] is not None:
            assert way["delay_most"] <= way["delay_bound"], way
            assert way["updates_per_second"] <= way["updates_per_second_bound"] * 1.05, (name, way)
    assert run("run", *SMALL, "--json") == run("run", *SMALL, "--json")
    assert "chains, two in flight" in run("run", *SMALL)


def check_advise():
    even = json.loads(run("advise", *SMALL, "--weather", "N0", "--stragglers", "C0", "--json"))
    assert not even["asynchronous"] and "Stay synchronous" in even["advice"], even
    uneven = json.loads(run("advise", "--hosts", "8", "--per-host", "1", "--seeds", "1", "--seconds", "20", "--compute-ms", "1000",
                            "--weather", "N0", "--stragglers", "C2", "--json"))
    assert uneven["asynchronous"] and "Go asynchronous" in uneven["advice"], uneven["advice"]
    assert uneven["rate_factor"] > 1 and uneven["delay_bound"] > 0
    text = run("advise", "--model", "resnet-50", *SMALL)
    assert "resnet-50: 102.2 MB" in text and "Updates needed" in text


def check_refused():
    assert "did you mean" in run("advice", status=2)
    assert "64 workers" in run("run", "--hosts", "40", status=2)
    assert "out of range" in run("run", "--gbps", "0", status=2)
    assert "no model" in run("advise", "--model", "resnet-51", status=2)
    assert "--weather" in run("run", "--weather", "N9", status=2)
    assert "usage:" in run("advise", "--help")


check_run()
check_advise()
check_refused()
