#!/usr/bin/env python3
"""Compiles the backend for the torch of this Python: build.py --build BUILD [--out FOLDER]

BUILD is a build folder of the project, where libespalier.so is. The result, espalier_c10d.*.so, goes to BUILD/bindings/torch or
FOLDER; espalier.torch finds it there, beside itself, or on Python's path.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAME = "espalier_c10d"
SOURCES = ["c10d_backend.cpp", "c10d_call.cpp", "c10d_module.cpp", "c10d_share.cpp", "c10d_sparse.cpp"]
# What it takes, and Debian's packages for that; torch from elsewhere brings the first two along.
HEADERS = {"torch/version.h": "libtorch-dev", "pybind11/pybind11.h": "pybind11-dev", "Python.h": "python3-dev"}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--build", type=pathlib.Path, required=True, help="a build folder of the project")
parser.add_argument("--out", type=pathlib.Path, help="where the module goes (BUILD/bindings/torch)")
parser.add_argument("--debug", action="store_true", help="without optimization")
arguments = parser.parse_args()

try:
    import torch
    from torch.utils import cpp_extension
except ImportError as missing:
    sys.exit(f"build.py: {missing}: this Python has no torch")

build = arguments.build.resolve()
out = (arguments.out or build / "bindings" / "torch").resolve()
out.mkdir(parents=True, exist_ok=True)
target = out / (NAME + sysconfig.get_config_var("EXT_SUFFIX"))
flags = ["-std=c++17", "-fPIC", "-g0" if not arguments.debug else "-g", "-O0" if arguments.debug else "-O2", "-Wall", "-Wno-sign-compare",
         "-fvisibility=hidden", f"-DTORCH_EXTENSION_NAME={NAME}", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
for path in [ROOT / "include", *cpp_extension.include_paths(), sysconfig.get_path("include")]:
    flags += ["-isystem" if path != ROOT / "include" else "-I", str(path)]
compiler = os.environ.get("CXX", "c++")


def look_for_headers():
    """One sentence instead of the compiler's hundreds."""
    asked = "".join(f"#if !__has_include(<{header}>)\n{header}\n#endif\n" for header in HEADERS)
    try:
        done = subprocess.run([compiler, *flags, "-E", "-P", "-x", "c++", "-"], input=asked, stdout=subprocess.PIPE, text=True, check=True)
    except FileNotFoundError:
        sys.exit(f"build.py: there is no compiler {compiler}; on Debian: sudo apt-get install g++")
    missing = [header for header in HEADERS if header in done.stdout.split()]
    if missing:
        packages = " ".join(HEADERS[header] for header in missing)
        sys.exit(f"build.py: not found: {', '.join(missing)}; on Debian: sudo apt-get install --no-install-recommends {packages}")


def newest(paths):
    return max(path.stat().st_mtime for path in paths)


def compile(source):
    compiled = out / (source + ".o")
    if not compiled.exists() or compiled.stat().st_mtime < newest([HERE / source, HERE / "c10d_backend.h", pathlib.Path(torch.__file__)]):
        subprocess.run([compiler, *flags, "-c", str(HERE / source), "-o", str(compiled)], check=True)
    return str(compiled)


try:
    look_for_headers()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile, SOURCES))
    libraries = [f"-L{path}" for path in cpp_extension.library_paths()] + ["-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python"]
    subprocess.run([compiler, "-shared", *objects, "-o", str(target), f"-L{build}", "-lespalier", f"-Wl,-rpath,{build}", *libraries], check=True)
except subprocess.CalledProcessError as failed:
    sys.exit(failed.returncode)
print(target)
