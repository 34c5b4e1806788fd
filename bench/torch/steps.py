"""One rank: training steps per second of DistributedDataParallel (scripts/bench-torch starts it).

steps.py HOW MODEL STEPS STORE [views]. HOW: gloo; hook, or hook-copied (DDP's buckets stay where they are); bf16; backend, or backend-shared (the buckets
are moved to shared memory); or none (nothing is exchanged: as fast as it could be). MODEL: wide (a
few large layers on one example: mostly communication), narrow (a twelfth of that, for slow networks) or deep (convolutions on a batch: mostly
computing). views: gradients live in DDP's buckets and are not zeroed first (gradient_as_bucket_view, set_to_none), so that DDP copies
none of them. Rank 0 prints as JSON the seconds of each step, and the processor time of all ranks per step, which says more on a machine that others use too.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

import espalier.torch

how, kind, steps, store = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
views = sys.argv[5:] == ["views"]
rank, size = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])
torch.set_num_threads(1)
dist.init_process_group("espalier" if how.startswith("backend") else "gloo", init_method=f"file://{store}", rank=rank, world_size=size)
torch.manual_seed(0)


def _completed(tensor):
    future = torch.futures.Future()
    future.set_result(tensor)
    return future


if kind in ("wide", "narrow"):
    # One example: where a BLAS is slow, as Debian's default is, a batch of four computes for longer than it communicates.
    ends, middle = (512, 2048) if kind == "wide" else (256, 512)
    model = torch.nn.Sequential(torch.nn.Linear(ends, middle), torch.nn.ReLU(), torch.nn.Linear(middle, middle), torch.nn.ReLU(), torch.nn.Linear(middle, ends))
    data = torch.randn(1, ends, generator=torch.Generator().manual_seed(rank))
else:
    layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU()]
    for _ in range(6):
        layers += [torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    data = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(rank))
ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=views)
state = None
if how == "none":
    done = lambda state, bucket: _completed(bucket.buffer())  # noqa: E731
    ddp.register_comm_hook(None, done)
if how in ("hook", "hook-copied", "bf16"):
    state = espalier.torch.State(share=how == "hook")
    ddp.register_comm_hook(state, espalier.torch.bf16_hook if how == "bf16" else espalier.torch.allreduce_hook)
if how == "backend-shared":
    espalier.torch.share_buckets(ddp)
optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
times = []
for step in range(steps + 3):
    if step == 3:
        busy = time.process_time()
    began = time.perf_counter()
    optimizer.zero_grad(**({"set_to_none": True} if views else {}))  # otherwise as this torch does by itself
    ddp(data).square().mean().backward()
    optimizer.step()
    if step >= 3:  # buckets are made anew after the first steps
        times.append(time.perf_counter() - began)
busy = torch.tensor([(time.process_time() - busy) / steps])
dist.all_reduce(busy)
checks = [torch.zeros(1) for _ in range(size)]
dist.all_gather(checks, sum(p.double().sum() for p in model.parameters()).float().view(1))
assert how == "none" or len({one.item() for one in checks}) == 1, "ranks have different weights"
if rank == 0:
    print("RESULT", json.dumps({"seconds": times, "busy": busy.item(), "parameters": sum(p.numel() for p in model.parameters())}), flush=True)
if state is not None:
    state.close()
del ddp  # it holds the group, whose threads must end before Python does
dist.destroy_process_group()
