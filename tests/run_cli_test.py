#!/usr/bin/env python3
"""espalier run from outside: what ranks are told, what they print, how they end, and that nothing of them stays behind.

run_cli_test.py ESPALIER [HELLO LEAVE]

Nothing here sleeps to wait: ranks say that they are there, and a pipe that they inherit shows that they are gone.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import pty
import re
import resource
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
ESPALIER = os.path.abspath(sys.argv[1])
HELLO = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None  # examples/hello; None: nothing here can join
LEAVE = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None  # leave_program.c
LONG = 16384  # longer lines are cut
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
FOREVER = "1000000"  # seconds
# As ssh does: the words behind the host, with blanks between them, for a shell with an environment of its own.
# Keeps its command lines beside itself.
FAKE_RSH = """#!/bin/sh
printf '%s\\n' "$@" >> "$0.log"
shift
exec env -i PATH="$PATH" ESP_KEY_FILE=/there esp_text=there XTHERE=1 /bin/sh -c "$*"
"""


class Job:
    """espalier run, with a pipe that every process under it inherits: at its end nobody has it any more."""

    def __init__(self, *words, env=None, **streams_and_more):
        self.alive, theirs = os.pipe()
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams_and_more}
        self.process = subprocess.Popen([ESPALIER, "run", *map(str, words)], env={**CLEAN, **(env or {})},
                                        pass_fds=[theirs], **options)
        os.close(theirs)

    def lines(self, count, stream=None):
        """The next lines, in the order of ranks."""
        return sorted((stream or self.process.stdout).readline().decode() for _ in range(count))

    def wait(self):
        out, err = self.process.communicate()
        os.set_blocking(self.alive, False)
        with contextlib.suppress(BlockingIOError):
            assert os.read(self.alive, 1) == b"", "nobody writes there"
            os.close(self.alive)
            return self.process.returncode, out, err
        raise AssertionError("a process of the job is still there")

    def insist(self):
        """Ctrl-C once more, which counts when some time has passed since the first."""
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.05)

    def wait_for_ranks(self):
        """Until all of them are gone, whatever has become of espalier run."""
        assert os.read(self.alive, 1) == b""
        os.close(self.alive)


def run(*words, **options):
    data = options.pop("input", None)
    if data is None:
        status, out, err = Job(*words, **options).wait()
    else:
        job = Job(*words, stdin=subprocess.PIPE, **options)
        job.process.stdin.write(data)
        job.process.stdin.close()
        job.process.stdin = None
        status, out, err = job.wait()
    return status, out.decode(errors="surrogateescape"), err.decode(errors="surrogateescape")


def good(*words, **options):
    status, out, err = run(*words, **options)
    assert status == OK and err == "", (words, status, err)
    return out


def refused(*words, says, status=USAGE, **options):
    got, out, err = run(*words, **options)
    assert got == status and out == "" and says in err, (words, got, out, err)
    assert err.startswith("espalier: run: ") and err.count("\n") == 1, err


def sh(text):
    return ["--", "sh", "-c", text]


def by_rank(out):
    """{rank: lines}, after checking that each line has a rank in front."""
    ranks = {}
    for line in out.splitlines():
        found = re.fullmatch(r"\[(\d+)\][ +](.*)", line, re.DOTALL)
        assert found, line
        ranks.setdefault(int(found.group(1)), []).append(found.group(2))
    return ranks


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


@contextlib.contextmanager
def remote():
    """Options for a remote shell that is none, and the file with what it was called with."""
    with folder() as path:
        rsh = path / "rsh"
        rsh.write_text(FAKE_RSH)
        rsh.chmod(0o755)
        yield ["--rsh", str(rsh)], path / "rsh.log"


# ---- help and mistakes ----

def test_help():
    text = good("--help")
    assert text.startswith("usage: espalier run [options] -- COMMAND") and "espalier run -n 8 -- ./train" in text
    for name in ["ranks", "hosts", "hostfile", "leader", "port", "job", "env", "cwd", "rsh", "prefix", "no-prefix",
                 "output", "grace", "timeout", "json"]:
        assert f"--{name}" in text, name


def test_mistakes():
    for words, says in [
            ([], "no command"),
            (["-n", 2], "no command"),
            (["-n", 2, "--"], "no command"),
            (["-n", 2, "ls"], "behind --"),
            (["-n", 2, "echo", "-n", "hi"], "the command stands behind --: espalier run ... -- echo ..."),
            (["-n2", "--no-prefix", "--grace=3", "--env", "A=b", "ls", "--all"], "-- ls ..."),
            (["--rank", 2, "ls"], "did you mean --ranks?"),
            (sh("true"), "how many ranks?"),
            (["-n", 0, "--", "true"], "from 1 to 65536"),
            (["-n", 65537, "--", "true"], "from 1 to 65536"),
            (["-n", "x", "--", "true"], "from 1 to 65536"),
            (["-n", 2, "--bind", "core", "--", "true"], "unknown option"),
            (["-n", 2, "--prefix", "host", "--", "true"], "one of rank, none"),
            (["-n", 2, "--grace", "-1", "--", "true"], "--grace is a number of seconds"),
            (["-n", 2, "--timeout", "-1", "--", "true"], "--timeout is a number of seconds"),
            (["-n", 2, "--env", "X", "--", "true"], "NAME=VALUE"),
            (["-n", 2, "--env", "A B=c", "--", "true"], "NAME=VALUE"),
            (["-n", 2, "--env=ESP_RANK=1", "--", "true"], "set by espalier run itself"),
            (["-n", 2, "--env", "ESP_KEY=0123456789abcdef", "--", "true"], "command line"),
            (["-n", 2, "--leader", "here", "--", "true"], "--leader is host:port"),
            (["-n", 2, "--leader", "here:1", "--port", 2, "--", "true"], "leave out --port"),
            (["-n", 2, "--port", 65536, "--", "true"], "from 1 to 65535"),
            (["-n", 2, "--job", "x" * 128, "--", "true"], "128 bytes"),
            (["-n", 2, "--cwd", "/no/such", "--", "true"], "no folder /no/such"),
            (["-n", 2, "--output", "", "--", "true"], "is empty"),
            (["-n", 2, "--output", "/no/such/folder", "--", "true"], "cannot make the folder"),
            (["-n", 2, "--output", "x", "--prefix", "none", "--", "true"], "means nothing"),
            (["-n", 2, "--output", "x", "--no-prefix", "--", "true"], "means nothing"),
            (["-n", 2, "--rsh", "ssh", "--", "true"], "means nothing"),
            (["--hosts", "a", "--hostfile", "b", "--", "true"], "leave out one"),
            (["--hosts", "a:0", "--", "true"], "whole number from 1 to 65536"),
            (["--hosts", "-oProxyCommand=x", "--", "true"], "a host is written"),
            (["--hosts", "a:2", "-n", 3, "--", "true"], "places for 2"),
            (["--hosts", "a", "--rsh", " ", "--", "true"], "is empty"),
            (["--hostfile", "/no/such/file", "--", "true"], "/no/such/file")]:
        refused(*words, says=says)
    refused("-n", 2, "--", "true", says="ESP_KEY holds 5 bytes", env={"ESP_KEY": "short"})
    refused("-n", 2, "--", "true", says="ESP_KEY_FILE", env={"ESP_KEY_FILE": "/no/such/file"})


def test_command_that_cannot_run():
    refused("-n", 3, "--", "no-such-command", status=127, says="rank 0: there is no command 'no-such-command' along")
    refused("-n", 3, "--", "./no-such-command", status=127, says="there is no command './no-such-command'")
    refused("-n", 3, "--", "/", status=126, says="cannot run '/': it is a folder")
    refused("-n", 3, "--cwd", "/", "--", "./tmp", status=126, says="cannot run './tmp': it is a folder")
    with folder() as path:
        script = path / "script"
        script.write_text("#!/no/such/interpreter\n")
        refused("-n", 3, "--", script, status=126, says="Permission denied")
        script.chmod(0o755)
        refused("-n", 3, "--", script, status=127, says="what its first line names")


def test_limit_on_files():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    def few_for_now():
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    refused("-n", 100, "--", "true", status=NO, says="100 ranks need 232 open files", preexec_fn=few)
    with folder() as path:
        good("-n", 100, "--output", path, "--", "true", preexec_fn=few)
    out = good("-n", 100, *sh("ulimit -n"), preexec_fn=few_for_now)
    assert by_rank(out) == {rank: ["128"] for rank in range(100)}  # raised for us, not for the ranks


# ---- what ranks are told ----

def variables(*words, **options):
    """{rank: {name: value}} of ESP_ variables and X."""
    out = good(*words, "--", sys.executable, "-c",
               "import json, os\n"
               "ours = {n: v for n, v in os.environ.items() if n.upper().startswith(('ESP_', 'X'))}\n"
               "print(json.dumps(ours))", **options)
    return {rank: json.loads(lines[0]) for rank, lines in by_rank(out).items()}


def for_torch(*words, **options):
    """{rank: [RANK, WORLD_SIZE, ...]}"""
    out = good(*words, *sh("echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT"), **options)
    return {rank: lines[0].split() for rank, lines in by_rank(out).items()}


def test_variables_for_torch():
    told = for_torch("-n", 3)
    port = told[0][5]
    assert told == {rank: [str(rank), "3", str(rank), "3", "127.0.0.1", port] for rank in range(3)}
    # A store can listen there, on all addresses, while the job runs: it is a port that the system gives to nobody meanwhile.
    assert int(port) >= 61000
    listens = "import os, socket; socket.create_server(('', int(os.environ['MASTER_PORT'])))"
    good("-n", 1, "--", sys.executable, "-c", listens)
    # Not even the leader's; and of several jobs at a time each has its own.
    words = [ESPALIER, "run", "-n", "1", "--", "sh", "-c", "echo $MASTER_PORT ${ESP_LEADER##*:}; read line"]
    jobs = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=CLEAN) for _ in range(6)]
    taken = [port for job in jobs for port in job.stdout.readline().split()[1:]]
    for job in jobs:
        job.communicate("\n")
        assert job.returncode == 0
    assert len(taken) == 12 == len(set(taken)), taken
    # Who has said where it is has a reason; but not an outer espalier run.
    assert for_torch("-n", 1, "--env", "MASTER_PORT=7")[0][4:] == ["7"]
    assert for_torch("-n", 1, env={"MASTER_ADDR": "a", "MASTER_PORT": "8"})[0][4:] == ["a", "8"]
    assert for_torch("-n", 1, env={"MASTER_ADDR": "a", "MASTER_PORT": "8", "ESP_LEADER": "b:1"})[0][4] == "127.0.0.1"
    assert for_torch("-n", 1, "--leader", "[::1]:7000")[0][4] == "::1"
    assert for_torch("-n", 1, "--leader", "node7:7000")[0][4] == "node7"
    refused("-n", 1, "--env", "RANK=4", "--", "true", says="RANK is set by espalier run itself")


def test_variables():
    told = variables("-n", 4, "--job", "try", "--env", "X=1", "--env=X2=a=b c", "--env", "X=2")
    assert sorted(told) == [0, 1, 2, 3]
    leader, key = told[0]["ESP_LEADER"], told[0]["ESP_KEY"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", leader) and re.fullmatch(r"[0-9a-f]{64}", key)
    for rank in told:
        assert told[rank] == {"ESP_RANK": str(rank), "ESP_SIZE": "4", "ESP_LOCAL_RANK": str(rank),
                              "ESP_LOCAL_SIZE": "4", "ESP_LEADER": leader, "ESP_KEY": key, "ESP_JOB": "try",
                              "ESP_LAUNCHER": told[0]["ESP_LAUNCHER"], "X": "2", "X2": "a=b c"}
    again = variables("-n", 1)[0]
    assert again["ESP_KEY"] != key and re.fullmatch(r"python[\w.-]*-\d+", again["ESP_JOB"])
    assert variables("-n", 1, env={"ESP_JOB": "mine"})[0]["ESP_JOB"] == "mine"
    assert variables("-n", 1, "--leader", "[::1]:7000")[0]["ESP_LEADER"] == "[::1]:7000"
    assert variables("-n", 1, env={"ESP_LANES": "2"})[0]["ESP_LANES"] == "2"


def test_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused("-n", 1, "--port", port, "--", "true", says=f"port {port} of 127.0.0.1 cannot be used")
    assert variables("-n", 1, "--port", port)[0]["ESP_LEADER"] == f"127.0.0.1:{port}"


def test_port_is_kept_for_rank_0():
    """Between the choice of a port and rank 0's listening there, nobody else is given it; and rank 0 is, also much later."""
    program = ("import os, socket; port = int(os.environ['ESP_LEADER'].rsplit(':', 1)[1]); taken = socket.socket()\n"
               "try: taken.bind(('127.0.0.1', port)); print('free')\n"
               "except OSError as error: print(error.strerror)\n"
               "mine = socket.socket(); mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
               "mine.bind(('127.0.0.1', port)); mine.listen(); socket.create_connection(mine.getsockname()); print('listens')\n")
    status, out, err = run("-n", 1, "--", sys.executable, "-c", program)
    assert status == OK and out.splitlines() == ["[0] Address already in use", "[0] listens"], (status, out, err)


