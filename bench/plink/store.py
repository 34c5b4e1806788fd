"""The file in which scripts/bench-plink keeps what it has measured: one JSON document, whole at any moment.

    format    "bench-plink 1"
    starts    of the script: when, where, with which words
    labs      that were made: their section and network, and what their links really carry
    probes    what espalier probe found beforehand, and how near to the truth that is
    measured  jobs that are done: a Job, the number of its lab, and samples_us and plan for each size
    failed    jobs that are not, and why; one that succeeds later is taken out

Each change is written to another file that then gets the name, so that a script which is killed loses only what it was at.
"""
import json
import pathlib

from sections import Job, Network

FORMAT = "bench-plink 1"
LISTS = ("starts", "labs", "probes", "measured", "failed")


class Unusable(Exception):
    """What is wrong with a file, in words."""


def as_lines(document):
    """JSON with a line for each row of each list."""
    parts = []
    for name, value in document.items():
        rows = ",\n".join("  " + json.dumps(row) for row in value) if isinstance(value, list) else ""
        parts.append(f" {json.dumps(name)}: " + (f"[\n{rows}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


class Store:
    def __init__(self, path, document):
        self.path = pathlib.Path(path) if path else None  # None: in memory alone
        self.document = document
        self.done = {Job.from_dict(row) for row in document["measured"]}

    # ---- files ----

    @staticmethod
    def create(path):
        """A file that is there already is not written over."""
        if path and pathlib.Path(path).exists():
            raise Unusable(f"{path} exists: add --resume to go on with it, or name another file")
        store = Store(path, {"format": FORMAT, **{name: [] for name in LISTS}})
        store.write()
        return store

    @staticmethod
    def load(path):
        try:
            document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}") from None
        except ValueError as error:
            raise Unusable(f"{path} is no JSON: {error}") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise Unusable(f"{path} is not what bench-plink --out writes (format \"{FORMAT}\")")
        try:
            store = Store(path, document)
            store.check()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Unusable(f"{path} is damaged: {type(error).__name__}: {error}") from None
        return store

    def check(self):
        """What the report relies on."""
        for name in LISTS:
            if not isinstance(self.document[name], list):
                raise ValueError(f"{name} is not a list")
        for lab in self.document["labs"]:
            Network(**lab["network"])
        for row in self.document["measured"]:
            self.document["labs"][row["lab"]]
            for result in row["results"]:
                if not result["bytes"] > 0 or not result["samples_us"] or not min(result["samples_us"]) > 0:
                    raise ValueError(f"samples of {Job.from_dict(row).text()} are not positive numbers")

    def write(self):
        if not self.path:
            return
        unfinished = self.path.with_name(self.path.name + ".new")
        unfinished.write_text(as_lines(self.document), encoding="utf-8")
        unfinished.replace(self.path)

    # ---- what is kept ----

    def add_start(self, facts):
        self.document["starts"].append(facts)
        self.write()

    def add_lab(self, section, network, checks):
        """Its number."""
        self.document["labs"].append({"section": section, "network": vars(network), "checks": checks})
        self.write()
        return len(self.document["labs"]) - 1

    def add_probe(self, lab, facts):
        self.document["probes"].append({"lab": lab, **facts})
        self.write()

    def add_measured(self, job, lab, wall_s, results):
        """results: [{"bytes", "samples_us", "plan"}]"""
        self.forget_failure(job)
        self.document["measured"].append({**job.as_dict(), "lab": lab, "wall_s": round(wall_s, 2), "results": results})
        self.done.add(job)
        self.write()

    def add_failed(self, job, reason):
        self.forget_failure(job)
        self.document["failed"].append({**job.as_dict(), "reason": reason})
        self.write()

    def forget_failure(self, job):
        self.document["failed"] = [row for row in self.document["failed"] if Job.from_dict(row) != job]

    def is_done(self, job):
        return job in self.done
