"""AsyncOptimizer: beside torch.optim where a worker is alone, and what becomes of updates that are too late."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from conftest import raise_first

torch = pytest.importorskip("torch")

import espalier  # noqa: E402
import espalier.torch  # noqa: E402
from espalier.torch import AsyncOptimizer  # noqa: E402


def make_model(dtype=torch.float32, seed=1):
    noise = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 5)).to(dtype)
    with torch.no_grad():
        for param in model.parameters():
            param.copy_(torch.randn(param.shape, generator=noise) * 0.3)
    return model


def loss_of(model, noise):
    x = torch.randn(8, 20, generator=noise).to(next(model.parameters()).dtype)
    return torch.nn.functional.cross_entropy(model(x).float(), (x[:, 0] > 0).long())


def training(arguments, params, **options):
    return contextlib.closing(AsyncOptimizer(params, **arguments, **options))


def is_close(model, other):
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(model.parameters(), other.parameters()))


def asynchronous(bound):
    return "--mode", "async", "--delay-bound", str(bound)


def test_alone(hub_server):
    """A worker that is alone trains as torch.optim does."""

    def work(arguments):
        model, reference = make_model(), make_model()
        other = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
        with training(arguments, model.parameters()) as optimizer:
            noise, again = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
            for step in range(30):
                optimizer.zero_grad()
                loss_of(model, noise).backward()
                optimizer.step()
                other.zero_grad()
                loss_of(reference, again).backward()
                other.step()
                assert is_close(model, reference), step
                assert optimizer.last.delay == 1 and optimizer.version == optimizer.last.version == step + 1
            assert optimizer.counts == {"applied": 30}

    raise_first(hub_server.run(1, "sgd lr=0.1 momentum=0.9", work, *asynchronous(1)))


def test_local_steps(hub_server):
    """Steps of an inner optimizer: with lr 1 at the hub their change is the hub's change."""

    def work(arguments):
        model, reference = make_model(), make_model()
        inner = torch.optim.Adam(model.parameters(), lr=0.01)
        other = torch.optim.Adam(reference.parameters(), lr=0.01)
        with training(arguments, model.parameters(), inner=inner, every=4) as optimizer:
            noise, again = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
            for step in range(12):
                for one, its_model, source in ((optimizer, model, noise), (other, reference, again)):
                    one.zero_grad()
                    loss_of(its_model, source).backward()
                    one.step()
                assert is_close(model, reference), step
                assert optimizer.version == (step + 1) // 4
            assert optimizer.counts == {"applied": 3}

    raise_first(hub_server.run(1, "sgd lr=1", work, *asynchronous(1)))


@pytest.mark.parametrize("dropped", ["carry", "discard"])
def test_dropped(hub_server, dropped):
    """With bound 1 an update is too late once another worker's was applied: it is carried into the next one, or not."""
    both_read, first_is_done = threading.Barrier(2), threading.Event()

    def work(arguments):
        param = torch.nn.Parameter(torch.zeros(1000))
        with training(arguments, [param], dropped=dropped) as optimizer:
            both_read.wait(60)
            if arguments["worker"] == 0:
                param.grad = torch.full((1000,), 100.0)
                optimizer.step()
                assert optimizer.last.applied
                first_is_done.set()
                return None
            first_is_done.wait(60)
            for gradient in (1.0, 2.0):
                param.grad = torch.full((1000,), gradient)
                optimizer.step()
            assert optimizer.counts == {"late at offer": 1, "applied": 1}
            return set(param.tolist())

    expected = -103.0 if dropped == "carry" else -102.0
    assert raise_first(hub_server.run(2, "sgd lr=1", work, *asynchronous(1)))[1] == {expected}


def test_many_workers(hub_server):
    """Four workers train one model, of 16 bits too; a worker that leaves holds up no other."""

    def work(arguments):
        model = make_model(torch.bfloat16)
        with training(arguments, model.parameters()) as optimizer:
            noise = torch.Generator().manual_seed(arguments["worker"])
            losses = []
            for _ in range(10 if arguments["worker"] == 2 else 60):
                optimizer.zero_grad()
                loss = loss_of(model, noise)
                loss.backward()
                optimizer.step()
                assert not optimizer.last.applied or 1 <= optimizer.last.delay <= 40
                losses.append(loss.item())
            return sum(losses[:5]) / 5, sum(losses[-5:]) / 5, optimizer.counts["applied"]

    results = raise_first(hub_server.run(4, "sgd lr=0.05", work, *asynchronous(40)))
    assert sum(applied for *_, applied in results) > 150
    assert sum(last for _, last, _ in results) < sum(first for first, *_ in results), results


@pytest.mark.parametrize("carry", [False, True])
def test_in_flight(hub_server, carry):
    """Two updates of a worker: each step has the weights after the update before the former one, and its delay is 2."""

    def work(arguments):
        param = torch.nn.Parameter(torch.zeros(1000))
        with training(arguments, [param], in_flight=2, dropped="carry" if carry else "discard") as optimizer:
            seen = []
            for step in range(20):
                seen.append((optimizer.version, set(param.tolist())))
                param.grad = torch.full((1000,), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)  # what is under way is a copy
        assert seen[:4] == [(0, {0.0}), (0, {0.0}), (1, {-1.0}), (2, {-2.0})], seen
        assert optimizer.counts == {"applied": 20} and optimizer.last.delay == 2 and optimizer.last.version == 20

    raise_first(hub_server.run(1, "sgd lr=1", work, *asynchronous(2)))


