"""The shim under a real mpirun: run_test.py openmpi|mpich MPIRUN SHIM SAME_TEST LOOP ERRORS_TEST SHARE_TEST

Every collective against the library's own, several seeds; who carries what; memory that is shared behind the program's back; a rank that dies is named by the others.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

FLAVOUR, MPIRUN, SHIM, SAME, LOOP, ERRORS, SHARE = sys.argv[1:8]
SKIP = 77


def environment(**more):
    # As root, under more ranks than cores; the tests of a build see no settings of the user's.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ESP_", "OMPI_", "PMI_"))}
    env.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_plm_rsh_agent": "sh", **more})
    return env


def mpirun(ranks, *command, preload=True, **more):
    words = [MPIRUN, "-n", str(ranks)]
    given = {**more, **({"LD_PRELOAD": SHIM} if preload else {})}
    for name, value in given.items():
        words += ["-x", f"{name}={value}"] if FLAVOUR == "openmpi" else ["-env", name, value]
    with tempfile.TemporaryDirectory(prefix="ompi") as folder:  # not shared: two that start at a time may fail to make it
        env = environment(OMPI_MCA_orte_tmpdir_base=folder)
        return subprocess.run(words + list(command), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280)


class Shim(unittest.TestCase):
    def test_same_results(self):
        for seed, ranks in (("1", 2), ("2", 3), ("3", 4)):
            with self.subTest(seed=seed, ranks=ranks):
                done = mpirun(ranks, SAME, seed, "60")
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn("same: ", done.stdout)
                self.assertNotIn("ESPALIER", done.stdout)

    def test_the_summary(self):
        done = mpirun(4, SAME, "5", "40", ESP_MPI_SUMMARY="1")
        rows = re.findall(r"^espalier: (MPI_\w+) +(\d+)\.\.(\d+) +(\d+) +(\d+) +([\d.]+) %$", done.stdout, re.M)
        carried = sum(int(row[3]) for row in rows)
        # Of four ranks no communicator has one only. long double is MPI's to carry, in Espalier nothing computes with it; all else is ours.
        self.assertGreater(carried, 300, done.stdout)
        self.assertNotIn("means nothing", done.stdout)
        for name, _, _, ours, theirs, share in rows:
            if "educe" not in name:
                self.assertEqual((theirs, share), ("0", "100.0"), name)
            self.assertGreater(int(ours) + int(theirs), 0)

    def test_the_other_mpis(self):
        other = {"openmpi": "mpich", "mpich": "openmpi"}[FLAVOUR]
        shim = os.path.join(os.path.dirname(os.path.dirname(SHIM)), other, os.path.basename(SHIM))
        if not os.path.exists(shim):
            self.skipTest(f"it was not built for {other}")
        done = mpirun(2, LOOP, "4", "10", preload=False, LD_PRELOAD=shim)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, "espalier: this libespalier-mpi.so is for .*, and the program uses ")

    def test_mistakes_are_reported(self):
        for ranks in (2, 3):
            done = mpirun(ranks, ERRORS)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("errors: all reported", done.stdout)

    def test_blocks_are_shared(self):
        for ranks, wish, more in ((2, "on", ()), (3, "on", ("fork",)), (2, "off", ("fork",))):
            with self.subTest(ranks=ranks, wish=wish, more=more):
                done = mpirun(ranks, SHARE, wish, *more, ESP_MPI_SHARE=wish, ESP_MPI_SUMMARY="1")
                self.assertEqual(done.returncode, 0, done.stdout)
                said = re.search(r"^share: \d+ checks, (\w+)$", done.stdout, re.M)
                shared = re.search(r"^espalier: \d+ blocks of malloc\(\) were shared, [\d.]+ MiB$", done.stdout, re.M)
                self.assertEqual(bool(shared), said.group(1) == "on", done.stdout)

    def test_off(self):
        done = mpirun(2, LOOP, "4", "10", ESP_MPI="off", ESP_MPI_SUMMARY="1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"MPI_Allreduce .* 0 +\d+ +0\.0 %")

    def test_who_cannot_join_leaves_it_to_mpi(self):
        # Both ranks alike; and one of them, as a port is there once.
        for setting in ({"ESP_KEY_FILE": "/nonexistent"}, {"ESP_PORT": "1"}):
            done = mpirun(2, LOOP, "4", "10", **setting)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("MPI carries all calls itself", done.stdout)
            self.assertIn("4 bytes", done.stdout)

    def test_a_rank_that_dies_is_named(self):
        """Unless mpirun, which ends all as soon as it knows of the death, is faster than they are; not every time."""
        for _ in range(20):
            done = mpirun(3, LOOP, "1048576", "100000", "1")
            self.assertNotEqual(done.returncode, 0)
            if re.search(r"espalier: MPI_Allreduce: .*rank 1\b", done.stdout):
                return
        self.fail(done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
