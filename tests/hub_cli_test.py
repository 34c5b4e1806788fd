#!/usr/bin/env python3
"""A parameter hub as its operator and its users see it: espalier hub, create, status, remove, and workers as processes.

hub_cli_test.py ESPALIER PROGRAM EXAMPLE

Nothing here sleeps to wait: a state is asked for until it is as expected, and a minute without that ends the test.
"""
import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

import ports
from sanitizers import has_sanitizer

OK, NO, USAGE = 0, 1, 2
ESPALIER, PROGRAM, EXAMPLE = map(os.path.abspath, sys.argv[1:4])
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
PATIENCE = 60  # seconds, until something is wrong
SGD = "sgd lr=1"
WAYS = ("auto", "tcp")  # the workers push as a set, through shared memory; each pushes by itself


def espalier(*words, **options):
    done = subprocess.run([ESPALIER, *map(str, words)], env=CLEAN, capture_output=True, text=True, timeout=PATIENCE, **options)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = espalier(*words)
    assert status == OK, (words, status, out, err)
    return out


class Hub:
    """A hub on the loopback, with files in a folder of its own."""

    def __init__(self, folder, *options, key=None):
        self.folder = pathlib.Path(folder)
        self.port = ports.free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.key = key or self.folder / "hub.key"
        self.log = open(self.folder / "hub.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([ESPALIER, "hub", "--listen", self.address, "--key-file", self.key, *map(str, options)],
                                        env=CLEAN, stderr=self.log)

    def create(self, name, *options, workers=4, optimizer=SGD):
        """At once, as in a script: the hub may not have made its key yet."""
        ticket = self.folder / f"{name}.ticket"
        good("hub", "create", name, "--hub", self.address, "--key-file", self.key, "--workers", workers, "--optimizer", optimizer,
             "--ticket-file", ticket, *options)
        return ticket

    def remove(self, name):
        return good("hub", "remove", name, "--hub", self.address, "--key-file", self.key)

    def status(self):
        _, out, _ = espalier("hub", "status", "--json")  # another hub of this machine may be ending
        found = [hub for hub in json.loads(out) if hub["pid"] == self.process.pid]
        assert len(found) == 1, found
        return found[0]

    def job(self, name):
        return next(job for job in self.status()["jobs"] if job["name"] == name)

    def until(self, is_so):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if is_so():
                return
        raise AssertionError((self.status(), self.read_log()))

    def read_log(self):
        return (self.folder / "hub.log").read_text(encoding="utf-8")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        status = self.process.wait(PATIENCE)
        self.log.close()
        return status


@contextlib.contextmanager
def hub(*options):
    with tempfile.TemporaryDirectory() as folder:
        made = Hub(folder, *options)
        try:
            yield made
            assert made.process.poll() is None, made.read_log()
        finally:
            status = made.end()
        assert status == OK, (status, made.read_log())


