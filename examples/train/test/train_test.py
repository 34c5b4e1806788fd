#!/usr/bin/env python3
"""The training and its command from outside: exit statuses, JSON, the same bits twice, and a proof that can fail.

train_test.py ESPALIER TRAIN HELLO
"""
import glob
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
ESPALIER, TRAIN, HELLO = sys.argv[1:4]
SECONDS = 120  # for anything here: a job that hangs should not wait for the test's own limit
TINY = ["--samples", "128", "--epochs", "2", "--batch", "8"]


def start(words, **streams):
    """Runs a job; one that takes too long is ended with all its ranks."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
    with subprocess.Popen(words, text=True, env=clean, start_new_session=True, **streams) as job:
        try:
            out, err = job.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            raise
    return job.returncode, out, err


def run(*words):
    return start(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def train(ranks, *words):
    return run(ESPALIER, "run", "--no-prefix", "-n", ranks, "--", TRAIN, *words)


def document(ranks, *words, status=OK):
    got, out, err = train(ranks, *TINY, "--json", *words)
    assert got == status, (words, got, out, err)
    return json.loads(out)


def curves(report):
    """What has to be the same from run to run."""
    return [(plan["plan"], plan["epochs"], plan["hashes"]) for plan in report["plans"]]


def test_hello():
    status, out, err = run(ESPALIER, "run", "--no-prefix", "-n", 3, "--", HELLO)
    assert status == OK and err == "", (status, out, err)
    lines = sorted(out.splitlines())
    assert lines == [f"rank {r} of 3: 3 ranks, their numbers add up to 3" for r in range(3)], lines


def test_json_and_determinism():
    plans = ["default", "ring", "flat"]
    report = document(3, "--plans", ",".join(plans))
    assert report["ranks"] == 3 and report["identical"] is True and report["seed"] == 1
    assert report["samples"] == 126 and report["steps"] == 126 // 3 // 8
    assert [plan["plan"] for plan in report["plans"]] == plans
    for plan in report["plans"]:
        assert len(plan["hashes"]) == 3 and len(set(plan["hashes"])) == 1 and plan["identical"] is True, plan
        assert [epoch["epoch"] for epoch in plan["epochs"]] == [1, 2]
        assert plan["epochs"][1]["loss"] < plan["epochs"][0]["loss"] < 3, plan
        assert plan["planner"] in (plan["plan"], report["plans"][0]["planner"]) and plan["planner"] != "", plan
        seconds = plan["seconds"]
        assert 0 < seconds["waiting"] < seconds["total"] and seconds["compute"] > 0, seconds
        assert 0 < seconds["in_flight"] <= seconds["total"] and seconds["communication_cpu"] < seconds["cpu"], seconds
        assert plan["bytes"]["sent"] > 0 and plan["bytes"]["messages"] > 0, plan
        assert plan["bytes"]["sent"] / 3 <= plan["bytes"]["busiest"] <= plan["bytes"]["sent"], plan
    # The order of addition is the plan's, so the plans agree nearly, but each with itself to the last bit.
    losses = [plan["epochs"][0]["loss"] for plan in report["plans"]]
    assert max(losses) - min(losses) < 1e-3, losses
    assert curves(document(3, "--plans", ",".join(plans))) == curves(report)
    assert curves(document(3, "--plans", "ring"))[0] == curves(report)[1], "a plan does not depend on its company"
    assert curves(document(3, "--plans", "ring", "--seed", 2)) != curves(document(3, "--plans", "ring"))


def test_other_numbers_of_ranks():
    for ranks in (1, 2, 4):
        report = document(ranks, "--plans", "default")
        assert report["ranks"] == ranks and report["identical"] is True


def test_corrupt():
    for rank in (0, 2):
        report = document(3, "--plans", "flat,ring", "--corrupt", rank, status=NO)
        assert report["identical"] is False
        assert [plan["identical"] for plan in report["plans"]] == [True, False]
        hashes = report["plans"][1]["hashes"]
        assert hashes.count(hashes[rank]) == 1 and len(set(hashes)) == 2, hashes
    status, out, _ = train(3, *TINY, "--plans", "ring", "--corrupt", 1)
    assert status == NO and "DIFFERENT: plan ring: rank 1 " in out and out.count("DIFFERENT") == 1, out
    assert re.search(r"^    1  ![0-9a-f]{16}$", out, re.MULTILINE), out


def test_tables_and_progress():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.json")
        status, out, err = train(2, *TINY, "--plans", "ring,tree", "--json", path)
        assert status == OK, (status, err)
        report = json.loads(path.read_text())
        for plan in report["plans"]:
            assert out.count(plan["hashes"][0]) >= 2, (plan, out)
        assert "bit-identical" in out and "Loss on the training set" in out
        lines = err.splitlines()
        assert len(lines) == 2 and lines[1].startswith("epoch 2 of 2: loss "), err


def test_terminal():
    """The progress line is rewritten in place, and gone at the end."""
    main, side = pty.openpty()
    start([ESPALIER, "run", "--no-prefix", "-n", "2", "--", TRAIN, *TINY, "--plans", "ring"], stdin=side, stderr=side,
          stdout=subprocess.DEVNULL)
    os.close(side)
    text = b""
    try:
        while chunk := os.read(main, 4096):
            text += chunk
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert b"\repoch " in text and text.endswith(b"\r\x1b[K") and b"\n" not in text, text


def test_mistakes():
    status, out, err = train(2, "--help")
    assert status == OK and out.count("usage: train") == 1, (status, out, err)
    for words, says in [(["--epocs", "1"], "unknown option '--epocs'"), (["--samples", "8"], "is not a batch of 32"),
                        (["--corrupt", "2"], "--corrupt 2: there are 2 ranks")]:
        status, out, err = train(2, *words)
        assert status == USAGE and out == "" and err.count(says) == 1, (words, status, out, err)
    status, _, err = train(2, *TINY, "--plans", "no-such-plan")
    assert status == NO and "esp_prepare: " in err and "no-such-plan" in err, (status, err)
    status, _, err = train(2, *TINY, "--json", "/no/such/folder/file")
    assert status == NO and "train: rank 0: cannot write to /no/such/folder/file" in err, (status, err)


def test_demo():
    status, out, err = run(ESPALIER, "demo", "-n", 2, *TINY, "--plans", "flat")
    assert status == OK and "all 2 ranks hold bit-identical weights" in out, (status, out, err)
    status, out, err = run(ESPALIER, "demo", "-n", 2, *TINY, "--plans", "flat", "--json", "-", "--corrupt", 1)
    assert status == NO and json.loads(out)["identical"] is False, (status, out, err)
    status, _, err = run(ESPALIER, "demo", "-n", 2, "--epochs", "0")
    assert status == USAGE and "--epochs: '0' is not a whole number" in err, (status, err)
    # Every option of the program is one of the command.
    status, out, _ = run(ESPALIER, "demo", "--help")
    for option in re.findall(r"^  (--\w+)", run(TRAIN, "--help")[1], re.MULTILINE):
        assert option in out, option


def test_compiles_alone():
    """As the README says: without the project's flags and include folders."""
    folder = pathlib.Path(__file__).resolve().parents[1]
    include = folder.parents[1] / "include"
    for sources in (glob.glob(f"{folder}/*.c"), [folder.parent / "hello.c"]):
        done = subprocess.run(["cc", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-fsyntax-only",
                               f"-I{include}", *sources], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
