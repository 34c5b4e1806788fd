#!/usr/bin/env python3
"""A job between hosts with two interfaces goes on when one of them dies, with right results, and ends when the other dies too.

rails_test.py RAIL_PROGRAM

Hosts are network namespaces (tests/netns.py) at two bridges, one for each rail.
"""
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time

import netns

PROGRAM = os.path.abspath(sys.argv[1])
ENOUGH = 16 << 20  # bytes that show that a job is at work


@contextlib.contextmanager
def hosts(names):
    """Two networks with all of the hosts, each a bridge of its own: what happens to one host's cable, the others do not see."""
    with netns.Network() as network:
        network.host(*names)
        for rail in (0, 1):
            network.host(f"s{rail}")
            network.ip(f"s{rail}", "link", "add", "name", "bridge", "type", "bridge")
            network.ip(f"s{rail}", "link", "set", "bridge", "up")
            for at, host in enumerate(names):
                end = f"eth{rail}"
                network.cable(host, f"s{rail}", f"p{at}", (f"10.{rail}.0.{at + 1}/24", f"10.9.{rail}.{at + 1}/32"))
                network.ip(host, "link", "set", f"p{at}", "down")
                network.ip(host, "link", "set", f"p{at}", "name", end, "up")
                network.ip(f"s{rail}", "link", "set", f"p{at}", "master", "bridge")
        yield network


class Job:
    """
    The program on some hosts, from its start until it is at work on both rails; is_held: until it may make its first call; joins: it has
    only just been started.
    """

    def __init__(self, network, ranks, *words, is_held=False, joins=False, pause_ms=0, **settings):
        self.network = network
        self.file = os.path.join(network.folder.name, "over")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.file)
        if is_held:
            words = (pause_ms, self.file + ".begin", *words)
        self.ranks = network.start(ranks, "10.0.0.1:7000", PROGRAM, self.file, *words,
                                   **{"log": "info", "rail_weights": "1:1", **settings})
        if joins:
            return
        if is_held:
            self.heard = [self.hear(rank, "ready") for rank in self.ranks]
            return
        for rail in range(int(settings.get("rails", 2))):
            self.at_work("a", rail)

    @staticmethod
    def hear(rank, text):
        """What it says up to the line with the text."""
        heard = ""
        for line in rank.stderr:
            heard += line
            if text in line:
                return heard
        raise AssertionError(heard)

    def begin(self):
        with open(self.file + ".begin", "w", encoding="utf-8"):
            pass

    def at_work(self, host, rail, enough=ENOUGH):
        """Waits until so much more has left there, or a rank has ended."""
        begin = self.network.sent(host, f"eth{rail}")
        while self.network.sent(host, f"eth{rail}") < begin + enough and all(rank.poll() is None for rank in self.ranks):
            time.sleep(0.01)

    def end(self):
        """(status, out, err) by rank."""
        with open(self.file, "w", encoding="utf-8"):
            pass
        return self.wait()

    def wait(self):
        return [(rank.wait(), out, err) for rank in self.ranks for out, err in [rank.communicate()]]


def check_right(ended, *texts):
    rounds = set()
    for status, out, err in ended:
        assert status == 0 and "WRONG" not in err, ended
        rounds.add(re.fullmatch(r"(\d+) rounds, all right\n", out).group(1))
    assert len(rounds) == 1, ended
    for text in texts:
        assert any(re.search(text, err) for _, _, err in ended), (text, ended)


def check_error(ended, text):
    for status, out, err in ended:
        assert status != 0 and "WRONG" not in err and not out, (status, out, err)
    assert any(re.search(text, err) for _, _, err in ended), (text, ended)


def cut(network, host, rail):
    """Nothing passes any more in either direction, and nobody is told."""
    rules = ["table inet cut {", "chain in {", "type filter hook input priority 0", f"iifname eth{rail} drop", "}",
             "chain out {", "type filter hook output priority 0", f"oifname eth{rail} drop", "}", "}", ""]
    network.run(host, "nft", "-f", "-", input="\n".join(rules).encode())


def path_is_cut(rail, ranks, liveness_ms=10000):
    """A path that loses everything. rail 0 is also the one that the ranks talk to each other on."""
    with hosts("ab") as network:
        job = Job(network, ranks, liveness_ms=liveness_ms)
        cut(network, "b", rail)
        job.at_work("a", 1 - rail, 2 * ENOUGH)
        check_right(job.end(), rf"eth{rail} carries nothing to rank \d on [ab] any more: what it carried goes through eth{1 - rail}")


