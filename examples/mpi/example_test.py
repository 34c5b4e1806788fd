#!/usr/bin/env python3
"""The MPI example prints what its README says, with libespalier-mpi.so and without.

example_test.py openmpi|mpich MPIRUN SHIM PROGRAM README
"""
import os
import re
import subprocess
import sys

FLAVOUR, MPIRUN, SHIM, PROGRAM, README = sys.argv[1:6]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("ESP_", "OMPI_", "PMI_", "LD_"))}
ENVIRONMENT = {**CLEAN, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_plm_rsh_agent": "sh"}


def expected():
    """What stands in the README between its fences."""
    with open(README, encoding="utf-8") as file:
        return [part.strip("\n").split("\n") for part in re.findall(r"^```\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)]


def run(**variables):
    words = [MPIRUN, "-n", "4"]
    for name, value in variables.items():
        words += ["-x", f"{name}={value}"] if FLAVOUR == "openmpi" else ["-env", name, value]
    done = subprocess.run([*words, PROGRAM], env=ENVIRONMENT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done
    return done.stdout.splitlines(), [re.sub(r"\s+", " ", line) for line in done.stderr.splitlines() if line.startswith("espalier: ")]


def main():
    training, summary = expected()
    said, more = run()
    assert said == training and not more, (said, more)
    said, more = run(LD_PRELOAD=SHIM, ESP_MPI_SUMMARY="1")
    assert said == training, said
    assert more == [re.sub(r"\s+", " ", line) for line in summary], more


if __name__ == "__main__":
    main()
