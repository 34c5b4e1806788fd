#!/usr/bin/env python3
"""What a user sees of a job: espalier status, diagnose and trace, metrics, the log, and what a full disk does to them.

watch_cli_test.py ESPALIER PROGRAM

Nothing here sleeps to wait: a rank is asked again until it says what is expected, and a job that never does ends the test. Where a limit has
to pass it is short, and on a machine that is too busy for that the job is made again with a longer one.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

OK, NO, USAGE = 0, 1, 2
ESPALIER, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
RANKS = 3
PATIENCE = 60  # seconds, until something is wrong
LIMITS = (1, 5, 20)  # seconds, for what has to be over for a limit to be seen


class Job:
    """espalier run of the program; its name is its own."""

    count = 0

    def __init__(self, what, rank=1, ranks=RANKS, wrap=(), **settings):
        Job.count += 1
        self.name = f"watch-{os.getpid()}-{Job.count}"
        env = {**CLEAN, "ESP_JOB": self.name, **{f"ESP_{name.upper()}": str(value) for name, value in settings.items()}}
        self.process = subprocess.Popen([*wrap, ESPALIER, "run", "-n", str(ranks), "--", PROGRAM, what, str(rank)], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, text=""):
        out, err = self.process.communicate(text, timeout=PATIENCE)
        return self.process.returncode, out, err

    def until_ready(self, ranks=RANKS):
        for _ in range(ranks):
            assert "ready" in self.process.stdout.readline()


@contextlib.contextmanager
def running(*words, **settings):
    job = Job(*words, **settings)
    try:
        yield job
    finally:
        if job.process.poll() is None:
            job.process.send_signal(signal.SIGINT)
        job.end()


def espalier(*words, **options):
    done = subprocess.run([ESPALIER, *map(str, words)], env=CLEAN, capture_output=True, text=True, timeout=PATIENCE, **options)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = espalier(*words)
    assert status == OK and err == "", (words, status, err)
    return out


def within_limits(test):
    """Makes it with one limit after the other, until one is long enough for this machine."""
    for seconds in LIMITS[:-1]:
        try:
            return test(seconds)
        except AssertionError as error:
            print(f"not within {seconds} s: {error}", flush=True)
    return test(LIMITS[-1])


def ask_until(job, holds, is_over=lambda: False):
    """What status says of this job, as soon as it says what is expected; unless that cannot come any more."""
    last = None
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not is_over():
        last = [found for found in json.loads(good("status", "--json", "--timeout", "500")) if found["job"] == job.name]
        if last and holds(last[0]):
            return last[0]
    raise AssertionError(last)


# ---- status ----

def test_status_names_who_hangs():
    with running("stop", deadline_seconds=10 * PATIENCE) as job:
        found = ask_until(job, lambda it: it["verdict"]["kind"] == "absent" and it["verdict"].get("number") == 56 and
                          sum(len(rank["calls"]) for rank in it["ranks"]) == RANKS - 1)
        assert found["verdict"]["rank"] == 1 and len(found["ranks"]) == RANKS, found
        assert found["size"] == RANKS and found["silent"] == [], found
        states = {rank["rank"]: rank for rank in found["ranks"]}
        assert states[1]["state"] == "idle" and states[1]["calls"] == [], states
        for rank in (0, 2):
            call = states[rank]["calls"][0]
            assert call["number"] == 56 and call["operation"] == "allreduce" and "262144 f32" in call["call"], call
        assert job.name in good("status", job.name) and "Not-that-one answers" in good("status", "Not-that-one")
        assert [found["job"] for found in json.loads(good("status", "--json", "--timeout", 10000, job.name))] == [job.name]
        assert json.loads(good("status", "--json", "Not-that-one")) == []
        text = ask_until_text(job, "has not made call 56")
        assert re.search(r"^rank +host +pid +state +call +for +waits for +since$", text, re.MULTILINE), text
        assert re.search(r"^ +0 .* (waits|busy) +#56 allreduce of 262144 f32, sum ", text, re.MULTILINE), text


def ask_until_text(job, words, *options):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        text = good("status", *options)
        if job.name in text and words in text:
            return text
    raise AssertionError(text)


def test_status_says_for_whom():
    """Over sockets each waits for a rank by name, chunk and step."""
    with running("stop", transport="tcp", deadline_seconds=10 * PATIENCE) as job:
        found = ask_until(job, lambda it: any(call.get("waits_for") == 1 for rank in it["ranks"] for call in rank["calls"]))
        call = next(call for rank in found["ranks"] for call in rank["calls"] if call.get("waits_for") == 1)
        assert {"chunk", "step", "seconds"} <= set(call), call


def test_status_of_a_stopped_rank():
    with running("stop", deadline_seconds=10 * PATIENCE) as job:
        found = ask_until(job, lambda it: len(it["ranks"]) == RANKS and all(rank["state"] != "joins" for rank in it["ranks"]))
        pid = next(rank["pid"] for rank in found["ranks"] if rank["rank"] == 2)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert ask_until(job, lambda it: it["silent"] == [2])
            text = ask_until_text(job, "does not answer", "-t", "300")
            assert re.search(rf"^ +2 +{re.escape(socket.gethostname())} +{pid} +does not answer ", text, re.MULTILINE), text
            assert ask_until(job, lambda it: it["silent"] == [2])["silent_processes"] == [pid]
        finally:
            os.kill(pid, signal.SIGCONT)


def test_status_of_a_rank_that_stops_anywhere():
    """Wherever in a large call it stops, it is named, and all others say that they wait."""
    ranks, reached = 4, 60

    def numbers(it):
        return [call["number"] for rank in it["ranks"] for call in rank["calls"]]

    with running("endless", ranks=ranks, deadline_seconds=10 * PATIENCE) as job:
        for turn in range(3 * ranks):
            victim = turn % ranks
            found = ask_until(job, lambda it: len(it["ranks"]) == ranks and max(numbers(it), default=0) > reached)
            reached = max(numbers(found)) + 20  # in full swing again, not where the one before stopped
            pids = {rank["rank"]: rank["pid"] for rank in found["ranks"]}
            os.kill(pids[victim], signal.SIGSTOP)
            try:
                ask_until(job, lambda it: it["silent"] == [victim] and len(it["ranks"]) == ranks - 1 and
                          (it["verdict"]["kind"], it["verdict"]["rank"]) == ("silent", victim) and
                          all(rank["state"] == "waits" for rank in it["ranks"]) and
                          any(call.get("waits_for") == victim for rank in it["ranks"] for call in rank["calls"]),
                          lambda: job.process.poll() is not None)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[victim], signal.SIGCONT)


@contextlib.contextmanager
def by_hand(ranks=RANKS, **settings):
    """A job whose ranks are started one by one: what starts them, and a thing with its name."""
    job = type("Job", (), {"name": f"watch-{os.getpid()}-by-hand"})
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        leader = f"127.0.0.1:{listener.getsockname()[1]}"
    started = []

    def start(rank):
        env = {**CLEAN, "ESP_JOB": job.name, "ESP_RANK": str(rank), "ESP_SIZE": str(ranks), "ESP_LEADER": leader,
               **{f"ESP_{name.upper()}": str(value) for name, value in settings.items()}}
        started.append(subprocess.Popen([PROGRAM, "work", "1"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True))
        return started[-1]
    try:
        yield job, start, leader
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_status_of_ranks_that_join():
    """Who has not come is named by rank 0; who cannot reach that says why; who has joined is not said to join any more."""
    with by_hand() as (job, start, leader):
        processes = [start(1)]
        found = ask_until(job, lambda it: "Connection refused" in it["ranks"][0].get("joins_waits_for", ""))
        assert [rank["rank"] for rank in found["ranks"]] == [1] and found["size"] == RANKS, found
        assert found["ranks"][0]["state"] == "joins" and found["ranks"][0]["joins_waits_for"].startswith("rank 0: "), found
        processes.append(start(0))
        found = ask_until(job, lambda it: len(it["ranks"]) == 2 and all("here" in rank.get("joins_waits_for", "") for rank in it["ranks"]) and
                          f"here: 0, 1 on {socket.gethostname()}" in it["ranks"][0]["joins_waits_for"])
        assert found["ranks"][0]["joins_waits_for"].startswith("1 of 3 ranks have not arrived: 2; "), found
        assert f"rank 0 at {leader} knows" in found["ranks"][1]["joins_waits_for"], found
        assert found["ranks"][0]["joins_seconds"] > 0 and found["verdict"]["kind"] == "none", found
        text = ask_until_text(job, "have not arrived: 2")
        assert re.search(rf"^ +0 .* {processes[1].pid} +joins +- +[0-9.]+ s +1 of 3 ranks ", text, re.MULTILINE), text
        processes.append(start(2))
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == OK and err == "", err
        assert all(it["job"] != job.name for it in json.loads(good("status", "--json")))


def test_leader_stops_while_all_join():
    """A rank that was heard by rank 0, and then hears nothing, says so."""
    def within(seconds):
        with by_hand(join_seconds=seconds) as (job, start, _):
            leader, other = start(0), start(1)
            ask_until(job, lambda it: "here: 0, 1 on" in it["ranks"][0].get("joins_waits_for", ""), lambda: leader.poll() is not None)
            leader.send_signal(signal.SIGSTOP)
            _, err = other.communicate(timeout=PATIENCE)
            assert other.returncode == NO and "has not sent the roster: is it stopped?" in err, err

    within_limits(within)


def test_status_can_be_switched_off():
    with running("wait", status="no") as job:
        job.until_ready()
        assert all(found["job"] != job.name for found in json.loads(good("status", "--json")))
        status, _, err = job.end("go\n")
        assert status == OK, err


# ---- diagnose ----

def diagnosed(what, kind, rank=1, deadline_seconds=PATIENCE, **settings):
    with tempfile.TemporaryDirectory() as folder:
        dumps = f"{folder}/dumps"
        status, _, err = Job(what, deadline_seconds=deadline_seconds, dump_dir=dumps, **settings).end()
        files = sorted(os.listdir(dumps))
        assert all(re.fullmatch(r"espalier-[0-9a-f]{16}-rank\d\.json", name) for name in files), files
        found = json.loads(good("diagnose", dumps, "--json"))
        assert found["verdict"]["kind"] == kind and found["verdict"]["rank"] == rank, (found, status, err)
        sentence, _, table = good("diagnose", dumps).partition("\n")
        assert sentence == found["verdict"]["text"] and re.search(rf"[Rr]ank {rank} ", sentence), sentence
        assert "rank  host" in table, table
        return found, sentence, files, err


def test_diagnose_hang():
    """The deadline is that of every call: all the others have to keep it, and the last one alone does not."""
    def within(seconds):
        found, sentence, files, err = diagnosed("hang", "absent", deadline_seconds=seconds)
        assert len(files) == RANKS and "had not made call 56 (allreduce of 262144 f32, sum), in which 2 ranks waited" in sentence, sentence
        assert "its last one, call 55" in sentence and found["verdict"]["number"] == 56, sentence
        assert "ESP_DUMP_DIR" not in err

    within_limits(within)


def test_diagnose_hang_over_sockets():
    within_limits(lambda seconds: diagnosed("hang", "absent", deadline_seconds=seconds, transport="tcp"))


def test_diagnose_death():
    found, sentence, files, _ = diagnosed("die", "died")
    assert len(files) == RANKS - 1 and "died, or ended without esp_fini()" in sentence, (files, sentence)


def test_diagnose_other_call():
    _, sentence, _, _ = diagnosed("other", "mismatch")
    assert "made allreduce of 77 f32, sum as call 56, where rank" in sentence, sentence


def test_diagnose_leaving():
    diagnosed("leave", "left")


def test_diagnose_nothing():
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = espalier("diagnose", folder)
        assert status == NO and out == "" and "ESP_DUMP_DIR" in err, err
        bad = pathlib.Path(folder, "espalier-1-rank0.json")
        for text in ("", "{", "[]", '{"espalier_account": 7}', "\0" * 100):
            bad.write_text(text)
            status, out, err = espalier("diagnose", folder)
            assert status == NO and str(bad) in err, (text, err)
        assert espalier("diagnose", f"{folder}/none")[0] == USAGE
        assert espalier("diagnose")[0] == USAGE


def test_the_log_tells_how():
    status, _, err = Job("hang", deadline_seconds=1).end()
    assert status == 1 and len(re.findall(r"\[0\] ESPALIER WARN WATCH a call has failed; with ESP_DUMP_DIR=FOLDER", err)) == 1, err
    for line in err.splitlines():
        line = re.sub(r"^\[\d\] ", "", line)
        assert "ESPALIER" not in line or re.fullmatch(r"[^ :]+:\d+:\d+ \[\d\] ESPALIER (WARN|ERROR) [A-Z]+ .+", line), line
    assert sum("ESPALIER" in line for line in err.splitlines()) <= 10, err


# ---- metrics ----

def get(path, request=b"GET /metrics HTTP/1.0\r\n\r\n"):
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(path)
        asker.settimeout(PATIENCE)
        asker.sendall(request)
        answer = b""
        while piece := asker.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.decode(), body.decode()


def value(body, name, **labels):
    for line in body.splitlines():
        if line.startswith(f"espalier_{name}{{") and all(f'{key}="{word}"' in line for key, word in labels.items()):
            return float(line.rpartition(" ")[2])
    raise AssertionError((name, labels, body))


def test_metrics():
    with tempfile.TemporaryDirectory() as folder:
        with running("wait", metrics=f"{folder}/%j-%r.sock", deadline_seconds=10 * PATIENCE) as job:
            job.until_ready()
            path = f"{folder}/{job.name}-0.sock"
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            head, body = get(path)
            assert head.startswith("HTTP/1.0 200 OK\r\n") and "text/plain; version=0.0.4" in head, head
            assert f"Content-Length: {len(body)}" in head and body.endswith("\n"), head
            assert value(body, "info", job=job.name, rank=0, ranks=3) == 1
            small = {"operation": "allreduce", "size": "64", "rank": 0}
            assert value(body, "call_seconds_count", **small) == 50 and value(body, "call_bytes_total", **small) == 2000
            assert value(body, "call_seconds_bucket", le="+Inf", **small) == 50
            assert value(body, "call_seconds_count", operation="allreduce", size="4M") == 5
            assert value(body, "sent_bytes_total") > 0 and value(body, "calls_under_way") == 0
            hangers_on = [socket.socket(socket.AF_UNIX) for _ in range(20)]
            for one in hangers_on:  # who says nothing keeps nobody from anything
                one.connect(path)
            assert get(path)[0].startswith("HTTP/1.0 200")
            assert get(path, b"GET /nothing HTTP/1.0\r\n\r\n")[0].startswith("HTTP/1.0 404")
            assert get(path, b"POST /metrics HTTP/1.0\r\n\r\n")[0].startswith("HTTP/1.0 405")
            assert get(path, b"\x16\x03\x01\r\n\r\n")[0].startswith("HTTP/1.0 400")
            assert get(path, b"x" * 2048)[0].startswith("HTTP/1.0 400")
            account = json.loads(get(path, b"GET /account HTTP/1.0\r\n\r\n")[1])
            assert len(account["calls"]) == 56 and account["rank"] == 0, len(account["calls"])
            status, _, err = job.end("go\n")
            assert status == OK and err == "", err
            for one in hangers_on:
                one.close()
        assert os.listdir(folder) == []


def test_metrics_after_a_kill():
    """A socket that a killed rank left is replaced; one that somebody has is not."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        status, _, err = Job("work", ranks=1, metrics=path).end()
        assert status == OK and err == "", err
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen()
            status, _, err = Job("work", ranks=1, metrics=path).end()
            assert status == OK and "WARN WATCH metrics: cannot listen at" in err, err
        status, _, err = Job("work", ranks=1, metrics="/" + "x" * 150).end()
        assert status == OK and "is too long for a socket" in err, err


