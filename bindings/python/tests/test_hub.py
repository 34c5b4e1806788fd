"""Workers of a parameter hub, over anything that has memory."""

from __future__ import annotations

import array
import gc
import subprocess
import sys
import threading

import pytest
from conftest import raise_first

import espalier
from espalier.hub import Tensor, connect


def floats(count, value=0.0):
    return array.array("f", [value] * count)


def test_rounds(hub_server):
    def work(arguments):
        worker = arguments["worker"]
        with connect(**arguments) as hub:
            assert (hub.worker, hub.workers) == (worker, 3)
            big, small = floats(20_000, 5 if worker == 0 else 0), floats(3)
            hub.init([Tensor("big", big), Tensor("small", small, group=1)])
            assert big[0] == big[-1] == 5
            for _ in range(4):
                works = [hub.start_pushpull("big", floats(20_000, worker), big), hub.start_push(1, floats(3, worker))]
                for one in works:
                    one.wait()
                    assert one.done() and one.exception() is None
            assert hub.set(1, "lr=0.5") == 4
            assert hub.optimizer(1).startswith("sgd lr=0.5 ") and hub.optimizer().startswith("sgd lr=1 ")
            hub.pushpull("small", floats(3, 3 * worker), small)
            assert hub.stats()["calls"] >= 9 and hub.stats()["pushed_bytes"] >= 4 * (80_000 + 12)
            return big.tolist(), small.tolist()

    for big, small in raise_first(hub_server.run(3, "sgd lr=1", work)):
        assert set(big) == {5 - 4.0} and set(small) == {-4 - 1.5}


def test_shared_memory(hub_server):
    """Weights that are read, and gradients that are computed, in the memory of a host's workers."""

    def work(arguments):
        with connect(**arguments) as hub:
            first = floats(1000, 7 if arguments["worker"] == 0 else 0)
            hub.init([Tensor("w", first), Tensor("empty", floats(0))])
            weights, gradient = hub.map("w"), hub.gradient(0)
            assert weights.readonly and len(weights) == len(gradient) == 1000 and weights[999] == 7
            for step in range(3):
                gradient[:] = floats(1000, arguments["worker"] + step)
                hub.push("w", gradient)
                assert weights[0] == weights[999] == 7 - sum(0.5 + one for one in range(step + 1))
            return list(weights)

    one, other = raise_first(hub_server.run(2, "sgd lr=1", work))
    assert one == other

    def alone(arguments):
        arguments["settings"] = {**arguments["settings"], "transport": "tcp"}
        with connect(**arguments) as hub:
            hub.init([Tensor("w", floats(10))])
            for refused in (hub.map, hub.gradient):
                with pytest.raises(espalier.UnsupportedError, match="pushes by itself"):
                    refused("w")

    raise_first(hub_server.run(2, "sgd lr=1", alone))


def test_asynchronous(hub_server):
    def work(arguments):
        with connect(**arguments) as hub:
            big, small = floats(20_000), floats(3)
            hub.init([Tensor("big", big), Tensor("small", small)])
            assert hub.delay_bound == 3
            applied = 0
            while applied < 10:
                version = hub.model([big, small])
                assert all(-one >= version for one in (big[0], big[-1], small[0]))
                result = hub.update([floats(20_000, 1), floats(3, 1)], version, norm=1.5)
                assert result.position == 0 and (not result.applied or 1 <= result.delay <= 3), result
                assert not result.applied or result.version - version == result.delay, result
                applied += result.applied
            for bad in ([big], [big, big], [big, floats(2)]):
                with pytest.raises(espalier.InvalidError):
                    hub.model(bad)
            with pytest.raises(espalier.InvalidError, match="norm"):
                hub.update([big, small], version, norm=float("nan"))
            with pytest.raises(espalier.UnsupportedError, match="asynchronous"):
                hub.push("small", small)

    raise_first(hub_server.run(3, "sgd lr=1", work, "--mode", "async", "--delay-bound", "3"))