def path_is_cut_before_it_is_used(rail, *rules):
    """
    Connections for data are made by the first call that needs them, and a rail may have died since it was measured; or it dies
    in the midst of a handshake, when one end takes the connection for made and the other does not.
    """
    with hosts("ab") as network:
        job = Job(network, "ab", is_held=True, liveness_ms=4000)
        with network.firewall("a", *rules):
            job.begin()
            job.at_work("a", 1 - rail, 4 * ENOUGH)
            ended = job.end()
        check_right(ended)
        assert any(re.search(rf"goes to 10.{1 - rail}.0.2 |carries nothing|is left", err) for _, _, err in ended), ended


def wait_for(network, host, pattern, holds=lambda found: True):
    """Until a connection of the host looks like this, and what was found in the line holds."""
    while True:
        words = network.run(host, "ss", "-HtniO", "state", "established", stdout=subprocess.PIPE).stdout.decode()
        found = re.search(pattern, words)
        if found and holds(found):
            return
        time.sleep(0.002)


def rank_is_stopped_in_a_handshake():
    """
    The listener takes a connection for made when it has sent the last word, and goes on with data. Who waits for that word, and is stopped
    when it comes, is late: that is no rail's fault, and what its kernel has taken meanwhile is not lost.
    """
    with hosts("abc") as network:
        # A kernel that takes much for a process that does not read; one that has room for little, so that its process lets go of what has arrived.
        network.run("a", "sh", "-c", "echo 4096 4194304 6291456 > /proc/sys/net/ipv4/tcp_rmem")
        network.run("c", "sh", "-c", "echo 4096 16384 65536 > /proc/sys/net/ipv4/tcp_wmem")
        job = Job(network, "abc", is_held=True, liveness_ms=8000, rail_weights="1:20")
        with network.firewall("a", "iifname eth1 meta length > 130 drop"):
            job.begin()
            wait_for(network, "c", r"10\.1\.0\.3\S*\s+\S*10\.1\.0\.1\S* .*unacked:")
            job.ranks[0].send_signal(signal.SIGSTOP)
        wait_for(network, "a", r"10\.1\.0\.1\S*\s+\S*10\.1\.0\.3\S* .*lastsnd:(\d+)", lambda found: int(found.group(1)) > 2000)
        job.ranks[0].send_signal(signal.SIGCONT)
        job.at_work("a", 0)
        ended = job.end()
        check_right(ended)
        assert not any("is left" in err or "carries nothing" in err for _, _, err in ended), ended


def no_connection_is_made():
    """One of the second lane cannot be made any more. The call ends with the reason, and so does the next one, of another group."""
    with hosts("ab") as network:
        job = Job(network, "ab", "twice", is_held=True, liveness_ms=4000, join_seconds=8, deadline_seconds=60)
        with network.firewall("b", "tcp flags & (syn | ack) == syn drop"):
            job.begin()
            ended = job.wait()
        for status, out, err in ended:
            assert status != 0 and "WRONG" not in err and not out, (status, out, err)
            assert re.search("round 0, allreduce: .* gets no answer .* does a firewall drop it?", err), err
            assert re.search("round 0, the other group: .* (gets no answer|broke)", err), err


def rail_loses_data_when_it_is_measured(rail):
    """The other one is measured all the same, however long that has taken."""
    with hosts("ab") as network, network.firewall("b", f"iifname eth{rail} meta length > 1000 drop"):
        job = Job(network, "ab", is_held=True, rail_weights=None, liveness_ms=10000)
        job.begin()
        job.at_work("a", 1 - rail)
        check_right(job.end())
        assert any(f"through eth{rail}, but data does not arrive there" in heard for heard in job.heard), job.heard


def rail_dies_while_the_other_is_measured():
    """It is the one that ranks talk to each other on, and is left for the other one already then."""
    with hosts("ab") as network:
        with network.firewall("b", "iifname eth1 meta length > 1000 drop"):
            job = Job(network, "ab", joins=True, rail_weights=None, liveness_ms=4000)
            wait_for(network, "a", r"10\.1\.0\.1\S*\s+\S*10\.1\.0\.2\S* .*unacked:")
            cut(network, "a", 0)
            wait_for(network, "b", r"10\.1\.0\.2\S*\s+\S*10\.1\.0\.1\S* .*lastrcv:(\d+)", lambda found: int(found.group(1)) > 1500)
        job.at_work("a", 1)
        check_right(job.end())


