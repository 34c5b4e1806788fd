"""What the samples of scripts/bench-peers amount to, as text, Markdown and JSON.

Rows are pairs of (transport, ranks, bytes, place) and {name of a contestant: a list of samples per round}.
"""
import dataclasses

from contestants import KIB, MIB, OURS

PLACES = {"in": "in place", "out": "out of place"}


# ---- numbers ----


def quantiles(rounds, *shares):
    """Of all samples, where each round weighs the same, however many it has. Between two samples: their mean."""
    weighted = sorted((sample, 1 / len(samples) / len(rounds)) for samples in rounds for sample in samples)

    def quantile(share):
        below = 0.0
        for i, (sample, weight) in enumerate(weighted):
            below += weight
            if below > share + 1e-9:
                return sample
            if below > share - 1e-9:
                return (sample + weighted[i + 1][0]) / 2
        return weighted[-1][0]

    return [quantile(share) for share in shares]


@dataclasses.dataclass(frozen=True)
class Score:
    contestant: str
    median: float
    low: float
    high: float

    @property
    def peer(self):
        return self.contestant.split("/")[0]

    @property
    def variant(self):
        return self.contestant.split("/")[1]


def scores_of(row):
    """The scores of one size, best first."""
    found = []
    for contestant, rounds in row.items():
        low, median, high = quantiles(rounds, 0.1, 0.5, 0.9)
        found.append(Score(contestant, median, low, high))
    return sorted(found, key=lambda score: score.median)


def best(scores, peer):
    return next((score for score in scores if score.peer == peer), None)


def best_rival(scores):
    return next((score for score in scores if not score.peer.startswith(OURS)), None)


# ---- showing ----


def size_text(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number_text(number):
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def time_text(score):
    unit, name = (1, "µs") if score.median < 1000 else (1000, "ms") if score.median < 1e6 else (1e6, "s")
    return (f"{number_text(score.median / unit)} {name} "
            f"({number_text(score.low / unit)}..{number_text(score.high / unit)})")


def summary(rows, names):
    """Head and lines of the table of medians: the best variant of each, and how the best peer compares with ours."""
    ours = [name for name in names if name.startswith(OURS)]
    head = ["transport", "ranks", "size", "place", *names, *(f"best peer / {name}" for name in ours)]
    lines = []
    for (transport, ranks, size, place), row in rows:
        scores = scores_of(row)
        rival = best_rival(scores)
        found = {name: best(scores, name) for name in names}
        times = [f"{time_text(score)} {score.variant}" if score else "-" for score in found.values()]
        ratios = [f"{rival.median / found[name].median:.2f}" if rival and found[name] else "-" for name in ours]
        lines.append([transport, str(ranks), size_text(size), PLACES[place], *times, *ratios])
    return head, lines


def details(rows):
    head = ["transport", "ranks", "size", "place", "contestant", "median (p10..p90)", "samples", "rounds"]
    lines = []
    for (transport, ranks, size, place), row in rows:
        for score in scores_of(row):
            rounds = row[score.contestant]
            lines.append([transport, str(ranks), size_text(size), PLACES[place], score.contestant, time_text(score),
                          str(sum(map(len, rounds))), str(len(rounds))])
    return head, lines


def as_text(head, lines):
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
                     for line in [head, *lines])


def as_markdown(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def markdown(machine, rows, names, troubles):
    parts = ["# Allreduce of float32 beside its peers", ""]
    parts += [f"- {what}: {value}" for what, value in machine.items()]
    parts += ["", "Times are medians per call with p10..p90; of each peer the variant with the best median is shown. "
              "The ratio is the best peer's median over ours: above 1, we are faster.", "",
              as_markdown(*summary(rows, names)), "", "## Every contestant, best first", "",
              as_markdown(*details(rows))]
    if troubles:
        parts += ["", "## What did not work", "", *(f"- {trouble.splitlines()[0]}" for trouble in troubles)]
    return "\n".join(parts) + "\n"


def as_json(machine, rows, troubles):
    results = []
    for (transport, ranks, size, place), row in rows:
        scores = scores_of(row)
        rival = best_rival(scores)
        results.append({
            "transport": transport, "ranks": ranks, "bytes": size, "place": place,
            "ratio": {s.contestant: rival.median / s.median for s in scores if rival and s.peer.startswith(OURS)},
            "scores": [{"peer": s.peer, "variant": s.variant, "median_us": s.median, "p10_us": s.low, "p90_us": s.high,
                        "rounds_us": row[s.contestant]} for s in scores],
        })
    return {"machine": machine, "results": results, "troubles": troubles}
