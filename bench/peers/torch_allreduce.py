#!/usr/bin/env python3
"""Sums floats with the Gloo that PyTorch brings, measured as contest.h says; starts its ranks itself.

PyTorch sums in place only; out of place is a copy and a sum in place, as its users write it.
"""
import argparse
import json
import multiprocessing
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

PERIOD = 13  # of the terms along a buffer
BATCH_S = 50e-6  # a batch of calls takes at least so long


class Heat:
    """One size, in place or out of place."""

    def __init__(self, rank, ranks, count, is_in_place):
        self.rank, self.ranks = rank, ranks
        self.source = torch.empty(count)
        self.target = self.source if is_in_place else torch.empty(count)
        self.pattern = (torch.arange(count) % PERIOD + 1).float()

    def call(self):
        if self.target is not self.source:
            self.target.copy_(self.source)
        dist.all_reduce(self.target)

    def check(self):
        """Wrong elements on all ranks, after a call on fresh data."""
        self.source.copy_(self.pattern + self.rank)
        self.call()
        expected = self.pattern * self.ranks + self.ranks * (self.ranks - 1) // 2
        wrong = (self.target != expected).sum().to(torch.int64).reshape(1)
        dist.all_reduce(wrong)
        return int(wrong)


def from_rank_0(rank, value):
    known = torch.tensor([value if rank == 0 else 0.0], dtype=torch.float64)
    dist.all_reduce(known)
    return float(known)


def measure(heat, seconds, iters):
    batch, calls, samples = max(BATCH_S, seconds / 1000), 1, []
    start = time.perf_counter()
    is_settled = False
    while True:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            heat.call()
        now = time.perf_counter()
        took, spent = from_rank_0(heat.rank, now - begin), from_rank_0(heat.rank, now - start)
        if is_settled:
            samples.append(took / calls * 1e6)
        elif took >= batch:
            is_settled = True
        else:
            calls *= 2
        if spent >= seconds and len(samples) >= iters:
            return samples


def run(rank, port, options):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=options.ranks)
    total = 0
    for size in map(int, options.sizes.split(",")):
        for place in ("in", "out"):
            heat = Heat(rank, options.ranks, size // 4, place == "in")
            wrong = heat.check()
            samples = measure(heat, options.seconds / 2, options.iters)
            wrong += heat.check()
            total += wrong
            if rank == 0:
                print(json.dumps({"peer": options.peer, "variant": options.variant, "bytes": size, "place": place,
                                  "samples_us": samples, "wrong": wrong}), flush=True)
    dist.barrier()
    os._exit(1 if total else 0)  # the libraries' own way out may hang


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--sizes", required=True, help="bytes, comma separated")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--iters", type=int, default=3)
    parser.add_argument("--peer", default="torch")
    parser.add_argument("--variant", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [multiprocessing.Process(target=run, args=(rank, port, options)) for rank in range(options.ranks)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(max(abs(process.exitcode) for process in ranks))


if __name__ == "__main__":
    main()
