"""One rank: training steps per second of DistributedDataParallel (scripts/bench-torch starts it).

steps.py HOW MODEL STEPS STORE. HOW: gloo, hook, bf16 or backend. MODEL: wide (a few large layers on a small batch: mostly
communication) or deep (convolutions on a large one: mostly computing). Rank 0 prints the seconds of each step as JSON.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

import espalier.torch

how, kind, steps, store = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
rank, size = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])
torch.set_num_threads(1)
dist.init_process_group("espalier" if how == "backend" else "gloo", init_method=f"file://{store}", rank=rank, world_size=size)
torch.manual_seed(0)
if kind == "wide":
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
    data = torch.randn(4, 512, generator=torch.Generator().manual_seed(rank))
else:
    layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU()]
    for _ in range(6):
        layers += [torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    data = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(rank))
ddp = torch.nn.parallel.DistributedDataParallel(model)
state = None
if how in ("hook", "bf16"):
    state = espalier.torch.State()
    ddp.register_comm_hook(state, espalier.torch.allreduce_hook if how == "hook" else espalier.torch.bf16_hook)
optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
times = []
for step in range(steps + 3):
    began = time.perf_counter()
    optimizer.zero_grad()
    ddp(data).square().mean().backward()
    optimizer.step()
    if step >= 3:  # buckets are made anew after the first steps
        times.append(time.perf_counter() - began)
checks = [torch.zeros(1) for _ in range(size)]
dist.all_gather(checks, sum(p.double().sum() for p in model.parameters()).float().view(1))
assert len({one.item() for one in checks}) == 1, "ranks have different weights"
if rank == 0:
    print("RESULT", json.dumps({"seconds": times, "parameters": sum(p.numel() for p in model.parameters())}), flush=True)
if state is not None:
    state.close()
dist.destroy_process_group()
