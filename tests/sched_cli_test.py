#!/usr/bin/env python3
"""Asynchronous updates as an operator and users see them: a hub, espalier sched, and workers as processes. The log of each scheduler is replayed.

sched_cli_test.py ESPALIER PROGRAM EXAMPLE LIBRARY SCRIPT [TIMES [NAME]]

TIMES: how often workers, aggregators and schedulers are killed and stopped; NAME: the tests whose names have it.

Nothing here sleeps to wait: a state is asked for until it is as expected, and a minute without that ends the test.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import ports
from sanitizers import has_sanitizer

OK, NO, USAGE = 0, 1, 2
SUMS = ("--batch", "20ms", "--hub-rate", "16mbit", "--rate", "64mbit")
CHAINS = (*SUMS, "--aggregate", "best")
TIMES = int(sys.argv[6]) if len(sys.argv) > 6 else 1
ONLY = sys.argv[7] if len(sys.argv) > 7 else ""
CHECKER = pathlib.Path(__file__).parent.parent / "scripts" / "check-fabric-log"
ESPALIER, PROGRAM, EXAMPLE, LIBRARY, SCRIPT = map(os.path.abspath, sys.argv[1:6])
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
PATIENCE = 60  # seconds, until something is wrong
MODEL_BYTES = 4 * 20005
COUNTS = re.compile(r"worker (\d+): applied (\d+) source (\d+) offer (\d+) hub (\d+) scheduled (\d+) version (\d+) sent (\d+) weights (\d+) reads (\d+) received (\d+)")


def espalier(*words):
    done = subprocess.run([ESPALIER, *map(str, words)], env=CLEAN, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = espalier(*words)
    assert status == OK, (words, status, out, err)
    return out


class Daemon:
    """A hub or a scheduler, with its log."""

    def __init__(self, folder, kind, address, *options):
        self.kind, self.path = kind, folder / f"{kind}.log"
        with open(self.path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([ESPALIER, kind, "--listen", address, *map(str, options)], env=CLEAN, stderr=log)

    def status(self):
        found = [one for one in json.loads(espalier(self.kind, "status", "--json")[1]) if one["pid"] == self.process.pid]
        return found[0] if found else None

    def job(self):
        status = self.status()
        return status["jobs"][0] if status and status["jobs"] else None

    def log(self):
        return self.path.read_text(encoding="utf-8")

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        return self.process.wait(PATIENCE)


class Site:
    """A hub and a scheduler on the loopback, with files in a folder of their own."""

    def __init__(self, folder, *options):
        self.folder = pathlib.Path(folder)
        hub_port, sched_port = ports.free_port(), ports.free_port()
        self.hub_address, self.sched_address = f"127.0.0.1:{hub_port}", f"127.0.0.1:{sched_port}"
        self.sched_port = sched_port
        self.key = self.folder / "hub.key"
        self.decisions = self.folder / "decisions.log"
        self.options = (*(options or ("--batch", "10ms")), "--decisions", self.decisions)
        self.hub = Daemon(self.folder, "hub", self.hub_address, "--key-file", self.key)
        self.sched = None
        self.start_sched()

    def start_sched(self, key=None):
        self.sched = Daemon(self.folder, "sched", self.sched_address, "--key-file", key or self.key, *self.options)
        self.until(lambda: self.sched.status() is not None)

    def create(self, bound, workers=4, optimizer="sgd lr=1"):
        ticket = self.folder / "job.ticket"
        good("hub", "create", "job", "--hub", self.hub_address, "--key-file", self.key, "--workers", workers, "--mode", "async",
             "--delay-bound", bound, "--sched", self.sched_address, "--optimizer", optimizer, "--ticket-file", ticket)
        return ticket

    def until(self, is_so):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if is_so():
                return
            assert self.hub.process.poll() is None and (self.sched is None or self.sched.process.poll() in (None, -signal.SIGKILL)), self.logs()
        raise AssertionError((self.hub.status(), self.sched.status(), self.logs()))

    def logs(self):
        return self.hub.log(), self.sched.log() if self.sched else ""

    def end(self):
        statuses = [one.end() for one in (self.sched, self.hub) if one and one.process.returncode != -signal.SIGKILL]
        assert all(status == OK for status in statuses), (statuses, self.logs())
        checked = subprocess.run([sys.executable, CHECKER, self.decisions], capture_output=True, text=True, check=False)
        assert checked.returncode == OK, (checked.stderr, self.decisions.read_text(encoding="ascii"))


@contextlib.contextmanager
def site(*options):
    with tempfile.TemporaryDirectory() as folder:
        made = Site(folder, *options)
        try:
            yield made
        finally:
            made.end()


def start(ticket, *words, workers=4, run_options=()):
    env = {**CLEAN, "ESP_HUB_TICKET": str(ticket), "ESPALIER_LIBRARY": LIBRARY}
    return subprocess.Popen([ESPALIER, "run", "-n", str(workers), "--grace", "20", *run_options, "--", *map(str, words)], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def counts_of(out):
    """By worker: applied, dropped at the source, when offered, at the hub, scheduled, version, bytes sent to the hub, the newest weight, models read, bytes from the hub."""
    return {int(found[0]): [int(number) for number in found[1:]] for found in COUNTS.findall(out)}


def run(ticket, *words, **options):
    process = start(ticket, *words, **options)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, counts_of(out), out + err


# ---- what the manual says ----

def test_transcript():
    with site("--batch", "20ms") as it:
        status, _, text = run(it.create(8, optimizer="sgd lr=0.3"), EXAMPLE, 60)
        found = re.findall(r"worker (\d)[^:]*: (\d+) updates applied .*dropped: (\d+) at the source", text)
        assert status == OK and len(found) == 4, text
        said = espalier("sched", "status")[1]
        assert re.search(rf"^scheduler at {it.sched_address} \(process {it.sched.process.pid}\): batches of 20 ms, 1 job", said, re.MULTILINE), said
        assert re.search(r"^updates: \d+ announced: \d+ applied", said, re.MULTILINE), said


def test_script():
    """The example in Python, where there is numpy."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("no numpy: the example in Python is not run")
        return
    if has_sanitizer(LIBRARY):
        print("Python cannot load a library with a sanitizer: the example in Python is not run")
        return
    with site("--batch", "20ms") as it:
        status, _, text = run(it.create(30, optimizer="sgd lr=0.05"), python, SCRIPT, "--steps", 40)
        assert status == OK and len(re.findall(r"worker \d of 4.*: \d+ applied; delay .* % right at version \d+", text)) == 4, text


