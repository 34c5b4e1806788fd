#!/usr/bin/env python3
"""espalier lab from outside: real namespaces, real links, and nothing left of them.

lab_cli_test.py ESPALIER HELLO MAN_PAGE quick|long

Works as root, or without where the kernel lets users have namespaces; otherwise it is skipped. Nothing here is a matter of
time: what is counted are packets, and what has to happen is waited for.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

OK, NO, USAGE, SKIPPED = 0, 1, 2, 77
ESPALIER, HELLO = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MAN_PAGE = pathlib.Path(sys.argv[3])
NAME = f"t{os.getpid()}"
PATIENCE = 60  # seconds, for what takes milliseconds
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}

# Counts numbered datagrams until it is told to stop, then says what came.
COUNTER = """
import json, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind((sys.argv[1], 7000))
print("ready", flush=True)
seen, newest, late, twice, broken = set(), -1, 0, 0, 0
while True:
    data, who = s.recvfrom(65536)
    if data == b"ping":
        s.sendto(b"pong", who)
        continue
    if data == b"stop":
        print(json.dumps(dict(seen=sorted(seen), late=late, twice=twice, broken=broken)))
        break
    number = int(data[:8])
    broken += data[8:] != b"x" * (len(data) - 8)
    twice += number in seen
    late += number < newest
    newest = max(newest, number)
    seen.add(number)
"""
# Sends numbers [first, end), or the word "stop" once, or "ping" until something comes back.
SENDER = """
import socket, sys
to, word = (sys.argv[1], 7000), sys.argv[3]
family = socket.AF_INET6 if ":" in to[0] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
for number in range(int(sys.argv[2]), int(word) if word.isdigit() else 0):
    s.sendto(b"%08d" % number + b"x" * 200, to)
s.settimeout(0.2)
if word == "stop":
    s.sendto(b"stop", to)
while word == "ping":
    s.sendto(b"ping", to)
    try:
        s.recv(100)
        break
    except socket.timeout:
        pass
