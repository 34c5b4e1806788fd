"""Training through a parameter hub: workers push gradients, the hub sums them, runs the optimizer and answers with new
weights.

    import espalier, numpy

    with espalier.hub.connect() as hub:             # the ticket of ESP_HUB_TICKET; worker and workers from the launcher
        weights = numpy.zeros(1_000, dtype="f4")
        hub.init([espalier.hub.Tensor("weights", weights)])
        for step in range(100):
            hub.pushpull("weights", compute_gradient(weights), weights)

`espalier hub create` makes a job and its ticket. `espalier.torch.HubOptimizer` does all of this for PyTorch. Workers of an
asynchronous job (`--mode async`) call `model()` and `update()` instead.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Union

from . import _memory, _native, errors
from ._calls import nanoseconds, setting_lines
from ._handle import Handle
from ._native import lib
from ._types import TYPE_BYTES, type_number
from .errors import InvalidError, UnsupportedError
from .work import Flight, Work

_open: dict[Hub, None] = {}


@atexit.register
def _close_all() -> None:
    """Before Python goes: the library's thread reads and writes memory of Python's objects."""
    for hub in list(_open):
        try:
            hub.close()
        except errors.EspalierError:
            pass


@dataclass
class Tensor:
    """A vector of a job's model. All workers declare the same names, sizes, types and groups in the same order.

    weights: memory with the first weights. Those of worker 0 are sent to all; the memory of the others gets them.
    group: parameter group, from 0: tensors of a group share the values of the optimizer.
    type: of the elements, where the memory does not say so (numpy has no bfloat16).
    """

    name: str
    weights: Any
    group: int = 0
    type: Optional[str] = None


@dataclass
class _Declared:
    name: str
    type: int
    bytes: int


@dataclass(frozen=True)
class Result:
    """The end of an asynchronous update.

    fate: "applied", "late at source" (the scheduler had it dropped, and no byte of it was sent), "late at offer" (the hub
    refused it before it was sent) or "late at hub".
    version: of the model after it, if it was applied. delay: its delay, or the one that it would have had, as far as known.
    position: in the scheduler's order; 0: the hub was asked directly.
    """

    fate: str
    version: int
    delay: int
    position: int

    @property
    def applied(self) -> bool:
        """Is the update part of the model now?"""
        return self.fate == "applied"


_FATES = {
    _native.HUB_APPLIED: "applied",
    _native.HUB_LATE_AT_SOURCE: "late at source",
    _native.HUB_LATE_AT_OFFER: "late at offer",
    _native.HUB_LATE_AT_HUB: "late at hub",
}


class Hub(Handle):
    """This process as a worker of a hub's job; made by `connect()`, left with `close()` or at the end of `with`."""

    _left_text = "the hub has been left: connect() again"

    def __init__(self, handle: int) -> None:
        super().__init__(handle)
        self._process = os.getpid()
        self._tensors: list[_Declared] = []
        self._numbers: dict[str, int] = {}
        _open[self] = None

    def __repr__(self) -> str:
        return f"<espalier.hub.Hub{f' worker {self.worker} of {self.workers}' if self.is_open else ', left'}>"

    @property
    def worker(self) -> int:
        """The number of this worker, from 0."""
        number: int = self._call(lib.esp_hub_worker)
        return number

    @property
    def workers(self) -> int:
        """How many workers the job has."""
        count: int = self._call(lib.esp_hub_workers)
        return count

    def close(self) -> None:
        """Leaves the job. Calls that are under way end with an error, and fail the job for the other workers.

        In a child made by fork() nothing happens: the job has its parent.
        """
        if os.getpid() != self._process:  # the parent is in the job; its threads, which are awaited below, are not here
            self._pointer = None
            _open.pop(self, None)
            return
        with self._lock:
            handle, self._pointer = self._pointer, None
            if handle is None:
                return
            # Threads that wait for work come back within a moment, and see that the hub was left.
            self._quiet.wait_for(lambda: self._users == 0)
        try:
            status = lib.esp_hub_close(handle)
            with self._lock:
                flights, self._flights = self._flights, set()
            for flight in flights:  # no thread of the library uses their memory any more
                flight.held = []
                if flight.orphan:
                    self._dropped(flight)
        finally:
            _open.pop(self, None)
        errors.check(status)

    def __enter__(self) -> Hub:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _dropped(self, flight: Flight) -> None:
        """Work of a hub outlives the hub."""
        with self._lock:
            if flight in self._flights:
                flight.orphan = True
                return
        handle, flight.handle = flight.handle, None
        if handle is not None:
            lib.esp_work_free(handle)

    # ---- the model ----

    def init(self, tensors: Sequence[Tensor]) -> None:
        """Declares the model. Called once, by all workers; returns when all have come and have worker 0's first
        weights.
        """
        rows = (_native.HubTensor * len(tensors))()
        views = []
        declared = []
        for row, tensor in zip(rows, tensors):
            view = _host(_memory.view(tensor.weights, True, tensor.type), tensor.name)
            if view.type is None:
                raise InvalidError(
                    f"the elements of tensor {tensor.name} are of no type that can be computed with; say what they are"
                    " with type="
                )
            row.struct_size = ctypes.sizeof(_native.HubTensor)
            row.name, row.count, row.type = tensor.name.encode(), view.count, view.type
            row.group, row.weights = tensor.group, view.address or None
            views.append(view)
            declared.append(_Declared(tensor.name, view.type, view.bytes))
        errors.check(self._call(lib.esp_hub_init, rows, len(tensors)))
        self._tensors = declared
        self._numbers = {tensor.name: number for number, tensor in enumerate(declared)}

    def _find(self, tensor: Union[int, str]) -> tuple[int, _Declared]:
        number = self._numbers.get(tensor, -1) if isinstance(tensor, str) else tensor
        if not 0 <= number < len(self._tensors):
            raise InvalidError(f"there is no tensor {tensor!r}: {len(self._tensors)} were declared by init()")
        return number, self._tensors[number]

    # ---- calls ----

    def push(self, tensor: Union[int, str], gradient: Any, timeout: Optional[float] = None) -> None:
        """Gives a gradient to the next round of a tensor, and returns when the round is over."""
        self.start_push(tensor, gradient, timeout).wait()

    def pull(self, tensor: Union[int, str], weights: Any, timeout: Optional[float] = None) -> None:
        """The weights of a tensor as they are now. While a round of it is under way parts may be of two versions."""
        self.start_pull(tensor, weights, timeout).wait()

    def pushpull(self, tensor: Union[int, str], gradient: Any, weights: Any, timeout: Optional[float] = None) -> None:
        """Both: the weights after the round. May be the same memory."""
        self.start_pushpull(tensor, gradient, weights, timeout).wait()

    def start_push(self, tensor: Union[int, str], gradient: Any, timeout: Optional[float] = None) -> Work[None]:
        """push() in the background. The gradient's memory is the library's until the work has ended."""
        return self._start(_native.HUB_PUSH, tensor, gradient, None, timeout)

    def start_pull(self, tensor: Union[int, str], weights: Any, timeout: Optional[float] = None) -> Work[None]:
        """pull() in the background."""
        return self._start(_native.HUB_PULL, tensor, None, weights, timeout)

    def start_pushpull(
        self, tensor: Union[int, str], gradient: Any, weights: Any, timeout: Optional[float] = None
    ) -> Work[None]:
        """pushpull() in the background. The memory of both is the library's until the work has ended."""
        return self._start(_native.HUB_PUSHPULL, tensor, gradient, weights, timeout)

    def map(self, tensor: Union[int, str]) -> memoryview:
        """Where the weights of a float32 tensor appear for the workers of this host that push together: read-only.

        Valid until close(). A round writes it in place once all workers of the host have pushed the tensor: read it
        between the end of a push and the next one. UnsupportedError: this worker pushes by itself.
        """
        return self._shared(lib.esp_hub_map, tensor).toreadonly()

    def gradient(self, tensor: Union[int, str]) -> memoryview:
        """Memory for this worker's gradient of a float32 tensor: one that is pushed from there is not copied before it is
        added. Valid until close(). UnsupportedError: as of map().
        """
        return self._shared(lib.esp_hub_gradient, tensor)

    def _shared(self, function: Any, tensor: Union[int, str]) -> memoryview:
        number, declared = self._find(tensor)
        address = ctypes.c_void_p()
        errors.check(self._call(function, number, address))
        memory = (ctypes.c_float * (declared.bytes // 4)).from_address(address.value or 0)
        return memoryview(memory).cast("B").cast("f")

    def start_read_state(
        self, tensor: Union[int, str], state: int, out: Any, timeout: Optional[float] = None
    ) -> Work[None]:
        """The optimizer's state of a tensor into float32 memory, in the background.

        state: 1, 2: the arrays that the optimizer keeps (momentum; Adam's first and second moments); 0: the weights in
        float32, the masters of float16 and bfloat16. Between rounds, to be of one version.
        """
        return self._start(_native.HUB_READ_STATE, tensor, None, out, timeout, state)

    def start_write_state(
        self, tensor: Union[int, str], state: int, data: Any, rounds: int, timeout: Optional[float] = None
    ) -> Work[None]:
        """The optimizer's state of a tensor from float32 memory, in the background: by worker 0, before its first push
        of the tensor.

        rounds: how many lie before, in another job. State 0 is written of float16 and bfloat16 only, and rounds to the
        first weights.
        """
        if not 0 <= rounds < 2**32:
            raise InvalidError(f"{rounds} rounds lie before: 0 to 4294967295 are possible")
        return self._start(_native.HUB_WRITE_STATE, tensor, data, None, timeout, state, rounds)

    def _start(
        self,
        kind: int,
        tensor: Union[int, str],
        gradient: Any,
        weights: Any,
        timeout: Optional[float],
        state: int = 0,
        rounds: int = 0,
    ) -> Work[None]:
        self._sweep()
        number, declared = self._find(tensor)
        if kind in (_native.HUB_READ_STATE, _native.HUB_WRITE_STATE):
            f32 = type_number("f32")
            declared = _Declared(declared.name, f32, declared.bytes // TYPE_BYTES[declared.type] * TYPE_BYTES[f32])
        call = _native.HubCall(kind=kind, tensor=number, deadline_ns=nanoseconds(timeout), state=state, rounds=rounds)
        held = []
        for name, thing in (("gradient", gradient), ("weights", weights)):
            if thing is not None:
                view = _fitting(_host(_memory.view(thing, name == "weights"), declared.name), declared, name)
                setattr(call, name, view.address or None)
                held.append(view)
        handle = ctypes.c_void_p()
        if not self._enter():
            raise errors.StateError(self._left_text)
        try:
            errors.check(lib.esp_hub_start(self._context, call, handle))
            flight = self._flying(Flight(self, handle.value or 0, held, None))
        finally:
            self._leave()
        return Work(flight)

    # ---- asynchronous jobs ----

    @property
    def delay_bound(self) -> int:
        """The greatest delay of an applied update; 0: the job trains in rounds."""
        bound: int = self._call(lib.esp_hub_delay_bound)
        return bound

    def _arrays(self, things: Sequence[Any], name: str) -> tuple[Any, list[_memory.View]]:
        if len(things) != len(self._tensors):
            raise InvalidError(f"{len(things)} {name} were given: {len(self._tensors)} tensors were declared by init()")
        views = [
            _fitting(_host(_memory.view(thing, name == "weights"), declared.name), declared, name)
            for thing, declared in zip(things, self._tensors)
        ]
        return (ctypes.c_void_p * (len(views) + 1))(*(view.address or None for view in views)), views

    def model(self, weights: Sequence[Any]) -> int:
        """Reads the weights of all tensors of an asynchronous job; the result is the version that all of them have at
        least.
        """
        addresses, views = self._arrays(weights, "weights")
        version = ctypes.c_uint64()
        errors.check(self._call(lib.esp_hub_model, addresses, version))
        del views
        return version.value

    def update(
        self,
        gradients: Sequence[Any],
        computed_from: int,
        norm: float = 0.0,
        timeout: Optional[float] = None,
        leaves: Optional[float] = None,
    ) -> Result:
        """Gives an update of all tensors of an asynchronous job to the hub; returns when it is applied as a whole, or
        dropped.

        computed_from: the version of model(). norm: the Euclidean norm of the update, for the scheduler; 0: not known.
        leaves: this worker leaves within so many seconds, and this is its last update: it is decided before others.
        """
        addresses, views = self._arrays(gradients, "gradients")
        call = _native.HubUpdate(
            computed_from=computed_from, norm=norm, deadline_ns=nanoseconds(timeout), leaves_ns=nanoseconds(leaves)
        )
        call.gradients = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
        result = _native.HubResult()
        errors.check(self._call(lib.esp_hub_update, call, result))
        del views
        return Result(_FATES[result.fate], result.version, result.delay, result.position)

    # ---- the optimizer ----

    def set(self, group: int, values: str) -> int:
        """Other values of a parameter group's optimizer, "lr=0.05 weight_decay=1e-4"; those that are not named stay.

        They hold for gradients that are pushed after this call; the result is the version of the group's tensors from
        which they do. All workers make the same changes before they push for that version; if they differ the job
        fails, and the error names worker and value.
        """
        version = ctypes.c_uint64()
        errors.check(self._call(lib.esp_hub_set, group, values.encode(), version))
        return version.value

    def optimizer(self, group: int = 0) -> str:
        """The values of a parameter group's optimizer on this worker: "sgd lr=0.1 momentum=0.9 ..."."""
        text = self._call(lib.esp_hub_optimizer, group)
        if text is None:
            raise InvalidError(f"there is no parameter group {group}: groups are declared by init()")
        return _native.text(text)

    def stats(self) -> dict[str, int]:
        """Calls that have ended, and bytes that this worker has moved so far."""
        stats = _native.HubStats()
        errors.check(self._call(lib.esp_hub_get_stats, stats))
        return {name: getattr(stats, name) for name, _ in _native.HubStats._fields_[1:]}


def _host(view: _memory.View, name: str) -> _memory.View:
    if view.memory != _native.HOST:
        raise UnsupportedError(f"tensor {name}: a hub takes memory of the host; copy it to the host first")
    return view


# Memory that does not say its type, or has no name for it: its elements are of the tensor's type.
_RAW = (None, type_number("bytes"), type_number("u8"), type_number("u16"))


def _fitting(view: _memory.View, declared: _Declared, name: str) -> _memory.View:
    if view.bytes != declared.bytes or view.type not in (declared.type, *_RAW):
        raise InvalidError(
            f"the memory of tensor {declared.name}'s {name} has {view.bytes} bytes of type {_type_name(view.type)}; "
            f"{declared.bytes} bytes of type {_type_name(declared.type)} were declared"
        )
    return view


def _type_name(type: Optional[int]) -> str:
    return _native.text(lib.esp_type_name(type)) if type is not None else "unknown"


def connect(
    ticket: Optional[str] = None,
    *,
    worker: Optional[int] = None,
    workers: Optional[int] = None,
    settings: Optional[Mapping[str, object]] = None,
) -> Hub:
    """Joins the job of a ticket.

    ticket: path of the file that `espalier hub create` has written; None: of the variable ESP_HUB_TICKET.
    worker, workers: None: rank and size as a launcher has set them; a process without a launcher is the only worker.
    settings: as of `espalier.init()`; join_seconds and deadline_seconds count.
    """
    if (worker is None) != (workers is None):
        raise InvalidError("worker and workers are given together, or not at all")
    options = _native.HubOptions(ticket=ticket.encode() if ticket is not None else None)
    if worker is not None and workers is not None:
        if not 0 <= worker < workers:
            raise InvalidError(f"there is no worker {worker} of {workers}: they are counted from 0")
        options.worker, options.workers = worker, workers
    if settings:
        options.settings = setting_lines(settings)
    handle = ctypes.c_void_p()
    errors.check(lib.esp_hub_connect(options, handle))
    return Hub(handle.value or 0)
