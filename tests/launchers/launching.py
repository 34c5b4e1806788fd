"""What the tests of launchers share: clean variables, namespaces, processes, a Slurm of their own."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402, F401: for those who import it from here

LAUNCHED = re.compile(r"ESP_|(LOCAL_)?RANK$|WORLD_SIZE$|MASTER_|TORCHELASTIC_|OMPI_|PMI|SLURM_|JOB_COMPLETION_INDEX$")
CLEAN = {name: value for name, value in os.environ.items() if not LAUNCHED.match(name)}
IN_NAMESPACE = "LAUNCHERS_TEST_IN_NAMESPACE"
PATIENCE = 60  # seconds until a daemon that does not come up is given up


def skip(reason):
    print(reason)
    sys.exit(77)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"there is no {program}: scripts/bootstrap launchers installs it")


def need_root():
    if os.geteuid() != 0:
        skip("needs root, to give ranks host names of their own")


def need_namespace(network=False):
    """Starts this test anew where what it mounts is its own; so are its ports, where they do not depend on the process."""
    need_root()
    need("unshare", "ip")
    words = ["unshare", "-m", "-u", *(["-n"] if network else [])]
    if IN_NAMESPACE not in os.environ:
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            skip(f"{' '.join(words)} is not allowed here")
        os.execvpe("unshare", [*words, sys.executable, *sys.argv], {**os.environ, IN_NAMESPACE: "1"})
    if network:  # Slurm looks up no name where there is no address but the loopback's
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", "192.0.2.1/32", "dev", "lo"], check=True)


def map_names(folder, text):
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + text)
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)


def bind_below_free(lower):
    """A port that is followed by a free one. Not one of those that the system gives away: another test may get that one."""
    for port in random.sample(range(10000, 20000, 2), 100):
        with contextlib.suppress(OSError), socket.socket() as upper:
            upper.bind(("127.0.0.1", port + 1))
            lower.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no two free ports")


@contextlib.contextmanager
def temporary():
    with tempfile.TemporaryDirectory(prefix="espalier-launchers-") as path:
        yield pathlib.Path(path)


session_folders = []


def session_folder():
    """For one mpirun of Open MPI: of two that start at a time, one may fail to make the folder that both want to share."""
    session_folders.append(tempfile.TemporaryDirectory(prefix="ompi"))
    return {"OMPI_MCA_orte_tmpdir_base": session_folders[-1].name}


def start(words, env=None, **options):
    if "mpirun.openmpi" in str(words[0]):
        env = {**session_folder(), **(env or {})}
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(list(map(str, words)), env={**CLEAN, "ESP_LOG": "info", **(env or {})}, **options)


def finish(process):
    out, err = process.communicate(timeout=200)
    return process.returncode, out, err


def run(words, env=None, **options):
    return finish(start(words, env, **options))


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "a daemon does not come up"
        time.sleep(0.05)


# ---- ssh ----

SSHD_CONFIG = """
ListenAddress {address}:{port}
HostKey {path}/host
AuthorizedKeysFile {path}/user.pub
PidFile none
PasswordAuthentication no
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
MaxStartups 100
"""


def prepare_sshd():
    """It insists on a folder; what is mounted here is this test's own (need_namespace())."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    pathlib.Path("/run/sshd").mkdir(mode=0o755)


@contextlib.contextmanager
def sshd(path, address="127.0.0.1", prefix=()):
    """A server with keys of its own. Yields the words that reach it. prefix: words that start it somewhere else."""
    port = free_port()
    for name in ["host", "user"]:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path / name], check=True)
    config, log = path / "sshd_config", path / "log"
    config.write_text(SSHD_CONFIG.format(address=address, port=port, path=path))
    host = (path / "host.pub").read_text().split()
    (path / "known").write_text(f"[{address}]:{port} {host[0]} {host[1]}\n")
    with open(log, "w") as errors:
        server = subprocess.Popen([*prefix, "/usr/sbin/sshd", "-D", "-e", "-f", config], stdout=errors, stderr=errors)
    words = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={path}/known", "-o", "IdentitiesOnly=yes",
             "-i", str(path / "user"), "-p", str(port)]
    try:
        wait_until(lambda: server.poll() is not None or run([*words, address, "true"])[0] == 0)
        assert server.poll() is None, log.read_text()
        yield words
    finally:
        server.terminate()
        server.wait()


# ---- Slurm ----

SLURM_CONF = """
ClusterName=espalier
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={path}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={path}/state
SlurmdSpoolDir={path}/spool-%n
SlurmctldPidFile={path}/slurmctld.pid
SlurmdPidFile={path}/slurmd-%n.pid
SlurmctldLogFile={path}/slurmctld.log
SlurmdLogFile={path}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=a1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 State=UNKNOWN
NodeName=a2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=a1,a2 Default=YES State=UP MaxTime=10 OverSubscribe=YES
"""


@contextlib.contextmanager
def slurm(path):
    """A controller and two nodes on this machine. Yields the environment in which srun finds them."""
    conf, log = path / "slurm.conf", open(path / "log", "w")
    for name in ["state", "spool-a1", "spool-a2"]:
        (path / name).mkdir()
    conf.write_text(SLURM_CONF.format(host=socket.gethostname().split(".")[0], path=path, ports=[free_port() for _ in range(3)]))
    key = path / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    env = {"SLURM_CONF": str(conf)}
    daemons = [["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={path}/munge.socket",
                f"--pid-file={path}/munge.pid", f"--log-file={path}/munge.log", f"--seed-file={path}/munge.seed"],
               ["slurmctld", "-D", "-f", conf], *[["slurmd", "-D", "-f", conf, "-N", node] for node in ["a1", "a2"]]]
    processes = []
    try:
        for words in daemons:
            processes.append(subprocess.Popen(list(map(str, words)), env={**CLEAN, **env}, stdout=log, stderr=log))
            if words[0] == "munged":
                wait_until((path / "munge.socket").exists)
        wait_until(lambda: run(["sinfo", "-h", "-o", "%T"], env)[1].split() == ["idle"])
        yield env
    except BaseException:
        print((path / "log").read_text()[-3000:])
        raise
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
