"""Bad input is refused before anything happens; failures of others carry their rank and host."""

from __future__ import annotations

import array
import os
import subprocess
import sys
import textwrap

import pytest

import espalier


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda world: world.allreduce([1.0, 2.0]), "neither the buffer protocol nor DLPack"),
        (lambda world: world.allreduce("text"), "encode"),
        (lambda world: world.allreduce(b"constant"), "cannot be used|read-only"),
        (lambda world: world.allreduce(bytearray(5), type="f32"), "whole number"),
        (lambda world: world.allreduce(bytearray(8), type="f31"), "not a type"),
        (lambda world: world.allreduce(array.array("f", [1]), op="median"), "not an operation"),
        (lambda world: world.allreduce(array.array("f", [1]), op="scaled"), "needs factor"),
        (lambda world: world.allreduce(array.array("f", [1]), factor=2.0), "goes with"),
        (lambda world: world.allreduce(array.array("f", [1]), array.array("f", [1, 2])), "are needed"),
        (lambda world: world.allreduce(array.array("f", [1]), array.array("d", [1])), "different types"),
        (lambda world: world.allreduce([array.array("f", [1]), array.array("i", [1])]), "different types"),
        (lambda world: world.allreduce([]), "empty"),
        (lambda world: world.allreduce(memoryview(bytearray(16))[::2]), "contiguous"),
        (lambda world: world.broadcast(bytearray(1), root=9), "no rank 9"),
        (lambda world: world.reduce_scatter(array.array("f", [1]), counts=[1, 2]), "needs 1"),
        (lambda world: world.allreduce(array.array("f", [1]), timeout=-1), "positive"),
        (lambda world: world.allreduce(array.array("f", [1]), plan="origami"), "origami"),
        (lambda world: world.send(b"", 5), "5"),
        (lambda world: world.create([3]), "no rank 3"),
        (lambda world: world.split(-1), "negative"),
    ],
)
def test_bad_input(alone, call, reason):
    with pytest.raises(espalier.InvalidError, match=reason) as caught:
        call(alone.world)
    assert isinstance(caught.value, ValueError)
    # Nothing has happened: the group is as good as before.
    assert alone.world.error is None
    alone.world.barrier()


def test_joining_with_nonsense():
    with pytest.raises(espalier.InvalidError, match="counted from 0"):
        espalier.init(3, 3)
    with pytest.raises(espalier.InvalidError, match="together"):
        espalier.init(size=3)
    with pytest.raises(espalier.EspalierError, match="chunk_bites"):
        espalier.init(0, 1, settings={"chunk_bites": 1})


def test_use_after_leaving():
    job = espalier.init(0, 1)
    work = job.world.start.barrier()
    work.wait()
    job.close()
    job.close()
    for use in (job.world.barrier, work.wait, job.stats, lambda: job.alloc(1), work.done):
        with pytest.raises(espalier.StateError):
            use()


def test_memory_outlives_the_job():
    job = espalier.init(0, 1)
    memory, other = job.alloc(100_000, "f32"), job.alloc(100_000, "f32")
    memory[99_999] = other[0] = 7.0
    del other
    job.close()
    assert memory[99_999] == 7.0
    memory[0] = 3.0
    assert memory[0] == 3.0


def test_mismatch_names_both_calls(ranks):
    def body(job):
        with pytest.raises(espalier.MismatchError) as caught:
            job.world.allreduce(array.array("f", [0.0] * (10 + job.rank)))
        with pytest.raises(espalier.EspalierError):
            job.world.barrier()
        assert job.world.error is not None
        return str(caught.value)

    for sentence in ranks.run(2, body):
        assert "10" in sentence and "11" in sentence


def test_abort(ranks):
    def body(job):
        if job.rank == 0:
            job.world.abort("enough")
        with pytest.raises(espalier.AbortedError, match="enough"):
            for _ in range(1000):
                job.world.barrier()

    ranks.run(3, body)


