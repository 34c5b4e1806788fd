"""A rank that combines sparse tensors, and trains an embedding with sparse gradients.

sparse.py WAY STORE PREFIX: gloo, espalier (the backend), or hook (allreduce_hook over Gloo).
"""
import os
import sys

import torch
import torch.distributed as dist

import espalier.torch

RANK, SIZE = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])


def tensor():
    """Rank 0 has no elements; those of the others meet at row 5."""
    if RANK == 0:
        return torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), torch.zeros(0, 2), (10, 2))
    return torch.sparse_coo_tensor(torch.tensor([[RANK, RANK + 1, 5]]), torch.ones(3, 2) * (RANK + 1), (10, 2))


def main():
    torch.set_num_threads(1)
    way = sys.argv[1]
    dist.init_process_group("espalier" if way == "espalier" else "gloo", init_method="file://" + sys.argv[2], rank=RANK, world_size=SIZE)
    state = espalier.torch.State(average=False) if way == "hook" else None
    one = tensor()
    if state is not None:
        state.allreduce(one).wait()
    else:
        dist.all_reduce(one)
    print("sum:", one.to_dense().sum(1).tolist(), flush=True)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Embedding(50, 8, sparse=True), torch.nn.Linear(8, 2))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    if way == "hook":
        ddp.register_comm_hook(espalier.torch.State(), espalier.torch.allreduce_hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    torch.manual_seed(10 + RANK)
    for _ in range(5):
        optimizer.zero_grad()
        ddp(torch.randint(0, 50, (6,))).square().mean().backward()
        optimizer.step()
    print("weights:", [f"{param.double().norm():.5f}" for param in model.parameters()], flush=True)
    dist.destroy_process_group()


main()
