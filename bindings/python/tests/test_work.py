"""Calls in the background: waiting, awaiting, callbacks, persistent ones, and those that nobody holds."""

from __future__ import annotations

import array
import asyncio
import gc
import select
import threading
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
        seen = weakref.ref(data)
        if job.rank == 0:
            job.world.start.allreduce(data, type="f32")
            del data
            gc.collect()
            # Nobody holds the work, the other rank has not even called: the memory must be there.
            assert seen() is not None
            job.world.send(b"go", 1)
            job.world.barrier()
            job.world.barrier()
            gc.collect()
            return seen() is None
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
