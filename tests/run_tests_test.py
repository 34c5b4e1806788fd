#!/usr/bin/env python3
"""scripts/run-tests counts what meson reports and never takes silence for success.

run_tests_test.py RUN_TESTS
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile


def fake(folder, name, script):
    path = folder / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def row(name, result):
    return json.dumps({"name": name, "result": result, "returncode": 1, "stdout": f"output of {name}\n"})


def run(run_tests, results, build_status=0, meson_status=0):
    """Runs it with a ninja and a meson that only pretend."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        logs = folder / "build" / "meson-logs"
        logs.mkdir(parents=True)
        (logs / "testlog.json").write_text(row("stale", "OK") + "\n")  # of an earlier run
        (folder / "results").write_text("".join(r + "\n" for r in results))
        copy = f"cp {folder}/results {logs}/testlog.json\n" if results else ""
        fake(folder, "ninja", f"exit {build_status}\n")
        fake(folder, "meson", f"{copy}exit {meson_status}\n")
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([sys.executable, run_tests, folder / "build"], capture_output=True, text=True,
                              env={**os.environ, "PATH": path})
        return done.returncode, done.stdout


CASES = [
    ("all pass", dict(results=[row("a", "OK"), row("b", "OK")]), 0, "2 passed, 0 failed"),
    ("one skipped", dict(results=[row("a", "OK"), row("b", "SKIP")]), 0, "1 passed, 0 failed, 1 skipped"),
    ("one fails", dict(results=[row("a", "OK"), row("b", "FAIL")], meson_status=1), 1, "1 passed, 1 failed"),
    ("one hangs", dict(results=[row("a", "TIMEOUT")], meson_status=1), 1, "0 passed, 1 failed"),
    ("one errs", dict(results=[row("a", "ERROR")], meson_status=1), 1, "0 passed, 1 failed"),
    ("passes unexpectedly", dict(results=[row("a", "UNEXPECTEDPASS")], meson_status=1), 1, "0 passed, 1 failed"),
    ("interrupted", dict(results=[row("a", "OK"), row("b", "INTERRUPT")], meson_status=1), 1, "1 passed, 1 failed"),
    ("build fails", dict(results=[row("a", "OK")], build_status=1), 1, "0 passed, 1 failed"),
    ("nothing ran", dict(results=[]), 1, "0 passed, 1 failed"),
    ("meson fails", dict(results=[row("a", "OK")], meson_status=3), 1, "1 passed, 0 failed"),
]


def main():
    failures = 0
    for name, arguments, status, last in CASES:
        got_status, output = run(sys.argv[1], **arguments)
        if got_status != status or output.splitlines()[-1] != last:
            print(f"{name}: expected exit status {status} and '{last}'; got {got_status}:\n{output}")
            failures += 1
    _, output = run(sys.argv[1], [row("broken", "FAIL")], meson_status=1)
    if "output of broken" not in output:
        print(f"the output of a failing test is missing:\n{output}")
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
