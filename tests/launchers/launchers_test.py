#!/usr/bin/env python3
"""Jobs under those who start processes, each for real where it is installed.

launchers_test.py NAME ESPALIER HELLO

NAME is one of the functions test_NAME below. Exit status 77: what it needs is not here.
"""
import contextlib
import os
import re
import socket
import subprocess
import sys

from launching import bind_below_free, finish, free_port, map_names, need, need_namespace, run, skip, slurm, start, temporary, wait_until

NAME, ESPALIER, HELLO = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
KEY = "a passphrase that is long enough"


def run_ranks(envs, program=HELLO):
    """One process for each environment; (status, out, err) of each."""
    processes = [start([program], env) for env in envs]
    return [finish(process) for process in processes]


def check_all(out, size):
    """Every rank has the right sum."""
    lines = sorted(re.findall(r"rank (\d+) of (\d+): (\d+) ranks, their numbers add up to (\d+)", out))
    total = size * (size - 1) // 2
    assert lines == sorted((str(r), str(size), str(size), str(total)) for r in range(size)), out


def check_ranks(results):
    assert all(status == 0 for status, _, _ in results), results
    check_all("".join(out for _, out, _ in results), len(results))


def check_said(err, pattern, count):
    found = re.findall(pattern, err)
    assert len(found) == count, (pattern, len(found), err)


def warnings(err):
    return re.findall(r"WARN [A-Z]+ (.*)", err)


# ---- variables alone ----

def test_torchrun():
    with socket.socket() as torch:  # PyTorch's own store has the port itself
        port = bind_below_free(torch)
        torch.listen()

        def rank_env(rank, size=3, **more):
            return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
                    "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                    "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", **more}

        results = run_ranks([rank_env(rank) for rank in range(3)])
        check_ranks(results)
        for rank, (_, _, err) in enumerate(results):
            check_said(err, rf"rank {rank} of 3 \(RANK, WORLD_SIZE\), leader 127.0.0.1:{port + 1} \(MASTER_ADDR, MASTER_PORT \+ 1\)", 1)
            assert not warnings(err), err
        # within a step of Slurm that has one task: both values are told, and the job runs
        slurm = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "5"}
        results = run_ranks([rank_env(rank, **slurm) for rank in range(3)])
        check_ranks(results)
        for rank, (_, _, err) in enumerate(results):
            said = ["WORLD_SIZE is '3' but SLURM_STEP_NUM_TASKS is '1'; using WORLD_SIZE"]
            said += [f"RANK is '{rank}' but SLURM_PROCID is '0'; using RANK"] if rank else []
            assert warnings(err) == said, err
    status, out, err = run([HELLO])  # nothing is set: a group of one
    assert status == 0 and not warnings(err), err
    check_all(out, 1)


def test_kubernetes():
    """Pods of an indexed job with a headless service: each has a name of its own, and all names can be looked up."""
    need_namespace(network=True)
    domain = "workers.lab.svc.cluster.local"

    def pod(rank, size, name=None, **more):
        name = name or f"train-{rank}"
        return start(["unshare", "-u", "sh", "-c", f"hostname {name} && exec {HELLO}"],
                     {"JOB_COMPLETION_INDEX": str(rank), "ESP_KEY": KEY, **({"ESP_SIZE": str(size)} if size else {}), **more})

    with temporary() as path:
        map_names(path, "".join(f"127.0.0.1 train-{rank}.{domain} train-{rank}\n" for rank in range(3)) + "127.0.0.1 alone-0\n")
        results = [finish(process) for process in [pod(rank, 3) for rank in range(3)]]
        check_ranks(results)
        for rank, (_, _, err) in enumerate(results):
            check_said(err, rf"rank {rank} of 3 \(JOB_COMPLETION_INDEX, ESP_SIZE\), leader train-0\.{domain}:29501 \(the pod with index 0\)", 1)
            check_said(err, "joined 3 ranks on 3 hosts", 1)
        status, _, err = finish(pod(0, None))
        assert status == 1 and "set ESP_SIZE to the job's completions" in err, err
        status, _, err = finish(pod(0, 3, "alone-0"))
        assert status == 1 and "give the job a headless service" in err and "ESP_LEADER to JOB-0.SERVICE:29501" in err, err


# ---- stores ----

def ranks_of(size, **more):
    return [{"ESP_RANK": str(rank), "ESP_SIZE": str(size), **more} for rank in range(size)]


