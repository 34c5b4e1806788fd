#!/usr/bin/env python3
"""Tests of jobs, once more with a switch that loses packets: shrinking, growing, deaths, mismatches, leaving.

switch_jobs_test.py ESPALIER TEST...
"""
import json
import os
import subprocess
import sys

import ports


def complete(espalier, pid):
    """Sums that the switch has completed since it was started."""
    done = subprocess.run([espalier, "switch", "status", "--json"], capture_output=True, text=True, timeout=60)
    return next(int(one["complete"]) for one in json.loads(done.stdout) if one["pid"] == pid)


def main():
    espalier, tests = sys.argv[1], sys.argv[2:]
    address = f"127.0.0.1:{ports.free_port()}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
    server = subprocess.Popen([espalier, "switch", "--listen", address, "--loss", "0.005"], env=clean, stderr=subprocess.PIPE, text=True)
    try:
        assert "listens at" in server.stderr.readline()
        before = 0
        for test in tests:
            done = subprocess.run([test], env={**clean, "ESP_SWITCH": address}, capture_output=True, text=True, timeout=250)
            assert done.returncode == 0, (test, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
            now = complete(espalier, server.pid)
            print(f"{os.path.basename(test)}: ok, {now - before} complete sums of the switch")
            before = now
        # some of these jobs end before a sum that a switch could help with: all of them together do not
        assert before > 1000, before
    finally:
        server.terminate()
        assert server.wait(60) == 0


main()
