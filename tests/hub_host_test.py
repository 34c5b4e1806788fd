#!/usr/bin/env python3
"""Workers that share a host push to a parameter hub as a set, through one of them.

hub_host_test.py ESPALIER PROGRAM EXAMPLE [SLOW]

PROGRAM is hub_host_program; SLOW a library that makes it slow to reserve memory. As in hub_cli_test.py, nothing here sleeps to wait.
"""
import itertools
import os
import re
import subprocess
import sys
import time

import hub_cli_test as cli

SETS = {4: ("0,1,2,3", "0,2", "1,3", "2,3", "0", "1,2,3"), 7: ("0,3,6", "1,2,4,5"), 1: ("0",)}


def play(it, what, workers, shares, *words, **options):
    return cli.run(it.create("job", "--replace", workers=workers, optimizer="avg"), cli.PROGRAM, what, shares, *words, workers=workers,
                   **options)


HUBS = {"bits": ["--apart"], "read": []}  # how the sums of a set come to a hub on the same machine


def test_bits_and_bytes():
    for what, options in HUBS.items():
        with cli.hub(*options) as it:
            for workers, sets in SETS.items():
                for shares in sets:
                    status, out, err = play(it, what, workers, shares)
                    assert status == cli.OK and out.count("good") == workers, (what, shares, out, err)


def test_map():
    for options in HUBS.values():
        with cli.hub(*options) as it:
            for shares in ("0,1,2,3", "1,3"):
                status, out, err = play(it, "map", 4, shares)
                assert status == cli.OK and out.count("good") == 4, (shares, out, err)


def test_member_ends():
    """Whoever of a set ends, dead or not, all others are told its name: the pusher, another member, and a worker on its own."""
    with cli.hub() as it:
        for shares, what, culprit in itertools.product(("0,1,2,3", "1,2,3", "0,2"), ("die", "leave"), range(4)):
            status, out, err = play(it, what, 4, shares, culprit)
            found = re.findall(rf"round: .*worker {culprit} ", err)
            assert status != cli.OK and len(found) == 3, (what, shares, culprit, out, err)
            it.until(lambda: it.job("job")["state"] == "idle")
        assert it.status()["memory_taken_bytes"] == 0


def test_member_is_absent():
    with cli.hub() as it:
        for shares, culprit in (("0,1,2,3", 2), ("0,1,2,3", 0), ("1,2", 2)):
            status, out, err = play(it, "absent", 4, shares, culprit, deadline_seconds=1)
            assert status != cli.OK and re.search(rf"round: .*deadline.* waits for .*worker {culprit} on \S+ \(process", err), (out, err)


def shared_files(pid):
    """Descriptors, and mapped memory of the kind that workers of a host share."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return len(os.listdir(f"/proc/{pid}/fd")), maps.read().count("espalier-hub")


def test_hub_keeps_nothing():
    with cli.hub() as it:
        play(it, "read", 4, "0,1,2,3")
        it.until(lambda: it.job("job")["state"] == "idle")
        before = shared_files(it.process.pid)
        for _ in range(20):
            assert play(it, "read", 4, "0,1")[0] == cli.OK
        it.until(lambda: it.job("job")["state"] == "idle")
        assert shared_files(it.process.pid) == before and before[1] == 0, before


def test_slow_to_declare():
    """A worker may build its model for longer than a dead one is waited for, and the others wait as long."""
    with cli.hub() as it:
        ticket = it.create("job", workers=2, optimizer="avg")

        workers = [cli.begin(ticket, rank, "late", "0,1", 1) for rank in range(2)]
        it.until(lambda: it.job("job")["joined"] == 2)
        began = it.status()["uptime_seconds"]
        it.until(lambda: it.status()["uptime_seconds"] > began + 12)
        for worker in reversed(workers):  # communicate() ends its input
            out, err = worker.communicate(timeout=cli.PATIENCE)
            assert worker.returncode == cli.OK and out == "good\n", (out, err)


def test_slow_to_reserve():
    """A pusher may take longer for the memory of its set than a dead one is waited for."""
    slow = {} if cli.has_sanitizer(cli.ESPALIER) or len(sys.argv) < 5 else {"LD_PRELOAD": os.path.abspath(sys.argv[4])}
    with cli.hub("--silence", 1) as it:
        ticket = it.create("job", workers=2, optimizer="avg")
        workers = [cli.begin(ticket, rank, "read", "0,1", **slow) for rank in range(2)]
        for worker in workers:
            out, err = worker.communicate(timeout=cli.PATIENCE)
            assert worker.returncode == cli.OK and out == "good\n", (out, err)


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print(f"{name}: {time.monotonic() - began:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
