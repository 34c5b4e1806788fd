#!/usr/bin/env python3
"""A job with several hubs: each keeps its chunks, and what one of them knows ends the job at all.

hub_several_test.py ESPALIER PROGRAM EXAMPLE HOST_PROGRAM

As in hub_cli_test.py, nothing here sleeps to wait.
"""
import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import hub_cli_test as cli

HOST_PROGRAM = os.path.abspath(sys.argv[4])
ADAM = "adam lr=0.5 weight_decay=0.01"
CHUNKS = {"rounds": 1 + 3 + 1}  # of hub_program's tensors, of 32 KiB


class Hubs:
    """Hubs on the loopback that have the same key."""

    def __init__(self, folder, lanes):
        self.folder = pathlib.Path(folder)
        self.key = self.folder / "hub.key"
        self.hubs = []
        for i, count in enumerate(lanes):
            place = self.folder / str(i)
            place.mkdir()
            self.hubs.append(cli.Hub(place, "--lanes", count, key=self.key))
            cli.espalier("hub", "remove", "none", "--hub", self.hubs[0].address, "--key-file", self.key)  # it has made the key
        self.addresses = ",".join(hub.address for hub in self.hubs)

    def try_create(self, name, *options, workers=4, optimizer=cli.SGD, addresses=None):
        ticket = self.folder / f"{name}.ticket"
        status, _, err = cli.espalier("hub", "create", name, "--hub", addresses or self.addresses, "--key-file", self.key, "--workers", workers,
                                      "--optimizer", optimizer, "--ticket-file", ticket, *options)
        return status, err, ticket

    def create(self, name, *options, **more):
        status, err, ticket = self.try_create(name, *options, **more)
        assert status == cli.OK, err
        return ticket

    def await_idle(self, hubs=None):
        for it in hubs or self.hubs:
            it.until(lambda: all(job["state"] == "idle" for job in it.status()["jobs"]) and it.status()["memory_taken_bytes"] == 0)


@contextlib.contextmanager
def hubs(*lanes):
    with tempfile.TemporaryDirectory() as folder:
        made = Hubs(folder, lanes)
        try:
            yield made
        finally:
            for it in made.hubs:
                it.end()


def test_rounds():
    """Right weights; each hub has its share of the chunks, and says which of the hubs it is."""
    with hubs(2, 1, 3) as them:
        for transport in cli.WAYS:
            ticket = them.create("job", "--replace")
            status, out, err = cli.run(ticket, cli.PROGRAM, "rounds", 5, transport=transport)
            assert status == cli.OK and out.count("good") == 4, (status, out, err)
            them.await_idle()
            jobs = [it.job("job") for it in them.hubs]
            assert [(job["hub"], job["hubs"]) for job in jobs] == [(0, 3), (1, 3), (2, 3)], jobs
            assert sum(job["rounds"] for job in jobs) == 5 * CHUNKS["rounds"] and all(job["rounds"] >= 5 for job in jobs), jobs
        _, text, _ = cli.espalier("hub", "status")
        assert "rounds, hub 2 of 3" in text, text


def test_more_hubs_than_chunks():
    with hubs(1, 1, 1, 1, 1, 1, 1) as them:
        status, out, err = cli.run(them.create("job", optimizer="sgd lr=1 momentum=0"), cli.PROGRAM, "rounds", 3)
        assert status == cli.OK and out.count("good") == 4, (status, out, err)
        status, out, err = cli.run(them.create("empty", optimizer=ADAM), cli.PROGRAM, "elements", 0)
        assert status == cli.OK and out.count("good") == 4, (status, out, err)


def test_bits():
    """One hub, two and three give the same bits, with Adam and changed values."""
    with hubs(1, 2, 3) as them:
        for transport in cli.WAYS:
            found = set()
            for count in (1, 2, 3):
                addresses = ",".join(it.address for it in them.hubs[:count])
                ticket = them.create(f"job{count}", "--replace", "--chunk", 4096, optimizer=ADAM, addresses=addresses)
                status, out, err = cli.run(ticket, cli.PROGRAM, "bits", 6, transport=transport)
                assert status == cli.OK and out.count("bits ") == 4, (status, out, err)
                found |= set(re.findall(r"bits (\w+)", out))
            assert len(found) == 1, (transport, found)


def test_sets():
    """Workers that share memory push sums: bits, and bytes to all hubs together."""
    with hubs(2, 2) as them:
        for what, shares in (("bits", "0,1,2,3"), ("bits", "1,3"), ("bits", "0"), ("map", "0,1,2,3"), ("map", "0,2")):
            ticket = them.create("job", "--replace", optimizer="avg")
            status, out, err = cli.run(ticket, HOST_PROGRAM, what, shares)
            assert status == cli.OK and out.count("good") == 4, (what, shares, out, err)


# ---- workers that end, are late, or differ ----

def test_worker_ends():
    with hubs(1, 2) as them:
        for what, transport in itertools.product(("die", "leave"), cli.WAYS):
            ticket = them.create("job", "--replace")
            status, out, err = cli.run(ticket, cli.PROGRAM, what, 3, transport=transport)
            assert status != cli.OK and len(re.findall(r"round: .*worker 1", err)) == 3, (what, transport, out, err)
            them.await_idle()
            assert cli.run(ticket, cli.PROGRAM, "rounds", 3)[0] == cli.OK
            them.await_idle()


