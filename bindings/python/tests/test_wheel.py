"""Wheels are made without a network, have what they must, and nothing that an earlier build left."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

pytest.importorskip("setuptools")
pytest.importorskip("wheel")

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
MODULES = {f"espalier/{path.name}" for path in (CHECKOUT / "bindings" / "python" / "espalier").glob("*.py")}


def make(folder, *options):
    """From a copy of the checkout in which somebody has built before."""
    tree = folder / "checkout"
    shutil.copytree(CHECKOUT / "bindings" / "python", tree / "bindings" / "python", ignore=shutil.ignore_patterns("__pycache__"))
    stale = tree / "bindings" / "python" / "build" / "lib" / "espalier" / "stale.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    (tree / "scripts").mkdir()
    shutil.copy2(CHECKOUT / "scripts" / "wheel", tree / "scripts" / "wheel")
    done = subprocess.run([sys.executable, str(tree / "scripts" / "wheel"), *options, str(folder / "out")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    (wheel,) = (folder / "out").iterdir()
    assert done.stdout == f"wheel: {wheel}\n" and not done.stderr, done
    return wheel


def contents(wheel):
    with zipfile.ZipFile(wheel) as file:
        return {name for name in file.namelist() if "dist-info" not in name}


def test_pure(tmp_path):
    wheel = make(tmp_path)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert contents(wheel) == MODULES | {"espalier/py.typed"}


def test_with_the_library(tmp_path, command, environment):
    build = pathlib.Path(command).parent
    wheel = make(tmp_path, "--bundle", str(build))
    assert "-py3-none-linux_" in wheel.name
    assert contents(wheel) == MODULES | {"espalier/py.typed", "espalier/bin/espalier", "espalier/lib/libespalier.so.0"}
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "site")
    # What was unpacked is used, and no other: zipfile forgets who may run the command, pip does not.
    (tmp_path / "site" / "espalier" / "bin" / "espalier").chmod(0o755)
    program = "import espalier, espalier._native as native; x = bytearray(b'\\1'); job = espalier.init(); job.world.allreduce(x); print(native.lib._name, x[0])"
    env = {name: value for name, value in environment.items() if not name.startswith(("ESPALIER_", "PYTHON", "ESP_"))}
    env["PYTHONPATH"] = str(tmp_path / "site")
    ran = subprocess.run([sys.executable, "-m", "espalier", "run", "-n", "2", "--", sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(ran.stdout.split("\n")) == sorted(["", *(f"[{rank}] {tmp_path / 'site' / 'espalier' / 'lib' / 'libespalier.so.0'} 2" for rank in (0, 1))]), ran
