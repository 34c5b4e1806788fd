#!/usr/bin/env python3
"""espalier-study from outside: its help and manual page; netop and money: their JSON, their messages about bad input.

papers_cli_test.py STUDY MAN_PAGE
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

OK, NO, USAGE = 0, 1, 2
STUDY, MAN_PAGE = sys.argv[1:3]
MODELS = ["inception-v3", "vgg-16", "resnet-101", "resnet-200"]


def run(*words):
    done = subprocess.run([STUDY, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    status, out, err = run(*words)
    assert status == OK and err == "", (words, status, err)
    return out


def document(*words):
    return json.loads(good(*words, "--json"))


def refused(*words, status=USAGE, says):
    got, out, err = run(*words)
    assert got == status and out == "", (words, got, out, err)
    assert says in err and err.startswith("espalier-study: ") and err.count("\n") == 1, (words, err)


def test_help():
    manual = pathlib.Path(MAN_PAGE).read_text(encoding="utf-8").replace("\\-", "-")
    for command in ("discover", "money", "netop", "table1"):
        assert f"\n  {command} " in good("--help")
        assert f"\\fBespalier-study {command}" in manual, command
        text = good(command, "--help")
        assert text.startswith(f"usage: espalier-study {command}"), text
        for option in re.findall(r"--[a-z-]+", text.split("options:")[-1]):
            assert option == "--help" or option in manual, f"{command}: {option} is not in {MAN_PAGE}"
    refused("mony", says="did you mean 'money'?")
    assert run()[0] == USAGE


def test_full_disk():
    with open("/dev/full", "w") as full:
        assert subprocess.run([STUDY, "--help"], stdout=full, stderr=subprocess.DEVNULL).returncode == NO


def test_netop():
    said = document("netop", "table1")
    sets = {entry["set"] for entry in said["results"]}
    assert sets == {"public", "factors", "calibrated"} and len(said["results"]) == 3 * 16
    errors = {entry["set"]: entry for entry in said["errors"]}
    assert errors["calibrated"]["within_4_percent"] >= 14 and errors["calibrated"]["values"] == 16
    for entry in said["results"]:
        assert entry["table"] == 1 and entry["model"] in MODELS and entry["unit"] == "s"
        assert math.isclose(entry["error"] + 1, entry["value"] / entry["paper"])
    unknown = document("netop", "table9", "--set", "calibrated")["results"]
    assert len(unknown) == 12 and all("paper" not in entry and entry["value"] > 0 for entry in unknown)
    both = document("netop", "figure8")["results"]
    assert {entry["set"] for entry in both} == {"public", "factors", "calibrated"} and len(both) == 3 * 28
    figure = document("netop", "figure8", "--set", "public")["results"]
    assert {entry["x"] for entry in figure} == {4, 8, 16, 32} and all(entry["figure"] == 8 for entry in figure)
    text = good("netop", "table4", "--set", "calibrated")
    assert "Table 4" in text and "22.46x (22, +2.1 %)" in text and "mean error" in text
    assert good("netop", "table4", "--json") == good("netop", "table4", "--json")
    refused("netop", "table5", says="table5")
    refused("netop", "--set", "best", says="best")


def test_money():
    money = document("money", "--model", "resnet-50")
    implied = [row["paper_relative"] for row in money["readings"][0]["deployments"]]
    assert [round(value, 3) for value in implied] == [1, 0.830, 0.794, 0.776], implied
    for row in money["bounds_gbps"][:4]:
        for key in ("CC", "CS", "NCC", "NCS"):
            assert 0.9 <= row["paper_" + key] / row[key] <= 1.1, row
    assert money["bounds_gbps"][4]["model"].startswith("resnet-50")
    assert "read back from table 5" in good("money")


def test_prices():
    with tempfile.TemporaryDirectory() as folder:
        prices = os.path.join(folder, "prices.json")
        pathlib.Path(prices).write_text(json.dumps({"gpu": 30000, "throughput": {"baseline": 100, "hub": 99}}), encoding="utf-8")
        given = document("money", "--prices", prices)["readings"][0]
        assert given["assumed"] == [] and given["deployments"][1]["scenarios"][0]["relative"] > 0.9
        pathlib.Path(prices).write_text('{"gpuu": 1}', encoding="utf-8")
        refused("money", "--prices", prices, status=NO, says="'gpuu' is no price that is known")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
