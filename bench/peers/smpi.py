"""SimGrid's SMPI as a second opinion: platforms that say the same as ours, and running an allreduce on them."""
import dataclasses
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import time

# SimGrid's network as plain as ours: flows share links max-min fairly, nothing is corrected for what TCP does on real
# links (CM02 has no factors), acknowledgements take no bandwidth, no window limits a flow, and computing, copies
# within a rank and looking at the clock cost nothing. A message starts when it is sent, whether or not its receive is
# posted, as ours does within its credits.
ALIKE = {
    "network/model": "CM02",
    "network/crosstraffic": "0",
    "network/weight-S": "0",
    "network/TCP-gamma": "0",
    "network/loopback-bw": "1e18",
    "network/loopback-lat": "0",
    "smpi/simulate-computation": "no",
    "smpi/host-speed": "1Gf",
    "smpi/wtime": "0",
    "smpi/send-is-detached-thresh": "2000000000",
    "smpi/async-small-thresh": "2000000000",
}


@dataclasses.dataclass(frozen=True)
class Network:
    hosts: int
    racks: int = 1
    oversubscribe: float = 1
    place: str = "contiguous"
    gbps: float = 10
    delay_us: float = 5

    def text(self):
        if self.racks == 1:
            return "one switch"
        return f"{self.racks} racks, {self.oversubscribe:g} to 1, {self.place}"


def platform_text(network):
    """Racks are clusters without a backbone; what goes between racks takes the uplink of one, then that of the other."""
    size = network.hosts // network.racks
    host_rate, delay = network.gbps * 1e9 / 8, network.delay_us * 1e-6
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">', '<platform version="4.1">',
             '<zone id="core" routing="Full">']
    for rack in range(network.racks):
        lines.append(f'<cluster id="rack{rack}" prefix="node" suffix="" radical="{rack * size}-{rack * size + size - 1}" '
                     f'speed="1Gf" bw="{host_rate:.0f}Bps" lat="{delay:.9f}s" sharing_policy="SPLITDUPLEX" '
                     f'router_id="switch{rack}"/>')
    uplink = host_rate * size / network.oversubscribe
    lines += [f'<link id="up{rack}" bandwidth="{uplink:.0f}Bps" latency="0s" sharing_policy="SPLITDUPLEX"/>'
              for rack in range(network.racks)]
    lines += [f'<zoneRoute src="rack{a}" dst="rack{b}" gw_src="switch{a}" gw_dst="switch{b}" symmetrical="NO">'
              f'<link_ctn id="up{a}" direction="UP"/><link_ctn id="up{b}" direction="DOWN"/></zoneRoute>'
              for a in range(network.racks) for b in range(network.racks) if a != b]
    return "\n".join([*lines, "</zone>", "</platform>", ""])


def hostfile_text(network):
    size = network.hosts // network.racks
    if network.place == "contiguous":
        order = range(network.hosts)
    else:
        order = [rank % network.racks * size + rank // network.racks for rank in range(network.hosts)]
    return "".join(f"node{host}\n" for host in order)


@dataclasses.dataclass(frozen=True)
class Run:
    output: str
    cpu_s: float
    wall_s: float


class Failed(Exception):
    """A command that did not do what it should."""


def timed(words, **options):
    """Runs a command; user and system time of it and of all that it waited for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         stdin=subprocess.DEVNULL, **options)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        raise Failed(f"{shlex.join(map(str, words))}\nended with {run.returncode}:\n{run.stdout[-2000:]}")
    return Run(run.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def is_installed():
    return all(shutil.which(name) for name in ("smpicc", "smpirun"))


def version():
    found = re.search(r"version (\S+)", timed(["smpirun", "-version"]).output)
    return found.group(1) if found else "of unknown version"


class Smpi:
    def __init__(self, source, program, folder):
        """Builds the program if its source is newer. The folder is for platforms and traces."""
        self.program, self.folder = program, pathlib.Path(folder)
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            program.parent.mkdir(parents=True, exist_ok=True)
            timed(["smpicc", "-O2", source, "-o", program])

    def words(self, network, algorithm, log):
        platform, hosts = self.folder / "platform.xml", self.folder / "hosts"
        platform.write_text(platform_text(network))
        hosts.write_text(hostfile_text(network))
        settings = [f"--cfg={name}:{value}" for name, value in {**ALIKE, "smpi/allreduce": algorithm}.items()]
        return ["smpirun", "-np", network.hosts, "-platform", platform, "-hostfile", hosts, "--log=root.thres:critical",
                *log, *settings]

    def run(self, network, algorithm, size, folded=False):
        """Runs the program, every rank for itself with data; returns virtual seconds and what that cost."""
        words = [*self.words(network, algorithm, []), self.program, size // 4, *(["folded"] if folded else [])]
        run = timed(words, cwd=self.folder)
        found = re.search(r"seconds (\S+) wrong (\d+)", run.output)
        if not found or found.group(2) != "0":
            raise Failed(f"{shlex.join(map(str, words))}\n{'wrong sums' if found else 'no result'}:\n{run.output[-2000:]}")
        return float(found.group(1)), run

    def replay(self, network, algorithm, size):
        """The same from a trace: SMPI's cheapest way, which moves no data at all."""
        names = []
        for rank in range(network.hosts):
            trace = self.folder / f"trace-{rank}"
            trace.write_text(f"{rank} init\n{rank} allreduce {size} 0\n{rank} finalize\n")
            names.append(str(trace))
        listing = self.folder / "traces"
        listing.write_text("\n".join(names) + "\n")
        words = [*self.words(network, algorithm, ["--log=smpi_replay.thres:info"]), "-replay", listing]
        run = timed(words, cwd=self.folder)
        found = re.search(r"Simulation time (\S+)", run.output)
        if not found:
            raise Failed(f"{shlex.join(map(str, words))}\nno result:\n{run.output[-2000:]}")
        return float(found.group(1)), run


