"""One rank: how long dist.all_reduce() of small tensors takes (scripts/bench-torch-calls starts it).

calls.py BACKEND SIZES SECONDS STORE. SIZES: bytes of float32, as in 4,1024. Rank 0 prints as JSON microseconds per call, some samples for each size, and whether
every result was right.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

backend, sizes, seconds, store = sys.argv[1], [int(size) for size in sys.argv[2].split(",")], float(sys.argv[3]), sys.argv[4]
if backend == "espalier":
    import espalier.torch  # noqa: F401
rank, size = int(os.environ["ESP_RANK"]), int(os.environ["ESP_SIZE"])
torch.set_num_threads(1)
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size)
found = {"samples": {}, "right": True}


def run(data, calls):
    begun = time.perf_counter()
    for _ in range(calls):
        data.fill_(1)
        dist.all_reduce(data)
    return (time.perf_counter() - begun) / calls


for length in sizes:
    data = torch.empty(length // 4)
    run(data, 50)
    # As many calls in a sample as take a twentieth of the time: rank 0 says how many.
    calls = torch.tensor([max(1, int(seconds / 20 / run(data, 50)))])
    dist.broadcast(calls, 0)
    samples = []
    for _ in range(20):
        dist.barrier()
        samples.append(run(data, int(calls)) * 1e6)
        found["right"] = found["right"] and bool((data == size).all())
    found["samples"][length] = samples
if rank == 0:
    print("RESULT " + json.dumps(found), flush=True)
dist.destroy_process_group()
