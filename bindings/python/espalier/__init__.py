"""Espalier: communication for distributed training.

    import espalier, numpy

    with espalier.init() as job:                      # rank and size from the launcher
        gradient = numpy.ones(1_000_000, dtype="f4")
        job.world.allreduce(gradient, op="avg")       # in place, on anything with memory
        work = job.world.start.allreduce(gradient)    # in the background
        work.wait()                                   # or: await work

Start it with `espalier run -n 4 -- python3 train.py`, torchrun, mpirun or srun. A rank that dies raises PeerError on all others,
with `rank` and `host`.
"""

from . import errors, hub
from ._native import lib as _lib
from .errors import (
    AbortedError,
    CorruptError,
    DeadlineError,
    EspalierError,
    ExcludedError,
    FileError,
    ForkedError,
    InvalidError,
    JobError,
    LimitError,
    LinkError,
    MismatchError,
    OutOfMemoryError,
    ParseError,
    PeerError,
    PlanError,
    QuorumError,
    StateError,
    UnsupportedError,
)
from .group import Group, Shrunk
from .job import Job, init
from .work import Prepared, Received, Work

__version__: str = "0.1.0"

library_version: str = _lib.esp_version().decode()
"""The version of the shared library that was found."""

__all__ = [
    "AbortedError",
    "CorruptError",
    "DeadlineError",
    "EspalierError",
    "ExcludedError",
    "FileError",
    "ForkedError",
    "Group",
    "InvalidError",
    "Job",
    "JobError",
    "LimitError",
    "LinkError",
    "MismatchError",
    "OutOfMemoryError",
    "ParseError",
    "PeerError",
    "PlanError",
    "Prepared",
    "QuorumError",
    "Received",
    "Shrunk",
    "StateError",
    "UnsupportedError",
    "Work",
    "errors",
    "hub",
    "init",
    "library_version",
]
