"""From Python's arguments to a struct esp_call: which memory, how many elements, what result.

Nothing here talks to the library; what is refused here is refused before anything has happened.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence

from . import _memory, _native
from ._memory import View
from ._types import TYPE_BYTES, TYPES, op_number, type_number
from .errors import InvalidError

REDUCING = ("allreduce", "reduce", "reduce-scatter")


@dataclass
class Built:
    """A call that can be made: the struct, what must live until it has ended, and what the caller gets then."""

    call: _native.Call
    held: list[Any]
    result: Any
    bytes: int
    """Of this rank's data, or of what it gets."""


@dataclass
class Extras:
    """What may be said about any collective."""

    type: Optional[str] = None
    op: str = "sum"
    factor: Optional[float] = None
    root: int = 0
    counts: Optional[Sequence[int]] = None
    plan: Optional[str] = None
    key: Optional[int] = None
    timeout: Optional[float] = None


def nanoseconds(timeout: float | None) -> int:
    """As the library wants it: 0 is the job's own deadline."""
    if timeout is None:
        return 0
    if not timeout > 0:
        raise InvalidError("a timeout is a positive number of seconds; None is the job's own (deadline_seconds)")
    return max(1, min(int(timeout * 1e9), 2**62))


def setting_lines(settings: Mapping[str, object]) -> ctypes.Array[ctypes.c_char_p]:
    """NAME=VALUE, and NULL at the end."""
    lines = [f"{name}={int(value) if isinstance(value, bool) else value}".encode() for name, value in settings.items()]
    return (ctypes.c_char_p * (len(lines) + 1))(*lines, None)


def _views(thing: Any, writable: bool, type: str | None) -> list[View]:
    things = list(thing) if isinstance(thing, (list, tuple)) else [thing]
    if not things:
        raise InvalidError("a list of buffers is empty")
    return [_memory.view(one, writable, type) for one in things]


def _type_of(views: list[View], collective: str) -> int:
    types = {view.type for view in views}
    if len(types) > 1:
        raise InvalidError("the buffers of a call have different types of elements; say what they are with type=")
    found = types.pop()
    if found is None:
        if collective in REDUCING:
            raise InvalidError("the elements of this memory are of no type that can be computed with; say what they are with type=")
        found = TYPES["bytes"]
    return found


def _count(views: list[View], type: int) -> int:
    each = TYPE_BYTES[type]
    for view in views:
        if view.bytes % each != 0:
            raise InvalidError(f"{view.bytes} bytes are not a whole number of elements of {each} bytes")
    return sum(view.bytes for view in views) // each


def _place(call: _native.Call, side: str, views: list[View], held: list[Any]) -> None:
    held.extend(views)
    plain = len(views) == 1 and views[0].memory == _native.HOST
    if plain:
        setattr(call, "in_" if side == "in" else "out", views[0].address)
        return
    array = (_native.Buffer * len(views))()
    for entry, view in zip(array, views):
        entry.struct_size = ctypes.sizeof(_native.Buffer)
        entry.data, entry.bytes, entry.memory, entry.device = view.address, view.bytes, view.memory, view.device
    held.append(array)
    setattr(call, side + "_buffers", array)
    setattr(call, side + "_buffer_count", len(views))


def _divide(total: int, size: int, what: str) -> int:
    if total % size != 0:
        raise InvalidError(f"{what} has {total} elements, which cannot be divided evenly among {size} ranks; give counts=")
    return total // size


def _blocks(counts: Sequence[int], expected: int) -> list[int]:
    given = [int(count) for count in counts]
    if len(given) != expected or min(given, default=0) < 0:
        raise InvalidError(f"counts has {len(given)} entries; it needs {expected}, none of them negative")
    return given


