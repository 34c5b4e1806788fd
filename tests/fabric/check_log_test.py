#!/usr/bin/env python3
"""scripts/check-fabric-log: takes the logs of jobs in virtual time, and refuses each log that was changed.

check_log_test.py CHECKER PROGRAM
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

CHECKER, PROGRAM = sys.argv[1:3]
RUNS = 60


def check(*paths):
    done = subprocess.run([sys.executable, CHECKER, *map(str, paths)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def number_of(line, name):
    return int(re.search(rf"\b{name} (\d+)", line)[1])


def with_number(line, name, value):
    return re.sub(rf"\b{name} \d+", f"{name} {value}", line, count=1)


def applied_ends(lines):
    return [i for i, line in enumerate(lines) if " end " in line and line.endswith(" applied\n")]


def sent(lines):
    return [i for i, line in enumerate(lines) if " decide " in line and line.endswith(" applied\n")]


# Each changes a log, or returns False where it has nothing to change.

def late(lines, rng, bound):
    at = rng.choice(applied_ends(lines))
    lines[at] = with_number(with_number(lines[at], "delay", bound + 1), "version", 10**6)


def lone(lines, rng, _bound):
    at = rng.choice(applied_ends(lines))
    lines[at] = with_number(lines[at], "delay", 0)


def same_version(lines, rng, _bound):
    first, second = sorted(rng.sample(applied_ends(lines), 2))
    made = number_of(lines[first], "from") + number_of(lines[first], "delay")
    lines[second] = with_number(with_number(lines[second], "from", made - 1), "delay", 1)


def newer_than_hub(lines, rng, _bound):
    at = rng.choice(applied_ends(lines))
    lines[at] = with_number(lines[at], "version", number_of(lines[at], "from") + number_of(lines[at], "delay") - 1)


def position_skipped(lines, rng, _bound):
    at = rng.choice(sent(lines))
    lines[at] = with_number(lines[at], "position", number_of(lines[at], "position") + 1)


def decided_twice(lines, rng, _bound):
    at = rng.choice(sent(lines))
    lines.insert(at + 1, lines[at])


def ended_twice(lines, rng, _bound):
    at = rng.choice(applied_ends(lines))
    lines.insert(at + 1, lines[at])


def time_back(lines, rng, _bound):
    at = rng.randrange(1, len(lines))
    before = int(lines[at - 1].split()[0])
    if before == 0:
        return False
    lines[at] = f"{before - 1} {lines[at].split(' ', 1)[1]}"
    return True


def stranger(lines, rng, _bound):
    at = rng.choice(sent(lines))
    lines[at] = re.sub(r" decide \d+ ", " decide 64 ", lines[at])


def no_rate(lines, rng, _bound):
    at = rng.choice(sent(lines))
    lines[at] = with_number(lines[at], "rate", 0)


def noise(lines, rng, _bound):
    lines[rng.randrange(len(lines))] = "GET / HTTP/1.0\n"


def cut_off(lines, _rng, _bound):
    lines[-1] = lines[-1][:-1]


def sum_torn(lines, _rng, _bound):
    """Two updates, of which one is in a sum of three or more, change their versions."""
    sums = {}
    for line in lines:
        found = re.search(r" decide (\d+) (\d+) position \d+ sum (\d+) ", line)
        if found and found[3] != "0":
            sums.setdefault(found[3], []).append((found[1], found[2]))
    ends = {tuple(lines[i].split()[2:4]): i for i in applied_ends(lines)}
    for members in sums.values():
        at = [ends[one] for one in members if one in ends]
        if len(at) == 2:
            a, b = (lines[i] for i in at)
            made = [number_of(line, "from") + number_of(line, "delay") for line in (a, b)]
            for i, line, other in ((at[0], a, made[1]), (at[1], b, made[0])):
                if other <= number_of(line, "from"):
                    return False
                lines[i] = with_number(line, "delay", other - number_of(line, "from"))
            return True
    return False


def tree_from_nowhere(lines, rng, _bound):
    """A worker gets its model from one that is not in the tree."""
    trees = {}
    for i, line in enumerate(lines):
        if " model " in line:
            trees.setdefault(number_of(line, "tree"), []).append(i)
    lone_trees = [rows[0] for rows in trees.values() if len(rows) == 1]
    if not lone_trees:
        return False
    at = rng.choice(lone_trees)
    worker = int(lines[at].split()[2])
    lines[at] = re.sub(r" from (hub|\d+) ", f" from {1 if worker == 0 else 0} ", lines[at])
    return True


CHANGES = [late, lone, same_version, newer_than_hub, position_skipped, decided_twice, ended_twice, time_back, stranger, no_rate, noise, cut_off,
           sum_torn, tree_from_nowhere]


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([PROGRAM, folder, str(RUNS)], check=True)
        logs = sorted(folder.glob("*.log"))
        status, out, err = check(*logs)
        assert status == 0 and len(out.splitlines()) == RUNS, (out, err)
        assert sum(int(number) for number in re.findall(r"(\d+) of them in", out)) > 100, out
        rng = random.Random(1)
        for change in CHANGES:
            refused = 0
            for log in logs:
                lines = log.read_text(encoding="ascii").splitlines(keepends=True)
                if change(lines, rng, number_of(lines[0], "bound")) is False:
                    continue
                changed = folder / "changed"
                changed.write_text("".join(lines), encoding="ascii")
                status, _, err = check(changed)
                assert status == 1 and err, (change.__name__, log.name, err)
                refused += 1
                if refused == 5:
                    break
            print(f"{change.__name__}: {refused} changed logs are refused")
            assert refused > 0, change.__name__
    assert check()[0] == 2 and check("--help")[0] == 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
