#!/usr/bin/env python3
"""espalier sim run from outside: its JSON, its traces, its messages about bad input.

sim_train_cli_test.py ESPALIER
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
ESPALIER = sys.argv[1]
MECHANISMS = ["server", "aggregation", "multicast", "multicast+aggregation", "ring", "ring-whole", "ring+multicast", "butterfly",
              "halving-doubling", "double-tree", "two-level", "hub"]
MODELS = ["inception-v3", "vgg-16", "resnet-101", "resnet-200"]


def run(*words):
    done = subprocess.run([ESPALIER, "sim", *map(str, words)], capture_output=True, text=True)
    assert done.returncode in (OK, NO, USAGE), (words, done)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = run(*words)
    assert status == OK and err == "", (words, status, err)
    return out


def document(*words):
    return json.loads(good(*words, "--json"))


def refused(*words, status=USAGE, says):
    got, out, err = run(*words)
    assert got == status and out == "", (words, got, out, err)
    assert says in err and err.startswith("espalier: sim ") and err.count("\n") == 1, (words, err)


def near(a, b, share):
    return abs(a / b - 1) <= share


def test_run():
    said = document("run", "--model", "vgg-16", "--workers", 8, "--gbps", 25)
    assert said["model"] == "vgg-16" and said["set"] == "calibrated" and said["workers"] == 8 and said["gbps"] == 25
    results = {entry["mechanism"]: entry for entry in said["results"]}
    assert list(results) == MECHANISMS
    size = 205470505 * 4
    second = 25e9 / 8
    assert near(results["server"]["iteration_s"], 2 * 8 * size / second, 0.01)
    assert near(results["ring"]["iteration_s"], 0.169 + 2 * 7 / 8 * size / second, 0.01)
    for entry in results.values():
        assert near(entry["speedup"], results["server"]["iteration_s"] / entry["iteration_s"], 1e-9)
    assert results["server"]["bytes"]["host_out"] == results["server"]["bytes"]["host_in"] == 16 * size
    assert results["ring"]["bytes"]["host_out"] == 14 * size
    assert results["multicast"]["bytes"]["host_out"] == 9 * size
    for entry in results.values():
        assert entry["bytes"]["rack_out"] == entry["bytes"]["rack_in"] == 0, entry
    # One alone is the same, and speedups are relative to the servers all the same.
    alone = document("run", "--model", "vgg-16", "--workers", 8, "--mechanism", "ring")["results"]
    assert alone == [results["ring"]]


def test_options():
    def seconds(*words, mechanism="server", model="resnet-101"):
        return document("run", "--model", model, "--workers", 8, "--mechanism", mechanism, *words)["results"][0]["iteration_s"]

    plain = seconds()
    assert seconds("--compute", 1) == plain and seconds("--compute", 4) < plain
    assert near(seconds("--iterations", 3), plain, 1e-9)
    once, thrice = (document("run", "--model", "vgg-16", "--workers", 4, "--mechanism", "ring", "--iterations", n)["results"][0] for n in (1, 3))
    assert once["messages"] == thrice["messages"] and once["bytes"] == thrice["bytes"]
    assert seconds("--gbps", 100) < plain < seconds("--gbps", 5)
    assert seconds("--servers", 4) < plain and seconds("--servers", 4, "--even-split") < seconds("--servers", 4)
    assert seconds("--block") != plain and seconds("--no-barrier") != plain and seconds("--seed", 3) != plain
    assert seconds("--set", "public") < plain
    assert near(seconds("--fluid"), plain, 0.1)
    assert near(seconds("--split", 8), plain, 0.04)
    late = seconds("--delay", "50us")
    assert late > plain and seconds("--delay", 50) == seconds("--delay", "0.05ms") == late
    assert seconds("--cut-through", mechanism="aggregation") <= seconds(mechanism="aggregation")
    assert seconds(model="bert-large", mechanism="ring") < seconds(model="bert-large")
    assert document("run", "--model", "bert-large", "--workers", 2, "--mechanism", "ring")["times_assumed"] is True
    slow = document("run", "--model", "resnet-101", "--workers", 16, "--racks", 4, "--oversubscribe", 8, "--gbps", 5)
    results = {entry["mechanism"]: entry for entry in slow["results"]}
    assert results["two-level"]["iteration_s"] < results["butterfly"]["iteration_s"]
    assert results["two-level"]["bytes"]["rack_out"] < results["ring-whole"]["bytes"]["rack_out"]


def test_what_of():
    """The first line and the JSON say what a result is of, all that is not as usual."""
    model = ("--model", "vgg-16", "--workers", 4, "--mechanism", "ring")
    for command in ("run", "advise"):
        line = good(command, *model).split("\n")[0]
        assert line == "vgg-16 (calibrated values), 4 workers, 25 Gbps", line
        said = document(command, *model)
        assert said["racks"] == said["oversubscribe"] == said["servers"] == said["compute"] == 1 and said["server_gbps"] == 25
        assert said["barrier"] is True and not (said["fluid"] or said["even_split"] or said["block"] or said["cut_through"])
        unusual = ("--racks", 2, "--oversubscribe", 4, "--servers", 3, "--compute", 2, "--fluid", "--no-barrier", "--server-gbps", 50)
        line = good(command, *model, *unusual).split("\n")[0]
        assert line == ("vgg-16 (calibrated values), 4 workers, 25 Gbps, 50 Gbps at servers, 2 racks, oversubscribed 4:1, 3 servers, computing 2x, "
                        "no barrier, fluid"), line
        assert said["iterations"] == 1 and said["batch"] == 32 and "accelerator" not in said and "value_bytes" not in said
        others = ("--accelerator", "v100-fp32", "--batch", 64, "--value-bytes", 2, "--iterations", 2)
        line = good(command, *model, *others).split("\n")[0]
        assert line == ("vgg-16 (calibrated values, times assumed), 4 workers, 25 Gbps, accelerator v100-fp32, batch 64, 2 bytes a value, "
                        "2 iterations"), line
        said = document(command, *model, *others)
        assert (said["accelerator"], said["batch"], said["value_bytes"], said["iterations"]) == ("v100-fp32", 64, 2, 2)
        said = document(command, *model, *unusual)
        assert (said["racks"], said["oversubscribe"], said["servers"], said["compute"], said["server_gbps"]) == (2, 4, 3, 2, 50)
        assert said["fluid"] is True and said["barrier"] is False


def test_notes():
    """What a seed does and does not, what was not recorded; numbers as people write them."""
    def text(*words):
        return good("run", "--workers", 4, "--mechanism", "server", *words)
    assert "The seed changes nothing" in text("--model", "resnet-50", "--seed", 3)
    assert "The seed changes nothing" not in text("--model", "resnet-101", "--seed", 3)
    assert "seed" not in text("--model", "resnet-50")
    assert "The oversubscription changes nothing" in text("--model", "resnet-50", "--oversubscribe", 4)
    assert "changes nothing" not in text("--model", "resnet-50", "--oversubscribe", 4, "--racks", 2)
    drawn = [document("run", "--model", "resnet-50", "--workers", 4, "--mechanism", "ring", "--jitter", 0.5, "--seed", seed) for seed in (1, 2)]
    assert "notes" not in drawn[0] and drawn[0]["results"][0]["iteration_s"] != drawn[1]["results"][0]["iteration_s"]
    plain = document("run", "--model", "resnet-50", "--workers", 4, "--mechanism", "ring", "--seed", 1)
    assert "notes" in plain and plain["results"][0]["iteration_s"] < min(said["results"][0]["iteration_s"] for said in drawn)
    assert not re.search(r"\de[-+]", good("run", "--model", "vgg-16", "--workers", 4, "--gbps", 10, "--json"))
    with tempfile.TemporaryDirectory() as folder:
        traces = pathlib.Path(folder, "t")
        good("traces", "make", "vgg-16", traces, "--workers", 2)
        assert "Recorded" not in good("run", "--traces", traces, "--workers", 2, "--mechanism", "ring")
        more = good("run", "--traces", traces, "--workers", 3, "--iterations", 10, "--mechanism", "ring")
        assert "Recorded are 2 of 3 workers and 1 of 10 iterations; 28 of 30 iterations of a worker are drawn" in more, more
        said = document("run", "--traces", traces, "--workers", 3, "--mechanism", "ring")
        assert (said["recorded_workers"], said["recorded_iterations"], said["drawn"]) == (2, 1, 1) and "drawn" in said["notes"]
        assert "changes nothing" in good("run", "--traces", traces, "--workers", 2, "--mechanism", "ring", "--seed", 5)
        lines = (traces / "distribution-0.csv").read_text().splitlines(keepends=True)
        (traces / "distribution-0.csv").write_text("".join(lines[:5] + lines[6:]))
        refused("run", "--traces", traces, status=NO, says="has no parameter in distribution-0.csv")
        (traces / "distribution-0.csv").write_text("".join(lines))
        (traces / "model.json").write_text((traces / "model.json").read_text().replace('"forward_share"', '"forward_shares"'))
        refused("run", "--traces", traces, status=NO, says="there is no key 'forward_shares'; did you mean")


def test_large():
    """A parameter of more than 1 GiB is no message: what sends it whole is left out, with the reason, and --split helps."""
    weights = {"count": 300 << 20, "forward_order": 0, "forward_share": 1, "grad_ready": 1}
    model = {"format": "espalier-model-1", "name": "large", "batch": 1, "value_bytes": 4,
             "times": {"forward_s": 0.1, "backward_s": 0.2, "source": "made up"}, "parameters": [{"name": "w", "variable": 0, **weights}]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "large.json")
        path.write_text(json.dumps(model))
        results = document("run", "--model", path, "--workers", 4)["results"]
        assert {r["mechanism"] for r in results if "reason" in r} == {"server", "aggregation", "multicast", "multicast+aggregation", "ring-whole", "butterfly"}
        assert all("more messages of a parameter" in r["reason"] for r in results if "reason" in r), results
        refused("run", "--model", path, "--workers", 4, "--mechanism", "server", status=NO, says="more messages of a parameter")
        assert not any("reason" in r for r in document("run", "--model", path, "--workers", 4, "--split", 2)["results"])


def test_same_bytes():
    words = ("run", "--model", "inception-v3", "--workers", 16, "--seed", 5, "--json")
    assert good(*words) == good(*words)
    assert good(*words) != good("run", "--model", "inception-v3", "--workers", 16, "--seed", 6, "--json")


def check_arrows(events, slices):
    """Every message has an arrow, from a slice on its way out to one on its way in, not backwards in time."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    begins = {(e["pid"], e["tid"], e["ts"]) for e in slices}
    starts, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "sf")
    assert starts.keys() == ends.keys() and len(starts) == sum(e["ph"] == "s" for e in events)
    for number, start in starts.items():
        end = ends[number]
        assert names[start["pid"], start["tid"]].startswith("out") and names[end["pid"], end["tid"]].startswith("in"), (start, end)
        assert {(e["pid"], e["tid"], e["ts"]) for e in (start, end)} <= begins and end["ts"] >= start["ts"], (start, end)
        assert start["pid"] != end["pid"], start
    led_to = {(e["pid"], e["tid"], e["ts"]) for e in ends.values()}
    came = {(e["pid"], e["tid"], e["ts"]) for e in slices if names[e["pid"], e["tid"]].startswith("in")}
    assert led_to == came


