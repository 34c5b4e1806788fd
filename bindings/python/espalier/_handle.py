"""A handle of the library: several threads call it, one of them closes it, and calls in the background belong to it."""

from __future__ import annotations

import threading
from typing import Any, Optional

from . import _native, errors
from ._native import lib
from .work import Flight, Watcher


class Handle:
    """Counts the threads that are in the library with it, and keeps the memory of calls until they have ended."""

    _left_text = "the job has been left"

    def __init__(self, handle: int) -> None:
        # None: it has been closed, or is about to be. A thread that has entered uses the other, which stays as it is.
        self._pointer: Optional[int] = handle
        self._context = handle
        # Works are collected anywhere, also while this thread has the lock.
        self._lock = threading.RLock()
        # Threads that are in the library with something of this handle: closing waits for them.
        self._users = 0
        self._quiet = threading.Condition(self._lock)
        self._flights: set[Flight] = set()

    @property
    def is_open(self) -> bool:
        return self._pointer is not None

    def _handle(self) -> int:
        if self._pointer is None:
            raise errors.StateError(self._left_text)
        return self._pointer

    def _call(self, function: Any, *arguments: Any) -> Any:
        """A function of the library on the handle, which is not closed meanwhile."""
        if not self._enter():
            raise errors.StateError(self._left_text)
        try:
            return function(self._context, *arguments)
        finally:
            self._leave()

    def _enter(self) -> bool:
        """This thread is about to call the library; False: the handle has been closed, and it must not."""
        with self._lock:
            if self._pointer is None:
                return False
            self._users += 1
            return True

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._pointer is None:
                self._quiet.notify_all()

    # ---- work in the background ----

    def _flying(self, flight: Flight) -> Flight:
        with self._lock:
            self._flights.add(flight)
        return flight

    def _landed(self, flight: Flight, keep: bool) -> None:
        with self._lock:
            self._flights.discard(flight)
        if not keep:
            flight.held = []

    def _dropped(self, flight: Flight) -> None:
        """No Work refers to it any more."""
        with self._lock:
            if flight in self._flights:
                flight.orphan = True
                return
        flight.free()

    def _sweep(self) -> None:
        """Frees calls that have ended and that no Work refers to."""
        if not self._flights:
            return
        with self._lock:
            ended = [one for one in self._flights if one.orphan and lib.esp_test(one.handle) != _native.PENDING]
            self._flights.difference_update(ended)
        for flight in ended:
            flight.free()

    def _watcher(self) -> Watcher:
        raise errors.UnsupportedError("this work has no callbacks: wait() for it")
