"""A rank of a DDP job with one of torch's own communication hooks: prints a digest of the weights after some steps.

hooks.py BACKEND STORE PREFIX HOOK
"""
import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook

if sys.argv[1] == "espalier":
    import espalier.torch  # registers the backend


def register(name, ddp):
    if name == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "post-local-sgd":
        state = post_localSGD_hook.PostLocalSGDState(None, dist.new_group(), start_localSGD_iter=3)
        ddp.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    else:
        sys.exit(f"no hook is called {name}")


def main():
    torch.set_num_threads(1)
    dist.init_process_group(
        sys.argv[1], init_method="file://" + sys.argv[2], rank=int(os.environ["ESP_RANK"]), world_size=int(os.environ["ESP_SIZE"])
    )
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    register(sys.argv[4], ddp)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(8):
        optimizer.zero_grad()
        ddp(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
    weights = torch.cat([param.detach().reshape(-1) for param in model.parameters()])
    print("weights", f"{weights.double().norm():.5f}", hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:12], flush=True)
    dist.destroy_process_group()


main()