def acked(network, host):
    """By the far end of each connection of the host: how many bytes have arrived there."""
    words = network.run(host, "ss", "-HtniO", "state", "established", stdout=subprocess.PIPE).stdout.decode().splitlines()
    found = [re.search(r"\S+:\d+\s+(\S+:\d+) (.* bytes_acked:(\d+))?", line) for line in words]
    return {at.group(1): int(at.group(3) or 0) for at in found}


def proof_comes_late():
    """
    A connection is reset and made again, on a rail so slow that it is given up before its proof has arrived: it comes when another one is
    in use on the other rail, and does not take its place.
    """
    with hosts("ab") as network:
        job = Job(network, "ab", is_held=True, pause_ms=2000, liveness_ms=10000)
        job.begin()
        last = {}
        while last != acked(network, "b") or not any("10.1.0.1" in far and count > ENOUGH / 16 for far, count in last.items()):
            last = acked(network, "b")  # until a round is over
            time.sleep(0.2)
        # What connects, 140 bytes, passes at once; the proof, 218 with its headers, takes 1.6 s.
        network.run("a", "tc", "qdisc", "add", "dev", "eth1", "root", "tbf", "rate", "512bit", "burst", "256", "limit", "10000")
        for own, other in connections(network, "b", True) + connections(network, "b", False):
            if "10.1.0.1" in other:
                reset(network, "b", own, other)
        heard = Job.hear(job.ranks[0], "lane 1 goes to 10.0.0.2")
        while b"backlog 0b 0p" not in network.run("a", "tc", "-s", "qdisc", "show", "dev", "eth1", stdout=subprocess.PIPE).stdout:
            time.sleep(0.01)
        network.run("a", "tc", "qdisc", "del", "dev", "eth1", "root")
        ended = job.end()
        check_right(ended)
        assert not any("eth0 carries nothing" in heard + err for _, _, err in ended), ended


def link_is_down(rail, host):
    """The kernel of one host knows at once, the others are told by it. So soon that only that can be the reason."""
    with hosts("abc") as network:
        job = Job(network, "abc", liveness_ms=60000)
        network.ip(host, "link", "set", f"eth{rail}", "down")
        job.at_work("a", 1 - rail, 4 * ENOUGH)
        check_right(job.end(), rf"eth{rail} has no link", rf"eth{rail} carries nothing to rank \d on {host} any more: "
                    rf"what it carried goes through eth{1 - rail}")


def idle_connections():
    """Between calls that come seldom. What a rank has sent and forgotten arrives all the same."""
    with hosts("ab") as network:
        job = Job(network, "ab", 100, liveness_ms=2000)
        cut(network, "a", 1)
        job.at_work("a", 0)
        check_right(job.end(), "eth1 carries nothing")


def there_and_back():
    """The first rail dies, comes back, and is used again when the second one dies."""
    with hosts("ab") as network:
        job = Job(network, "ab", liveness_ms=4000)
        network.ip("a", "link", "set", "eth1", "down")
        job.at_work("a", 0, 2 * ENOUGH)
        network.ip("a", "link", "set", "eth1", "up")
        network.ip("b", "link", "set", "eth0", "down")
        job.at_work("a", 1, 2 * ENOUGH)
        check_right(job.end(), "eth1 carries nothing to rank 1 on b any more: what it carried goes through eth0",
                    "eth0 carries nothing to rank 1 on b any more: what it carried goes through eth1")


def both_are_cut(fast):
    """The last one: an error that names it, within the interval."""
    with hosts("ab") as network:
        job = Job(network, "ab", liveness_ms=4000)
        for rail in (1, 0):
            if fast:
                network.ip("b", "link", "set", f"eth{rail}", "down")
            else:
                cut(network, "b", rail)
            if rail == 1:
                job.at_work("a", 0, 2 * ENOUGH)
        check_error(job.wait(), r"nothing gets through to rank \d on [ab] any more|is given up")


