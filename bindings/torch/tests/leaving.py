"""The process group is destroyed by a callback of one of its own calls, which the backend's thread makes."""

import os
import sys
import threading

import torch
import torch.distributed as dist

import espalier.torch  # noqa: F401

dist.init_process_group("espalier", init_method=f"file://{sys.argv[2]}", rank=int(os.environ["ESP_RANK"]), world_size=int(os.environ["ESP_SIZE"]))
start, left, told = threading.Event(), threading.Event(), []
other = (dist.get_rank() + 1) % dist.get_world_size()


def leave(future):
    start.wait()  # until this script has let go of all that it had
    try:
        dist.destroy_process_group()
    finally:
        left.set()
    # Python is about to go, and this thread is still in it: whoever ends Python must wait for it.
    threading.main_thread().join()
    for _ in range(1_000_000):
        pass


# A message that never comes: its future ends as the group is left.
never = dist.irecv(torch.zeros(1), other, tag=9).get_future()
never.add_done_callback(lambda future: told.append(future))
work = dist.irecv(torch.zeros(1), other, tag=1)
work.get_future().add_done_callback(leave)
del work
# It ends only now, as both have a callback, and so in the backend's thread.
dist.barrier()
dist.send(torch.ones(1), other, tag=1)
start.set()
assert left.wait(60)
assert not dist.is_initialized()
try:
    never.wait()
except RuntimeError as error:
    print("left:", "closed" in str(error), flush=True)