"""


def call(*words, **options):
    run = subprocess.run([ESPALIER, "lab", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, env=CLEAN,
                         stdin=subprocess.DEVNULL, **options)
    return run.returncode, run.stdout, run.stderr


def lab(command, *words):
    """A command on our lab that has to work; returns what it prints."""
    status, out, err = call(command, "--name", NAME, *words)
    assert status == OK, (command, words, status, out, err)
    return out


def status():
    return json.loads(lab("status", "--json"))


def links(**wanted):
    return [link for link in status()["links"] if all(link[key] == value for key, value in wanted.items())]


def address(rack, slot, interface=0):
    return links(kind="host", rack=rack, slot=slot, interface=interface)[0]["address"]


def relayed(link, what):
    return sum(link[way]["relayed"][what] for way in ("from", "to"))


def wait_until(done, what):
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"{what}: has not happened"


def on(place, *words):
    return [ESPALIER, "lab", "exec", "--name", NAME, place, "--", *map(str, words)]


class Traffic:
    """Datagrams from one host to another, counted where they arrive."""

    def __init__(self, source, target, to):
        self.source, self.to = source, to
        self.counter = subprocess.Popen(on(target, sys.executable, "-c", COUNTER, to), stdout=subprocess.PIPE, text=True,
                                        env=CLEAN)
        assert self.counter.stdout.readline() == "ready\n"
        self.send(0, "ping")  # and they know each other's addresses: what waits for that, the kernel drops after some

    def send(self, first, end):
        subprocess.run(on(self.source, sys.executable, "-c", SENDER, self.to, first, end), check=True, timeout=PATIENCE,
                       env=CLEAN)

    def tally(self):
        """What came before it was told to stop, which may take several attempts if packets are lost."""
        def told():
            self.send(0, "stop")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.counter.wait(0.2)
            return self.counter.poll() is not None
        wait_until(told, "the counter stops")
        with self.counter.stdout:
            return json.loads(self.counter.stdout.read())


# ---- nothing is left ----


def network_of(process):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{process}/ns/net")
    return None


def processes():
    return [entry for entry in os.listdir("/proc") if entry.isdigit()]


def is_gone(network):
    """No process is in it; one that has ended and waits for its parent is nowhere."""
    return all(network_of(process) != network for process in processes())


def networks_of_lab(places):
    return [subprocess.run(on(place, "readlink", "/proc/self/ns/net"), check=True, capture_output=True, text=True,
                           env=CLEAN).stdout.strip() for place in places]


def labs():
    return call("list")[1].split()


def keepers():
    """Processes that carry the name of our lab and have not ended."""
    found = []
    for process in processes():
        with contextlib.suppress(OSError):
            state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if pathlib.Path(f"/proc/{process}/comm").read_text().strip() == f"esp-lab-{NAME}"[:15] and state != "Z":
                found.append(process)
    return found


def check_nothing_left(networks=()):
    assert NAME not in labs()
    wait_until(lambda: not keepers(), "the keeper ends")
    for network in networks:
        wait_until(lambda: is_gone(network), f"nobody is in {network}")
    assert "espalier-lab" not in pathlib.Path("/proc/self/mountinfo").read_text()
    assert not any("espalier" in name for folder in ("/run", "/run/netns", "/var/run/netns") if os.path.isdir(folder)
                   for name in os.listdir(folder))


@contextlib.contextmanager
def up(*words):
    lab("up", "--no-check", *words)
    networks = networks_of_lab(["rack0/0", "rack0"])
    try:
        yield
    finally:
        assert call("down", "--name", NAME)[0] == OK
        check_nothing_left(networks)


# ---- quick ----


def test_usage():
    for words, reason in ((["up", "--rate", "1gbps"], "1gbit"), (["up", "--racks", "0"], "from 1 to"),
                          (["up", "--name", "a/b"], "letters"), (["up", "--rate", "1gbit,2gbit", "--interfaces", "3"], "rates"),
                          (["up", "--mtu", "100"], "MTU"), (["up", "--oversubscribe", "0"], "above 0"),
                          (["up", "--delay", "5"], "5ms"), (["up", "--racks", "1000", "--hosts", "1000"], "at most"),
                          (["uq"], "did you mean 'up'"), (["set", "node1"], "missing"), (["run"], "no command"),
                          (["run", "--place", "round", "--", "true"], "interleaved")):
        code, _, err = call(*words)
        assert code == USAGE and reason in err, (words, code, err)


def test_without_a_lab():
    for words in (["status"], ["topology"], ["down"], ["check"], ["set", "all", "cut"], ["run", "--", "true"], ["exec", "node0", "--", "true"]):
        code, _, err = call(words[0], "--name", NAME, *words[1:])
        assert code == NO and f"no lab {NAME}: espalier lab up --name {NAME}" in err, (words, code, err)


def test_help():
    page = MAN_PAGE.read_text()
    for name in ("up", "run", "exec", "set", "check", "status", "topology", "list", "down"):
        code, out, _ = call(name, "--help")
        assert code == OK and f"usage: espalier lab {name}" in out
        for option in re.findall(r"--([a-z0-9-]+)", out.split("options:")[1]):
            text = "\\-\\-" + option.replace("-", "\\-")
            assert option == "help" or text in page, f"--{option} of lab {name} in {MAN_PAGE}"


def test_a_small_lab():
    with up("--racks", "2", "--hosts", "2", "--rate", "200mbit", "--oversubscribe", "2"):
        assert NAME in labs()
        assert call("up", "--name", NAME)[0] == NO  # there is one already
        state = status()
        hosts, uplinks = links(kind="host"), links(kind="uplink")
        assert state["racks"] == 2 and len(hosts) == 4 and len(uplinks) == 2
        assert {link["rate_bits_per_second"] for link in hosts} == {200_000_000}
        assert {link["rate_bits_per_second"] for link in uplinks} == {200_000_000}
        hello_and_errors(hosts)
        hosts_are_hosts(hosts)
        a_topology(hosts)
        cut_and_heal()
        everything_heals()
        processes_end_with_the_lab()


def hello_and_errors(hosts):
    for words in ([], ["--place", "interleaved"], ["--place", "random:7", "-n", "3"], ["--per-host", "2"]):
        out = lab("run", *words, "--", HELLO)
        ranks = 3 if "-n" in words else 8 if "--per-host" in words else 4
        assert sorted(out.splitlines()) == sorted(
            f"[{rank}] rank {rank} of {ranks}: {ranks} ranks, their numbers add up to {ranks * (ranks - 1) // 2}"
            for rank in range(ranks)), out
    out = lab("run", "--place", "interleaved", "--", "sh", "-c", "hostname")
    names = {line.split()[1]: int(line[1]) for line in out.splitlines()}
    for link in hosts:
        assert names[link["host"]] % 2 == link["rack"], (names, hosts)
    assert call("run", "--name", NAME, "--", "sh", "-c", "exit 7")[0] == 7
    assert call("run", "--name", NAME, "--", "/no/such/command")[0] == 127
    assert call("run", "--name", NAME, "-n", "5", "--", "true")[0] == USAGE
    assert call("exec", "--name", NAME, "rack0/0", "--", "sh", "-c", "exit 9")[0] == 9
    for words in (["nobody", "cut"], ["all", "loss", "1"], ["all", "cutt"], ["all:e1", "cut"]):
        assert call("set", "--name", NAME, *words)[0] == USAGE, words


def hosts_are_hosts(hosts):
    """Each has its name, its interface with its address, its memory, and knows the others."""
    link = hosts[0]
    script = ("import os, socket; print(socket.gethostname(), socket.gethostbyname(socket.gethostname()), "
              "sorted(os.listdir('/dev/shm')), sorted(os.listdir('/sys/class/net')))")
    run = subprocess.run(on(link["host"], sys.executable, "-c", script), capture_output=True, text=True, env=CLEAN, check=True)
    name, where, rest = run.stdout.split(" ", 2)
    assert (name, where) == (link["host"], link["address"]) and rest.startswith("[]")
    assert "e0" in rest or os.geteuid() != 0, rest  # a container may forbid another /sys to users


def a_topology(hosts):
    """What the lab is, as a file; a job that is given it follows the racks, wherever its ranks are."""
    text = lab("topology")
    assert text.startswith("topology 1\n") and "switch rack1 under core rate 200mbit\n" in text, text
    for link in hosts:
        assert f"host {link['host']} under rack{link['rack']} rate 200mbit\n" in text, text
    assert call("topology", "--name", NAME, "--interface", "1")[0] == USAGE
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "net"
        file.write_text(text)
        for place, more, plans in (("contiguous", [], None), ("interleaved", [], None),
                                   ("random:3", ["--per-host", "2"], ["two-level", "three-level", "ring"])):
            for plan in plans or ["two-level", "ring", "halving-doubling", None]:
                words = ["--plan", plan] if plan else []
                status, out, err = call("run", "--name", NAME, "--place", place, *more, "--topology", file, "--env", "ESP_LOG=info",
                                        "--", ESPALIER, "bench", "allreduce", "--size", "256K", "--iters", "1", "--seconds", "0.01",
                                        *words)
                ranks = 8 if more else 4
                assert status == OK and "Out of bounds values : 0 OK" in out, (status, out, err)
                assert err.count(f"PLAN topology {file}: 4 hosts, 4 of them in this job") == 1, err
                said = {"two-level": r"two-level, [24] groups", "three-level": "three-level, 4 groups in 2 zones",
                        "ring": "ring, in the order of the topology",
                        "halving-doubling": "halving-doubling, in the order of the topology", None: "(two|ring|halv)"}[plan]
                assert re.search(f"PLAN allreduce of blocks of 262144 bytes between {ranks} ranks: {said}", err), err


def cut_and_heal():
    traffic = Traffic("rack0/0", "rack1/0", address(1, 0))
    traffic.send(0, 10)
    lab("set", "rack1", "cut")
    traffic.send(10, 20)
    lab("set", "rack1", "heal")
    lab("set", "--direction", "from", "rack0/0", "cut")
    traffic.send(20, 30)
    lab("set", "rack0/0", "heal")
    lab("set", "--direction", "to", "rack0/0", "cut")  # what comes from there still passes
    traffic.send(30, 40)
    lab("set", "rack0/0", "heal")
    assert traffic.tally()["seen"] == [*range(10), *range(30, 40)]


def everything_heals():
    """all is every host, but what heals are the uplinks too."""
    lab("set", "rack0", "cut")
    lab("set", "racks", "rate", "100mbit", "delay", "1ms")
    lab("set", "all", "loss", "1%")
    lab("set", "all", "heal")
    assert all(link["set"] == "-" for link in status()["links"]), status()
    lab("set", "racks", "loss", "2%")
    lab("set", "all", "heal", "loss", "1%")
    assert {link["set"] for link in links(kind="host")} == {"loss 1%"} and {link["set"] for link in links(kind="uplink")} == {"-"}, status()
    lab("set", "rack1", "cut")
    assert call("set", "--name", NAME, "all", "heal", "loss", "much")[0] != OK  # and nothing has changed
    assert {link["set"] for link in links(kind="uplink")} == {"-", "cut"}, status()
    lab("set", "all:e0", "heal")
    assert all(link["set"] == "-" for link in status()["links"]), status()


def processes_end_with_the_lab():
    """The one that is still there when the lab goes; check_nothing_left() looks for it."""
    stays = subprocess.Popen(on("rack0/0", sys.executable, "-c", "import time; print('here', flush=True); time.sleep(1000)"),
                             stdout=subprocess.PIPE, text=True, env=CLEAN)
    assert stays.stdout.readline() == "here\n"
    stays.stdout.close()
    result = json.loads(lab("down", "--json"))
    assert result["ended_processes"] == 1 and stays.wait(PATIENCE) == -signal.SIGTERM
    lab("up", "--no-check")  # for the one who expects it


def interrupted(number, racks, hosts, is_time, what):
    """The signal comes when it is time for it. That is soon over, and on a busy machine the lab may be up before: then once more."""
    for _ in range(10):
        process = subprocess.Popen([ESPALIER, "lab", "up", "--name", NAME, "--racks", racks, "--hosts", hosts], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=CLEAN, text=True)
        wait_until(lambda: is_time() or process.poll() is not None, what)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        if process.returncode != OK:
            assert process.returncode == (-number if number == signal.SIGKILL else 128 + number) and out == "", (process.returncode, out, err)
            return err
        lab("down")
    raise AssertionError(f"{what}: the lab is always up before that")


def test_killed_while_it_is_made():
    for number in (signal.SIGKILL, signal.SIGINT):
        interrupted(number, "6", "6", lambda: NAME in labs(), "it has begun")
        wait_until(lambda: NAME not in labs(), "it gives up")
        check_nothing_left()


def test_killed_while_it_is_measured():
    interrupted(signal.SIGKILL, "1", "2", lambda: call("status", "--name", NAME)[0] == OK, "it is made")
    wait_until(lambda: NAME not in labs(), "it gives up")
    check_nothing_left()


def measuring():
    """Processes that measure our lab."""
    found = []
    for process in processes():
        with contextlib.suppress(OSError):
            stat = pathlib.Path(f"/proc/{process}/stat").read_text()
            if "(esp-measure)" in stat and stat.rsplit(")", 1)[1].split()[1] in keepers():
                found.append(process)
    return found


def test_interrupted_while_it_is_measured():
    """When it says that nothing is left, the name is free."""
    for _ in range(4):
        err = interrupted(signal.SIGINT, "1", "2", measuring, "it is measured")
        assert "nothing is left of the lab" in err, err
        assert NAME not in labs()
    check_nothing_left()


def test_killed_keeper():
    lab("up", "--no-check", "--racks", "2", "--hosts", "1")
    lab("set", "rack0/0", "delay", "1ms", "background", "1")
    networks = networks_of_lab(["rack0/0", "rack0", "core"])
    status_, _, err = call("set", "core", "cut", "--name", NAME)
    assert status_ == USAGE and "racks is all of them" in err, (status_, err)
    job = subprocess.Popen([ESPALIER, "lab", "run", "--name", NAME, "--", "sh", "-c", "echo here; exec sleep 1000"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=CLEAN, text=True)
    for _ in range(2):
        assert "here" in job.stdout.readline()
    os.kill(status()["process"], signal.SIGKILL)
    _, err = job.communicate(timeout=PATIENCE)  # its ranks end with the lab
    assert job.returncode == NO and "the lab has ended" in err, (job.returncode, err)
    wait_until(lambda: NAME not in labs(), "the name is free")
    check_nothing_left(networks)


def test_relay():
    with up("--racks", "1", "--hosts", "2", "--seed", "5"):
        traffic = Traffic("rack0/0", "rack0/1", address(0, 1))
        lab("set", "rack0/1", "reorder", "20%", "duplicate", "20%")
        wait_until(lambda: links(slot=1)[0]["relay"] > 0, "there is a relay")
        traffic.send(0, 1000)
        wait_until(lambda: relayed(links(slot=1)[0], "frames") >= 1000, "the relay has seen them")
        counts = links(slot=1)[0]["to"]["relayed"]
        assert 100 < counts["duplicated"] < 300 and 100 < counts["reordered"] < 300, counts
        assert counts["corrupted"] == counts["lost"] == 0, counts
        tally = traffic.tally()
        assert len(tally["seen"]) == 1000 - counts["overrun"] or counts["overrun"], (len(tally["seen"]), counts)
        assert tally["twice"] > 50 and tally["late"] > 50 and tally["broken"] == 0, (tally["twice"], tally["late"])

        traffic = Traffic("rack0/0", "rack0/1", address(0, 1))
        lab("set", "rack0/1", "heal", "corrupt", "50%")
        before = relayed(links(slot=1)[0], "frames")
        traffic.send(0, 1000)
        wait_until(lambda: relayed(links(slot=1)[0], "frames") >= before + 1000, "the relay has seen them")
        tally = traffic.tally()  # what was corrupted, the kernel has thrown away: checksums are real
        assert 300 < len(tally["seen"]) < 700 and tally["broken"] == 0, len(tally["seen"])

        lab("set", "rack0/1", "heal")
        assert links(slot=1)[0]["relay"] == 0
        traffic = Traffic("rack0/0", "rack0/1", address(0, 1))
        traffic.send(0, 100)
        assert len(traffic.tally()["seen"]) == 100


# ---- long ----


def test_loss_without_relay():
    with up("--racks", "2", "--hosts", "1", "--ipv6"):
        lab("set", "rack1/0", "loss", "20%")
        assert links(rack=1, kind="host")[0]["relay"] == 0
        traffic = Traffic("rack0/0", "rack1/0", address(1, 0))
        traffic.send(0, 5000)
        assert 3500 < len(traffic.tally()["seen"]) < 4500


JOB_THROUGH_FAULTS = ("--", ESPALIER, "bench", "allreduce", "--size", "256K", "--iters", "5", "--set", "deadline_seconds=60")


def check_sums(out):
    rows = [line for line in out.splitlines() if re.match(r"\[0\]\s+\d", line)]
    assert rows and all(re.search(r"\s0\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+0$", row) for row in rows), out


def test_job_through_faults():
    """A job's sums are right whatever the links do to its packets."""
    with up("--racks", "2", "--hosts", "2", "--rate", "100mbit"):
        lab("set", "all", "loss", "1%", "reorder", "5%", "duplicate", "5%", "delay", "1ms", "jitter", "500us")
        lab("set", "--direction", "from", "all", "corrupt", "1%")  # on one link of a way: TCP notices every single bit
        lab("set", "racks", "background", "1")
        check_sums(lab("run", *JOB_THROUGH_FAULTS))
        assert all(relayed(link, what) > 0 for link in links(kind="host") for what in ("frames", "duplicated", "corrupted"))
        wait_until(lambda: sum(link["background_bytes"] for link in links(kind="uplink")) > 1_000_000, "others use the links")
        lab("set", "all", "heal")
        assert all(link["set"] == "-" and link["relay"] == 0 for link in status()["links"])