# ---- traces ----

def check_slices(events):
    tracks = {}
    for event in events:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for track, slices in tracks.items():
        slices.sort()
        for (_, end), (begin, _) in zip(slices, slices[1:]):
            assert begin >= end - 0.0015, (track, end, begin)  # numbers are rounded


def test_trace():
    for settings in ({}, {"trace_detail": "yes", "transport": "tcp"}):
        with tempfile.TemporaryDirectory() as folder:
            status, _, err = Job("work", trace=f"{folder}/%r.json", **settings).end()
            assert status == OK and err == "", err
            files = sorted(pathlib.Path(folder).iterdir())
            assert [file.name for file in files] == ["0.json", "1.json", "2.json"], files
            for rank, file in enumerate(files):
                events = json.loads(file.read_text())
                names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
                assert names == [f"rank {rank} on {socket.gethostname()}"[:80]], names
                calls = [event for event in events if event.get("cat") == "call"]
                assert [call["args"]["number"] for call in calls] == list(range(57)), calls
                assert ({"lane", "wait"} & {event.get("cat") for event in events} != set()) == bool(settings), settings
                check_slices(events)
            status, out, err = espalier("trace", "merge", *reversed(files), "-o", f"{folder}/all.json")
            assert status == OK and out == "" and re.match(r"espalier: trace: \d+ events of 3 ranks on 1 host, \d+ arrows?\n", err), err
            status, out, again = espalier("trace", "merge", f"{folder}/all.json")
            assert status == NO and out == "" and "no trace of a rank" in again, again
            status, _, some = espalier("trace", "merge", files[0], files[2], "-o", f"{folder}/some.json")
            assert status == OK and "1 of 3 ranks is not in it: 1;" in some and "not in it" not in err, some
            merged = json.loads(pathlib.Path(folder, "all.json").read_text())
            events = merged["traceEvents"]
            assert min(event["ts"] for event in events if "ts" in event) == 0
            check_slices(events)
            ends = [event for event in events if event.get("cat") == "flow"]
            assert len(ends) % 2 == 0 and all(one["id"] == two["id"] and (one["ph"], two["ph"]) == ("s", "f") and one["ts"] < two["ts"]
                                              for one, two in zip(ends[::2], ends[1::2])), ends
            pids = [event["pid"] for event in events if event["name"] == "process_name"]
            assert pids == [0, 1, 2], pids


