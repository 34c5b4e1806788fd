#!/usr/bin/env python3
"""Jobs between hosts with one or several interfaces, of either family, with fixed ports and odd names.

addresses_test.py ESPALIER HELLO

Hosts are network namespaces (tests/netns.py). What is asserted about rates are proportions of bytes, not times.
"""
import os
import re
import sys

import netns

ESPALIER, HELLO = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ALLREDUCE = (ESPALIER, "bench", "allreduce", "--size", "2M", "--iters", "2")


def check_all_ok(ranks):
    for status, out, err in ranks:
        assert status == 0, (status, out, err)
    return ranks


def check_hello(ranks):
    check_all_ok(ranks)
    assert all(f"{len(ranks)} ranks" in out for _, out, _ in ranks), ranks
    return ranks


def check_all_fail(ranks, *texts):
    for status, out, err in ranks:
        assert status != 0, (status, out, err)
    for text in texts:
        assert any(text in err for _, _, err in ranks), (text, ranks)
    return ranks


def listens_on(err):
    """Port and addresses, from the log."""
    port, addresses = re.search(r"listens on port (\d+) of (.*)", err).groups()
    return int(port), addresses.split(", ")


def one_interface_of_several(network):
    """The filter decides what is listened on; without one the way to the leader comes first."""
    ranks = check_hello(network.job("ab", "10.1.0.1:7000", HELLO, log="info"))
    assert [listens_on(err)[1] for _, _, err in ranks] == [["10.1.0.1", "10.0.0.1"], ["10.1.0.2", "10.0.0.2"]], ranks
    ranks = check_hello(network.job("ab", "10.1.0.1:7000", HELLO, log="info", interfaces="=eth0"))
    assert [listens_on(err)[1] for _, _, err in ranks] == [["10.0.0.1"], ["10.0.0.2"]], ranks
    ranks = check_hello(network.job("ab", "10.1.0.1:7000", HELLO, log="info", interfaces="^eth1"))
    assert [listens_on(err)[1] for _, _, err in ranks] == [["10.0.0.1"], ["10.0.0.2"]], ranks


def only_chosen_addresses(network):
    """Nobody gets in by another interface: the job is held open by a rank that never comes."""
    holder = network.start("ab", "10.0.0.1:7000", "sh", "-c", '[ "$ESP_RANK" = 1 ] || exec "$0"', HELLO, interfaces="=eth0",
                           port="7100", log="info")
    for line in holder[0].stderr:
        if "job's key" in line:
            break
    probe = "import socket, sys\n" \
            "for place in sys.argv[1:]:\n" \
            "    try: socket.create_connection((place, 7100), 10).close(); print('yes')\n" \
            "    except ConnectionRefusedError: print('no')\n"
    # It listens before it waits at the leader's port, which is open by then.
    wait = "import socket\n" \
           "while True:\n" \
           "    try: socket.create_connection(('10.0.0.1', 7000), 10).close(); break\n" \
           "    except ConnectionRefusedError: pass\n"
    network.run("b", sys.executable, "-c", wait)
    answer = network.run("b", sys.executable, "-c", probe, "10.0.0.1", "10.1.0.1", capture_output=True, text=True).stdout
    assert answer == "yes\nno\n", answer
    for rank in holder:
        rank.kill()
        rank.communicate()


def no_such_interface(network):
    ranks = network.job("ab", "10.0.0.1:7000", HELLO, interfaces="ib", join_seconds=2)
    check_all_fail(ranks, "no network interface fits the setting interfaces 'ib'; there are: lo 127.0.0.1, eth0 10.0.0.1")
    check_all_fail(network.job("ab", "10.0.0.1:7000", HELLO, interfaces="eth,,", join_seconds=2), "interfaces is a list")
    # There is one, but nobody else reaches it.
    for settings, rank in ({"interfaces": "lo"}, 0), ({"interfaces": ["eth", "lo"]}, 1):
        for _, _, err in check_all_fail(network.job("ab", "10.0.0.1:7000", HELLO, join_seconds=20, **settings)):
            assert f"rank {rank} on {'ab'[rank]} can be reached at" in err and "ESP_FAMILY, ESP_INTERFACES" in err, err


