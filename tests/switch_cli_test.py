#!/usr/bin/env python3
"""In-network aggregation as an operator and users see it: espalier switch, and ranks as processes.

switch_cli_test.py ESPALIER PROGRAM [KILLS SEED | CHECK]

With KILLS, only the test that kills the switch so often, at moments drawn from SEED; with CHECK, as in check_drain, only that one.
The program checks every sum by itself; here it is checked that sums went through the switch, or did not have to, that
their bits are those of a run without a switch, and that jobs survive faults. Nothing here sleeps to wait: a state is
asked for until it is as expected, and a minute without that ends the test.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import ports

OK, NO, USAGE = 0, 1, 2
ESPALIER, PROGRAM = map(os.path.abspath, sys.argv[1:3])
KILLS = 4
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
PATIENCE = 60  # seconds, until something is wrong
WINDOW = 300  # sums
WINDOWS = 50  # until the switch helps again
STATS = re.compile(r"(\d+) sums of (\d+) bytes went through the switch; packets: (\d+) through it, (\d+) straight, (\d+) again, "
                   r"(\d+) again and straight, (\d+) refused; (\d+) elements owned here, (\d+) contributions added here")
LINE = re.compile(r"rank (\d+): (\d+) calls, (\d+) through a switch, sums ([0-9a-f]{16})")


def espalier(*words, **more):
    done = subprocess.run([ESPALIER, *map(str, words)], env={**CLEAN, **more}, capture_output=True, text=True, timeout=2 * PATIENCE)
    return done.returncode, done.stdout, done.stderr


def until(is_so, *context):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = is_so()
        if found:
            return found
    raise AssertionError(context)


class Switch:
    """A switch on the loopback, with its log."""

    def __init__(self, folder, port, *options):
        self.port, self.address, self.path = port, f"127.0.0.1:{port}", pathlib.Path(folder) / "switch.log"
        with open(self.path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([ESPALIER, "switch", "--listen", self.address, *map(str, options)], env=CLEAN, stderr=log)
        until(self.status, self.log)

    def status(self):
        found = [one for one in json.loads(espalier("switch", "status", "--json")[1]) if one["pid"] == self.process.pid]
        return found[0] if found else None

    def log(self):
        return self.path.read_text(encoding="utf-8")

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == OK, self.log()


@contextlib.contextmanager
def switch(*options):
    with tempfile.TemporaryDirectory() as folder:
        made = Switch(folder, ports.free_port(), *options)
        try:
            yield made
        finally:
            made.end()


class Job:
    """A job that runs until it is told to stop."""

    def __init__(self, folder, ranks, address, calls=8, most=150000, seed=7):
        self.stop, self.lines = pathlib.Path(folder) / "stop", []
        self.process = subprocess.Popen(
            [ESPALIER, "run", "-n", str(ranks), "--", PROGRAM, str(calls), str(most), str(seed), str(self.stop)],
            env={**CLEAN, "ESP_SWITCH": address}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while not any("first calls are over" in line for line in self.lines):
            line = self.process.stdout.readline()
            assert line, self.lines
            self.lines.append(line)

    def end(self):
        self.stop.touch()
        self.lines += self.process.communicate(timeout=PATIENCE)[0].splitlines()
        assert self.process.returncode == OK, self.lines
        return outcome("\n".join(self.lines))


def outcome(text):
    """Calls, how many went through a switch, and the digest of all sums; the same on all ranks."""
    found = {line[1:] for line in LINE.findall(text)}
    assert len(found) == 1, text
    calls, through, digest = found.pop()
    return int(calls), int(through), digest


def run(ranks, address, calls=24, most=150000, seed=1, **more):
    more = {**more, "ESP_SWITCH": address} if address else more
    status, out, err = espalier("run", "-n", ranks, "--", PROGRAM, calls, most, seed, **more)
    assert status == OK, (status, out, err)
    return outcome(out)


def check_sums():
    """The bits of 2 to 8 ranks are those without a switch, and each contribution arrived once."""
    with switch() as one:
        for ranks in (2, 3, 5, 8):
            calls, through, digest = run(ranks, one.address)
            plain_calls, plain_through, plain_digest = run(ranks, None)
            assert digest == plain_digest and calls == plain_calls and plain_through == 0
            assert calls // 4 < through < calls, (calls, through)  # some leave their words, or are small
        status = one.status()
        assert status["complete"] > 0 and status["malformed"] == 0 and status["strangers"] == 0, status
        assert status["slots_in_use_peak"] <= 4096 and status["hits"] >= status["complete"], status
        print("sums: ok")


def check_floats():
    """Floats in fixed point have the same bits with a switch, without, and with one that loses packets."""
    with switch() as one, switch("--loss", 0.01, "--corrupt", 0.01) as lossy:
        for ranks, numerics in ((2, "fixed"), (4, "fixed"), (4, "fixed16"), (7, "fixed16")):
            plain = run(ranks, None, ESP_NUMERICS=numerics)
            for address in (one.address, lossy.address):
                calls, through, digest = run(ranks, address, ESP_NUMERICS=numerics)
                assert digest == plain[2] and plain[1] == 0 and through > calls // 4, (ranks, numerics, calls, through, digest, plain)
    print("floats: ok")


def check_faults():
    """Loss, repetition, reordering, corruption, delay; few aggregators; a quota."""
    kinds = (("--loss", 0.02), ("--repeat", 0.05, "--reorder", 0.05), ("--corrupt", 0.02), ("--delay", "3ms"),
             ("--loss", 0.01, "--repeat", 0.02, "--reorder", 0.02, "--corrupt", 0.01), ("--aggregators", 3),
             ("--aggregators", 64, "--quota", 2), ("--age", "1ms", "--aggregators", 5))
    expected = run(4, None, seed=3)[2]
    for seed, options in enumerate(kinds):
        with switch("--seed", seed, *options) as one:
            calls, through, digest = run(4, one.address, seed=3)
            assert digest == expected, (options, digest, expected)
            assert through > 0, (options, calls, through)
            status = one.status()
            assert "--loss" not in options or status["faults_lost"] > 0, status
            assert "--corrupt" not in options or status["faults_corrupted"] > 0, status
            assert "--aggregators" not in options or status["collisions"] > 0 or status["by_flow"][0]["over_quota"] > 0, status
    print("faults: ok")


def check_deaths():
    """A switch that is killed, and one that starts anew, in the middle of calls."""
    expected = run(4, None, calls=8, seed=7)[2]
    with tempfile.TemporaryDirectory() as folder:
        port = ports.free_port()
        first = Switch(folder, port)
        job = Job(folder, 4, first.address)
        until(lambda: first.status()["complete"] > 100)
        first.kill()
        second = Switch(folder, port)
        until(lambda: second.status()["complete"] > 100, second.log)
        second.kill()
        third = Switch(folder, port)
        until(lambda: third.status()["complete"] > 100, third.log)
        calls, through, digest = job.end()
        third.end()
        assert digest == expected and 0 < through < calls, (calls, through, digest, expected)
    print("deaths: ok")


def share_of_window(one, members):
    """Of the next sums: how many contributions are in a complete sum of the switch."""
    first = until(lambda: by_flow(one))
    last = until(lambda: (now := by_flow(one)) and now["complete"] >= first["complete"] + WINDOW and now, one.status)
    packets = last["contributions"] - first["contributions"]
    return (last["complete"] - first["complete"]) * (members - 1) / packets


def by_flow(one):
    flows = one.status()["by_flow"]
    return flows[0] if flows else None


def check_restarts(kills, seed):
    """A switch that is killed and started anew at random moments helps again, and changes no bit."""
    draw, members = random.Random(seed), 4
    expected = run(members, None, calls=8, seed=7)[2]
    with tempfile.TemporaryDirectory() as folder:
        one = Switch(folder, ports.free_port())
        job = Job(folder, members, one.address)
        for kill in range(kills):
            until(lambda: share_of_window(one, members) >= 0.5, kill, one.status)
            moment = one.status()["complete"] + draw.randrange(2 * WINDOW)
            until(lambda: one.status()["complete"] >= moment, kill, one.status)
            one.kill()
            one = Switch(folder, one.port)
            windows = 1
            while share_of_window(one, members) < 0.99:
                windows += 1
                assert windows <= WINDOWS, (kill, seed, one.status())
        calls, through, digest = job.end()
        one.end()
        assert digest == expected and 0 < through <= calls, (calls, through, digest, expected)
    print(f"restarts: ok, {kills} with seed {seed}")


def check_vanished():
    """A switch that vanishes in mid-call, for ever: this call and all later ones end with the right sums."""
    expected = run(4, None, calls=8, seed=7)[2]
    with tempfile.TemporaryDirectory() as folder:
        one = Switch(folder, ports.free_port())
        job = Job(folder, 4, one.address)
        until(lambda: one.status()["slots_in_use"] > 0)
        one.kill()
        assert job.end()[2] == expected
    print("vanished: ok")


def helps_fully(slots=4096):
    """One job without faults: the contributions that owners added by element, and bytes at the switch by what they must be."""
    ranks = 4
    with switch("--aggregators", slots) as one:
        status, out, err = espalier("run", "-n", ranks, "--", PROGRAM, 24, 1000000, 5, ESP_SWITCH=one.address, ESP_LOG="info")
        assert status == OK and outcome(out)[1] > 6, (status, out, err)
        found = [list(map(int, line)) for line in STATS.findall(err)]
        assert len(found) == ranks, err
        elements, added, summed = sum(line[7] for line in found), sum(line[8] for line in found), found[0][1]
        again = sum(line[3] + line[4] + line[5] for line in found)
        assert added <= again or slots < 512, found  # an original that finds a slot is never left to an owner
        bound = ranks * (summed + 48 * elements)
        now = one.status()
        assert now["slots_in_use_peak"] <= min(slots, 512), now
        return added / elements, now["received_bytes"] / bound, now["sent_bytes"] / bound


def check_help():
    """
    Without faults, with a slot for each number of the window: the switch adds all originals, and the bytes at its port are
    those of one packet for each member and element. A rank that is very late makes others send again: then it is tried once
    more. That nothing is sent again where nothing is late, tests/switch/seeds_test.c shows, in virtual time.
    """
    tries = []
    while not tries or max(tries[-1][1:]) > 1.02 or tries[-1][0] >= 0.001:
        assert len(tries) < 30, tries
        tries.append(helps_fully())
    print("help: ok, owners added %.4f, bytes in %.4f and out %.4f of the bound" % tries[-1])
    print("with aggregators for a quarter of the window: %.4f, %.4f, %.4f" % helps_fully(128))


def check_drain():
    """A switch that is drained gets no more sums, and then helps again."""
    with switch() as one, tempfile.TemporaryDirectory() as folder:
        job = Job(folder, 3, one.address)
        until(lambda: one.status()["complete"] > 100)
        assert espalier("switch", "drain", "--port", one.port)[0] == OK
        until(lambda: one.status()["draining"] == 1 and one.status()["slots_in_use"] == 0 and
              one.status()["by_flow"][0]["contributions_per_second"] == 0, one.status)
        assert espalier("switch", "drain", "--port", one.port, "--undo")[0] == OK
        before = one.status()["complete"]
        until(lambda: one.status()["complete"] > before + 100)
        job.end()
        assert "drained" in one.log() and "helps again" in one.log()
    assert espalier("switch", "drain", "--port", 1)[0] == NO
    print("drain: ok")


def check_nobody():
    """No switch there: the ordinary plan, and a warning. A bad address is a warning, too."""
    status, out, err = espalier("run", "-n", 2, "--", PROGRAM, 8, 150000, 1, ESP_SWITCH=f"127.0.0.1:{ports.free_port()}")
    assert status == OK and outcome(out)[1] == 0 and "ordinary plans are used until that changes: it does not answer" in err, (status, out, err)
    status, out, err = espalier("run", "-n", 2, "--", PROGRAM, 8, 150000, 1, ESP_SWITCH="nonsense")
    assert status == OK and outcome(out)[1] == 0 and "no switch is used" in err, (status, out, err)
    print("nobody: ok")


def packet(kind, flow, words=0, **more):
    """A packet as src/wire/atp_packet.h has it."""
    fields = {"flags": 0, "hop": 0, "sequence": 0, "bitmap": 1, "call": 0, "owner": 0, "group": 0, "fan0": 2, "fan1": 0,
              "scale": 0, "kind": 3, "next": 65535, "tag": 0, **more}
    if kind == 3:
        fields.update(bitmap=0, fan0=0, kind=0)
    return struct.pack("<BBBBIQQIHHBBBBHHQ", 1, kind, fields["flags"], fields["hop"], fields["sequence"], flow, fields["bitmap"],
                       fields["call"], fields["owner"], fields["group"], fields["fan0"], fields["fan1"], fields["scale"],
                       fields["kind"], words, fields["next"], fields["tag"]) + bytes(4 * words)


class Strangers:
    """Packets that are none, forged ones, hellos of flows that do not exist: as many as one thread can send."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.address, self.ends, self.sent = address, threading.Event(), 0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        seed = 1
        while not self.ends.is_set():
            seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            kinds = (os.urandom(seed % 300), packet(1, seed, 8, sequence=seed % 64), packet(2, seed, 8), packet(3, seed, 8),
                     packet(1, seed, 100)[:200], packet(3, seed, 8, owner=seed % 70))
            self.socket.sendto(kinds[seed >> 33 & 7 if seed >> 33 & 7 < len(kinds) else 0], self.address)
            self.sent += 1

    def end(self):
        self.ends.set()
        self.thread.join()
        self.socket.close()


