"""Trains a small network by asynchronous updates, on data that it makes itself; the last worker is four times slower.

    espalier hub --listen 127.0.0.1:7700 --key-file hub.key &
    espalier sched --listen 127.0.0.1:7900 --key-file hub.key --batch 20ms &
    espalier hub create mnist --hub 127.0.0.1:7700 --key-file hub.key --sched 127.0.0.1:7900 --workers 4 \\
        --mode async --delay-bound 30 --optimizer "sgd lr=0.05" --ticket-file mnist.ticket
    ESP_HUB_TICKET=mnist.ticket espalier run -n 4 -- /usr/bin/python3 examples/fabric/async.py

No worker waits for another. Each prints how its updates ended, and the model's share of right answers.
"""

import argparse
import collections
import pathlib
import signal
import sys
import time

import numpy

try:
    import espalier
except ImportError:  # not installed: the package of the checkout that this file lies in
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))
    import espalier

import espalier.hub

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=120, help="of a fast worker")
parser.add_argument("--step-ms", type=float, default=5, help="that a fast worker computes")
parser.add_argument("--notice", type=float, default=120, help="seconds that a worker has after SIGTERM: its update first, then it leaves")
parser.add_argument("--slower", type=int, default=4, help="the last worker's steps take so many times as long")
options = parser.parse_args()

INPUTS, HIDDEN, CLASSES = 144, 80, 4
ends_at = []  # of this worker, once it is told to end
signal.signal(signal.SIGTERM, lambda *_: ends_at.append(time.monotonic() + options.notice))


def batch(count, source):
    """Pictures of a bright bar, upright or lying, in one of two halves, in noise: four classes."""
    kinds = source.integers(CLASSES, size=count)
    pictures = source.normal(size=(count, 12, 12)).astype("f4")
    for one, kind in enumerate(kinds):
        at = source.integers(5) + (6 if kind >= 2 else 1)
        if kind % 2:
            pictures[one, :, at] += 2
        else:
            pictures[one, at, :] += 2
    return pictures.reshape(count, INPUTS), kinds


def forward(weights, pictures):
    first, second = weights
    hidden = numpy.maximum(pictures @ first, 0)
    scores = hidden @ second
    shares = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, shares / shares.sum(axis=1, keepdims=True)


def gradients_of(weights, pictures, kinds):
    """Of the mean cross entropy."""
    hidden, shares = forward(weights, pictures)
    shares[numpy.arange(len(kinds)), kinds] -= 1
    shares /= len(kinds)
    inner = (shares @ weights[1].T) * (hidden > 0)
    return [pictures.T @ inner, hidden.T @ shares]


with espalier.hub.connect() as hub:
    worker, workers = hub.worker, hub.workers
    is_slow = worker > 0 and worker == workers - 1
    source = numpy.random.default_rng(worker)
    weights = [
        source.normal(scale=(2 / INPUTS) ** 0.5, size=(INPUTS, HIDDEN)).astype("f4"),
        source.normal(scale=(1 / HIDDEN) ** 0.5, size=(HIDDEN, CLASSES)).astype("f4"),
    ]
    hub.init([espalier.hub.Tensor(f"layer {number}", one) for number, one in enumerate(weights)])
    fates, delays = collections.Counter(), []
    for step in range(options.steps // options.slower if is_slow else options.steps):
        began = time.perf_counter()
        version = hub.model(weights)  # worker 0's first weights, then as they are now
        gradients = gradients_of(weights, *batch(16, source))
        computes = options.step_ms / 1000 * (options.slower if is_slow else 1)
        time.sleep(max(0, computes - (time.perf_counter() - began)))
        norm = float(sum((one**2).sum() for one in gradients)) ** 0.5
        leaves = max(0.001, ends_at[0] - time.monotonic()) if ends_at else None
        result = hub.update(gradients, version, norm, leaves=leaves)
        fates[result.fate] += 1
        delays += [result.delay] if result.applied else []
        if leaves:
            break
    version = hub.model(weights)
    pictures, kinds = batch(500, numpy.random.default_rng(1000))
    right = (forward(weights, pictures)[1].argmax(axis=1) == kinds).mean()
    ends = ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))
    print(
        f"worker {worker} of {workers}{', slow' if is_slow else ''}: {ends}; delay {numpy.mean(delays or [0]):.1f} on average,"
        f" {max(delays, default=0)} of {hub.delay_bound} at most; {100 * right:.0f} % right at version {version}",
        flush=True,
    )