def test_folder():
    with temporary() as path:
        results = run_ranks(ranks_of(3, ESP_STORE=f"file:{path}"))  # no key is given, and there is one
        check_ranks(results)
        for rank, (_, _, err) in enumerate(results):
            check_said(err, rf"rank {rank} of 3 \(ESP_RANK, ESP_SIZE\), leader's address in file:{path} \(ESP_STORE\)", 1)
            check_said(err, "the job's key: made by rank 0, in a file of the store that only this user can read", 1)
        assert list(path.iterdir()) == []
        # two jobs at a time, then one that lacks a rank, and what is left of it
        jobs = [run_env for job in "ab" for run_env in ranks_of(2, ESP_STORE=f"file:{path}", ESP_JOB=job)]
        results = run_ranks(jobs)
        check_ranks(results[:2])
        check_ranks(results[2:])
        results = run_ranks(ranks_of(3, ESP_STORE=f"file:{path}", ESP_JOIN_SECONDS="1")[:2])
        for status, _, err in results:
            assert status == 1 and "1 of 3 ranks have not arrived: 2" in err, err
        status, _, err = run([HELLO], ranks_of(3, ESP_STORE=f"file:{path}", ESP_JOIN_SECONDS="1")[2])
        assert status == 1 and re.search("the job failed without this rank on .*1 of 3 ranks have not arrived: 2", err), err
        check_ranks(run_ranks(ranks_of(3, ESP_STORE=f"file:{path}")))
        assert list(path.iterdir()) == []
        status, _, err = run([HELLO], ranks_of(2, ESP_STORE="folder")[0])
        assert status == 1 and "ESP_STORE is file:/FOLDER or redis://" in err, err


class Redis:
    """A server of our own; what it is asked here it is asked in its own words."""

    def __init__(self, password):
        self.port = free_port()
        self.password = password

    def start(self, path):
        config = path / "redis.conf"
        config.write_text(f"port {self.port}\nbind 127.0.0.1\nsave \"\"\nappendonly no\nrequirepass {self.password}\ndir {path}\n")
        self.process = subprocess.Popen(["redis-server", config], stdout=subprocess.DEVNULL)
        wait_until(self.answers)
        return self

    def answers(self):
        with contextlib.suppress(OSError):
            return self.ask("PING") == "+PONG"
        return False

    def ask(self, *commands, database=2):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            stream = connection.makefile("rw", newline="\r\n")
            stream.write(f"AUTH {self.password}\r\nSELECT {database}\r\n{' '.join(commands)}\r\n")
            stream.flush()
            stream.readline(), stream.readline()
            return stream.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def test_redis():
    need("redis-server")
    with temporary() as path, Redis("s3cret").start(path) as redis:
        store = f"redis://:s3cret@127.0.0.1:{redis.port}/2"
        results = run_ranks(ranks_of(3, ESP_STORE=store, ESP_KEY=KEY))
        if "built without hiredis" in results[0][2]:
            skip("this build has no Redis store: scripts/bootstrap build installs hiredis")
        check_ranks(results)
        for _, _, err in results:
            check_said(err, rf"leader's address in redis://127.0.0.1:{redis.port}/2 \(ESP_STORE\)", 1)
            assert "s3cret" not in err, err
        assert redis.ask("DBSIZE") == ":0"
        # while ranks are awaited the notice is there and will fade
        processes = [start([HELLO], env) for env in ranks_of(2, ESP_STORE=store, ESP_KEY=KEY)[:1]]
        wait_until(lambda: redis.ask("DBSIZE") == ":1")
        name = re.search(r"espalier-\S+", redis_keys(redis)).group()
        assert 0 < int(redis.ask("TTL", name)[1:]) <= 120
        processes.append(start([HELLO], ranks_of(2, ESP_STORE=store, ESP_KEY=KEY)[1]))
        check_ranks([finish(process) for process in processes])
        # somebody who can write there cannot make ranks believe anything
        assert redis.ask("SET", name, "nonsense") == "+OK"
        check_ranks(run_ranks(ranks_of(2, ESP_STORE=store, ESP_KEY=KEY)))
        # a key is not for a server that others read too
        status, _, err = run([HELLO], ranks_of(2, ESP_STORE=store)[0])
        assert status == 1 and "a job over a network needs a key" in err, err
        results = run_ranks(ranks_of(3, ESP_STORE=store, ESP_KEY=KEY, ESP_JOIN_SECONDS="1")[:2])
        for status, _, err in results:
            assert status == 1 and "1 of 3 ranks have not arrived: 2" in err, err
        status, _, err = run([HELLO], ranks_of(3, ESP_STORE=store, ESP_KEY=KEY, ESP_JOIN_SECONDS="1")[2])
        assert status == 1 and "the job failed without this rank on " in err, err
        # a wrong password is told at once, and a server that is not there is waited for
        for env in ranks_of(2, ESP_STORE=store.replace("s3cret", "guess"), ESP_KEY=KEY, ESP_JOIN_SECONDS="1000"):
            status, _, err = run([HELLO], env)
            assert status == 1 and "cannot log in at" in err and "guess" not in err, err
        nowhere = f"redis://127.0.0.1:{free_port()}"
        status, _, err = run([HELLO], ranks_of(2, ESP_STORE=nowhere, ESP_KEY=KEY, ESP_JOIN_SECONDS="1")[0])
        assert status == 1 and f"rank 0 could not use the job's store, {nowhere}" in err and "trying again" in err, err
        # the doctors find rank 0 there, too
        results = [finish(process) for process in [start([ESPALIER, "doctor"], env) for env in ranks_of(2, ESP_STORE=store, ESP_KEY=KEY)]]
        assert "2 ranks on 1 host, with one version, key and settings" in results[0][1] and results[1][1] == "", results
        assert redis.ask("DBSIZE") == ":0"
    # it comes later: rank 0 says that it is not there, then it is started
    with temporary() as path:
        redis = Redis("s3cret")
        processes = [start([HELLO], env) for env in ranks_of(2, ESP_STORE=f"redis://:s3cret@127.0.0.1:{redis.port}/2", ESP_KEY=KEY)]
        for line in processes[0].stderr:
            if "trying again" in line:
                break
        redis.start(path)
        with redis:
            check_ranks([finish(process) for process in processes])