def test_notice():
    """A worker that is told to end gives its update first, and leaves in order; the others go on."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or has_sanitizer(LIBRARY) or \
            subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("no numpy: the example in Python is not run")
        return
    with site("--batch", "20ms") as it:
        process = start(it.create(30, optimizer="sgd lr=0.05"), python, SCRIPT, "--steps", 100)
        it.until(lambda: it.sched.job() and it.sched.job()["updates"]["applied"] > 20)
        os.kill(process_of(it, 1), signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        found = dict(re.findall(r"worker (\d) of 4.*: (\d+) applied", out))
        assert process.returncode == OK and len(found) == 4 and int(found["1"]) < 100 <= int(found["0"]) + 100, (out, err)
        assert int(found["1"]) < int(found["0"]), out
        assert "goes on without" not in it.hub.log(), it.hub.log()


def test_dropped_at_source():
    """The last worker is always too late: each of its updates is dropped, and no byte of them is sent."""
    with site() as it:
        status, counts, text = run(it.create(8), PROGRAM, "slow", 200)
        assert status == OK and len(counts) == 4, text
        dropped = counts[3][1]
        assert dropped >= 1 and counts[3][0] == 0, counts
        job = it.sched.job()
        updates, delays = job["updates"], job["delays"]
        assert updates["late_at_source"] >= dropped and updates["unsent_bytes"] >= dropped * MODEL_BYTES, job
        assert updates["announced"] == sum(updates[end] for end in updates if end not in ("announced", "unsent_bytes")), job
        assert delays["bound"] == 8 and delays["most"] <= 8, job
        assert sum(part["updates"] for part in delays["histogram"]) == updates["applied"], job
        assert delays["histogram"][0]["first"] == 1 and delays["histogram"][-1]["last"] == 8, job
        assert sum(one[0] for one in counts.values()) >= 200 and sum(one[4] for one in counts.values()) > 0, counts
        said = espalier("sched", "status")[1]
        assert re.search(r"\d+ late at source", said), said
        assert it.hub.job()["mode"] == "async" and it.hub.job()["delay_bound"] == 8, it.hub.job()


def test_pace():
    """A transfer keeps to the rate that it was given."""
    with site("--batch", "10ms", "--rate", "64mbit", "--hub-rate", "64mbit") as it:
        status, counts, text = run(it.create(9, workers=1), PROGRAM, "elements", 1000000, workers=1)
        assert status == OK and counts[0][0] == 2, text
        link = it.sched.job()["links"][0]
        assert 0 < link["achieved_bytes_per_second"] <= 1.05 * 8e6, link


def test_sums():
    """Where the hub's link is the bottleneck updates are added on the way: fewer bytes for as many versions."""
    with site("--batch", "20ms", "--hub-rate", "16mbit", "--rate", "64mbit") as it:
        status, counts, text = run(it.create(30), PROGRAM, "until", 120)
        assert status == OK and len(counts) == 4, text
        job = it.sched.job()
        applied = sum(one[0] for one in counts.values())
        assert job["sums"] > 0 and job["summed_updates"] >= 2 * job["sums"], job
        assert job["updates"]["applied"] == applied >= 120 and job["delays"]["most"] <= 30, job
        # Each weight is at least as new as the version that came with it (the program checks that), and no newer than all updates.
        assert max(one[5] for one in counts.values()) <= max(one[7] for one in counts.values()) <= applied, (counts, applied)
        assert sum(one[6] for one in counts.values()) < 0.9 * applied * MODEL_BYTES, (counts, applied)
        assert sum(link["sums"] for link in job["links"]) == job["sums"], job


