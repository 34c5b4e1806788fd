#!/usr/bin/env python3
"""espalier bench from outside: what it refuses, its table, its JSON, and right results of small runs.

bench_cli_test.py ESPALIER MAN_PAGE
"""
import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from ports import free_port

OK, NO, USAGE = 0, 1, 2
SECONDS = 120  # no run here takes more than a few
COLLECTIVES = ["allreduce", "reduce-scatter", "allgather", "broadcast", "reduce", "gather", "scatter", "alltoall", "barrier"]
ONLY_OUT_OF_PLACE, ONLY_IN_PLACE = {"alltoall", "barrier"}, {"broadcast"}
LAUNCHED = re.compile(r"ESP_|RANK$|WORLD_SIZE$|MASTER_")
QUICK = ["--iters", "3"]


def environment(**variables):
    clean = {name: value for name, value in os.environ.items() if not LAUNCHED.match(name)}
    return {**clean, **variables}


def run(*words, **variables):
    done = subprocess.run([sys.argv[1], "bench", *words], capture_output=True, text=True, env=environment(**variables),
                          timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


def run_json(*words):
    status, out, err = run("--json", *QUICK, *words)
    assert status == OK and err == "", (words, status, out, err)
    return json.loads(out)


def test_refused():
    cases = {
        ("alreduce",): "did you mean 'allreduce'?",
        ("everything",): "there are allreduce",
        ("allreduce", "allgather"): "unexpected argument 'allgather'",
        ("--no-such",): "unknown option '--no-such'",
        ("--ranks", "0"): "--ranks: '0' is not",
        ("--ranks", "100000"): "from 1 to 4096",
        ("--size", "x"): "--size: 'x' is neither a size",
        ("--size", "0"): "--size: '0' is not from 1 byte to 64T",
        ("--size", "99999999999999999999"): "--size: '99999999999999999999' is not from 1 byte to 64T",
        ("--size", "4:65T"): "--size: '65T' is not from 1 byte to 64T",
        ("--size", "4:"): "nor a range such as 4:128M",
        ("--size", "8:4"): "'8:4' begins above its end",
        ("--size", "4,"): "--size: '' is neither",
        ("-b", "8", "--size", "4"): "--size says which sizes already",
        ("-b", "8", "-e", "4"): "'8:4' begins above its end",
        ("--size", "4,8", "--factor", "4"): "--factor is for a range",
        ("--factor", "1"): "--factor: '1' is not",
        ("--size", "4,8", "-i", "4"): "--stepbytes is for a range",
        ("--factor", "4", "-i", "4"): "choose one",
        ("-b", "1", "-e", "1K", "-i", "1"): "more than 256 sizes: take a larger step",
        ("-n", "2", "--size", "60T"): "--size: 60T in two buffers of each of 2 ranks is more than the memory of this machine",
        ("barrier", "--size", "4"): "--size means nothing to barrier, which moves no data",
        ("barrier", "-e", "4"): "--maxbytes means nothing to barrier",
        ("barrier", "--type", "f64"): "--type means nothing to barrier",
        ("--transport", "tcp", "--set", "transport=shm"): "--transport and --set transport=shm say the same thing: choose one",
        ("--set", "ESP_TRANSPORT=tcp", "--set", "lanes=1", "--transport", "tcp"): "choose one",
        ("--plan", "rign"): "did you mean 'ring'?",
        ("--plan", "ring", "--plan=tree,zzzzzz"): "unknown planner 'zzzzzz'",
        ("--plan", "ring,"): "unknown planner ''",
        ("--plan", "ring,hub"): "hub needs hubs or switches beside the ranks",
        ("--transport", "udp"): "is not one of auto, shm, tcp",
        ("--type", "f8"): "--type: 'f8' is not one of",
        ("--type", "bytes"): "sum is not defined for bytes",
        ("--op", "band"): "band is not defined for f32",
        ("--op", "sum", "allgather"): "--op is for allreduce, reduce-scatter and reduce, and means nothing to allgather",
        ("--root", "0"): "--root is for broadcast, reduce, gather and scatter, and means nothing to allreduce",
        ("broadcast", "-n", "3", "--root", "3"): "--root 3, but ranks end at 2",
        ("--iters", "0"): "--iters: '0' is not",
        ("--seconds", "-1"): "--seconds is a number from 0",
        ("--check", "2"): "--check: '2' is not",
        ("--memory", "gpu"): "is not one of alloc, malloc",
        ("--async", "--persistent"): "choose one",
        ("alltoall", "--in-place"): "--in-place: alltoall cannot be in place",
        ("barrier", "--in-place"): "--in-place: barrier cannot be in place",
        ("--set", "lanes"): "--set: expected NAME=VALUE, not 'lanes'",
        ("--set", "lanes=1", "--set", "lanes=65"): "lanes is 0 or a number from 1 to 64",
        ("--set", "lane=1"): "did you mean lanes?",
    }
    for words, text in cases.items():
        status, out, err = run(*words)
        assert status == USAGE and out == "" and text in err, (words, status, out, err)


def test_settings_of_the_environment():
    """What a job can do without is passed over; where it is, and who may take part, is not."""
    status, _, err = run("-n", "2", "--size", "64", *QUICK, ESP_LANES="abc", ESP_PORT="")
    assert status == OK and "ESP_LANES" in err and "ignored" in err, (status, err)
    for name, value in (("ESP_PORT", "abc"), ("ESP_FAMILY", "ipx"), ("ESP_QUORUM", "2")):
        status, out, err = run("-n", "2", "--size", "64", *QUICK, **{name: value})
        assert status == NO and out == "" and name in err and f"not '{value}'" in err and "ignored" not in err, (status, err)


def test_help():
    status, out, err = run("--help")
    assert status == OK and err == "" and out.startswith("usage: espalier bench [options] [COLLECTIVE]\n")


def test_man_page_knows_every_option():
    page = pathlib.Path(sys.argv[2]).read_text().replace("\\-", "-")
    for name in re.findall(r"^ .*?(--[a-z-]+)", run("--help")[1].split("options:")[1], re.MULTILINE):
        assert re.search(rf"^\.B.* ?{name}\b", page, re.MULTILINE), name


def test_table():
    status, out, err = run("-n", "2", "--size", "4:16K", "--factor", "64", "--plan", "ring", *QUICK)
    assert status == OK and err == "", (status, out, err)
    lines = out.splitlines()
    widths = [12, 12, 8, 6, 6] + 2 * [7, 6, 6, 6]
    rows = [line for line in lines if not line.startswith("#")]
    assert [int(row.split()[0]) for row in rows] == [4, 256, 16384]
    for row in rows:
        cells = row.split()
        assert row == "  ".join(cell.rjust(width) for cell, width in zip(cells, widths)), row
        assert cells[2:5] == ["float", "sum", "-1"] and cells[8] == cells[12] == "0", row
    assert "# nRanks 2 minBytes 4 maxBytes 16384 step: 64(factor) warmup iters: 1 iters: 3 validation: 1" in lines
    assert "# plan: ring" in lines
    status, out, err = run("-n", "2", "-b", "1K", "-e", "10K", "-i", "4K", *QUICK)
    assert status == OK and "# nRanks 2 minBytes 1024 maxBytes 10240 step: 4096(bytes) " in out, (status, out, err)
    assert [int(row.split()[0]) for row in out.splitlines() if not row.startswith("#")] == [1024, 5120, 9216]
    status, out, err = run("-n", "2", "--size", "10,3,8,64K", *QUICK)
    assert status == OK and "\n# sizes are multiples of 4 bytes (float): 10 became 8, 3 became 4\n" in out, (status, out, err)
    status, out, err = run("-n", "2", "--size", "1:6", "-i", "1", "--type", "f64", "--json", *QUICK)
    note = "sizes are multiples of 8 bytes (double): 1 became 8, 2 became 8, 3 became 8, 4 became 8, and 2 more"
    assert status == OK and json.loads(out)["config"]["note"] == note, (status, out, err)
    assert lines[-2] == "# Out of bounds values : 0 OK" and lines[-1].startswith("# Avg bus bandwidth    : ")


def check_mode(row, mode):
    assert {"time", "alg_bw", "bus_bw", "nwrong", "min", "p50", "p90", "max", "samples"} <= set(mode), row
    assert mode["nwrong"] == (None if row["collective"] == "barrier" else 0), row
    assert len(mode["samples"]) == 3 and mode["min"] <= mode["p50"] == mode["time"] <= mode["p90"] <= mode["max"], row
    assert mode["min"] == min(mode["samples"]) and mode["max"] == max(mode["samples"]), row


def check_row(row, ranks, transport):
    name = row["collective"]
    reduces, rooted = name in {"allreduce", "reduce-scatter", "reduce"}, name in {"broadcast", "reduce", "gather", "scatter"}
    assert row["redop"] == ("sum" if reduces else "none") and row["root"] == (1 if rooted else -1), row
    assert row["type"] == "float" and row["ranks"] == ranks and row["transport"] == transport and row["plan"], row
    for key, missing in (("out_of_place", ONLY_IN_PLACE), ("in_place", ONLY_OUT_OF_PLACE)):
        if name in missing:
            assert row[key] is None, row
        else:
            check_mode(row, row[key])


def test_all_collectives():
    for ranks, transport in ((2, "shm"), (2, "tcp"), (3, "auto")):
        got = run_json("all", "-n", str(ranks), "--transport", transport, "--root", "1", "--size", "4,6000,300K")
        assert {"version", "start_time", "args", "config", "results", "out_of_bounds", "average_bus_bandwidth"} <= set(got)
        assert got["out_of_bounds"] == {"count": 0, "okay": True} and got["errors"] == []
        assert got["average_bus_bandwidth"]["bandwidth"] > 0 and got["config"]["nranks"] == ranks
        assert [device["rank"] for device in got["config"]["devices"]] == list(range(ranks))
        names = [row["collective"] for row in got["results"]]
        assert sorted(set(names), key=names.index) == COLLECTIVES and names.count("barrier") == 1
        assert all(names.count(name) == 3 for name in COLLECTIVES[:-1])
        for row in got["results"]:
            check_row(row, ranks, transport)


def test_types_and_operations():
    for words in (["--type", "bf16"], ["--type", "half", "--op", "avg"], ["--type", "i8", "--op", "bxor"],
                  ["--type", "f64", "--op", "prod"], ["--type", "u16", "--op", "max"], ["--op", "scaled"],
                  ["--type", "bytes", "allgather"]):
        got = run_json("-n", "3", "--size", "24,5000", *words)
        assert got["out_of_bounds"]["count"] == 0 and len(got["results"]) == 2, words


def test_plans():
    got = run_json("-n", "3", "--size", "5000", "--plan", "ring,tree", "--plan", "flat")
    assert [row["plan"] for row in got["results"]] == ["ring", "tree", "flat"]


def samples(*words):
    """How many a small run has."""
    status, out, err = run("--json", "-n", "2", "--size", "20K", "--iters", "3", *words)
    assert status == OK and err == "", (words, status, err)
    row = json.loads(out)["results"][0]
    assert row["in_place"]["nwrong"] == (None if words[:1] == ("--check",) else 0), words
    return len(row["in_place"]["samples"])


def test_ways_to_call():
    for words in (["--async"], ["--persistent"], ["--memory", "malloc"], ["--check", "0"], ["--warmup", "0"],
                  ["--set", "lanes=2", "--set", "chunk_bytes=4K"]):
        assert samples(*words) == 3, words


def test_seconds():
    """More samples, if three of them do not take as long; on a busy machine they may."""
    assert any(samples("--seconds", seconds) > 3 for seconds in ("0.2", "1", "5", "20"))


def test_in_place_alone():
    for collective in ("allreduce", "broadcast"):
        got = run_json(collective, "-n", "2", "--size", "20K", "--in-place")
        row = got["results"][0]
        assert row["out_of_place"] is None and row["in_place"]["nwrong"] == 0 and len(row["in_place"]["samples"]) == 3, row
    status, out, err = run("-n", "2", "--size", "1K", "--in-place", *QUICK)
    row = [line for line in out.splitlines() if not line.startswith("#")][0].split()
    assert status == OK and row[5:9] == ["N/A"] * 4 and row[12] == "0", (status, out, err)


def launch(ranks, *words):
    """As any launcher does: one process per rank, which find each other through the environment."""
    leader = f"127.0.0.1:{free_port()}"
    processes = [subprocess.Popen([sys.argv[1], "bench", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment(ESP_RANK=str(rank), ESP_SIZE=str(ranks), ESP_LEADER=leader))
                 for rank in range(ranks)]
    outputs = [process.communicate(timeout=SECONDS) for process in processes]
    return [(process.returncode, out, err) for process, (out, err) in zip(processes, outputs)]


def test_launched():
    first, second = launch(2, "--json", "--size", "64", *QUICK)
    assert first[0] == second[0] == OK and second[1] == second[2] == "", (first, second)
    assert json.loads(first[1])["config"]["nranks"] == 2
    first, second = launch(2, "-n", "3", "--size", "64")
    assert first[0] == second[0] == USAGE and "--ranks 3, but the job was started with 2" in first[2] and second[2] == ""
    first, second = launch(2, "broadcast", "--root", "2", "--size", "64")
    assert first[0] == second[0] == USAGE and "--root 2, but ranks end at 1" in first[2] and second[2] == ""


def way_on(cores, ranks):
    """By which way a large sum between sockets goes around, if all ranks may use these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        status, out, err = run("--json", "-n", str(ranks), "--transport", "tcp", "--size", "1M", "--plan", "ring", *QUICK, ESP_LOG="info")
    finally:
        os.sched_setaffinity(0, before)
    assert status == OK and json.loads(out)["results"][0]["out_of_place"]["nwrong"] == 0, (status, out, err)
    return re.search(r"allreduce of blocks of 1048576 bytes between \d+ ranks: (ring[^0-9]*), chunks", err + out).group(1)


def test_order_of_cores():
    cores = sorted(os.sched_getaffinity(0))
    assert way_on(cores[:1], 3) == "ring"  # they share the one core
    if len(cores) > 1:
        assert way_on(cores[:2], 5) == "ring, in the order of the cores"
        assert way_on(cores[:2], 2) == "ring"  # each has one


def test_full_disk():
    if not os.path.exists("/dev/full"):
        return
    for words in ([], ["--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.argv[1], "bench", "-n", "2", "--size", "64", *QUICK, *words], stdout=full,
                                  stderr=subprocess.DEVNULL, env=environment(), timeout=SECONDS)
        assert done.returncode == NO, words


def interrupted(*words, shows):
    """What stands on the terminal when Ctrl-C has ended a command whose rank shows there how far it is."""
    main_side, side = pty.openpty()
    job = subprocess.Popen([sys.argv[1], *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=side, env=environment())
    os.close(side)
    text = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while chunk := os.read(main_side, 4096):
            text += chunk
            if shows in text and job.returncode is None:
                job.send_signal(signal.SIGINT)
                shows = b"only once"
    os.close(main_side)
    return job.wait(timeout=SECONDS), text


def test_interrupted():
    """The line with the progress is gone before anything else is said."""
    for name, words, shows in [("bench", ["--json", "--size", "64K", "--seconds", "86400", "-n", "2"], b"1 of 1, allreduce of 64K"),
                               ("demo", ["--epochs", "1000", "-n", "2"], b"\repoch ")]:
        status, text = interrupted(name, *words, shows=shows)
        assert status == 128 + signal.SIGINT and text.endswith(f"\r\x1b[Kespalier: {name}: interrupted (SIGINT): all 2 ranks have ended\r\n".encode()), (status, text)


def test_nobody_reads():
    """As in a pipeline with head: that is no failure to be told of."""
    job = subprocess.Popen([sys.argv[1], "bench", "-n", "2", "--size", "4:64K"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    job.stdout.close()  # before there is anything to read
    job.stdout = None
    assert job.communicate(timeout=SECONDS)[1] == b"" and job.returncode == NO


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
