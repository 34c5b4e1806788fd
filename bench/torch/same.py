"""One rank: trains a network and writes down what came of it (scripts/compare-torch starts it).

same.py HOW STEPS STORE OUT. HOW: gloo, hook, bf16 or backend. Writes to OUT<rank> the gradients of the first step and the loss of each.
"""

import hashlib
import os
import sys

import torch
import torch.distributed as dist

import espalier.torch

how, steps, store, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
rank, size = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])
torch.set_num_threads(1)
dist.init_process_group("espalier" if how == "backend" else "gloo", init_method=f"file://{store}", rank=rank, world_size=size)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(),
    torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4),
)  # fmt: skip
ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)  # several buckets
state = None
if how in ("hook", "bf16"):
    state = espalier.torch.State()
    ddp.register_comm_hook(state, espalier.torch.allreduce_hook if how == "hook" else espalier.torch.bf16_hook)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.02, momentum=0.9)
source = torch.Generator().manual_seed(1000 + rank)
losses, gradients = [], None


def digest(tensors):
    return hashlib.sha256(torch.cat([one.detach().flatten() for one in tensors]).numpy().tobytes()).hexdigest()


digests = []
for step in range(steps):
    pictures = torch.randn(16, 1, 16, 16, generator=source)
    kinds = torch.randint(4, (16,), generator=source)
    for one in range(16):  # a bright bar, lying or upright, in one of two halves
        at = 3 + 8 * (int(kinds[one]) // 2)
        line = pictures[one, 0, :, at] if kinds[one] % 2 else pictures[one, 0, at, :]
        line += 1
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(pictures), kinds)
    loss.backward()
    if gradients is None:
        gradients = torch.cat([p.grad.flatten() for p in model.parameters()]).clone()
    digests.append(digest([p.grad for p in model.parameters()]))
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    losses.append(mean.item() / size)
everybody = [None] * size
dist.all_gather_object(everybody, digests)
torch.save({"losses": losses, "gradients": gradients, "alike": sum(len(set(ones)) == 1 for ones in zip(*everybody))}, out + str(rank))
if state is not None:
    state.close()
loss = None
del ddp  # both hold the group, whose threads must end before Python does
dist.destroy_process_group()
