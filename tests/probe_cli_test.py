#!/usr/bin/env python3
"""espalier probe from outside: stored measurements, ranks of this machine, ranks that die, and racks of a lab.

probe_cli_test.py ESPALIER MAN_PAGE stored|job|lab

Nothing here depends on how fast anything is, but for the lab, where racks have to be found by their latency: that has three tries.
"""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

OK, NO, USAGE, SKIPPED = 0, 1, 2, 77
ESPALIER = os.path.abspath(sys.argv[1])
MAN_PAGE = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
PATIENCE = 120
WILD = 'n<b>&"0'  # a name that a browser should not take for anything else


def probe(*words, **env):
    done = subprocess.run([ESPALIER, "probe", *map(str, words)], env={**CLEAN, **env}, capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def survey(racks, near, far):
    """A text in which hosts of one rack are near: racks is a list of lists of names, dealt out like cards."""
    hosts = [(name, number) for number, rack in enumerate(racks) for name in rack]
    hosts.sort(key=lambda host: (host[0][-1], host[1]))
    text = "survey 1\nlatency\n"
    for i, (name, rack) in enumerate(hosts):
        row = [0 if i == j else (near if rack == other else far) * (1 + 0.01 * ((i * 7 + j * 7 + i * j) % 5))
               for j, (_, other) in enumerate(hosts)]
        text += " ".join([name, *map(str, row)]) + "\n"
    text += "inverse-bandwidth\n"
    for i, (name, rack) in enumerate(hosts):
        row = [0 if i == j else 8e-9 if rack == other else 3e-8 for j, (_, other) in enumerate(hosts)]
        text += " ".join([name, *map(str, row)]) + "\n"
    return text


class Page(html.parser.HTMLParser):
    """Sees to it that tags are closed, and that nothing is fetched."""
    ALONE = {"meta", "rect", "circle", "path", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], "", set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}, (tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.text += data


def check_page(path, names):
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [], page.open
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags and "b<" not in text
    assert not re.search(r"https?://|@import|url\(", text)
    assert {"svg", "table", "h1", "title"} <= page.tags and "prefers-color-scheme" in text and "@media print" in text
    for name in names:
        assert name in page.text, name


def test_usage():
    assert probe()[0] == USAGE and "--hosts" in probe()[2]
    assert probe("--nonsense")[0] == USAGE and probe("extra")[0] == USAGE
    assert probe("--matrix", "x", "--hosts", "a,b")[0] == USAGE and probe("--seconds", "0")[0] == USAGE
    status, out, _ = probe("--help")
    assert status == OK and "espalier probe --hosts" in out
    for option in re.findall(r"^ +(?:-., )?--([a-z-]+)", out, re.M):
        assert option == "help" or f"\\-\\-{option}".replace("-", "\\-").replace("\\\\-", "\\-") in MAN_PAGE, f"--{option} in the manual page"


def test_stored(folder):
    racks = [[WILD, "m1", "k2", "x3"], ["a0", "b1", "c2", "d3"], ["e0", "f1", "g2", "h3"]]
    names = [name for rack in racks for name in rack]
    matrix, truth = folder / "matrix", folder / "racks"
    matrix.write_text(survey(racks, 4e-6, 1e-5))
    truth.write_text("".join(f"{name} rack{number}\n" for number, rack in enumerate(racks) for name in rack))
    for kind in ([], ["--latency"], ["--bandwidth"]):
        status, out, err = probe("--matrix", matrix, "--json", "--racks", truth, *kind)
        assert status == OK and err == "", (status, err)
        found = json.loads(out)
        assert sorted(sorted(group["hosts"]) for group in found["groups"]) == sorted(map(sorted, racks)), (kind, found["groups"])
        assert found["truth"]["adjusted_mutual_information"] > 0.999 and found["verdict"]["word"] == "sure", found["verdict"]
        assert (found["no_topology"] is None) == (kind != ["--latency"]), found["no_topology"]

    page, topology = folder / "report.html", folder / "topology"
    status, out, err = probe("--matrix", matrix, "--html", page, "--out", topology)
    assert status == OK and err == "", (status, err)
    assert "group 2: 4 hosts" in out and "how sure: sure" in out and "espalier run --topology" in out, out
    check_page(page, names)
    text = topology.read_text()
    assert text.startswith("topology 1\n") and text.count("\nhost ") == 12 and text.count(" under core ") == 3, text
    again = probe("--matrix", matrix, "--html", folder / "again.html")
    assert again[0] == OK and page.read_text().replace(str(topology), "topology.txt") == (folder / "again.html").read_text().replace(
        " (written with <code>--out</code>)", ""), "the same measurement makes the same page"

    status, out, _ = probe("--matrix", matrix, "--groups", 2, "--json")
    assert status == OK and len(json.loads(out)["groups"]) == 2 and json.loads(out)["verdict"]["word"] == "as told"
    assert probe("--matrix", matrix, "--groups", 13)[0] == NO


def test_alike(folder):
    """Where all hosts are alike there are no groups to be found."""
    matrix = folder / "alike"
    matrix.write_text(survey([[f"h{i}" for i in range(9)]], 1e-5, 1e-5))
    status, out, _ = probe("--matrix", matrix, "--json")
    assert status == OK and len(json.loads(out)["groups"]) == 1 and json.loads(out)["verdict"]["word"] == "no groups", out


def test_large(folder):
    """What is too large to be printed is summed up."""
    matrix = folder / "large"
    matrix.write_text(survey([[f"r{rack}h{i}" for i in range(10)] for rack in range(6)], 1e-5, 3e-5))
    status, out, _ = probe("--matrix", matrix, "--latency", "--html", folder / "large.html")
    assert status == OK and "nine tenths" in out and "group 5: 10 hosts" in out, out
    check_page(folder / "large.html", ["r0h0", "r5h9"])


def test_malformed(folder):
    bad = folder / "bad"
    for text, reason in (("", "line"), ("survey 1\nlatency\na 0 1\n", "line"), ("survey 1\nlatency\na 0 x\nb 1 0\n", "line 3"),
                         ("survey 1\nlatency\na 0 -1\nb -1 0\n", "line 3"), ("survey 1\nlatency\na 0\n", "one host")):
        bad.write_text(text)
        status, out, err = probe("--matrix", bad)
        assert status == NO and out == "" and reason in err, (text, status, err)
    assert probe("--matrix", folder / "missing")[0] == NO
    good = folder / "good"
    good.write_text(survey([["a0", "b1"], ["c0", "d1"]], 1e-6, 1e-5))
    bad.write_text("a0 rack0\n")
    status, out, err = probe("--matrix", good, "--racks", bad)
    assert status == NO and "says nothing of host 'c0'" in err and str(bad) in err, err


def test_ranks_of_this_machine(folder):
    """Loopback is a network like any other, if ranks stand for hosts."""
    matrix = folder / "measured"
    status, out, err = probe("-n", 3, "--each-rank", "--seconds", 1, "--json", "--save-matrix", matrix)
    assert status == OK, (status, err)
    found = json.loads(out)
    assert len(found["hosts"]) == 3 and found["left_out"] == [] and len(found["latency_seconds"]) == 3, found
    status, out, err = probe("--matrix", matrix, "--json")
    assert status == OK and [host["name"] for host in json.loads(out)["hosts"]] == [host["name"] for host in found["hosts"]]
    status, out, err = probe("-n", 2)
    assert status == NO and "one host" in err and out == "", (status, out, err)


def test_alone_at_start():
    """A job on one host has no network to probe, and runs."""
    done = subprocess.run([ESPALIER, "run", "-n", "2", "--env", "ESP_TOPOLOGY=probe", "--", ESPALIER, "bench", "barrier", "--iters", "2"], env=CLEAN,
                          capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == OK, (done.returncode, done.stderr)


VICTIM = """
import os, subprocess, sys, time
words = sys.argv[1:]
if os.environ["ESP_RANK"] != "2":
    os.execv(words[0], words)
child = subprocess.Popen(words)

def sockets(name):
    return {line.split()[9] for line in open(f"/proc/net/{name}").readlines()[1:]}

def probes():
    links = []
    for fd in os.listdir(f"/proc/{child.pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{child.pid}/fd/{fd}"))
        except OSError:
            pass
    datagrams = sockets("udp") | sockets("udp6")
    return any(link.startswith("socket:[") and link[8:-1] in datagrams for link in links)

while child.poll() is None and not probes():
    time.sleep(0.005)
child.kill()
child.wait()
sys.exit(1)
"""


def test_vanishing():
    """A rank that is killed while it probes is named and left out; the others come to an end."""
    words = [ESPALIER, "run", "-n", "4", "--lose", "1", "--prefix", "none", "--", sys.executable, "-c", VICTIM, ESPALIER, "probe",
             "--each-rank", "--seconds", "3", "--json"]
    done = subprocess.run(words, env=CLEAN, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == OK, (done.returncode, done.stderr)
    found = json.loads(done.stdout)
    assert len(found["hosts"]) == 3 and len(found["left_out"]) == 1, found
    assert found["left_out"][0]["name"].endswith("/2") and "vanished" in found["left_out"][0]["why"], found["left_out"]
    assert "left out" in done.stderr, done.stderr


def lab(command, *words, check=True):
    done = subprocess.run([ESPALIER, "lab", command, "--name", f"probe{os.getpid()}", *map(str, words)], env=CLEAN, capture_output=True,
                          text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert not check or done.returncode == OK, (command, words, done.stderr)
    return done


def find_racks(seed, folder):
    racks = folder / "lab-racks"
    links = json.loads(lab("status", "--json").stdout)["links"]
    racks.write_text("".join(f"{link['host']} rack{link['rack']}\n" for link in links if link["kind"] == "host"))
    done = lab("run", "--place", f"random:{seed}", "--no-prefix", "--", ESPALIER, "probe", "--latency", "--seconds", 4, "--json", "--racks",
               racks, "--seed", seed)
    found = json.loads(done.stdout)
    assert found["left_out"] == [] and len(found["hosts"]) == 4 and found["no_topology"] is None, found
    return found["truth"]["adjusted_mutual_information"]


def probe_at_start():
    """A job that probes its own network when it starts, and plans by what it finds."""
    done = lab("run", "--no-prefix", "--env", "ESP_TOPOLOGY=probe", "--env", "ESP_LOG=info", "--", ESPALIER, "bench", "allreduce", "--size", "64K",
               "--iters", 2)
    said = done.stdout + done.stderr
    assert said.count("topology that was probed: 4 hosts, 4 of them in this job") == 4 and "not probed" not in said, said


def test_lab(folder):
    up = lab("up", "--racks", 2, "--hosts", 2, "--rate", "50mbit", "--oversubscribe", 2, "--seed", 3, check=False)
    if up.returncode != OK:
        print("there can be no lab here:", up.stderr.strip())
        sys.exit(SKIPPED)
    try:
        tries = []
        while not tries or (tries[-1] < 0.999 and len(tries) < 3):
            tries.append(find_racks(len(tries), folder))
        assert tries[-1] > 0.999, f"the racks were not found: adjusted mutual information {tries}"
        probe_at_start()
    finally:
        lab("down")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if sys.argv[3] == "stored":
            test_usage()
            test_stored(folder)
            test_alike(folder)
            test_large(folder)
            test_malformed(folder)
        elif sys.argv[3] == "job":
            test_ranks_of_this_machine(folder)
            test_alone_at_start()
            test_vanishing()
        else:
            test_lab(folder)


if __name__ == "__main__":
    main()
