"""Membership in a job."""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Mapping, Optional

from . import _memory, _native, errors
from ._calls import setting_lines
from ._handle import Handle
from ._native import lib
from ._types import TYPE_BYTES, type_number
from .group import Group
from .work import Watcher, wait_for_threads

_FORMATS = {
    "f32": "f", "f64": "d", "f16": "B", "bf16": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "bytes": "B",
}  # fmt: skip


_open: dict[Job, None] = {}  # in the order in which they were joined, which is the same on all ranks: each leaves when all do


@atexit.register
def _close_all() -> None:
    """Before Python goes: the library's threads call functions of ours."""
    for job in list(_open):
        try:
            job._close(at_exit=True)
        except errors.EspalierError:
            pass
    wait_for_threads()


class Job(Handle):
    """This process's membership in a job; made by `espalier.init()`, left with `close()` or at the end of `with`."""

    def __init__(self, handle: int, held: Optional[list[Any]] = None) -> None:
        super().__init__(handle)
        self._held = held or []
        self._left = threading.Event()
        self._leaver: Optional[threading.Thread] = None
        # What is shared, by its address: the memory must stay until it is private again.
        self._shared: dict[int, _memory.View] = {}
        self._watch: Optional[Watcher] = None
        self._closing_watch: Optional[Watcher] = None
        # The library uses memory and functions of ours until the job is left, whoever has forgotten it here.
        _open[self] = None
        self.world = Group(self, lib.esp_world(handle))
        """The group of all ranks."""

    def __repr__(self) -> str:
        return f"<espalier.Job rank {self.rank} of {self.size}{'' if self.is_open else ', left'}>"

    @property
    def rank(self) -> int:
        """Our rank in the world."""
        return self.world.rank

    @property
    def size(self) -> int:
        """How many ranks the world has."""
        return self.world.size

    def close(self) -> None:
        """Leaves the job: waits for the others to come here too, for no longer than the setting linger_seconds.

        Memory from alloc() that is still referred to becomes memory of this process alone. If another thread is leaving the job already, this
        waits for it; a callback of work does not, as that thread waits for the callback.
        """
        self._close(at_exit=False)

    def _close(self, at_exit: bool) -> None:
        with self._lock:
            handle, self._pointer = self._pointer, None
            watch, self._watch = self._watch, None
            if handle is not None:
                self._leaver = threading.current_thread()
                self._closing_watch = watch
        if handle is None:  # somebody has left it, or is about to
            told = self._closing_watch is not None and self._closing_watch.is_current
            if not told and self._leaver is not threading.current_thread():
                self._left.wait()
            return
        try:
            if watch is not None:
                watch.close(at_exit)
            self._wait_for_users()
            with self._lock:
                flights, self._flights = self._flights, set()
            status = lib.esp_fini(handle)
            self._shared.clear()  # all of it is private again
            # Work that had not ended was dropped by now, so its memory may go.
            for flight in flights:
                flight.handle = None
        finally:
            _open.pop(self, None)
            self._left.set()
        errors.check(status)

    def _wait_for_users(self) -> None:
        """Nobody can enter any more. Who waits for work looks up soon; who is in a blocking call is ended."""
        with self._lock:
            if not self._quiet.wait_for(lambda: self._users == 0, 0.5):
                lib.esp_abort(self.world._pointer, b"another thread has left the job")
                self._quiet.wait_for(lambda: self._users == 0)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        is_done = isinstance(value, SystemExit) and value.code in (None, 0)  # sys.exit() where there is nothing more to do
        if kind is not None and not is_done and self.is_open and not isinstance(value, errors.EspalierError):
            # The others would wait for calls that this rank will not make.
            try:
                self.world.abort(f"rank {self.rank} failed: {kind.__name__}: {value}"[:200])
            except errors.EspalierError:
                pass
        self.close()

    def setting(self, name: str) -> str:
        """A setting's value, by its name in `espalier conf`."""
        value = self._call(lib.esp_setting, name.encode())
        if value is None:
            raise KeyError(name)
        return _native.text(value)

    def stats(self) -> dict[str, int]:
        """What this rank has moved so far."""
        stats = _native.Stats()
        errors.check(self._call(lib.esp_get_stats, stats))
        return {name: getattr(stats, name) for name, _ in _native.Stats._fields_[1:]}

    def call_stats(self) -> list[dict[str, Any]]:
        """Per kind of call and class of size: how many, how many bytes, how long."""
        count = ctypes.c_uint32()
        errors.check(self._call(lib.esp_get_call_stats, None, 0, count))
        room = count.value + 16
        array = (_native.CallStats * room)()
        for entry in array:
            entry.struct_size = ctypes.sizeof(_native.CallStats)
        errors.check(self._call(lib.esp_get_call_stats, array, room, count))
        found = []
        for entry in array[: min(room, count.value)]:
            row = {name: getattr(entry, name) for name, _ in _native.CallStats._fields_[1:]}
            row["operation"] = _native.text(row["operation"])
            found.append(row)
        return found

    def alloc(self, count: int, type: str = "bytes") -> memoryview:
        """Zeroed memory for `count` elements that the other ranks of this host read where it lies: no copy is made of it.

        numpy.frombuffer() and torch.frombuffer() make arrays of it. It lives until nothing refers to it, after close() as memory of this process alone.
        """
        number = type_number(type)
        pointer = ctypes.c_void_p()
        errors.check(self._call(_alloc, max(1, count) * TYPE_BYTES[number], pointer))
        memory = (ctypes.c_uint8 * (count * TYPE_BYTES[number])).from_address(pointer.value or 0)
        weakref.finalize(memory, _free, pointer.value or 0).atexit = False
        view = memoryview(memory).cast("B")
        format = _FORMATS[_native.text(lib.esp_type_name(number))]
        return view if format == "B" else view.cast(format)

    def share(self, memory: Any) -> None:
        """Makes memory that is there already, a numpy array, say, or a tensor, as good for calls as that of alloc(), where it is.

        Worth it for large arrays that many calls are made on. Nobody else may write to it meanwhile. It stays shared, and is kept alive, until unshare() or close().
        fork() ends the sharing too: a child has what was there, and calls copy as ever.
        """
        view = _memory.view(memory, writable=True)
        if view.memory != _native.HOST:
            raise errors.UnsupportedError("only memory of the host can be shared")
        errors.check(self._call(lib.esp_share, view.address, view.bytes))
        if view.bytes > 0:
            with self._lock:
                self._shared[view.address] = view

    def unshare(self, memory: Any) -> None:
        """Memory that was given to share() is private again. No call may still use it, and nobody else may write to it meanwhile."""
        view = _memory.view(memory, writable=True)
        errors.check(self._call(lib.esp_unshare, view.address if view.bytes > 0 else None))
        with self._lock:
            self._shared.pop(view.address, None)

    @property
    def door(self) -> str:
        """Where newcomers come in through this rank, as ESP_DOOR wants it."""
        text = ctypes.create_string_buffer(256)
        errors.check(self._call(lib.esp_door, text, len(text)))
        return _native.text(text.value)

    @property
    def newcomers(self) -> int:
        """How many wait at the door of this rank; Group.grow() lets them in."""
        count: int = self._call(lib.esp_newcomers)
        return count

    # ---- work in the background ----

    def _watcher(self) -> Watcher:
        with self._lock:
            self._handle()
            if self._watch is None:
                self._watch = Watcher()
            return self._watch


