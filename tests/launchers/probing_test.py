#!/usr/bin/env python3
"""espalier probe under those who start processes, each for real where it is installed, and over IPv6 alone.

probing_test.py NAME ESPALIER

NAME is one of the functions test_NAME below. Exit status 77: what it needs is not here. What the groups are is of no interest here: that hosts
are there, none left out, and all that is to be known of them was measured.
"""
import json
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import netns  # noqa: E402
from launching import bind_below_free, finish, map_names, need, need_namespace, prepare_sshd, run, sshd, start, temporary  # noqa: E402

NAME, ESPALIER = sys.argv[1], os.path.abspath(sys.argv[2])
PROBE = [ESPALIER, "probe", "--seconds", 2, "--json"]
EACH = [*PROBE, "--each-rank"]
KEY = "a passphrase that is long enough"
# As ssh does, to hosts that have names of their own and share the rest.
FAKE_RSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare -u sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
"""


def check(results, names):
    """One of them tells; each host, or host/rank, is there, and known by latency and bandwidth."""
    assert all(status == 0 for status, _, _ in results), results
    told = [out for _, out, _ in results if out]
    assert len(told) == 1, results
    found = json.loads(told[0])
    assert sorted(host["name"] for host in found["hosts"]) == sorted(names) and found["left_out"] == [], found
    for kind in ("latency_seconds", "seconds_per_byte"):
        known = [value for i, row in enumerate(found[kind]) for j, value in enumerate(row) if i != j and value is not None]
        assert known and all(value > 0 for value in known), (kind, found[kind])
    return found


def each_rank(size):
    return [f"{socket.gethostname()}/{rank}" for rank in range(size)]


def test_torchrun():
    with socket.socket() as torch:  # PyTorch's own store has the port itself
        port = bind_below_free(torch)
        torch.listen()
        envs = [{"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "3", "GROUP_RANK": "0",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none", "ESP_LOG": "warn"} for rank in range(3)]
        check([finish(process) for process in [start(EACH, env) for env in envs]], each_rank(3))


def check_mpirun(words):
    check([run([*words, "-n", 3, *EACH], {"ESP_LOG": "warn"})], each_rank(3))


def test_openmpi():
    need("mpirun.openmpi", "ssh")  # which it looks for even on one host
    check_mpirun(["mpirun.openmpi", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])])


def test_mpich():
    need("mpirun.mpich")
    check_mpirun(["mpirun.mpich"])


def on_two_hosts(words, pass_on):
    """Hosts with names of their own; two ranks on one of them, of which one measures."""
    need_namespace()
    with temporary() as path:
        map_names(path, f"127.0.0.1 {socket.gethostname()}\n127.0.0.2 elsewhere\n")
        rsh, store = path / "rsh", path / "store"
        rsh.write_text(FAKE_RSH)
        rsh.chmod(0o755)
        store.mkdir()
        env = {"ESP_STORE": f"file:{store}", "ESP_LOG": "warn"}
        check([run([*words(rsh), *pass_on, "-n", 3, *PROBE], env)], [socket.gethostname(), "elsewhere"])


def test_openmpi_hosts():
    need("mpirun.openmpi")
    on_two_hosts(lambda rsh: ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", rsh, "--host",
                              f"{socket.gethostname()}:1,elsewhere:2"], ["-x", "ESP_LOG", "-x", "ESP_STORE"])


def test_mpich_hosts():
    need("mpirun.mpich")
    on_two_hosts(lambda rsh: ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", rsh, "-hosts", f"{socket.gethostname()},elsewhere"], [])


def test_ssh():
    """Through real servers, on two hosts that have names and addresses of their own."""
    need("ssh", "ssh-keygen", "/usr/sbin/sshd", "unshare")
    need_namespace(network=True)
    with temporary() as path:
        prepare_sshd()
        map_names(path, "127.0.0.2 west\n127.0.0.3 east\n")
        for name in ("west", "east"):
            (path / name).mkdir()
        with sshd(path / "west", "127.0.0.2", ["unshare", "-u", "sh", "-c", 'hostname west && exec "$0" "$@"']) as west, \
                sshd(path / "east", "127.0.0.3", ["unshare", "-u", "sh", "-c", 'hostname east && exec "$0" "$@"']) as east:
            rsh = path / "rsh"  # each has a port of its own
            rsh.write_text(f"""#!/bin/sh
host=$1
shift
case $host in
west) exec {' '.join(west)} 127.0.0.2 "$@" ;;
east) exec {' '.join(east)} 127.0.0.3 "$@" ;;
esac
exit 1
""")
            rsh.chmod(0o755)
            check([run([*PROBE, "--hosts", "west,east", "--rsh", rsh], {"ESP_LOG": "warn"})], ["west", "east"])
            hosts, topology = path / "hostfile", path / "topology"
            hosts.write_text("west\neast\n")
            status, out, err = run([ESPALIER, "probe", "--seconds", 1, "--hostfile", hosts, "--rsh", rsh, "--out", topology], {"ESP_LOG": "warn"})
            assert status == 0 and "2 hosts" in out and topology.read_text().startswith("topology 1\n"), (status, out, err)


def test_ipv6():
    """No host has another kind of address, not even on its loopback."""
    netns.skip_unless_possible()
    with netns.Network() as network:
        network.host("a", "b", hosts_file="::1 localhost a b\n")
        network.cable("a", "b", "eth0", ("2001:db8::1/64", "2001:db8::2/64"))
        for host in "ab":
            network.ip(host, "-4", "address", "flush", "dev", "lo")
        check(network.job("ab", "[2001:db8::1]:7000", *PROBE, log="warn"), ["a", "b"])
        found = check(network.job("ab", "[2001:db8::1]:7000", *PROBE, log="warn", port="7200-7209"), ["a", "b"])
        assert found["no_topology"] is None, found["no_topology"]


if __name__ == "__main__":
    globals()[f"test_{NAME}"]()
