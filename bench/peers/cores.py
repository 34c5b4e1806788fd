"""Are the two cores of this machine in one cache? A start counts if they were, before it and after it.

Where the cores of a virtual machine lie is its host's business, and changes every now and then. Which contestant happens to run
meanwhile is chance, and a median of a few starts does not even that out: what is in caches takes two to five times as long.
"""
import os
import pathlib
import subprocess
import time

NEAR = 2.0     # times the least that was seen
PATIENCE = 5   # seconds to wait for cores that are near
TRIES = 2      # starts, at most, until one of them counts


class Cores:
    def __init__(self, program):
        self.program = program  # None: there are not just two
        self.least = None
        self.repeated = self.kept = 0

    def measure(self):
        ns = float(subprocess.run([self.program], capture_output=True, text=True, check=True).stdout)
        self.least = ns if self.least is None else min(ns, self.least)
        return ns

    def are_near(self):
        return self.program is None or self.measure() <= NEAR * self.least

    def wait(self):
        until = time.monotonic() + PATIENCE
        while not self.are_near() and time.monotonic() < until:
            time.sleep(0.2)

    def run(self, start):
        """What start() returns, of the first time that the cores were near all along, or else of the last."""
        for attempt in range(TRIES):
            self.wait()
            found = start()
            if self.are_near():
                return found
            self.repeated += attempt + 1 < TRIES
        self.kept += 1
        return found

    def text(self):
        if self.program is None:
            return "more than two"
        return (f"a cache line takes {self.least:.0f} ns there and back when they are near; {self.repeated} starts were repeated because they were not, "
                f"{self.kept} count all the same")


def find_cores(folder):
    """The cores of this machine; what measures them is compiled into the folder."""
    if len(os.sched_getaffinity(0)) != 2:
        return Cores(None)
    source, program = pathlib.Path(__file__).with_name("cores.c"), pathlib.Path(folder) / "cores"
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.exists() or program.stat().st_mtime <= source.stat().st_mtime:
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-pthread", source, "-o", program], check=True)
    return Cores(program)
