#!/usr/bin/env python3
"""A rank is killed during training, under each launcher: every other rank hears of it in words that name it, and all ends.

killed_test.py NAME ESPALIER LIBRARY [openmpi|mpich SHIM LOOP]...

NAME is one of the functions test_NAME below. Exit status 77: what it needs is not here. Prints for each way of training how long it
took until the others had heard, which is no part of the test (scripts/bench-killed makes a table of it).
"""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "launchers"))
from launching import CLEAN, bind_below_free, finish, free_port, map_names, need, need_namespace, prepare_sshd, run, skip, slurm, sshd, start, temporary, wait_until  # noqa: E402

NAME, ESPALIER, LIBRARY = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
SHIMS = {sys.argv[i]: tuple(map(os.path.abspath, sys.argv[i + 1 : i + 3])) for i in range(4, len(sys.argv), 3)}
ROOT = HERE.parents[1]
BACKEND = pathlib.Path(LIBRARY).parent / "bindings" / "torch"
SIZE, VICTIM = 3, 1
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join([str(ROOT / "bindings" / "python"), str(BACKEND)]), "ESPALIER_LIBRARY": LIBRARY,
               "PYTHONDONTWRITEBYTECODE": "1", "ESP_LOG": "warn"}


def find_torch():
    """A Python that has torch; None: there is none here."""
    for python in dict.fromkeys([sys.executable, "/usr/bin/python3"]):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import torch.distributed"], env=CLEAN, stderr=subprocess.DEVNULL).returncode == 0:
                return python
    return None


def ways(*more):
    """How to train: (name, words in front of the folder)."""
    torch = find_torch()
    training = str(HERE / "training.py")
    yield "package", [torch or sys.executable, training, "package"]
    if torch:
        yield "hook", [torch, training, "hook"]
        if "backend" in more and any(BACKEND.glob("espalier_c10d*.so")):
            yield "backend", [torch, training, "backend"]


def quiet_port():
    """One that nobody is given by chance while torch is still being loaded."""
    with socket.socket() as probe:
        return bind_below_free(probe)


def is_written(path):
    """All of it: a rank may be killed while it writes."""
    return path.exists() and len(path.read_text().splitlines()) == 3


def check(way, folder, output):
    """Everybody but the victim was told who it is."""
    assert (folder / "killed").exists(), f"{way}: nobody was killed\n{output}"
    began = float((folder / "killed").read_text())
    took = []
    for rank in set(range(SIZE)) - {VICTIM}:
        path = folder / f"rank{rank}"
        assert is_written(path), f"{way}: rank {rank} was not told\n{output}"
        when, kind, said = path.read_text().splitlines()
        assert re.search(rf"\brank {VICTIM}\b", said), f"{way}: rank {rank} heard {kind}: {said}"
        took.append(float(when) - began)
    print("RESULT", json.dumps({"launcher": NAME, "way": way, "seconds": took, "kind": kind}), flush=True)


def train(launch, *more, env=None):
    """Trains in every way: launch(words, env) gives the command that starts the ranks."""
    for way, words in ways(*more):
        with temporary() as folder:
            folder.chmod(0o777)
            _, out, err = run(launch([*words, folder]), {**ENVIRONMENT, **(env or {})})
            check(way, folder, out + err)


# ---- one function for each launcher ----

def test_variables():
    """ESP_RANK, ESP_SIZE and ESP_LEADER, set by hand."""
    for way, words in ways():
        with temporary() as folder:
            told = {**ENVIRONMENT, "ESP_SIZE": SIZE, "ESP_LEADER": f"127.0.0.1:{quiet_port()}"}
            ranks = [start([*words, folder], {name: str(value) for name, value in {**told, "ESP_RANK": rank}.items()}) for rank in range(SIZE)]
            check(way, folder, "".join(out + err for _, out, err in map(finish, ranks)))


def test_espalier():
    train(lambda words: [ESPALIER, "run", "-n", SIZE, "--", *words], "backend")


def test_torchrun():
    """The agent looks after its workers every few seconds, and ends the others when one has failed: they hear of it before that."""
    if not find_torch():
        skip("there is no Python with torch: scripts/bootstrap python installs it")

    def launch(words):
        where = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{quiet_port()}", "--rdzv_id", f"killed-{os.getpid()}"]
        return [words[0], "-m", "torch.distributed.run", "--nnodes", 1, "--nproc_per_node", SIZE, *where, "--monitor_interval", 10,
                # Without these, torch 1.13 under Python 3.11 fails by itself.
                "--redirects", "0:1", "--tee", "0:1", *words[1:]]

    train(launch, "backend")


def train_under_mpi(flavour, launch, preload, wrapper=(), tries=1):
    """tries: of which mpirun may spoil all but one, by killing ranks before they are told."""
    train(lambda words: launch([*wrapper, *words]))
    if flavour not in SHIMS:
        print(f"the MPI library was not built: there is no mpi.h of {flavour}")
        return
    shim, loop = SHIMS[flavour]
    for left in reversed(range(tries)):
        with temporary() as folder:
            _, out, err = run(launch([*preload(shim), loop, 4096, 1_000_000, VICTIM, folder]), ENVIRONMENT)
            if left == 0 or all(is_written(folder / f"rank{rank}") for rank in set(range(SIZE)) - {VICTIM}):
                check("preload", folder, out + err)
                return


def test_openmpi():
    """By itself mpirun ends everybody as soon as it knows of a death; with this option it does not."""
    need("mpirun.openmpi", "ssh")
    words = ["mpirun.openmpi", "--oversubscribe", "--enable-recovery", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", SIZE]
    train_under_mpi("openmpi", lambda command: [*words, *command], lambda shim: ["-x", f"LD_PRELOAD={shim}"])


def test_mpich():
    """The option is for programs of MPI: of any other it kills all ranks when one ends badly, and a shell that stays keeps that from it.

    Of programs of MPI it also kills them if it learns of a death before it finds the rank's connection to it closed: one time in six.
    """
    need("mpirun.mpich")
    words = ["mpirun.mpich", "-disable-auto-cleanup", "-n", SIZE]
    train_under_mpi("mpich", lambda command: [*words, *command], lambda shim: ["-env", "LD_PRELOAD", shim], ["sh", "-c", '"$@"; true', "sh"],
                    tries=10)


def test_slurm():
    need("srun", "sinfo", "slurmctld", "slurmd", "munged")
    need_namespace(network=True)
    with temporary() as path:
        path.chmod(0o755)
        map_names(path, f"127.0.0.1 {os.uname().nodename} a1 a2\n")
        with slurm(path) as env:
            train(lambda words: ["srun", "-N2", f"-n{SIZE}", *words], env={**env, "ESP_KEY": "a passphrase that is long enough"})


def test_ssh():
    """Through a real server, to this host by its address."""
    need("ssh", "ssh-keygen", "/usr/sbin/sshd")
    need_namespace(network=True)
    with temporary() as path:
        prepare_sshd()
        with sshd(path) as words:
            env = [word for name, value in ENVIRONMENT.items() if not name.startswith("ESP_") for word in ["--env", f"{name}={value}"]]

            def launch(command):
                return [ESPALIER, "run", "--hosts", f"127.0.0.1:{SIZE}", "--rsh", " ".join(words), "--lose", "1", *env, "--", *command]

            train(launch)


if __name__ == "__main__":
    globals()[f"test_{NAME}"]()
