#!/usr/bin/env python3
"""The espalier command from outside: exit statuses, suggestions, help, JSON.

cli_test.py ESPALIER MAN_PAGE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2


def run(*words, **variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ESP_")}
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, env={**clean, **variables})
    return done.returncode, done.stdout, done.stderr


def test_top():
    status, out, err = run()
    assert status == USAGE and out == "" and "usage: espalier" in err
    status, out, err = run("--help")
    assert status == OK and "commands:" in out and err == ""
    assert run("help") == run("-h") == run("--help")
    status, out, _ = run("--version")
    assert status == OK and out.startswith("espalier ")


def test_unknown():
    status, out, err = run("cnof")
    assert status == USAGE and out == "" and "did you mean 'conf'" in err
    status, _, err = run("zzzzzzz")
    assert status == USAGE and "espalier --help" in err
    status, _, err = run("help", "cnof")
    assert status == USAGE and "did you mean 'conf'" in err
    status, _, err = run("help", "plan", "mkae")
    assert status == USAGE and "did you mean 'make'" in err
    status, out, err = run("demo", "--plans", "default,rinng")
    assert status == USAGE and out == "" and "did you mean 'ring'" in err


def refused(*words, says, **variables):
    """In one line, before anything is started."""
    status, out, err = run(*words, **variables)
    assert status == USAGE and out == "" and says in err, (words, status, out, err)
    assert err.startswith(f"espalier: {words[0]}: ") and err.count("\n") == 1, err


def test_demo_that_makes_no_sense():
    refused("demo", "--epochs", "0", says="--epochs: '0' is not a whole number from 1 to 1000")
    refused("demo", "--samples", "3", says="--samples: '3' is not a whole number from 8 to 10000000")
    refused("demo", "--samples", "64", says="--samples 64 is not a batch of 32 for each of 8 workers")
    refused("demo", "--samples", "31", "--batch", "1", says="--samples 31 is not a batch of 1 for each of 8 workers")
    refused("demo", "--batch", "100000", says="--batch: '100000' is not a whole number from 1 to 4096")
    refused("demo", "--batch", "4096", says="--samples 16384 is not a batch of 4096 for each of 8 workers")
    refused("demo", "--corrupt", "5", "-n", "2", says="--corrupt 5, but workers end at 1")
    refused("demo", "--seed", "one", says="--seed: 'one' is not a whole number")
    refused("demo", "--json", "/nope/x", says="--json: cannot write to /nope/x: No such file or directory")
    refused("demo", "--json", "/", says="--json: / is a folder")
    refused("demo", "--plans", "hub", says="--plans: hub needs hubs or switches beside the ranks")
    refused("demo", "--plans", "default,", says="--plans: unknown planner ''; there are default, ring, ")
    refused("demo", "--plans", ",".join(["ring"] * 17), says="--plans: more than 16 names")
    refused("demo", says="it starts all its workers itself", ESP_RANK="0", ESP_SIZE="2")
    refused("demo", says="it starts all its workers itself", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")


def test_plans_that_run():
    """Nobody is told of what would be refused."""
    for words, also in [(["bench", "--plan"], "auto"), (["demo", "--plans"], "default")]:
        refused(*words, "bogus", says=f"unknown planner 'bogus'; there are {also}, ring, ")
        err = run(*words, "bogus")[2]
        assert "three-level\n" in err and "hub" not in err and "switch" not in err, err
    assert "ring-switch\n" in run("plan", "show", "--planner", "bogus", "-n", "4")[2]


def test_help_of_a_subcommand():
    for name in ["make", "check", "show", "cost", "draw"]:
        status, out, err = run("help", "plan", name)
        assert status == OK and err == "" and out.startswith(f"usage: espalier plan {name}"), name
        assert out == run("plan", name, "--help")[1]
    assert run("help", "plan") == run("plan", "--help")
    for words, unexpected in [(["help", "conf", "lanes"], "lanes"), (["help", "plan", "make", "ring"], "ring"),
                              (["help", "sim", "advise", "now"], "now"), (["--version", "x"], "x"), (["-V", "--help"], "--help")]:
        status, out, err = run(*words)
        assert status == USAGE and out == "" and err == f"espalier: unexpected argument '{unexpected}'; see espalier --help\n", (words, err)


def test_options_are_written_out():
    status, _, err = run("conf", "--js")
    assert status == USAGE and "unknown option '--js' (did you mean --json?)" in err
    status, _, err = run("conf", "--jsno")
    assert status == USAGE and "did you mean --json?" in err


def test_every_command_has_help():
    listing = run("--help")[1].split("commands:")[1].split("options:")[0]
    names = [line.split()[0] for line in listing.splitlines() if line.strip()]
    assert "conf" in names
    for name in names:
        if name != "help":
            status, out, _ = run("help", name)
            assert status == OK and out.startswith(f"usage: espalier {name}"), name
            assert run(name, "--no-such-option")[0] == USAGE, name


def settings(*words, **variables):
    status, out, err = run("conf", "--json", *words, **variables)
    return status, {row["name"]: row for row in json.loads(out)}, err


def test_conf():
    status, rows, err = settings()
    assert status == OK and err == "" and rows["chunk_bytes"]["value"] == 0
    assert rows["lanes"] == {**rows["lanes"], "value": 0, "default": 0, "origin": "default"}
    status, rows, _ = settings("lanes=3", ESP_LANES="2", ESP_CREDITS="4")
    assert status == OK and rows["lanes"]["value"] == 3 and rows["lanes"]["origin"] == "command line"
    assert rows["credits"]["value"] == 4 and rows["credits"]["origin"] == "environment"
    status, out, _ = run("conf")
    assert status == OK and len(out.splitlines()) == len(rows) + 1


def test_conf_warns_of_misspelt_variables():
    status, rows, err = settings(ESP_LANS="4", ESP_RANK="0", ESP_KEY="k")
    assert rows["lanes"]["value"] == 0 and "'ESP_LANS' means nothing; did you mean ESP_LANES?" in err, err
    assert "ESP_RANK" not in err and "ESP_KEY" not in err, err
    status, _, err = settings(ESP_LANS="4")
    assert status == OK and err.count("\n") == 1, err


def test_conf_file():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("log=info\nlanes=many\n")
        file.flush()
        status, rows, err = settings(ESP_CONF_FILE=file.name)
        assert status == NO and f"{file.name}:2: lanes" in err
        assert rows["log"]["value"] == "info" and rows["log"]["origin"] == "file"
        assert rows["lanes"]["value"] == 0


def test_conf_bad():
    status, _, err = run("conf", ESP_LANES="-1")
    assert status == NO and "ESP_LANES" in err and "from 1 to 64" in err and "'-1'" in err
    assert run("conf", "lanes")[0] == USAGE
    assert run("conf", "lanes=65")[0] == USAGE
    assert run("conf", "lane=1")[0] == USAGE
    status, _, err = run("conf", "foo=1")
    assert status == USAGE and "no setting 'foo'" in err and "did you mean" not in err
    status, _, err = run("conf", ESP_CONF_FILE="")
    assert status == NO and "ESP_CONF_FILE is empty" in err


def paragraph(page, head):
    assert head in page, f"{head.strip()} in {sys.argv[2]}"
    return page.split(head)[1].split("\n.TP")[0].split("\n.S")[0]


def test_man_page_knows_every_setting():
    """With its default, what it may be (as the complaint about a bad value says), and whether all ranks need the same."""
    page = pathlib.Path(sys.argv[2]).read_text()
    rows = settings()[1]
    for line in run("conf")[1].splitlines()[1:]:
        name, _, default = line.split()[:3]
        text = paragraph(page, f'.BR {name} " (default {default})"\n')
        complaint = re.search(rf"{name} is (.*), not '@'", run("conf", f"{name}=@")[2])
        wanted = complaint.group(1) if complaint else ""  # texts may be anything
        assert complaint or isinstance(rows[name]["default"], str), name
        for words in re.findall(r"from (\S+ to \S+)", wanted) or re.findall(r"[a-z]+", re.sub("one of|or", "", wanted)):
            assert words in text, f"{name}: {words} in {sys.argv[2]}"
        assert ("Same on all ranks" in text) == rows[name]["agreed"], name
    named = re.findall(r'^\.BR (\w+) " \(default', page, re.MULTILINE)
    assert sorted(named) == sorted(rows), set(named) ^ set(rows)


def test_joining_knows_what_all_must_have_alike():
    page = pathlib.Path(sys.argv[2]).parents[1].joinpath("joining.md").read_text()
    sentence = page.split("## Settings\n")[1].split(" must have the same value")[0].split("\n\n")[-1]
    assert re.findall(r"`(\w+)`", sentence) == [name for name, row in settings()[1].items() if row["agreed"]], sentence


def test_full_disk():
    if not os.path.exists("/dev/full"):
        return
    for words in (["conf"], ["conf", "--json"], ["--help"]):
        with open("/dev/full", "w") as full:
            assert subprocess.run([sys.argv[1], *words], stdout=full, stderr=subprocess.DEVNULL).returncode == NO, words


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
