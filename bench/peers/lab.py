"""An emulated cluster (docs/lab.md) for as long as a benchmark needs it."""
import json
import shlex
import signal
import subprocess
import sys


class Lab:
    def __init__(self, program, name, options, congestion):
        self.program, self.name, self.congestion = program, name, congestion
        self.options = [str(word) for word in options]

    def words(self, command, *words):
        return [str(word) for word in (self.program, "lab", command, "--name", self.name, *words)]

    def __enter__(self):
        """Where the kernel does not let namespaces choose the congestion control that is wanted, reno is taken."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through __exit__(), as Ctrl-C
        for name in dict.fromkeys((self.congestion, "reno")):
            run = subprocess.run(self.words("up", "--json", *self.options, "--congestion", name), capture_output=True, text=True)
            if run.returncode == 0:
                self.facts = json.loads(run.stdout)
                return self
            if "congestion control" not in run.stderr:
                break
        raise SystemExit(run.stderr.strip())

    def __exit__(self, *_):
        subprocess.run(self.words("down"), check=True)

    def run(self, place, limit, options, command, parse):
        """Runs a job, and returns what rank 0 measured in place: {bytes: microseconds}."""
        words = self.words("run", "--place", place, "--no-prefix", "--timeout", limit, *options, "--", *command)
        run = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        found = parse(run.stdout)
        if run.returncode != 0 or not found:
            raise SystemExit(f"{shlex.join(words)}\nended with {run.returncode}:\n{run.stderr[-2000:]}")
        if any(samples.wrong for samples in found.values()):
            raise SystemExit(f"{shlex.join(words)}\nhad wrong results")
        return {size: samples.microseconds for (size, way), samples in found.items() if way == "in"}

    def topology_text(self):
        """What the lab is, as a topology file."""
        return subprocess.run(self.words("topology"), stdout=subprocess.PIPE, text=True, check=True).stdout

    def checks_text(self):
        return "; ".join(f"{row['link']} {row['bits_per_second'] / 1e6:.1f} of {row['asked_bits_per_second'] / 1e6:g} Mbit/s, "
                         f"rtt {row['rtt_seconds'] * 1e3:.3f} ms" for row in self.facts["checks"])
