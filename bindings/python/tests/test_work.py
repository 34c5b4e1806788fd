"""Calls in the background: waiting, awaiting, callbacks, persistent ones, and those that nobody holds."""

from __future__ import annotations

import array
import asyncio
import gc
import select
import subprocess
import sys
import textwrap
import threading
import types
import weakref

import pytest

import espalier


def test_wait_and_result(ranks):
    def body(job):
        works = [job.world.start.allreduce(array.array("i", [n])) for n in range(50)]
        results = [work.wait(30)[0] for work in works]
        assert all(work.done() and work.exception() is None for work in works)
        assert [work.result()[0] for work in works] == results
        return results

    assert ranks.run(3, body) == [[3 * n for n in range(50)]] * 3


def test_a_wait_that_is_too_short_changes_nothing(ranks):
    def body(job):
        data = array.array("d", [1.0])
        if job.rank == 0:
            work = job.world.start.allreduce(data)
            with pytest.raises(espalier.StateError, match="not ended"):
                work.result()
            with pytest.raises(TimeoutError):
                work.wait(0.01)
            job.world.send(b"go", 1)
            work.wait()
        else:
            job.world.recv(bytearray(2), 0)
            job.world.allreduce(data)
        return data[0]

    assert ranks.run(2, body) == [2.0, 2.0]


def test_await(ranks):
    def body(job):
        async def several():
            first = job.world.start.allreduce(array.array("i", [1]))
            second = job.world.start.allgather(array.array("i", [job.rank]))
            ended = await asyncio.gather(_as_coroutine(second), _as_coroutine(first))
            # One that has ended already, and one that fails.
            assert (await first)[0] == 2
            with pytest.raises(espalier.MismatchError):
                await job.world.start.allreduce(array.array("i", [0] * (1 + job.rank)))
            return list(ended[0]), ended[1][0]

        return asyncio.run(several())

    assert ranks.run(2, body) == [([0, 1], 2)] * 2


async def _as_coroutine(work):
    return await work


def test_a_descriptor_for_other_loops(ranks):
    def body(job):
        work = job.world.start.barrier()
        readable, _, _ = select.select([work], [], [], 30)
        assert readable == [work] and work.done()

    ranks.run(2, body)


def test_callbacks_come_from_one_thread(ranks):
    def body(job):
        ended, threads = threading.Event(), set()
        results = []

        def called(work):
            threads.add(threading.current_thread().name)
            results.append(work.result()[0])
            if len(results) == 20:
                ended.set()
            if len(results) == 3:
                raise RuntimeError("a callback's own fault ends nothing")

        for n in range(20):
            job.world.start.allreduce(array.array("q", [n])).add_done_callback(called)
        assert ended.wait(30)
        return sorted(results), threads

    for results, threads in ranks.run(2, body):
        assert results == [2 * n for n in range(20)]
        assert threads == {"espalier-watcher"}


def test_prepared_calls(ranks):
    def body(job):
        data = array.array("f", [1.0] * 10)
        again = job.world.prepare.allreduce(data)
        assert not again.done()
        with pytest.raises(espalier.StateError, match="restart"):
            again.wait()
        for _ in range(5):
            again()
        assert again.restart().wait()[0] == 2.0**6
        return again.plan

    assert len(set(ranks.run(2, body))) == 1


def test_memory_lives_until_work_has_ended(ranks):
    class Watched(bytearray):
        pass

    def body(job):
        data = Watched(1 << 20)
        gone = threading.Event()
        weakref.finalize(data, gone.set)
        if job.rank == 0:
            job.world.start.allreduce(data, type="f32")
            del data
            gc.collect()
            # Nobody holds the work, the other rank has not even called: the memory must be there.
            assert not gone.is_set()
            job.world.send(b"go", 1)
            job.world.barrier()
            job.world.barrier()
            # The next call after its end here, which may be later than the other's, lets go of it.
            return any(gone.wait(0.01) or job._sweep() for _ in range(6000))
        job.world.recv(bytearray(2), 0)
        job.world.allreduce(data, type="f32")
        job.world.barrier()
        job.world.barrier()
        return True

    assert all(ranks.run(2, body))


def test_ten_thousand_works_leave_nothing(alone):
    data = array.array("f", [0.0])
    for _ in range(10_000):
        alone.world.start.allreduce(data)
    alone.world.barrier()
    alone._sweep()
    assert len(alone._flights) == 0


def test_a_job_that_is_forgotten_keeps_its_memory():
    import espalier.job

    class Watched(bytearray):
        pass

    def forget():
        job = espalier.init(0, 1, log=lambda level, line: None)
        data = Watched(64)
        job.world.prepare.allreduce(data, type="f32")
        return weakref.ref(job)

    seen = forget()
    gc.collect()
    job = seen()
    assert job is not None and job in espalier.job._open
    job.close()
    assert job not in espalier.job._open


def test_a_callback_may_leave_the_job(alone):
    """It is called by the thread that leaving has to end; what has not ended by then is told, too."""
    left, told = threading.Event(), threading.Event()
    said = []

    def leave(work):
        alone.close()
        left.set()

    def never(work):
        said.append(work.exception())
        told.set()

    # A receive that nobody sends to.
    alone.world.start.recv(bytearray(1), 0).add_done_callback(never)
    alone.world.start.barrier().add_done_callback(leave)
    assert left.wait(30) and told.wait(30)
    assert not alone.is_open and isinstance(said[0], espalier.StateError)