def test_a_deadline_names_who_is_missing(ranks):
    def body(job):
        if job.rank == 0:
            with pytest.raises(espalier.DeadlineError) as caught:
                job.world.allreduce(bytearray(8), type="f32", timeout=0.2)
            assert isinstance(caught.value, TimeoutError)
            return caught.value.rank
        # Until the other's error has failed the group.
        with pytest.raises(espalier.EspalierError):
            job.world.recv(bytearray(1))
        return None

    assert ranks.run(2, body)[0] == 1


VICTIM = textwrap.dedent(
    """
    import array, os, signal, sys, espalier
    job = espalier.init()
    data = array.array("f", [1.0] * 100_000)
    try:
        for step in range(1_000_000):
            if job.rank == 1 and step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            job.world.allreduce(data)
    except espalier.PeerError as error:
        assert isinstance(error, ConnectionError)
        shrunk = job.world.shrink()
        total = array.array("f", [1.0])
        shrunk.group.allreduce(total)
        print("lost", error.rank, error.host == job.world.host(1), shrunk.lost, total[0], flush=True)
    job.close()
    """
)


def test_a_rank_that_dies(command, environment):
    done = subprocess.run(
        [command, "run", "-n", "3", "--lose", "1", "--", sys.executable, "-c", VICTIM],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.count("lost 1 True [1] 2.0") == 2, done.stdout


def test_an_exception_within_a_job_ends_the_others(command, environment):
    script = textwrap.dedent(
        """
        import espalier
        with espalier.init() as job:
            if job.rank == 1:
                raise KeyError("lost it")
            try:
                job.world.barrier()
            except espalier.AbortedError as error:
                print("told:", error, flush=True)
        """
    )
    done = subprocess.run(
        [command, "run", "-n", "2", "--", sys.executable, "-c", script],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert "told:" in done.stdout and "lost it" in done.stdout, done.stdout
    assert done.returncode != 0


@pytest.mark.parametrize("code, status", [("", 0), ("0", 0), ("3", 1)])
def test_leaving_by_sys_exit(command, environment, code, status):
    """With nothing to complain of it is a way to leave like any other: who is still in the last call gets its result."""
    script = textwrap.dedent(
        f"""
        import array, sys, espalier
        with espalier.init() as job:
            data = array.array("f", [1.0])
            for _ in range(50):
                job.world.reduce(data)
            if {status} == 0 or job.rank == 1:
                sys.exit({code})
            job.world.barrier()
        """
    )
    done = subprocess.run(
        [command, "run", "-n", "3", "--", sys.executable, "-c", script],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode != 0) == (status != 0), done.stdout
    assert ("AbortedError" in done.stdout) == (status != 0), done.stdout


def test_jobs_that_nobody_closes(command, environment):
    """They are left in the order in which they were joined, on all ranks: leaving one waits for all."""
    script = "import espalier; jobs = [espalier.init() for _ in range(4)]; print('here', jobs[3].world.size, flush=True)"
    done = subprocess.run(
        [command, "run", "-n", "2", "--", sys.executable, "-c", script],
        env={**environment, "ESP_LINGER_SECONDS": "5"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.count("here 2") == 2, done.stdout
    assert "did not leave" not in done.stdout, done.stdout


def test_control_c_ends_a_wait(command, environment):
    """The second rank never calls: the first is interrupted in a large call."""
    script = textwrap.dedent(
        """
        import os, signal, threading, espalier
        job = espalier.init()
        if job.rank == 0:
            work = job.world.start.allreduce(bytearray(1 << 20), type="f32")
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                work.wait()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            job.world.abort("interrupted")
        else:
            try:
                job.world.recv(bytearray(1))
            except espalier.AbortedError:
                pass
        job.close()
        """
    )
    done = subprocess.run(
        [command, "run", "-n", "2", "--", sys.executable, "-c", script],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert "interrupted" in done.stdout, done.stdout


def test_a_child_after_fork(alone):
    child = os.fork()
    if child == 0:
        try:
            alone.world.barrier()
        except espalier.ForkedError:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_exceptions_have_a_class_for_every_status():
    from espalier import _native

    codes = {value for name, value in vars(_native).items() if name.startswith("E") and name[1:].isupper() and isinstance(value, int)}
    assert set(espalier.errors.CLASSES) == codes
