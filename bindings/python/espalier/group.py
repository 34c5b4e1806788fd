"""Groups of ranks and what they do together."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Optional, Sequence, TypeVar

from . import _calls, _native, errors
from ._calls import Built, Extras
from ._native import lib
from .work import Flight, Prepared, Received, Work

if TYPE_CHECKING:
    from .job import Job

Data = Any
"""Anything with the buffer protocol or DLPack (bytes, array, memoryview, numpy, torch ...), or a list of such: a bucket."""


SMALL_BYTES = 65536


R = TypeVar("R")


class _Collectives(Generic[R]):
    """The collectives, made in one way: at once, in the background, or prepared. R: what a call gives, accordingly."""

    def _make(self, built: Built) -> R:
        raise NotImplementedError

    def _build(self, collective: str, data: Data, out: Data, extras: Extras) -> Built:
        raise NotImplementedError

    def allreduce(
        self, data: Data, out: Data = None, *, op: str = "sum", factor: Optional[float] = None, type: Optional[str] = None,
        plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """The combination of all ranks' data, on all ranks, in `out`; without `out` in place.

        op: sum, avg, prod, min, max, band, bor, bxor, land, lor, lxor, or scaled (the sum times `factor`).
        type: what the elements are, where the object does not say ("f32", "bf16" ...).
        plan: a planner of `espalier plan`; key: calls with the same key belong together, whatever their order.
        timeout: seconds until it fails, and the group with it; None: the job's deadline.
        """
        return self._make(self._build("allreduce", data, out, Extras(type, op, factor, 0, None, plan, key, timeout)))

    def reduce(
        self, data: Data, out: Data = None, *, root: int = 0, op: str = "sum", factor: Optional[float] = None,
        type: Optional[str] = None, plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """As allreduce, on `root` only; the others get None."""
        return self._make(self._build("reduce", data, out, Extras(type, op, factor, root, None, plan, key, timeout)))

    def broadcast(
        self, data: Data, *, root: int = 0, type: Optional[str] = None, plan: Optional[str] = None, key: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """root's data, in the data of all ranks."""
        return self._make(self._build("broadcast", data, None, Extras(type, "sum", None, root, None, plan, key, timeout)))

    def reduce_scatter(
        self, data: Data, out: Data = None, *, op: str = "sum", factor: Optional[float] = None, counts: Optional[Sequence[int]] = None,
        type: Optional[str] = None, plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """The combination, cut into one block per rank: this rank's block. counts: elements per rank, where they differ."""
        return self._make(self._build("reduce-scatter", data, out, Extras(type, op, factor, 0, counts, plan, key, timeout)))

    def allgather(
        self, data: Data, out: Data = None, *, counts: Optional[Sequence[int]] = None, type: Optional[str] = None,
        plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """All ranks' data one behind the other, on all ranks. counts: elements per rank, where they differ."""
        return self._make(self._build("allgather", data, out, Extras(type, "sum", None, 0, counts, plan, key, timeout)))

    def gather(
        self, data: Data, out: Data = None, *, root: int = 0, counts: Optional[Sequence[int]] = None, type: Optional[str] = None,
        plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """As allgather, on `root` only; the others get None."""
        return self._make(self._build("gather", data, out, Extras(type, "sum", None, root, counts, plan, key, timeout)))

    def scatter(
        self, data: Data = None, out: Data = None, *, root: int = 0, counts: Optional[Sequence[int]] = None,
        type: Optional[str] = None, plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """root's data, cut into one block per rank: this rank's block. Ranks other than root give `out` only."""
        return self._make(self._build("scatter", data, out, Extras(type, "sum", None, root, counts, plan, key, timeout)))

    def alltoall(
        self, data: Data, out: Data = None, *, counts: Optional[Sequence[int]] = None, type: Optional[str] = None,
        plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None,
    ) -> R:  # fmt: skip
        """Block i of the data goes to rank i. counts: size x size elements by sender and receiver, the same on all ranks."""
        return self._make(self._build("alltoall", data, out, Extras(type, "sum", None, 0, counts, plan, key, timeout)))

    def barrier(self, *, plan: Optional[str] = None, key: Optional[int] = None, timeout: Optional[float] = None) -> R:
        """Ends when all ranks have called it."""
        return self._make(_calls.barrier(Extras(plan=plan, key=key, timeout=timeout)))


class _Starting(_Collectives[Work[Any]]):
    """group.start: the same calls in the background; each returns a Work."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def _build(self, collective: str, data: Data, out: Data, extras: Extras) -> Built:
        return self._group._build(collective, data, out, extras)

    def _make(self, built: Built) -> Work[Any]:
        return self._group._start(built)

    def send(self, data: Data, to: int, *, tag: int = 0, timeout: Optional[float] = None) -> Work[None]:
        """Sends a message in the background."""
        group = self._group
        view, _ = _calls.message(data, False)
        handle = ctypes.c_void_p()
        group.job._sweep()
        errors.check(group._call(lib.esp_send_start, view.address, view.bytes, to, tag, _calls.nanoseconds(timeout), handle))
        return Work(group.job._flying(Flight(group.job, handle.value or 0, [view], None)))

    def recv(self, data: Data, source: Optional[int] = None, *, tag: int = 0, timeout: Optional[float] = None) -> Received:
        """Receives a message in the background; the result is (bytes, rank of the sender)."""
        group = self._group
        view, _ = _calls.message(data, True)
        handle = ctypes.c_void_p()
        sender = _native.ANY_RANK if source is None else source
        group.job._sweep()
        errors.check(group._call(lib.esp_recv_start, view.address, view.bytes, sender, tag, _calls.nanoseconds(timeout), handle))
        return Received(group.job._flying(Flight(group.job, handle.value or 0, [view], None)))


class _Preparing(_Collectives[Prepared[Any]]):
    """group.prepare: the same calls, planned now and started by restart(), as often as wanted."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def _build(self, collective: str, data: Data, out: Data, extras: Extras) -> Built:
        return self._group._build(collective, data, out, extras)

    def _make(self, built: Built) -> Prepared[Any]:
        handle = ctypes.c_void_p()
        errors.check(self._group._call(lib.esp_prepare, built.call, handle))
        return Prepared(Flight(self._group.job, handle.value or 0, built.held, built.result), keep=True)


@dataclass
class Shrunk:
    """What the survivors of a failed group agreed on."""

    group: Group
    lost: list[int]
    """The places in the old group of those who do not go on."""
    completed_everywhere: int
    """All calls up to this number have ended well on all who go on."""
    completed_somewhere: int
    """No call beyond this number has ended well on anybody who was heard."""


class Group(_Collectives[Any]):
    """Some ranks of the job, in some order.

    Calls on one group are made in the same order on all its ranks, or carry a key. Methods block; `group.start` has
    the same methods in the background, `group.prepare` those that are made many times.
    """

    def __init__(self, job: Job, handle: int) -> None:
        self.job = job
        self._pointer: Optional[int] = handle
        self.rank: int = lib.esp_rank(handle)
        """Our place in the group."""
        self.size: int = lib.esp_size(handle)
        """How many ranks it has."""
        self.start = _Starting(self)
        self.prepare = _Preparing(self)

    def __repr__(self) -> str:
        return f"<espalier.Group rank {self.rank} of {self.size}>"

    def _call(self, function: Any, *arguments: Any) -> Any:
        """A function of the library on this group, whose job nobody leaves meanwhile."""
        pointer = self._pointer
        if pointer is None or not self.job._enter():
            raise errors.StateError("the group has been freed, or the job left")
        try:
            return function(pointer, *arguments)
        finally:
            self.job._leave()

    def _build(self, collective: str, data: Data, out: Data, extras: Extras) -> Built:
        return _calls.build(collective, self.rank, self.size, data, out, extras)

    def _start(self, built: Built) -> Work[Any]:
        handle = ctypes.c_void_p()
        self.job._sweep()
        errors.check(self._call(lib.esp_start, built.call, handle))
        return Work(self.job._flying(Flight(self.job, handle.value or 0, built.held, built.result)))

    def _make(self, built: Built) -> Any:
        # Signals reach Python only in its main thread, and only between calls of the library. There, large calls are waited
        # for in slices, so that Ctrl-C works; for small ones that would cost more than the call.
        if built.bytes > SMALL_BYTES and threading.current_thread() is threading.main_thread():
            return self._start(built).wait()
        self.job._sweep()
        errors.check(self._call(lib.esp_run, built.call))
        return built.result

    def send(self, data: Data, to: int, *, tag: int = 0, timeout: Optional[float] = None) -> None:
        """Sends a message to a rank of the group. It may return before the message is received, or wait for that."""
        self.start.send(data, to, tag=tag, timeout=timeout).wait()

    def recv(self, data: Data, source: Optional[int] = None, *, tag: int = 0, timeout: Optional[float] = None) -> tuple[int, int]:
        """Receives a message with this tag into `data`, from `source` or from anybody; returns (bytes, rank of the sender)."""
        return self.start.recv(data, source, tag=tag, timeout=timeout).wait()

    def host(self, rank: int) -> str:
        """The name of the host of this place."""
        name = self._call(lib.esp_host, self._place(rank))
        return _native.text(name)

    def world_rank(self, rank: int) -> int:
        """Who has this place: a rank of the world."""
        found: int = self._call(lib.esp_world_rank, self._place(rank))
        return found

    def _place(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise errors.InvalidError(f"there is no rank {rank} in a group of {self.size}")
        return rank

    def create(self, ranks: Sequence[int]) -> Optional[Group]:
        """A new group of some places of this one, in this order. Called by all, alike; None on those who are not in it."""
        array = (ctypes.c_uint32 * len(ranks))(*[self._place(rank) for rank in ranks])
        handle = ctypes.c_void_p()
        errors.check(self._call(lib.esp_group_create, array, len(ranks), handle))
        return Group(self.job, handle.value) if handle.value else None

    def split(self, color: Optional[int], key: int = 0) -> Optional[Group]:
        """Ranks with the same color form a group, ordered by key, then by place. color None: in no group."""
        if color is not None and color < 0:
            raise errors.InvalidError("a color is not negative; None is no group at all")
        handle = ctypes.c_void_p()
        errors.check(self._call(lib.esp_group_split, -1 if color is None else color, key, handle))
        return Group(self.job, handle.value) if handle.value else None

    def free(self) -> None:
        """Frees the group: called by all its ranks, after all calls on it have ended."""
        if self._pointer is None or not self.job.is_open:
            return
        errors.check(self._call(lib.esp_group_free))
        self._pointer = None

    def abort(self, reason: str = "") -> None:
        """Ends every call of the group, now and later, on all its ranks with AbortedError."""
        errors.check(self._call(lib.esp_abort, reason.encode() or None))

    @property
    def error(self) -> Optional[errors.EspalierError]:
        """Why the group has failed; None: it has not."""
        error = _native.Error()
        errors.check(self._call(lib.esp_group_error, error))
        return None if error.status == _native.OK else errors.from_native(error.status, error)

    @property
    def calls(self) -> int:
        """How many collectives without a key were made on the group here; the last one has this number."""
        count: int = self._call(lib.esp_group_calls)
        return count

    def shrink(self, timeout: Optional[float] = None) -> Shrunk:
        """The ranks that are left of a failed group agree on who they are, and go on in a new group."""
        lost = (ctypes.c_uint32 * self.size)()
        report = _native.Shrink()
        report.deadline_ns = _calls.nanoseconds(timeout)
        report.lost, report.lost_room = lost, self.size
        handle = ctypes.c_void_p()
        errors.check(self._call(lib.esp_group_shrink, report, handle))
        return Shrunk(
            Group(self.job, handle.value or 0),
            list(lost[: report.lost_count]),
            report.completed_everywhere,
            report.completed_somewhere,
        )

    def grow(self, most: int = 0, timeout: Optional[float] = None) -> Optional[Job]:
        """Lets in whoever waits at a door of the group's ranks: a new Job, or None if nobody waits. Called by all ranks."""
        handle = ctypes.c_void_p()
        errors.check(self._call(lib.esp_grow, most, _calls.nanoseconds(timeout), handle))
        if not handle.value:
            return None
        from .job import Job

        return Job(handle.value)
