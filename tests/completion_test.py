#!/usr/bin/env python3
"""Completion in a shell offers what the command has.

completion_test.py ESPALIER SCRIPT
"""
import os
import subprocess
import sys

ESPALIER, SCRIPT = map(os.path.abspath, sys.argv[1:3])


def complete(*words):
    """What bash offers for the last word."""
    program = ('source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _espalier; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", program, "bash", SCRIPT, *words], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


def main():
    commands = complete(ESPALIER, "")
    assert {"bench", "hub", "plan", "sim", "help"} <= commands, commands
    assert complete(ESPALIER, "pl") == {"plan"}
    makes = complete(ESPALIER, "plan", "")
    assert {"make", "check", "draw"} <= makes and "bench" not in makes, makes
    assert complete(ESPALIER, "help", "plan", "che") == {"check"}
    assert "--nodes" in complete(ESPALIER, "plan", "make", "--")
    assert complete(ESPALIER, "plan", "make", "--nod") == {"--nodes"}
    assert complete(ESPALIER, "bench", "--transport", "") == {"auto", "shm", "tcp"}
    assert complete(ESPALIER, "bench", "allreduce", "--transport", "s") == {"shm"}
    assert complete(ESPALIER, "lab", "up", "--ov") == {"--oversubscribe"}
    assert complete(ESPALIER, "run", "-n", "2", "--", "--") == set()
    for name in commands - {"help"}:  # each has options or commands
        assert complete(ESPALIER, name, "--") | complete(ESPALIER, name, ""), name


if __name__ == "__main__":
    main()