def test_key_that_is_given():
    key = "0123456789abcdef" * 4
    assert variables("-n", 2, env={"ESP_KEY": key})[1]["ESP_KEY"] == key
    words = variables("-n", 1, env={"ESP_KEY": "a key of some words"})[0]["ESP_KEY"]
    label = b"espalier key 1 passphrase".ljust(32, b"\0")
    assert words == hashlib.blake2b(label + b"a key of some words", digest_size=32).hexdigest()
    with folder() as path:
        file = path / "key"
        file.write_text(key + "\n")
        file.chmod(0o600)
        told = variables("-n", 1, env={"ESP_KEY_FILE": str(file), "ESP_KEY": "another one, that is weaker"})[0]
        assert told["ESP_KEY"] == key and "ESP_KEY_FILE" not in told
        file.chmod(0o644)
        refused("-n", 1, "--", "true", says="chmod 600", env={"ESP_KEY_FILE": str(file)})


def test_folder():
    with folder() as path:
        assert by_rank(good("-n", 2, "--cwd", path, *sh("pwd -P"))) == {r: [os.path.realpath(path)] for r in range(2)}


def test_fresh_signals():
    """Dispositions and the mask are those of a process that nobody has touched."""
    def touch():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    out = good("-n", 2, "--", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", preexec_fn=touch)
    assert by_rank(out) == {r: ["SigBlk:\t" + "0" * 16, "SigIgn:\t" + "0" * 16] for r in range(2)}, out


# ---- what they print ----

def test_streams():
    status, out, err = run("-n", 3, *sh("echo out; echo err >&2; printf rest; printf more >&2"))
    assert status == OK
    assert by_rank(out) == {r: ["out", "rest"] for r in range(3)}
    assert by_rank(err) == {r: ["err", "more"] for r in range(3)}
    status, out, err = run("-n", 3, "--prefix", "none", *sh("echo out $ESP_RANK; echo err >&2; printf rest"))
    assert sorted(out.splitlines()) == ["out 0", "out 1", "out 2", "rest", "rest", "rest"] and err == "err\n" * 3
    assert good("-n", 1, "--no-prefix", *sh("echo out")) == "out\n"


def test_whole_lines():
    """Lines that are written in pieces, by many ranks at once, come out whole and in order."""
    program = """
import os, sys
rank = os.environ["ESP_RANK"]
for i in range(300):
    text = f"{rank} {i} {'x' * (i * 97 % 9000)}\\n".encode()
    for at in range(0, len(text), 500):
        os.write(1 + i % 2, text[at:at + 500])
"""
    job = Job("-n", 6, "--", sys.executable, "-c", program, stderr=subprocess.STDOUT)
    status, out, _ = job.wait()
    assert status == OK
    for rank, lines in by_rank(out.decode()).items():
        assert [line for line in lines if int(line.split()[1]) % 2 == 0] == [
            f"{rank} {i} {'x' * (i * 97 % 9000)}" for i in range(0, 300, 2)]
        assert [line for line in lines if int(line.split()[1]) % 2 == 1] == [
            f"{rank} {i} {'x' * (i * 97 % 9000)}" for i in range(1, 300, 2)]


def test_long_lines():
    def printed(text):
        with folder() as path:
            (path / "text").write_text(text)
            return good("-n", 1, "--", "cat", path / "text")

    assert printed("x" * LONG + "\ny\n") == "[0] " + "x" * LONG + "\n[0] y\n"
    assert printed("x" * (2 * LONG + 1)) == "[0] " + "x" * LONG + "\n[0]+" + "x" * LONG + "\n[0]+x\n"
    assert len(printed("x" * 5_000_000)) == 5_000_000 + 306 * 5  # 306 pieces


def test_binary():
    data = bytes(byte for byte in range(256) if byte != 10) * 100
    with folder() as path:
        (path / "data").write_bytes(data)
        status, out, _ = Job("-n", 1, "--prefix", "none", "--", "cat", path / "data").wait()
    assert status == OK and out.replace(b"\n", b"") == data


def test_files():
    with folder() as path:
        logs = path / "logs"
        words = ["-n", 2, "--output", logs, *sh("printf '%s\\0no line' $ESP_RANK; echo bad >&2; exit $ESP_RANK")]
        status, out, err = run(*words)
        assert status == 1 and out == ""
        assert "rank 1 ended with status 1" in err and f"; see {logs}/rank-1.err\n" in err, err
        assert sorted(os.listdir(logs)) == ["rank-0.err", "rank-0.out", "rank-1.err", "rank-1.out"]
        assert (logs / "rank-1.out").read_bytes() == b"1\0no line" and (logs / "rank-0.err").read_text() == "bad\n"
        run(*words)  # once more: the same files anew
        assert (logs / "rank-1.out").read_bytes() == b"1\0no line"


def test_nobody_reads():
    """The end of whoever reads our output is the end of the job, as in any pipeline."""
    job = Job("-n", 2, "--", "yes")
    assert job.process.stdout.readline() in (b"[0] y\n", b"[1] y\n")
    job.process.stdout.close()
    job.process.stdout = None
    status, _, err = job.wait()
    assert status == NO and err == b"", (status, err)  # who reads no more knows it


def test_reader_that_stands_still():
    """Nobody reads, nothing fits into the pipe any more, and still Ctrl-C is heard."""
    job = Job("-n", 2, "--grace", FOREVER, *sh("trap 'echo int >&2' INT; trap 'echo term >&2' TERM; yes & echo up >&2; "
                                               "while :; do sleep 0.01; done"))
    for number, said in [(None, "up"), (signal.SIGINT, "int"), (signal.SIGTERM, "term")]:
        if number:
            job.process.send_signal(number)
        for _ in range(2):
            assert any(said.encode() in line for line in iter(job.process.stderr.readline, b"")), said
    reader, job.process.stdout = job.process.stdout, None
    job.insist()
    assert job.wait()[0] == 128 + signal.SIGKILL
    reader.close()


def test_closed_output():
    def close():
        os.close(1)

    status, _, err = Job("-n", 1, *sh("echo text"), stdout=None, preexec_fn=close).wait()
    assert status == NO and b"cannot write what the ranks print" in err, (status, err)
    status, _, err = Job("-n", 2, *sh("cat"), stdin=None, preexec_fn=lambda: os.close(0)).wait()
    assert status == OK and err == b""


def test_full_disk():
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            status, _, err = Job("-n", 1, *sh("echo text"), stdout=full).wait()
        assert status == NO and b"No space left" in err, (status, err)


# ---- what they read ----

def test_input():
    out = good("-n", 3, *sh("cat"), input=b"one\ntwo\n")
    assert by_rank(out) == {0: ["one", "two"]}
    assert good("-n", 2, *sh("cat")) == ""
    out = good("-n", 2, "--", "readlink", "/proc/self/fd/0", input=b"")
    assert by_rank(out)[1] == ["/dev/null"]


class Terminal:
    """espalier run at a terminal of its own, in front."""

    def __init__(self, *words):
        self.alive, theirs = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.set_inheritable(theirs, True)
            os.execve(ESPALIER, [ESPALIER, "run", *map(str, words)], CLEAN)
        os.close(theirs)
        self.text = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, wanted, count=1):
        while len(re.findall(wanted, self.text)) < count:
            self.text += os.read(self.fd, 4096).decode()

    def insist(self):
        """Ctrl-C once more, which counts when some time has passed since the first."""
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            with contextlib.suppress(OSError):
                self.type("\x03")
                if select.select([self.fd], [], [], 0.05)[0]:
                    self.text += os.read(self.fd, 4096).decode()

    def wait(self):
        with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
            while more := os.read(self.fd, 4096):
                self.text += more.decode()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert os.read(self.alive, 1) == b""
        os.close(self.fd)
        os.close(self.alive)
        return status