def test_trace():
    with tempfile.TemporaryDirectory() as folder:
        for mechanism in ("server", "multicast+aggregation", "ring", "hub"):
            path = pathlib.Path(folder, mechanism)
            good("run", "--model", "vgg-16", "--workers", 4, "--mechanism", mechanism, "--trace", path)
            events = json.loads(path.read_text())
            slices = [event for event in events if event["ph"] == "X"]
            names = {event["name"] for event in slices}
            assert "forward" in names and "backward" in names and any(name.startswith("fc6/weights") for name in names), names
            tracks = {}
            for event in slices:
                assert event["dur"] >= 0
                tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
            for spans in tracks.values():
                spans.sort()
                assert all(a[1] <= b[0] + 1e-3 for a, b in zip(spans, spans[1:]))
            check_arrows(events, slices)
            processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
            assert {"worker 0", "worker 3"} <= processes and not any("switch" in name for name in processes)
        # A NIC sends one message at a time at its rate, whoever gets it first: out tracks are as exact as the network.
        for mechanism in MECHANISMS:
            good("run", "--model", "alexnet", "--workers", 4, "--servers", 2, "--gbps", 10, "--mechanism", mechanism, "--trace", path)
            events = json.loads(path.read_text())
            tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
            spans = {}
            for event in (event for event in events if event["ph"] == "X"):
                assert event["dur"] >= 0, (mechanism, event)
                if tracks[event["pid"], event["tid"]] == "out":
                    assert abs(event["dur"] - event["args"]["bytes"] * 8 / 10e3) < 1e-3, (mechanism, event)
                    spans.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"]))
            assert len(spans) >= 4
            for sent in spans.values():
                sent.sort()
                assert all(a[1] <= b[0] + 1e-3 for a, b in zip(sent, sent[1:])), mechanism
        # Connections that share links have tracks of their own.
        for mechanism in ("server", "aggregation", "halving-doubling", "hub"):
            good("run", "--model", "alexnet", "--workers", 4, "--servers", 2, "--fluid", "--mechanism", mechanism, "--trace", path)
            events = json.loads(path.read_text())
            names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
            assert "compute" in names and any(name.startswith("out to ") for name in names) and "out" not in names, names
            tracks = {}
            for event in (event for event in events if event["ph"] == "X"):
                assert event["dur"] >= 0, (mechanism, event)
                tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
            for spans in tracks.values():
                spans.sort()
                assert all(a[1] <= b[0] + 1e-3 for a, b in zip(spans, spans[1:])), mechanism
        # What failed leaves no file.
        refused("run", "--model", "no-such", "--mechanism", "ring", "--trace", pathlib.Path(folder, "no"), status=NO, says="no-such")
        assert not pathlib.Path(folder, "no").exists()


