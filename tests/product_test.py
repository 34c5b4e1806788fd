#!/usr/bin/env python3
"""What is installed is what `make` builds: every file of the build folder that goes along belongs to the target product. And it runs from any folder.

product_test.py MESON BUILD
"""
import json
import os
import subprocess
import sys
import tempfile

MESON, BUILD = sys.argv[1].split(), os.path.realpath(sys.argv[2])


def check_moved(installed):
    """The program of the demo finds the library beside it, where no ldconfig knows of either."""
    where = [path for path in installed.values() if path.endswith("/libexec/espalier/train")]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*MESON, "install", "--no-rebuild", "-C", BUILD], env={**os.environ, "DESTDIR": folder}, stdout=subprocess.DEVNULL, check=True)
        clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH" and not name.startswith("ESP_")}
        for path in where:
            out = subprocess.run([folder + path, "--help"], stdout=subprocess.PIPE, text=True, env=clean, check=True).stdout
            assert out.startswith("usage: train"), out


def main():
    installed = json.loads(subprocess.run([*MESON, "introspect", "--installed", BUILD], stdout=subprocess.PIPE, check=True).stdout)
    made = {os.path.relpath(path, BUILD) for path in map(os.path.realpath, installed) if path.startswith(BUILD + os.sep)}
    targets = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], stdout=subprocess.PIPE, text=True, check=True).stdout
    made &= {line.rsplit(": ", 1)[0] for line in targets.splitlines()}  # pkg-config's files and units are there since meson setup
    told = subprocess.run(["ninja", "-C", BUILD, "-t", "query", "product"], stdout=subprocess.PIPE, text=True, check=True).stdout
    product = {line.strip(" |") for line in told.partition("input:")[2].partition("outputs:")[0].splitlines()}
    assert len(made) > 3, installed
    missing = made - product
    assert not missing, f"make install would not find {sorted(missing)}: add them to product in meson.build"
    check_moved(installed)


if __name__ == "__main__":
    main()
