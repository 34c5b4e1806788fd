#!/usr/bin/env python3
"""scripts/bench-plink and scripts/results-plink: what is kept when, what is measured again, and what the tables say of it.

bench_plink_test.py BENCH_PLINK RESULTS_PLINK

The script runs with an espalier that only pretends: it makes no lab, and its times are those of a formula.
"""
import collections
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

BENCH, RESULTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH.parent.parent / "bench" / "plink"))
import report  # noqa: E402
import sections  # noqa: E402
from store import Store, Unusable  # noqa: E402

MIB = 1 << 20
PRETENDED = f"#!{sys.executable} -SE" + r'''
import json, os, pathlib, signal, sys
folder, words = pathlib.Path(sys.argv[0]).parent, sys.argv[1:]
def log(name, row):
    with open(folder / name, "a") as out:
        out.write(json.dumps(row) + "\n")
def option(name):
    return words[words.index(name) + 1] if name in words else None
def lines(name):
    return len((folder / name).read_text().splitlines()) if (folder / name).exists() else 0
if words[:1] == ["--version"]:
    print("espalier 1.2.3")
elif words[:2] == ["lab", "up"]:
    racks, hosts = int(option("--racks")), int(option("--hosts"))
    (folder / "shape").write_text(f"{racks} {hosts}")
    log("labs", words)
    rows = [{"link": link, "bits_per_second": 9e8, "asked_bits_per_second": 1e9, "rtt_seconds": 1e-4}
            for link in ("host", "uplink")[:1 + (racks > 1)]]
    print(json.dumps({"checks": rows, "congestion": "cubic"}))
elif words[:2] == ["lab", "topology"]:
    racks, hosts = map(int, (folder / "shape").read_text().split())
    print("topology 1\nswitch core")
    for rack in range(racks):
        print(f"switch rack{rack} under core rate 1gbit")
        for host in range(hosts):
            print(f"host node{rack * hosts + host} under rack{rack} rate 1gbit")
elif words[:2] == ["lab", "run"] and "probe" in words:
    pathlib.Path(option("--out")).write_text("probed")
    log("probes", words)
    print(json.dumps({"seconds": 7.5, "groups": [1, 2], "verdict": {"word": "sure"}, "truth": {"adjusted_mutual_information": 1.0}}))
elif words[:2] == ["lab", "run"]:
    plan, place, sizes = option("--plan"), option("--place"), option("--size").split(",")
    given = [word.split("=", 1)[1] for word in words if word.startswith("ESP_TOPOLOGY=")]
    path = pathlib.Path(given[0]) if given else None
    log("calls", {"plan": plan, "place": place, "sizes": sizes, "given": path.name if path else None,
                  "text": path.read_text() if path and path.exists() else None, "words": words})
    if lines("calls") == int(os.environ.get("KILL_AT", 0)):
        os.kill(os.getppid(), signal.SIGKILL)
    if plan and plan == os.environ.get("FAIL"):
        sys.exit("it broke")
    slow = {"flat": 2.5}.get(plan, 1) * (1.5 if "random-" in str(path) else 1)
    rows = [{"size": int(size), "plan": plan or "ring", "out_of_place": None, "in_place": {
             "time": 1, "nwrong": 7 * (plan is not None and plan == os.environ.get("WRONG")),
             "samples": [slow * int(size) / 60 * (1 + i / 1000) for i in range(int(option("--iters")))]}} for size in sizes]
    print(json.dumps({"results": rows}))
elif words[:2] == ["lab", "down"]:
    log("downs", words)
else:
    sys.exit(f"unexpected: {words}")
'''