def test_topology_and_traces():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "racks")
        path.write_text(good("topology", "--hosts", 12, "--racks", 2, "--gbps", 10, "--oversubscribe", 2))
        said = document("run", "--model", "vgg-16", "--workers", 8, "--topology", path)
        assert said["topology"] == str(path) and "gbps" not in said
        assert all("iteration_s" in entry for entry in said["results"])
        # A host for each worker: servers and hubs share them.
        crowded = document("run", "--model", "vgg-16", "--workers", 12, "--topology", path)
        assert all(entry["iteration_s"] > 0 for entry in crowded["results"])
        few = "too few hosts: 13 workers need 13, and the topology has 12; take fewer workers (--workers 12) or add hosts to it"
        refused("run", "--model", "vgg-16", "--workers", 13, "--topology", path, "--mechanism", "server", status=NO, says=few)
        refused("run", "--model", "vgg-16", "--workers", 13, "--topology", path, status=NO, says=few)
        path.write_text("topology 1\nswitch core\nnonsense\n")
        refused("run", "--model", "vgg-16", "--topology", path, status=NO, says=f"{path}: line 3")
        seen = pathlib.Path(folder, "seen")
        good("traces", "make", "resnet-101", seen, "--workers", 4, "--servers", 2)
        said = document("run", "--traces", seen, "--workers", 6, "--mechanism", "server")
        assert said["servers"] == 2 and said["traces"] == str(seen) and said["results"][0]["iteration_s"] > 0
        (seen / "distribution-1.csv").rename(seen / "away")
        refused("run", "--traces", seen, "--workers", 4, status=NO, says="worker-0-0.csv:")
        refused("traces", "show", seen, status=NO, says="'server1' is no server")
        (seen / "away").rename(seen / "distribution-1.csv")
        worker = seen / "worker-1-0.csv"
        worker.write_text(worker.read_text() + "x,y\n")
        refused("run", "--traces", seen, status=NO, says="worker-1-0.csv")


