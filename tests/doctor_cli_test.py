#!/usr/bin/env python3
"""espalier doctor from outside: alone, and as a job between network namespaces with what can be wrong there.

doctor_cli_test.py ESPALIER MAN_PAGE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import netns

OK, NO, USAGE = 0, 1, 2
ESPALIER = os.path.abspath(sys.argv[1])
MAN_PAGE = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
DOCTOR = (ESPALIER, "doctor", "--json")


def alone(*words, **env):
    done = subprocess.run([ESPALIER, "doctor", *words], env={**netns.CLEAN, **env}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def find(findings, verdict, check, what, advice=""):
    """The finding that is meant; there has to be one."""
    for finding in findings:
        if finding["verdict"] == verdict and finding["check"] == check and what in finding["what"] and advice in finding["do"]:
            return finding
    raise AssertionError(f"no {verdict} of {check} with {what!r} and {advice!r} in {json.dumps(findings, indent=1)}")


def test_alone():
    status, out, err = alone()
    assert err == "" and status == (NO if re.search("^FAIL", out, re.M) else OK), (status, out, err)
    assert re.search(r"\n\d+ ok, \d+ warnings?, \d+ failures?\n$", out), out
    lines = [line for line in out.splitlines()[:-2] if not line.startswith(" ")]
    assert all(line.split()[0] in ("OK", "WARN", "FAIL") for line in lines), out
    for line, following in zip(out.splitlines(), out.splitlines()[1:]):
        if line.startswith(("WARN", "FAIL")):
            assert following.strip().startswith("do: "), out
    status, out, _ = alone("--json")
    findings = json.loads(out)["findings"]
    assert json.loads(out)["verdict"] in ("ok", "warn", "fail")
    for check in ("interfaces", "name", "ports", "firewall", "congestion", "buffers", "cores", "locked memory", "open files", "clock", "kernel"):
        assert any(finding["check"] == check for finding in findings), check
        assert check in MAN_PAGE, f"{check} in {sys.argv[2]}"


def test_usage():
    assert alone("--nonsense")[0] == USAGE and alone("extra")[0] == USAGE
    status, out, _ = alone("--help")
    assert status == OK and "espalier run --hosts" in out


def test_bad_settings():
    status, out, _ = alone("--json", ESP_INTERFACES="=nosuchthing", ESP_LANES="many", ESP_PROT="7")
    findings = json.loads(out)["findings"]
    assert status == NO and json.loads(out)["verdict"] == "fail"
    find(findings, "fail", "interfaces", "there are: lo 127.0.0.1", "ESP_INTERFACES")
    find(findings, "warn", "settings", "ESP_LANES")
    find(findings, "warn", "settings", "did you mean ESP_PORT?")
    status, out, _ = alone("--json", "--ranks", "3", ESP_PORT="7000-7001")
    assert status == NO
    find(json.loads(out)["findings"], "fail", "ports", "ports 7000 to 7001", "3 ranks of a host need 3 ports")
    cores = len(os.sched_getaffinity(0))
    status, out, _ = alone("--json", "-n", str(cores + 1))
    find(json.loads(out)["findings"], "warn", "cores", f"for {cores + 1} ranks", f"at most {cores} ranks")


def job(network, hosts, leader, **settings):
    """Rank 0's findings; the others say nothing."""
    ranks = network.job(hosts, leader, *DOCTOR, **settings)
    for status, out, err in ranks[1:]:
        assert (status, out, err) == (OK, "", ""), ranks
    status, out, err = ranks[0]
    report = json.loads(out)
    assert err == "" and status == (NO if report["verdict"] == "fail" else OK), ranks[0]
    return report["findings"]


def test_job_and_firewall():
    with netns.Network() as network:
        network.host("a", "b", "c")
        network.switch("eth0", a="10.0.0.1/24", b="10.0.0.2/24", c="10.0.0.3/24")
        hosts = "abc"
        findings = job(network, hosts, "10.0.0.1:7000", port="7100-7103")
        find(findings, "ok", "joining", "3 ranks on 3 hosts")
        find(findings, "ok", "reach", "all 6 pairs")
        find(findings, "ok", "path MTU", "1500 everywhere")
        find(findings, "ok", "clock offset", "ms at most")
        find(findings, "ok", "round trip", "us in the middle")
        find(findings, "ok", "ports", "ports 7100 to 7103")
        # Rules that let the right ports through are fine, and are said to be.
        with network.firewall("b", "iif lo accept", "ct state established accept", "tcp dport 7100-7103 accept", "drop"):
            findings = job(network, hosts, "10.0.0.1:7000", port="7100-7103")
            assert find(findings, "ok", "firewall", "but none of what the ranks tried")["hosts"] == "b"
        # One pair, one direction.
        with network.firewall("b", "ip saddr 10.0.0.3 tcp dport 7100 ct state new drop"):
            findings = job(network, hosts, "10.0.0.1:7000", port="7100-7103")
            find(findings, "fail", "reach", "rank 2 on c does not reach rank 1 on b (10.0.0.2 port 7100: no answer", "firewall of b")
            assert sum(finding["verdict"] == "fail" for finding in findings) == 1, findings
            find(findings, "warn", "firewall", "drop some of what comes in", "ports 7100-7103")
        with network.firewall("b", "ip saddr 10.0.0.3 tcp dport 7100 ct state new reject with tcp reset"):
            findings = job(network, hosts, "10.0.0.1:7000", port="7100-7103")
            find(findings, "fail", "reach", "refused", "rejects TCP to port 7100")


