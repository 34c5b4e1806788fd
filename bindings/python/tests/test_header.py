"""The mirror of the C header is exact: same functions, same structs, same numbers."""

from __future__ import annotations

import ctypes
import pathlib
import re
import shutil
import subprocess

import pytest

from espalier import _native, _types

HEADER = pathlib.Path(__file__).resolve().parents[3] / "include" / "espalier"

if not HEADER.exists():
    pytest.skip("the C header is not here", allow_module_level=True)

TEXT = (HEADER / "espalier.h").read_text() + (HEADER / "types.h").read_text() + (HEADER / "hub.h").read_text()
# Blocking forms of what is mirrored in the background, and those that Python has itself.
LEFT_OUT = {
    "esp_allreduce", "esp_reduce_scatter", "esp_allgather", "esp_broadcast", "esp_reduce", "esp_gather", "esp_scatter",
    "esp_alltoall", "esp_barrier", "esp_send", "esp_recv", "esp_wait_any", "esp_work_no_callback", "esp_hub_push", "esp_hub_pull", "esp_hub_pushpull",
}  # fmt: skip
STRUCTS = {
    "esp_error": _native.Error, "esp_options": _native.Options, "esp_stats": _native.Stats, "esp_call_stats": _native.CallStats,
    "esp_shrink": _native.Shrink, "esp_buffer": _native.Buffer, "esp_call": _native.Call,
    "esp_hub_options": _native.HubOptions, "esp_hub_tensor": _native.HubTensor, "esp_hub_call": _native.HubCall, "esp_hub_stats": _native.HubStats,
    "esp_hub_update": _native.HubUpdate, "esp_hub_result": _native.HubResult,
}  # fmt: skip


def test_functions():
    declared = set(re.findall(r"ESP_API[^;(]*?\b(esp_\w+)\(", TEXT))
    assert declared - LEFT_OUT == set(_native.SIGNATURES)


def test_numbers():
    numbers = {name: int(value) for name, value in re.findall(r"\b(ESP_\w+) = (-?\d+)", TEXT)}
    for name, value in vars(_native).items():
        if name.isupper() and isinstance(value, int) and f"ESP_{name}" in numbers:
            assert numbers[f"ESP_{name}"] == value, name
    for name, value in {**_types.TYPES, **_types.OPS}.items():
        assert numbers[f"ESP_{name.upper()}"] == value
    for value, name in enumerate(_native.COLLECTIVES):
        assert numbers["ESP_" + name.upper().replace("-", "_")] == value


def test_layouts(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to ask")
    lines = ["#include <espalier/hub.h>", "#include <stdio.h>", "int main(void) {"]
    for name, mirror in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for field, *_ in mirror._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof(struct {name}, {field.rstrip("_")}));')
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    source.write_text("\n".join([*lines, "}"]))
    subprocess.run([compiler, "-I", str(HEADER.parent), str(source), "-o", str(program)], check=True)
    told = dict(line.split() for line in subprocess.check_output([str(program)], text=True).splitlines())
    for name, mirror in STRUCTS.items():
        assert int(told[name]) == ctypes.sizeof(mirror)
        for field, *_ in mirror._fields_:
            assert int(told[f"{name}.{field}"]) == getattr(mirror, field).offset, f"{name}.{field}"
