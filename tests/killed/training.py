"""One rank of a training, of which rank 1 is killed: training.py HOW FOLDER

HOW: package (the Python package alone), hook (DistributedDataParallel with Espalier's hook) or backend (torch.distributed over Espalier).
Who this is comes from whatever started it. Every rank leaves a file in FOLDER: when it was killed, or when it heard of that and in
which words.
"""

import array
import os
import pathlib
import signal
import sys
import time

import espalier

VICTIM, KILLED_AT = 1, 5
how, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def leave(name, *lines):
    """A file that is there is whole."""
    new = folder / f".{name}"
    new.write_text("\n".join([repr(time.monotonic()), *lines]) + "\n")
    new.rename(folder / name)


def train(rank, step):
    """Steps until somebody is gone."""
    try:
        for number in range(1_000_000):
            if rank == VICTIM and number == KILLED_AT:
                leave("killed")
                os.kill(os.getpid(), signal.SIGKILL)
            step()
    except Exception as error:
        leave(f"rank{rank}", type(error).__name__, " ".join(str(error).split()))
        sys.exit(3)


def by_package():
    """Finds the slope of y = 3x from points that every rank has of its own."""
    with espalier.init() as job:
        points = [(job.rank + 1) * 0.1 + 0.01 * i for i in range(20)]
        slope = [0.0]

        def step():
            gradient = array.array("f", [sum(2 * (slope[0] - 3) * x * x for x in points) / len(points)])
            job.world.allreduce(gradient, op="avg")
            slope[0] -= 0.1 * gradient[0]

        train(job.rank, step)


def by_torch():
    import torch
    import torch.distributed as dist

    import espalier.torch

    torch.set_num_threads(1)
    name, job = ("espalier" if how == "backend" else "gloo"), None
    if "MASTER_ADDR" in os.environ:
        dist.init_process_group(name)
    else:  # the launcher's words are known to Espalier, and torch is told
        job = espalier.init()
        dist.init_process_group(name, init_method=f"file://{folder}/store", rank=job.rank, world_size=job.size)
    torch.manual_seed(0)
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 100))
    if how == "hook":
        ddp.register_comm_hook(espalier.torch.State(job.world if job else None), espalier.torch.allreduce_hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        ddp(torch.randn(8, 100)).square().mean().backward()
        optimizer.step()

    train(dist.get_rank(), step)


by_package() if how == "package" else by_torch()