def ports(network):
    ranks = check_hello(network.job("ab", "10.0.0.1:7000", HELLO, log="info", port="7200"))
    assert [listens_on(err)[0] for _, _, err in ranks] == [7200, 7200]
    ranks = check_hello(network.job("aabb", "10.0.0.1:7000", HELLO, log="info", port="7200-7207"))
    assert [sorted(listens_on(err)[0] for _, _, err in ranks[i:i + 2]) for i in (0, 2)] == [[7200, 7201]] * 2, ranks
    ranks = network.job("aab", "10.0.0.1:7000", HELLO, port="7200", join_seconds=2)
    check_all_fail(ranks, "port 7200 is taken on this host: each rank of a host needs one")
    # What a firewall that lets just these ports through sees.
    with network.firewall("b", "iif lo accept", "ct state established accept", "tcp dport 7200-7207 accept", "drop"):
        check_hello(network.job("abab", "10.0.0.1:7000", HELLO, port="7200-7207"))


def shares(network, *devices):
    """Bytes that a sends on each device in the course of a job, as shares of all."""
    def one(**settings):
        before = [network.sent("a", device) for device in devices]
        ranks = check_all_ok(network.job("ab", "10.0.0.1:7000", *ALLREDUCE, log="info", **settings))
        sent = [network.sent("a", device) - old for device, old in zip(devices, before)]
        return [bytes_sent / sum(sent) for bytes_sent in sent], ranks[1][2]
    return one


def rails(network):
    share = shares(network, "eth0", "eth1")
    found, log = share(rails=1)
    assert found[1] < 0.01 and "rail" not in log, (found, log)
    found, log = share(rail_weights="1:1")
    assert abs(found[0] - 0.5) < 0.06, (found, log)
    found, log = share(rail_weights="5:1")
    assert abs(found[0] - 5 / 6) < 0.06 and "rail 1: eth1, 10.1.0.2, weight 1 (as set)" in log, (found, log)
    found, log = share(rail_weights="0:1")  # what is small goes there, too
    assert found[1] > 0.9, (found, log)
    ranks = network.job("ab", "10.0.0.1:7000", HELLO, rail_weights="5:1:1")
    check_all_fail(ranks, "rail_weights names 3 interfaces, but 2 are used together")
    ranks = network.job("ab", "10.0.0.1:7000", HELLO, rails=[1, 2], join_seconds=10)
    check_all_fail(ranks, "has rails=2, but the leader, rank 0 on a, has rails=1")


def measured(network):
    """Of some jobs one measures about the 5 : 1 that the links have, however busy the machine is; and its traffic follows that."""
    for _ in range(10):
        found, log = shares(network, "eth0", "eth1")()
        weights = [int(weight) for weight in re.findall(r"weight (\d+) \(as measured\)", log)]
        assert len(weights) == 2 and max(weights) == 64, log
        if weights[0] == 64 and 6 <= weights[1] <= 32:
            break
    else:
        raise AssertionError(log)
    assert abs(found[0] - weights[0] / sum(weights)) < 0.08, (found, weights)


def dead_rail(network):
    """A network that all hosts have and that leads nowhere is found out when the job starts, and not used."""
    with network.firewall("b", "iifname eth1 drop"):
        found, log = shares(network, "eth0", "eth1")()
    assert found[0] > 0.98, found
    assert "weight 0" in log and "cannot be reached: no answer to 10.1.0.1 port" in log, log


def black_hole_on_a_rail(network):
    """Small packets pass, large ones do not."""
    for host in "ab":  # a packet for each segment, as there is without the card's help
        network.ip(host, "link", "set", "eth1", "gso_max_segs", 1)
    with network.firewall("b", "iifname eth1 meta length > 600 drop"):
        ranks = check_all_ok(network.job("ab", "10.0.0.1:7000", *ALLREDUCE))
        assert "data does not arrive there: do large packets get lost (MTU)?" in ranks[0][2], ranks
        # With small segments it works. (Its rate is not looked at: next to a rail of large packets it may well be none.)
        ranks = check_all_ok(network.job("ab", "10.0.0.1:7000", *ALLREDUCE, segment_bytes=500, log="info"))
        assert "cannot be reached" not in ranks[0][2] and "data does not arrive" not in ranks[0][2], ranks


