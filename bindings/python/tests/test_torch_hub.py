"""HubOptimizer: every step beside torch.optim's on the mean gradient, and each thing that it refuses."""

from __future__ import annotations

import contextlib
import copy
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import free_port, raise_first

torch = pytest.importorskip("torch")

import espalier  # noqa: E402
import espalier.torch  # noqa: E402
from espalier.torch import HubOptimizer  # noqa: E402

STEPS = 200
KINDS = {
    "sgd": ("sgd lr=0.05 momentum=0.9", torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": ("sgd lr=0.05 momentum=0.9 nesterov=yes weight_decay=1e-3", torch.optim.SGD,
                 {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    "adam": ("adam lr=0.01 weight_decay=1e-3", torch.optim.Adam, {"weight_decay": 1e-3}),
    "adamw": ("adamw lr=0.01", torch.optim.AdamW, {}),
}  # fmt: skip


def make_model(seed=1):
    """Each worker has a generator of its own: the global one is shared by threads."""
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 40), torch.nn.Tanh(), torch.nn.Linear(40, 30), torch.nn.Tanh(), torch.nn.Linear(30, 5)
    )
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for param in model.parameters():
            param.copy_(torch.randn(param.shape, generator=noise) * 0.3)
    return model


def groups_of(model):
    weights = [param for param in model.parameters() if param.dim() > 1]
    return [{"params": weights}, {"params": [param for param in model.parameters() if param.dim() == 1], "lr": 0.02}]


def schedule_of(optimizer):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[0.08, 0.03], total_steps=STEPS)


def loss_of(model, noise, rows=8):
    x = torch.randn(rows, 20, generator=noise)
    return torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long())


def noise_of(worker):
    return torch.Generator().manual_seed(100 + worker)


def flat(tensors):
    return torch.cat([one.detach().flatten() for one in tensors]).clone()


def training(arguments, model, **options):
    """An optimizer that is closed at the end, so that no other worker waits for one that has failed."""
    return contextlib.closing(
        HubOptimizer(model if isinstance(model, list) else model.parameters(), **arguments, **options)
    )


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_step_beside_torch(any_hub_server, kind, overlap):
    text, reference_class, values = KINDS[kind]
    steps = STEPS if overlap else 20

    def work(arguments):
        model, noise = make_model(arguments["worker"]), noise_of(arguments["worker"])
        with training(arguments, groups_of(model), overlap=overlap) as optimizer:
            schedule = schedule_of(optimizer)
            first, gradients, weights = flat(model.parameters()), [], []
            for _ in range(steps):
                optimizer.zero_grad()
                loss_of(model, noise).backward()
                gradients.append([param.grad.clone() for param in model.parameters()])
                optimizer.step()
                schedule.step()
                weights.append(flat(model.parameters()))
            assert optimizer.held_from == {0: steps - 1, 1: steps - 1}
            return first, gradients, weights

    results = raise_first(any_hub_server.run(3, text, work))
    reference = make_model(0)
    base = {"lr": 0.05 if reference_class is torch.optim.SGD else 0.01}
    optimizer = reference_class(groups_of(reference), **base, **values)
    schedule = schedule_of(optimizer)
    for first, _, weights in results:
        assert torch.equal(first, flat(reference.parameters()))
        assert all(torch.equal(one, other) for one, other in zip(weights, results[0][2]))
    for step in range(steps):
        for number, param in enumerate(reference.parameters()):
            param.grad = sum(gradients[step][number] for _, gradients, _ in results) / 3
        optimizer.step()
        schedule.step()
        found, expected = results[0][2][step], flat(reference.parameters())
        assert torch.allclose(found, expected, rtol=1e-5, atol=2e-6), (step, (found - expected).abs().max())