def test_chains():
    """By streaming chains: sums pass from worker to worker, and have the weights of whole updates."""
    with site(*CHAINS) as it:
        status, counts, text = run(it.create(30), PROGRAM, "until", 120)
        assert status == OK and len(counts) == 4, text
        job = it.sched.job()
        applied = sum(one[0] for one in counts.values())
        assert job["sums"] > 0 and job["summed_updates"] >= 2 * job["sums"], job
        assert job["updates"]["applied"] == applied >= 120 and job["delays"]["most"] <= 30, job
        assert max(one[5] for one in counts.values()) <= max(one[7] for one in counts.values()) <= applied, (counts, applied)
        assert sum(one[6] for one in counts.values()) < 0.7 * applied * MODEL_BYTES, (counts, applied)


def test_picture():
    """The latest batch as a picture: every worker has a row."""
    with site(*CHAINS) as it:
        picture = it.folder / "batch.svg"
        asked = ("sched", "status", "--port", it.sched_port, "--svg", picture)
        status, _, err = espalier(*asked) # no job yet
        assert status == NO and err and not picture.exists(), (status, err)
        status, _, text = run(it.create(30), PROGRAM, "until", 60)
        assert status == OK, text
        good(*asked)
        root = xml.etree.ElementTree.parse(picture).getroot()
        said = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and {f"worker {worker}" for worker in range(4)} | {"hub", "job job"} <= set(said), said
        assert any(re.match(r"\d+\. to (the hub|worker \d) at ", one) or one.startswith("dropped: ") for one in said), said
        alone = espalier("sched", "status", "--port", it.sched_port)[1]
        assert alone.startswith(f"scheduler at {it.sched_address} ") and alone.count("scheduler at") == 1, alone
    for words in (["--svg", "x.svg", "--json"], ["--port", 0], ["--port", 65536]):
        status, _, err = espalier("sched", "status", *words)
        assert status == USAGE and err, (words, status, err)


def test_two_in_flight():
    """Each worker computes its next update while the former one is sent."""
    with site(*CHAINS) as it:
        status, counts, text = run(it.create(60), PROGRAM, "ahead", 120)
        assert status == OK and len(counts) == 4, text
        job = it.sched.job()
        applied = sum(one[0] for one in counts.values())
        assert job["sums"] > 0 and job["updates"]["applied"] == applied >= 120 and job["delays"]["most"] <= 60, job
        assert job["delays"]["sum"] / applied > 5, job  # of four workers with one in flight each: 4