def test_trace_of_other_hosts():
    """They are named, and a name that is no name does no harm."""
    with tempfile.TemporaryDirectory() as folder:
        assert Job("work", trace=f"{folder}/%r.json").end()[0] == OK
        for rank, name in (1, "node7"), (2, 'a"b'):
            file = pathlib.Path(folder, f"{rank}.json")
            text = re.sub(r'"host": "[^"]*"', lambda _, name=name: f'"host": {json.dumps(name)}', file.read_text(), count=1)
            file.write_text(re.sub(r'"host_id": "[^"]*"', f'"host_id": "{rank:016x}"', text, count=1))
        status, out, err = espalier("trace", "merge", *(f"{folder}/{rank}.json" for rank in range(3)))
        assert status == OK and "3 ranks on 3 hosts" in err, err
        assert re.search(r'the clock of node7 \(rank 1\) is known to [\d.]+ us\n.*the clock of a"b \(rank 2\) is known to', err), err
        clocks = json.loads(out)["otherData"]["clocks"]
        assert re.match(r"\S+ \(rank 0\) is the measure; node7 \(rank 1\) is off by at most", clocks), clocks


def test_trace_of_the_killed():
    with tempfile.TemporaryDirectory() as folder:
        Job("die", trace=f"{folder}/%r.json").end()
        names = sorted(os.listdir(folder))
        assert "1.json.part" in names, names  # the others have failed, and may have left in good order
        files = [pathlib.Path(folder, name) for name in names]
        status, _, err = espalier("trace", "merge", *files, "-o", f"{folder}/all.json")
        assert status == OK, err
        json.loads(pathlib.Path(folder, "all.json").read_text())
        part = pathlib.Path(folder, "part")
        assert Job("work", ranks=1, trace=part).end()[0] == OK
        whole = part.read_bytes()
        for cut in (len(whole) - 1, len(whole) - 30, len(whole) // 2, len(whole) // 3):
            part.write_bytes(whole[:cut])
            status, out, err = espalier("trace", "merge", part)  # of one rank alone
            pathlib.Path(folder, "merged").write_text(out)
            assert espalier("trace", "merge", f"{folder}/merged")[0] == NO
            assert status == OK and len(json.loads(out)["traceEvents"]) > 5, (cut, err)


def test_one_path_for_all():
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = Job("work", trace=f"{folder}/all.json", metrics=f"{folder}/all.sock").end()
        assert status == OK and "put %r into ESP_TRACE" in err and "put %r into ESP_METRICS" in err, err


def test_trace_refusals():
    with tempfile.TemporaryDirectory() as folder:
        one, two = f"{folder}/one-%r", f"{folder}/two-%r"
        for pattern in (one, two):
            assert Job("work", ranks=1, trace=pattern).end()[0] == OK
        status, _, err = espalier("trace", "merge", f"{folder}/one-0", f"{folder}/one-0")
        assert status == NO and "are both of rank 0" in err, err
        status, _, err = espalier("trace", "merge", f"{folder}/one-0", f"{folder}/two-0")
        assert status == NO and "are" in err, err
        bad = pathlib.Path(folder, "bad")
        for text in ("", "x", "[3]", "{}", "[{}]", '[{"a": }]'):
            bad.write_text(text)
            status, out, err = espalier("trace", "merge", bad)
            assert status == NO and out == "" and str(bad) in err, (text, err)
        assert espalier("trace", "merge", f"{folder}/none")[0] == NO
        assert espalier("trace")[0] == USAGE and espalier("trace", "split")[0] == USAGE and espalier("trace", "merge")[0] == USAGE
        assert espalier("help", "trace", "merge")[0] == OK and espalier("trace", "--help")[0] == OK
        status, _, err = Job("work", ranks=1, trace="/nowhere/%r").end()
        assert status == OK and err.count("WARN WATCH trace: cannot write /nowhere/0.part") == 1, err


# ---- disks ----

def test_full_disk():
    """The job goes on, there is one warning, and nothing under the final name."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return
    with tempfile.TemporaryDirectory() as folder:
        script = f'mount -t tmpfs -o size=8k none {folder} && "$@"; status=$?; ls {folder}; exit $status'
        wrap = ("unshare", "--mount", "sh", "-c", script, "sh")
        if subprocess.run([*wrap, "true"], capture_output=True).returncode != 0:
            return
        status, out, err = Job("work", wrap=wrap, trace=f"{folder}/%r.json").end()
        assert status == OK and out == "" and len(re.findall("ESPALIER", err)) == 3, (status, out, err)
        assert len(re.findall(r"WARN WATCH trace: cannot write .*\.part: No space left on device", err)) == 3, err
        status, out, err = Job("hang", wrap=wrap, deadline_seconds=1, dump_dir=folder).end()
        assert status == 1 and out == "", (out, err)
        assert len(re.findall(r"WARN WATCH cannot write .*rank\d\.json: No space left on device", err)) >= 2, err
        assert len(re.findall(r"\[1\] ESPALIER WARN", err)) <= 3, err


def test_no_folder():
    status, _, err = Job("hang", deadline_seconds=1, dump_dir="/proc/nowhere").end()
    assert status == 1 and "WARN WATCH cannot make the folder /proc/nowhere" in err, err
    # Where it can be known it is said when the job starts, and a job in which nothing fails is not harmed.
    status, _, err = Job("work", dump_dir="/nonexistent/dumps").end()
    assert status == OK and len(re.findall("WARN WATCH dump_dir: nothing could be written into /nonexistent/dumps ", err)) == 3, (status, err)


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_") and (len(sys.argv) < 4 or name in sys.argv[3:]):
            print(name, flush=True)
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
