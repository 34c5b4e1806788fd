#!/usr/bin/env python3
"""Breaks each rule of scripts/tidy in a small tree of its own, and expects the complaint.

tidy_self_test.py TIDY
"""
import json
import pathlib
import subprocess
import sys
import tempfile

LAYERS = "base:\nlow:\nside:\nhigh: low\nhigh/inner: high\napi: high\n"
WORDS = "retired:\nstewards? -> control thread\n(?<!of )course -> poll order\n\nfolders:\nsrc/low\ndocs/done.md\n"
# Sentences that the language check accepts.
SOUND_C = """/*
 * low.c - the peer that sends what the lane has.
 */
const char *text = "/* somewhat"; /* of course: a name, and those that it has */
char quote = '"'; /* not the begin of a text */
"""
GUARDED = "#ifndef {0}\n#define {0}\n{1}\n#endif\n"
GOOD = {
    "scripts/layers.txt": LAYERS,
    "scripts/words.txt": WORDS,
    "docs/done.md": "# Done\n\nThe peer runs `who am I`.\n\n```\nwho\n```\n",
    "docs/other.md": "Who is not looked at.\n",
    "include/espalier/types.h": GUARDED.format("T", "enum t { A, B };"),
    "include/espalier/espalier.h": GUARDED.format("E", '#include "types.h"'),
    "src/base/conf.c": 'int main(void) { return getenv("A") != 0; }\n',
    "src/base/conf.h": GUARDED.format("C", '#include "espalier/types.h"'),
    "src/low/low.h": GUARDED.format("L", '#include "base/conf.h"'),
    "src/low/kernel.h": "/*\n * kernel.h - a kernel.\n *\n * Included once per type.\n */\ntype add(type a, type b);\n",
    "src/low/words.c": SOUND_C,
    "src/low/words_test.c": 'const char *text = "nobody";\n',
    "src/side/other.c": "int x; /* who the steward is " + "y" * 120 + " */\n",
    "src/side/side.h": GUARDED.format("S", "struct side;"),
    "src/high/high.c": '#include "low/low.h"\n#include <stdio.h>\n',
    "src/high/inner/inner.c": '#include "high/inner/inner.h"\n#include "base/conf.h"\n',
    "src/high/inner/inner.h": GUARDED.format("I", "struct inner;"),
    "docs/sound.md": "`src/low/low.h`, src/high/inner/inner.*, src/{low,high}/, src/high/high, build/src/low_test, other/src/x.c\n",
    "src/api/api.c": "#include <espalier/espalier.h>\n",
}
# What is broken, the file that is (over)written, its text, and a part of the complaint.
BROKEN = [
    ("sideways include", "src/high/high.c", '#include "side/side.h"\n', "high may not use side"),
    ("upward include", "src/low/low.c", '#  include "high/x.h"\n', "low may not use high"),
    ("not transitive", "src/high/inner/inner.c", '#include "low/low.h"\n', "high/inner may not use low"),
    ("inner folder from above", "src/high/high.c", '#include "high/inner/inner.h"\n', "high may not use high/inner"),
    ("include without folder", "src/low/low.c", '#include "low.h"\n', "does not start with a folder"),
    ("public header below", "src/low/low.c", "#include <espalier/espalier.h>\n", "include espalier/espalier.h"),
    ("folder without a row", "src/new/new.c", "int x;\n", "not in scripts/layers.txt"),
    ("row in the wrong order", "scripts/layers.txt", LAYERS.replace("high: low", "high: low api"), "not above it"),
    ("public header, C", "include/espalier/espalier.h", GUARDED.format("E", "int f(size_t x);"), "does not compile alone"),
    ("public header, C++", "include/espalier/espalier.h", GUARDED.format("E", "int f(int class);"), "-x c++"),
    ("private header", "src/low/low.h", GUARDED.format("L", "int f(uint64_t x);"), "does not compile alone"),
    ("no template", "src/low/kernel.h", "/* kernel.h */\n/*\n * Included once\n */\ntype x;\n", "does not compile alone"),
    ("guard", "src/low/low.h", "#ifndef A\n#define B\n#endif\n", "no include guard"),
    ("environment", "src/low/low.c", 'char *x(void) { return getenv("A"); }\n', "reads the environment"),
    ("environment by name", "src/low/low.c", "extern char **environ;\n", "reads the environment"),
    ("unfinished", "Makefile", "# " + "TO" + "DO later\n", "unfinished"),
    ("trailing blanks", "docs/a.md", "text \n", "blanks at the end"),
    ("last newline", "docs/a.md", "text", "no newline"),
    ("home folder", "docs/a.md", "see /home/" + "me/x\n", "path of one machine"),
    ("file of a document", "docs/a.md", "see `src/low/gone.h`.\n", "there is no src/low/gone.h"),
    ("folder of a document", "README.md", "| `src/gone/` | x |\n", "there is no src/gone"),
    ("files of a document", "docs/a.md", "src/low/{low,gone}.h\n", "there is no src/low/gone.h"),
    ("program of a document", "docs/a.md", "build/src/gone_test --count 2\n", "there is no build/src/gone_test"),
    ("length", "src/low/low.c", "int x;\n" * 701, "longer than"),
    ("retired word", "src/low/low.c", "int x; /* the Steward's */\n", 'low.c:1: "Steward" is a retired word: control thread'),
    ("retired word in a block", "src/low/low.c", "\n/*\n * of\n * the course\n */\n", 'low.c:2: "course" is a retired word'),
    ("retired word after a text", "src/low/low.c", 'char q = \'"\'; // steward\n', '"steward" is a retired word'),
    ("no subject", "src/low/low.c", "/* Wakes the caller, who\n   sleeps. */\n", 'low.c:1: "who" names no subject'),
    ("no subject, capital", "src/low/low.h", GUARDED.format("L", "/* Nobody waits. */"), '"Nobody" names no subject'),
    ("no subject in a sentence of the program", "src/low/low.c", 'char *t = "anybody joins";\n', '"anybody" in a sentence'),
    ("begins a comment", "src/low/low.c", "int x; /* what is left */\n", 'a sentence begins with "what"'),
    ("begins a sentence", "src/low/low.c", "/*\n * The rest.\n * Those\n */\n", 'a sentence begins with "Those"'),
    ("begins a header", "src/low/low.c", "/*\n * low.c - what it is.\n */\n", 'a sentence begins with "what"'),
    ("columns", "src/low/low.c", "\tint x;" + "y" * 111 + "\n", "longer than 120 columns"),
    ("words of a document", "docs/done.md", "# A\n\nThe steward.\n", 'done.md:3: "steward" is a retired word'),
    ("folder that is gone", "scripts/words.txt", WORDS + "src/gone\n", "src/gone does not exist"),
    ("not built", "src/low/lost_test.c", "int x;\n", "no meson.build names it"),
]


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run_tidy(tidy, changes):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, {**GOOD, **changes})
        build = root / "build"
        sources = [name for name in {**GOOD, **changes} if name.endswith(".c") and "lost" not in name]
        commands = [{"directory": str(root), "file": name} for name in sources]
        targets = [{"filename": [str(build / "src" / "low_test")]}]
        write(root, {"build/compile_commands.json": json.dumps(commands), "build/meson-info/intro-targets.json": json.dumps(targets)})
        run = subprocess.run([sys.executable, tidy, "--root", root, "--build", build], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr


def main():
    tidy = sys.argv[1]
    failures = 0
    status, output = run_tidy(tidy, {})
    if status != 0:
        print(f"the sound tree was refused:\n{output}")
        failures += 1
    for name, path, text, expected in BROKEN:
        status, output = run_tidy(tidy, {path: text})
        if status != 1 or expected not in output:
            print(f"{name}: expected '{expected}', exit status 1; got exit status {status}:\n{output}")
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