def test_terminal_input():
    job = Terminal("-n", 2, *sh("echo up; while read -r line; do echo got $line; done; echo end"))
    job.read_until("up", 2)
    job.type("one\n")
    job.read_until(r"\[0\] got one")
    job.type("\x04")  # Ctrl-D
    assert job.wait() == OK and job.text.count("[0] end") == 1 and job.text.count("[1] end") == 1, job.text


def test_terminal_output():
    """Without a prefix, the terminal is the ranks' own."""
    asks = sh("for fd in 1 2; do [ -t $fd ] && echo $ESP_RANK: terminal $fd; done; printf '\\rend'; exit 0")
    job = Terminal("-n", 2, "--no-prefix", *asks)
    assert job.wait() == OK
    assert all(job.text.count(f"{rank}: terminal {fd}") == 1 for rank in range(2) for fd in (1, 2)), job.text
    assert "[" not in job.text and job.text.count("\rend") == 2 and "end\r\n" not in job.text, job.text
    job = Terminal("-n", 2, *asks)
    assert job.wait() == OK and "terminal" not in job.text


def test_terminal_interrupt():
    """Ctrl-C reaches each rank once; the second time as SIGKILL."""
    counts = sh("n=0; trap 'n=$((n+1)); echo int $n' INT; trap 'echo sum $n; exit 0' TERM; echo up; "
                "while :; do sleep 0.01; done")
    job = Terminal("-n", 2, "--grace", FOREVER, *counts)
    job.read_until("up", 2)
    job.type("\x03")
    job.read_until("int 1", 2)
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait() == OK
    assert len(re.findall(r"\[[01]\] sum 1", job.text)) == 2 and "int 2" not in job.text, job.text
    job = Terminal("-n", 2, "--grace", FOREVER, *counts)
    job.read_until("up", 2)
    job.type("\x03")
    job.read_until("int 1", 2)
    job.insist()
    assert job.wait() == 128 + signal.SIGKILL and "int 2" not in job.text and "sum" not in job.text, job.text


