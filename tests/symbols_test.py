#!/usr/bin/env python3
"""libespalier.so exports the functions of the public header, and nothing else.

symbols_test.py LIBRARY HEADER...
"""
import re
import subprocess
import sys

DECLARATION = re.compile(r"^ESP_API\b[^;]*?\b(\w+)\s*\(", re.MULTILINE)


def declared(headers):
    names = set()
    for header in headers:
        with open(header, encoding="utf-8") as text:
            names |= set(DECLARATION.findall(text.read()))
    return names


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    rows = [line.split() for line in listing.stdout.splitlines()]
    # Type A is the version node itself.
    return {row[-1].split("@")[0] for row in rows if row[-2] != "A"}


def soname(library):
    listing = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True)
    return re.search(r"SONAME.*\[(.*)\]", listing.stdout).group(1)


def main():
    library, headers = sys.argv[1], sys.argv[2:]
    wanted, found = declared(headers), exported(library)
    complaints = [f"exported but not declared: {name}" for name in sorted(found - wanted)]
    complaints += [f"declared but not exported: {name}" for name in sorted(wanted - found)]
    complaints += [f"not named esp_: {name}" for name in sorted(found) if not name.startswith("esp_")]
    if not wanted:
        complaints.append("no declaration found in the headers")
    if soname(library) != "libespalier.so.0":
        complaints.append(f"the soname is {soname(library)}")
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
