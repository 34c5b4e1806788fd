"""The process group is destroyed while another thread waits for a call that never ends: it is told."""

import os
import sys
import threading

import torch
import torch.distributed as dist

import espalier.torch  # noqa: F401

dist.init_process_group("espalier", init_method=f"file://{sys.argv[2]}", rank=int(os.environ["ESP_RANK"]), world_size=int(os.environ["ESP_SIZE"]))
work = dist.irecv(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size(), tag=9)
waits = threading.Event()


def wait():
    waits.set()
    try:
        work.wait()
    except RuntimeError as error:
        print("told:", "closed" in str(error), flush=True)


thread = threading.Thread(target=wait)
thread.start()
waits.wait()
dist.destroy_process_group()
thread.join(60)
assert not thread.is_alive()