def test_rounds_are_not_asynchronous(hub_server):
    def work(arguments):
        with connect(**arguments) as hub:
            w = floats(4)
            hub.init([Tensor("w", w)])
            assert hub.delay_bound == 0
            for call in (lambda: hub.model([w]), lambda: hub.update([w], 0)):
                with pytest.raises(espalier.UnsupportedError, match="in rounds"):
                    call()

    raise_first(hub_server.run(1, "sgd lr=1", work))


def test_types_of_memory(hub_server):
    numpy = pytest.importorskip("numpy")

    def work(arguments):
        with connect(**arguments) as hub:
            weights = numpy.zeros((2, 3), "f4")
            hub.init([Tensor("w", weights)])
            hub.pushpull("w", bytes(24), weights)  # bytes are elements of the tensor's type
            for bad in (numpy.zeros(6, "f8"), numpy.zeros(5, "f4"), numpy.zeros((3, 4), "f4")[:, :2]):
                with pytest.raises(espalier.InvalidError):
                    hub.pushpull("w", bad, weights)
            with pytest.raises(espalier.InvalidError, match="no tensor 'v'"):
                hub.push("v", weights)
            with pytest.raises(espalier.InvalidError, match="not writable"):
                hub.pull("w", bytes(24))
            hub.pushpull(0, numpy.ones(6, "f4"), weights)
            return weights.tolist()

    assert raise_first(hub_server.run(2, "sgd lr=1", work)) == [[[-1.0] * 3] * 2] * 2


def test_refused_types(hub_server):
    def work(arguments):
        with connect(**arguments) as hub:
            hub.init([Tensor("w", array.array("d", [0]))])

    assert all(
        isinstance(one, espalier.UnsupportedError) and "f64" in str(one) for one in hub_server.run(2, "sgd lr=1", work)
    )


def test_workers_differ(hub_server):
    def work(arguments):
        with connect(**arguments) as hub:
            w = floats(4)
            hub.init([Tensor("w", w)])
            if arguments["worker"] == 1:
                hub.set(0, "lr=0.25")
            hub.pushpull("w", w, w)

    for failure in hub_server.run(2, "sgd lr=1", work):
        assert (
            isinstance(failure, espalier.MismatchError) and "worker 1" in str(failure) and "lr=0.25" in str(failure)
        ), failure


def test_closed_while_others_wait(hub_server):
    """A thread that waits for work comes back when another closes the hub; memory of dropped work lives so long."""

    def work(arguments):
        hub = connect(**arguments)
        w = floats(100_000)
        hub.init([Tensor("w", w)])
        if arguments["worker"] == 1:
            return hub.close()
        failure = []

        def wait(one):
            try:
                one.wait()
            except espalier.EspalierError as wrong:
                failure.append(wrong)

        waiting = threading.Thread(target=wait, args=(hub.start_push("w", floats(100_000)),))
        waiting.start()
        try:
            hub.start_push("w", floats(100_000))  # nothing refers to its work or memory
        except espalier.PeerError:
            pass  # the other worker is gone already
        gc.collect()
        hub.close()
        waiting.join()
        assert failure and not hub.is_open
        with pytest.raises(espalier.StateError):
            hub.push("w", w)
        return failure[0]

    raised, left = hub_server.run(2, "sgd lr=1", work)
    assert left is None and isinstance(raised, (espalier.PeerError, espalier.StateError, espalier.AbortedError)), raised


