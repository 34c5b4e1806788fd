"""A job that is disturbed by strangers: what the test and the measurement have in common."""
import contextlib
import json
import os
import pathlib
import subprocess
import time


def descendants(pid):
    """The process, its children and theirs."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in pathlib.Path(task, "children").read_text().split():
                found += descendants(int(child))
    return found


def listening(pid="self"):
    """{inode: port} of the TCP ports that somebody listens on, in the network of a process."""
    found = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/net", name).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    found[words[9]] = int(words[1].rpartition(":")[2], 16)
    return found


def ports_of(pids):
    """The TCP ports that these processes listen on."""
    found = set()
    for pid in pids:
        inodes = listening(pid)
        with contextlib.suppress(OSError):
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(fd)
                    if target.startswith("socket:["):
                        found.add(inodes.get(target[8:-1]))
    return sorted(found - {None})


def await_ports(pids, count, seconds=30):
    """Waits until processes (a function: they may still be starting) listen on so many ports."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = ports_of(pids())
        if len(found) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the ranks do not listen on {count} ports after {seconds} s, but on {ports_of(pids())}")


def send_strangers(stranger, ports, seconds, rate, kinds=None, seed=1, stay=None, prefix=()):
    words = [stranger, "--ports", ",".join(map(str, ports)), "--seconds", str(seconds), "--rate", str(rate), "--seed", str(seed)]
    words += ["--kinds", kinds] if kinds else []
    words += ["--stay", str(stay)] if stay else []
    return subprocess.Popen([*prefix, *words], stdout=subprocess.PIPE, text=True)


def tally(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, f"stranger ended with {process.returncode}"
    return json.loads(out)["kinds"]


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def steward_seconds(pid):
    """Processor time of the thread that stands at the ports of a rank."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().strip() == "esp-steward":
                return int((task / "schedstat").read_text().split()[0]) / 1e9
    return 0.0