def test_in_flight_of_local_steps(hub_server):
    """Each change of the weights is given once."""

    def work(arguments):
        param = torch.nn.Parameter(torch.zeros(10))
        inner = torch.optim.SGD([param], lr=1)
        with training(arguments, [param], inner=inner, every=2, in_flight=2) as optimizer:
            for _ in range(10):
                param.grad = torch.ones(10)
                optimizer.step()
        return optimizer.counts["applied"], set(optimizer._ahead[0].tolist())

    assert raise_first(hub_server.run(1, "sgd lr=1", work, *asynchronous(2))) == [(5, {-10.0})]


def test_in_flight_of_many(hub_server):
    def work(arguments):
        model = make_model()
        with training(arguments, model.parameters(), in_flight=2) as optimizer:
            noise = torch.Generator().manual_seed(arguments["worker"])
            losses = []
            for _ in range(60):
                optimizer.zero_grad()
                loss = loss_of(model, noise)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return sum(losses[:5]) / 5, sum(losses[-5:]) / 5, sum(optimizer.counts.values())

    results = raise_first(hub_server.run(3, "sgd lr=0.05", work, *asynchronous(60)))
    assert all(ended == 60 and last < first for first, last, ended in results), results


def test_leaves(hub_server):
    """A worker that is to go gives its update first, of fewer local steps too, and has left then; the others go on."""

    def work(arguments):
        param = torch.nn.Parameter(torch.zeros(10))
        inner = torch.optim.SGD([param], lr=1) if arguments["worker"] == 1 else None
        with training(arguments, [param], inner=inner, every=100 if inner else 1) as optimizer:
            with pytest.raises(espalier.InvalidError, match="within"):
                optimizer.leave(0)
            if inner:
                optimizer.leave(60)
            for _ in range(5):
                param.grad = torch.ones(10)
                optimizer.step()
                if optimizer.has_left:
                    break
            return optimizer.counts["applied"], optimizer.has_left

    assert raise_first(hub_server.run(2, "sgd lr=1", work, *asynchronous(99))) == [(5, False), (1, True)]


def test_notice(hub_server, tmp_path):
    """SIGTERM: the update, then the end."""
    script = tmp_path / "told.py"
    script.write_text(
        "import os, signal, sys, torch, espalier.torch\n"
        "param = torch.nn.Parameter(torch.zeros(3))\n"
        "optimizer = espalier.torch.AsyncOptimizer([param], notice=60, ticket=sys.argv[1], worker=0, workers=1)\n"
        "for step in range(9):\n"
        "    param.grad = torch.ones(3)\n"
        "    if step == 3:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    optimizer.step()\n"
        "    print('applied', optimizer.last.version, flush=True)\n"
    )
    ticket = hub_server.create(1, "sgd lr=1", *asynchronous(9))
    package = str(pathlib.Path(espalier.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, script, ticket], env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and done.stdout == "applied 1\napplied 2\napplied 3\n", done


def test_refused(hub_server):
    def rounds(arguments):
        with pytest.raises(espalier.UnsupportedError, match="--mode async"):
            AsyncOptimizer([torch.nn.Parameter(torch.zeros(3))], **arguments)

    raise_first(hub_server.run(1, "sgd lr=1", rounds))

    def work(arguments):
        for bad in ({"in_flight": 3}, {"every": 0}, {"every": 2}, {"dropped": "keep"}):
            with pytest.raises(espalier.InvalidError):
                AsyncOptimizer([torch.nn.Parameter(torch.zeros(3))], **bad, **arguments)
        with pytest.raises(espalier.InvalidError, match="nothing to train"):
            AsyncOptimizer([torch.zeros(3)], **arguments)
        with pytest.raises(espalier.UnsupportedError, match="float64"):
            AsyncOptimizer([torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))], **arguments)
        for key in ("lr", "nonsense"):
            with pytest.raises(espalier.UnsupportedError, match=key):
                AsyncOptimizer([{"params": [torch.nn.Parameter(torch.zeros(3))], key: 123.0}], **arguments)
        param, frozen = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(2), requires_grad=False)
        with training(arguments, [param, frozen]) as optimizer:
            frozen.requires_grad_(True)
            with pytest.raises(espalier.StateError, match="requires a gradient now"):
                optimizer.step()
            frozen.requires_grad_(False)
            before, param.data = param.data, param.data.clone()
            with pytest.raises(espalier.StateError, match="other memory"):
                optimizer.step()
            param.data = before
            param.grad = torch.full((3,), float("nan"))
            with pytest.raises(espalier.InvalidError, match="not sent"):
                optimizer.step()
            param.grad = torch.ones(3)
            optimizer.step()
            assert optimizer.last.applied and optimizer.version == 1

    raise_first(hub_server.run(1, "sgd lr=1", work, *asynchronous(1)))
