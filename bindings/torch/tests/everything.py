"""One rank of a job: everything.py BACKEND STORE OUT [DEVICE]: every collective of torch.distributed, then training.

Writes what came out to OUT<rank>; test_c10d.py compares the backends.
"""

import gc
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

import espalier.torch  # noqa: F401: registers the backend

backend, store, path, device = sys.argv[1], sys.argv[2], sys.argv[3], torch.device(sys.argv[4] if len(sys.argv) > 4 else "cpu")
rank, size = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])
torch.set_num_threads(1)
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size)
results = {}


def numbers(count, dtype=torch.float32, salt=0):
    return ((torch.arange(count) * 7 + rank * 3 + salt) % 5 + 1).to(dtype).to(device)


def keep(name, tensor, compared=True):
    """compared: Gloo of every version can do it, too."""
    if compared:
        results[name] = tensor.detach().cpu().clone()


on_gpu = device.type == "cuda"
for dtype in (torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64):
    for op in ("SUM", "MIN", "MAX", "PRODUCT"):
        tensor = numbers(1000, dtype)
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
        keep(f"all_reduce {dtype} {op}", tensor)
if backend == "espalier":  # Gloo of torch 1.13 has neither type nor operation, and combines only a part of what is not contiguous
    tensor = numbers(50_000, torch.bfloat16)
    wanted = sum(((torch.arange(50_000) * 7 + one * 3) % 5 + 1).float() for one in range(size))
    dist.all_reduce(tensor)
    assert torch.equal(tensor.float().cpu(), wanted)
    tensor = numbers(50_000)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert torch.allclose(tensor.cpu(), wanted / size)
    odd, plain = numbers(36).view(6, 6).t()[1:5], numbers(36)
    dist.all_reduce(odd)
    dist.all_reduce(plain)
    assert torch.equal(odd, plain.view(6, 6).t()[1:5])
handles = [(tensor, dist.all_reduce(tensor, async_op=True)) for tensor in (numbers(n + 1, salt=n) for n in range(20))]
for n, (tensor, handle) in enumerate(handles):
    handle.wait()
    keep(f"async {n}", tensor)
big = numbers(1_000_000)
dist.all_reduce(big)
keep("big", big)
for root in range(size):
    tensor = numbers(77)
    dist.broadcast(tensor, root)
    keep(f"broadcast {root}", tensor)
    tensor = numbers(77)
    dist.reduce(tensor, root)
    if rank == root:
        keep(f"reduce {root}", tensor)
    blocks = [torch.zeros(5, device=device) for _ in range(size)] if rank == root else None
    if not on_gpu or backend == "espalier":
        dist.gather(numbers(5), blocks, root)
        if blocks:
            keep(f"gather {root}", torch.cat(blocks), not on_gpu)
        block = torch.zeros(5, device=device)
        dist.scatter(block, [numbers(5, salt=n) for n in range(size)] if rank == root else None, root)
        keep(f"scatter {root}", block, not on_gpu)
blocks = [torch.zeros(13, device=device) for _ in range(size)]
dist.all_gather(blocks, numbers(13))
keep("all_gather", torch.cat(blocks))
if backend == "espalier":
    whole = torch.zeros(13 * size, device=device)
    dist._all_gather_base(whole, numbers(13)) if not hasattr(dist, "all_gather_into_tensor") else dist.all_gather_into_tensor(whole, numbers(13))
    assert torch.equal(whole.cpu(), results["all_gather"])
    part, summed = torch.zeros(10, device=device), torch.zeros(10, device=device)
    dist.reduce_scatter(part, [numbers(10, salt=n) for n in range(size)])
    whole = torch.cat([numbers(10, salt=n) for n in range(size)])
    (dist.reduce_scatter_tensor if hasattr(dist, "reduce_scatter_tensor") else dist._reduce_scatter_base)(summed, whole.clone())
    assert torch.equal(part, summed)
    dist.all_reduce(whole)
    assert torch.equal(whole[10 * rank : 10 * rank + 10], part)
    # Blocks of different sizes.
    uneven = [torch.zeros(n + 1, device=device) for n in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank), device=device))
    assert all(torch.equal(block.cpu(), torch.full((n + 1,), float(n))) for n, block in enumerate(uneven))
    flags = torch.tensor([rank == 0, True, False], device=device)
    dist.all_reduce(flags, op=dist.ReduceOp.MAX)
    assert flags.tolist() == [True, True, False]
    turned = [torch.zeros(n + rank, device=device) for n in range(size)]
    dist.all_to_all(turned, [torch.full((rank + n,), float(rank), device=device) for n in range(size)])
    assert all(torch.equal(block.cpu(), torch.full((n + rank,), float(n))) for n, block in enumerate(turned))