def test_state(hub_server):
    """Momentum is written by worker 0, of rounds that lie before, and read by any."""

    def work(arguments):
        with connect(**arguments) as hub:
            w, v, worker = floats(5, 10), floats(5), arguments["worker"]
            hub.init([Tensor("w", w)])
            if worker == 0:
                hub.start_write_state("w", 1, floats(5, 8), rounds=3).wait()
            else:
                with pytest.raises(espalier.InvalidError, match="worker 0 does"):
                    hub.start_write_state("w", 1, floats(5), rounds=3)
            for bad, expected in ((2, "no state 2"), (2**32 - 1, "no state")):
                with pytest.raises(espalier.InvalidError, match=expected):
                    hub.start_read_state("w", bad, v)
            with pytest.raises(espalier.InvalidError, match="12 bytes"):
                hub.start_read_state("w", 1, floats(3))
            if worker == 0:
                with pytest.raises(espalier.InvalidError, match="type f32"):
                    hub.start_write_state("w", 0, v, rounds=3)
                with pytest.raises(espalier.InvalidError, match="rounds"):
                    hub.start_write_state("w", 1, v, rounds=2**32)
            hub.pushpull("w", floats(5, 2), w)
            if worker == 0:
                with pytest.raises(espalier.StateError, match="pushed already"):
                    hub.start_write_state("w", 1, v, rounds=3)
            hub.start_read_state(0, 1, v).wait()
            assert w.tolist() == [7] * 5 and v.tolist() == [6] * 5  # 8 / 2 + 2; 10 - 6 / 2
            hub.start_read_state(0, 0, v).wait()
            assert v == w

    raise_first(hub_server.run(2, "sgd lr=0.5 momentum=0.5", work))


def test_halves(hub_server):
    """Memory without a name for its type; gradients and weights have two bytes, and the hub adds in float32."""

    def work(arguments):
        with connect(**arguments) as hub:
            w = array.array("H", [0x3F80] * 3)  # 1 in bfloat16
            hub.init([Tensor("w", w, type="bf16")])
            gradients = [0x4380, 0x3F80, 0xC380]  # 256, 1, -256: only float32 keeps the 1
            hub.pushpull("w", array.array("H", [gradients[arguments["worker"]]] * 3), w)
            masters = floats(3)
            hub.start_read_state("w", 0, masters).wait()
            assert hub.stats()["pushed_bytes"] == (12 if arguments["worker"] == 0 else 6)
            return w.tolist(), masters.tolist()

    for weights, masters in raise_first(hub_server.run(3, "sgd lr=0.75", work)):
        assert weights == [0x3F40] * 3 and masters == [0.75] * 3


FORKS = """
import os, sys, threading, array, espalier
with espalier.hub.connect() as hub:
    w = array.array("f", [4] * 1000)
    hub.init([espalier.hub.Tensor("w", w)])
    waits = hub.start_push("w", w)
    hub._enter()  # as a thread that is in the library
    child = os.fork()
    if child == 0:
        try:
            hub.push("w", w)
        except espalier.ForkedError:
            hub = None
            sys.exit(3)  # also runs what Python does at its end
    hub._leave()
    waits.wait()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    hub.pushpull("w", w, w)
    print("good")
"""


def test_fork(hub_server, environment):
    ticket = hub_server.create(1, "sgd lr=1")
    done = subprocess.run([sys.executable, "-c", FORKS], env={**environment, "ESP_HUB_TICKET": ticket}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0 and done.stdout == "good\n", done.stdout


def test_left_after_a_change(hub_server):
    """A change of values is no call that the other workers need: its worker leaves in order."""

    def work(arguments):
        with connect(**arguments) as hub:
            hub.init([Tensor("w", floats(4))])
            if arguments["worker"] == 0:
                for step in range(8):
                    hub.set(0, f"lr=0.{step + 1}")
            else:
                left.wait(60)
                hub.pull("w", floats(4))
        left.set()

    for _ in range(20):
        left = threading.Event()
        raise_first(hub_server.run(2, "sgd lr=1", work))


def test_no_ticket(hub_server, monkeypatch):
    monkeypatch.delenv("ESP_HUB_TICKET", raising=False)
    with pytest.raises(espalier.InvalidError, match="ESP_HUB_TICKET"):
        connect()
    with pytest.raises(espalier.InvalidError, match="together"):
        connect(worker=1)
    with pytest.raises(espalier.InvalidError, match="counted from 0"):
        connect(worker=2, workers=2)
    with pytest.raises(espalier.MismatchError, match="created for 2 workers"):
        connect(hub_server.create(2, "sgd lr=1"), worker=0, workers=1)
