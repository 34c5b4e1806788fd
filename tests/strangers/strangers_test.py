#!/usr/bin/env python3
"""strangers_test.py ESPALIER STRANGER - HTTP, TLS, SSH, random and slow bytes and scans at every port of a job, before and during it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from crowd import await_ports, ports_of, send_strangers, tally

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402

ESPALIER, STRANGER = sys.argv[1:3]
RANKS = 4
TICKETS, TICKETS_PER_SECOND = 200, 400  # who may come to the port of a rank before it is a flood, about: docs/joining.md
CHALLENGE_BYTES = 40  # what the handshake says to anybody: docs/joining.md


class Job:
    """Ranks of `espalier bench`, started one by one."""

    def __init__(self, sizes, seconds, **settings):
        self.settings = {f"ESP_{name.upper()}": str(value) for name, value in settings.items()}
        self.words = [ESPALIER, "bench", "allreduce", "--size", sizes, "--seconds", str(seconds), "--json"]
        self.leader = f"127.0.0.1:{free_port()}"
        self.ranks, self.logs = [], []

    def start(self, rank):
        environment = {**os.environ, "ESP_RANK": str(rank), "ESP_SIZE": str(RANKS), "ESP_LEADER": self.leader,
                       "ESP_TRANSPORT": "tcp", "ESP_LIVENESS_MS": "4000", "ESP_JOIN_SECONDS": "60", **self.settings}
        log = tempfile.TemporaryFile("w+")
        self.logs.append(log)
        self.ranks.append(subprocess.Popen(self.words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                           text=True))

    def pids(self):
        return [rank.pid for rank in self.ranks]

    def await_ports(self):
        try:
            return await_ports(self.pids, RANKS)
        except AssertionError as error:
            ends = "\n".join(f"rank {number}, status {rank.poll()}: {self.log(number)}" for number, rank in enumerate(self.ranks))
            raise AssertionError(f"{error}\n{ends}") from None

    def log(self, rank):
        return os.pread(self.logs[rank].fileno(), 1 << 24, 0).decode(errors="replace")

    def await_line(self, rank, words, seconds=60):
        until = time.monotonic() + seconds
        while words not in self.log(rank):
            assert time.monotonic() < until and self.ranks[rank].poll() is None, f"rank {rank} never said '{words}':\n{self.log(rank)}"
            time.sleep(0.02)

    def finish(self):
        """What rank 0 has measured; everybody's log."""
        outputs = [rank.communicate(timeout=200)[0] for rank in self.ranks]
        logs = []
        for log in self.logs:
            log.seek(0)
            logs.append(log.read())
            log.close()
        for number, rank in enumerate(self.ranks):
            assert rank.returncode == 0, f"rank {number} ended with {rank.returncode}:\n{logs[number]}"
        return json.loads(outputs[0]), logs

    def end(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
                rank.wait()
        for log in self.logs:
            log.close()


class StrangersTest(unittest.TestCase):
    def check(self, job, tallies, most_lines=10):
        result, logs = job.finish()
        for row in result["results"]:
            for place in ("in_place", "out_of_place"):
                self.assertEqual(row[place]["nwrong"], 0, row)
        for log in logs:
            self.assertLess(len(log.splitlines()), most_lines, "strangers make no line each:\n" + log)
        for tally_of_kinds in tallies:
            for kind, counts in tally_of_kinds.items():
                self.assertGreater(counts["connected"], 0, f"{kind} never got through: {counts}")
                self.assertLessEqual(counts["most_bytes"], CHALLENGE_BYTES, f"{kind} was told something: {counts}")

    def test_before_and_during(self):
        job = Job("1K,256K", 1)
        self.addCleanup(job.end)
        for rank in range(RANKS - 1):
            job.start(rank)
        # The leader listens for those who join, and each rank for its connections later on.
        before = send_strangers(STRANGER, job.await_ports(), 1.0, 300)
        counts = [tally(before)]
        job.start(RANKS - 1)
        during = send_strangers(STRANGER, job.await_ports(), 3.0, 300, seed=2)
        counts.append(tally(during))
        self.check(job, counts)

    def test_flood(self):
        job = Job("4K", 2)
        self.addCleanup(job.end)
        for rank in range(RANKS):
            job.start(rank)
        during = send_strangers(STRANGER, job.await_ports(), 2.0, 5000, "scan,reset,random")
        self.check(job, [tally(during)])

    def test_flood_is_kept_out(self):
        """Once the ranks are connected, most of those who come are not let in."""
        job = Job("4K", 4, log="trace", log_subsystems="NET")
        self.addCleanup(job.end)
        for rank in range(RANKS):
            job.start(rank)
        job.await_line(0, "lane 0 is connected")  # the ports are settled before the first call
        # At one port: how many come in a second is the machine's business, and a busy one may send no flood to all of them.
        began = time.monotonic()
        flood = tally(send_strangers(STRANGER, ports_of([job.ranks[0].pid]), 2.0, 16000, "scan,reset,random", stay=0.05))
        welcome = TICKETS + TICKETS_PER_SECOND * (time.monotonic() - began)
        begun = sum(counts["begun"] for counts in flood.values())
        got_in = sum(counts["connected"] for counts in flood.values())
        if begun > 3 * welcome:
            self.assertLess(got_in, begun // 2, flood)
        self.check(job, [flood], most_lines=200)
        if begun <= 3 * welcome:
            self.skipTest(f"this machine is too busy to send a flood: {begun} strangers, of whom {welcome:.0f} are welcome")

    def test_ranks_get_in(self):
        """A rank that connects in the middle of a flood gets in, as others announce it."""
        # Small calls take the first lane; the second is connected when the large ones come, which is while strangers keep the port busy.
        job = Job("8,1M", 2, lanes=2, deadline_seconds=12, log="trace", log_subsystems="NET")
        self.addCleanup(job.end)
        for rank in range(RANKS):
            job.start(rank)
        job.await_line(0, "lane 0 is connected")
        port = ports_of([job.ranks[0].pid])
        flood = send_strangers(STRANGER, port, 60.0, 12000, "scan,reset,random", stay=0.05)
        self.addCleanup(flood.communicate)
        self.addCleanup(flood.terminate)
        job.await_line(0, "lane 1 is connected to rank")
        self.check(job, [], most_lines=200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