received = torch.zeros(size * 3, device=device)
if not on_gpu or backend == "espalier":
    dist.all_to_all_single(received, numbers(size * 3))
    keep("all_to_all_single", received, not on_gpu)
everybody = [None] * size
dist.all_gather_object(everybody, {"rank": rank})
assert everybody == [{"rank": n} for n in range(size)]
requests = []
if size > 1 and (not on_gpu or backend == "espalier"):
    got = torch.zeros(1000, device=device)
    requests.append(dist.irecv(got, (rank - 1) % size, tag=4))
    requests.append(dist.isend(numbers(1000), (rank + 1) % size, tag=4))
    for request in requests:
        request.wait()
    keep("ring of messages", got, not on_gpu)
    if rank == 0:
        senders = sorted(dist.recv(got) for _ in range(size - 1))
        assert senders == list(range(1, size)), senders
    else:
        dist.send(numbers(1000), 0)
if backend == "espalier":
    # Not made by all ranks alike, so messages do not count.
    group = dist.distributed_c10d._get_default_group()
    if int(torch.__version__.partition(".")[0]) < 2:  # later ones ask only the backends that they know
        numbers_of_all = [None] * size
        dist.all_gather_object(numbers_of_all, group._get_sequence_number_for_group())
        assert len(set(numbers_of_all)) == 1, numbers_of_all
    for call in (lambda: dist.all_reduce_coalesced([]), lambda: dist.all_gather_coalesced([[] for _ in range(size)], [])):
        try:
            call()
        except (RuntimeError, ValueError, IndexError) as error:
            assert "empty" in str(error) or int(torch.__version__.partition(".")[0]) >= 2, error
        else:
            raise AssertionError("an empty list was accepted")
pair = dist.new_group([0, size - 1])
if rank in (0, size - 1):
    tensor = numbers(10)
    dist.all_reduce(tensor, group=pair)
    keep("group", tensor)
dist.barrier()

torch.manual_seed(3)
# No bias before the normalization: its gradient is nothing but rounding, of which Adam makes full steps.
model = torch.nn.Sequential(torch.nn.Linear(32, 64, bias=False), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(device)
ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index or 0] if on_gpu else None)
optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
noise = torch.Generator().manual_seed(50 + rank)
losses = []
for step in range(200):
    data = torch.randn(16, 32, generator=noise).to(device)
    target = (data[:, 0] > 0).long() + 2 * (data[:, 1] > 0).long()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(data), target)
    loss.backward()
    if step == 0:
        keep("gradients", torch.cat([p.grad.flatten() for p in model.parameters()]))
    optimizer.step()
    losses.append(loss.item())
keep("losses", torch.tensor(losses))
keep("weights", torch.cat([p.flatten() for p in model.parameters()]))

if int(torch.__version__.partition(".")[0]) >= 2 and backend == "espalier" and size > 1:
    from torch.distributed.fsdp import FullyShardedDataParallel

    torch.manual_seed(4)
    plain = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(device)
    sharded = FullyShardedDataParallel(plain, device_id=device)
    trainer = torch.optim.SGD(sharded.parameters(), lr=0.1)
    first = last = None
    for step in range(40):
        data = torch.randn(64, 32, generator=noise).to(device)
        loss = torch.nn.functional.cross_entropy(sharded(data), (data[:, 0] > 0).long())
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        first, last = (first or loss.item()), loss.item()
    assert last < 0.8 * first, (first, last)
    print("fsdp", first, last)
torch.save(results, path + str(rank))
if os.environ.get("LEAVE") != "abruptly":
    # They hold the groups, whose threads must end before Python does: Gloo's may abort otherwise.
    del ddp, loss, optimizer, pair
    gc.collect()
    dist.destroy_process_group()
