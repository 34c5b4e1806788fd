"""The contestants of scripts/bench-plink: how each is started on a lab. bench/peers/README.md tells what a sample is."""
import contextlib
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import tempfile

from contestants import CORES, mca, parse_espalier, parse_lines
from lab import Lab
from sections import is_ours, job_seconds, needs_probe, probe_seed

MPI_ALGORITHMS = {"ring": 4, "rabenseifner": 6}  # of Open MPI's component tuned


class Failed(Exception):
    """A job that gave no result, or a wrong one: why, and what else may help."""

    def __init__(self, reason, details=""):
        super().__init__(reason)
        self.details = details


class Ground:
    """A lab while jobs are measured on it, and what they need to know of it."""

    def __init__(self, section, store, arguments):
        self.section, self.network, self.store = section.name, section.network, store
        self.program, self.peers, self.limit = arguments.build / "espalier", arguments.build / "peers", arguments.limit
        self.congestion, self.seed = arguments.congestion, arguments.seed
        self.placed, self.probed, self.agent = {}, {}, None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-plink-")))
            options = ["--racks", self.network.racks, "--hosts", self.network.hosts, "--rate", self.network.rate, "--oversubscribe",
                       self.network.oversubscribe, "--seed", self.seed]
            self.lab = stack.enter_context(Lab(self.program, f"plink{os.getpid()}", options, self.congestion))
            self.truth = self.folder / "true"
            self.truth.write_text(self.lab.topology_text())
            self.number = self.store.add_lab(self.section, self.network, self.lab.facts["checks"])
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *what):
        return self.stack.__exit__(*what)

    def time_for(self, job):
        """Far more than it should take: only for what hangs."""
        return self.limit or 60 + 4 * job_seconds(job)

    def words(self, place, options, command, limit):
        """That start a command on each host as a rank. limit: seconds."""
        return self.lab.words("run", "--place", place, "--no-prefix", "--timeout", f"{limit:.0f}", *options, "--", *command)

    def start(self, place, options, command, limit=120):
        """What it printed."""
        text, trouble = finish(self.words(place, options, command, limit))
        if trouble:
            raise trouble
        return text

    # ---- topologies for Espalier ----

    def racks(self):
        """{host: rack} as it really is, in the order of the racks."""
        return dict(re.findall(r"^host (\S+) under (\S+)", self.truth.read_text(), re.MULTILINE))

    def probe(self, seed, place):
        """The file of what espalier probe finds; how near that is to the racks is kept."""
        if seed not in self.probed:
            found, racks = self.folder / f"probed-{seed}", self.folder / "racks"
            racks.write_text("".join(f"{host} {rack}\n" for host, rack in self.racks().items()))
            text = self.start(place, [], [self.program, "probe", "--json", "--seed", seed, "--out", found, "--racks", racks])
            try:
                facts = json.loads(text)
                self.store.add_probe(self.number, {"seed": seed, "seconds": facts["seconds"], "groups": len(facts["groups"]),
                                                   "verdict": facts["verdict"]["word"],
                                                   "ami": facts["truth"]["adjusted_mutual_information"]})
            except (ValueError, KeyError) as error:
                raise Failed(f"espalier probe printed what makes no sense ({error})", text[-1000:]) from None
            self.probed[seed] = found
        return self.probed[seed]

    def random_groups(self, seed):
        """As many groups as there are racks, equally large, of hosts that the seed has drawn; links are those of the racks."""
        path = self.folder / f"random-{seed}"
        path.write_text(regrouped(self.truth.read_text(), seed))
        return path

    def topology(self, job):
        """What a job of Espalier is given; None: nothing."""
        if job.contestant in ("flat", "blind"):
            return None
        if job.contestant == "two-level random":
            return self.random_groups(job.grouping)
        if job.contestant == "two-level true" or job.topology == "true":
            return self.truth
        if needs_probe(job):
            return self.probe(probe_seed(job), job.place)
        return job.topology

    # ---- Open MPI's way onto the hosts ----

    def hosts(self, place):
        """The host of each rank under a placement."""
        if place not in self.placed:
            lines = self.start(place, [], ["sh", "-c", 'echo "$ESP_RANK $(hostname)"']).split("\n")
            self.placed[place] = [host for _, host in sorted((int(r), h) for r, h in (line.split() for line in lines if line))]
        return self.placed[place]

    def remote_shell(self):
        """A script that runs a command on a host, from any other: by entering the namespaces of a process that is held there."""
        if self.agent:
            return self.agent
        at, agent = self.folder / "at", self.folder / "agent"
        at.mkdir()
        script = 'echo $$ > "$1/$(hostname)" && echo ready && exec sleep infinity'
        words = self.lab.words("run", "--no-prefix", "--", "sh", "-c", script, "hold", at)
        holder = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.stack.callback(holder.wait)
        self.stack.callback(holder.terminate)
        if any(holder.stdout.readline() != "ready\n" for _ in range(self.network.ranks)):
            raise Failed("no process could be started on the hosts for Open MPI's remote shell to enter")
        agent.write_text('#!/bin/sh\nhost=$1; shift\n'
                         f'exec nsenter -t "$(cat {shlex.quote(str(at))}/$host)" -n -u -i -m -- sh -c "$*"\n')
        agent.chmod(0o755)
        self.agent = agent
        return agent