def test_black_hole():
    with netns.Network() as network:
        network.narrow_path("a", "b")
        with network.firewall("a", "ip protocol icmp drop"), network.firewall("b", "ip protocol icmp drop"):
            for _ in range(5):  # what takes a second to arrive counts as lost, and on a busy machine smaller packets may
                findings = job(network, "ab", "10.0.0.1:7000")
                if any("from rank 0 on a" in finding["what"] and "up to 1500 bytes arrive" in finding["what"] for finding in findings):
                    break
            find(findings, "fail", "path MTU",
                 "from rank 0 on a to rank 1 on b (10.0.1.1) large packets get lost: up to 1500 bytes arrive, but 9000 are sent",
                 "ESP_SEGMENT_BYTES=1460")
            findings = job(network, "abababab", "10.0.0.1:7000", segment_bytes=1460)
            assert not any(finding["verdict"] == "fail" for finding in findings), findings
        findings = job(network, "ab", "10.0.0.1:7000")
        assert not any(finding["verdict"] == "fail" for finding in findings), findings


def test_jumbo_and_rails():
    with netns.Network() as network:
        network.host("a", "b")
        for rail in (0, 1):
            network.cable("a", "b", f"eth{rail}", (f"10.{rail}.0.1/24", f"10.{rail}.0.2/24"), mtu=9000)
        findings = job(network, "ab", "10.0.0.1:7000")
        find(findings, "ok", "path MTU", "9000 everywhere")
        find(findings, "ok", "rails", "2 networks that every host is in")
        find(findings, "ok", "link", "eth1: MTU 9000")
        with network.firewall("b", "iifname eth1 drop"):  # a's connections do not get in, b's answers do not get back
            findings = job(network, "ab", "10.0.0.1:7000")
            find(findings, "warn", "reach", "2 of 2 pairs of ranks reach each other, but not in 10.1.0.0/24: no answer", "switch")
            assert sum(finding["verdict"] == "warn" and finding["check"] == "reach" for finding in findings) == 1, findings


def test_no_leader():
    """A rank that finds nobody says so itself, and what its host is like."""
    with netns.Network() as network:
        network.host("a", "b")
        network.cable("a", "b", "eth0", ("10.0.0.1/24", "10.0.0.2/24"))
        with network.firewall("a", "tcp dport 7000 drop"):
            ranks = network.job("ab", "10.0.0.1:7000", *DOCTOR, join_seconds=3)
        for status, out, _ in ranks:
            assert status == NO
            find(json.loads(out)["findings"], "ok", "interfaces", "eth0 10.0.0.")
        find(json.loads(ranks[0][1])["findings"], "fail", "joining", "1 of 2 ranks have not arrived: 1")
        find(json.loads(ranks[1][1])["findings"], "fail", "joining", "could not join at the leader 10.0.0.1:7000")


def doctors(size, **env):
    """As ranks of one host; (status, out) by rank."""
    ranks = [subprocess.Popen(DOCTOR, env={**netns.CLEAN, "ESP_RANK": str(rank), "ESP_SIZE": str(size), "ESP_LOCAL_RANK": str(rank), **env},
                              stdout=subprocess.PIPE, text=True) for rank in range(size)]
    return [(rank.wait(), out) for rank in ranks for out, _ in [rank.communicate()]]


def test_through_a_store():
    """Rank 0 is found in a folder, and takes the reports of the others at a port that is posted there; nothing stays behind."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = doctors(3, ESP_STORE=f"file:{folder}")
        find(json.loads(ranks[0][1])["findings"], "ok", "joining", "3 ranks on 1 host")
        assert ranks[1:] == [(OK, "")] * 2 and os.listdir(folder) == [], (ranks, os.listdir(folder))


def test_who_speaks():
    """If one never comes rank 0 says so for all who have; if there is no rank 0, all say it, and one of them what the host is like."""
    for seconds in (2, 8, 30):  # on a busy machine others may not have come either
        with tempfile.TemporaryDirectory() as folder:
            ranks = doctors(3, ESP_STORE=f"file:{folder}", ESP_JOIN_SECONDS=str(seconds), ESP_SIZE="4")
        if "1 of 4 ranks have not arrived: 3" in ranks[0][1] and ranks[1:] == [(OK, "")] * 2:
            break
    find(json.loads(ranks[0][1])["findings"], "fail", "joining", "1 of 4 ranks have not arrived: 3; here: 0-2 on ")
    assert ranks[1:] == [(OK, "")] * 2, ranks
    for local in range(2):
        status, out, _ = alone("--json", ESP_RANK="1", ESP_SIZE="4", ESP_LOCAL_RANK=str(local), ESP_LEADER="127.0.0.1:1", ESP_JOIN_SECONDS="1")
        findings = json.loads(out)["findings"]
        find(findings, "fail", "joining", "could not join at the leader 127.0.0.1:1")
        assert status == NO and (len(findings) == 1) == (local == 1), findings


def main():
    test_usage()
    test_alone()
    test_bad_settings()
    test_through_a_store()
    test_who_speaks()
    netns.skip_unless_possible("nft", "unshare")
    for test in (test_job_and_firewall, test_black_hole, test_jumbo_and_rails, test_no_leader):
        netns.timed(test)


if __name__ == "__main__":
    main()