class World:
    """A build folder with the pretended espalier, and a file of results."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.out = self.folder / "out.json"
        program = self.folder / "espalier"
        program.write_text(PRETENDED)
        program.chmod(0o755)

    def rows(self, name):
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def run(self, *words, status=0, **variables):
        done = subprocess.run([sys.executable, BENCH, "--build", self.folder, *map(str, words)], capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": str(self.folder), **{name: str(value) for name, value in variables.items()}})
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def document(self):
        return json.loads(self.out.read_text())

    def jobs(self):
        return [sections.Job.from_dict(row) for row in self.document()["measured"]]


OURS = ["--contestants", "espalier,two-level,flat", "--places", "interleaved"]
SHORT = ["--only", "2x4", *OURS]  # 3 contestants, 2 rounds
JOBS = 6


# ---- what is kept, and measured again ----


def test_whole(world):
    done = world.run(*SHORT, "--out", world.out)
    document, jobs = world.document(), world.jobs()
    assert len(jobs) == len(set(jobs)) == len(world.rows("calls")) == JOBS and document["failed"] == []
    assert len(document["labs"]) == len(world.rows("labs")) == len(world.rows("downs")) == 1
    assert all(len(row["results"][0]["samples_us"]) == 3 for row in document["measured"])
    assert document["starts"][0]["command"] == f"scripts/bench-plink {' '.join(SHORT)}"
    assert "Measured: 2x4 (2 rounds). Not measured yet: 4x4, " in done.stdout and f"of {JOBS} jobs" in done.stderr
    assert subprocess.run([sys.executable, RESULTS, world.out], capture_output=True, text=True, check=True).stdout == done.stdout
    # A round begins where the last one did not.
    assert jobs[0].round == 0 and jobs[3].round == 1 and jobs[0].contestant != jobs[3].contestant


def test_told(world):
    """Espalier probes by itself; a plan by name gets what was probed before, once for the lab; flat gets nothing."""
    world.run(*SHORT, "--out", world.out)
    given = {(call["plan"], call["given"]) for call in world.rows("calls")}
    assert given == {(None, "probe"), ("two-level", "probed-1"), ("flat", None)}, given
    assert len(world.rows("probes")) == len(world.document()["probes"]) == 1
    assert all("--in-place" in call["words"] for call in world.rows("calls"))


def test_killed_and_resumed(world):
    """At any moment: what was done before is in the file, and is not measured again."""
    for at in (1, 4):
        for name in ("out.json", "calls"):
            (world.folder / name).unlink(missing_ok=True)
        world.run(*SHORT, "--out", world.out, status=-signal.SIGKILL, KILL_AT=at)
        assert len(world.jobs()) == at - 1
        world.run(*SHORT, "--out", world.out, "--resume")
        assert len(world.rows("calls")) == JOBS + 1, at  # the one that it was at, twice
        assert len(world.jobs()) == len(set(world.jobs())) == JOBS
        assert len(world.document()["labs"]) == len(world.document()["starts"]) == 2
        labs = {row["lab"] for row in world.document()["measured"]}
        assert labs == ({1} if at == 1 else {0, 1})


def test_resumed_when_done(world):
    world.run(*SHORT, "--out", world.out)
    before = world.out.read_bytes()
    done = world.run(*SHORT, "--out", world.out, "--resume")
    assert "nothing is left" in done.stderr and world.out.read_bytes() == before and len(world.rows("labs")) == 1
    # Other sizes, rates and sections are other measurements, and none is lost.
    world.run(*SHORT, "--sizes", "1M", "--out", world.out, "--resume")
    world.run(*SHORT, "--rate", "50mbit", "--out", world.out, "--resume")
    world.run("--only", "4x4", *OURS, "--out", world.out, "--resume")
    assert len(set(world.jobs())) == len(world.rows("calls")) == 4 * JOBS


def test_not_written_over(world):
    world.run(*SHORT, "--out", world.out)
    before = world.out.read_bytes()
    done = world.run(*SHORT, "--out", world.out, status=1)
    assert "add --resume" in done.stderr and world.out.read_bytes() == before


def test_damaged(world):
    world.run(*SHORT, "--out", world.out)
    whole = world.document()
    cut = [row for row in whole["measured"]]
    cut[0] = {**cut[0], "results": [{"bytes": 4, "samples_us": []}]}
    for text, reason in (("{", "no JSON"), ("[]", "is not what"), ('{"format": "bench-plink 0"}', "is not what"),
                         (json.dumps({**whole, "labs": []}), "damaged"), (json.dumps({**whole, "measured": [{}]}), "damaged"),
                         (json.dumps({**whole, "measured": cut}), "not positive"), (json.dumps({**whole, "failed": 3}), "damaged")):
        world.out.write_text(text)
        try:
            Store.load(world.out)
        except Unusable as problem:
            assert reason in str(problem), (text[:50], problem)
        else:
            raise AssertionError(f"taken: {text[:50]}")
    done = world.run(*SHORT, "--out", world.out, "--resume", status=1)
    assert "damaged" in done.stderr and "Traceback" not in done.stderr and world.out.read_text() == text, done.stderr
    shown = subprocess.run([sys.executable, RESULTS, world.out], capture_output=True, text=True)
    assert shown.returncode == 1 and "damaged" in shown.stderr and "Traceback" not in shown.stderr, shown.stderr
    assert world.run(*SHORT, "--resume", status=2).stdout == ""


def test_failed(world):
    """One that fails is left out, the others are measured; it is tried again later."""
    for variables, reason in (({"FAIL": "flat"}, "it broke"), ({"WRONG": "flat"}, "wrong results")):
        world.out.unlink(missing_ok=True)
        (world.folder / "calls").unlink(missing_ok=True)
        done = world.run(*SHORT, "--out", world.out, status=1, **variables)
        assert len(world.jobs()) == 4 and len(world.rows("calls")) == 5
        [row] = world.document()["failed"]
        assert reason in row["reason"] and row["contestant"] == "flat" and "What did not work" in done.stdout and reason in done.stdout
        world.run(*SHORT, "--out", world.out, "--resume")
        assert len(set(world.jobs())) == JOBS and world.document()["failed"] == []


def test_groups(world):
    """Twenty random groupings that are balanced and differ, a new probe and placement in each round."""
    world.run("--only", "groups-4x4", "--rounds", "2", "--out", world.out)
    runs, texts = collections.Counter(), []
    for row in world.document()["measured"]:
        runs[row["contestant"]] += len(row["results"][0]["samples_us"])
        assert row["results"][0]["plan"] == {"ring by groups": "ring", "flat": "flat"}.get(row["contestant"], "two-level")
    assert runs == {"two-level": 20, "two-level true": 20, "ring by groups": 20, "flat": 20, "two-level random": 20}
    for call in world.rows("calls"):
        assert "ESP_AUTOTUNE=off" in call["words"]
        if call["given"] and call["given"].startswith("random-"):
            texts.append(call["text"])
            hosts = re.findall(r"^host (\S+) under (\S+)", call["text"], re.MULTILINE)
            assert sorted(host for host, _ in hosts) == sorted(f"node{i}" for i in range(16))
            assert set(collections.Counter(rack for _, rack in hosts).values()) == {4}
    assert len(set(texts)) == len(texts) == 20
    assert len(world.rows("probes")) == 2 and {call["place"] for call in world.rows("calls")} == {"random:1", "random:2"}
    text = report.markdown(world.document())
    assert "mean of 20 random groupings / two-level | at least 1.80 | 1.49 (1.49 .. 1.49)" in text and "**missed**" in text
    assert "flat / two-level | at least 2.80 | 2.50" in text and "racks were found in 2 of 2, in 7.5 s" in text


def test_page(world):
    """Into its place in a page, and nothing else of it changes; pictures have a line for each plan."""
    world.run("--only", "groups-2x4", "--contestants", "two-level,flat", "--rounds", "1", "--out", world.out)
    page, text = world.folder / "page.md", report.markdown(world.document())
    show = lambda *words: subprocess.run([sys.executable, RESULTS, world.out, *words], capture_output=True, text=True)
    for before in ("", "old\\1 text\n"):
        page.write_text(f"a\n<!-- results-plink: begin -->\n{before}<!-- results-plink: end -->\nb\n")
        assert show("--into", page).returncode == 0
        assert page.read_text() == f"a\n<!-- results-plink: begin -->\n\n{text}\n<!-- results-plink: end -->\nb\n"
    page.write_text("no place\n")
    done = show("--into", page)
    assert done.returncode == 1 and "results-plink: begin" in done.stderr and page.read_text() == "no place\n"
    assert show("--pictures", world.folder).returncode == 0
    picture = xml.etree.ElementTree.parse(world.folder / "groups-2x4.svg").getroot()
    assert len(picture.findall("{http://www.w3.org/2000/svg}path")) == 2
    assert show("--pictures", world.folder / "nowhere").returncode == 1
    aims = show("--aims").stdout
    assert aims.startswith("Measured: groups-2x4 (1 round)") and "| at least 2.00 | 2.50" in aims and "###" not in aims


def test_list(world):
    done = world.run("--list")
    assert all(f"\n{section.name} " in done.stdout for section in sections.SECTIONS) and not world.rows("labs")
    world.run(*SHORT, "--rounds", "1", "--out", world.out)
    assert re.search(r"^2x4 +6 +3 ", world.run(*SHORT, "--list", "--out", world.out, "--resume").stdout, re.MULTILINE)
    assert "there is no section 3x3; there are 2x4" in world.run("--only", "3x3", status=2).stderr
    assert "there is no contestant nccl" in world.run("--contestants", "nccl", status=2).stderr


# ---- sections ----


def test_jobs():
    for section in sections.SECTIONS:
        jobs = sections.jobs_of(section)
        assert len(jobs) == len(set(jobs)) > 0
        for job in jobs:
            assert sections.Job.from_dict(json.loads(json.dumps(job.as_dict()))) == job
            assert 0 < sections.job_seconds(job) < 300
        seeds = [job.grouping for job in jobs if job.grouping >= 0]
        assert sorted(seeds) == list(range(section.random_groups))
        runs = collections.Counter()
        for job in jobs:
            runs[job.contestant, "random" if section.kind == sections.GROUPS else job.place] += job.iters
        assert min(runs.values()) >= (50 if section.kind == sections.GROUPS else 5), section.name
    draw = random.Random(1)
    for _ in range(200):
        total, parts = draw.randrange(0, 40), draw.randrange(1, 9)
        assert [i for part in range(parts) for i in sections.shared_out(total, parts, part)] == list(range(total))
    by_name = {section.name: section for section in sections.SECTIONS}
    larger = sections.jobs_of(by_name["4x4"].__class__(**{**vars(by_name["4x4"]), "sizes": (100 * MIB,)}))
    assert sections.section_seconds(larger) > 4 * sections.section_seconds(sections.jobs_of(by_name["4x4"]))


def test_bounds():
    two, four = sections.TWO, sections.FOUR
    assert abs(sections.bound_seconds(two, 100 * MIB) - 1.75 * 100 * MIB * 8 * 1514 / 1448 / 1e9) < 1e-9  # the hosts'
    assert abs(sections.bound_seconds(sections.TWO_8, MIB) - MIB * 8 * 1514 / 1448 / 5e8) < 1e-9  # the uplinks'
    assert abs(sections.bound_seconds(two, MIB, 2e9, 1e8) - MIB * 8 * 1514 / 1448 / 1e8) < 1e-9  # as measured
    assert f"{sections.flat_over_bound(two):.2f} {sections.flat_over_bound(four):.2f}" == "2.29 3.20"
    assert sections.flat_over_bound(sections.Network(1, 8, "1gbit", 1)) == 1


# ---- the report ----


def document_of(rows, labs=1, rate=1e9):
    """rows: (section, contestant, place, samples in ms[, lab])"""
    by_name = {section.name: section for section in sections.SECTIONS}
    document = {"format": "bench-plink 1", "starts": [], "probes": [], "failed": [], "measured": [], "labs": [
        {"section": "", "network": vars(sections.TWO),
         "checks": [{"link": link, "bits_per_second": rate / (i + 1), "asked_bits_per_second": rate, "rtt_seconds": 1e-4}
                    for link in ("host", "uplink")]} for i in range(labs)]}
    for number, (name, contestant, place, samples, *lab) in enumerate(rows):
        job = sections.Job(name, by_name[name].network, contestant, place, number, by_name[name].sizes[:1], 1, 0, (),
                           "probe" if contestant in sections.TOLD else "")
        document["measured"].append({**job.as_dict(), "lab": (lab or [0])[0], "wall_s": 1, "results": [
            {"bytes": by_name[name].sizes[0], "samples_us": [sample * 1000 for sample in samples]}]})
    return document


def aims_in(document):
    return {aim.what: aim for aim in report.aims_of(report.tables_of(document))}


def test_aims():
    aims = aims_in(document_of([
        ("2x4", "espalier", "interleaved", [1500, 1540, 1600]), ("2x4", "gloo ring", "interleaved", [6100, 6261, 6400]),
        ("2x4", "gloo halving-doubling", "interleaved", [3000, 3100]), ("2x4", "espalier", "contiguous", [1540]),
        ("2x4", "gloo ring", "contiguous", [1536]), ("2x4", "openmpi default", "contiguous", [3600]),
        ("2x4", "two-level", "contiguous", [1600]), ("2x4", "flat", "contiguous", [3200])]))
    ring = aims["2x4, 100 MiB, interleaved: gloo ring / espalier"]
    assert ring.row()[1] == "at least 3.30" and ring.row()[2].startswith("4.07 (") and ring.verdict() == "yes"
    assert aims["2x4, 100 MiB, interleaved: gloo halving-doubling / espalier"].verdict() == "**missed**"
    best = aims["2x4, 100 MiB, contiguous: best peer (gloo ring) / espalier"]
    assert best.row()[2].startswith("0.997 (") and best.verdict() == "**missed**"
    bound = aims["2x4, 100 MiB, interleaved: espalier / bound"]
    assert abs(bound.reached.value - 1540 / 1534.9) < 0.001 and bound.verdict() == "yes" and bound.row()[1] == "at most 1.25"
    flat = aims["2x4, 100 MiB, contiguous: flat / two-level"]
    assert flat.reached.value == 2 and flat.verdict() == "yes" and "2.29" in flat.row()[3]
    # What was told the racks is no answer to an aim for what was told nothing.
    document = document_of([("2x4", "espalier", "interleaved", [1500]), ("2x4", "gloo ring", "interleaved", [6000])])
    document["measured"][0]["topology"] = "true"
    assert not aims_in(document) and "espalier, told" in report.markdown(document)


def test_verdicts():
    spread = report.Spread(1.0, 0.9, 1.1)
    for sign, aim, verdict in ((">=", 1.0, "yes"), (">=", 1.05, "within the spread"), (">=", 1.2, "**missed**"), (">", 1.0, "within the spread"),
                               ("<=", 1.0, "yes"), ("<=", 0.95, "within the spread"), ("<=", 0.8, "**missed**"), ("", 9, "")):
        assert report.Aim("", sign, aim, spread).verdict() == verdict, (sign, aim)


def test_gap():
    wide = [("2x4-8", "espalier", "interleaved", [300]), ("2x4-8", "gloo ring", "interleaved", [2000])]
    what = "2x4-8, 16 MiB, interleaved: gloo ring / espalier"
    alone = aims_in(document_of(wide))[what]
    assert alone.verdict() == "" and "2x4, which is not measured" in alone.row()[3]
    for before, verdict in ((4000, "yes"), (8000, "**missed**")):
        both = aims_in(document_of(wide + [("2x4", "espalier", "interleaved", [1000]), ("2x4", "gloo ring", "interleaved", [before])]))
        assert both[what].aim == before / 1000 and both[what].verdict() == verdict


def test_labs_are_not_mixed():
    """Each sample is held against the bound of the lab that it was measured on."""
    [table] = report.tables_of(document_of([("2x4", "espalier", "contiguous", [2000], 0), ("2x4", "espalier", "contiguous", [4000], 1)], labs=2))
    cell = table.cells["contiguous", 100 * MIB]["espalier"]
    assert len(set(cell.bounds)) == 2 and abs(cell.of_bound().low - cell.of_bound().high) < 1e-9


def test_numbers():
    draw = random.Random(2)
    for _ in range(200):
        a, b = ([draw.uniform(1, 100) for _ in range(draw.randrange(2, 60))] for _ in range(2))
        deciles = statistics.quantiles(a, n=10, method="inclusive")
        assert abs(report.quantile(a, 0.1) - deciles[0]) < 1e-9 and abs(report.quantile(a, 0.9) - deciles[8]) < 1e-9
        assert abs(report.median(a) - statistics.median(a)) < 1e-9
        spread = report.over(a, b)
        assert spread.low <= spread.value <= spread.high
        back = report.over(b, a)
        assert abs(spread.value * back.value - 1) < 1e-9 and abs(spread.low * back.high - 1) < 1e-9
    assert [report.size_text(size) for size in (4, 64 << 10, MIB, 128_000_000)] == ["4 B", "64 KiB", "1 MiB", "128 MB"]


def test_nothing_yet():
    text = report.markdown(document_of([]))
    assert "Measured: nothing yet. Not measured yet: 2x4, 4x4, " in text and "Aims" not in text


def test_store():
    """Kept in memory where there is no file; a failure is forgotten when the job succeeds."""
    store = Store.create(None)
    job = sections.jobs_of(sections.SECTIONS[0])[0]
    store.add_failed(job, "a")
    store.add_failed(job, "b")
    assert [row["reason"] for row in store.document["failed"]] == ["b"] and not store.is_done(job)
    store.add_measured(job, store.add_lab("2x4", job.network, []), 1, [{"bytes": 4, "samples_us": [1]}])
    assert store.document["failed"] == [] and store.is_done(job)
    try:
        Store.load("/dev/null/nowhere")
    except Unusable as problem:
        assert "Not a directory" in str(problem)
    else:
        raise AssertionError("a file that cannot be")


def main():
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        print(name, flush=True)
        if test.__code__.co_argcount:
            with tempfile.TemporaryDirectory() as folder:
                test(World(folder))
        else:
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
