"""What scripts/bench-plink measures: networks, sections, the jobs of a section in the order in which they are run, and how long
they will take. Nothing here runs anything.
"""
import dataclasses
import re

KIB, MIB = 1 << 10, 1 << 20
FRAME, PAYLOAD = 1514, 1448  # of a full packet: what a link counts, and what is data
CONTEST, GROUPS = "contest", "groups"
PLACES = ("contiguous", "interleaved")


# ---- networks ----


def parse_rate(text):
    """Bits per second of 200mbit; None: it is no rate."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)bit", text)
    return float(matched.group(1)) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[matched.group(2)] if matched else None


@dataclasses.dataclass(frozen=True)
class Network:
    racks: int
    hosts: int  # of each rack
    rate: str  # of a host
    oversubscribe: float

    @property
    def ranks(self):
        return self.racks * self.hosts

    @property
    def host_rate(self):
        return parse_rate(self.rate)

    @property
    def uplink_rate(self):
        return self.host_rate * self.hosts / self.oversubscribe

    def text(self):
        if self.racks == 1:
            return f"one rack of {self.hosts} hosts, {self.rate}"
        return f"{self.racks} racks of {self.hosts} hosts, {self.rate}, {self.oversubscribe:g}:1"


def seconds_on_links(network, size, host_share, uplink_share, host_rate=None, uplink_rate=None):
    """How long the busier of both needs for so many times the buffer, each way, in frames. Rates: as measured, else as asked."""
    bits = size * 8 * FRAME / PAYLOAD
    host = host_share * bits / (host_rate or network.host_rate)
    return max(host, uplink_share * bits / (uplink_rate or network.uplink_rate)) if network.racks > 1 else host


def bound_shares(network):
    """What any allreduce that splits its work evenly moves: a rank sends all but its own share, twice; so does a rack of the sums."""
    return 2 * (network.ranks - 1) / network.ranks, 2 * (network.racks - 1) / network.racks


def bound_seconds(network, size, host_rate=None, uplink_rate=None):
    """No allreduce is faster: the larger of what the link of a host and what the uplink of a rack must carry."""
    return seconds_on_links(network, size, *bound_shares(network), host_rate, uplink_rate)


def flat_over_bound(network):
    """How many times the bound flat takes at the best: each rank sends to all others alike."""
    n, h = network.ranks, network.hosts
    return seconds_on_links(network, 1, 2 * (n - 1) / n, h * 2 * (n - h) / n) / bound_seconds(network, 1)


def uplink_share(network, contestant, place):
    """About how much of the buffer an uplink carries each way. Only for saying how long a section takes."""
    n, h = network.ranks, network.hosts
    ring, apart, even = 2 * (n - 1) / n, h * 2 * (n - 1) / n, h * 2 * (n - h) / n
    together = place == "contiguous"
    if contestant in ("espalier", "two-level", "two-level true"):
        return bound_shares(network)[1]
    if contestant == "ring by groups":
        return ring
    if contestant in ("flat", "two-level random", "blind"):
        return even
    if contestant == "openmpi default":
        return even if together else 1.15 * apart
    if "ring" in contestant:
        return ring if together else apart
    return 0.8 * even if together else (even + apart) / 2


# ---- sections and their jobs ----


@dataclasses.dataclass(frozen=True)
class Section:
    name: str
    title: str
    kind: str
    network: Network
    sizes: tuple
    contestants: tuple
    places: tuple = PLACES
    rounds: int = 2
    iters: int = 3  # samples of a size in a round, at least
    seconds: float = 0.5  # for each size in a round, at least
    settings: tuple = ()  # of Espalier, for all of its jobs
    random_groups: int = 0  # balanced random groupings, over all rounds


LARGE = ("espalier", "two-level", "flat", "gloo ring", "gloo halving-doubling", "openmpi default", "openmpi ring")
GLOO = ("gloo ring", "gloo ring-chunked", "gloo halving-doubling", "gloo bcube")
BY_GROUPS = ("two-level", "two-level true", "two-level random", "ring by groups", "flat")
TOLD = ("espalier", "two-level", "ring by groups")  # what --topology says; the others are told nothing, or something else
ON_DEMAND = ("blind", "ring by groups", "two-level true", "openmpi rabenseifner", "gloo halving-doubling-sync")

TWO, FOUR = Network(2, 4, "1gbit", 4), Network(4, 4, "200mbit", 4)
TWO_8, FOUR_8 = dataclasses.replace(TWO, oversubscribe=8), dataclasses.replace(FOUR, oversubscribe=8)
SMALL = {"sizes": (MIB, 64 * KIB), "contestants": ("espalier", *GLOO, "openmpi default"), "rounds": 3, "seconds": 1}
# Fifty runs of each, and three in each of twenty random groupings; nothing but the groups is to differ.
FIFTY = {"contestants": BY_GROUPS, "places": ("random",), "rounds": 5, "iters": 10, "seconds": 0, "random_groups": 20,
         "settings": ("ESP_AUTOTUNE=off",)}

SECTIONS = (
    Section("2x4", "large buffers", CONTEST, TWO, (100 * MIB,), LARGE),
    Section("4x4", "large buffers", CONTEST, FOUR, (16 * MIB,), LARGE),
    Section("2x4-8", "uplinks twice as scarce", CONTEST, TWO_8, (16 * MIB,), LARGE),
    Section("2x4-small", "small buffers", CONTEST, TWO, **SMALL),
    Section("groups-2x4", "what groups are worth", GROUPS, TWO, (16 * MIB,), **FIFTY),
    Section("groups-4x4", "what groups are worth", GROUPS, FOUR, (4 * MIB,), **FIFTY),
    Section("uniform", "a uniform network, one connection to each peer", CONTEST, Network(1, 8, "1gbit", 1), (128_000_000, 4),
            ("flat", "espalier", *GLOO, "openmpi default", "openmpi ring"), ("contiguous",), iters=5, settings=("ESP_LANES=1",)),
    Section("4x4-8", "uplinks twice as scarce", CONTEST, FOUR_8, (4 * MIB,), LARGE),
    Section("4x4-small", "small buffers", CONTEST, FOUR, **SMALL),
)


@dataclasses.dataclass(frozen=True)
class Job:
    """One start of one contestant: what is measured, and kept, at once. Two that are equal measure the same."""
    section: str
    network: Network
    contestant: str
    place: str
    round: int
    sizes: tuple
    iters: int
    seconds: float
    settings: tuple  # of Espalier, as in ESP_LANES=1
    topology: str  # what Espalier is given: probe, true, or a file
    grouping: int = -1  # the seed of random groups

    def as_dict(self):
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(words):
        names = {field.name for field in dataclasses.fields(Job)}
        found = {name: value for name, value in words.items() if name in names}
        return Job(**{**found, "network": Network(**found["network"]), "sizes": tuple(found["sizes"]),
                      "settings": tuple(found["settings"])})

    def text(self):
        where = f"{self.contestant}, {self.place}" + (f", grouping {self.grouping}" if self.grouping >= 0 else "")
        return f"{self.section}, round {self.round + 1}: {where}"


def shared_out(total, parts, index):
    """Which of so many things part number index gets, as evenly as can be."""
    return range(total * index // parts, total * (index + 1) // parts)


def largest_size(contestant):
    """Reading its sockets in the caller, Gloo waits for ever once both ends have more to send than sockets hold."""
    return 64 * KIB if contestant.endswith("-sync") else 1 << 62


def turns_of(section, number):
    """(contestant, place, grouping) of a round; each round begins with another one, so that what disturbs the machine disturbs all."""
    turns = []
    for place in section.places:
        where = f"random:{number + 1}" if place == "random" else place
        for contestant in section.contestants:
            seeds = shared_out(section.random_groups, section.rounds, number) if contestant == "two-level random" else (-1,)
            turns += [(contestant, where, seed) for seed in seeds]
    first = number * len(turns) // section.rounds
    return turns[first:] + turns[:first]


def jobs_of(section, topology="probe"):
    """All rounds, one after the other: whoever stops early has whole rounds."""
    jobs = []
    for number in range(section.rounds):
        for contestant, place, seed in turns_of(section, number):
            sizes = tuple(size for size in section.sizes if size <= largest_size(contestant))
            # Random groupings are many, so each of them gets fewer runs.
            iters = section.iters if seed < 0 else -(-section.iters * section.rounds // section.random_groups)
            if sizes:
                jobs.append(Job(section.name, section.network, contestant, place, number, sizes, iters, section.seconds,
                                section.settings if is_ours(contestant) else (), topology if contestant in TOLD else "", seed))
    return jobs


def is_ours(contestant):
    return not contestant.startswith(("gloo", "openmpi"))


# ---- how long it takes ----

LAB_SECONDS = 3  # to make a lab, and to measure its links
PROBE_SECONDS = 8.5  # espalier probe, for jobs that are given groups
START_SECONDS = {"espalier": 1, "gloo": 1, "openmpi": 4}
OWN_PROBE_SECONDS = 3.5  # of a job that probes by itself
EXTRA_CALLS = 4  # warm-up, and the calls that are checked
CALL_SECONDS = 0.003  # that even the smallest takes


def call_seconds(job, size):
    host = bound_shares(job.network)[0]
    return CALL_SECONDS + 1.03 * seconds_on_links(job.network, size, host, uplink_share(job.network, job.contestant, job.place))


def job_seconds(job):
    """About how long a job takes, on a machine that does nothing else."""
    total = START_SECONDS.get(job.contestant.split()[0], START_SECONDS["espalier"])
    if job.contestant == "espalier" and job.topology == "probe":
        total += OWN_PROBE_SECONDS
    for size in job.sizes:
        call = call_seconds(job, size)
        total += EXTRA_CALLS * call + max(job.iters * call, job.seconds)
    return total


def section_seconds(jobs):
    """With the lab, and the probes that come before jobs which are given groups."""
    if not jobs:
        return 0
    probes = {probe_seed(job) for job in jobs if needs_probe(job)}
    return LAB_SECONDS + PROBE_SECONDS * len(probes) + sum(job_seconds(job) for job in jobs)


def needs_probe(job):
    """It is given what was probed before; `espalier` alone probes by itself."""
    return job.topology == "probe" and job.contestant in ("two-level", "ring by groups")


def probe_seed(job):
    """Where ranks are scattered anew in each round, the network is probed anew, too; else once for a lab."""
    return job.round + 1 if job.place.startswith("random:") else 1
