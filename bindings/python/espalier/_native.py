"""The C library: where it is found, its structs and its functions.

Everything here mirrors include/espalier/espalier.h and hub.h; tests/test_header.py compares the two.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

SONAME = "libespalier.so.0"

_PACKAGE = pathlib.Path(__file__).resolve().parent


def build_trees() -> list[pathlib.Path]:
    """The build folders of the checkout that this package lies in; none if it was installed."""
    checkout = _PACKAGE.parents[2]
    if not (checkout / "include" / "espalier" / "espalier.h").exists():
        return []
    return sorted(path.parent for path in checkout.glob("build*/" + SONAME))


def _candidates() -> list[str]:
    chosen = os.environ.get("ESPALIER_LIBRARY")
    if chosen:
        return [chosen]
    bundled = [str(_PACKAGE / "lib" / SONAME)] if (_PACKAGE / "lib" / SONAME).exists() else []
    built = [str(tree / SONAME) for tree in build_trees()]
    return bundled + built + [SONAME]


def _load() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise ImportError("espalier runs on Linux only")
    reasons = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError(
        "the shared library of Espalier was not found: " + "; ".join(reasons) + ". Install it (make install), build it in "
        "the checkout (make), or name it in the variable ESPALIER_LIBRARY"
    )


lib = _load()


class Sized(ctypes.Structure):
    """A struct that begins with its own size."""

    def __init__(self, **fields: object) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class Error(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("status", c_int),
        ("rank", c_int32),
        ("host", c_char * 64),
        ("operation", c_char * 32),
        ("sequence", c_uint64),
        ("waits_for", c_int32),
        ("chunk", c_int64),
        ("step", c_int32),
        ("text", c_char * 512),
    ]


ALLGATHER_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)
LOG_FN = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class Options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rank", c_uint32),
        ("size", c_uint32),
        ("leader", c_char_p),
        ("job", c_char_p),
        ("allgather", ALLGATHER_FN),
        ("allgather_context", c_void_p),
        ("settings", POINTER(c_char_p)),
        ("log", LOG_FN),
        ("log_context", c_void_p),
        ("idle", c_void_p),
        ("idle_context", c_void_p),
    ]


class Stats(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("calls", c_uint64),
        ("sent_bytes", c_uint64),
        ("received_bytes", c_uint64),
        ("sent_messages", c_uint64),
        ("shared_bytes", c_uint64),
        ("network_bytes", c_uint64),
        ("small_calls", c_uint64),
        ("retunes", c_uint64),
        ("moved_masters", c_uint64),
    ]


class CallStats(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("operation", c_char * 32),
        ("least_bytes", c_uint64),
        ("most_bytes", c_uint64),
        ("calls", c_uint64),
        ("failed", c_uint64),
        ("bytes", c_uint64),
        ("bus_bytes", c_uint64),
        ("time_ns", c_uint64),
        ("waited_ns", c_uint64),
        ("min_ns", c_uint64),
        ("p50_ns", c_uint64),
        ("p99_ns", c_uint64),
        ("max_ns", c_uint64),
    ]


class Shrink(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("deadline_ns", c_int64),
        ("lost", POINTER(c_uint32)),
        ("lost_room", c_uint32),
        ("lost_count", c_uint32),
        ("completed_everywhere", c_uint64),
        ("completed_somewhere", c_uint64),
    ]


class Buffer(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("memory", c_int),
        ("device", c_int32),
        ("registration", c_void_p),
    ]


class Call(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("collective", c_int),
        ("type", c_int),
        ("op", c_int),
        ("flags", c_uint32),
        ("factor", c_double),
        ("root", c_uint32),
        ("count", c_uint64),
        ("counts", POINTER(c_uint64)),
        # `in` is a word of Python.
        ("in_", c_void_p),
        ("out", c_void_p),
        ("in_buffers", POINTER(Buffer)),
        ("out_buffers", POINTER(Buffer)),
        ("in_buffer_count", c_uint32),
        ("out_buffer_count", c_uint32),
        ("plan", c_char_p),
        ("key", c_uint64),
        ("deadline_ns", c_int64),
        ("gate", POINTER(c_uint64)),
        ("gate_value", c_uint64),
        ("signal", POINTER(c_uint64)),
        ("signal_value", c_uint64),
        ("done", c_void_p),
        ("done_context", c_void_p),
        ("numerics", c_int),
    ]


class HubOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("ticket", c_char_p),
        ("worker", c_uint32),
        ("workers", c_uint32),
        ("settings", POINTER(c_char_p)),
    ]


class HubTensor(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("count", c_uint64),
        ("type", c_int),
        ("group", c_uint32),
        ("weights", c_void_p),
    ]


class HubCall(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("tensor", c_uint32),
        ("gradient", c_void_p),
        ("weights", c_void_p),
        ("deadline_ns", c_int64),
        ("state", c_uint32),
        ("rounds", c_uint32),
    ]


class HubUpdate(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("gradients", POINTER(c_void_p)),
        ("computed_from", c_uint64),
        ("norm", c_double),
        ("deadline_ns", c_int64),
        ("leaves_ns", c_int64),
    ]


class HubResult(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("fate", c_int),
        ("version", c_uint64),
        ("delay", c_uint64),
        ("position", c_uint64),
    ]


class HubStats(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("calls", c_uint64),
        ("pushed_bytes", c_uint64),
        ("pulled_bytes", c_uint64),
        ("sent_bytes", c_uint64),
        ("received_bytes", c_uint64),
    ]


OK, PENDING = 0, 1
EINVAL, EUNSUPPORTED, ESTATE, EFORKED = -1, -2, -3, -4
ENOMEM, ELIMIT, EIO = -10, -11, -12
EPARSE, EPLAN = -15, -16
ELINK, ECORRUPT = -20, -21
EPEER, ETIMEOUT, EMISMATCH, EEXCLUDED, EQUORUM = -30, -31, -32, -33, -34
EJOB, EABORTED = -40, -41

HUB_PUSH, HUB_PULL, HUB_PUSHPULL, HUB_READ_STATE, HUB_WRITE_STATE = 1, 2, 3, 4, 5
HUB_APPLIED, HUB_LATE_AT_SOURCE, HUB_LATE_AT_OFFER, HUB_LATE_AT_HUB = 0, 1, 2, 3
KEYED = 1
HOST, CUDA, ROCM = 0, 1, 2
ANY_RANK = 0xFFFFFFFF

COLLECTIVES = ("allreduce", "reduce-scatter", "allgather", "broadcast", "reduce", "gather", "scatter", "alltoall", "barrier")

# What each function returns and takes: void pointers for what is opaque.
SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "esp_version": (c_char_p, []),
    "esp_status_name": (c_char_p, [c_int]),
    "esp_status_text": (c_char_p, [c_int]),
    "esp_type_bytes": (c_size_t, [c_int]),
    "esp_type_name": (c_char_p, [c_int]),
    "esp_op_name": (c_char_p, [c_int]),
    "esp_reduce_local": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, c_int, c_int]),
    "esp_last_error": (c_int, [POINTER(Error)]),
    "esp_init": (c_int, [POINTER(Options), POINTER(c_void_p)]),
    "esp_fini": (c_int, [c_void_p]),
    "esp_world": (c_void_p, [c_void_p]),
    "esp_setting": (c_char_p, [c_void_p, c_char_p]),
    "esp_get_stats": (c_int, [c_void_p, POINTER(Stats)]),
    "esp_get_call_stats": (c_int, [c_void_p, POINTER(CallStats), c_uint32, POINTER(c_uint32)]),
    "esp_alloc": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "esp_free": (c_int, [c_void_p, c_void_p]),
    "esp_keep": (c_int, [c_void_p, c_void_p]),
    "esp_share": (c_int, [c_void_p, c_void_p, c_size_t]),
    "esp_unshare": (c_int, [c_void_p, c_void_p]),
    "esp_rank": (c_uint32, [c_void_p]),
    "esp_size": (c_uint32, [c_void_p]),
    "esp_world_rank": (c_uint32, [c_void_p, c_uint32]),
    "esp_host": (c_char_p, [c_void_p, c_uint32]),
    "esp_group_create": (c_int, [c_void_p, POINTER(c_uint32), c_uint32, POINTER(c_void_p)]),
    "esp_group_split": (c_int, [c_void_p, c_int64, c_int64, POINTER(c_void_p)]),
    "esp_group_free": (c_int, [c_void_p]),
    "esp_group_error": (c_int, [c_void_p, POINTER(Error)]),
    "esp_abort": (c_int, [c_void_p, c_char_p]),
    "esp_group_calls": (c_uint64, [c_void_p]),
    "esp_group_shrink": (c_int, [c_void_p, POINTER(Shrink), POINTER(c_void_p)]),
    "esp_door": (c_int, [c_void_p, c_char_p, c_size_t]),
    "esp_newcomers": (c_uint32, [c_void_p]),
    "esp_grow": (c_int, [c_void_p, c_uint32, c_int64, POINTER(c_void_p)]),
    "esp_collective_name": (c_char_p, [c_int]),
    "esp_run": (c_int, [c_void_p, POINTER(Call)]),
    "esp_start": (c_int, [c_void_p, POINTER(Call), POINTER(c_void_p)]),
    "esp_prepare": (c_int, [c_void_p, POINTER(Call), POINTER(c_void_p)]),
    "esp_restart": (c_int, [c_void_p]),
    "esp_poke": (None, [c_void_p]),
    "esp_test": (c_int, [c_void_p]),
    "esp_wait": (c_int, [c_void_p, c_int64]),
    "esp_work_descriptor": (c_int, [c_void_p, POINTER(c_int)]),
    "esp_work_error": (c_int, [c_void_p, POINTER(Error)]),
    "esp_work_plan": (c_char_p, [c_void_p]),
    "esp_work_free": (None, [c_void_p]),
    "esp_send_start": (c_int, [c_void_p, c_void_p, c_uint64, c_uint32, c_uint64, c_int64, POINTER(c_void_p)]),
    "esp_recv_start": (c_int, [c_void_p, c_void_p, c_uint64, c_uint32, c_uint64, c_int64, POINTER(c_void_p)]),
    "esp_work_received": (c_int, [c_void_p, POINTER(c_uint64), POINTER(c_uint32)]),
    "esp_hub_connect": (c_int, [POINTER(HubOptions), POINTER(c_void_p)]),
    "esp_hub_close": (c_int, [c_void_p]),
    "esp_hub_init": (c_int, [c_void_p, POINTER(HubTensor), c_uint32]),
    "esp_hub_start": (c_int, [c_void_p, POINTER(HubCall), POINTER(c_void_p)]),
    "esp_hub_map": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "esp_hub_gradient": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "esp_hub_set": (c_int, [c_void_p, c_uint32, c_char_p, POINTER(c_uint64)]),
    "esp_hub_optimizer": (c_char_p, [c_void_p, c_uint32]),
    "esp_hub_model": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_uint64)]),
    "esp_hub_update": (c_int, [c_void_p, POINTER(HubUpdate), POINTER(HubResult)]),
    "esp_hub_delay_bound": (c_uint32, [c_void_p]),
    "esp_hub_worker": (c_uint32, [c_void_p]),
    "esp_hub_workers": (c_uint32, [c_void_p]),
    "esp_hub_get_stats": (c_int, [c_void_p, POINTER(HubStats)]),
}

for _name, (_result, _arguments) in SIGNATURES.items():
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments


def text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value else ""
