"""python -m espalier: the command `espalier`, wherever it was built or installed."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

from ._native import build_trees


def find() -> str | None:
    chosen = os.environ.get("ESPALIER_COMMAND")
    if chosen:
        return chosen
    bundled = pathlib.Path(__file__).resolve().parent / "bin" / "espalier"
    built = [tree / "espalier" for tree in build_trees()]
    for path in [bundled, *built]:
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which("espalier")


def main() -> None:
    command = find()
    if command is None:
        sys.exit("espalier: the command was not found: install Espalier, or build it in the checkout (make)")
    os.execv(command, ["espalier", *sys.argv[1:]])


if __name__ == "__main__":
    main()