def connections(network, host, is_quiet):
    """(own end, other end) of each on which little was sent, the control connections, or much."""
    words = network.run(host, "ss", "-HtniO", "state", "established", stdout=subprocess.PIPE).stdout.decode().splitlines()
    found = [re.search(r"(\S+:\d+)\s+(\S+:\d+) .*bytes_sent:(\d+) ", line) for line in words]
    return [(at.group(1), at.group(2)) for at in found if at and (int(at.group(3)) < ENOUGH / 4) == is_quiet]


def reset(network, host, own, other):
    """Both ends learn that it is no more, as from something in between. One that has gone already is none."""
    own = re.sub("%[^:]*", "", own)  # the device that it is bound to
    network.run(host, "ss", "-K", "src", own, "dst", other, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def controls_are_reset():
    """By something in between: others take their place, on any rail, and nobody notices."""
    with hosts("ab") as network:
        job = Job(network, "ab", liveness_ms=10000)
        for own, other in connections(network, "b", True):
            reset(network, "b", own, other)
        for rail in (0, 1):
            job.at_work("a", rail)
        check_right(job.end(), "although it is there; another connection stands")


def data_is_reset(rails, ranks, times, seed):
    """At any moment of any call, one connection after the other, at either end: it goes on where it was, and every result is right."""
    chance = random.Random(seed)
    with hosts("ab") as network:
        job = Job(network, ranks, rails=rails, resume="yes", liveness_ms=10000, rail_weights="1:1" if rails > 1 else None)
        for _ in range(times):
            found = []
            while not found and all(rank.poll() is None for rank in job.ranks):
                host = chance.choice("ab")
                found = connections(network, host, False)
                time.sleep(chance.random() / 100)
            if found:
                reset(network, host, *chance.choice(found))
            job.at_work("a", 0, ENOUGH // 2)
        check_right(job.end(), "was reset, although it is there; another one has taken its place")


def data_is_reset_for_good():
    """Without the setting it is an error as ever, and never a wrong result."""
    with hosts("ab") as network:
        job = Job(network, "ab", rails=1, liveness_ms=10000, rail_weights=None)
        reset(network, "b", *connections(network, "b", False)[0])
        check_error(job.wait(), "the connection for data between rank . and rank . on . broke, although both are there")


def rank_is_killed(is_cut):
    """It is named, and at once: its kernel answers that nobody is there any more, also where only one rail is left."""
    with hosts("ab") as network:
        job = Job(network, "ab", liveness_ms=4000 if is_cut else 60000)
        if is_cut:
            cut(network, "b", 1)
            job.at_work("a", 0, 2 * ENOUGH)
        job.ranks[1].kill()
        status, out, err = job.wait()[0]
        assert status != 0 and not out and "rank 1 on b has died, or ended" in err, (status, out, err)


def main():
    netns.skip_unless_possible("nft", "unshare")
    netns.timed(path_is_cut, 1, "ab")
    for rail in 0, 1:
        netns.timed(path_is_cut, rail, "aabb", 4000)
    netns.timed(path_is_cut_before_it_is_used, 1, "iifname eth1 drop")
    netns.timed(path_is_cut_before_it_is_used, 0, "iifname eth0 drop")
    netns.timed(path_is_cut_before_it_is_used, 1, "iifname eth1 meta length > 130 drop")  # a listener's last word is 120 bytes
    netns.timed(rank_is_stopped_in_a_handshake)
    netns.timed(no_connection_is_made)
    netns.timed(rail_loses_data_when_it_is_measured, 0)
    netns.timed(rail_dies_while_the_other_is_measured)
    netns.timed(proof_comes_late)
    for rail, host in (1, "a"), (0, "b"), (1, "c"):
        netns.timed(link_is_down, rail, host)
    netns.timed(idle_connections)
    netns.timed(there_and_back)
    for fast in True, False:
        netns.timed(both_are_cut, fast)
    netns.timed(controls_are_reset)
    netns.timed(data_is_reset, 1, "ab", 6, 1)
    netns.timed(data_is_reset, 1, "aabb", 4, 2)
    netns.timed(data_is_reset, 2, "ab", 4, 3)
    netns.timed(data_is_reset_for_good)
    for is_cut in False, True:
        netns.timed(rank_is_killed, is_cut)


if __name__ == "__main__":
    main()
