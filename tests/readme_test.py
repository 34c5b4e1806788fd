#!/usr/bin/env python3
"""The example in the README, as it stands there: compiled in a folder somewhere else, and run.

readme_test.py README BUILD
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77


def example(readme):
    """The C program, and the commands behind it: one for the checkout, one for any folder."""
    found = re.search(r"```c\n(.*?)```\n(.*?)\n\n(?=\S)", readme, re.DOTALL)
    lines = [line.strip() for line in found.group(2).splitlines() if line.startswith("    ")]
    assert len(lines) == 2 and lines[0].startswith("export ") and lines[1].startswith("cc hello.c "), lines
    return found.group(1), lines


def main():
    readme, build = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2]).resolve()
    if not shutil.which("pkg-config") or not shutil.which("cc"):
        print("there is no pkg-config or no cc")
        return SKIP
    program, (prepare, make_and_run) = example(readme)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ESP_", "LD_"))}
    with tempfile.TemporaryDirectory() as name:
        checkout, elsewhere = pathlib.Path(name, "checkout"), pathlib.Path(name, "else where")
        checkout.mkdir()
        elsewhere.mkdir()
        (checkout / "build").symlink_to(build)
        (elsewhere / "hello.c").write_text(program)
        script = f"set -e\ncd {checkout}\n{prepare}\ncd '{elsewhere}'\n{make_and_run}\ncd /\nldd '{elsewhere}/hello'\n"
        done = subprocess.run(["sh", "-c", script], env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done
        for rank in range(4):
            assert f"[{rank}] rank {rank} of 4: the sum of all ranks is 6\n" in done.stdout, done
        assert "not found" not in done.stdout and str(checkout) in done.stdout, done
    return 0


if __name__ == "__main__":
    sys.exit(main())