def _fits(found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise InvalidError(f"{what} has {found} elements; {wanted} are needed")


def barrier(extras: Extras) -> Built:
    call = _native.Call()
    call.collective = _native.COLLECTIVES.index("barrier")
    call.type = TYPES["bytes"]
    _common(call, extras, [])
    return Built(call, [], None, 0)


def _common(call: _native.Call, extras: Extras, held: list[Any]) -> None:
    call.op = op_number(extras.op)
    if extras.factor is not None:
        if extras.op != "scaled":
            raise InvalidError('a factor goes with op="scaled"')
        call.factor = extras.factor
    elif extras.op == "scaled":
        raise InvalidError('op="scaled" needs factor=')
    if extras.plan is not None:
        name = extras.plan.encode()
        held.append(name)
        call.plan = name
    if extras.key is not None:
        call.flags, call.key = _native.KEYED, extras.key
    call.deadline_ns = nanoseconds(extras.timeout)


def build(collective: str, rank: int, size: int, data: Any, out: Any, extras: Extras) -> Built:
    """`rank` and `size` are those of the group."""
    at_root = extras.root == rank
    rooted = collective in ("broadcast", "reduce", "gather", "scatter")
    if rooted and not 0 <= extras.root < size:
        raise InvalidError(f"there is no rank {extras.root} in a group of {size}")
    gives = not (collective == "scatter" and not at_root)
    gets = not (collective in ("reduce", "gather") and not at_root)

    call = _native.Call()
    held: list[Any] = []
    call.collective = _native.COLLECTIVES.index(collective)
    call.root = extras.root if rooted else 0
    _common(call, extras, held)

    given = []
    if gives:
        if data is None:
            raise InvalidError(f"{collective} needs the data of this rank")
        # The root of a broadcast only reads; in place of a result, the others' data are written.
        writes = collective == "broadcast" and not at_root
        given = _views(data, writes, extras.type)
    elif out is None:
        raise InvalidError("a rank that does not scatter needs out=: memory for its block")

    # Who has no data of its own knows the type from where the result goes.
    result = out
    wanted = _views(out, True, extras.type) if out is not None and gets else []
    type = _type_of(given + wanted, collective)
    mine = _count(given, type)
    blocks, call_count = _shape(collective, rank, size, mine if gives else _count(wanted, type), extras, gives)

    if gets and out is None:
        if collective in ("allreduce", "reduce", "broadcast"):
            result = data
            wanted = given if collective == "broadcast" else _views(data, True, extras.type)
        else:
            first = data[0] if isinstance(data, (list, tuple)) else data
            result = _memory.like(first, _out_elements(collective, rank, size, call_count, blocks))
            wanted = _views(result, True, extras.type)
    if gets and collective != "broadcast":
        _fits(_count(wanted, type), _out_elements(collective, rank, size, call_count, blocks), "out")

    call.type = type
    if collective in REDUCING and any(view.is_bool for view in given):
        logical = {"sum": "lor", "max": "lor", "prod": "land", "min": "land"}.get(extras.op, extras.op)
        if logical in ("avg", "scaled"):
            raise InvalidError(f"truth values have no {extras.op}; convert them to numbers first")
        call.op = op_number(logical)
    if blocks is not None:
        array = (ctypes.c_uint64 * len(blocks))(*blocks)
        held.append(array)
        call.counts = array
    else:
        call.count = call_count
    if gives and collective != "broadcast":
        _place(call, "in", given, held)
    if gets:
        _place(call, "out", wanted, held)
    return Built(call, held, result if gets else None, sum(view.bytes for view in given or wanted))


def _shape(collective: str, rank: int, size: int, elements: int, extras: Extras, gives: bool) -> tuple[Optional[list[int]], int]:
    """The sizes of the blocks where they differ, else the elements of one; checked against what this rank has."""
    if extras.counts is not None:
        if collective in ("allreduce", "reduce", "broadcast"):
            raise InvalidError(f"{collective} has one block; counts= is for those that have one per rank")
        if collective == "alltoall":
            blocks = _blocks(extras.counts, size * size)
            _fits(elements, sum(blocks[rank * size : (rank + 1) * size]), "the data")
        else:
            blocks = _blocks(extras.counts, size)
            whole = collective == "reduce-scatter" or (collective == "scatter" and gives)
            _fits(elements, sum(blocks) if whole else blocks[rank], "the data" if gives else "out")
        return blocks, 0
    if collective in ("reduce-scatter", "alltoall") or (collective == "scatter" and gives):
        return None, _divide(elements, size, "the data")
    return None, elements


def _out_elements(collective: str, rank: int, size: int, count: int, blocks: Optional[list[int]]) -> int:
    if collective in ("allgather", "gather"):
        return sum(blocks) if blocks is not None else count * size
    if collective == "alltoall":
        return sum(blocks[rank::size]) if blocks is not None else count * size
    return blocks[rank] if blocks is not None else count


def message(data: Any, writable: bool) -> tuple[View, Any]:
    view = _memory.view(data, writable)
    if view.memory != _native.HOST:
        raise InvalidError("messages between two ranks are of host memory; copy it to the host first")
    return view, data


__all__ = ["Built", "Extras", "barrier", "build", "message", "nanoseconds", "type_number"]