def check_strangers():
    """Forged, truncated and foreign packets at a high rate change no sum, and claim no aggregator."""
    expected = run(4, None, seed=9)[2]
    with switch() as one:
        crowd = [Strangers(("127.0.0.1", one.port)) for _ in range(2)]
        until(lambda: one.status()["malformed"] > 1000)
        began, before = time.monotonic(), sum(stranger.sent for stranger in crowd)
        calls, through, digest = run(4, one.address, seed=9)
        rate = (sum(stranger.sent for stranger in crowd) - before) / (time.monotonic() - began)
        for stranger in crowd:
            stranger.end()
        status = one.status()
        assert digest == expected and through > 0, (calls, through, digest, expected)
        assert status["flows"] <= 1 and status["strangers"] > 0 and status["slots_in_use"] == 0, status
        print(f"strangers: ok, {rate:.0f} packets a second")


class Replays:
    """Sees all packets of a job, as root on the loopback, and sends them again: as they are, changed, cut off and under another
    flow; in the name of the member that sent them, and as a member of another job; to the switch and straight to ranks."""

    def __init__(self, port):
        self.seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.seen.bind(("lo", 0x0800))
        self.seen.settimeout(0.05)
        self.forged = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        self.foreign = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.port, self.ends, self.sent, self.flow = port, threading.Event(), 0, 0x0123456789ABCDEF
        register(self.foreign, ("127.0.0.1", port), self.flow, 0)
        self.own = {self.foreign.getsockname()[1]}
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def variants(self, body):
        at = random.randrange(len(body))
        yield body
        yield body[:at] + bytes([body[at] ^ 1 << random.randrange(8)]) + body[at + 1:]
        yield body[:random.randrange(len(body))]
        yield body[:8] + struct.pack("<Q", self.flow) + body[16:]

    def work(self):
        done = set()
        while not self.ends.is_set():
            try:
                packet, where = self.seen.recvfrom(65536)
            except socket.timeout:
                continue
            if where[2] == socket.PACKET_OUTGOING or len(packet) < 28 + 48 or packet[9] != socket.IPPROTO_UDP:
                continue
            head = 4 * (packet[0] & 15)
            source, to = struct.unpack("!HH", packet[head:head + 4])
            # of a train, the first packet
            first = packet[head + 8:]
            first = first[:48 + 4 * struct.unpack("<H", first[36:38])[0]]
            if self.port not in (source, to) or source in self.own or first in done or first[1] > 2:
                continue
            for body in self.variants(first):
                done.add(body)
                self.forged.sendto(struct.pack("!HHHH", source, to, 8 + len(body), 0) + body, ("127.0.0.1", 0))
                self.foreign.sendto(body, ("127.0.0.1", to))
                self.sent += 2
            if len(done) > 10000:
                done.clear()

    def end(self):
        self.ends.set()
        self.thread.join()
        for each in (self.seen, self.forged, self.foreign):
            each.close()