def test_corruption_that_tcp_misses():
    """A frame that two links have changed may pass TCP's sum: then the job fails and says why, or its sums are right."""
    with up("--racks", "2", "--hosts", "2", "--rate", "100mbit"):
        lab("set", "all", "corrupt", "5%")
        code, out, err = call("run", "--name", NAME, *JOB_THROUGH_FAULTS)
        if code == OK:
            check_sums(out)
        else:
            assert "sent what it cannot have meant: its memory or the network is broken" in err, (code, out, err)


def test_rails_and_carrier():
    with up("--racks", "2", "--hosts", "2", "--interfaces", "2", "--rate", "1gbit,200mbit", "--mtu", "9000", "--ipv6"):
        hosts = links(kind="host", rack=0, slot=0)
        assert [link["rate_bits_per_second"] for link in hosts] == [1_000_000_000, 200_000_000]
        mtu = subprocess.run(on("rack0/0", "cat", "/sys/class/net/e1/mtu"), capture_output=True, text=True, env=CLEAN)
        assert mtu.stdout.strip() in ("9000", "")
        for interface in (0, 1):
            traffic = Traffic("rack0/0", "rack1/1", address(1, 1, interface))
            traffic.send(0, 50)
            assert len(traffic.tally()["seen"]) == 50
        lab("set", "rack0/0:e1", "down")
        shown = subprocess.run(on("rack0/0", shutil.which("ip", path=PATH), "-br", "link", "show", "e1"), capture_output=True,
                               text=True, env=CLEAN, check=True).stdout
        assert "NO-CARRIER" in shown, shown
        assert links(kind="host", rack=0, slot=0, interface=0)[0]["down"] is False
        lab("set", "rack0/0:e1", "up")
        traffic = Traffic("rack0/0", "rack0/1", address(0, 1, 1))
        traffic.send(0, 50)
        assert len(traffic.tally()["seen"]) == 50
        lab("run", "--", HELLO)


