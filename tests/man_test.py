#!/usr/bin/env python3
"""The pages of section 3 know the public headers: every function with its declaration, every status, every member.

man_test.py TYPES HEADER... PAGE...
"""
import pathlib
import re
import shutil
import subprocess
import sys


def declarations(header):
    found = re.findall(r"^ESP_API\b([^;]*);", header, re.MULTILINE)
    return {re.search(r"(\w+)\s*\(", text).group(1): " ".join(text.split()) for text in found}


def members(header):
    """Of the structs that callers see: {struct: [member]}."""
    structs = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", header, re.MULTILINE | re.DOTALL):
        plain = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
        structs[name] = [member for line in plain.split(";") for member in re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", line.strip())]
    return structs


def constants(text):
    return re.findall(r"^\s+(ESP_\w+) = ", text, re.MULTILINE)


def plain(page):
    return re.sub(r"\\f.", "", page).replace("\\-", "-")


def synopsis(page):
    return " ".join(plain(page).split(".SH SYNOPSIS")[1].split(".SH DESCRIPTION")[0].split()).replace("( ", "(")


def named(page):
    line = page.split(".SH NAME\n")[1].split("\n")[0]
    return [name.strip() for name in line.split(" \\- ")[0].split(",")]


def check(header, types, pages):
    wanted = declarations(header)
    complaints = []
    names = [name for page in pages.values() for name in named(page)]
    for name, text in wanted.items():
        homes = [path for path, page in pages.items() if name in named(page) or (name == "esp_version" and "libespalier" in path)]
        if len(homes) != 1:
            complaints.append(f"{name}: in the NAME of {len(homes)} pages")
        elif f"{text};" not in synopsis(pages[homes[0]]):
            complaints.append(f"{homes[0]}: not as in the header: {text}")
    for name in names:
        if name not in wanted and name != "libespalier":
            complaints.append(f"{name} is in no header")
    contents = next(page for path, page in pages.items() if "libespalier" in path).split(".SS Where to read on")[1].split(".SS")[0]
    for path in pages:
        page = pathlib.Path(path).stem
        if page != "libespalier" and f".BR {page} (3)" not in contents:
            complaints.append(f"libespalier(3), Where to read on: {page}(3) is missing")
    everything = plain("\n".join(pages.values()))
    for name in sorted(set(re.findall(r"\besp_[a-z_]+(?= ?\(\)| \(3\)|\()", everything)) - set(wanted)):
        complaints.append(f"{name}() is in a page and in no header")
    for name in constants(header) + constants(types):
        if not re.search(rf"\b{name}\b", everything):
            complaints.append(f"{name} is in no page")
    for struct, list_of_members in members(header).items():
        for member in list_of_members:
            if not re.search(rf"\b{member}\b", everything):
                complaints.append(f"{struct}.{member} is in no page")
    return complaints


def check_form(paths):
    """What groff has to say, where there is one."""
    if not shutil.which("groff"):
        return []
    complaints = []
    for path in paths:
        done = subprocess.run(["groff", "-man", "-t", "-Tutf8", "-ww", "-z", path], capture_output=True, text=True)
        complaints += [line for line in done.stderr.splitlines() if "locale" not in line]
    return complaints


def main():
    types, *headers = [path for path in sys.argv[1:] if path.endswith(".h")]
    paths = [path for path in sys.argv[1:] if not path.endswith(".h")]
    header = "\n".join(pathlib.Path(path).read_text(encoding="utf-8") for path in headers)
    pages = {path: pathlib.Path(path).read_text(encoding="utf-8") for path in paths}
    complaints = check(header, pathlib.Path(types).read_text(encoding="utf-8"), pages)
    complaints += check_form(paths)
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
