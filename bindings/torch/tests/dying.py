"""Rank 1 kills itself in the middle of training; the others say whether they heard who it was."""

import os
import signal
import sys

import torch
import torch.distributed as dist

import espalier.torch  # noqa: F401

torch.set_num_threads(1)
dist.init_process_group("espalier", init_method=f"file://{sys.argv[2]}", rank=int(os.environ["ESP_RANK"]), world_size=int(os.environ["ESP_SIZE"]))
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 100))
for step in range(100_000):
    if dist.get_rank() == 1 and step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        ddp(torch.ones(1, 100)).sum().backward()
    except RuntimeError as error:
        print("told:", "rank 1" in str(error), flush=True)
        os._exit(0)