# ---- how they end ----

def last_words(err):
    """Without what is said when the others do not end at once, as on a busy machine."""
    return re.sub(r"espalier: run: rank \d+ .*; the others have \S+ s from then on to end \(--grace\)\n", "", err)


def count_ranks(err, failed, status):
    """How many ranks the last words are about."""
    err = last_words(err)
    found = re.fullmatch(rf"espalier: run: rank {failed} ended with status {status}"
                         r"(?:(; rank \d) (?:had ended with status 0 by then|ended with status 0 at about the same time)"
                         r"|; (\d) ranks (?:had ended with status 0 by then|ended with status 0 at about the same time(?: or before)?), the last of them rank \d)?"
                         r"(?:; (\d) other ranks? ended after that(?:; the cause may be another rank: see what they said)?)?\n", err)
    assert found, err
    return 1 + (1 if found.group(1) else int(found.group(2) or 0)) + int(found.group(3) or 0)


def test_exit_status():
    assert run("-n", 3, *sh("exit 0"))[0] == OK
    # The last one, as all are there by then.
    for _ in range(5):
        status, _, err = run("-n", 3, "--grace", 60, *sh("[ $ESP_RANK != 2 ] || exit 7"))
        assert status == 7 and count_ranks(err, 2, 7) == 3, err
    # The others when it is gone: whatever is known of the time, each of them counts once.
    with folder() as path:
        os.mkfifo(path / "pid")
        status, _, err = run("-n", 2, "--grace", 60, "--cwd", path,
                             *sh("[ $ESP_RANK = 0 ] || { echo $$ > pid; exit 7; }; read -r pid < pid; while kill -0 $pid; do :; done 2>/dev/null"))
        assert status == 7 and count_ranks(err, 1, 7) == 2, err
    # One leaves in the middle, as if all was well: here a pipe that it held tells the other.
    with folder() as path:
        os.mkfifo(path / "news")
        status, _, err = run("-n", 2, "--grace", 3600, "--cwd", path, *sh("[ $ESP_RANK = 0 ] || { exec 3>news; exit 0; }; cat news; exit 4"))
    assert status == 4 and count_ranks(err, 0, 4) == 2, err
    status, _, err = run("-n", 1, *sh("kill -9 $$"))
    assert status == 128 + 9 and err == "espalier: run: rank 0 was killed by signal 9 (Killed)\n"


def test_one_fails():
    """The others get their time and then SIGTERM; their children too."""
    status, _, err = run("-n", 4, "--grace", 0, *sh(f"[ $ESP_RANK != 3 ] || exit 3; sleep {FOREVER} & wait"))
    assert status == 3
    found = re.search(r"rank 3 ended with status 3; 3 other ranks ended after that, 3 of them only when told to\n", err)
    assert found, err
    # The others end by themselves when they hear of it: here through a pipe that the first one holds.
    with folder() as path:
        os.mkfifo(path / "news")
        status, _, err = run("-n", 2, "--grace", 3600, "--cwd", path,
                             *sh("[ $ESP_RANK = 0 ] || { exec 3>news; kill -9 $$; }; cat news; exit 4"))
    assert status == 128 + 9
    assert last_words(err) == "espalier: run: rank 1 was killed by signal 9 (Killed); 1 other rank ended after that\n", err
    # All alike: there is no other cause to look for.
    with folder() as path:
        os.mkfifo(path / "all")
        status, _, err = run("-n", 2, "--grace", 3600, "--cwd", path, *sh("if [ $ESP_RANK = 0 ]; then read -r x < all; else : > all; fi; exit 4"))
    assert status == 4 and re.fullmatch(r"espalier: run: rank \d ended with status 4(; 1 other rank ended after that)?\n", last_words(err)), err


def test_cause():
    """The last rank leaves in the middle, and the others' processes end before its own: they say whose fault it is."""
    for how in ["fini", "abort"] if LEAVE else []:
        for size in [2, 3, 12]:
            status, out, err = run("-n", size, "--grace", 3600, "--json", "--", LEAVE, how)
            assert status == 3, (how, size, status, err)
            found = re.search(rf"espalier: run: rank {size - 1} ended with status 3; rank (\d+), which ended before it, has failed because of it\n$", err)
            assert found and int(found.group(1)) < size - 1, err
            assert json.loads(out)["first_failed"] == size - 1


def test_stubborn():
    with folder() as path:
        os.mkfifo(path / "go")
        status, _, err = run("-n", 2, "--grace", 0, "--cwd", path,
                             *sh("[ $ESP_RANK != 1 ] || { read -r x < go; exit 3; }; trap '' TERM; echo > go; "
                                 f"while :; do sleep {FOREVER}; done"))
    assert status == 3 and "rank 1 ended with status 3; 1 other rank ended after that, 1 of them only when" in err, err


def test_children_that_are_left():
    status, out, err = run("-n", 2, *sh(f"sleep {FOREVER} & sleep {FOREVER} >/dev/null 2>&1 & echo bye"))
    assert status == OK and by_rank(out) == {0: ["bye"], 1: ["bye"]} and err == ""
    # They may finish what they are at.
    assert sorted(by_rank(good("-n", 1, *sh("echo last & echo first")))[0]) == ["first", "last"]


def test_timeout():
    status, _, err = run("-n", 2, "--timeout", 0.1, *sh(f"sleep {FOREVER}"))
    assert status == 124 and "the job has not ended within 0.1 s: SIGTERM for 2 ranks" in err, err
    assert err.endswith("\nespalier: run: 2 ranks were ended by the time limit\n") and "killed" not in err, err
    # Ranks that do not heed SIGTERM, that end by themselves, that fail when they are told, and that fail before.
    for kinds in [["stay", "stay"], ["deaf", "exit 0", "told"], ["stay", "exit 3"]]:
        what = {"stay": ":", "deaf": "trap '' TERM", "told": "trap 'exit 3' TERM"}
        cases = " ".join(f"{rank}) {what.get(kind, kind)};;" for rank, kind in enumerate(kinds))
        status, out, err = run("-n", len(kinds), "--timeout", 0.2, "--grace", FOREVER, "--json",
                               *sh(f"case $ESP_RANK in {cases} esac; while :; do sleep {FOREVER}; done"))
        told = json.loads(out)
        # On a busy machine some have not come to what they were to do. Whatever they did, it is told right.
        ended = sum(rank["signal"] in (signal.SIGTERM, signal.SIGKILL) for rank in told["ranks"])
        failed = [rank["rank"] for rank in told["ranks"] if rank["status"] and rank["signal"] is None]
        assert status == told["status"] == 124 and told["timed_out"] and ended, told
        assert f"espalier: run: {ended} rank{' was' if ended == 1 else 's were'} ended by the time limit\n" in err, err
        assert told["first_failed"] == (failed[0] if failed else None) and "killed" not in err, (told, err)
        assert not failed or f"espalier: run: rank {failed[0]} ended with status 3" in err, err
    assert run("-n", 2, "--timeout", 600, "--", "true")[0] == OK