def black_hole():
    """A link in between takes smaller packets than both ends, and the router's word of that gets lost."""
    with netns.Network() as network:
        network.narrow_path("a", "b")
        with network.firewall("a", "ip protocol icmp drop"), network.firewall("b", "ip protocol icmp drop"):
            check_hello(network.job("ab", "10.0.0.1:7000", HELLO))  # small packets pass
            ranks = network.job("ab", "10.0.0.1:7000", *ALLREDUCE)
            check_all_fail(ranks, " do not arrive, small ones do: is an MTU on the way smaller than 9000? Set segment_bytes=1200")
            assert any(f"large packets to rank {1 - rank} on" in err for rank, (_, _, err) in enumerate(ranks)), ranks
            check_all_ok(network.job("ab", "10.0.0.1:7000", *ALLREDUCE, segment_bytes=1200))
            check_hello(network.job("abababab", "10.0.0.1:7000", HELLO, segment_bytes=1200))  # the roster is large, too
        check_all_ok(network.job("ab", "10.0.0.1:7000", *ALLREDUCE))  # the router's word is enough


def one_network_twice():
    """Two interfaces of each host in one network, behind one bridge: each is used for its own lanes."""
    with netns.Network() as network:
        network.host("a", "b")
        network.switch("eth0", a="10.0.0.1/24", b="10.0.0.2/24")
        network.switch("eth1", a="10.0.0.11/24", b="10.0.0.12/24")
        for host in "ab":  # each interface answers for its own address
            network.run(host, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore; "
                        "echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce; echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter")
        found, log = shares(network, "eth0", "eth1")(rail_weights="1:1")
        assert abs(found[0] - 0.5) < 0.06, (found, log)