def redis_keys(redis):
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        stream = connection.makefile("rw", newline="\r\n")
        stream.write("AUTH s3cret\r\nSELECT 2\r\nKEYS *\r\n")
        stream.flush()
        return "".join(stream.readline() for _ in range(5))


# ---- mpirun ----

def check_mpirun(words, rank_name, size_name, said):
    status, out, err = run([*words, "-n", 3, HELLO])
    assert status == 0, (out, err)
    check_all(out, 3)
    for rank in range(3):
        check_said(err, rf"rank {rank} of 3 \({rank_name}, {size_name}\), leader 127.0.0.1:2\d{{4}} \({said}\)", 1)
    assert not warnings(err), err
    status, out, err = run([*words, "-n", 2, ESPALIER, "bench", "barrier", "--seconds", "0.05"], {"ESP_LOG": "warn"})
    assert status == 0 and out.count("# nRanks 2 ") == 1, (out, err)
    # two at a time keep apart
    for status, out, err in [finish(process) for process in [start([*words, "-n", 2, HELLO]) for _ in range(2)]]:
        assert status == 0, (out, err)
        check_all(out, 2)
    with temporary() as path:
        status, out, err = run([*words, "-n", 2, HELLO], {"ESP_STORE": f"file:{path}"})
        assert status == 0 and "leader's address in file:" in err, (out, err)
        check_all(out, 2)
    status, out, err = run([*words, "-n", 2, HELLO], {"WORLD_SIZE": "5", "RANK": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "ESP_JOIN_SECONDS": "1"})
    assert status != 0 and f"RANK is '4' but {rank_name} is '0'; using RANK" in err and f"WORLD_SIZE is '5' but {size_name} is '2'" in err, err