def test_accumulation_and_unused(hub_server):
    """Sums of several backward(), by accumulate= and no_sync(); a parameter without gradients counts as zeros."""

    def work(arguments):
        model, noise = make_model(0), noise_of(arguments["worker"])
        unused = torch.nn.Parameter(torch.ones(3))
        found = []
        with training(arguments, [*model.parameters(), unused], accumulate=2) as optimizer:
            for step in range(4):
                optimizer.zero_grad()
                if step % 2:
                    with optimizer.no_sync():
                        loss_of(model, noise).backward()
                        loss_of(model, noise).backward()
                        assert not optimizer._begun
                loss_of(model, noise).backward()
                assert not optimizer._begun
                if step < 3:  # the last step has fewer than were announced
                    loss_of(model, noise).backward()
                    assert optimizer._begun
                optimizer.step()
                found.append(flat(model.parameters()))
        assert unused.grad is None and torch.allclose(unused, torch.ones(3) * (1 - 0.1 * 0.5) ** 4)
        return found

    results = raise_first(hub_server.run(2, "sgd lr=0.1 weight_decay=0.5", work))
    reference, noises = make_model(0), [noise_of(0), noise_of(1)]
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1, weight_decay=0.5)
    for step, passes in enumerate((2, 4, 2, 3)):
        optimizer.zero_grad()
        for noise in noises:
            for _ in range(passes):
                (loss_of(reference, noise) / 2).backward()
        optimizer.step()
        for found in results:
            assert torch.allclose(found[step], flat(reference.parameters()), rtol=1e-4, atol=1e-5), step


def test_clipping(hub_server):
    def work(arguments):
        model, noise = make_model(0), noise_of(0)  # the same gradients on both workers
        with training(arguments, model, overlap=False) as optimizer:
            for _ in range(3):
                optimizer.zero_grad()
                loss_of(model, noise).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                optimizer.step()
            return flat(model.parameters())

    reference, noise = make_model(0), noise_of(0)
    optimizer = torch.optim.SGD(reference.parameters(), lr=1)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(reference, noise).backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
        optimizer.step()
    for found in raise_first(hub_server.run(2, "sgd lr=1", work)):
        assert torch.allclose(found, flat(reference.parameters()), rtol=1e-5, atol=1e-6)


# Each is called with an optimizer whose gradients backward() has pushed, and is refused by name.


def clip(model, optimizer, noise):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    optimizer.step()


def change_values(model, optimizer, noise):
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.step()


def accumulate_silently(model, optimizer, noise):
    loss_of(model, noise).backward()


def zero_early(model, optimizer, noise):
    optimizer.zero_grad()


def forget_gradients(model, optimizer, noise):
    model.zero_grad(set_to_none=True)
    optimizer.step()


def scale(model, optimizer, noise):
    optimizer.step(grad_scaler=object())


def scale_by_attributes(model, optimizer, noise):
    optimizer.grad_scale, optimizer.found_inf = torch.ones(1), torch.zeros(1)
    optimizer.step()


def write_weights(model, optimizer, noise):
    optimizer.step()
    model.load_state_dict(make_model(3).state_dict(), strict=False)
    optimizer.step()


def move_weights(model, optimizer, noise):
    optimizer.step()
    model[0].weight.data = model[0].weight.data.clone()
    optimizer.step()


def freeze(model, optimizer, noise):
    optimizer.step()
    model[0].weight.requires_grad_(False)
    optimizer.step()


def unfreeze(model, optimizer, noise):
    optimizer.step()
    model.frozen.requires_grad_(True)
    optimizer.step()


def add_group(model, optimizer, noise):
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})


def average_without_group(model, optimizer, noise):
    optimizer.average_buffers(model)


REFUSED = {
    clip: "overlap=False", change_values: "lr of parameter group 0", accumulate_silently: "before step.*accumulate=",
    zero_early: "zero_grad", forget_gradients: "overlap=False", scale: "GradScaler",
    scale_by_attributes: "GradScaler", write_weights: "weights are the hub's", move_weights: "weights are the hub's",
    unfreeze: "requires a gradient now", freeze: "does not require a gradient", add_group: "declared once", average_without_group: "stay local",
}  # fmt: skip


