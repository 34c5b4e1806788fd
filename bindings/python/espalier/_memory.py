"""Memory of anything: objects with the buffer protocol (bytes, array, numpy) or DLPack (torch, jax ...).

Nothing is copied: a View is an address, a size and what keeps both valid.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_ssize_t, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

from . import _native
from ._types import TYPE_BYTES, TYPES, type_number, type_of_dlpack, type_of_format
from .errors import InvalidError, UnsupportedError


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer, part of its stable ABI since 3.11 and unchanged since 3.0."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_PyBUF_WRITABLE = 0x1
_PyBUF_FORMAT = 0x4
_PyBUF_C_CONTIGUOUS = 0x20 | 0x10 | 0x8

_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_get_buffer.restype = c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [POINTER(_PyBuffer)]
_release_buffer.restype = None


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]
_capsule_pointer.restype = c_void_p

# DLPack's kinds of devices that are memory of the host: CPU, and CPU memory pinned by CUDA or ROCm.
_DL_HOST = (1, 3, 11)
_DL_DEVICES = {2: _native.CUDA, 13: _native.CUDA, 10: _native.ROCM}


class View:
    """Memory that belongs to somebody else, for as long as this object lives."""

    __slots__ = ("address", "bytes", "type", "is_bool", "writable", "memory", "device", "owner", "_buffer", "_capsule")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self._buffer: _PyBuffer | None = None
        self._capsule: Any = None
        self.memory = _native.HOST
        self.device = 0
        self.writable = True
        self.address = 0
        self.bytes = 0
        self.type: int | None = None
        # Bytes that are 0 or 1, and must stay so.
        self.is_bool = False

    @property
    def count(self) -> int:
        assert self.type is not None
        return self.bytes // TYPE_BYTES[self.type]

    def __del__(self) -> None:
        if self._buffer is not None:
            _release_buffer(self._buffer)
            self._buffer = None


def _by_buffer(thing: Any, writable: bool) -> View:
    view = View(thing)
    buffer = _PyBuffer()
    # A BufferError or a TypeError of the object itself comes out of here as it is.
    _get_buffer(thing, buffer, _PyBUF_FORMAT | _PyBUF_C_CONTIGUOUS | (_PyBUF_WRITABLE if writable else 0))
    view._buffer = buffer
    view.address = buffer.buf or 0
    view.bytes = buffer.len
    view.writable = not buffer.readonly
    view.type = type_of_format((buffer.format or b"B").decode(), buffer.itemsize)
    view.is_bool = buffer.format == b"?"
    return view


def _is_contiguous(tensor: _DLTensor) -> bool:
    if not tensor.strides:
        return True
    expected = 1
    for axis in reversed(range(tensor.ndim)):
        if tensor.shape[axis] == 0:
            return True
        if tensor.shape[axis] != 1 and tensor.strides[axis] != expected:
            return False
        expected *= tensor.shape[axis]
    return True


def _by_dlpack(thing: Any) -> View:
    # Tensors that take part in differentiation are not exported; their memory is what is meant here.
    if getattr(thing, "requires_grad", False) and hasattr(thing, "detach"):
        thing = thing.detach()
    view = View(thing)
    view._capsule = thing.__dlpack__()
    tensor = _DLTensor.from_address(_capsule_pointer(view._capsule, b"dltensor"))
    if not _is_contiguous(tensor):
        raise InvalidError("a tensor is not contiguous; make it so first (tensor.contiguous())")
    if tensor.lanes != 1:
        raise InvalidError("vector types are not supported")
    elements = 1
    for axis in range(tensor.ndim):
        elements *= tensor.shape[axis]
    if tensor.device_type not in _DL_HOST:
        view.memory = _DL_DEVICES.get(tensor.device_type, -1)
        view.device = tensor.device_id
        if view.memory < 0:
            raise UnsupportedError(f"memory of DLPack's device type {tensor.device_type} is not supported; copy it to the host first")
    view.address = (tensor.data or 0) + tensor.byte_offset
    view.bytes = elements * ((tensor.bits + 7) // 8)
    view.type = type_of_dlpack(tensor.code, tensor.bits)
    view.is_bool = tensor.code == 6
    return view


def _by_interface(thing: Any) -> View:
    """numpy's types that the buffer protocol cannot name, such as ml_dtypes.bfloat16."""
    interface = thing.__array_interface__
    if interface.get("strides") is not None:
        raise InvalidError("an array is not contiguous; make it so first (numpy.ascontiguousarray)")
    view = View(thing)
    view.address, read_only = interface["data"]
    view.writable = not read_only
    view.bytes = thing.nbytes
    name = str(getattr(thing, "dtype", ""))
    view.type = TYPES["bf16"] if name == "bfloat16" else None
    return view


def view(thing: Any, writable: bool, type: str | None = None) -> View:
    """The memory of `thing`. `type` says what its elements are, where the object does not know or should not be believed."""
    if isinstance(thing, View):
        made = thing
    elif isinstance(thing, str):
        raise InvalidError("text has no memory to send; encode it first (text.encode())")
    else:
        try:
            made = _by_buffer(thing, writable)
        except BufferError as error:
            raise InvalidError(f"the memory of {thing.__class__.__name__} cannot be used: {error}") from None
        except (TypeError, ValueError):
            if hasattr(thing, "__array_interface__"):
                made = _by_interface(thing)
            elif hasattr(thing, "__dlpack__"):
                made = _by_dlpack(thing)
            else:
                raise InvalidError(
                    f"{thing.__class__.__name__} has no memory that can be used: neither the buffer protocol nor DLPack"
                ) from None
    if writable and not made.writable:
        raise InvalidError(f"the memory of {thing.__class__.__name__} is read-only, and a result is to be written there")
    if type is not None:
        made.is_bool = False
        made.type = type_number(type)
        if made.bytes % TYPE_BYTES[made.type] != 0:
            raise InvalidError(f"{made.bytes} bytes are not a whole number of elements of type {type}")
    return made


def like(thing: Any, elements: int) -> Any:
    """New memory of the kind of `thing`, for so many of its elements, in one dimension."""
    module = thing.__class__.__module__.partition(".")[0]
    if module == "torch":
        return thing.new_empty(elements)
    if module == "numpy":
        import numpy

        return numpy.empty(elements, dtype=thing.dtype)
    source = memoryview(thing)
    made = memoryview(bytearray(elements * source.itemsize))
    return made if source.format == "B" else made.cast(source.format)