def check_replays():
    """Packets that are sent again, changed, cut off and under another flow change no sum."""
    expected = run(4, None, calls=48, seed=9)[2]
    with switch() as one:
        try:
            replays = Replays(one.port)
        except PermissionError:
            print("replays: only as root")
            return
        calls, through, digest = run(4, one.address, calls=48, seed=9)
        replays.end()
        assert digest == expected and through > 0, (calls, through, digest, expected)
        assert replays.sent > 100, replays.sent
        print(f"replays: ok, {replays.sent} packets")


def register(member, address, flow, number):
    """As the member of a flow: brings its cookie back."""
    member.settimeout(PATIENCE)
    cookie = registered = 0
    while not registered:
        member.sendto(packet(3, flow, owner=number, words=8)[:48] + struct.pack("<QQIHBBQ", cookie, 0, 0, 8, 0, 0, 5), address)
        answer = struct.unpack("<QQIHBBQ", member.recv(2000)[48:])
        cookie, registered = answer[0], answer[4]


class Crowd:
    """Members of a flow of their own that claim aggregators as fast as one thread can, and more than their address may."""

    def __init__(self, address):
        self.members = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        self.flow, self.address, self.ends, self.sent = 0xFEDCBA9876543210, address, threading.Event(), 0
        for number, member in enumerate(self.members):
            register(member, address, self.flow, number)
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while not self.ends.is_set():
            self.sent += 1
            body = packet(1, self.flow, 8, owner=2, bitmap=1, sequence=self.sent % 100000)
            self.members[0].sendto(body, self.address)
            if self.sent % 10000 == 0:
                register(self.members[2], self.address, self.flow, 2)

    def end(self):
        self.ends.set()
        self.thread.join()
        for member in self.members:
            member.close()