@pytest.mark.parametrize("misuse", REFUSED, ids=lambda misuse: misuse.__name__)
def test_refused_by_name(hub_server, misuse):
    def work(arguments):
        model, noise = make_model(0), noise_of(0)
        model.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        with training(arguments, model) as optimizer:
            loss_of(model, noise).backward()
            misuse(model, optimizer, noise)

    for failure in hub_server.run(1, "sgd lr=0.1", work):
        assert isinstance(failure, (espalier.StateError, espalier.UnsupportedError)) and re.search(
            REFUSED[misuse], str(failure)
        ), failure


def test_weights_that_are_needed_later(hub_server):
    """torch itself refuses a graph that needs weights of before their gradient was pushed; without overlap it may."""

    def work(arguments, overlap):
        weight = torch.nn.Parameter(torch.ones(4, 4))
        x = torch.ones(2, 4, requires_grad=True)
        with training(arguments, [weight], overlap=overlap) as optimizer:
            late = (x @ weight.detach()).sum()
            (x @ weight).sum().backward()
            late.backward()
            optimizer.step()

    for failure in hub_server.run(1, "sgd lr=0.1", lambda arguments: work(arguments, True)):
        assert isinstance(failure, RuntimeError) and "modified by an inplace operation" in str(failure), failure
    raise_first(hub_server.run(1, "sgd lr=0.1", lambda arguments: work(arguments, False)))


def test_refused_parameters():
    for params, expected in (
        ([torch.nn.Parameter(torch.ones(2, dtype=torch.float64))], "float64"),
        ([torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))], "complex64"),
        ([torch.nn.Parameter(torch.ones(2, 3).t())], "not contiguous"),
        ([torch.nn.Parameter(torch.ones(2).to_sparse())], "sparse"),
    ):
        with pytest.raises(espalier.UnsupportedError, match=expected):
            HubOptimizer(params)
    for optimizer, expected in (
        ("avg", "avg"),
        ("sdg lr=1", "sdg"),
        ("sgd lr=1 beta1=0", "beta1"),
        ("adam lr=x", "lr=x"),
    ):
        with pytest.raises(espalier.EspalierError, match=expected):
            HubOptimizer([torch.nn.Parameter(torch.ones(2))], optimizer)
    twice = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(espalier.InvalidError, match="given twice"):
        HubOptimizer([{"params": [twice]}, {"params": [twice]}])
    with pytest.raises(espalier.InvalidError, match="empty"):
        HubOptimizer([])


def test_sparse_gradient(hub_server):
    def work(arguments):
        model = torch.nn.Embedding(10, 4, sparse=True)
        with training(arguments, model) as optimizer:
            model(torch.tensor([1, 2])).sum().backward()
            optimizer.step()

    for failure in hub_server.run(1, "sgd lr=0.1", work):
        assert isinstance(failure, espalier.UnsupportedError) and "sparse" in str(failure), failure


def test_values(any_hub_server):
    """Values that are given beat the job's; another kind, or a value that the hub has not, is refused."""

    def work(arguments):
        model = make_model(0)
        with training(arguments, model, optimizer="sgd lr=0.5 weight_decay=0.25") as optimizer:
            group = optimizer.param_groups[0]
            assert (group["lr"], group["momentum"], group["weight_decay"], group["nesterov"]) == (0.5, 0, 0.25, False)
            assert optimizer.hub.optimizer() == "sgd lr=0.5 momentum=0 dampening=0 weight_decay=0.25"

    raise_first(any_hub_server.run(2, "sgd lr=0.1 momentum=0.9", work))
    for failure in any_hub_server.run(
        1, "sgd lr=0.1", lambda arguments: HubOptimizer(make_model(0).parameters(), "adam", **arguments)
    ):
        assert isinstance(failure, espalier.MismatchError) and "sgd" in str(failure)
    bad = [{"params": make_model(0).parameters(), "amsgrad": True}]
    for failure in any_hub_server.run(1, "adam", lambda arguments: HubOptimizer(bad, **arguments)):
        assert isinstance(failure, espalier.UnsupportedError) and "amsgrad" in str(failure)