def start(ticket, *words, workers=4, **settings):
    env = {**CLEAN, "ESP_HUB_TICKET": str(ticket), **{f"ESP_{name.upper()}": str(value) for name, value in settings.items()}}
    return subprocess.Popen([ESPALIER, "run", "-n", str(workers), "--grace", "20", "--", *map(str, words)], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begin(ticket, rank, *words, size=2, **more):
    """One worker, whose process is the caller's."""
    env = {**CLEAN, "ESP_HUB_TICKET": str(ticket), "ESP_RANK": str(rank), "ESP_SIZE": str(size), **more}
    return subprocess.Popen([PROGRAM, *map(str, words)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run(ticket, *words, **options):
    process = start(ticket, *words, **options)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


# ---- what the manual says ----

def test_transcript():
    with hub() as it:
        ticket = it.create("line", optimizer="sgd lr=0.05 momentum=0.9")
        assert stat.S_IMODE(it.key.stat().st_mode) == 0o600 and stat.S_IMODE(ticket.stat().st_mode) == 0o600
        status, out, err = run(ticket, EXAMPLE)
        assert status == OK and out.count("the worst weight is off by") == 4, (status, out, err)
        _, text, _ = espalier("hub", "status")
        assert re.search(rf"^hub at {it.address} \(process {it.process.pid}\): 1 job, ", text, re.MULTILINE), text
        assert re.search(r"^line +idle +0/4 ", text, re.MULTILINE), text
        it.until(lambda: it.job("line")["rounds"] == 200)
        assert "job line is removed" in it.remove("line")
        assert it.status()["jobs"] == []
        status, out, err = run(ticket, EXAMPLE)
        assert status != OK and "does not know" in err, (status, out, err)


def test_idle_lanes():
    """Lanes that have nothing to do are not busy."""
    with hub() as it:
        it.create("line")
        it.until(lambda: it.status()["uptime_seconds"] > 1.2)
        found = it.status()
        assert all(lane["busy"] < 0.5 for lane in found["lanes"]) and found["limit"] == "none", found


def test_threads():
    """One per lane, two beside them at most; --pin gives each lane a core."""
    cores = sorted(os.sched_getaffinity(0))
    for options in ((), ("--pin",)):
        with hub("--lanes", 3, *options) as it:
            it.create("line")
            tasks = [pathlib.Path(f"/proc/{it.process.pid}/task/{task}") for task in os.listdir(f"/proc/{it.process.pid}/task")]
            assert len(tasks) <= 3 + 2, tasks
            expected = {f"esp-hub-{lane}": {cores[lane % len(cores)]} if options else set(cores) for lane in range(3)}

            def has_cores():
                found = {(task / "comm").read_text().strip(): os.sched_getaffinity(int(task.name)) for task in tasks}
                return {name: found.get(name) for name in expected} == expected

            it.until(has_cores)


def test_usage():
    for words in (["create"], ["create", "a b", "--workers", 1, "--optimizer", SGD], ["create", "x", "--optimizer", SGD],
                  ["create", "x", "--workers", 0, "--optimizer", SGD], ["create", "x", "--workers", 65, "--optimizer", SGD],
                  ["create", "x", "--workers", 2, "--optimizer", "sdg lr=1"], ["create", "x", "--workers", 2, "--optimizer", "sgd"],
                  ["create", "x", "--workers", 2, "--optimizer", SGD, "--chunk", 100], ["remove"], ["status", "extra"], ["nothing"],
                  ["--listen", "nowhere"], ["--listen", "127.0.0.1:1", "--lanes", 0]):
        status, _, err = espalier("hub", *words)
        assert status == USAGE and err, (words, status, err)


def test_wrong_keys():
    with hub() as it:
        ticket = it.create("mine")
        other = it.folder / "other.key"
        other.write_text("ab" * 32)
        other.chmod(0o600)
        status, _, err = espalier("hub", "create", "theirs", "--hub", it.address, "--key-file", other, "--workers", 1, "--optimizer", SGD)
        assert status == NO and "key" in err, err
        status, _, err = espalier("hub", "create", "mine", "--hub", it.address, "--key-file", it.key, "--workers", 1, "--optimizer", SGD)
        assert status == NO and "--replace" in err, err
        again = it.create("mine", "--replace", workers=4)
        assert run(again, PROGRAM, "rounds", 2)[0] == OK
        stolen = it.folder / "stolen.ticket"
        text = ticket.read_text()
        stolen.write_text(re.sub(r"(?m)^(key[ =]+)(..)", lambda found: found[1] + ("00" if found[2] != "00" else "11"), text))
        stolen.chmod(0o600)
        assert stolen.read_text() != text, text
        status, _, err = run(stolen, PROGRAM, "rounds", 1, join_seconds=10)
        assert status != OK and "key" in err, err
        assert [job["name"] for job in it.status()["jobs"]] == ["mine"]


def test_revoked_ticket():
    with hub() as it:
        first = it.create("again")
        old = it.folder / "old.ticket"
        old.write_text(first.read_text())
        old.chmod(0o600)
        with_old = start(old, PROGRAM, "endless")
        assert "ready" in with_old.stdout.readline()
        new = it.create("again", "--replace")
        _, err = with_old.communicate(timeout=PATIENCE)
        assert with_old.returncode != OK and "replaced by its operator" in err, err
        assert run(new, PROGRAM, "rounds", 2)[0] == OK
        assert run(old, PROGRAM, "rounds", 2)[0] != OK


def test_ticket_cannot_be_written():
    """A job without a ticket would be of no use: none is made."""
    with hub() as it:
        it.create("first")
        status, _, err = espalier("hub", "create", "second", "--hub", it.address, "--key-file", it.key, "--workers", 1, "--optimizer", SGD,
                                  "--ticket-file", it.folder / "nowhere" / "second.ticket")
        assert status == NO and "no job was made: No such file" in err, (status, err)
        assert [job["name"] for job in it.status()["jobs"]] == ["first"], it.status()


# ---- workers that end, are late, or differ ----

def test_worker_dies():
    with hub() as it:
        ticket = it.create("job")
        for failed, transport in enumerate(WAYS):
            status, out, err = run(ticket, PROGRAM, "die", 3, transport=transport)
            assert status != OK and len(re.findall(r"round: .*worker 1 on \S+ \(process \d+\)", err)) == 3, (out, err)
            it.until(lambda: it.job("job")["state"] == "idle")
            assert it.status()["memory_taken_bytes"] == 0 and it.status()["sessions_failed"] == failed + 1
        assert run(ticket, PROGRAM, "rounds", 3)[0] == OK


def test_worker_leaves():
    with hub() as it:
        for transport in WAYS:
            status, out, err = run(it.create("job", "--replace"), PROGRAM, "leave", 3, transport=transport)
            assert status != OK and len(re.findall(r"round: .*worker 1", err)) == 3, (out, err)


def test_worker_is_absent():
    with hub() as it:
        for transport in WAYS:
            status, out, err = run(it.create("job", "--replace"), PROGRAM, "absent", deadline_seconds=1, transport=transport)
            assert status != OK and re.search(r"round: .*deadline.* waits for worker 1 on ", err), (out, err)


def test_workers_differ():
    with hub("--memory", "64M") as it:
        ticket = it.create("job", workers=2)
        rows = {("count", 5): r"worker \d has \d elements in tensor 0, worker \d has \d", ("set", "lr=0.5"): r"worker 1.*lr=0.5",
                ("elements", 2 ** 33): "needs .* of the hub's memory, and .* of .* are left",
                ("elements", 2 ** 45): "elements|memory"}
        for (words, expected), transport in itertools.product(rows.items(), WAYS):
            status, out, err = run(ticket, PROGRAM, *words, workers=2, transport=transport)
            assert status != OK and re.search(expected, err), (words, out, err)
            it.until(lambda: it.job("job")["state"] == "idle")
        assert run(ticket, PROGRAM, "elements", 0, workers=2)[0] == OK
        for transport in WAYS:
            assert run(ticket, PROGRAM, "nan", workers=2, transport=transport)[0] == OK
        status, _, err = run(ticket, PROGRAM, "rounds", 1, workers=3)
        assert status != OK and "was created for 2 workers" in err, err


# ---- the hub ends, or stops ----

def endless(it):
    process = start(it.create("job"), PROGRAM, "endless", deadline_seconds=2)
    assert "ready" in process.stdout.readline()
    return process


def test_hub_is_killed():
    with tempfile.TemporaryDirectory() as folder:
        it = Hub(folder)
        process = endless(it)
        it.process.kill()
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode != OK and len(re.findall(rf"round: .*hub at {it.address}", err)) == 4, err
        it.end()


def test_hub_is_stopped():
    with hub() as it:
        process = endless(it)
        it.process.send_signal(signal.SIGSTOP)
        _, err = process.communicate(timeout=PATIENCE)
        it.process.send_signal(signal.SIGCONT)
        assert process.returncode != OK and len(re.findall(rf"round: .*hub at {it.address}", err)) == 4, err
        it.until(lambda: it.job("job")["state"] == "idle")


def test_values_of_rounds_ahead():
    """Values that change with each of many rounds that are under way hold from the round that they were set for."""
    with hub() as it:
        found = []
        for transport in WAYS:
            ticket = it.create("job", "--replace", workers=2)
            workers = [begin(ticket, rank, "ahead", ESP_TRANSPORT=transport) for rank in range(2)]
            assert workers[0].stdout.readline() == "started\n"
            ended = [worker.communicate(timeout=PATIENCE) for worker in reversed(workers)]
            assert all(worker.returncode == OK for worker in workers), ended
            found += [out.replace("started\n", "") for out, _ in ended]
        assert len(set(found)) == 1 and found[0].endswith("good\n"), found


# ---- a worker is stopped ----

def begin_endless(it, name="job"):
    ticket = it.create(name, workers=2)
    workers = [begin(ticket, rank, "endless") for rank in range(2)]
    for worker in workers:
        assert "ready" in worker.stdout.readline()
    return workers


def kill_all(workers):
    for worker in workers:
        worker.kill()
        worker.communicate(timeout=PATIENCE)


def test_worker_is_stopped():
    """In rounds: one that stands still for less than the hub's patience goes on, and one that does for longer is named."""
    with hub("--silence", 60) as it:
        workers = begin_endless(it)
        workers[1].send_signal(signal.SIGSTOP)
        began = it.status()["uptime_seconds"]
        it.until(lambda: it.status()["uptime_seconds"] > began + 12)
        workers[1].send_signal(signal.SIGCONT)
        rounds = it.job("job")["rounds"]
        it.until(lambda: it.job("job")["rounds"] > rounds + 100 and it.job("job")["joined"] == 2)
        kill_all(workers)
    with hub("--silence", 3) as it:
        workers = begin_endless(it)
        workers[1].send_signal(signal.SIGSTOP)
        _, err = workers[0].communicate(timeout=PATIENCE)
        assert workers[0].returncode != OK and re.search(r"worker 1 on .*has not been heard for 3 s", err), err
        kill_all(workers[1:])


def test_gathering_is_bounded():
    """A worker that joins, and is not heard before it has declared its tensors, does not keep its job for ever."""
    with hub("--silence", 1, "--idle", 2) as it:
        ticket = it.create("job", workers=1)
        worker = begin(ticket, 0, "slow", size=1)
        it.until(lambda: "job job" in it.read_log() and it.status()["jobs"] == [])
        assert "has not been heard for 2 s" in it.read_log(), it.read_log()
        kill_all([worker])


# ---- many jobs, strangers ----

def tally(it):
    """Descriptors, threads, files in its folder but for tickets, and kilobytes of the hub."""
    pid = it.process.pid
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    files = [name for name in os.listdir(it.folder) if not name.endswith(".ticket")]
    return (len(os.listdir(f"/proc/{pid}/fd")), int(re.search(r"Threads:\s+(\d+)", status)[1]), len(files),
            int(re.search(r"VmRSS:\s+(\d+)", status)[1]))


def make_jobs(it, count):
    return [it.create(f"job{i}", "--replace", workers=2) for i in range(count)]


def test_many_jobs():
    """32 at once, and 512 in turn, each of which is created, trains and is replaced."""
    with hub("--lanes", 2) as it:
        tickets = make_jobs(it, 32)

        def play(at_once):
            done = subprocess.run([PROGRAM, "jobs", str(at_once), *map(str, tickets)], env=CLEAN, capture_output=True, text=True,
                                  timeout=4 * PATIENCE)
            assert done.returncode == OK and done.stdout == "good\n", (done.stdout, done.stderr)
            it.until(lambda: all(job["state"] == "idle" for job in it.status()["jobs"]))

        for _ in range(5):  # how many jobs meet in the hub at a time is chance: the heap is as large as the worst case then
            play(32)
        before = tally(it)
        assert before[1] <= 2 + 2, before
        for _ in range(16):
            make_jobs(it, 32)
            play(1)
        play(32)
        # A connection of a worker that has left may still be closing.
        it.until(lambda: all(now <= then for now, then in zip(tally(it)[:3], before[:3])))
        after = tally(it)
        assert after[3] - before[3] < 512 or has_sanitizer(ESPALIER), (before, after)  # a sanitizer keeps freed memory
        assert it.status()["memory_taken_bytes"] == 0


def test_job_limit():
    with hub("--jobs", 2, "--idle", 1) as it:
        it.create("a")
        it.create("b")
        status, _, err = espalier("hub", "create", "c", "--hub", it.address, "--key-file", it.key, "--workers", 1, "--optimizer", SGD)
        assert status == NO and "2 jobs" in err and "--jobs" in err, err
        it.until(lambda: it.status()["jobs"] == [])


def connect_badly(it, stop):
    """Strangers: noise, other protocols, connections that say nothing, one byte after the other."""
    silent = []
    while not stop.is_set():
        for noise in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"", b"E", bytes(64)):
            try:
                one = socket.create_connection(("127.0.0.1", it.port), 5)
                one.sendall(noise)
                silent.append(one)
            except OSError:
                pass
        while len(silent) > 64:
            silent.pop(0).close()
    for one in silent:
        one.close()


def test_strangers():
    with hub() as it:
        ticket = it.create("job")
        stop = threading.Event()
        stranger = threading.Thread(target=connect_badly, args=(it, stop))
        stranger.start()
        try:
            status, out, err = run(ticket, PROGRAM, "rounds", 300)
        finally:
            stop.set()
            stranger.join()
        assert status == OK and out.count("good") == 4, (status, out, err)
        assert it.status()["connections_refused"] > 0


def test_metrics():
    with tempfile.TemporaryDirectory() as folder, hub("--metrics", os.path.join(folder, "m")) as it:
        ticket = it.create("job")
        assert run(ticket, PROGRAM, "rounds", 2)[0] == OK
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(os.path.join(folder, "m"))
            one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: one.recv(65536), b"")).decode()
        assert re.search(r'^espalier_hub_job_rounds_total\{espalier_job="job"\} \d+$', text, re.MULTILINE), text