def test_slack():
    """Workers wait for one that is five times slower: all in step, or some updates ahead; without slack they do not."""
    for slack in (0, 3):
        with site("--batch", "5ms", "--slack", slack) as it:
            status, counts, text = run(it.create(60), PROGRAM, "uneven", 60)
            assert status == OK and len(counts) == 4, text
            applied = [counts[worker][0] for worker in range(4)]
            assert max(applied) - min(applied) <= slack + 1, applied
    with site("--batch", "5ms") as it:
        status, counts, text = run(it.create(60), PROGRAM, "uneven", 60)
        assert status == OK and counts[0][0] > counts[3][0] + 4, (counts, text)


def test_trees():
    """Where the hub's link is the bottleneck workers pass the model on: the hub sends less, and all versions stay those of the model."""
    with site("--batch", "20ms", "--hub-rate", "16mbit", "--rate", "64mbit") as it:
        status, counts, text = run(it.create(30), PROGRAM, "until", 60)
        assert status == OK and len(counts) == 4, text
        job = it.sched.job()
        assert 0 < job["trees"] < job["models"], job
        assert any(link["model_from"].startswith("worker") for link in job["links"] if link["model_from"]), job
        reads = sum(one[8] for one in counts.values())
        assert sum(one[9] for one in counts.values()) < 0.8 * reads * MODEL_BYTES, counts
        assert re.search(rf"^models: {job['models']} by {job['trees']} trees$", espalier("sched", "status")[1], re.MULTILINE)


def test_misuse():
    with site() as it:
        status, _, text = run(it.create(8, workers=1), PROGRAM, "misuse", workers=1)
        assert status == OK, text


def test_usage():
    for words in (["sched", "--batch", "0"], ["sched", "--batch", "2h"], ["sched", "--listen", "nowhere"], ["sched", "--rate", "fast"],
                  ["sched", "--hub-rate", "0"], ["sched", "--slack", "-1"], ["sched", "--slack", "some"], ["sched", "--slack-wait", "never"], ["sched", "nothing"], ["sched", "status", "extra"],
                  ["hub", "create", "x", "--workers", 1, "--optimizer", "sgd lr=1", "--mode", "async"],
                  ["hub", "create", "x", "--workers", 1, "--optimizer", "sgd lr=1", "--delay-bound", 3],
                  ["hub", "create", "x", "--workers", 1, "--optimizer", "sgd lr=1", "--sched", "127.0.0.1:1"],
                  ["hub", "create", "x", "--workers", 1, "--optimizer", "sgd lr=1", "--mode", "sometimes"]):
        status, _, err = espalier(*words)
        assert status == USAGE and err, (words, status, err)


# ---- deaths ----

def test_worker_is_killed():
    for _ in range(TIMES):
        worker_dies()


def worker_dies():
    with site() as it:
        status, counts, text = run(it.create(30), PROGRAM, "die", 300, run_options=("--lose", "1"))
        assert status == OK and sorted(counts) == [0, 2, 3], text
        assert min(one[5] for one in counts.values()) >= 300, counts
        assert "goes on without worker 1" in it.hub.log(), it.hub.log()
        it.until(lambda: it.hub.job()["state"] == "idle")
        assert it.hub.status()["sessions_failed"] == 0 and it.hub.status()["memory_taken_bytes"] == 0


def test_claimed_version():
    """What a worker tells of the model's version counts for others only while it is here."""
    with site() as it:
        status, counts, text = run(it.create(8), PROGRAM, "claim", 300)
        assert status == OK and len(counts) == 4, text
        assert max(one[5] for one in counts.values()) >= 300, counts


def test_run_again_after_one_stopped():
    """
    A session that ended while one of its workers was stopped: versions of the next one count anew, at the scheduler too. The hub takes ten
    seconds to miss the stopped one, so this runs in the long tier.
    """
    if TIMES == 1:
        return
    with site() as it:
        process, stop = begin_endless(it, "--lose", "1")
        it.until(lambda: it.sched.job() and it.sched.job()["updates"]["applied"] > 100)
        stopped = process_of(it, 1)
        os.kill(stopped, signal.SIGSTOP)
        stop.touch()
        it.until(lambda: it.hub.job()["state"] == "idle")
        status, counts, text = run(it.folder / "job.ticket", PROGRAM, "until", 100)
        assert status == OK and len(counts) == 4, text
        assert all(one[1] < 10 for one in counts.values()), counts
        os.kill(stopped, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)