def test_check_and_rates():
    """The machine may be busy: what is asserted is what is asked and shown, and that a slower link is the slower one."""
    lab("up", "--racks", "2", "--hosts", "2", "--rate", "100mbit", "--oversubscribe", "2")
    try:
        rows = json.loads(call("check", "--name", NAME, "--json", "--all", "--seconds", "0.3")[1])["checks"]
        assert [row["link"] for row in rows] == ["host"] * 4 + ["uplink"] * 2 and not any(row["failure"] for row in rows)
        assert {row["asked_bits_per_second"] for row in rows} == {100_000_000}
        assert all(0 < row["bits_per_second"] < 110_000_000 and row["rtt_seconds"] > 0 for row in rows), rows
        lab("set", "rack0/0", "rate", "10mbit")
        row = json.loads(call("check", "--name", NAME, "--json", "--seconds", "1")[1])["checks"][0]
        assert row["asked_bits_per_second"] == 10_000_000 and row["bits_per_second"] < 20_000_000, row
    finally:
        lab("down")
    check_nothing_left()


def test_up_measures():
    out = json.loads(lab("up", "--racks", "2", "--hosts", "1", "--rate", "50mbit", "--uplink-delay", "5ms", "--json"))
    try:
        row = out["checks"][0]
        assert row["link"] == "uplink" and row["asked_rtt_seconds"] == 0.02 and row["rtt_seconds"] >= 0.02
    finally:
        lab("down")
    check_nothing_left()


