#!/usr/bin/env python3
"""espalier topology: from what is written down to a file that jobs and the simulator take.

topology_cli_test.py ESPALIER MAN_PAGE HELLO
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
ESPALIER = os.path.abspath(sys.argv[1])
MAN_PAGE = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").replace("\\-", "-")
HELLO = os.path.abspath(sys.argv[3])

MAP = "n0 row1/a\nn1 row1/b\nn2 row2/a\nn3 row1/a\n"
SLURM = "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-5]\nSwitchName=top Switches=s[0-1]\n"


def nodes(labels):
    return json.dumps({"items": [{"metadata": {"name": name, "labels": given}} for name, given in labels.items()]})


def espalier(*words, text="", **variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
    done = subprocess.run([ESPALIER, *map(str, words)], input=text.encode(), capture_output=True, env={**clean, **variables})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def good(*words, **more):
    status, out, err = espalier(*words, **more)
    assert status == OK and err == "", (words, status, err)
    return out


def refused(*words, says, status=NO, **more):
    got, out, err = espalier(*words, **more)
    assert got == status and out == "" and says in err, (words, got, out, err)
    assert len(err.splitlines()) == 1, err


def test_help():
    text = good("topology", "--help")
    assert text.startswith("usage: espalier topology [options] FILE")
    for option in re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.MULTILINE):
        assert f"--{option}" in MAN_PAGE, f"--{option} in the manual page"
    assert "\n  topology  " in good("--help")


def test_map():
    text = good("topology", "-", "--rate", "10gbit", "--oversubscribe", 4, "--delay", 1, "--uplink-delay", "2us", text=MAP)
    assert text == """# made by espalier topology: 4 hosts in 3 racks; rates as told, not measured