def regrouped(topology, seed):
    """The same tree, with its hosts under switches by chance."""
    hosts = re.findall(r"^host (\S+)", topology, re.MULTILINE)
    random.Random(seed).shuffle(hosts)
    names = iter(hosts)
    return re.sub(r"^host \S+", lambda _: f"host {next(names)}", topology, flags=re.MULTILINE)


def finish(words):
    """What it printed, and how it failed, or None."""
    words = [str(word) for word in words]
    run = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode == 0:
        return run.stdout, None
    said = [line for line in run.stderr.strip().splitlines() if line.strip(" -")]
    reason = f"exit status {run.returncode}" + (f": {said[-1][:300]}" if said else "")
    return run.stdout, Failed(reason, f"{shlex.join(words)}\n{run.stderr.strip()[-2000:]}")


# ---- starting one ----


def contest_words(job, peer, variant):
    return ["--sizes", ",".join(map(str, job.sizes)), "--seconds", f"{job.seconds or 0.001:g}", "--iters", str(job.iters), "--in-place",
            "--peer", peer, "--variant", variant]


def run_espalier(ground, job):
    plan = {"two-level true": "two-level", "two-level random": "two-level", "ring by groups": "ring", "espalier": None,
            "blind": None}.get(job.contestant, job.contestant)
    words = [ground.program, "bench", "allreduce", "--size", ",".join(map(str, job.sizes)), "--seconds", f"{job.seconds:g}",
             "--iters", job.iters, "--warmup", 0, "--in-place", "--json", *(["--plan", plan] if plan else [])]
    topology = ground.topology(job)
    settings = [*job.settings, *([f"ESP_TOPOLOGY={topology}"] if topology else [])]
    options = [word for setting in settings for word in ("--env", setting)]
    text = ground.start(job.place, options, words, ground.time_for(job))
    with contextlib.suppress(ValueError, KeyError):
        return parse_espalier(text), {row["size"]: row["plan"] for row in json.loads(text)["results"]}
    raise Failed("espalier bench printed what makes no sense", text[-1000:])


def run_peer(job, words):
    """One that has measured everything has done its part, however it ends: Open MPI may not find an end where cores are few."""
    text, trouble = finish(words)
    found = parse_lines(text)
    if trouble and any((size, "in") not in found for size in job.sizes):
        raise trouble
    return found, {}


def run_gloo(ground, job):
    variant = job.contestant.split(" ", 1)[1]
    with tempfile.TemporaryDirectory(prefix="bench-plink-") as folder:
        words = [ground.peers / "allreduce.gloo", "--ranks", job.network.ranks, *contest_words(job, "gloo", variant)]
        return run_peer(job, ground.words(job.place, ["--env", f"GLOO_FOLDER={folder}"], words, ground.time_for(job)))


def run_openmpi(ground, job):
    """mpirun runs on the host of rank 0, and reaches the others through the remote shell."""
    variant, hosts = job.contestant.split(" ", 1)[1], ground.hosts(job.place)
    # ob1: UCX, where Open MPI has it, sees that all hosts are one machine and goes through its memory, past the lab's links.
    settings = {"plm_rsh_agent": ground.remote_shell(), "pml": "ob1", "btl": "self,tcp", "btl_tcp_if_include": "e0", "oob_tcp_if_include": "e0",
                "mpi_yield_when_idle": int(len(hosts) > CORES)}
    if variant in MPI_ALGORITHMS:
        settings |= {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_allreduce_algorithm": MPI_ALGORITHMS[variant]}
    words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", len(hosts), "--host", ",".join(hosts), "--map-by", "node",
             "--bind-to", "none", *mca(**settings), ground.peers / "allreduce.openmpi", *contest_words(job, "openmpi", variant)]
    return run_peer(job, ground.lab.words("exec", hosts[0], "--", "timeout", f"{ground.time_for(job):.0f}", *words))


def run_job(ground, job):
    """[{"bytes", "samples_us", "plan"}], checked; Failed."""
    run = run_espalier if is_ours(job.contestant) else run_gloo if job.contestant.startswith("gloo") else run_openmpi
    found, plans = run(ground, job)
    if any(samples.wrong for samples in found.values()):
        raise Failed("wrong results")
    missing = [size for size in job.sizes if (size, "in") not in found or not found[size, "in"].microseconds]
    if missing:
        raise Failed(f"no samples of {', '.join(map(str, missing))} bytes")
    return [{"bytes": size, "samples_us": found[size, "in"].microseconds, **({"plan": plans[size]} if size in plans else {})}
            for size in job.sizes]