def test_signals():
    for number, name in [(signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP")]:
        job = Job("-n", 3, *sh(f"trap 'echo got {name}; exit 0' {name}; echo up; while :; do sleep 0.01; done"))
        job.lines(3)
        job.process.send_signal(number)
        status, out, err = job.wait()
        assert status == OK and by_rank(out.decode()) == {r: [f"got {name}"] for r in range(3)}, (status, out, err)
        job = Job("-n", 3, *sh(f"echo up; exec sleep {FOREVER}"))
        job.lines(3)
        job.process.send_signal(number)
        status, _, err = job.wait()
        assert status == 128 + number and err.decode() == f"espalier: run: interrupted (SIG{name}): all 3 ranks have ended\n", (status, err)
    job = Job("-n", 1, *sh(f"echo up; exec sleep {FOREVER}"))
    job.lines(1)
    job.process.send_signal(signal.SIGINT)
    assert job.wait()[2] == b"espalier: run: interrupted (SIGINT): the rank has ended\n"
    # What had happened before is still the reason.
    with folder() as path:
        os.mkfifo(path / "go")
        job = Job("-n", 2, "--grace", FOREVER, "--cwd", path, *sh(f"[ $ESP_RANK = 0 ] || {{ read -r x < go; exit 3; }}; echo up; echo > go; exec sleep {FOREVER}"))
        job.lines(1)
        notice = job.process.stderr.readline()
        assert notice == b"espalier: run: rank 1 ended with status 3; the others have 1000000 s from then on to end (--grace)\n", notice
        job.process.send_signal(signal.SIGINT)
        status, _, err = job.wait()
        assert status == 3 and b"espalier: run: rank 1 ended with status 3; 1 other rank ended after that" in err, (status, err)


STUBBORN = "trap 'echo int' INT; trap 'echo term' TERM; echo up; while :; do sleep 0.01; done"


def test_interrupts():
    job = Job("-n", 2, "--grace", FOREVER, *sh(STUBBORN))
    job.lines(2)
    job.process.send_signal(signal.SIGINT)
    assert job.lines(2) == ["[0] int\n", "[1] int\n"]
    job.insist()
    status, out, err = job.wait()
    assert status == 128 + signal.SIGKILL and out == b"", (status, out, err)


def ignored(number):
    """What comes of a signal that the ranks do not heed. They have two seconds to say that they got SIGTERM, and on a busy machine some attempts."""
    for _ in range(5):
        job = Job("-n", 2, "--grace", 0.01, *sh(STUBBORN))
        job.lines(2)
        job.process.send_signal(number)
        status, out, err = job.wait()
        assert status == 128 + signal.SIGKILL, (status, out, err)
        if b"[0] term\n" in out and b"[1] term\n" in out:
            return out, err
    raise AssertionError((out, err))


def test_signals_that_are_ignored():
    """Whoever stays gets SIGKILL in the end, without anybody asking again."""
    _, err = ignored(signal.SIGINT)
    assert b"2 ranks still run although told to end: SIGTERM\n" in err and b"told to end: SIGKILL\n" in err, err
    out, err = ignored(signal.SIGTERM)
    assert b"int" not in out, (out, err)
    assert b"espalier: run: 2 ranks still run although told to end: SIGKILL\n" in err, err


def test_lose():
    """Some may fail, and the others go on; one more, and the job is over."""
    fails = 'if [ "$ESP_RANK" -lt "$0" ]; then exit 5; fi; echo went on'
    for failing, lose, status, went_on in ((1, 1, OK, 3), (2, 2, OK, 2), (3, 3, OK, 1), (2, 1, 5, None), (1, 0, 5, None)):
        code, out, err = Job("-n", 4, "--lose", lose, "--", "sh", "-c", fails, failing).wait()
        assert code == status, (failing, lose, code, err)
        if went_on is not None:
            assert out.count(b"went on") == went_on, out
            assert len(re.findall(rb" ended with status 5; the others (?:go on|have ended)\n", err)) == failing, err
    _, _, err = Job("-n", 2, "--lose", 1, "--", "sh", "-c", 'if [ "$ESP_RANK" = 1 ]; then kill -9 $$; fi').wait()
    assert re.search(rb"rank 1 was killed by signal 9 \(Killed\); the others (go on|have ended)\n", err), err
    refused("-n", 2, "--lose", 2, "--", "true", says="--lose 2 of 2 ranks leaves no rank")


def read_until(stream, text):
    assert any(text in line for line in iter(stream.readline, b"")), text


def test_lose_stopped():
    """One that is stopped when no more are left than may be lost is ended, whoever of its group it is; unless it goes on."""
    for stops in ("kill -STOP $$", "sh -c 'kill -STOP $$'; true"):
        code, out, err = Job("-n", 3, "--lose", 1, "--grace", 0.01, *sh(f"if [ $ESP_RANK = 1 ]; then {stops}; fi; echo went on")).wait()
        assert code == OK and out.count(b"went on") == 2, (code, out, err)
        assert b"rank 1 is stopped, and others have ended: SIGKILL in 0.01 s, unless it goes on\n" in err, err
        assert b"rank 1 was killed by signal 9 (Killed); the others have ended\n" in err, err
    # More than may be lost: the job has failed, and ends all the same.
    code, out, err = Job("-n", 3, "--lose", 1, "--grace", 0.01, *sh("case $ESP_RANK in 1) kill -STOP $$ ;; 2) exit 5 ;; esac")).wait()
    assert code == 137 and b"espalier: run: rank 1 was killed by signal 9" in err, (code, out, err)
    job = Job("-n", 2, "--lose", 1, "--grace", FOREVER, *sh("if [ $ESP_RANK = 1 ]; then echo $$ >&2; kill -STOP $$; fi; echo went on"))
    first, second = sorted(job.process.stderr.readline() for _ in range(2))  # in either order
    assert b"rank 1 is stopped" in second, (first, second)
    os.kill(int(first.split()[1]), signal.SIGCONT)
    code, out, err = job.wait()
    assert code == OK and out.count(b"went on") == 2 and err == b"", (code, out, err)


def test_lose_too_many_stopped():
    """All that is left is stopped, and more than may be lost: the job is given up, whether the others have ended well or not; unless one goes on."""
    given_up = b"espalier: run: ranks 1, 2 are stopped, more than --lose 1 allows, and all others have ended: the job is given up, with SIGKILL in 0.01 s, " \
               b"unless one goes on\n"
    code, out, err = Job("-n", 4, "--lose", 1, "--grace", 0.01, *sh("case $ESP_RANK in 1|2) kill -STOP $$ ;; esac; echo went on")).wait()
    assert code == 137 and out.count(b"went on") == 2, (code, out, err)
    assert re.fullmatch(re.escape(given_up) + rb"espalier: run: rank [12] was killed by signal 9 \(Killed\); 1 other rank ended after that\n", err), err
    # The last one fails, and is allowed to, when it has seen the others stopped: it is told by a pipe that they are.
    stopped = "for f in $(cat %s/1 %s/2); do while ! grep -q '^State:.T' /proc/$f/status; do :; done; done"
    with folder() as path:
        for rank in (1, 2):
            os.mkfifo(path / str(rank))
        code, out, err = Job("-n", 3, "--lose", 2, "--grace", 0.01,
                             *sh(f"if [ $ESP_RANK = 0 ]; then {stopped % (path, path)}; exit 5; fi; echo $$ > {path}/$ESP_RANK; kill -STOP $$")).wait()
    assert code == 137 and b"rank 0 ended with status 5; the others are stopped\n" in err, (code, out, err)
    job = Job("-n", 3, "--lose", 1, "--grace", FOREVER, *sh("if [ $ESP_RANK != 0 ]; then echo $$ >&2; kill -STOP $$; fi; echo went on"))
    *pids, told = sorted((job.process.stderr.readline() for _ in range(3)), key=lambda line: b"given up" in line)
    assert b"ranks 1, 2 are stopped" in told, (pids, told)
    for line in pids:
        os.kill(int(line.split()[1]), signal.SIGCONT)
    code, out, err = job.wait()
    assert code == OK and out.count(b"went on") == 3, (code, out, err)


def check_waits_for_slow(name, words):
    """One that runs is waited for, and named, however much later than the others it ends."""
    with folder() as path:
        os.mkfifo(path / "go-on")
        job = Job(*words, "--lose", 2, "--grace", 0.01, *sh(f'if [ "$ESP_RANK" = 1 ]; then read -r line < "{path}/go-on"; fi; echo went on'))
        read_until(job.process.stderr, f"{name} still runs, and is waited for\n".encode())
        (path / "go-on").write_text("go\n")
        code, out, err = job.wait()
        assert code == OK and out.count(b"went on") == 3 and err == b"", (code, out, err)


def test_lose_slow():
    check_waits_for_slow("rank 1", ["-n", 3])


def test_run_is_killed():
    job = Job("-n", 3, *sh(f"trap '' INT TERM HUP; echo up; exec sleep {FOREVER}"))
    job.lines(3)
    job.process.kill()
    job.wait_for_ranks()
    assert job.process.wait() == -signal.SIGKILL


def test_strangers_are_left_alone():
    """A child that was there before, as after `exec espalier run` in a script, is neither waited for nor ended."""
    alive, theirs = os.pipe()
    script = f"sleep {FOREVER} > /dev/null 2>&1 & echo $!; exec {shlex.quote(ESPALIER)} run -n 2 -- sh -c 'echo done'"
    done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, pass_fds=[theirs], env=CLEAN,
                          check=True)
    os.close(theirs)
    os.set_blocking(alive, False)
    try:
        os.read(alive, 1)
        raise AssertionError("the stranger was ended")
    except BlockingIOError:
        os.kill(int(done.stdout.split()[0]), signal.SIGKILL)
    os.close(alive)


def test_json():
    status, out, err = run("-n", 3, "--json", "--job", "try", *sh("echo text; [ $ESP_RANK != 2 ] || kill -9 $$"))
    told = json.loads(out)
    assert status == told["status"] == 137 and told["first_failed"] == 2 and not told["timed_out"]
    assert told["job"] == "try" and told["leader"].startswith("127.0.0.1:")
    assert [rank["rank"] for rank in told["ranks"]] == [0, 1, 2]
    assert told["ranks"][0] == {**told["ranks"][0], "host": None, "status": 0, "signal": None}
    assert told["ranks"][2] == {**told["ranks"][2], "status": 137, "signal": 9}
    assert all(0 <= rank["seconds"] <= told["seconds"] for rank in told["ranks"])
    lines = "".join(f"{line}\n" for line in err.splitlines() if "espalier" not in line)
    assert by_rank(lines) == {rank: ["text"] for rank in range(3)}
    told = json.loads(good("-n", 2, "--json", "--", "true"))
    assert told["status"] == 0 and told["first_failed"] is None


def test_many_ranks():
    status, out, err = run("-n", 300, *sh("echo $ESP_RANK"))
    assert status == OK and by_rank(out) == {rank: [str(rank)] for rank in range(300)}
    cores = len(os.sched_getaffinity(0))
    said = f"espalier: run: 300 ranks on {cores} core{'' if cores == 1 else 's'}: "
    assert err.startswith(said) and "ESP_LIVENESS_MS=60000" in err and err.count("\n") == 1 if 300 > 64 * cores else err == "", err
    good("-n", 300, "--", "true", env={"ESP_LIVENESS_MS": "60000"})
    good("-n", 300, "--env", "ESP_LIVENESS_MS=60000", "--", "true")


# ---- how they join ----

def joining(*conditions, **options):
    """Ranks that join, but for what the shell does before."""
    return run("-n", 3, *sh("; ".join([*conditions, f"exec {shlex.quote(HELLO)}"])), **options)


def join_test_rank_that_never_joins():
    """Nobody waits for join_seconds, which are a day here, if the rank has ended already."""
    for rank, said in [(2, "rank 2 has ended with status 0 before it joined"),
                       (0, "the leader, rank 0, has ended with status 0 before the group had joined")]:
        status, out, err = joining(f"[ $ESP_RANK != {rank} ] || exit 0", env={"ESP_JOIN_SECONDS": "86400"})
        assert status == 1 and out == "" and err.count(said) == 2, (status, out, err)


def join_test_many_that_never_join():
    status, out, err = run("-n", 80, *sh(f"[ $ESP_RANK -lt 2 ] || exit 0; exec {shlex.quote(HELLO)}"),
                           env={"ESP_JOIN_SECONDS": "86400"})
    said = re.findall(r"rank (\d+) has ended with status 0 before it joined", err)
    assert status == 1 and out == "" and len(said) == 2 and said[0] == said[1], (status, out, err)


def join_test_script_that_ends_first():
    """The program that a script leaves running is the rank, although the script has ended."""
    status, out, err = run("-n", 2, *sh(f"{shlex.quote(HELLO)} & exit 0"))
    assert status == OK and sorted(by_rank(out)) == [0, 1], (status, out, err)


def join_test_settings_that_differ():
    status, _, err = joining("[ $ESP_RANK != 2 ] || export ESP_CHUNK_BYTES=256K")
    host = socket.gethostname()[:40]
    said = f"rank 2 on {host} has chunk_bytes=256K, but the leader, rank 0 on {host}, has chunk_bytes=0"
    assert status == 1 and err.count(said) == 3, err


def join_test_topology():
    """Rank 0 reads it; what is wrong with it is said on all ranks, with the line and the reason."""
    host = socket.gethostname()
    head = "topology 1\nswitch core\n"
    good_text = f"{head}host {host} under core rate 1gbit\nhost other under core rate 1gbit\n"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "net"
        for text, said in [
                (head + "host a under nowhere rate 1gbit\n", f"topology {file}: line 3: there is no host or switch nowhere above"),
                (head + "host a under core rate 1gbit\nhost b under core rate 1gbit\n",
                 f"topology {file} has no host {host}, where rank 0 is; its hosts are a, b"),
                (head + "host a under core rate fast\n", f"topology {file}: line 3: rate wants a rate, such as 25gbit"),
                ("", f"topology {file}: line 1: a topology begins with the line: topology 1")]:
            file.write_text(text)
            status, out, err = joining(env={"ESP_TOPOLOGY": str(file)})
            assert status == 1 and out == "" and err.count(said) == 3, (status, out, err)
        # Only rank 0 reads it; others need not have the setting, and need not have the file.
        file.write_text(good_text)
        for condition in ("[ $ESP_RANK = 0 ] || unset ESP_TOPOLOGY", "[ $ESP_RANK = 0 ] || export ESP_TOPOLOGY=/nowhere"):
            status, out, err = joining(condition, env={"ESP_TOPOLOGY": str(file), "ESP_LOG": "trace"})
            assert status == OK and len(out.splitlines()) == 3, (status, out, err)
            assert err.count(f"PLAN topology {file}: 2 hosts, 1 of them in this job") == 3, err
            assert err.count(f"INFO PLAN topology {file}: 2 hosts") == 1, ("one for all", err)
        status, out, err = joining("[ $ESP_RANK != 0 ] || unset ESP_TOPOLOGY", env={"ESP_TOPOLOGY": str(file)})
        assert status == OK and err.count("topology is set here and not on rank 0, which would read it: it is not used") == 2, err
        out = good("--topology", os.path.relpath(file), "-n", 2, "--cwd", folder, *sh('echo "$ESP_TOPOLOGY"'))
        assert by_rank(out) == {rank: [os.path.realpath(file)] for rank in range(2)}, out
    status, out, err = joining(env={"ESP_TOPOLOGY": "/nowhere/net"})
    assert status == 1 and len(re.findall(r"topology: rank 0 on \S+ cannot read /nowhere/net: No such file or directory", err)) == 3, err
    refused("--topology", "/nowhere/net", "-n", 2, "--", "true", says="--topology: cannot read /nowhere/net: No such file")


def join_test_log():
    status, out, err = joining(env={"ESP_LOG": "info", "ESP_LANS": "4"})
    assert status == OK and len(out.splitlines()) == 3, (status, err)
    assert len(re.findall(r"WARN CONF environment variable 'ESP_LANS' means nothing; did you mean ESP_LANES\?\n", err)) == 1, err
    for rank in range(3):
        lines = re.findall(rf"^\[{rank}\] .* ESPALIER INFO (.*)$", err, re.MULTILINE)
        assert re.fullmatch(rf"JOIN rank {rank} of 3 \(ESP_RANK, ESP_SIZE\), leader 127.0.0.1:\d+ \(ESP_LEADER\)", lines[0]), lines
        assert lines[1] == "JOIN the job's key: from ESP_KEY", lines
        assert re.fullmatch(rf"JOIN joined 3 ranks on 1 host; rank {rank} listens on port \d+ of 127.0.0.1", lines[2]), lines
        assert re.match(r"NET \d lanes? \(as there are cores for each rank\), 2 ranks reached through shared memory", lines[3]), lines
    assert joining()[2] == ""


def join_test_log_file():
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = joining(env={"ESP_LOG": "info", "ESP_LOG_SUBSYSTEMS": "join", "ESP_LOG_FILE": f"{folder}/%h.%r.log"})
        assert status == OK and err == "", (status, err)
        files = sorted(pathlib.Path(folder).iterdir())
        assert [file.name for file in files] == [f"{socket.gethostname()}.{rank}.log" for rank in range(3)], files
        for rank, file in enumerate(files):
            lines = file.read_text().splitlines()
            assert len(lines) == 3, lines
            for line in lines:
                assert re.fullmatch(rf"[^ :]+:\d+:\d+ \[{rank}\] ESPALIER INFO JOIN .+", line), line
    status, out, err = joining(env={"ESP_LOG_FILE": "/nowhere/%r", "ESP_LOG_SUBSYSTEMS": "GRAPH"})
    assert status == OK and len(out.splitlines()) == 3, (status, err)
    assert err.count("WARN CONF log_file: cannot write the log to /nowhere/") == 3, err
    assert err.count("WARN CONF log_subsystems: 'GRAPH' is no subsystem; there are all, CONF, JOIN") == 3, err


# ---- other hosts ----

def test_hosts():
    with remote() as (options, log):
        told = variables("--hosts", "a:2,u@b,a", *options, "--env", "X=it's",
                         env={"ESP_LANES": "2", "X9": "no"})
        assert sorted(told) == [0, 1, 2, 3]
        for rank, (local_rank, local_size) in enumerate([(0, 3), (1, 3), (0, 1), (2, 3)]):
            assert told[rank] == {
                "ESP_RANK": str(rank), "ESP_SIZE": "4",
                "ESP_LOCAL_RANK": str(local_rank), "ESP_LOCAL_SIZE": str(local_size),
                "ESP_LEADER": told[0]["ESP_LEADER"], "ESP_KEY": told[0]["ESP_KEY"], "ESP_JOB": told[0]["ESP_JOB"],
                "ESP_LAUNCHER": told[0]["ESP_LAUNCHER"], "ESP_LANES": "2", "X": "it's", "XTHERE": "1"}, told[rank]
        assert re.fullmatch(r"a:6[1-5]\d{3}", told[0]["ESP_LEADER"])
        called = log.read_text()
        assert sorted(re.findall("^(?:a|u@b)$", called, re.MULTILINE)) == ["a", "a", "a", "u@b"]
        assert told[0]["ESP_KEY"] not in called and "ESP_" not in called and "json" not in called  # what ps would show
        assert variables("--hosts", "u@b,a", "--port", 7000, *options)[1]["ESP_LEADER"] == "b:7000"
        assert variables("--hosts", "[fe80::1]", "--port", 7000, *options)[0]["ESP_LEADER"] == "[fe80::1]:7000"
        assert variables("--hosts", "a", "--leader", "c:7000", *options)[0]["ESP_LEADER"] == "c:7000"
        assert len(variables("--hosts", "a:4,b:4", "-n", 5, *options)) == 5


def test_topology_goes_along():
    """Rank 0's host need not have the file."""
    if not HELLO:
        return
    with remote() as (options, _), tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "it's a net")
        text = f"topology 1\nswitch core\nhost {socket.gethostname()} under core rate 1gbit\nhost other under core rate 1gbit # it's\n"

        def job(**env):
            file.write_text(text)
            gone = sh(f"rm -f {shlex.quote(str(file))}; exec {shlex.quote(HELLO)}")
            return run("--hosts", "127.0.0.1", "--topology", file, *options, *gone, env={"ESP_LOG": "info", **env})

        status, out, err = job()
        assert status == OK and f"PLAN topology {file}: 2 hosts, 1 of them in this job" in err, (status, out, err)
        text = text.replace("under", "below", 1)  # what is wrong with it is said as of a file
        status, out, err = job()
        assert status == NO and f"topology {file}: line 3: " in err, (status, out, err)
        file.unlink(missing_ok=True)  # of a program that asks for another file it is not the text
        status, out, err = run("--hosts", "127.0.0.1", *options, "--", HELLO,
                               env={"ESP_TOPOLOGY": str(file), "ESP_TOPOLOGY_TEXT": f"{file}.old\n{text}"})
        assert status == NO and f"cannot read {file}" in err, (status, out, err)