def test_two_labs():
    """Beside each other with the same addresses, and neither knows of the other."""
    with up("--racks", "1", "--hosts", "2"):
        assert call("up", "--name", NAME + "b", "--racks", "1", "--hosts", "2", "--no-check")[0] == OK
        try:
            lab("set", "all", "cut")
            assert call("run", "--name", NAME + "b", "--", HELLO)[0] == OK
        finally:
            assert call("down", "--name", NAME + "b")[0] == OK


def job_through(at):
    out = lab("run", "-n", "2", "--no-prefix", "--env", f"ESP_SWITCH={at}", "--", ESPALIER, "bench", "allreduce", "--type", "i32", "--size", "1M",
              "--iters", "2", "--json")
    assert '"plan": "switch"' in out, out


def test_switch():
    """A switch of sums at a rack's bridge, and on a host with a faster link: it serves jobs, and ends with the lab."""
    code, _, err = call("up", "--name", NAME, "--no-check", "--switch", "rack7")
    assert code != OK and "there is no rack7" in err, (code, err)
    assert call("up", "--name", NAME, "--switch", "rack0/1:fast")[0] == USAGE
    for words, place in (([], "rack0"), (["rack1"], "rack1"), (["rack1/1:4x"], "rack1/1")):
        with up("--rate", "100mbit", "--switch", *words):
            at = status()["switch"]
            assert f"ESP_SWITCH={at}" in lab("status")
            rates = {link["rate_bits_per_second"] for link in links(kind="host")}
            assert (400_000_000 in rates) == (place == "rack1/1"), rates
            job_through(at)
            found = json.loads(subprocess.run(on(place, ESPALIER, "switch", "status", "--json"), capture_output=True, text=True,
                                              timeout=PATIENCE, check=True).stdout)
            assert len(found) == 1 and found[0]["complete"] > 0, found