def version_of(it):
    return it.hub.job()["version"]


def begin_endless(it, *run_options):
    stop = it.folder / "stop"
    process = start(it.create(30), PROGRAM, "file", stop, run_options=run_options)
    assert "ready" in process.stdout.readline()
    return process, stop


def end_endless(process, stop, workers=4):
    stop.touch()
    out, err = process.communicate(timeout=PATIENCE)
    counts = counts_of(out)
    assert process.returncode == OK and len(counts) == workers, (out, err)
    return counts


def test_scheduler_is_killed():
    """The job goes on without it, and registers with the next one by itself."""
    with site() as it:
        process, stop = begin_endless(it)
        it.until(lambda: it.sched.job() and it.sched.job()["updates"]["applied"] > 20)
        for _ in range(TIMES):
            it.sched.kill()
            before = version_of(it)
            it.until(lambda before=before: version_of(it) > before + 50)
            it.start_sched()
            it.until(lambda: it.sched.job() and it.sched.job()["connected"] == 4 and it.sched.job()["updates"]["applied"] > 20)
        counts = end_endless(process, stop)
        assert all(one[4] < one[0] for one in counts.values()), counts


def test_worker_is_stopped():
    """Any worker, at any time: the others go on, and so does it."""
    with site() as it:
        process, stop = begin_endless(it)
        it.until(lambda: it.sched.job() and it.sched.job()["connected"] == 4)
        for number in range(TIMES):
            worker = process_of(it, number % 4)
            os.kill(worker, signal.SIGSTOP)
            before = version_of(it)
            it.until(lambda before=before: version_of(it) > before + 30)
            os.kill(worker, signal.SIGCONT)
        end_endless(process, stop)


def test_scheduler_is_stopped():
    with site() as it:
        process, stop = begin_endless(it)
        it.until(lambda: it.sched.job() and it.sched.job()["updates"]["applied"] > 20)
        for _ in range(TIMES):
            it.sched.process.send_signal(signal.SIGSTOP)
            before = version_of(it)
            it.until(lambda before=before: version_of(it) > before + 50)
            it.sched.process.send_signal(signal.SIGCONT)
            it.until(lambda: it.sched.job() and it.sched.job()["connected"] == 4)
        end_endless(process, stop)


def test_hub_is_killed():
    with site() as it:
        process, _ = begin_endless(it)
        it.hub.kill()
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode != OK and len(re.findall(rf"(?:model|update): .*hub at {it.hub_address}", err)) == 4, err


# ---- sums whose workers die ----

def process_of(it, worker):
    """The latest process that registered as this worker."""
    return int(re.findall(rf"worker {worker} \(process (\d+)\) has registered", it.sched.log())[-1])


def aggregator_of(it):
    """A worker that sends a sum now, or None."""
    job = it.sched.job()
    found = [link["worker"] for link in job["links"] if (link["sends_to"] or "").startswith("hub, sum")] if job else []
    return found[0] if found else None


def member_of(it):
    job = it.sched.job()
    found = [link["worker"] for link in job["links"] if (link["sends_to"] or "").startswith("worker")] if job else []
    return found[0] if found else None


def await_one(it, find):
    found = []
    it.until(lambda: found.append(find(it)) or found[-1] is not None)
    return found[-1]


def break_sum(find, number, options=SUMS):
    """A signal to a worker that takes part in a sum: the job goes on, and its weights stay those of whole updates."""
    with site(*options) as it:
        process, stop = begin_endless(it, "--lose", "1")
        worker = await_one(it, find)
        os.kill(process_of(it, worker), number)
        before = version_of(it)
        it.until(lambda: version_of(it) > before + 30)
        if number == signal.SIGSTOP:
            os.kill(process_of(it, worker), signal.SIGCONT)
        counts = end_endless(process, stop, 4 if number == signal.SIGSTOP else 3)
        assert number == signal.SIGSTOP or worker not in counts, (worker, counts)
        return it.sched.job()["updates"]["sum_broken"]


