#!/usr/bin/env python3
"""Tests of jobs, once more with a switch that loses packets: shrinking, growing, deaths, mismatches, leaving.

switch_jobs_test.py ESPALIER TEST...
"""
import os
import subprocess
import sys

import ports


def main():
    espalier, tests = sys.argv[1], sys.argv[2:]
    address = f"127.0.0.1:{ports.free_port()}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
    server = subprocess.Popen([espalier, "switch", "--listen", address, "--loss", "0.005"], env=clean, stderr=subprocess.PIPE, text=True)
    try:
        assert "listens at" in server.stderr.readline()
        for test in tests:
            done = subprocess.run([test], env={**clean, "ESP_SWITCH": address}, capture_output=True, text=True, timeout=250)
            assert done.returncode == 0, (test, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
            print(os.path.basename(test), "ok")
    finally:
        server.terminate()
        assert server.wait(60) == 0


main()
