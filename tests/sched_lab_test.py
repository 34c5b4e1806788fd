#!/usr/bin/env python3
"""Asynchronous updates over real links: sched_lab_test.py ESPALIER PROGRAM.

In an emulated rack, transfers that are given a part of an idle link keep to it within 5 % over a second.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import netns

OK, PATIENCE = 0, 120
ESPALIER, PROGRAM = map(os.path.abspath, sys.argv[1:3])
NAME = f"fabric{os.getpid()}"


def good(*words):
    done = subprocess.run([ESPALIER, *map(str, words)], env=netns.CLEAN, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == OK, (words, done.stdout, done.stderr)
    return done.stdout


def on(host, *words):
    return [ESPALIER, "lab", "exec", "--name", NAME, host, "--", *map(str, words)]


def address_of(host):
    said = subprocess.run(on(host, "ip", "-json", "-4", "address", "show", "scope", "global"), capture_output=True, text=True, check=True)
    return [info["local"] for link in json.loads(said.stdout) for info in link["addr_info"]][0]


def run_job(folder, rate, elements):
    """Two updates of a model of so many elements, and two reads of it; what the scheduler says of the worker's link."""
    host, key, ticket = address_of("rack0/0"), folder / "hub.key", folder / "job.ticket"
    daemons = [subprocess.Popen(on("rack0/0", ESPALIER, "hub", "--listen", f"{host}:7700", "--key-file", key), stderr=subprocess.PIPE, text=True)]
    try:
        daemons[0].stderr.readline()
        daemons.append(subprocess.Popen(on("rack0/0", ESPALIER, "sched", "--listen", f"{host}:7900", "--key-file", key, "--batch", "10ms",
                                           "--rate", rate, "--hub-rate", rate), stderr=subprocess.PIPE, text=True))
        daemons[1].stderr.readline()
        subprocess.run(on("rack0/0", ESPALIER, "hub", "create", "job", "--hub", f"{host}:7700", "--key-file", key, "--workers", 1, "--mode",
                          "async", "--delay-bound", 9, "--sched", f"{host}:7900", "--optimizer", "sgd lr=1", "--ticket-file", ticket),
                       check=True, capture_output=True)
        done = subprocess.run(on("rack0/1", "env", f"ESP_HUB_TICKET={ticket}", "ESP_RANK=0", "ESP_SIZE=1", PROGRAM, "elements", elements),
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == OK, (done.stdout, done.stderr)
        said = subprocess.run(on("rack0/0", ESPALIER, "sched", "status", "--json"), capture_output=True, text=True, check=True)
        mine = [one for one in json.loads(said.stdout) if one["pid"] == daemons[1].pid]
        return mine[0]["jobs"][0]["links"][0]
    finally:
        for one in reversed(daemons):
            one.terminate()
            one.wait(PATIENCE)


def test_half_of_a_link():
    """7 MB at 50 Mbit/s take 1.2 s on a link of 100 Mbit/s."""
    with tempfile.TemporaryDirectory() as folder:
        link = run_job(pathlib.Path(folder), "50mbit", 1750000)
        given, rate = link["rate_bytes_per_second"], link["achieved_bytes_per_second"]
        print(f"given {given / 1e6:.3f} MB/s, achieved {rate / 1e6:.3f} MB/s")
        assert 5.5e6 < given < 6.25e6 and 0.95 * given <= rate <= 1.05 * given, link


def main():
    netns.skip_unless_possible()
    good("lab", "up", "--name", NAME, "--racks", 1, "--hosts", 2, "--rate", "100mbit", "--no-check")
    try:
        netns.timed(test_half_of_a_link)
    finally:
        good("lab", "down", "--name", NAME)
    return OK


if __name__ == "__main__":
    sys.exit(main())
