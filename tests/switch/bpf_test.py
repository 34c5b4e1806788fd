#!/usr/bin/env python3
"""The switch's step compiles for BPF, and needs nothing there: bpf_test.py CLANG SOURCE INCLUDE

No symbol from outside, no call, no relocation: what is left are loads, stores, arithmetic and bounded loops. CLANG may
be a command that does not exist: then the test is skipped.
"""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

CALL = 0x85
SHT_SYMTAB, SHT_RELA, SHT_REL = 2, 4, 9
MACHINE_BPF = 247


def skip(reason):
    print(reason)
    sys.exit(77)


def compile_step(clang, source, include, out):
    flags = ["-O2", "-target", "bpf", "-ffreestanding", "-Wall", "-Wextra", "-Werror"]
    command = [clang, *flags, "-I", include, "-c", source, "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and ("No available targets" in done.stderr or "unknown target triple" in done.stderr):
        skip(f"{clang} has no BPF target")
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def sections(image):
    """[(name, type, bytes)] of a 64-bit little-endian object."""
    assert image[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<H", image, 18)[0] == MACHINE_BPF, "not a BPF object"
    at, = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    rows = [struct.unpack_from("<IIQQQQ", image, at + size * i) for i in range(count)]
    name_at = rows[names][4]
    for name, kind, _, _, offset, length in rows:
        text = image[name_at + name:image.index(b"\0", name_at + name)].decode()
        yield text, kind, image[offset:offset + length]


def check_object(image):
    instructions = 0
    for name, kind, data in sections(image):
        if kind in (SHT_REL, SHT_RELA):
            assert not data or ".debug" in name or ".BTF" in name or ".eh_frame" in name, f"relocations: {name}"
        if kind == SHT_SYMTAB:
            for at in range(24, len(data), 24):
                section, = struct.unpack_from("<H", data, at + 6)
                assert section != 0, "a symbol from outside"
        if name == ".text":
            opcodes = data[::8]
            assert CALL not in opcodes, "a call"
            instructions += len(opcodes)
    assert instructions > 50, "nothing was compiled"
    return instructions


def main():
    clang, source, include = sys.argv[1:]
    if not shutil.which(clang):
        skip(f"there is no {clang}")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "step.o")
        compile_step(clang, source, include, str(out))
        print(f"{check_object(out.read_bytes())} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