def routed():
    """Every host in networks of its own, with a router between: rails by their order, once somebody says how many."""
    with netns.Network() as network:
        network.host("a", "b", "r")
        network.run("r", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for rail in (0, 1):
            for at, host in enumerate("ab"):
                network.cable(host, "r", f"eth{rail}{host}", (f"10.{rail}.{at}.1/24", f"10.{rail}.{at}.254/24"))
                network.ip(host, "route", "add", f"10.{rail}.0.0/16", "via", f"10.{rail}.{at}.254")
        found, log = shares(network, "eth0a", "eth1a")()
        assert found[0] > 0.99 and "rail" not in log, (found, log)
        found, log = shares(network, "eth0a", "eth1a")(rails=2, rail_weights="1:1")
        assert abs(found[0] - 0.5) < 0.06, (found, log)


def names_of_loopback():
    """The own name leads to loopback on every host; the leader is found by a name, too."""
    hosts_file = "127.0.0.1 localhost\n127.0.1.1 a b\n10.0.0.1 leader\n"
    with netns.Network() as network:
        network.host("a", "b", hosts_file=hosts_file)
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"))
        ranks = check_hello(network.job("ab", "leader:7000", HELLO, log="info"))
        assert [listens_on(err)[1] for _, _, err in ranks] == [["10.0.0.1"], ["10.0.0.2"]], ranks
    # The leader is called by its own name, which is loopback to itself alone.
    with netns.Network() as network:
        network.host("a", hosts_file="127.0.0.1 localhost\n127.0.1.1 a\n")
        network.host("b", hosts_file="127.0.0.1 localhost\n127.0.1.1 b\n10.0.0.1 a\n")
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"))
        ranks = check_hello(network.job("ab", "a:7000", HELLO, log="info"))
        assert [listens_on(err)[1] for _, _, err in ranks] == [["10.0.0.1"], ["10.0.0.2"]], ranks


def ipv6_only():
    """The leader's name leads to nothing else, either."""
    with netns.Network() as network:
        network.host("a", "b", hosts_file="::1 localhost a b\n2001:db8::1 leader\n")
        network.cable("a", "b", "eth0", ("2001:db8::1/64", "2001:db8::2/64"))
        for host in "ab":  # not even loopback has another
            network.ip(host, "-4", "address", "flush", "dev", "lo")
        ranks = check_hello(network.job("abab", "[2001:db8::1]:7000", HELLO, log="info"))
        assert listens_on(ranks[0][2])[1] == ["2001:db8::1"], ranks
        check_hello(network.job("ab", "[2001:db8::1]:7000", HELLO, interfaces="=eth0", family="ipv6", port="7200-7203"))
        check_hello(network.job("ab", "leader:7000", HELLO))
        ranks = network.job("ab", "[2001:db8::1]:7000", HELLO, family="ipv4", join_seconds=2)
        check_all_fail(ranks, "no network interface fits the setting family 'ipv4'; there are: ")


def ipv4_only():
    """The kernel knows IPv6, but it is switched off."""
    with netns.Network() as network:
        network.host("a", "b")
        for host in "ab":
            network.run(host, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"))
        check_hello(network.job("abab", "10.0.0.1:7000", HELLO))


def one_port_on_two_addresses():
    """Two jobs of one host, each on an interface of its own, have the same port."""
    with netns.Network() as network:
        network.host("a", "b")
        for rail in (0, 1):
            network.cable("a", "b", f"eth{rail}", (f"10.{rail}.0.1/24", f"10.{rail}.0.2/24"))
        first = network.start("aabb", "10.0.0.1:7000", *ALLREDUCE[:-1], 100000, interfaces="=eth0", port="7100-7101", job="first")
        begin = network.sent("a", "eth0")
        while network.sent("a", "eth0") < begin + (8 << 20):
            assert all(rank.poll() is None for rank in first)
        check_hello(network.job("aabb", "10.1.0.1:7001", HELLO, interfaces="=eth1", port="7100-7101", job="second"))
        for rank in first:
            rank.kill()
            rank.communicate()


def both_families():
    """The leader's address says nothing about the others' family; the setting does."""
    with netns.Network() as network:
        network.host("a", "b")
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"), ("2001:db8::1/64", "2001:db8::2/64"))
        ranks = check_hello(network.job("ab", "10.0.0.1:7000", HELLO, log="info", family="ipv6"))
        assert all(listens_on(err)[1] == [f"2001:db8::{rank + 1}"] for rank, (_, _, err) in enumerate(ranks)), ranks
        ranks = check_hello(network.job("ab", "[2001:db8::1]:7000", HELLO, log="info"))
        assert listens_on(ranks[1][2])[1] == ["2001:db8::2", "10.0.0.2"], ranks


def link_local_only():
    """Nobody has given the hosts an address. The leader's has to be written with the interface."""
    with netns.Network() as network:
        network.host("a", "b")
        network.cable("a", "b", "eth0")
        for host, address in (("a", "fe80::a"), ("b", "fe80::b")):
            network.ip(host, "address", "flush", "dev", "eth0")
            network.ip(host, "address", "add", f"{address}/64", "dev", "eth0", "nodad")
        ranks = check_hello(network.job("ab", "[fe80::a%eth0]:7000", HELLO, log="info"))
        assert listens_on(ranks[1][2])[1] == ["fe80::b"], ranks
        check_hello(network.job("abab", "[fe80::a%eth0]:7000", HELLO, interfaces="=eth0"))


def firewalled():
    """What asks for a connection is dropped without a word: who cannot be reached is named with address and port, and what to do."""
    with netns.Network() as network:
        network.host("a", "b")
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"))
        drop = "add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in tcp dport %s drop"
        network.run("b", "nft", drop % "7100")
        said = "rank 0 on a gets no answer from rank 1 on b at 10.0.0.2 port 7100: does a firewall drop it? Let the port through"
        ranks = check_all_fail(network.job("ab", "10.0.0.1:7000", HELLO, port="7100", join_seconds=3))
        assert all("gets no answer from" in err and "port 7100" in err for _, _, err in ranks), ranks
        assert said in ranks[0][2] and "espalier doctor" in ranks[0][2], ranks
        # Both ways, and where ranks talk to the leader.
        network.run("a", "nft", drop % "{ 7000, 7100 }")
        (_, _, first), (_, _, second) = check_all_fail(network.job("ab", "10.0.0.1:7000", HELLO, port="7100", join_seconds=2))
        assert "have not arrived: 1; here: 0 on a" in first, first
        assert "could not join at the leader 10.0.0.1:7000" in second and "no answer: does a firewall drop it" in second, second


def jumbo_frames():
    with netns.Network() as network:
        network.host("a", "b")
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"), mtu=9000)
        check_all_ok(network.job("ab", "10.0.0.1:7000", *ALLREDUCE))


def main():
    netns.skip_unless_possible("nft", "tc", "unshare")
    with netns.Network() as network:
        network.host("a", "b")
        for rail, rate in (0, "400mbit"), (1, "80mbit"):
            network.cable("a", "b", f"eth{rail}", (f"10.{rail}.0.1/24", f"10.{rail}.0.2/24"), rate=rate)
        for test in (one_interface_of_several, only_chosen_addresses, no_such_interface, ports, rails, measured, dead_rail,
                     black_hole_on_a_rail):
            netns.timed(test, network)
    for test in (black_hole, one_network_twice, routed, names_of_loopback, ipv4_only, ipv6_only,
                 one_port_on_two_addresses, both_families, link_local_only, firewalled, jumbo_frames):
        netns.timed(test)


if __name__ == "__main__":
    main()
