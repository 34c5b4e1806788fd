"""Trains a small convolutional network through a parameter hub, on data that it makes itself.

    espalier hub --listen 127.0.0.1:7700 --key-file hub.key &
    espalier hub create resnet --hub 127.0.0.1:7700 --key-file hub.key --workers 4 \\
        --optimizer "sgd lr=0.1 momentum=0.9" --ticket-file resnet.ticket
    ESP_HUB_TICKET=resnet.ticket espalier run -n 4 -- /usr/bin/python3 examples/hub/train.py

Every worker has its own part of the data. The hub averages the gradients and runs the optimizer, so all end with equal
weights.
"""

import argparse
import hashlib
import pathlib
import sys
import time

import torch

try:
    import espalier.torch
except ImportError:  # not installed: the package of the checkout that this file lies in
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))
    import espalier.torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--width", type=int, default=256, help="of the last layers: wider ones are more to move")
options = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)


def batch(count, source):
    """Pictures of a bright bar, upright or lying, in one of two halves, in noise: four classes."""
    kind = torch.randint(4, (count,), generator=source)
    place = torch.randint(0, 6, (count,), generator=source)
    pictures = torch.randn(count, 1, 16, 16, generator=source)
    for one in range(count):
        at = int(place[one]) + (8 if kind[one] >= 2 else 1)
        if kind[one] % 2:
            pictures[one, 0, :, at] += 1.5
        else:
            pictures[one, 0, at, :] += 1.5
    return pictures, kind


def digest_of(model):
    weights = torch.cat([param.detach().flatten() for param in model.parameters()])
    return hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:12]


width = options.width
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(16 * 16, width), torch.nn.ReLU(), torch.nn.Linear(width, 4),
)  # fmt: skip
optimizer = espalier.torch.HubOptimizer(
    model.parameters()
)  # with the job's own values; worker 0's weights are everybody's now
worker, workers = optimizer.hub.worker, optimizer.hub.workers
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=options.steps, cycle_momentum=False)
source = torch.Generator().manual_seed(1000 + worker)
began, losses = time.perf_counter(), []
for step in range(options.steps):
    pictures, kinds = batch(8, source)
    if step == 2:  # the first steps set things up
        began = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(pictures), kinds)
    loss.backward()  # pushes each gradient as soon as it is there
    optimizer.step()  # waits for the weights
    schedule.step()
    losses.append(loss.item())
    if worker == 0 and (step + 1) % 20 == 0:
        print(f"step {step + 1:4}  loss {sum(losses[-20:]) / 20:.3f}", flush=True)
rate = (options.steps - 2) / (time.perf_counter() - began)
with torch.no_grad():
    pictures, kinds = batch(500, torch.Generator().manual_seed(7))
    right = (model(pictures).argmax(1) == kinds).float().mean().item()
digest = digest_of(model)
optimizer.pull()  # no worker steps any more: what the hub has is what all of them should have
is_equal = digest_of(model) == digest
print(
    (
        f"worker {worker} of {workers}: {rate:.1f} steps/s, {100 * right:.0f} % right, weights {digest},"
        f" {'equal to' if is_equal else 'NOT equal to'} the hub's"
    ),
    flush=True,
)
optimizer.close()
raise SystemExit(not is_equal)
