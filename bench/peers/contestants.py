"""Who takes part in scripts/bench-peers, with which settings: README.md tells why these.

A contestant is a command that measures some sizes and prints its samples, and a parser of what it prints.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

KIB, MIB = 1 << 10, 1 << 20
CORES = len(os.sched_getaffinity(0))
SAMPLES_MIN = 2  # per start, size and place, even if the time is over
# Large pages, and memory that stays with the process when it is freed: the libraries allocate in every call.
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:"
                          "glibc.malloc.trim_threshold=4294967296"}
OURS = "espalier-"  # how the names of our contestants begin


@dataclasses.dataclass(frozen=True)
class Heat:
    """What one start of a contestant has to measure."""
    transport: str
    ranks: int
    sizes: tuple
    seconds: float  # per size


@dataclasses.dataclass
class Contestant:
    """One library with one set of settings."""
    peer: str
    variant: str
    command: callable  # of a Heat: the words of the command
    parse: callable  # of its output: {(bytes, place): Samples}
    transports: tuple = ("shm", "tcp")
    environment: dict = dataclasses.field(default_factory=dict)
    bytes_min: int = 0  # outside of these sizes it is known to be no match, or to fail
    bytes_max: int = 1 << 62

    @property
    def name(self):
        return f"{self.peer}/{self.variant}"

    def measures(self, transport, size):
        return transport in self.transports and self.bytes_min <= size <= self.bytes_max


@dataclasses.dataclass
class Samples:
    microseconds: list
    wrong: int = 0


def parse_lines(text):
    """The output of the programs in bench/peers: one line of JSON per size and place."""
    found = {}
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            found[row["bytes"], row["place"]] = Samples(row["samples_us"], row["wrong"])
    return found


def parse_espalier(text):
    """The output of `espalier bench allreduce --json`: one document."""
    found = {}
    with contextlib.suppress(ValueError):
        for row in json.loads(text)["results"]:
            for place, key in (("in", "in_place"), ("out", "out_of_place")):
                if result := row.get(key):
                    samples = result.get("samples") or [result["time"]]
                    found[row["size"], place] = Samples(samples, result.get("nwrong") or 0)
    return found


def contest_words(peer, variant, heat):
    return ["--ranks", str(heat.ranks), "--sizes", ",".join(map(str, heat.sizes)), "--seconds", f"{heat.seconds:g}",
            "--iters", str(SAMPLES_MIN), "--peer", peer, "--variant", variant]


def openmpi_transport(heat, uses_ucx):
    if uses_ucx:
        layers = "self,sm" if heat.transport == "shm" else "self,tcp"
        return [*mca(pml="ucx", pml_ucx_tls="any", pml_ucx_devices="any"), "-x", f"UCX_TLS={layers}",
                "-x", "UCX_NET_DEVICES=lo"]
    return mca(btl="self,vader" if heat.transport == "shm" else "self,tcp", btl_tcp_if_include="lo")


def mca(**settings):
    return [word for name, value in settings.items() for word in ("--mca", name, str(value))]


def openmpi(programs):
    def variant(name, number=0, ucx=False, settings=(), **keywords):
        """number: an algorithm; 0 leaves the choice to Open MPI."""
        def command(heat):
            words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(heat.ranks)]
            # Without yielding, a rank that waits keeps the core from the one that it waits for.
            shared = heat.ranks > CORES
            words += mca(mpi_yield_when_idle=int(shared), oob_tcp_if_include="lo")
            words += [] if shared else ["--bind-to", "core"]
            words += openmpi_transport(heat, ucx)
            if number:
                words += mca(coll_tuned_use_dynamic_rules=1, coll_tuned_allreduce_algorithm=number, **dict(settings))
            return [*words, programs / "allreduce.openmpi", *contest_words("openmpi", name, heat)]
        environment = {} if name == "default" else HUGE
        return Contestant("openmpi", name, command, parse_lines, environment=environment, **keywords)

    segment = {"coll_tuned_allreduce_algorithm_segmentsize": 256 * KIB}
    thread = {"btl_tcp_progress_thread": 1}
    return [
        variant("default"),
        variant("linear", 1, bytes_max=MIB),
        variant("tree", 2, bytes_max=MIB),
        variant("rabenseifner", 6),
        variant("ring", 4, bytes_min=64 * KIB),
        variant("segmented-ring", 5, settings=segment, bytes_min=MIB),
        variant("rabenseifner-thread", 6, settings=thread, transports=("tcp",), bytes_min=64 * KIB),
        variant("ring-thread", 4, settings=thread, transports=("tcp",), bytes_min=MIB),
        variant("ucx", ucx=True),
        variant("ucx-linear", 1, ucx=True, transports=("shm",), bytes_max=MIB),
    ]


def mpich(programs):
    def variant(name, environment, **keywords):
        def command(heat):
            binding = ["-bind-to", "core"] if heat.ranks <= CORES else []
            return ["mpirun.mpich", "-n", str(heat.ranks), *binding, programs / "allreduce.mpich",
                    *contest_words("mpich", name, heat)]
        shm = Contestant("mpich", name, command, parse_lines, ("shm",), environment, **keywords)
        # Every process as if it were alone on its host, and UCX held to its TCP transport.
        tcp = {**environment, "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
        return [shm, Contestant("mpich", name, command, parse_lines, ("tcp",), tcp, **keywords)]

    doubling = {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "recursive_doubling"}
    return [
        *variant("default", {}),
        *variant("recursive-doubling", doubling, bytes_min=KIB, bytes_max=MIB),
        *variant("huge-pages", HUGE, bytes_min=MIB),
    ]


def gloo(programs):
    def variant(name, **keywords):
        def command(heat):
            return [programs / "allreduce.gloo", *contest_words("gloo", name, heat)]
        return Contestant("gloo", name, command, parse_lines, environment=HUGE, **keywords)

    return [
        variant("ring", bytes_min=64 * KIB),
        variant("bcube"),
        variant("halving-doubling"),
        variant("ring-chunked", bytes_min=MIB),
        # Reading in the caller blocks for ever once two ranks send each other more than sockets hold.
        variant("halving-doubling-sync", bytes_max=MIB),
    ]


def torch_python():
    """A Python that has PyTorch: the one that runs this, or Debian's. None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
                return python
    return None


def torch(_programs):
    """The Gloo inside of PyTorch, which has no shared memory: the same command in both parts of the table."""
    python, program = torch_python(), pathlib.Path(__file__).with_name("torch_allreduce.py")

    def command(heat):
        return [python, program, *contest_words("torch", "gloo", heat)]
    return [Contestant("torch", "gloo", command, parse_lines, environment=HUGE)]


def espalier(program, usage, memories):
    """The options beyond those that it must have are given only if its help mentions them."""
    def variant(memory, name, **keywords):
        def command(heat):
            words = [program, "bench", "allreduce", "--ranks", str(heat.ranks), "--transport", heat.transport,
                     "--size", ",".join(map(str, heat.sizes)), "--json"]
            if "--memory" in usage:
                words += ["--memory", memory]
            if "--seconds" in usage:
                words += ["--seconds", f"{heat.seconds:g}", "--iters", str(SAMPLES_MIN)]
            return words
        return Contestant(OURS + memory, name, command, parse_espalier, **keywords)

    found = [variant(memory, "default") for memory in memories]
    if "malloc" in memories:
        found.append(variant("malloc", "huge-pages", environment=HUGE, bytes_min=MIB))
    return found