topology 1
switch core
switch row1 under core rate 7.5gbit delay 2us
switch row1/a under row1 rate 5gbit delay 2us
host n0 under row1/a rate 10gbit delay 1us
host n3 under row1/a rate 10gbit delay 1us
switch b under row1 rate 2.5gbit delay 2us
host n1 under b rate 10gbit delay 1us
switch row2/a under core rate 2.5gbit delay 2us
host n2 under row2/a rate 10gbit delay 1us
"""
    assert "switch b under row1 rate 3gbit\n" in good("topology", "-", "--rate", "10gbit", "--uplink", "3gbit", text=MAP)
    windows = "\ufeff" + MAP.replace("\n", "\r\n")
    assert good("topology", "-", "--rate", "10gbit", text=windows) == good("topology", "-", "--rate", "10gbit", text=MAP)


def test_slurm():
    text = good("topology", "-", "--rate", "1gbit", "--oversubscribe", 2, text=SLURM)
    assert "\nswitch top\nswitch s0 under top rate 1gbit\nhost n0 under s0 rate 1gbit\n" in text
    assert "\nswitch s1 under top rate 2gbit\nhost n2 under s1 rate 1gbit\n" in text and text.count("\nhost ") == 6


def test_kubernetes():
    zone, rack = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
    text = nodes({f"n{i}": {zone: "z", rack: f"r{i % 2}", "mine": "m"} for i in range(4)})
    said = good("topology", "-", "--rate", "1gbit", text=text)
    assert f"4 hosts in 2 racks, by the label {rack};" in said and "switch z\nswitch r0 under z rate 2gbit\nhost n0 under r0 " in said
    said = good("topology", "-", "--rate", "1gbit", "--rack-label", "mine", text=text)
    assert "4 hosts in 1 rack, by the label mine;" in said and "switch m\nhost n0 under m " in said
    refused("topology", "-", "--rate", "1gbit", "--rack-label", "none", text=text, says="host 'n0' has no label 'none'")
    refused("topology", "-", "--rate", "1gbit", text=nodes({"n0": {}}), says="say which one does (--rack-label)")
    refused("topology", "-", "--rate", "1gbit", "--rack-label", "mine", text=MAP, says="--rack-label is for what kubectl")


def test_bad_input():
    def bad(text, says):
        refused("topology", "-", "--rate", "1gbit", text=text, says=f"espalier: topology: -: {says}")

    bad("n0 a\nn1\n", "line 2: a line is a host and its rack")
    bad("n0 a\nn0 b\n", "line 2: host 'n0' has a rack already")
    bad("SwitchName=s0 Nodes=n0\nSwitchName=s1 Nodes=n0\n", "line 2: host 'n0' is below the switch of line 1 as well")
    bad("SwitchName=s0 Nodes=n[0-1\n", "line 1: Nodes is a list of host names")
    bad("{\n\n]", "line 3: no JSON")
    bad("", "there is no host in it")
    bad("n" * 64 + " a\n", "host 'nnn")
    bad("n0 1/2/3/4/5/6\nn1 1/2/3/4/5/7\nn2 1/2/3/4/8/9\nn3 1/2/3/a/b/c\nn4 1/2/d/e/f/g\nn5 1/h/i/j/k/l\n", "host 'n0' has 6 switches above it, and a topology can have 5: leave out a level")
    refused("topology", "-", text=MAP, status=USAGE, says="Give --rate, such as 25gbit")
    refused("topology", "-", "--rate", "fast", text=MAP, status=USAGE, says="--rate: 'fast' is not a rate such as")
    refused("topology", "-", "--rate", "1gbit", "--uplink", 7, text=MAP, status=USAGE, says="--uplink: '7' is not a rate such as")
    refused("topology", "-", "--rate", "1gbit", "--uplink", "1gbit", "--oversubscribe", 2, text=MAP, status=USAGE, says="give one of them")
    refused("topology", "-", "--rate", "1gbit", "--oversubscribe", 0, text=MAP, status=USAGE, says="--oversubscribe must be above 0")
    refused("topology", "-", "--rate", "1gbit", "--delay", "long", text=MAP, status=USAGE, says="--delay: 'long' is not a time")
    refused("topology", "--rate", "1gbit", status=USAGE, says="an argument is missing: FILE")
    refused("topology", "no/such", "--rate", "1gbit", status=USAGE, says="no/such")


def test_what_takes_it(folder):
    """The simulator, and a job on this host."""
    path = folder / "topology.txt"
    (folder / "racks.txt").write_text("# where we are\n" + "".join(f"{host} r{i % 2}\n" for i, host in enumerate([socket.gethostname(), "n1", "n2", "n3"])))
    assert good("topology", folder / "racks.txt", "--rate", "10gbit", "--oversubscribe", 2, "--out", path) == ""
    said = json.loads(good("sim", "run", "--collective", "allreduce", "--topology", path, "--mechanism", "two-level", "--json"))
    assert said["workers"] == 4, said
    done = json.loads(good("sim", "run", "--model", "vgg-16", "--workers", 4, "--topology", path, "--mechanism", "ring", "--json"))
    assert done["results"][0]["bytes"]["rack_out"] > 0
    out = good("run", "-n", 2, "--topology", path, "--", HELLO)
    assert out.count("2 ranks, their numbers add up to 1") == 2, out
    refused("topology", folder / "racks.txt", "--rate", "1gbit", "--out", folder / "no" / "such", says="such")


def test_long_host_names(folder):
    """A job on a host whose name is as long as a name of a topology can be, and one letter longer, as Linux allows it."""
    alone = ["unshare", "--user", "--map-root-user", "--uts"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        print("host names of 63 letters are not tried: no namespaces here")
        return
    racks, path = folder / "long.txt", folder / "long.topology"
    for length, written in [(63, "h" * 63), (64, "h" * 63), (64, "h" * 20)]:
        name = "h" * length if len(written) == 63 else written + "." + "d" * (length - len(written) - 1)
        racks.write_text(f"{written} here\nother there\n")
        good("topology", racks, "--rate", "1gbit", "--out", path)
        job = [ESPALIER, "run", "-n", "2", "--topology", str(path), "--", HELLO]
        done = subprocess.run([*alone, "sh", "-c", 'hostname "$0" && exec "$@"', name, *job], capture_output=True, text=True)
        assert done.returncode == OK and done.stdout.count("2 ranks, their numbers add up to 1") == 2, (name, done)


def main():
    test_help()
    test_map()
    test_slurm()
    test_kubernetes()
    test_bad_input()
    with tempfile.TemporaryDirectory() as name:
        test_what_takes_it(pathlib.Path(name))
        test_long_host_names(pathlib.Path(name))


if __name__ == "__main__":
    main()
