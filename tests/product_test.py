#!/usr/bin/env python3
"""What is installed is what `make` builds: every file of the build folder that goes along belongs to the target product.

product_test.py MESON BUILD
"""
import json
import os
import subprocess
import sys

MESON, BUILD = sys.argv[1].split(), os.path.realpath(sys.argv[2])


def main():
    installed = json.loads(subprocess.run([*MESON, "introspect", "--installed", BUILD], stdout=subprocess.PIPE, check=True).stdout)
    made = {os.path.relpath(path, BUILD) for path in map(os.path.realpath, installed) if path.startswith(BUILD + os.sep)}
    made = {path for path in made if not path.startswith("meson-private")}  # pkg-config's, which is there since meson setup
    told = subprocess.run(["ninja", "-C", BUILD, "-t", "query", "product"], stdout=subprocess.PIPE, text=True, check=True).stdout
    product = {line.strip(" |") for line in told.partition("input:")[2].partition("outputs:")[0].splitlines()}
    assert len(made) > 3, installed
    missing = made - product
    assert not missing, f"make install would not find {sorted(missing)}: add them to product in meson.build"


if __name__ == "__main__":
    main()