def check_crowd():
    """Registered members of another job, at a high rate, with most aggregators in their hands: slower, and no sum changes."""
    expected = run(4, None, seed=9)[2]
    with switch("--aggregators", 256, "--quota", 200, "--age", "1s") as one:
        crowd = Crowd(("127.0.0.1", one.port))
        until(lambda: one.status()["slots_in_use"] >= 100)
        began, before = time.monotonic(), crowd.sent
        calls, through, digest = run(4, one.address, seed=9)
        rate = (crowd.sent - before) / (time.monotonic() - began)
        crowd.end()
        assert digest == expected and calls > 0, (calls, through, digest, expected)
        print(f"crowd: ok, {rate:.0f} packets a second")


def check_cookie():
    """An address is registered only once it has brought back its cookie, and then is the only one that is forwarded for."""
    with switch() as one:
        address = ("127.0.0.1", one.port)
        members = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        for member in members:
            member.settimeout(PATIENCE)
        flow, cookies = 0x1234567890ABCDEF, []

        def hello(number, cookie):
            members[number].sendto(packet(3, flow, owner=number, words=8)[:48] + struct.pack("<QQIHBBQ", cookie, 0, 0, 8, 0, 0, 5), address)
            return struct.unpack("<QQIHBBQ", members[number].recv(2000)[48:])

        for number in range(2):
            answer = hello(number, 0)
            assert answer[4] == 0 and answer[6] == 5, answer
            cookies.append(answer[0])
        assert one.status()["members"] == 0
        assert hello(0, cookies[1])[4] == 0 and one.status()["members"] == 0
        assert hello(0, cookies[0])[4] == 1 and hello(1, cookies[1])[4] == 1 and one.status()["members"] == 2
        # two contributions, from two members, make a sum for the third, which is no member yet: it goes nowhere
        for number in range(2):
            members[number].sendto(packet(1, flow, 8, owner=2, bitmap=1 << number), address)
        until(lambda: one.status()["undelivered"] == 2)
        hello(2, hello(2, 0)[0])
        for number in range(2):
            members[number].sendto(packet(1, flow, 8, owner=2, bitmap=1 << number), address)
        assert len(members[2].recv(2000)) == 80 and one.status()["complete"] == 1
        # a packet of a stranger to the same flow is not forwarded
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        stranger.sendto(packet(1, flow, 8, owner=2, bitmap=1, sequence=5), address)
        until(lambda: one.status()["strangers"] == 1)
        for each in (*members, stranger):
            each.close()
    print("cookie: ok")