def test_workers_differ(hub_server):
    def work(arguments):
        model, noise = make_model(0), noise_of(0)
        with training(arguments, model) as optimizer:
            for step in range(3):
                optimizer.param_groups[0]["lr"] = 0.1 / (1 + step * (1 + (arguments["worker"] == 1)))
                optimizer.zero_grad()
                loss_of(model, noise).backward()
                optimizer.step()

    for failure in hub_server.run(3, "sgd lr=0.1", work):
        assert isinstance(failure, espalier.MismatchError) and re.search(
            r"worker 1\b.*lr=0\.0333", str(failure)
        ), failure


def trained(arguments, model, noise, steps, state=None, options=None):
    """Losses go by worker's noise; the state is loaded before, and what training ends with comes back."""
    with training(arguments, model) as optimizer:
        if state is not None:
            optimizer.load_state_dict(state)
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(model, noise).backward()
            optimizer.step()
        return flat(model.parameters()), optimizer.state_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_state_into_other_workers(any_hub_server, kind):
    """A job of two workers goes on with three, as if it had always been one; and with torch.optim, and back."""
    text, reference_class, values = KINDS[kind]
    base = {"lr": 0.05 if reference_class is torch.optim.SGD else 0.01}

    def begin(arguments):
        model = make_model(0)
        weights, state = trained(arguments, model, noise_of(7), 5)  # the same gradients on all workers
        return copy.deepcopy(model.state_dict()), state

    def go_on(arguments):
        model = make_model(0)
        model.load_state_dict(weights)
        return trained(arguments, model, noise_of(8), 5, state)[0]

    reference = make_model(0)
    optimizer = reference_class(reference.parameters(), **base, **values)

    def step_reference(noise):
        for _ in range(5):
            optimizer.zero_grad()
            loss_of(reference, noise).backward()
            optimizer.step()

    step_reference(noise_of(7))
    for weights, state in raise_first(any_hub_server.run(2, text, begin)):
        for number, expected in optimizer.state_dict()["state"].items():
            for name, value in expected.items():
                assert torch.allclose(
                    torch.as_tensor(state["state"][number][name]), torch.as_tensor(value), rtol=1e-4, atol=1e-6
                ), name
    resumed = reference_class(make_model(0).parameters(), **base, **values)
    resumed.load_state_dict(state)  # torch takes the hub's
    found = raise_first(any_hub_server.run(3, text, go_on))
    state, weights = optimizer.state_dict(), reference.state_dict()
    state, weights = copy.deepcopy(state), copy.deepcopy(weights)
    found += raise_first(any_hub_server.run(1, text, go_on))  # and the hub takes torch's
    step_reference(noise_of(8))
    for one in found:
        assert torch.allclose(one, flat(reference.parameters()), rtol=1e-4, atol=1e-5), (
            (one - flat(reference.parameters())).abs().max()
        )


