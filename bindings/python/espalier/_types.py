"""The types of elements and the operations, by the names that people know them by."""

from __future__ import annotations

from .errors import InvalidError

TYPES = {
    "f32": 0, "f64": 1, "f16": 2, "bf16": 3, "i8": 4, "u8": 5, "i16": 6, "u16": 7, "i32": 8, "u32": 9, "i64": 10, "u64": 11,
    "bytes": 12,
}  # fmt: skip
TYPE_BYTES = {0: 4, 1: 8, 2: 2, 3: 2, 4: 1, 5: 1, 6: 2, 7: 2, 8: 4, 9: 4, 10: 8, 11: 8, 12: 1}
ALIASES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "uint8": "u8", "int16": "i16",
    "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64", "bool": "u8",
}  # fmt: skip
OPS = {
    "sum": 0, "avg": 1, "prod": 2, "min": 3, "max": 4, "band": 5, "bor": 6, "bxor": 7, "land": 8, "lor": 9, "lxor": 10, "scaled": 11,
}  # fmt: skip


def type_number(name: str) -> int:
    number = TYPES.get(ALIASES.get(name, name))
    if number is None:
        raise InvalidError(f"{name!r} is not a type of elements; there are {', '.join(TYPES)}")
    return number


def op_number(name: str) -> int:
    number = OPS.get(name)
    if number is None:
        raise InvalidError(f"{name!r} is not an operation; there are {', '.join(OPS)}")
    return number


_BY_FORMAT = {
    "f": "f32", "d": "f64", "e": "f16", "b": "i8", "B": "u8", "?": "u8", "h": "i16", "H": "u16", "c": "bytes", "s": "bytes",
}  # fmt: skip
# Integers whose size depends on the machine: by size.
_INTEGERS = {"i": "i", "l": "i", "q": "i", "n": "i", "I": "u", "L": "u", "Q": "u", "N": "u"}


def type_of_format(format: str, item_bytes: int) -> int | None:
    """The type of a struct-module format character; None: nothing that can be computed with."""
    letter = format.lstrip("@=<|")
    if letter in _BY_FORMAT:
        return TYPES[_BY_FORMAT[letter]]
    if letter in _INTEGERS and item_bytes in (1, 2, 4, 8):
        return TYPES[_INTEGERS[letter] + str(8 * item_bytes)]
    return None


# DLPack's kinds of types: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool.
_BY_DLPACK = {(2, 32): "f32", (2, 64): "f64", (2, 16): "f16", (4, 16): "bf16", (6, 8): "u8"}


def type_of_dlpack(code: int, bits: int) -> int | None:
    if (code, bits) in _BY_DLPACK:
        return TYPES[_BY_DLPACK[code, bits]]
    if code in (0, 1) and bits in (8, 16, 32, 64):
        return TYPES[("i" if code == 0 else "u") + str(bits)]
    return None
