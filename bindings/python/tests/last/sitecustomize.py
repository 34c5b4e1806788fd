"""Loaded by every Python that has this folder in its path: writes down which threads there are when Python goes.

One line for each, main thread included, to the file that LAST_THREADS names, with the rank behind it.
"""

from __future__ import annotations

import atexit
import os
import time


def threads() -> list[str]:
    lines = []
    for task in sorted(os.listdir("/proc/self/task"), key=int):
        try:
            with open(f"/proc/self/task/{task}/comm") as comm:
                lines.append(f"{task} {comm.read()}")
        except FileNotFoundError:
            pass
    return lines


def write() -> None:
    # One that was joined may be listed a moment longer; one that lives on stays.
    ends = time.monotonic() + 10
    while len(threads()) > 1 and time.monotonic() < ends:
        time.sleep(0.001)
    with open(os.environ["LAST_THREADS"] + os.environ.get("ESP_RANK", ""), "w") as file:
        file.writelines(threads())


if "LAST_THREADS" in os.environ:
    atexit.register(write)  # the first to be registered is the last to be called