def test_refused():
    refused("run", says="--model")
    for option in ("--gbps", "--server-gbps", "--racks", "--oversubscribe", "--delay"):
        for command in ("run", "advise", "sweep"):
            refused(command, "--model", "vgg-16", "--topology", "x", option, 2, says=option + " is for one that is made")
    refused("run", "--model", "vgg-16", "--delay", "5parsecs", says="--delay is a time such as 5us")
    refused("run", "--model", "vgg-16", "--delay", "-5", says="--delay is a time such as 5us")
    refused("run", "--model", "vgg-16", "--jitter", "-1", says="--jitter")
    refused("run", "--model", "vgg-16", "--traces", "x", says="--model")
    refused("run", "--traces", "x", "--batch", 3, says="--batch")
    refused("run", "--model", "vgg-16", "--mechanism", "rng", says="ring")
    refused("run", "--model", "vgg-16", "--gbps", 0, says="--gbps")
    refused("run", "--model", "vgg-16", "--gbps", "nan", says="gbps")
    refused("run", "--model", "vgg-16", "--gbps", 2e6, says="--gbps is a rate from 0.000001 to 1000000")
    refused("run", "--model", "vgg-16", "--gbps", 1e-7, says="--gbps is a rate from 0.000001 to 1000000")
    refused("advise", "--model", "vgg-16", "--server-gbps", -1, says="--server-gbps is a rate from 0.000001 to 1000000")
    refused("run", "--model", "vgg-16", "--compute", -1, says="compute")
    # Where nothing can be run there is nothing to print.
    refused("run", "--model", "vgg-16", "--workers", 4, "--racks", 9, status=NO, says="no mechanism can be run: 9 racks for 4 workers")
    refused("run", "--model", "vgg-16", "--workers", 4, "--racks", 9, "--json", status=NO, says="9 racks for 4 workers")
    refused("run", "--model", "vgg-16", "--no-barrier", "--iterations", 1, says="two iterations")
    refused("run", "--model", "vgg-16", "--trace", "x", says="--mechanism")
    refused("run", "--model", "vgg-61", status=NO, says="vgg-16")
    refused("run", "--model", "vgg-16", "--workers", 0, says="workers")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
