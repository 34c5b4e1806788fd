"""Hosts as network namespaces of this machine, with cables between them; for tests that need a network.

Names begin with "espaddr-" and the process' number, so that tests side by side do not meet, and what a killed test leaves
behind can be told apart. Everything is taken away at the end.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

SKIP = 77
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
KEY = "00112233445566778899aabbccddeeff" * 2


def skip_unless_possible(*tools):
    """Ends the test with a reason where there is no root, no tool or no namespace."""
    for tool in ("ip", *tools):
        if not shutil.which(tool):
            print(f"skipped: no {tool}")
            sys.exit(SKIP)
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        sys.exit(SKIP)
    name = f"espaddr-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        print(f"skipped: no network namespaces: {made.stderr.strip()}")
        sys.exit(SKIP)
    subprocess.run(["ip", "netns", "del", name], check=True)


def timed(test, *arguments):
    """Runs it, and says how long it took."""
    begin = time.monotonic()
    test(*arguments)
    print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


class Network:
    """Hosts by name. A host's file /etc/hosts is its own if it is given."""

    def __init__(self):
        self.hosts = {}
        self.cables = 0
        self.folder = tempfile.TemporaryDirectory()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for namespace in self.hosts.values():
            subprocess.run(["ip", "netns", "del", namespace], check=False)
            shutil.rmtree(f"/etc/netns/{namespace}", ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir("/etc/netns")
        self.folder.cleanup()

    def ip(self, host, *words):
        subprocess.run(["ip", "-n", self.hosts[host], *map(str, words)], check=True)

    def inside(self, host, *words):
        """The command line that runs words on a host, under its name."""
        return ["ip", "netns", "exec", self.hosts[host], "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host,
                *map(str, words)]

    def run(self, host, *words, check=True, **options):
        return subprocess.run(self.inside(host, *words), check=check, **options)

    def host(self, *names, hosts_file=None):
        for name in names:
            namespace = f"espaddr-{os.getpid()}-{name}"
            subprocess.run(["ip", "netns", "add", namespace], check=True)
            self.hosts[name] = namespace
            self.ip(name, "link", "set", "lo", "up")
            # Addresses are usable at once, without looking for others that have them.
            self.run(name, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad; "
                     "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
            if hosts_file is not None:
                os.makedirs(f"/etc/netns/{namespace}", exist_ok=True)
                with open(f"/etc/netns/{namespace}/hosts", "w", encoding="utf-8") as file:
                    file.write(hosts_file)

    def cable(self, one, other, device, *addresses, mtu=1500, rate=None):
        """One between two hosts, the device has the same name in both; addresses: pairs (one's, other's)."""
        self.cables += 1
        ends = [f"e{os.getpid() % 100000}x{self.cables}{end}" for end in "ab"]
        subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
        for end, host, at in zip(ends, (one, other), (0, 1)):
            subprocess.run(["ip", "link", "set", end, "netns", self.hosts[host]], check=True)
            self.ip(host, "link", "set", end, "name", device)
            self.ip(host, "link", "set", device, "mtu", mtu, "up")
            for pair in addresses:
                self.ip(host, "address", "add", pair[at], "dev", device, *(["nodad"] if ":" in pair[at] else []))
            if rate:
                self.run(host, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "32k", "latency", "50ms")

    def switch(self, device, **addresses):
        """All of the hosts at one bridge, each by a device of that name with its address; the bridge is a host of its own."""
        if "bridge" not in self.hosts:
            self.host("bridge")
            self.ip("bridge", "link", "add", "name", "bridge0", "type", "bridge")
            self.ip("bridge", "link", "set", "bridge0", "up")
        for host, address in addresses.items():
            end = f"{device}-{host}"
            self.cable(host, "bridge", end)
            self.ip(host, "link", "set", end, "down")
            self.ip(host, "link", "set", end, "name", device, "up")
            self.ip(host, "address", "add", address, "dev", device)
            self.ip("bridge", "link", "set", end, "master", "bridge0")

    def narrow_path(self, one, other):
        """Two hosts, 10.0.0.1 and 10.0.1.1, that think of jumbo frames, with two routers and a link of 1500 between them."""
        self.host(one, "r1", "r2", other)
        self.cable(one, "r1", "eth0", ("10.0.0.1/24", "10.0.0.254/24"), mtu=9000)
        self.cable("r1", "r2", "eth1", ("10.0.9.1/24", "10.0.9.2/24"))
        self.cable("r2", other, "eth0", ("10.0.1.254/24", "10.0.1.1/24"), mtu=9000)
        for router, beyond, hop in ("r1", "10.0.1.0/24", "10.0.9.2"), ("r2", "10.0.0.0/24", "10.0.9.1"):
            self.run(router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            self.ip(router, "route", "add", beyond, "via", hop)
        self.ip(one, "route", "add", "default", "via", "10.0.0.254")
        self.ip(other, "route", "add", "default", "via", "10.0.1.254")

    @contextlib.contextmanager
    def firewall(self, host, *rules):
        """Rules for what comes into a host, as long as the block lasts."""
        lines = ["table inet espaddr {", "chain input {", "type filter hook input priority 0", *rules, "}", "}", ""]
        self.run(host, "nft", "-f", "-", input="\n".join(lines).encode())
        yield
        self.run(host, "nft", "flush", "ruleset")

    def sent(self, host, device):
        """Bytes that a device has sent."""
        return int(self.run(host, "cat", f"/sys/class/net/{device}/statistics/tx_bytes", capture_output=True).stdout)

    def start(self, hosts, leader, *words, job="test", **settings):
        """A rank of a job on each of hosts; processes by rank."""
        ranks = []
        for rank, host in enumerate(hosts):
            env = {**CLEAN, "ESP_RANK": str(rank), "ESP_SIZE": str(len(hosts)), "ESP_LEADER": leader, "ESP_KEY": KEY,
                   "ESP_JOB": job, "ESP_JOIN_SECONDS": "60"}
            for name, value in settings.items():
                value = value[rank] if isinstance(value, (list, tuple)) else value
                if value is not None:
                    env["ESP_" + name.upper()] = str(value)
            ranks.append(subprocess.Popen(self.inside(host, *words), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True))
        return ranks

    def job(self, hosts, leader, *words, **settings):
        """The same to its end: (status, out, err) by rank."""
        ranks = self.start(hosts, leader, *words, **settings)
        return [(rank.wait(), out, err) for rank in ranks for out, err in [rank.communicate()]]