def check_choice():
    """Ranks of one host share memory: by a topology and the rate of the switch it is known that no switch pays there."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "site.topology"
        path.write_text(f"topology 1\nswitch rack0\nhost {socket.gethostname()} under rack0 rate 10gbit\n", encoding="utf-8")
        for rate in ("20gbit", "400gbit"):  # the rule between hosts: src/tune/through_test.c
            with switch("--rate", rate) as one:
                assert run(4, one.address, ESP_TOPOLOGY=str(path))[1] == 0
                assert run(4, one.address)[1] > 0  # nothing is known of the ranks' links
    print("choice: ok")


def check_bench():
    """Compares ways on this machine, without a lab."""
    status, out, err = espalier("bench", "switch", "--workers", 2, "--size", "4M", "--iters", 2, "--rounds", 1, "--json")
    assert status == OK, (status, out, err)
    ways = {way["way"]: way for way in json.loads(out)["ways"]}
    assert all(way["wrong"] == 0 and way["seconds"] > 0 for way in ways.values()), ways
    assert all(ways[name]["through_switch"] == name.startswith("switch") for name in ways), ways
    print("bench: ok")


def main_checks():
    return (check_usage, check_cookie, check_sums, check_help, check_floats, check_faults, check_deaths, check_vanished,
            lambda: check_restarts(KILLS, os.getpid()), check_drain, check_nobody, check_causes, check_shut, check_strangers,
            check_crowd, check_replays, check_choice, check_bench)


def check_causes():
    """A switch that does not help is a warning that says why."""
    with switch("--words", 300) as one:
        status, out, err = espalier("run", "-n", 2, "--", PROGRAM, 8, 150000, 1, ESP_SWITCH=one.address)
        assert status == OK and outcome(out)[1] == 0 and "its aggregators have room for 300 words" in err, (status, out, err)
    with switch() as one:
        assert espalier("switch", "drain", "--port", one.port)[0] == OK
        status, out, err = espalier("run", "-n", 2, "--", PROGRAM, 8, 150000, 1, ESP_SWITCH=one.address)
        assert status == OK and outcome(out)[1] == 0 and "it is drained" in err, (status, out, err)
    # a switch of the next version of the protocol
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        other.settimeout(0.1)
        ends = threading.Event()

        def answer():
            while not ends.is_set():
                with contextlib.suppress(socket.timeout):
                    hello, where = other.recvfrom(2000)
                    other.sendto(bytes([2, 4]) + hello[2:48], where)

        thread = threading.Thread(target=answer)
        thread.start()
        status, out, err = espalier("run", "-n", 2, "--", PROGRAM, 8, 150000, 1, ESP_SWITCH="127.0.0.1:%d" % other.getsockname()[1])
        ends.set()
        thread.join()
    assert status == OK and outcome(out)[1] == 0 and "version 2 of the protocol, and this rank version 1" in err, (status, out, err)
    # and a member of another version is told, and counted
    with switch() as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as member:
        member.settimeout(PATIENCE)
        member.sendto(bytes([2]) + packet(3, 77, 8)[1:], ("127.0.0.1", one.port))
        told = member.recv(2000)
        assert len(told) == 48 and told[:2] == bytes([1, 4]) and struct.unpack("<Q", told[8:16])[0] == 77, told
        assert one.status()["foreign"] == 1 and one.status()["malformed"] == 0, one.status()
    print("causes: ok")


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE).returncode == OK


@contextlib.contextmanager
def shut():
    """A network namespace whose loopback carries UDP only from and to the port of a switch, once it is shut; None: not as root."""
    name = f"esp-shut-{os.getpid()}"
    if os.geteuid() != 0 or not shutil.which("nft") or not ip("netns", "add", name):
        yield None
        return
    try:
        assert ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        ip("netns", "del", name)


def close_paths(name, port, table="shut"):
    rules = (f"add table ip {table}; add chain ip {table} in {{ type filter hook input priority 0; }}; "
             f"add rule ip {table} in udp sport {port} accept; add rule ip {table} in udp dport {port} accept; "
             f"add rule ip {table} in meta l4proto udp drop")
    done = subprocess.run(["ip", "netns", "exec", name, "nft", rules], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode == OK


def check_shut():
    """
    Ranks that reach the switch by UDP, and not each other: the members' probes show it, and the ordinary plans are used. If the
    path is closed only later, while the switch loses packets, sums go on through the switch alone, and no rank waits at its end.
    """
    expected = run(4, None, seed=3)[2]
    with shut() as name, tempfile.TemporaryDirectory() as folder:
        if not name:
            print("shut: only as root, with nft")
            return
        port, inside = ports.free_port(), ["ip", "netns", "exec", name, ESPALIER]
        with open(pathlib.Path(folder) / "log", "w", encoding="utf-8") as log:
            serves = subprocess.Popen([*inside, "switch", "--listen", f"127.0.0.1:{port}", "--loss", "0.01"], stderr=log)
        more = {**CLEAN, "ESP_SWITCH": f"127.0.0.1:{port}", "ESP_LOG": "info"}
        stop = pathlib.Path(folder) / "stop"

        def job(calls, *words):
            return subprocess.Popen([*inside, "run", "-n", "4", "--", PROGRAM, str(calls), "150000", "3", *words], env=more,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        try:
            # the path is open while the job begins
            late = job(24, str(stop))
            lines = []
            while not any("first calls are over" in line for line in lines):
                lines.append(late.stdout.readline())
                assert lines[-1], lines
            if not close_paths(name, port):
                stop.touch()
                late.communicate(timeout=PATIENCE)
                print("shut: no nft here")
                return
            stop.touch()
            began = time.monotonic()
            text = "".join(lines) + late.communicate(timeout=PATIENCE)[0]
            assert late.returncode == OK and outcome(text)[1] > 0, text
            took = time.monotonic() - began
            # and from the beginning closed
            never = job(24)
            text = never.communicate(timeout=PATIENCE)[0]
            assert never.returncode == OK and outcome(text)[1:] == (0, expected), text
            assert "past the switch, are not answered" in text and "has not said that it has all sums" not in text, text
        finally:
            serves.terminate()
            serves.wait(PATIENCE)
    print(f"shut: ok, ended {took:.1f} s after the path was closed")


def check_usage():
    for words in (("--listen", "nowhere"), ("--loss", 2), ("--age", "soon"), ("--rate", "fast"), ("--aggregators", 0)):
        status, _, err = espalier("switch", *words)
        assert status == USAGE and err, (words, status, err)
    with switch() as one:
        status, _, err = espalier("switch", "--listen", one.address)
        assert status == NO and "another process" in err, (status, err)
        text, metrics = espalier("switch", "status")[1], espalier("switch", "status", "--metrics")[1]
        assert "aggregators in use" in text and "espalier_switch_slots 4096" in metrics, (text, metrics)
    print("usage: ok")


def main():
    if len(sys.argv) > 4:
        check_restarts(int(sys.argv[3]), int(sys.argv[4]))
        return
    for check in main_checks():
        if sys.argv[3:4] in ([], [check.__name__]):
            check()


main()
