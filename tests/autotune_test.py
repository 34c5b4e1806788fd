#!/usr/bin/env python3
"""Masters follow a real network: a host of a lab slows down, its masters go; it recovers, they come back.

autotune_test.py ESPALIER STEPS_BENCH

Nothing is a matter of time but what the library itself makes of it: steps are made until what must happen has happened, or there
were too many of them. Every sum of every step is checked by the ranks. Needs a lab (root, or a kernel that lets users have
namespaces); skipped otherwise.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
ESPALIER, STEPS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NAME = f"autotune{os.getpid()}"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
MOST_STEPS = 400
SLOW = 1  # the rank whose host slows down: rack0/1


def lab(command, *words, **more):
    return subprocess.run([ESPALIER, "lab", command, "--name", NAME, *words], env=CLEAN, text=True, **more)


def read_steps(job):
    """Lines of the first rank; anything else is what somebody complains about."""
    for line in job.stdout:
        words = line.rsplit("] ", 1)[-1].strip().split(",")
        if len(words) == 8 and words[0].isdigit():
            yield {"step": int(words[0]), "retunes": int(words[2]), "bytes": [int(word) for word in words[4:]]}
        else:
            print(line, end="")


def wait_for(steps, what, is_so):
    for step in steps:
        if is_so(step):
            print(f"{what}: step {step['step']}, bytes {step['bytes']}")
            return step
    raise SystemExit(f"failed: {what} did not happen in {MOST_STEPS} steps")


def is_relieved(step):
    return step["bytes"][SLOW] * 10 < max(step["bytes"]) * 8


def is_balanced(step):
    return max(step["bytes"]) * 100 < min(step["bytes"]) * 105


def run(topology, plan):
    words = [ESPALIER, "lab", "run", "--name", NAME, "--env", f"ESP_TOPOLOGY={topology}", "--env", "ESP_AUTOTUNE_MS=200", "--",
             STEPS, "--steps", str(MOST_STEPS), "--bytes", str(512 << 10), *plan]
    with subprocess.Popen(words, env=CLEAN, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        try:
            steps = read_steps(job)
            wait_for(steps, "five steps", lambda step: step["step"] == 5)
            lab("set", "rack0/1", "rate", "10mbit", check=True)
            wait_for(steps, "the slow host has less to do", lambda step: step["retunes"] > 0 and is_relieved(step))
            lab("set", "rack0/1", "rate", "50mbit", check=True)
            wait_for(steps, "all have the same to do again", is_balanced)
        finally:
            job.terminate()


def main():
    made = lab("up", "--racks", "2", "--hosts", "2", "--rate", "50mbit", "--oversubscribe", "2", "--no-check", stdout=subprocess.PIPE,
               stderr=subprocess.STDOUT)
    if made.returncode != 0:
        print(f"no lab can be made: {made.stdout.strip()}")
        return SKIPPED
    try:
        with tempfile.TemporaryDirectory() as folder:
            topology = pathlib.Path(folder) / "topology"
            topology.write_text(lab("topology", stdout=subprocess.PIPE, check=True).stdout, encoding="utf-8")
            run(topology, ["--plan", "two-level"])
            run(topology, [])  # a ring or the like, until a host is slow
    finally:
        lab("down", stdout=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
