"""The process group is destroyed by a callback of one of its own calls, which the backend's thread makes."""

import os
import sys
import threading

import torch
import torch.distributed as dist

import espalier.torch  # noqa: F401

dist.init_process_group("espalier", init_method=f"file://{sys.argv[2]}", rank=int(os.environ["ESP_RANK"]), world_size=int(os.environ["ESP_SIZE"]))
left, told = threading.Event(), []
start = threading.Event()


def leave(future):
    start.wait()  # until this script has let go of all that it had
    try:
        dist.destroy_process_group()
    finally:
        left.set()


# A message that never comes: its future ends as the group is left.
never = dist.irecv(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size(), tag=9).get_future()
never.add_done_callback(lambda future: told.append(future))
work = dist.all_reduce(torch.ones(10), async_op=True)
work.get_future().add_done_callback(leave)
del work
start.set()
assert left.wait(60)
assert not dist.is_initialized()
try:
    never.wait()
except RuntimeError as error:
    print("left:", "closed" in str(error), flush=True)