def _alloc(context: int, bytes: int, pointer: ctypes.c_void_p) -> int:
    """Whoever refers to it may live longer than the job."""
    status: int = lib.esp_alloc(context, bytes, pointer)
    return status or lib.esp_keep(context, pointer)


def _free(pointer: int) -> None:
    lib.esp_free(None, pointer)


def init(
    rank: Optional[int] = None,
    size: Optional[int] = None,
    *,
    leader: Optional[str] = None,
    job: Optional[str] = None,
    settings: Optional[Mapping[str, object]] = None,
    allgather: Optional[Callable[[bytes], list[bytes]]] = None,
    log: Optional[Callable[[int, str], None]] = None,
) -> Job:
    """Joins a job: every rank calls this, and it returns when all have.

    Without arguments, rank, size and leader come from the environment: `espalier run`, torchrun, mpirun, srun, Kubernetes, or
    ESP_RANK, ESP_SIZE and ESP_LEADER. A process that finds none of these is a job of one rank.

    settings: as `espalier conf` lists them, such as {"chunk_bytes": "256K"}.
    allgather: joins through this function instead of a leader; it gets the bytes of this rank and returns those of all.
    log: gets (level, line); 0 is an error, 1 a warning, 2 information, 3 debugging. Without it lines go to stderr.
    """
    if (rank is None) != (size is None):
        raise errors.InvalidError("rank and size are given together, or not at all")
    options = _native.Options()
    held: list[Any] = []
    if rank is not None and size is not None:
        if not 0 <= rank < size:
            raise errors.InvalidError(f"rank {rank} is not one of {size} ranks, which are counted from 0")
        options.rank, options.size = rank, size
    options.leader = leader.encode() if leader is not None else None
    options.job = job.encode() if job is not None else None
    if settings:
        options.settings = setting_lines(settings)
    if allgather is not None:
        options.allgather = _native.ALLGATHER_FN(_allgather(allgather, size or 0))
        held.append(options.allgather)
    if log is not None:
        say = log
        options.log = _native.LOG_FN(lambda context, level, line: say(level, _native.text(line)))
        held.append(options.log)
    handle = ctypes.c_void_p()
    errors.check(lib.esp_init(options, handle))
    return Job(handle.value or 0, held)


def _allgather(gather: Callable[[bytes], list[bytes]], size: int) -> Callable[..., int]:
    def call(context: object, mine: int, all: int, bytes: int) -> int:
        try:
            parts = gather(ctypes.string_at(mine, bytes))
        except Exception:
            import traceback

            traceback.print_exc()
            return _native.EIO
        if len(parts) != size or any(len(part) != bytes for part in parts):
            return _native.EINVAL
        ctypes.memmove(all, b"".join(parts), size * bytes)
        return _native.OK

    return call
