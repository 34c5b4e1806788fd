#!/usr/bin/env python3
"""Which starts of a benchmark count where the cores of a machine are near each other only at times (bench/peers/cores.py).

bench_cores_test.py BENCH_PEERS_FOLDER
"""
import pathlib
import stat
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import cores  # noqa: E402


def pretend(folder, distances):
    """A program that says these nanoseconds, one at a time, and the last of them for ever."""
    (folder / "left").write_text("\n".join(map(str, distances)) + "\n")
    program = folder / "program"
    program.write_text(f'#!/bin/sh\nhead -n 1 "{folder}/left"\n[ "$(wc -l < "{folder}/left")" -gt 1 ] && sed -i 1d "{folder}/left"\nexit 0\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return cores.Cores(program)


def run(distances):
    starts = []

    def start():
        starts.append(len(starts))
        return starts[-1]

    with tempfile.TemporaryDirectory() as folder:
        machine = pretend(pathlib.Path(folder), distances)
        found = machine.run(start)
    return found, machine


def main():
    cores.PATIENCE = 0
    found, machine = run([50, 52])
    assert (found, machine.repeated, machine.kept, machine.least) == (0, 0, 0, 50), machine.text()
    # Apart after the first start: the second one counts.
    found, machine = run([50, 330, 51, 55])
    assert (found, machine.repeated, machine.kept) == (1, 1, 0), machine.text()
    # Apart for ever: the last one counts, and it is said.
    found, machine = run([50, 330])
    assert (found, machine.repeated, machine.kept) == (cores.TRIES - 1, cores.TRIES - 1, 1), machine.text()
    assert "1 count all the same" in machine.text()
    # Nobody knows what near is before it was seen: what came first is near until something nearer comes.
    found, machine = run([330, 335])
    assert (found, machine.kept) == (0, 0)
    assert cores.Cores(None).run(lambda: 7) == 7


if __name__ == "__main__":
    main()
