"""Trains a small convolutional network with DistributedDataParallel, on data that it makes itself.

    espalier run -n 4 -- python3 examples/ddp/ddp.py --with gloo|hook|bf16|backend

gloo is PyTorch's own way; hook and bf16 average gradients through Espalier, the latter with half as many bytes; backend
replaces Gloo as a whole (bindings/torch/build.py compiles it). Also under torchrun. Every rank has its own part of the data.
"""

import argparse
import hashlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import espalier.torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--with", dest="how", choices=["gloo", "hook", "bf16", "backend"], default="hook", help="who moves the gradients (hook)")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--width", type=int, default=1024, help="of the last layers: wider ones are more to move")
options = parser.parse_args()

torch.set_num_threads(1)
dist.init_process_group("espalier" if options.how == "backend" else "gloo")  # espalier run and torchrun say who is who
rank, size = dist.get_rank(), dist.get_world_size()


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


torch.manual_seed(0)
width = options.width
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(16 * 16, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 4),
)  # fmt: skip
ddp = DistributedDataParallel(model)
state = None
if options.how in ("hook", "bf16"):
    state = espalier.torch.State()
    ddp.register_comm_hook(state, espalier.torch.allreduce_hook if options.how == "hook" else espalier.torch.bf16_hook)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.03, momentum=0.9)
source = torch.Generator().manual_seed(1000 + rank)
began, losses, loss = None, [], None
for step in range(options.steps):
    pictures, kinds = batch(8, source)
    if step == 2:  # the first steps set things up
        began = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(pictures), kinds)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if rank == 0 and (step + 1) % 20 == 0:
        print(f"step {step + 1:4}  loss {sum(losses[-20:]) / 20:.3f}", flush=True)
took = time.perf_counter() - (began or 0)
with torch.no_grad():
    pictures, kinds = batch(500, torch.Generator().manual_seed(7))
    right = (model(pictures).argmax(1) == kinds).float().mean().item()
digest = hashlib.sha256(torch.cat([p.detach().flatten() for p in model.parameters()]).numpy().tobytes()).hexdigest()[:12]
everybody = [None] * size
dist.all_gather_object(everybody, digest)
if rank == 0:
    print(f"{options.how}: {(options.steps - 2) / took:.1f} steps/s, {100 * right:.0f} % right; weights {digest} on ", end="")
    print("all ranks" if len(set(everybody)) == 1 else f"some ranks only: {everybody}", flush=True)
if state is not None:
    state.close()
# Gloo's threads let go of the last call's tensors when they come to it. They need Python for that, and abort the process if it is just
# going. They end with the group, once nobody holds it: the model does, and the graph behind the loss. In this order, or they may wait forever.
del ddp, loss
dist.destroy_process_group()
raise SystemExit(len(set(everybody)) != 1)
