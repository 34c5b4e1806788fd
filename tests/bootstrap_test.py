#!/usr/bin/env python3
"""scripts/bootstrap in a world of pretended commands: what it installs, and what it says when it cannot.

bootstrap_test.py BOOTSTRAP
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ALL = "gcc g++ libc6-dev libhiredis-dev libjansson-dev libsodium-dev meson ninja-build pkgconf python3".split()


class World:
    """A PATH that holds bash and the commands that a case gives it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.log = self.folder / "log"
        self.log.write_text("")
        (self.folder / "bin").mkdir()
        for name in ("bash", "cat", "env"):
            (self.folder / "bin" / name).symlink_to(shutil.which(name))

    def command(self, name, script=""):
        path = self.folder / "bin" / name
        path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        path.chmod(0o755)

    def debian(self, installed, uid=0, sudo=False, apt_status=0):
        rows = " ".join(f"installed:{name}" for name in installed)
        # dpkg-query fails if one of the packages is unknown, but lists the others.
        self.command("dpkg-query", f"echo -n '{rows} config-files:cppcheck '; exit {0 if installed == ALL else 1}")
        self.command("apt-get", f'echo "apt-get $*" >> {self.log}; exit {apt_status}')
        self.command("id", f"echo {uid}")
        if sudo:
            self.command("sudo", f'echo "sudo" >> {self.log}; "$@"')
        return self

    def run(self, bootstrap, purpose="build"):
        run = subprocess.run([shutil.which("bash"), bootstrap, purpose], capture_output=True, text=True,
                             env={"PATH": str(self.folder / "bin")})
        return run.returncode, run.stdout, run.stderr, self.log.read_text()


def nothing_missing(world, bootstrap):
    assert world.debian(ALL).run(bootstrap) == (0, "", "", "")


def some_missing(world, bootstrap):
    status, said, _, log = world.debian([name for name in ALL if name not in ("meson", "ninja-build")]).run(bootstrap)
    assert status == 0 and "installing meson ninja-build" in said
    update, install = log.splitlines()
    assert update.startswith("apt-get update") and install.endswith(" meson ninja-build")


def tests_without_root(world, bootstrap):
    """What only tests need is wanted, but not needed: what the build needs is."""
    status, said, complaint, log = world.debian(ALL, uid=1000).run(bootstrap, "test")
    assert status == 0 and not said and not log, (said, log)
    assert "skipped" in complaint and " nftables" in complaint and " redis-server" in complaint, complaint
    missing = world.debian([name for name in ALL if name != "meson"], uid=1000).run(bootstrap, "test")
    assert missing[0] == 1 and "install by hand" in missing[2], missing


def removed_but_configured(world, bootstrap):
    """A package of which only the configuration is left is missing."""
    status, _, _, log = world.debian(ALL).run(bootstrap, "check")
    assert status == 0 and " cppcheck" in log and " gcc" not in log


def through_sudo(world, bootstrap):
    status, _, _, log = world.debian(["gcc"], uid=1000, sudo=True).run(bootstrap)
    assert status == 0 and log.count("sudo\n") == 2


def no_root(world, bootstrap):
    status, _, said, log = world.debian(["gcc"], uid=1000).run(bootstrap)
    assert status == 1 and log == "" and "by hand" in said and " gcc" not in said
    missing = " ".join(name for name in ALL if name != "gcc")
    assert said.endswith(f": apt-get install --no-install-recommends {missing}\n"), said


def apt_fails(world, bootstrap):
    status, _, said, _ = world.debian(["gcc"], apt_status=100).run(bootstrap)
    assert status == 1 and "by hand" in said and "meson" in said


def other_system(world, bootstrap):
    status, _, said, _ = world.run(bootstrap)
    assert status == 1 and "not a Debian system" in said and "meson" in said
    for name in ("cc", "c++", "meson", "ninja", "pkg-config", "python3"):
        world.command(name)
    assert world.run(bootstrap) == (0, "", "", "")


def main():
    failures = 0
    for case in (nothing_missing, some_missing, tests_without_root, removed_but_configured, through_sudo, no_root, apt_fails, other_system):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(World(folder), sys.argv[1])
            except AssertionError as failure:
                print(f"{case.__name__} failed at line {failure.__traceback__.tb_next.tb_lineno}")
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