def test_bench_hub():
    """The command makes a lab of its own, with a faster link for the hub, and leaves nothing."""
    done = subprocess.run([sys.argv[1], "bench", "hub", "--lab", "100mbit", "--workers", "3", "--size", "1M", "--rounds", "1", "--iters", "2",
                           "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == OK, done.stderr
    rows = {row["config"]: row for row in json.loads(done.stdout)["results"]}
    assert {"hub", "mean", "shards", "flat", "allreduce"} <= set(rows) and all(row["wrong"] == 0 for row in rows.values()), rows
    assert abs(rows["hub"]["bound_seconds"] - 2 ** 20 / (12.5e6 * 1448 / 1514)) < 1e-6, rows["hub"]
    names = subprocess.run([sys.argv[1], "lab", "list"], capture_output=True, text=True, check=True).stdout
    assert "benchhub" not in names, names


def test_many_hosts():
    with up("--racks", "12", "--hosts", "12", "--oversubscribe", "3"):
        assert len(links(kind="host")) == 144 and len(links(kind="uplink")) == 12
        seed = random.randrange(1 << 32)
        out = lab("run", "--place", f"random:{seed}", "-n", "40", "--", HELLO)
        assert len(out.splitlines()) == 40, (seed, out)


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
QUICK = [test_usage, test_without_a_lab, test_help, test_killed_while_it_is_made, test_killed_while_it_is_measured,
         test_interrupted_while_it_is_measured, test_killed_keeper, test_a_small_lab, test_switch, test_relay]
LONG = [test_loss_without_relay, test_bench_hub, test_job_through_faults, test_corruption_that_tcp_misses, test_rails_and_carrier, test_check_and_rates,
        test_up_measures, test_two_labs, test_many_hosts]


def why_not():
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("nft", "nftables")):
        if not shutil.which(tool, path=PATH):
            return f"there is no {tool} ({package})"
    if os.geteuid() != 0 and subprocess.run(["unshare", "-Urnm", "true"], capture_output=True).returncode != 0:
        return "neither root nor namespaces for users"
    if os.geteuid() == 0 and subprocess.run(["unshare", "-nm", "true"], capture_output=True).returncode != 0:
        return "root, but not allowed to make namespaces"
    return None


def main():
    needs_no_lab = [test_usage, test_without_a_lab, test_help] if sys.argv[4] == "quick" else []
    reason = why_not()
    for test in needs_no_lab if reason else QUICK if sys.argv[4] == "quick" else LONG:
        try:
            test()
        except BaseException:
            print(f"{test.__name__} failed", flush=True)
            call("down", "--name", NAME)
            raise
    if reason:
        print(f"no lab can be made: {reason}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