# ---- espalier bench hub ----

def test_bench():
    """Every way gives right weights; a lab, with its bounds, is tried by lab_cli_test.py."""
    found = json.loads(good("bench", "hub", "--workers", 3, "--size", "300K", "--rounds", 2, "--iters", 2, "--json"))
    rows = {row["config"]: row for row in found["results"]}
    assert {"hub", "mapped", "alone", "loop", "flat", "allreduce"} <= set(rows), rows
    for row in rows.values():
        assert row["wrong"] == 0 and row["workers"] == 3 and 0 < row["least_seconds"] <= row["seconds"] <= row["most_seconds"], row
        assert abs(row["share"] - row["bound_seconds"] / row["seconds"]) < 1e-6, row
    assert rows["hub"]["beside_hub"] == 1 and rows["loop"]["share"] == 1, rows
    alone = json.loads(good("bench", "hub", "--workers", 1, "--size", "100K", "--rounds", 1, "--optimizer", "adam lr=0.01", "--json"))
    assert [row["config"] for row in alone["results"]] == ["hub", "loop"] and alone["results"][0]["wrong"] == 0, alone
    two = json.loads(good("bench", "hub", "--workers", 2, "--size", "100K", "--rounds", 1, "--iters", 1, "--only", "loop,alone", "--json"))
    assert {row["config"] for row in two["results"]} == {"alone", "loop"}, two
    for words in (["--workers", 0], ["--only", "nothing"], ["--lab", "fast"], ["--optimizer", "sgd"], ["--model", "no-such-model"], ["--hub-links", 0], ["--as", "x"]):
        status, _, err = espalier("bench", "hub", *words)
        assert status == USAGE and err, (words, status, err)


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print(f"{name}: {time.monotonic() - began:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
