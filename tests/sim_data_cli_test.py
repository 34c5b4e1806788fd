"""What a user of espalier sim sees of models, traces, recording, sweeps and advice: sim_data_cli_test.py ESPALIER TRAIN"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ESPALIER, TRAIN = (os.path.abspath(path) for path in sys.argv[1:3])


def run(*words, status=0, cwd=None):
    done = subprocess.run([ESPALIER, "sim", *words], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == status, f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def check_models():
    models = {model["name"]: model for model in json.loads(run("models", "--json"))["models"]}
    assert len(models) == 11, sorted(models)
    assert models["resnet-50"]["bytes"] == 4 * 25557032
    assert models["vgg-16"]["forward_s"] == 0.169 and not models["vgg-16"]["times_assumed"]
    faster = json.loads(run("models", "resnet-50", "--accelerator", "157T", "--json"))["models"][0]
    assert abs(models["resnet-50"]["forward_s"] / faster["forward_s"] - 20) < 1e-9
    assert "did you mean vgg-16?" in run("models", "vgg-1", status=1)
    # What cannot be shown whole is not begun.
    done = subprocess.run([ESPALIER, "sim", "models", "vgg-16", "vgg-1", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "", done
    assert "neither an accelerator" in run("models", "--accelerator", "abacus", status=2)
    assert "inception-v3" in run("models")


def check_traces(folder):
    run("traces", "make", "inception-v3", "a", "--workers", "3", "--servers", "2", "--jitter", "0.1", cwd=folder)
    run("traces", "make", "inception-v3", "same", "--workers", "3", "--servers", "2", "--jitter", "0.1", cwd=folder)
    for name in sorted(os.listdir(os.path.join(folder, "a"))):
        with open(os.path.join(folder, "a", name), "rb") as one, open(os.path.join(folder, "same", name), "rb") as other:
            assert one.read() == other.read(), name
    run("traces", "add", "a", "b", "--module", "network", "--count", "2", cwd=folder)
    run("traces", "scale", "b", "c", "--compute", "4", cwd=folder)
    plain, wide, fast = (json.loads(run("traces", "show", name, "--json", cwd=folder)) for name in "abc")
    assert plain["worker_files"] == 3 and plain["servers"] == 2 and plain["parameters"] == 196
    assert wide["parameters"] == 196 + 2 * 20 and wide["aggregated_bytes"] > plain["aggregated_bytes"]
    assert abs(wide["last_gradient_s"] / fast["last_gradient_s"] - 4) < 1e-9
    # A model and the traces that it would have left take the same time.
    run("traces", "make", "resnet-101", "d", "--workers", "8", "--servers", "2", "--set", "calibrated", cwd=folder)
    common = ("--workers", "8", "--servers", "2", "--json")
    left = json.loads(run("run", "--traces", "d", *common, cwd=folder))["results"]
    right = json.loads(run("run", "--model", "resnet-101", "--set", "calibrated", *common))["results"]
    for one, other in zip(left, right, strict=True):
        assert abs(one["iteration_s"] / other["iteration_s"] - 1) < 1e-9, (one, other)
    assert "is not empty" in run("traces", "make", "vgg-16", "a", status=1, cwd=folder)
    path = os.path.join(folder, "a", "worker-1-0.csv")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    lines[7] = lines[7].replace(",", ";", 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    assert "worker-1-0.csv:8: 4 fields instead of 5" in run("traces", "show", "a", status=1, cwd=folder)


def check_record(folder):
    out = run("record", "-n", "2", "-o", "seen", "--steps", "5", "--", TRAIN, "--epochs", "1", "--samples", "1024", "--plans", "default",
              cwd=folder)
    assert "5 steps of 4 calls" in out, out
    with open(os.path.join(folder, "seen", "worker-1-4.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and float(rows[0]["time_s"]) == 0 and rows[3]["source"] == "worker1", rows
    shown = json.loads(run("traces", "show", "seen", "--json", cwd=folder))
    assert shown["worker_files"] == 10 and shown["aggregated_bytes"] == sum(int(row["bytes"]) for row in rows)
    simulated = json.loads(run("run", "--traces", "seen", "--workers", "8", "--json", cwd=folder))
    assert simulated["workers"] == 8 and all(row["iteration_s"] > 0 for row in simulated["results"] if "reason" not in row)
    assert "left no trace" in run("record", "-n", "1", "-o", "none", "--", "true", status=1, cwd=folder)
    assert "it is no trace" in run("record", "-o", "none", __file__, status=1)
    assert "say where to write" in run("record", "-n", "1", "--", "true", status=2)
    assert not os.path.exists(os.path.join(folder, "none"))


def check_sweep(folder):
    words = ["sweep", "--model", "vgg-16", "--over", "gbps", "--values", "10,25", "--mechanism", "server,ring"]
    chart = os.path.join(folder, "chart.svg")
    swept = json.loads(run(*words, "--json", "--svg", chart))
    assert run(*words) == run(*words)
    server, ring = swept["results"]
    assert server["mechanism"] == "server" and ring["mechanism"] == "ring" and swept["values"] == [10, 25]
    # The closed forms: 2 W S / B and fp + 2 (W - 1) / W S / B.
    assert abs(server["iteration_s"][1] - 16.83) < 0.17 and abs(ring["iteration_s"][1] - 0.68) < 0.007, swept
    assert abs(ring["speedup"][0] - server["iteration_s"][0] / ring["iteration_s"][0]) < 1e-9
    root = xml.etree.ElementTree.parse(chart).getroot()
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "Iteration time over bandwidth" in titles and any(text.startswith("ring: ") for text in titles), titles
    assert len(json.loads(run("sweep", "--model", "vgg-16", "--values", "2:16", "--mechanism", "ring", "--json"))["values"]) == 4
    # What stays the same is said, all that is not as usual; what varies is not.
    common = ["sweep", "--model", "vgg-16", "--workers", "8", "--racks", "4", "--oversubscribe", "2", "--fluid", "--mechanism", "ring"]
    for over, left in (("gbps", "8 workers"), ("workers", "25 Gbps"), ("compute", "8 workers, 25 Gbps"), ("servers", "8 workers, 25 Gbps")):
        line = run(*common, "--over", over, "--values", "4,8").split("\n")[0]
        assert line == f"vgg-16 (calibrated values), {left}, 4 racks, oversubscribed 2:1, fluid: seconds of an iteration", line
        said = json.loads(run(*common, "--over", over, "--values", "4,8", "--json"))
        assert over not in said and said["over"] == over and said["racks"] == 4 and said["oversubscribe"] == 2 and said["fluid"] is True, said
    assert "from 0.000001" in run("sweep", "--model", "vgg-16", "--over", "gbps", "--values", "1e-9", status=2)
    assert "increasing numbers" in run("sweep", "--model", "vgg-16", "--values", "8,4", status=2)
    assert "all of them whole" in run("sweep", "--model", "vgg-16", "--values", "1.5", status=2)
    assert "there is no mechanism 'rong'" in run("sweep", "--model", "vgg-16", "--mechanism", "rong", status=2)


def check_advise(folder):
    advice = json.loads(run("advise", "--model", "vgg-16", "--gbps", "10", "--json"))
    first, last = advice["results"][0], advice["results"][-1]
    assert first["mechanism"] == "ring" and first["needs"] == "nothing but software", first
    assert last["mechanism"] == "server" and last["reason"].startswith("the link of server 0 (node32) sends 26.3 GB (21.04 s) and then takes in 26.3 GB (21.04 s)"), last
    assert "; with ring no link is busy for longer than" in last["reason"] and last["busiest_link"]["kind"] == "server", last
    assert all(entry["reason"] in advice["advice"] for entry in advice["results"][:1]) and "The next best, " in advice["advice"]
    racks = json.loads(run("advise", "--model", "vgg-16", "--workers", "16", "--racks", "4", "--oversubscribe", "4", "--gbps", "10", "--json"))
    busiest = {entry["mechanism"]: entry["busiest_link"] for entry in racks["results"]}
    assert busiest["butterfly"]["kind"] == "switch" and busiest["butterfly"]["alike"] == 4, busiest["butterfly"]
    assert busiest["hub"]["kind"] == "hub", busiest["hub"]
    assert advice["twice_network_s"] < advice["twice_compute_s"] < first["iteration_s"]
    prices = os.path.join(folder, "free.json")
    with open(prices, "w", encoding="utf-8") as file:
        json.dump({"aggregation": 1e6}, file)
    priced = json.loads(run("advise", "--model", "resnet-50", "--prices", prices, "--json"))
    costs = {row["mechanism"]: row["cost"] for row in priced["results"]}
    assert priced["by"] == "money" and costs["aggregation"] - costs["server"] == 1e6, costs
    # The same cluster, made or from a file, has the same price.
    made = ["--racks", "4", "--gbps", "100", "--oversubscribe", "4"]
    hall = os.path.join(folder, "hall")
    with open(hall, "w", encoding="utf-8") as file:
        file.write(run("topology", "--hosts", "17", *made))
    words = ["advise", "--model", "vgg-16", "--workers", "16", "--by", "money", "--mechanism", "hub,aggregation,ring", "--json"]
    one, other = (json.loads(run(*words, *network))["results"] for network in (made, ["--topology", hall]))
    assert {row["mechanism"]: row["cost"] for row in one} == {row["mechanism"]: row["cost"] for row in other}, (one, other)
    # Speedups are relative to servers, whether these come into question or not.
    few = json.loads(run("advise", "--model", "vgg-16", "--gbps", "10", "--mechanism", "ring,hub", "--json"))["results"]
    assert few[0]["mechanism"] == "ring" and few[0]["speedup"] == first["speedup"], few
    assert "Use ring" in run("advise", "--model", "vgg-16", "--gbps", "10")
    assert "name a model with --model" in run("advise", status=2)


def check_help():
    for words in (["advise"], ["sweep"], ["models"], ["record"], ["traces"], ["traces", "make"], ["traces", "add"], ["traces", "scale"], ["traces", "show"]):
        assert "usage: espalier sim " + " ".join(words) in run(*words, "--help"), words
    assert "did you mean 'models'?" in run("modles", status=2)
    assert "did you mean 'scale'?" in run("traces", "scael", status=2)


with tempfile.TemporaryDirectory() as scratch:
    check_models()
    check_traces(scratch)
    check_record(scratch)
    check_sweep(scratch)
    check_advise(scratch)
    check_help()
