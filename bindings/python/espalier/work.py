"""Calls that run in the background."""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Generator, Generic, Optional, TypeVar

from . import _native, errors
from ._native import lib

if TYPE_CHECKING:
    from ._handle import Handle

T = TypeVar("T")

# How long a thread waits without looking for Ctrl-C.
_SLICE_NS = 100_000_000

# How long Python waits, when it ends, for threads of ours, all of them together. They have little left to do, unless one is where
# it never comes back from: in a callback that goes on, or with a GPU whose stream never ends. Then an abort, if it does come back
# while Python goes, is better than a process that stays for ever.
AT_EXIT_SECONDS = 5.0


class Flight:
    """A call of the library and the memory it uses: lives until it has ended, also if nobody holds its Work any more."""

    __slots__ = ("job", "handle", "held", "orphan", "result")

    def __init__(self, job: Handle, handle: int, held: list[Any], result: Any) -> None:
        self.job = job
        self.handle: Optional[int] = handle
        self.held = held
        self.orphan = False
        self.result = result

    def free(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None and self.job._enter():
            try:
                lib.esp_work_free(handle)
            finally:
                self.job._leave()


class Work(Generic[T]):
    """A call in the background: `wait()` for it, `await` it, or be told by `add_done_callback()`.

    Its buffers are the library's until it has ended. A Work that is dropped goes on.
    """

    __slots__ = ("_flight", "_result", "_keep", "__weakref__")

    def __init__(self, flight: Flight, keep: bool = False) -> None:
        self._flight = flight
        # Persistent: the memory is needed again.
        self._keep = keep

    def _call(self, function: Any, *arguments: Any) -> Any:
        """A function of the library on this work, which stays there meanwhile, whoever leaves the job."""
        job, handle = self._flight.job, self._flight.handle
        if handle is None or not job._enter():
            raise errors.StateError("the job has been left, and its work with it")
        try:
            return function(handle, *arguments)
        finally:
            job._leave()

    def done(self) -> bool:
        """Has it ended, well or not?"""
        status = self._call(lib.esp_test)
        if status in (_native.PENDING, _native.ESTATE):
            return False
        self._landed()
        return True

    def wait(self, timeout: Optional[float] = None) -> T:
        """Waits for the end and returns the result, or raises what went wrong.

        TimeoutError: `timeout` seconds have passed, and it goes on. Without a timeout the call's own deadline ends it.
        """
        status = self._wait(timeout)
        if status == _native.PENDING:
            raise TimeoutError(f"not finished within {timeout} s; it goes on")
        return self._end(status)

    def _wait(self, timeout: Optional[float]) -> int:
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_NS if ends is None else int((ends - time.monotonic()) * 1e9)
            status: int = self._call(lib.esp_wait, max(0, min(left, _SLICE_NS)))
            if status != _native.PENDING or (ends is not None and time.monotonic() >= ends):
                return status

    def result(self) -> T:
        """The result of work that has ended; raises what went wrong. StateError: it has not ended."""
        if not self.done():
            raise errors.StateError("the work has not ended")
        return self._end(self._call(lib.esp_test))

    def exception(self) -> Optional[errors.EspalierError]:
        """What went wrong; None: nothing, or it has not ended."""
        try:
            status = self._call(lib.esp_test)
            if status in (_native.OK, _native.PENDING, _native.ESTATE):
                return None
            return self._exception(status)
        except errors.StateError as left:
            return left

    def _exception(self, status: int) -> errors.EspalierError:
        error = _native.Error()
        self._call(lib.esp_work_error, error)
        return errors.from_native(status, error)

    def _end(self, status: int) -> T:
        if status == _native.ESTATE:
            raise errors.StateError("the work was prepared and not started: restart() starts it")
        failure = None if status == _native.OK else self._exception(status)
        self._landed()
        if failure is not None:
            raise failure
        value: T = self._value()
        return value

    def _value(self) -> Any:
        return self._flight.result

    def _landed(self) -> None:
        self._flight.job._landed(self._flight, self._keep)

    @property
    def plan(self) -> str:
        """The planner that was used: "ring", "flat" ...; "" if none was needed."""
        return _native.text(self._call(lib.esp_work_plan))

    def fileno(self) -> int:
        """A descriptor that becomes readable when it has ended; never read from it."""
        descriptor = ctypes.c_int()
        errors.check(self._call(lib.esp_work_descriptor, descriptor))
        return descriptor.value

    def add_done_callback(self, callback: Callable[[Work[T]], object]) -> None:
        """Calls callback(work) when it has ended, from a thread of the job, which it should not keep for long.

        Also when the job is left before: work.exception() is a StateError then. A callback may leave the job itself.
        """
        self._flight.job._watcher().watch(self, callback)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done():
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()
            descriptor = self.fileno()

            def wake() -> None:
                loop.remove_reader(descriptor)
                if not ended.done():
                    ended.set_result(None)

            loop.add_reader(descriptor, wake)
            try:
                yield from ended
            finally:
                loop.remove_reader(descriptor)
        return self.result()

    def __del__(self) -> None:
        flight: Optional[Flight] = getattr(self, "_flight", None)
        if flight is not None:
            flight.job._dropped(flight)


class Prepared(Work[T]):
    """A call that is made many times with the same buffers; everything was planned once."""

    __slots__ = ()

    def restart(self) -> Prepared[T]:
        """Starts it, again once it has ended."""
        self._flight.job._sweep()
        errors.check(self._call(lib.esp_restart))
        self._flight.job._flying(self._flight)
        return self

    def __call__(self) -> T:
        """Starts it and waits for its end."""
        return self.restart().wait()


class Received(Work[tuple[int, int]]):
    """A receive: its result is (bytes, rank of the sender)."""

    __slots__ = ()

    def _value(self) -> tuple[int, int]:
        size, source = ctypes.c_uint64(), ctypes.c_uint32()
        errors.check(self._call(lib.esp_work_received, size, source))
        return size.value, source.value


class Watcher:
    """One thread per job that calls back for works that have ended."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[Work[Any], list[Callable[[Work[Any]], object]]]] = {}
        self._quits = self._is_closed = False
        self._wake_read, self._wake_write = _pipe()
        self._epoll.register(self._wake_read, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="espalier-watcher", daemon=True)
        self._thread.start()

    def watch(self, work: Work[Any], callback: Callable[[Work[Any]], object]) -> None:
        descriptor = work.fileno()
        with self._lock:
            if self._quits:
                raise errors.StateError("the job has been left, and its work with it")
            if descriptor in self._watched:
                self._watched[descriptor][1].append(callback)
                return
            self._watched[descriptor] = (work, [callback])
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLONESHOT)

    def _take(self, descriptor: int) -> Optional[tuple[Work[Any], list[Callable[[Work[Any]], object]]]]:
        with self._lock:
            # Once the job is being left, descriptors may be closed, and be somebody else's.
            if self._quits or descriptor == self._wake_read:
                return None
            self._epoll.unregister(descriptor)
            return self._watched.pop(descriptor)

    def _run(self) -> None:
        while not self._quits:
            for descriptor, _ in self._epoll.poll():
                taken = self._take(descriptor)
                if taken is not None:
                    self._tell(*taken)
        # What has not ended never will: whoever waits for it is told.
        with self._lock:
            left, self._watched = list(self._watched.values()), {}
        for taken in left:
            self._tell(*taken)
        with self._lock:
            self._is_closed = True
            self._epoll.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _tell(self, work: Work[Any], callbacks: list[Callable[[Work[Any]], object]]) -> None:
        try:
            work.done()
        except errors.StateError:
            pass
        for callback in callbacks:
            _call_back(callback, work)

    @property
    def is_current(self) -> bool:
        """Is it one of the callbacks who asks?"""
        return threading.current_thread() is self._thread

    def close(self, at_exit: bool = False) -> None:
        """Before the context goes: the thread does not touch descriptors any more. One of its callbacks may be who calls this."""
        with self._lock:
            self._quits = True
            if not self._is_closed:  # by the thread, which may have seen that it quits
                os.write(self._wake_write, b"x")
        if self.is_current:
            end_before_python(self._thread)
            return
        if at_exit:
            join_at_exit(self._thread)
        else:
            self._thread.join()


# Threads that have ended what they belong to themselves, from a callback, so that nobody has waited for them.
_unawaited: set[threading.Thread] = set()


def end_before_python(thread: threading.Thread) -> None:
    """Python waits for this thread before it goes: one that comes back from C++ when Python has gone aborts the process."""
    for one in list(_unawaited):
        if not one.is_alive():
            _unawaited.discard(one)
    _unawaited.add(thread)


def wait_for_threads() -> None:
    while _unawaited:
        for thread in list(_unawaited):  # others may take theirs out meanwhile
            join_at_exit(thread)
            _unawaited.discard(thread)


_waited_seconds = 0.0


def join_at_exit(thread: threading.Thread) -> None:
    """Waits for a thread for as long as is left of AT_EXIT_SECONDS."""
    global _waited_seconds
    began = time.monotonic()
    thread.join(max(0.0, AT_EXIT_SECONDS - _waited_seconds))
    _waited_seconds += time.monotonic() - began


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)


def _call_back(callback: Callable[[Work[Any]], object], work: Work[Any]) -> None:
    try:
        callback(work)
    except Exception:
        # Nobody is there to catch it; the thread must live on for the others.
        import sys
        import traceback

        print("espalier: a callback of finished work failed", file=sys.stderr)
        traceback.print_exc()
