"""One rank of a job: sharing.py HOW STORE OUT [views]: DDP whose buckets are in shared memory, or are not.

HOW: gloo, hook, copied (the hook, without sharing), backend or default (the backend as it is). Writes the gradients of every step to OUT<rank>.
"""

import os
import sys

import torch
import torch.distributed as dist

import espalier.torch

how, store, path, views = sys.argv[1], sys.argv[2], sys.argv[3], "views" in sys.argv[4:]
rank, size = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])
torch.set_num_threads(1)
dist.init_process_group("espalier" if how in ("backend", "default") else "gloo", init_method=f"file://{store}", rank=rank, world_size=size)
torch.manual_seed(0)
# Buckets of 1 MiB: large ones, some of several gradients, and one that is too small to be moved.
model = torch.nn.Sequential(
    torch.nn.Linear(20, 600), torch.nn.ReLU(), torch.nn.Linear(600, 600), torch.nn.ReLU(), torch.nn.Linear(600, 500), torch.nn.Linear(500, 7)
)  # fmt: skip
ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1, gradient_as_bucket_view=views)
state = None
moved = []
if how in ("hook", "copied"):
    state = espalier.torch.State(share=how == "hook")
    ddp.register_comm_hook(state, espalier.torch.allreduce_hook)
    share, state.share = state.share, lambda tensor: (moved.append(share(tensor)), moved[-1])[1]
elif how == "backend":
    espalier.torch.share_buckets(ddp)
source = torch.Generator().manual_seed(rank)
steps = []
for step in range(4):
    for parameter in model.parameters():
        parameter.grad = None if step != 2 else parameter.grad  # once they add up
    ddp(torch.randn(8, 20, generator=source)).square().mean().backward()
    steps.append(torch.cat([one.grad.flatten() for one in model.parameters()]).clone())
if how == "hook":
    assert any(moved) and not all(moved), moved
    assert state.group.job.stats()["shared_bytes"] > 4 * 500_000, state.group.job.stats()
if how == "copied":
    assert not any(moved)
    assert state.group.job.stats()["shared_bytes"] == 0
torch.save(torch.stack(steps), path + str(rank))


class Halves(torch.nn.Module):
    """The gradients of three ranks can be held as float16, and their sum cannot."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(100_000, dtype=torch.float16))

    def forward(self):
        return self.weights.float().sum()


halves = torch.nn.parallel.DistributedDataParallel(Halves(), gradient_as_bucket_view=views)
if state is not None:
    halves.register_comm_hook(state, espalier.torch.allreduce_hook)
elif how == "backend":
    espalier.torch.share_buckets(halves)
for step in range(3):
    (halves() * 30_000).backward()
    assert set(halves.module.weights.grad.tolist()) == {30_000.0}, set(halves.module.weights.grad.tolist())
    halves.module.weights.grad = None
del halves
# The job goes, and the gradients, perhaps in its memory, are still there.
if state is not None:
    state.close()
last = [one.grad for one in model.parameters()]
del ddp
dist.destroy_process_group()
espalier.torch._load_backend().close_all()
assert torch.equal(torch.cat([one.flatten() for one in last]), steps[-1])
for one in last:
    one.add_(1)