def test_openmpi():
    need("mpirun.openmpi", "ssh")  # which it looks for even on one host
    words = ["mpirun.openmpi", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    check_mpirun(words, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI on one host")


def test_mpich():
    need("mpirun.mpich")
    check_mpirun(["mpirun.mpich"], "PMI_RANK", "PMI_SIZE", "MPICH on one host")
    # a wrapper in between does not matter, one that closes PMI_FD does, and is told
    status, out, err = run(["mpirun.mpich", "-n", 2, "sh", "-c", f"{HELLO}; exit $?"])
    assert status == 0, err
    check_all(out, 2)
    status, _, err = run(["mpirun.mpich", "-pmi-port", "-n", 2, HELLO])
    check_said(err, "mpiexec -pmi-port does not tell how many ranks there are", 2)
    status, _, err = run(["mpirun.mpich", "-n", 2, "sh", "-c", f"eval \"exec $PMI_FD>&-\"; {HELLO}; true"])
    check_said(err, "PMI_FD is not open here, so that nothing tells this job from others: mpiexec -genv ESP_LEADER HOST:PORT", 2)


# As ssh does, to hosts that have names of their own and share the rest.
FAKE_RSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare -u sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
"""


@contextlib.contextmanager
def two_hosts():
    need_namespace()
    with temporary() as path:
        map_names(path, f"127.0.0.1 {socket.gethostname()}\n127.0.0.2 elsewhere\n")
        rsh, store = path / "rsh", path / "store"
        rsh.write_text(FAKE_RSH)
        rsh.chmod(0o755)
        store.mkdir()
        yield rsh, store


def check_hosts(words, pass_on, store):
    """Three ranks on two hosts that find each other through a folder and have no key but rank 0's."""
    status, out, err = run([*words, *pass_on, "-n", 3, HELLO], {"ESP_STORE": f"file:{store}"})
    assert status == 0, (out, err)
    check_all(out, 3)
    check_said(err, "joined 3 ranks on 2 hosts", 3)
    assert list(store.iterdir()) == []


def test_openmpi_hosts():
    need("mpirun.openmpi")
    with two_hosts() as (rsh, store):
        words = ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", rsh, "--host", f"{socket.gethostname()}:1,elsewhere:2"]
        check_hosts(words, ["-x", "ESP_LOG", "-x", "ESP_STORE"], store)
        status, out, err = run([*words, "-x", "ESP_LOG", "-x", "ESP_KEY", "-n", 3, HELLO], {"ESP_KEY": KEY})
        assert status == 0, (out, err)
        check_all(out, 3)
        check_said(err, r"leader \S+:2\d{4} \(the host of mpirun in OMPI_MCA_orte_hnp_uri\)", 3)
        check_said(err, "joined 3 ranks on 2 hosts", 3)


def test_mpich_hosts():
    need("mpirun.mpich")
    with two_hosts() as (rsh, store):
        words = ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", rsh, "-hosts", f"{socket.gethostname()},elsewhere"]
        check_hosts(words, [], store)
        status, _, err = run([*words, "-n", 3, HELLO])
        check_said(err, "MPICH does not say where rank 0 is: mpiexec -genv ESP_LEADER HOST:PORT", 3)


# ---- Slurm ----

def test_slurm():
    need("srun", "sbatch", "sinfo", "slurmctld", "slurmd", "munged")
    need_namespace(network=True)
    with temporary() as path:
        path.chmod(0o755)
        map_names(path, f"127.0.0.1 {socket.gethostname()} a1 a2\n")
        with slurm(path) as env:
            check_slurm(path, env)


def check_slurm(path, env):
    status, out, err = run(["srun", "-N1", "-n3", HELLO], env)  # one host: loopback, and no key
    assert status == 0, err
    check_all(out, 3)
    said = r"port from SLURM_JOB_ID and SLURM_STEP_ID"
    for rank in range(3):
        check_said(err, rf"rank {rank} of 3 \(SLURM_PROCID, SLURM_STEP_NUM_TASKS\), leader 127.0.0.1:2\d{{4}} \(srun on one host, {said}\)", 1)
    assert not warnings(err), err
    status, out, err = run(["srun", "-N2", "-n4", HELLO], {**env, "ESP_KEY": KEY})  # two: the first one's name
    assert status == 0, err
    check_all(out, 4)
    check_said(err, rf"leader a1:2\d{{4}} \(the first host of SLURM_STEP_NODELIST, {said}\)", 4)
    status, _, err = run(["srun", "-N2", "-n4", HELLO], env)
    assert status != 0 and "a job over a network needs a key" in err, err
    store = path / "store"
    store.mkdir()
    status, out, err = run(["srun", "-N2", "-n4", "--mpi=pmi2", HELLO], {**env, "ESP_STORE": f"file:{store}"})  # a folder has one
    assert status == 0, err
    check_all(out, 4)
    status, out, err = run(["srun", "-N2", "-n4", "--mpi=pmi2", HELLO], {**env, "ESP_KEY": KEY})
    assert status == 0 and "PMI_RANK" in err and "leader a1:2" in err, err
    check_all(out, 4)
    # a batch script is no rank; a step of it is, and espalier run within it numbers its own
    script, log = path / "batch", path / "batch.out"
    script.write_text(f"#!/bin/sh\n{HELLO}\nsrun -n2 {HELLO}\n{ESPALIER} run -n 3 -- {HELLO}\n")
    status, _, err = run(["sbatch", "--wait", "-n2", "-o", log, script], env)
    out = log.read_text()
    assert status == 0, (err, out)
    check_all("".join(re.findall(r".* of 1: .*\n", out)), 1)
    check_all("".join(re.findall(r".* of 2: .*\n", out)), 2)
    check_all("".join(re.findall(r".* of 3: .*\n", out)), 3)
    assert not warnings(out), out


if __name__ == "__main__":
    globals()[f"test_{NAME}"]()