def test_misspelt_variables():
    """The ranks on other hosts are never told of them, so espalier run complains; local ones see them themselves."""
    with remote() as (options, _):
        status, out, err = run("--hosts", "a:2", *options, *sh("env | grep ESP_LAN"), env={"ESP_LANS": "4", "ESP_LANES": "2"})
        assert status == OK and by_rank(out) == {rank: ["ESP_LANES=2"] for rank in range(2)}, (status, out)
        assert err == "espalier: run: environment variable 'ESP_LANS' means nothing; did you mean ESP_LANES?\n", err


def test_door():
    """A process with a rank does not wait at a door, and says so; no door is none."""
    if not HELLO:
        return
    for door, warned in (("127.0.0.1:9", 1), ("", 0), (None, 0)):
        status, out, err = run("-n", 2, "--", HELLO, env={} if door is None else {"ESP_DOOR": door})
        assert status == OK and err.count("ESP_DOOR is not used, as ESP_RANK says already that this is rank 1 of 2") == warned, err
    alone = subprocess.run([HELLO], env={**CLEAN, "ESP_DOOR": ""}, capture_output=True, text=True)
    assert alone.returncode == OK and alone.stderr == "", alone
    alone = subprocess.run([HELLO], env={**CLEAN, "ESP_DOOR": ","}, capture_output=True, text=True)
    assert alone.returncode != OK and "ESP_DOOR names no door" in alone.stderr, alone