def test_state_refused(hub_server):
    def work(arguments):
        model, noise = make_model(0), noise_of(0)
        with training(arguments, model) as optimizer:
            fresh = optimizer.state_dict()
            assert fresh["state"] == {}
            optimizer.load_state_dict(fresh)
            adam = torch.optim.Adam(model.parameters())
            with pytest.raises(espalier.MismatchError, match="not of sgd"):
                optimizer.load_state_dict(adam.state_dict())
            other = torch.optim.SGD(model.parameters(), lr=1, maximize=True).state_dict()
            with pytest.raises(espalier.UnsupportedError, match="maximize=True"):
                optimizer.load_state_dict(other)
            other["param_groups"][0].update(maximize=False, foreach=True, initial_lr=2.0)
            optimizer.load_state_dict(other)
            assert optimizer.param_groups[0]["initial_lr"] == 2 and "maximize" not in optimizer.param_groups[0]
            with pytest.raises(espalier.InvalidError, match="other parameter groups"):
                optimizer.load_state_dict(torch.optim.SGD(make_model(0)[0].parameters(), lr=1).state_dict())
            loss_of(model, noise).backward()
            with pytest.raises(espalier.StateError, match="state_dict"):
                optimizer.state_dict()
            optimizer.step()
            with pytest.raises(espalier.StateError, match="before the first step"):
                optimizer.load_state_dict(fresh)
            bad = optimizer.state_dict()
            assert set(bad["state"][0]) == {"momentum_buffer", "hub_steps"}
            return bad

    (state,) = raise_first(hub_server.run(1, "sgd lr=0.1 momentum=0.9", work))
    state["state"][0]["momentum_buffer"] = torch.ones(3)
    for failure in hub_server.run(
        1, "sgd lr=0.1 momentum=0.9", lambda arguments: trained(arguments, make_model(0), noise_of(0), 1, state)
    ):
        assert isinstance(failure, espalier.MismatchError) and "momentum_buffer" in str(failure)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_halves_over_masters(any_hub_server, dtype):
    """Weights and gradients of 16 bits: float32 masters step, and weights are the masters rounded. The state carries
    masters on.
    """
    text = "adam lr=0.01"

    def step(params, gradients, worker, optimizer):
        for param, gradient in zip(params, gradients):
            param.grad = None
            (param * gradient.to(dtype)).sum().backward()
        optimizer.step()
        return [param.detach().clone() for param in params]

    noise = torch.Generator().manual_seed(5)
    shapes, steps = [(70, 130), (9,), ()], 6
    firsts = [torch.randn(shape, generator=noise).to(dtype) for shape in shapes]
    given = [[[torch.randn(shape, generator=noise) for shape in shapes] for _ in range(3)] for _ in range(steps)]

    def work(arguments):
        worker = arguments["worker"]
        params = [
            torch.nn.Parameter(first.clone() if weights is None else weights[number].clone())
            for number, first in enumerate(firsts)
        ]
        with training(arguments, params) as optimizer:
            if state is not None:
                optimizer.load_state_dict(state)
            found = [step(params, given[at][worker], worker, optimizer) for at in range(begin, begin + steps // 2)]
            return found, optimizer.state_dict()

    begin, state, weights = 0, None, None
    found = [raise_first(any_hub_server.run(3, text, work))]
    begin, state, weights = steps // 2, found[0][1][1], found[0][1][0][-1]
    found.append(raise_first(any_hub_server.run(3, text, work)))
    masters = [torch.nn.Parameter(first.float()) for first in firsts]
    reference = torch.optim.Adam(masters, lr=0.01)
    for at in range(steps):
        for number, master in enumerate(masters):
            master.grad = sum(given[at][worker][number].to(dtype).float() for worker in range(3)) / 3
        reference.step()
        half = found[at // (steps // 2)]
        for worker in range(3):
            for number, master in enumerate(masters):
                one = half[worker][0][at % (steps // 2)][number]
                assert one.dtype == dtype and torch.equal(one, half[0][0][at % (steps // 2)][number])
                # A master that lies beside the middle of two halves may round to the other one.
                assert torch.allclose(
                    one.float(), master.detach(), rtol=2**-7 if dtype == torch.bfloat16 else 2**-10, atol=1e-6
                )
    for number, master in enumerate(masters):
        assert torch.allclose(found[1][0][1]["state"][number]["master"], master.detach(), rtol=1e-5, atol=1e-6)


def test_average_buffers(hub_server):
    """Statistics of BatchNorm are each worker's own, until they are averaged over an espalier.Group."""
    leader = f"127.0.0.1:{free_port()}"

    def work(arguments):
        worker = arguments["worker"]
        model = torch.nn.Sequential(torch.nn.Linear(20, 6), torch.nn.BatchNorm1d(6))
        with espalier.init(worker, 2, leader=leader) as job, training(arguments, model) as optimizer:
            loss_of(model, noise_of(worker)).backward()
            optimizer.step()
            own = model[1].running_mean.clone()
            optimizer.average_buffers(model, job.world)
            assert model[1].num_batches_tracked == 1
            return own, model[1].running_mean.clone()

    (first, mean), (second, other) = raise_first(hub_server.run(2, "sgd lr=0.1", work))
    assert not torch.equal(first, second) and torch.equal(mean, other) and torch.allclose(mean, (first + second) / 2)


def test_asynchronous_job(hub_server):
    def work(arguments):
        HubOptimizer(make_model(0).parameters(), **arguments)

    (failure,) = hub_server.run(1, "sgd lr=0.1", work, "--mode", "async", "--delay-bound", "2")
    assert isinstance(failure, espalier.UnsupportedError) and "asynchronous" in str(failure), failure


def test_masters_of_other_weights(hub_server):
    def work(arguments):
        param = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16) * arguments["factor"])
        del arguments["factor"]
        with training(arguments, [param]) as optimizer:
            if state is not None:
                optimizer.load_state_dict(state)
            param.sum().backward()
            optimizer.step()
            return optimizer.state_dict()

    state = None
    (state,) = raise_first(hub_server.run(1, "sgd lr=0.1", lambda arguments: work({**arguments, "factor": 1})))
    assert "master" in state["state"][0] and "momentum_buffer" not in state["state"][0]
    (failure,) = hub_server.run(1, "sgd lr=0.1", lambda arguments: work({**arguments, "factor": 2}))
    assert isinstance(failure, espalier.MismatchError) and "do not round" in str(failure), failure


DIES = textwrap.dedent(
    """
    import os, sys, torch, espalier.torch
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 64)
    optimizer = espalier.torch.HubOptimizer(model.parameters())
    for step in range(1_000_000):
        if step == 5 and optimizer.hub.worker == 1:
            os.kill(os.getpid(), 9)
        optimizer.zero_grad()
        try:
            model(torch.randn(2, 64)).sum().backward()
            optimizer.step()
        except (espalier.EspalierError, RuntimeError) as failure:
            print(f"step {step}: {failure}", flush=True)
            sys.exit(3)
    """
)


def test_worker_dies(hub_server, command, environment):
    ticket = hub_server.create(3, "sgd lr=0.01")
    done = subprocess.run(
        [command, "run", "-n", "3", "--grace", "30", "--", sys.executable, "-c", DIES],
        env={**environment, "ESP_HUB_TICKET": ticket}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120,
    )  # fmt: skip
    assert (
        done.returncode != 0 and len(re.findall(r"step 5: .*worker 1 on \S+ \(process \d+\)", done.stdout)) == 2
    ), done.stdout


def test_example(hub_server, command, environment):
    """Also without the package in PYTHONPATH."""
    example = pathlib.Path(__file__).resolve().parents[3] / "examples" / "hub" / "train.py"
    ticket = hub_server.create(2, "sgd lr=0.1 momentum=0.9")
    done = subprocess.run(
        [command, "run", "-n", "2", "--", sys.executable, str(example), "--steps", "60"],
        env={**environment, "PYTHONPATH": "", "ESP_HUB_TICKET": ticket}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", done.stdout)]
    assert len(losses) == 3 and losses[-1] < 0.8 * losses[0], done.stdout
    assert (
        len(set(re.findall(r"weights (\w{12}), equal to the hub's", done.stdout))) == 1
        and done.stdout.count("equal to the hub's") == 2
    ), done.stdout