def test_worker_is_absent():
    with hubs(1, 2) as them:
        for transport in cli.WAYS:
            status, out, err = cli.run(them.create("job", "--replace"), cli.PROGRAM, "absent", deadline_seconds=1, transport=transport)
            assert status != cli.OK and re.search(r"round: .*deadline.* waits for worker 1 on ", err), (out, err)
            them.await_idle()


def test_workers_differ():
    with hubs(1, 2) as them:
        rows = {("count", 5): r"worker \d has \d elements in tensor 0, worker \d has \d", ("set", "lr=0.5"): r"worker 1.*lr=0.5"}
        for (words, expected), transport in itertools.product(rows.items(), cli.WAYS):
            status, out, err = cli.run(them.create("job", "--replace", workers=2), cli.PROGRAM, *words, workers=2, transport=transport)
            assert status != cli.OK and len(re.findall(expected, err)) == 2, (words, out, err)
            them.await_idle()


def test_memory_of_one_hub():
    """A hub that lacks memory for its share ends the job at all, and is told by both numbers."""
    with hubs(1, 1) as them:
        small = cli.Hub(them.folder / "1", "--memory", "1M", key=them.key)
        try:
            addresses = f"{them.hubs[0].address},{small.address}"
            status, out, err = cli.run(them.create("job", addresses=addresses), cli.PROGRAM, "elements", 1000000)
            assert status != cli.OK and len(re.findall("needs .* of the hub's memory, and .* of 1 MiB are left", err)) == 4, (out, err)
            them.await_idle(them.hubs[:1])
            assert re.search("the session ends: .*needs .* of the hub's memory", them.hubs[0].read_log()), them.hubs[0].read_log()
        finally:
            small.end()


# ---- a hub ends, or stops ----

def endless(them):
    process = cli.start(them.create("job", "--replace"), cli.PROGRAM, "endless", deadline_seconds=2)
    assert "ready" in process.stdout.readline()
    return process


def test_hub_is_killed():
    for number in (0, 1):
        with hubs(1, 2) as them:
            process = endless(them)
            them.hubs[number].process.kill()
            _, err = process.communicate(timeout=cli.PATIENCE)
            assert process.returncode != cli.OK and len(re.findall(rf"round: .*hub at {them.hubs[number].address}", err)) == 4, err
            them.await_idle([them.hubs[1 - number]])
            log = them.hubs[1 - number].read_log()  # the workers have told it
            assert re.search(rf"the session ends: .*hub at {them.hubs[number].address}", log), log


def test_hub_is_stopped():
    with hubs(1, 2) as them:
        process = endless(them)
        them.hubs[1].process.send_signal(cli.signal.SIGSTOP)
        _, err = process.communicate(timeout=cli.PATIENCE)
        them.hubs[1].process.send_signal(cli.signal.SIGCONT)
        assert process.returncode != cli.OK and len(re.findall(rf"round: .*hub at {them.hubs[1].address}", err)) == 4, err
        them.await_idle()


def test_hub_ends_while_workers_gather():
    with hubs(1, 1) as them:
        ticket = them.create("job", workers=2)
        env = {**cli.CLEAN, "ESP_HUB_TICKET": str(ticket), "ESP_RANK": "0", "ESP_SIZE": "2", "ESP_LEADER": "localhost:1", "ESP_JOIN_SECONDS": "1000"}
        process = subprocess.Popen([cli.PROGRAM, "rounds", "1"], env=env, stderr=subprocess.PIPE, text=True)
        for it in them.hubs:
            it.until(lambda: it.job("job")["joined"] == 1)
        them.hubs[1].process.kill()
        _, err = process.communicate(timeout=cli.PATIENCE)
        assert process.returncode != cli.OK and f"hub at {them.hubs[1].address}" in err, err
        them.await_idle(them.hubs[:1])
        assert re.search(rf"the session ends: .*hub at {them.hubs[1].address}", them.hubs[0].read_log()), them.hubs[0].read_log()


# ---- the operator ----

def test_create():
    with hubs(1, 1) as them:
        first, second = them.hubs
        for words, addresses in ((["--mode", "async", "--delay-bound", 4], None), ([], f"{first.address},{first.address}"), ([], f"{first.address},")):
            status, err, _ = them.try_create("bad", *words, addresses=addresses)
            assert status == cli.USAGE and err, (words, addresses, err)
        other = cli.Hub(them.folder / "0")  # has a key of its own
        try:
            status, err, _ = them.try_create("bad", addresses=f"{first.address},{other.address}")
            assert status == cli.NO and other.address in err and "key" in err, err
        finally:
            other.end()
        them.create("mine", addresses=second.address)
        status, err, _ = them.try_create("mine")
        assert status == cli.NO and second.address in err and "--replace" in err, err
        assert first.status()["jobs"] == []  # nothing is left of a job that not all hubs have
        ticket = them.create("mine", "--replace")
        lines = ticket.read_text().splitlines()
        turned = them.folder / "turned.ticket"
        turned.write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]) + "\n")
        turned.chmod(0o600)
        status, _, err = cli.run(turned, cli.PROGRAM, "rounds", 1)
        assert status != cli.OK and re.search(rf"hub at {second.address} is hub 2 of 2 .* in the ticket it is hub 1", err), err
        them.await_idle()
        assert cli.run(ticket, cli.PROGRAM, "rounds", 1)[0] == cli.OK
        cli.good("hub", "remove", "mine", "--hub", them.addresses, "--key-file", them.key)
        assert first.status()["jobs"] == second.status()["jobs"] == []


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print(f"{name}: {time.monotonic() - began:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
