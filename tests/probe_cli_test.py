#!/usr/bin/env python3
"""espalier probe from outside: stored measurements, ranks of this machine, ranks that die, and racks of a lab.

probe_cli_test.py ESPALIER MAN_PAGE stored|job|lab SURVIVOR

SURVIVOR is examples/survivor.c.
Nothing here depends on how fast anything is, but for the lab, where racks have to be found by their latency: that has three tries.
"""
import base64
import contextlib
import hashlib
import html.parser
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

OK, NO, USAGE, SKIPPED = 0, 1, 2, 77
ESPALIER = os.path.abspath(sys.argv[1])
MAN_PAGE = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
SURVIVOR = os.path.abspath(sys.argv[4])
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
PATIENCE = 120
NODE = shutil.which("node") or shutil.which("nodejs")  # runs the script of reports
PAGE_DOM = pathlib.Path(__file__).with_name("page_dom.js")
WILD = 'n<b>&"0'  # a name that a browser should not take for anything else


def probe(*words, **env):
    done = subprocess.run([ESPALIER, "probe", *map(str, words)], env={**CLEAN, **env}, capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def survey(racks, near, far, byte_near=8e-9, byte_far=3e-8):
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
        row = [0 if i == j else byte_near if rack == other else byte_far for j, (_, other) in enumerate(hosts)]
        text += " ".join([name, *map(str, row)]) + "\n"
    return text


class Page(html.parser.HTMLParser):
    """Checks that tags are closed, and that nothing is fetched."""

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


def parsed(text):
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [], page.open
    return page


def page_document(path):
    """The document in a report. The script beside it is the one that the page allows, and nothing is fetched."""
    text = path.read_text(encoding="utf-8")
    page = parsed(text)
    assert "link" not in page.tags and "img" not in page.tags and "<b>" not in text
    assert "prefers-color-scheme" in text and "@media print" in text and "<noscript>" in text
    assert not re.search(r"https?://|@import|url\(|innerHTML", text.replace('"http://www.w3.org/2000/svg"', ""))
    (kind, document), (plain, script) = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert kind == ' type="application/json" id="document"' and plain == ""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'\"" in text
    return json.loads(document)


def check_page(path, names):
    """Returns the elements that the script of a report makes; None where there is no node to run it."""
    document = page_document(path)
    assert set(names) <= {host["name"] for host in document["hosts"]}
    if not NODE:
        return None
    done = subprocess.run([NODE, PAGE_DOM, path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    page = parsed(done.stdout)
    assert {"svg", "table", "h1", "title"} <= page.tags and "script" not in page.tags
    for name in names:
        assert name in page.text, name
    return done.stdout


def test_usage():
    assert probe()[0] == USAGE and "--hosts" in probe()[2]
    assert probe("--nonsense")[0] == USAGE and probe("extra")[0] == USAGE
    assert probe("--matrix", "x", "--hosts", "a,b")[0] == USAGE and probe("--seconds", "0")[0] == USAGE
    status, out, err = probe("--matrix", "/nowhere/matrix")  # as every file that is to be read
    assert status == USAGE and out == "" and "cannot read /nowhere/matrix" in err, (status, out, err)
    for words in ("--port", "7016"), ("--port", "0", "--hosts", "a,b"), ("--port", "65536", "--hosts", "a,b"), ("--matrix", "x", "--port", "7016"):
        status, out, err = probe(*words)
        assert status == USAGE and "--port" in err and "unknown" not in err, (words, err)
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
    assert probe("--matrix", matrix, "--html", folder / "again.html")[0] == OK
    one, other = page_document(page), page_document(folder / "again.html")
    assert one["page"].pop("topology_file") == str(topology) and other["page"].pop("topology_file") is None
    assert one == other, "the same measurement makes the same page"
    del one["page"]
    assert one == json.loads(probe("--matrix", matrix, "--json")[1])

    # A file that cannot be written costs that file, and nothing is said to have been written that was not.
    nowhere, other = folder / "missing" / "topology", folder / "other.html"
    status, out, err = probe("--matrix", matrix, "--out", nowhere, "--html", other)
    assert status != OK and str(nowhere) in err and str(nowhere) not in out and f"{other} has it as pictures" in out and other.exists(), (status, out, err)
    status, out, err = probe("--matrix", matrix, "--out", folder / "here", "--html", nowhere)
    assert status != OK and "as pictures" not in out and (folder / "here").exists(), (status, out, err)

    labels = folder / "nodes.json"
    labels.write_text(json.dumps({"kind": "List", "items": [
        {"kind": "Node", "metadata": {"name": name, "labels": {"example.com/cabinet": f"c{number}"}}} for number, rack in enumerate(racks) for name in rack]}))
    status, out, err = probe("--matrix", matrix, "--racks", labels)
    assert status != OK and "--rack-label" in err, (status, err)
    status, out, err = probe("--matrix", matrix, "--racks", labels, "--rack-label", "example.com/cabinet")
    assert status == OK and "adjusted mutual information 1.000" in out, (status, out, err)

    status, out, _ = probe("--matrix", matrix, "--groups", 2, "--json")
    assert status == OK and len(json.loads(out)["groups"]) == 2 and json.loads(out)["verdict"]["word"] == "as told"
    status, out, err = probe("--matrix", matrix, "--groups", 13)
    assert status == NO and "13 groups are asked for, and there are 12 hosts" in err, (status, err)


def test_alike(folder):
    """Where all hosts are alike there are no groups to be found."""
    matrix = folder / "alike"
    page = folder / "alike.html"
    matrix.write_text("survey 1\nlatency\n" + "".join(f"h{i} " + " ".join("0" if i == j else "1e-5" for j in range(9)) + "\n" for i in range(9)))
    assert probe("--matrix", matrix, "--html", page)[0] == OK
    check_page(page, [f"h{i}" for i in range(9)])
    matrix.write_text(survey([[f"h{i}" for i in range(9)]], 1e-5, 1e-5))
    status, out, _ = probe("--matrix", matrix, "--json")
    assert status == OK and len(json.loads(out)["groups"]) == 1 and json.loads(out)["verdict"]["word"] == "no groups", out


def test_words(folder):
    """What is said of one measurement does not contradict itself, nor what a job would do."""
    racks = [[f"{letter}{i}" for i in range(4)] for letter in "ab"]
    matrix, page = folder / "words", folder / "words.html"
    plans = set()
    for factor in (1, 3, 6, 40):  # what a byte takes between the racks
        matrix.write_text(survey(racks, 4e-6, 1e-5, 8e-9, 8e-9 * factor))
        status, out, _ = probe("--matrix", matrix, "--json")
        found = json.loads(out)
        sentence, plan = found["verdict"]["sentence"], found["plan_of_large_sums"]
        assert status == OK and sentence.startswith("sure: ") and len(found["groups"]) == 2, found
        assert ("alone shows no groups" in sentence) == (factor == 1) and "agreement" not in sentence, (factor, sentence)
        status, out, _ = probe("--matrix", matrix, "--html", page)
        assert status == OK and f"a job sums 64 MiB by the plan {plan}\n" in out and plan in page.read_text(), (factor, plan, out)
        assert "pay off" not in out and ("oversubscribed" in out) == (factor > 1), (factor, out)
        plans.add(plan)
    assert any("ring" in plan for plan in plans) and any("two-level" in plan for plan in plans), plans


def test_large(folder):
    """What is too large to be printed is summed up."""
    matrix = folder / "large"
    matrix.write_text(survey([[f"r{rack}h{i}" for i in range(10)] for rack in range(6)], 1e-5, 3e-5))
    status, out, _ = probe("--matrix", matrix, "--latency", "--html", folder / "large.html")
    assert status == OK and "nine tenths" in out and "group 5: 10 hosts" in out, out
    check_page(folder / "large.html", ["r0h0", "r5h9"])


def test_heat_maps(folder):
    """The diagonal is neutral, rows and columns have names; up to 31 hosts cells have numbers, and whatever the number of hosts tooltips."""
    matrix, page = folder / "heat", folder / "heat.html"
    for each in (10, 11, 17, 22):
        names = [f"rack{rack}-{'long' * 12 if i == 0 else ''}{i}" for rack in range(3) for i in range(each)]
        text = survey([names[rack * each:(rack + 1) * each] for rack in range(3)], 4e-6, 1e-5)
        lines = text.splitlines()
        row = lines[2].split()  # the first host and the last have not met
        lines[2] = " ".join([*row[:-1], "-"])
        row = lines[1 + 3 * each].split()
        lines[1 + 3 * each] = " ".join([row[0], "-", *row[2:]])
        matrix.write_text("\n".join(lines) + "\n")
        status, _, err = probe("--matrix", matrix, "--html", page)
        assert status == OK, err
        count, text = len(names), check_page(page, [])
        if not text:
            continue
        cells = re.findall(r'<rect class="(\w+)"[^>]*><title>([^<]*)</title></rect>(<text[^>]*pointer-events[^>]*>[\d.]+</text>)?', text)
        assert len(cells) == 2 * count * count, (count, len(cells))
        for i, (css, title, number) in enumerate(cells):
            is_itself = i % (count * count) % (count + 1) == 0
            is_known = not title.endswith(": -")
            assert (css == "hd") == is_itself and (css == "hn") == (not is_itself and not is_known), (count, i, css, title)
            assert (title in names) if is_itself else re.fullmatch(r"rack\S+ – rack\S+: (-|[\d.]+ \S+)", title), (count, i, title)
            assert bool(number) == (count < 32 and not is_itself and is_known), (count, i, title, number)
        assert [css for css, _, _ in cells].count("hn") == 2, count
        rows, columns = (re.findall(f'<text class="{what}"[^>]*>([^<]*)</text>', text) for what in ("row", "column"))
        assert rows == columns and len(rows) == (2 * count if count <= 64 else 0), (count, len(rows))
        assert all(name in names or (name.endswith("…") and len(name) == 36) for name in rows), rows


def test_map(folder):
    """No label of the map is on another or outside of the picture; of many hosts the groups are named; what all names end in is left out."""
    matrix, page = folder / "map", folder / "map.html"
    for racks, each, domain in ((1, 2, ""), (2, 2, ".a.example"), (2, 8, ""), (4, 8, ".eu-west-1.compute.internal"), (8, 8, ""), (5, 20, ""), (2, 2, ".10.7")):
        names = [f"node-{rack}-{i}{'x' * (rack == 0)}{domain}" for rack in range(racks) for i in range(each)]
        matrix.write_text(survey([names[rack * each:(rack + 1) * each] for rack in range(racks)], 4e-6, 1e-5))
        status, _, err = probe("--matrix", matrix, "--latency", "--html", page)
        assert status == OK, err
        text = check_page(page, names if len(names) <= 96 else [])
        if not text:
            continue
        view, inside = re.search(r'<svg class="map" viewBox="([^"]*)"(.*?)</svg>', text, re.S).groups()
        left, top, width, height = map(float, view.split())
        labels = [(float(x), float(y), anchor, name) for x, y, anchor, name in
                  re.findall(r'<g class="name[^>]*><path[^>]*/><text x="([^"]*)" y="([^"]*)" text-anchor="(\w+)">([^<]*)</text></g>', inside)]
        groups = len(re.findall(r"<tr><td><span class=\"chip", text))
        short = [name[:-len(domain)] if domain and domain != ".10.7" else name for name in names]
        assert sorted(label[3] for label in labels) == sorted(
            short if len(names) <= 64 else [f"group {group}: {each} hosts" for group in range(groups)]), (racks, each, labels)
        assert (domain in text.split("Names are without ")[-1][:40]) == ("Names are without" in text) or not domain, domain
        for x, y, anchor, name in labels:
            reach = 7 * len(name) * (-1 if anchor == "end" else 1)
            assert left <= min(x, x + reach) and max(x, x + reach) <= left + width and top + 8 <= y <= top + height - 3, (view, x, y, name)
        for side in ("start", "end"):
            heights = sorted(y for _, y, anchor, _ in labels if anchor == side)
            assert all(b - a > 14.8 for a, b in zip(heights, heights[1:])), heights
        dots = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([^"]*)" cy="([^"]*)"', inside)]
        assert len(dots) == len(names)
        group_of = [int(group) for group in re.findall(r", group (\d+)</title><circle", inside)]
        nearest = [min((j for j in range(len(dots)) if j != i), key=lambda j: math.dist(dots[i], dots[j])) for i in range(len(dots))]
        astray = sum(group_of[i] != group_of[nearest[i]] for i in range(len(dots)))
        assert astray * 10 <= len(dots), (racks, each, astray)  # racks that are equally far from each other do not fall onto each other
        assert all((x - a) ** 2 + (y - b) ** 2 > 15 ** 2 for i, (x, y) in enumerate(dots) for a, b in dots[:i]), (racks, each)


def test_malformed(folder):
    bad = folder / "bad"
    for text, reason in (("", "line"), ("survey 1\nlatency\na 0 1\n", "line"), ("survey 1\nlatency\na 0 x\nb 1 0\n", "line 3"),
                         ("survey 1\nlatency\na 0 -1\nb -1 0\n", "line 3"), ("survey 1\nlatency\na 0\n", "one host")):
        bad.write_text(text)
        status, out, err = probe("--matrix", bad)
        assert status == NO and out == "" and reason in err, (text, status, err)
    good = folder / "good"
    good.write_text(survey([["a0", "b1"], ["c0", "d1"]], 1e-6, 1e-5))
    bad.write_text("a0 rack0\n")
    kept = folder / "kept"  # what was measured is not lost by a rack map that does not fit it
    status, out, err = probe("--matrix", good, "--racks", bad, "--out", kept)
    assert status == NO and "says nothing of host 'c0'" in err and str(bad) in err, err
    assert "group 1: 2 hosts" in out and "against" not in out and "host c0 under" in kept.read_text(encoding="utf-8"), out


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


# A remote shell to hosts that are all this machine. 127.0.0.3 is down and 127.0.0.4 does not answer; 127.0.0.5 and .9 answer once, so their ranks never join.
RSH = """#!/bin/sh
host=$1
shift
case $host in
*.3) echo "Welcome"; echo "cannot reach $host" >&2; exit 255 ;;
*.4) exec sleep 1000000 ;;
*.5 | *.9) [ ! -e "$0.asked$host" ] || exec sleep 1000000
     : > "$0.asked$host" ;;
*.6) echo "espalier 0.0.1"; exit 0 ;;
esac
exec env -i PATH="$PATH" /bin/sh -c "$*"
"""


def test_hosts_that_are_not_there(folder):
    """They are named with the reason and left out, and the others are probed; one alone cannot be."""
    rsh = folder / "rsh"
    rsh.write_text(RSH)
    rsh.chmod(0o755)
    options = ["--rsh", rsh, "--each-rank", "--seconds", 1, "--json", "--wait", 6]
    status, out, err = probe("--hosts", "127.0.0.3,127.0.0.1,127.0.0.4,127.0.0.2,127.0.0.5,127.0.0.6,127.0.0.9", *options)
    assert status == OK, (status, out, err)
    found = json.loads(out)
    assert len(found["hosts"]) == 2 and [lost["name"] for lost in found["left_out"]] == [f"127.0.0.{i}" for i in (3, 4, 5, 6, 9)], found
    for host, why in ((3, "cannot reach 127.0.0.3 ("), (4, "no answer through "), (5, "did not join the others within 6 s"), (6, ": espalier 0.0.1"), (9, "did not join")):
        said = [line for line in err.splitlines() if line.startswith(f"espalier: probe: host 127.0.0.{host} is left out: ")]
        assert len(said) == 1 and why in said[0], (host, err)
    assert err.count("have not arrived") == 1, ("one rank says who has not come", err)

    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 # here\n127.0.0.3\n127.0.0.2\n")
    status, out, err = probe("--hostfile", hosts, *options)
    assert status == OK and len(json.loads(out)["hosts"]) == 2 and err.count("left out") == 1, (status, out, err)
    status, out, err = probe("--hosts", "127.0.0.1,127.0.0.3", *options)
    assert status == NO and out == "" and "cannot reach 127.0.0.3" in err and "1 of 2 hosts is left" in err, (status, out, err)
    assert "espalier run --hosts A,B,... -- espalier doctor looks" in err, err
    status, out, err = probe("--hosts", "127.0.0.1,127.0.0.2", "--rsh", "no-such-shell")
    assert status == NO and err.count("no command 'no-such-shell'") == 2 and "0 of 2 hosts are left" in err, (status, out, err)
    # What the ranks fail of is a failure of the command, although it could do without some of them.
    status, out, err = probe("--hosts", "127.0.0.1,127.0.0.2,127.0.0.7", *options, "--out", folder / "missing" / "topology")
    assert status == NO and "missing/topology" in err, (status, out, err)
    assert out == "" and err.count("missing/topology") == 1, ("nothing is probed for a file that cannot be written", err)


# A remote shell to hosts that have this machine's program, and none of its files in the folder.
FAR_RSH = """#!/bin/sh
shift
exec unshare --mount sh -c 'mount -t tmpfs none "$0" && exec sh -c "$1"' "FOLDER" "$*"
"""


def test_files_come_home(folder):
    """The folder is another one where the ranks are, and yet everything that was asked for is here."""
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != OK:
        print("not root: files that come home are not tried")
        return
    here = folder / "here-alone"
    here.mkdir()
    rsh = folder / "far-rsh"
    rsh.write_text(FAR_RSH.replace("FOLDER", str(here)))
    rsh.chmod(0o755)
    before = os.getcwd()
    os.chdir(here)
    try:
        status, out, err = probe("--hosts", "127.0.0.1,127.0.0.2", "--rsh", rsh, "--each-rank", "--seconds", 1, "--out", "topology", "--html",
                                 "report.html", "--save-matrix", here / "matrix")
        assert status == OK and "report.html has it as pictures" in out and "\x1e" not in out + err, (status, out, err)
        names = re.findall(r"^host (\S+) under", pathlib.Path("topology").read_text(encoding="utf-8"), re.M)
        assert len(names) == 2 and sorted(os.listdir()) == ["matrix", "report.html", "topology"], (names, os.listdir())
        check_page(here / "report.html", names)
        assert probe("--matrix", "matrix")[0] == OK
    finally:
        os.chdir(before)


def probe_at_terminal(folder, which, *words):
    """Standard output or error is a terminal: what it shows, and what the other one gets."""
    ours, theirs = os.openpty()
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, which: theirs}
    with subprocess.Popen([ESPALIER, "probe", "--hosts", "127.0.0.1,127.0.0.2", "--rsh", folder / "rsh", "--each-rank", "--seconds", "1", *words], env=CLEAN,
                          stdin=subprocess.DEVNULL, **streams) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        rest = (process.stdout or process.stderr).read()
        assert process.wait(PATIENCE) == OK, (shown, rest)
    os.close(ours)
    return shown, rest


def test_files_at_terminal(folder):
    """What the ranks send among their lines is taken also where those are shown by a terminal."""
    topology = folder / "terminal-topology"
    shown, err = probe_at_terminal(folder, "stdout", "--out", topology)
    assert b"as standing behind one switch" in shown and b"\x1e" not in shown and err == b"", (shown, err)
    assert topology.read_text(encoding="utf-8").count("\nhost ") == 2


def test_progress_of_hosts(folder):
    """Ranks elsewhere have no terminal: who has started them draws how far they are."""
    shown, out = probe_at_terminal(folder, "stderr", "--json")
    assert len(json.loads(out)["hosts"]) == 2 and b"100 %" in shown and shown.endswith(b"\r\033[K"), (out, shown)


# Nothing begins but at these ports.
FIREWALL = """
table inet wall {
	chain in {
		type filter hook input priority 0;
		tcp flags & (syn | ack) == syn tcp dport != 7000-7016 drop
		udp dport != 7000-7016 drop
	}
}
"""


def test_fixed_ports(folder):
    """Behind a firewall that lets a few ports through, ESP_PORT and --port keep to them."""
    walled = ["unshare", "--net", "sh", "-ec", 'ip link set lo up; nft -f "$0"; exec "$@"', folder / "wall"]
    (folder / "wall").write_text(FIREWALL)
    if subprocess.run([*walled, "true"], check=False, capture_output=True).returncode != OK:
        print("no firewall: not root, or no nft")
        return
    (folder / "rsh").write_text(RSH)
    (folder / "rsh").chmod(0o755)

    def behind(*words):
        command = [*walled, ESPALIER, "probe", "--each-rank", "--seconds", "1", "--json", *words]
        done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, timeout=PATIENCE,
                              env={**CLEAN, "ESP_PORT": "7000-7015"})
        return done.returncode, done.stdout, done.stderr
    hosts = ["--hosts", "127.0.0.1,127.0.0.2", "--rsh", folder / "rsh"]
    for words in hosts, ["-n", "2"]:
        status, out, err = behind(*words, "--port", "7016")
        assert status == OK and len(json.loads(out)["hosts"]) == 2 and "left out" not in err, (words, status, out, err)
    status, out, err = behind(*hosts, "--wait", "3")
    assert status == NO and out == "", ("the firewall keeps nobody out", status, out, err)


def probing_rank(job, rank):
    """The process of this rank, once it has its ports for probing; None: it has ended, or has none yet."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if f"ESP_JOB={job}".encode() not in variables or f"ESP_RANK={rank}".encode() not in variables:
                continue
            datagrams = {line.split()[9] for name in ("udp", "udp6") for line in (process / "net" / name).read_text().splitlines()[1:]}
            links = [os.readlink(fd) for fd in (process / "fd").iterdir()]
            if any(link.startswith("socket:[") and link[8:-1] in datagrams for link in links):
                return int(process.name)
    return None


def probe_with_stopped_host(folder, goes_on, ranks):
    """Stops the last of four hosts while it probes; goes_on: until all has been told. What is told, and the topology."""
    topology = folder / "stopped-topology"
    topology.unlink(missing_ok=True)
    with subprocess.Popen([ESPALIER, "probe", *ranks, "--each-rank", "--seconds", "2", "--json", "--out", topology],
                          env={**CLEAN, "ESP_LIVENESS_MS": "3000"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        victim, out = None, ""
        while process.poll() is None and not victim:
            victim = probing_rank(f"espalier-{process.pid}", 3)
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(victim, signal.SIGSTOP)
        for line in process.stdout:
            out += line
            if goes_on and line.startswith("}"):
                with contextlib.suppress(ProcessLookupError, TypeError):
                    os.kill(victim, signal.SIGCONT)
        err = process.stderr.read()
        assert process.wait(PATIENCE) == OK, (process.returncode, out, err)
    return json.loads(out), err, topology.read_text(encoding="utf-8")


def test_stopped_host(folder):
    """
    A host that was left out is not waited for when all has been told; and if it finds out that it was left out, that is no failure of the command.
    """
    hosts = ["--hosts", ",".join(f"127.0.0.{i}" for i in (1, 2, 7, 8)), "--rsh", folder / "rsh"]
    for goes_on, ranks in ((False, hosts), (True, hosts), (False, ["-n", "4"]), (True, ["-n", "4"])):
        for _ in range(TRIES):  # it may be stopped too late
            found, err, topology = probe_with_stopped_host(folder, goes_on, ranks)
            if found["left_out"]:
                break
        assert len(found["hosts"]) == 3 and len(found["left_out"]) == 1 and "vanished" in found["left_out"][0]["why"], found
        assert topology.count("\nhost ") == 3 and "left out" in err and "SIG" not in err, (topology, err)


def test_alone_at_start():
    """A job on one host has no network to probe, and runs."""
    done = subprocess.run([ESPALIER, "run", "-n", "3", "--env", "ESP_TOPOLOGY=probe", "--env", "ESP_LOG=info", "--", ESPALIER, "bench", "barrier", "--iters", "2"],
                          env=CLEAN, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == OK and done.stderr.count("there is no network to probe") == 1, (done.returncode, done.stderr)


# Starts a rank; one of them it kills, or stops, some time after it has opened its ports for probing. A rank that was stopped goes on when the file is there.
VICTIM = """
import os, pathlib, signal, subprocess, sys, time
victim, number, delay, file, *words = sys.argv[1:]
if os.environ["ESP_RANK"] != victim:
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
time.sleep(float(delay))
child.send_signal(int(number))
while int(number) == signal.SIGSTOP and not pathlib.Path(file).exists():
    time.sleep(0.05)
child.send_signal(signal.SIGCONT)
status = child.wait()
sys.exit(status if status >= 0 else 1)
"""
RANKS = 4
TRIES = 5  # where one that succeeds proves the point


def probe_with_victim(victim, number, delay, folder):
    """What is told, and the warnings. Nothing is told twice, and the others come to their end, whoever dies and when."""
    file = folder / "go-on"
    file.unlink(missing_ok=True)
    words = [ESPALIER, "run", "-n", RANKS, "--lose", "1", "--prefix", "none", "--", sys.executable, "-c", VICTIM, victim, int(number), delay, file,
             ESPALIER, "probe", "--each-rank", "--seconds", 1, "--json"]
    job = subprocess.Popen(list(map(str, words)), env={**CLEAN, "ESP_LIVENESS_MS": "5000"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    try:
        out = ""
        for line in job.stdout:
            out += line
            if line.startswith("}"):  # all of it has been told: who was stopped may go on, and is late
                file.touch()
        err = job.stderr.read()
        status = job.wait(timeout=PATIENCE)
    finally:
        file.touch()
        job.kill()
        job.wait()
    assert status == OK, (victim, number, delay, status, out, err)
    return json.loads(out), err


def check_vanished(found, err, victim):
    assert len(found["hosts"]) == RANKS - 1 and len(found["left_out"]) == 1, found
    assert found["left_out"][0]["name"].endswith(f"/{victim}") and "vanished" in found["left_out"][0]["why"], found["left_out"]
    assert "left out" in err, err
    assert all(not host["name"].endswith(f"/{victim}") for host in found["hosts"]), found["hosts"]


def test_vanishing(folder):
    """
    A rank that is killed while it probes, or stopped, is named and left out; the others come to an end. Rank 0 is one like any other. It
    probes for a second: who is to kill it may get no core for so long, and does it once more.
    """
    for victim, number in ((2, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)):
        for _ in range(TRIES):
            with contextlib.suppress(json.JSONDecodeError):  # rank 0, which was killed when it told
                found, err = probe_with_victim(victim, number, 0, folder)
                if found["left_out"]:
                    break
        check_vanished(found, err, victim)


def test_vanishing_any_time(folder):
    """The same at times that a seed chooses: before a meeting, in one, between two. Who dies at the very end has taken part, or has not."""
    rng = random.Random(int(os.environ.get("PROBE_TEST_SEED", "1")))
    for _ in range(int(os.environ.get("PROBE_TEST_COUNT", "3"))):
        victim, delay = rng.randrange(RANKS), rng.uniform(0, 3)
        try:
            found, err = probe_with_victim(victim, signal.SIGKILL, delay, folder)
        except json.JSONDecodeError:
            assert victim == 0, "only the one who tells can take it into the grave"
            continue
        if found["left_out"]:
            check_vanished(found, err, victim)
        else:
            assert len(found["hosts"]) == RANKS, found


def test_vanishing_at_start(folder):
    """A job that probes when it starts loses a rank meanwhile: one warning names the host, and the program goes on as after any death."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-u", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("no host names of their own for ranks here: jobs that probe when they start are not tested")
        return
    shell = 'hostname "host$ESP_RANK" && exec "$@"'
    for victim, delay in ((2, 0), (0, 0), (3, 1)):
        words = [ESPALIER, "run", "-n", RANKS + 1, "--lose", "3", "--prefix", "none", "--", "unshare", "-u", "sh", "-c", shell, "sh", sys.executable, "-c",
                 VICTIM, victim, int(signal.SIGKILL), delay, folder / "none", SURVIVOR]
        for _ in range(TRIES):  # it may be killed too late
            done = subprocess.run(list(map(str, words)), env={**CLEAN, "ESP_TOPOLOGY": "probe", "ESP_LOG": "warn"}, capture_output=True, text=True,
                                  timeout=PATIENCE, stdin=subprocess.DEVNULL)
            assert done.returncode == OK, (victim, done.returncode, done.stdout, done.stderr)
            if "vanished while it was probed" in done.stderr:
                break
        assert done.stderr.count(f"probing: host host{victim} vanished while it was probed") == 1, (victim, done.stderr)
        left = RANKS + 1 - len({1, 2, victim})  # the program kills ranks 1 and 2 itself, later
        assert f"{left} of {RANKS + 1} ranks are left after 60 steps, and agree" in done.stdout, (victim, done.stdout, done.stderr)


def test_calls_are_the_programs(folder):
    """Probing at the start takes none of the numbers by which a program knows its calls."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-u", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return
    words = [ESPALIER, "run", "-n", "4", "--lose", "2", "--prefix", "none", "--", "unshare", "-u", "sh", "-c", 'hostname "host$ESP_RANK" && exec "$0"',
             SURVIVOR]
    done = subprocess.run(words, env={**CLEAN, "ESP_TOPOLOGY": "probe", "ESP_LOG": "warn"}, capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == OK and "2 of 4 ranks are left after 60 steps, and agree" in done.stdout, (done.stdout, done.stderr)
    assert re.search(r"^step (19: call 2[01]|20: call 21), ", done.stdout), done.stdout  # rank 1 dies after 20 steps


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
    """A job that probes its own network when it starts, plans by what it finds, and says on one rank what that was and why it is that plan."""
    done = lab("run", "--no-prefix", "--env", "ESP_TOPOLOGY=probe", "--env", "ESP_LOG=info", "--", ESPALIER, "bench", "allreduce", "--size", "256K",
               "--iters", 2)
    said = done.stdout + done.stderr
    assert said.count("topology that was probed: 4 hosts, 4 of them in this job") == 1 and "not probed" not in said, said
    found = re.findall(r"NET probing: 4 hosts in (\d) groups?, in [\d.]+ s: \w", said)
    groups = re.findall(r"NET probing: group \d has \d hosts?, each with ([\d.]+) to ([\d.]+) Mbit/s.*: (node.*)", said)
    assert len(found) == 1 and len(groups) == int(found[0]), (found, groups, said)
    assert sorted(name for group in groups for name in group[2].split()) == [f"node{i}" for i in range(4)], groups
    assert all(1 < float(least) <= float(most) for least, most, _ in groups), groups
    # In place, and out of place: the best that is compared is what is run.
    plans = re.findall(r"PLAN allreduce of blocks of 262144 bytes between 4 ranks: (.*), chunks of .*\n.*PLAN 262144 bytes, by the topology, would take at best: "
                       r"(.*?): [\de.-]+ s; .*; .*\n", said)
    assert len(plans) == 2 and all(plan == best for plan, best in plans), (plans, said)


def cut_while_probing(folder):
    """The host of rank 3 is cut off while it probes: what is told, and the warnings."""
    name, job = f"probe{os.getpid()}", f"cut{os.getpid()}"
    links = json.loads(lab("status", "--json").stdout)["links"]
    place = sorted((link["rack"], link["slot"], link["host"]) for link in links if link["kind"] == "host")[3]
    words = [ESPALIER, "lab", "run", "--name", name, "--job", job, "--lose", "1", "--no-prefix", "--", ESPALIER, "probe", "--seconds", "4", "--json"]
    with subprocess.Popen(words, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not probing_rank(job, 3):
            pass
        lab("set", place[2], "cut")
        out, err = process.communicate(timeout=PATIENCE)
        lab("set", place[2], "heal")
    assert process.returncode == OK, (process.returncode, out, err)
    return json.loads(out), err


def says_once_who_vanished(folder):
    """A host that is cut off is gone for all ranks, and they for its own: each says so once of each."""
    for _ in range(TRIES):  # it may be cut off too late
        found, err = cut_while_probing(folder)
        if found["left_out"]:
            break
    assert len(found["left_out"]) == 1 and len(found["hosts"]) == 3, found
    said = re.findall(r"\[(\d+)\] ESPALIER WARN NET .*?rank (\d+) on ", err)
    assert len(said) == len(set(said)) and ("0", "3") in said, err


def test_lab(folder):
    if not shutil.which("nft"):
        print("there can be no lab here that cuts links: no nft")
        sys.exit(SKIPPED)
    up = lab("up", "--racks", 2, "--hosts", 2, "--rate", "50mbit", "--oversubscribe", 2, "--seed", 3, check=False)
    if up.returncode != OK:
        print("there can be no lab here:", up.stderr.strip())
        sys.exit(SKIPPED)
    try:
        tries = []  # a busy machine measures no latencies: of some attempts one has to find them
        while not tries or (tries[-1] < 0.999 and len(tries) < 10):
            tries.append(find_racks(len(tries), folder))
        assert tries[-1] > 0.999, f"the racks were not found: adjusted mutual information {tries}"
        probe_at_start()
        says_once_who_vanished(folder)
    finally:
        lab("down")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if sys.argv[3] == "stored":
            if not NODE:
                print("no node: the script of reports is not run")
            test_usage()
            test_stored(folder)
            test_alike(folder)
            test_words(folder)
            test_large(folder)
            test_heat_maps(folder)
            test_map(folder)
            test_malformed(folder)
        elif sys.argv[3] == "job":
            test_ranks_of_this_machine(folder)
            test_hosts_that_are_not_there(folder)
            test_files_come_home(folder)
            test_files_at_terminal(folder)
            test_progress_of_hosts(folder)
            test_fixed_ports(folder)
            test_stopped_host(folder)
            test_alone_at_start()
            test_vanishing(folder)
            test_vanishing_any_time(folder)
            test_calls_are_the_programs(folder)
            test_vanishing_at_start(folder)
        else:
            test_lab(folder)


if __name__ == "__main__":
    main()
