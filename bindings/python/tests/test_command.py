"""python -m espalier, and what the package says of itself."""

from __future__ import annotations

import subprocess
import sys

import espalier


def test_the_command(command, environment):
    told = subprocess.run([sys.executable, "-m", "espalier", "--version"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert espalier.library_version in told.stdout


def test_versions_agree():
    assert espalier.__version__ == espalier.library_version


def test_what_is_promised_is_there():
    for name in espalier.__all__:
        assert getattr(espalier, name).__doc__, name


def test_joining_through_a_function():
    """Two ranks join by an all-gather of the caller's, as MPI or a store would give."""
    import threading

    room: list[bytes] = [b"", b""]
    both = threading.Barrier(2)
    sums = [0, 0]

    def one(rank: int) -> None:
        def allgather(mine: bytes) -> list[bytes]:
            room[rank] = mine
            both.wait()
            all = list(room)
            both.wait()
            return all

        with espalier.init(rank, 2, allgather=allgather) as job:
            data = memoryview(bytearray(4)).cast("i")
            data[0] = rank + 1
            job.world.allreduce(data)
            sums[rank] = data[0]

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [3, 3]


def test_the_log(alone):
    lines: list[tuple[int, str]] = []
    with espalier.init(0, 1, settings={"log": "trace"}, log=lambda level, line: lines.append((level, line))) as job:
        job.world.barrier()
    assert lines
    assert all(isinstance(level, int) and isinstance(line, str) for level, line in lines)