def test_hostfile():
    with remote() as (options, _), folder() as path:
        file = path / "hosts"
        file.write_text("# two racks\na slots=2\n\nb:1 # the small one\n")
        told = variables("--hostfile", file, "--port", 7000, *options)
        assert [told[r]["ESP_LOCAL_SIZE"] for r in sorted(told)] == ["2", "2", "1"]
        file.write_text("a\nb slots=many\n")
        refused("--hostfile", file, "--", "true", says=f"{file}:2: the ranks of a host")


def test_any_argument():
    nasty = ["", " ", "a b", "it's", '"', "$HOME", "`id`", "\\", "\\n", "new\nline", "\n", "*", "~", "-n", "--", "!",
             "a;b", "&", "\t", "é", "\udcff", "#", "END", "'" * 5, "%s", "=", "x" * 5000]
    code = "import json, os, sys; print(json.dumps(sys.argv[1:]))"
    with remote() as (options, _):
        out = good("--hosts", "a", *options, "--", sys.executable, "-c", code, *nasty)
        assert json.loads(by_rank(out)[0][0]) == nasty
        told = variables("--hosts", "a", *options, *[f"--env=X{i}={word}" for i, word in enumerate(nasty)])[0]
        assert [told[f"X{i}"] for i in range(len(nasty))] == nasty