def test_aggregator_is_killed():
    for _ in range(TIMES):
        break_sum(aggregator_of, signal.SIGKILL)


def test_member_is_killed():
    for _ in range(TIMES):
        break_sum(member_of, signal.SIGKILL)


def test_aggregator_is_stopped():
    for _ in range(TIMES):
        break_sum(aggregator_of, signal.SIGSTOP)


def test_member_is_stopped():
    for _ in range(TIMES):
        break_sum(member_of, signal.SIGSTOP)


def test_chain_ends_are_killed():
    for _ in range(TIMES):
        break_sum(aggregator_of, signal.SIGKILL, CHAINS)


def test_chain_members_are_killed():
    for _ in range(TIMES):
        break_sum(member_of, signal.SIGKILL, CHAINS)


def test_chain_ends_are_stopped():
    for _ in range(TIMES):
        break_sum(aggregator_of, signal.SIGSTOP, CHAINS)


def test_chain_members_are_stopped():
    for _ in range(TIMES):
        break_sum(member_of, signal.SIGSTOP, CHAINS)


def forwarder_of(it):
    """A worker from which another one gets the model, or got its latest one."""
    job = it.sched.job()
    found = [link["model_from"] for link in job["links"] if (link["model_from"] or "").startswith("worker")] if job else []
    return int(found[0].split()[1]) if found else None


def test_forwarder_is_killed():
    for _ in range(TIMES):
        break_sum(forwarder_of, signal.SIGKILL)


def test_forwarder_is_stopped():
    for _ in range(TIMES):
        break_sum(forwarder_of, signal.SIGSTOP)


def test_scheduler_of_sums_is_killed():
    with site(*SUMS) as it:
        process, stop = begin_endless(it)
        for _ in range(TIMES):
            await_one(it, aggregator_of)
            it.sched.kill()
            before = version_of(it)
            it.until(lambda before=before: version_of(it) > before + 30)
            it.start_sched()
        await_one(it, aggregator_of)
        end_endless(process, stop)


# ---- strangers ----

def test_other_key():
    """A scheduler of another hub is none for this job's workers."""
    with site() as it:
        it.sched.end()
        other = it.folder / "other.key"
        other.write_text("ab" * 32)
        other.chmod(0o600)
        it.start_sched(key=other)
        status, counts, text = run(it.create(30), PROGRAM, "until", 40)
        assert status == OK and all(one[4] == 0 for one in counts.values()), text
        assert it.sched.status()["jobs"] == [] and it.sched.status()["connections_refused"] > 0, it.sched.status()


def test_strangers():
    with site() as it:
        process, stop = begin_endless(it)
        silent = []
        for noise in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"", b"E", bytes(200)) * 40:
            with contextlib.suppress(OSError):
                one = socket.create_connection(("127.0.0.1", it.sched_port), 5)
                silent.append(one)
                one.sendall(noise)
        before = it.sched.job()["updates"]["applied"] if it.sched.job() else 0
        it.until(lambda: it.sched.job() and it.sched.job()["updates"]["applied"] > before + 20)
        end_endless(process, stop)
        for one in silent:
            one.close()
        assert it.sched.status()["connections_refused"] > 0


def listening_port(pid):
    """The port at which the process listens on the loopback: a worker's, for updates of others."""
    inodes = set()
    for one in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(one)))
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    found = [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes]
    assert len(found) == 1, (pid, found)
    return found[0]


def test_strangers_at_aggregators():
    """Strangers, silent or loud, cost the sums nothing."""
    with site(*SUMS) as it:
        process, stop = begin_endless(it)
        await_one(it, aggregator_of)
        silent = []
        for worker in range(4):
            port = listening_port(process_of(it, worker))
            for noise in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"", b"E", bytes(200)) * 20:
                with contextlib.suppress(OSError):
                    one = socket.create_connection(("127.0.0.1", port), 5)
                    silent.append(one)
                    one.sendall(noise)
        before = it.sched.job()["sums"]
        it.until(lambda: it.sched.job()["sums"] > before + 5)
        end_endless(process, stop)
        for one in silent:
            one.close()


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_") and ONLY in name:
            began = time.monotonic()
            test()
            print(f"{name}: {time.monotonic() - began:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