LEAVING = textwrap.dedent(
    """
    import atexit, threading
    left, awaited = threading.Event(), threading.Event()
    def tell():  # the last of all, before Python goes
        print([one.name for one in threading.enumerate()], flush=True)
        awaited.set()
    atexit.register(tell)
    import espalier
    class Told(threading.Thread):
        def join(self, timeout=None):
            awaited.set()
            super().join(timeout)
    espalier.work.threading.Thread = Told
    job = espalier.init(0, 1)
    def leave(work):
        job.close()
        left.set()
        awaited.wait()  # until somebody waits for this thread
    job.world.start.barrier().add_done_callback(leave)
    left.wait()
    """
)


def test_python_goes_after_a_callback_that_left_the_job(environment):
    """A thread that comes back from C++ when Python has gone, from setting a future of torch for example, aborts the process."""
    done = subprocess.run([sys.executable, "-c", LEAVING], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "['MainThread']\n")


STAYING = textwrap.dedent(
    """
    import sys, threading
    import espalier
    espalier.work.AT_EXIT_SECONDS = 0.01
    job, began = espalier.init(0, 1), threading.Event()
    def stay(work):
        if sys.argv[1] == "leaves":
            job.close()
        began.set()
        threading.Event().wait()
    job.world.start.barrier().add_done_callback(stay)
    began.wait()
    """
)


@pytest.mark.parametrize("how", ["leaves", "stays"])
def test_python_goes_though_a_callback_never_ends(environment, how):
    done = subprocess.run([sys.executable, "-c", STAYING, how], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_threads_share_what_time_there_is_at_the_end(monkeypatch):
    now, asked = [100.0], []

    class Endless:
        def join(self, timeout=None):
            asked.append(timeout)
            now[0] += timeout

    class Short:
        def join(self, timeout=None):
            now[0] += 1.0

    monkeypatch.setattr(espalier.work, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(espalier.work, "_waited_seconds", 0.0)
    for thread in (Short(), Endless(), Endless()):
        espalier.work.join_at_exit(thread)
    assert asked == [espalier.work.AT_EXIT_SECONDS - 1, 0]


def test_the_last_thread_may_be_taken_out_by_another(monkeypatch):
    class Racing(set):
        def __bool__(self):
            some = len(self) > 0
            self.clear()  # as end_before_python() does in another thread, just now
            return some

    monkeypatch.setattr(espalier.work, "_unawaited", Racing([threading.Thread()]))
    espalier.work.wait_for_threads()


BOTH_LEAVE = textwrap.dedent(
    """
    import sys
    import espalier
    job = espalier.init(0, 1)
    def leave(work):
        if work.exception():
            job.close()
            print("told", flush=True)
    job.world.start.recv(bytearray(1), 0).add_done_callback(leave)
    if sys.argv[1] == "close":
        job.close()
    """
)


@pytest.mark.parametrize("how", ["close", "end"])
def test_a_callback_leaves_the_job_while_another_thread_does(environment, how):
    """That thread waits for the callback, which must not wait for it."""
    done = subprocess.run([sys.executable, "-c", BOTH_LEAVE, how], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "told\n"), done.stderr  # which also has the call that was dropped


def test_leaving_tells_who_waits_for_what_never_ends(ranks):
    def body(job):
        told = []
        if job.rank == 0:
            job.world.start.allreduce(array.array("i", [1])).add_done_callback(lambda work: told.append(work.exception()))
        job.close()
        return told

    told = ranks.run(2, body, settings={"linger_seconds": 1})
    assert len(told[0]) == 1 and isinstance(told[0][0], espalier.StateError)


def test_leaving_while_another_thread_waits(ranks):
    """In the background, and in a blocking call: neither hangs, and neither touches what is gone."""

    def body(job):
        if job.rank == 1:
            with pytest.raises(espalier.EspalierError):
                job.world.recv(bytearray(1), 0)
            return []
        began, said = threading.Barrier(3), []

        def waits(call):
            began.wait()
            try:
                call()
            except espalier.EspalierError as error:
                said.append(type(error).__name__)

        work = job.world.start.allreduce(array.array("i", [1]))
        threads = [threading.Thread(target=waits, args=(call,)) for call in (work.wait, lambda: job.world.allreduce(array.array("i", [2])))]
        for thread in threads:
            thread.start()
        began.wait()
        job.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        return said

    said = ranks.run(2, body)[0]
    assert len(said) == 2 and set(said) <= {"StateError", "AbortedError"}


def test_many_threads_leave_at_once():
    for _ in range(20):
        job = espalier.init(0, 1)
        works = [job.world.start.barrier() for _ in range(10)]
        start, failures = threading.Barrier(4), []

        def leave():
            start.wait()
            try:
                job.close()
                assert not job.is_open
            except BaseException as failure:  # noqa: BLE001: it is looked at by the test
                failures.append(failure)

        def use():
            start.wait()
            for work in works:
                try:
                    work.done()
                    job.stats()
                except espalier.StateError:
                    pass
                except BaseException as failure:  # noqa: BLE001
                    failures.append(failure)

        threads = [threading.Thread(target=one) for one in (leave, leave, use, use)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not failures and not any(thread.is_alive() for thread in threads)