def test_remote_folder():
    with remote() as (options, _), folder() as path:
        assert by_rank(good("--hosts", "a", *options, *sh("pwd -P"), cwd=path))[0] == [os.path.realpath(path)]
        (path / "a 'b'").mkdir()
        out = good("--hosts", "a", *options, "--cwd", path / "a 'b'", *sh("pwd -P"))
        assert by_rank(out)[0] == [os.path.realpath(path / "a 'b'")]
        status, _, err = run("--hosts", "a", *options, "--cwd", "/no/such", "--", "true")
        assert status == 126 and "[0] espalier: run: host a has no folder /no/such; --cwd names another" in err


def test_remote_ends():
    with remote() as (options, _):
        status, _, err = run("--hosts", "a,b", "--grace", 0, *options,
                             *sh(f"[ $ESP_RANK != 1 ] || exit 5; exec sleep {FOREVER}"))
        assert status == 5 and "rank 1 on b ended with status 5" in err, err
        status, _, err = run("--hosts", "a", *options, *sh("kill -9 $$"))
        assert status == 137 and "rank 0 on a ended with status 137 (as after signal 9, Killed)" in err, err
        status, _, err = run("--hosts", "a", *options, "--", "no-such-command")
        assert status == 127 and "no-such-command: not found" in err, err
        status, _, err = run("--hosts", "a", "--rsh", "no-such-shell", "--", "true")
        assert status == 127 and "'no-such-shell' along PATH" in err
        status, _, err = run("--hosts", "a", "--rsh", "false", "--", "true")
        assert status == 1
        told = json.loads(run("--hosts", "a,b", "--json", *options, "--", "true")[1])
        assert [rank["host"] for rank in told["ranks"]] == ["a", "b"]


def test_remote_signals():
    with remote() as (options, _):
        job = Job("--hosts", "a:2", "--grace", FOREVER, *options, *sh(STUBBORN))
        job.lines(2)
        job.process.send_signal(signal.SIGINT)
        assert job.lines(2) == ["[0] int\n", "[1] int\n"]
        job.process.send_signal(signal.SIGTERM)
        assert job.lines(2) == ["[0] term\n", "[1] term\n"]
        job.insist()
        assert job.wait()[0] == 128 + signal.SIGKILL


def test_remote_loses_run():
    """espalier run dies: the ranks hear that nobody is there any more."""
    with remote() as (options, _):
        job = Job("--hosts", "a:2", *options, *sh(f"trap '' TERM; echo up; sleep {FOREVER} & wait"))
        job.lines(2)
        job.process.kill()
        job.wait_for_ranks()
        job.process.wait()


def test_remote_lose_stopped():
    """The shell there sees that a rank is stopped, and ends it; one that runs is waited for."""
    with remote() as (options, _):
        for grace, stops in ((0.01, "kill -STOP $$"), (1, "sh -c 'kill -STOP $$'; true")):
            code, out, err = Job("--hosts", "a,b,c", *options, "--lose", 1, "--grace", grace,
                                 *sh(f"if [ $ESP_RANK = 1 ]; then {stops}; fi; echo went on")).wait()
            assert code == OK and out.count(b"went on") == 2, (code, out, err)
            assert b"rank 1 ended with status 137 (as after signal 9, Killed); the others have ended\n" in err, err
        code, out, err = Job("--hosts", "a,b,c,d", *options, "--lose", 1, "--grace", 0.01, *sh("case $ESP_RANK in 1|2) kill -STOP $$ ;; esac; echo went on")).wait()
        assert code == 137 and out.count(b"went on") == 2 and b"ended with status 137" in err, (code, out, err)
        check_waits_for_slow("rank 1 on b", ["--hosts", "a,b,c", *options])


def test_remote_that_hangs():
    """A shell that never runs anything is ended when nothing else helps."""
    with folder() as path:
        rsh = path / "rsh"
        rsh.write_text(f"#!/bin/sh\nexec sleep {FOREVER}\n")
        rsh.chmod(0o755)
        status, _, err = run("--hosts", "a:2", "--timeout", 0.1, "--rsh", rsh, "--", "true")
        assert status == 124, (status, err)


def join_test_everybody_leaves_in_peace():
    """Ranks that leave at once, each connected to some others: nobody takes the end of a connection for a death."""
    for _ in range(25):
        good("-n", 8, "--", HELLO, env={"ESP_TRANSPORT": "tcp"})


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_") or (name.startswith("join_test_") and HELLO):
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
