"""What scripts/bench-plink has measured, as Markdown: the aims beside what was reached, then a table for each section.

Pure: a document (store.py) goes in, text comes out. Times are milliseconds.
"""
import dataclasses

from sections import CONTEST, GROUPS, KIB, MIB, SECTIONS, Job, Network, bound_seconds, flat_over_bound

OURS = "espalier"
LATENCY_US = 100  # a bound below that says nothing: latency does


# ---- numbers ----


def quantile(values, share):
    """Between two samples, in proportion."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def mean(values):
    return sum(values) / len(values)


@dataclasses.dataclass(frozen=True)
class Spread:
    """A number that was measured, and where eight in ten of what it is made of lie."""
    value: float
    low: float
    high: float

    def text(self):
        return f"{ratio_text(self.value)} ({ratio_text(self.low)} .. {ratio_text(self.high)})"


def over(numerator, denominator):
    """How many times as long one takes as the other, by medians. The ends: fast ones of one over slow ones of the other."""
    return Spread(median(numerator) / median(denominator), quantile(numerator, 0.1) / quantile(denominator, 0.9),
                  quantile(numerator, 0.9) / quantile(denominator, 0.1))


@dataclasses.dataclass
class Cell:
    """All samples of a contestant for one placement and size."""
    samples: list = dataclasses.field(default_factory=list)
    bounds: list = dataclasses.field(default_factory=list)  # of each sample, by the rates of its lab
    groupings: dict = dataclasses.field(default_factory=dict)  # seed: samples
    plans: dict = dataclasses.field(default_factory=dict)  # chosen: in how many jobs

    def of_bound(self):
        shares = [sample / bound for sample, bound in zip(self.samples, self.bounds)]
        return Spread(median(shares), quantile(shares, 0.1), quantile(shares, 0.9))


@dataclasses.dataclass
class Table:
    """What was measured of a section on a network."""
    section: str
    network: Network
    cells: dict = dataclasses.field(default_factory=dict)  # (place, bytes): {contestant: Cell}
    labs: set = dataclasses.field(default_factory=set)


def label_of(job):
    if not job.topology or job.topology == "probe":
        return job.contestant
    return f"{job.contestant}, told" if job.topology == "true" else f"{job.contestant}, given a file"


def rates_of(lab):
    return {row["link"]: row["bits_per_second"] for row in lab["checks"]}


def tables_of(document):
    """In the order of the sections, and of what was measured first."""
    found = {}
    for row in document["measured"]:
        job = Job.from_dict(row)
        table = found.setdefault((job.section, job.network), Table(job.section, job.network))
        table.labs.add(row["lab"])
        rates = rates_of(document["labs"][row["lab"]])
        for result in row["results"]:
            place = "random" if job.place.startswith("random:") else job.place
            cell = table.cells.setdefault((place, result["bytes"]), {}).setdefault(label_of(job), Cell())
            bound = bound_seconds(job.network, result["bytes"], rates.get("host"), rates.get("uplink")) * 1e6
            cell.samples += result["samples_us"]
            cell.bounds += [bound] * len(result["samples_us"])
            if job.grouping >= 0:
                cell.groupings.setdefault(job.grouping, []).extend(result["samples_us"])
            if "plan" in result:
                cell.plans[result["plan"]] = cell.plans.get(result["plan"], 0) + 1
    order = [section.name for section in SECTIONS]
    return sorted(found.values(), key=lambda table: order.index(table.section) if table.section in order else len(order))


def peers_of(cells, prefix=("gloo", "openmpi")):
    return {name: cell for name, cell in cells.items() if name.startswith(prefix)}


def fastest(cells):
    return min(cells.items(), key=lambda item: median(item[1].samples))


# ---- aims ----


@dataclasses.dataclass(frozen=True)
class Aim:
    what: str
    sign: str  # ">=", "<=", ">"; "": there is none
    aim: float
    reached: Spread
    note: str = ""

    def verdict(self):
        if not self.sign:
            return ""
        least = self.reached.value if self.sign != "<=" else -self.reached.value
        aim = self.aim if self.sign != "<=" else -self.aim
        best = self.reached.high if self.sign != "<=" else -self.reached.low
        if least > aim or (least == aim and self.sign != ">"):
            return "yes"
        return "within the spread" if best >= aim else "**missed**"

    def row(self):
        words = {">=": "at least", "<=": "at most", ">": "more than", "": "none"}[self.sign]
        aim = f"{words} {ratio_text(self.aim)}" if self.sign else words
        return [self.what, aim, self.reached.text(), ", ".join(filter(None, (self.verdict(), self.note)))]


def where_text(table, place, size):
    return f"{table.section}, {size_text(size)}, {place}"


def faster_than(peer, aim, places=("interleaved", "random")):
    def aims(table, _):
        for (place, size), cells in ordered_cells(table):
            if place in places and peer in cells and OURS in cells:
                yield Aim(f"{where_text(table, place, size)}: {peer} / {OURS}", ">=", aim, over(cells[peer].samples, cells[OURS].samples))
    return aims


def as_fast_as_best_peer(place):
    def aims(table, _):
        for (where, size), cells in ordered_cells(table):
            if where == place and peers_of(cells) and OURS in cells:
                name, best = fastest(peers_of(cells))
                yield Aim(f"{where_text(table, place, size)}: best peer ({name}) / {OURS}", ">=", 1.0, over(best.samples, cells[OURS].samples))
    return aims


def near_bound(aim):
    def aims(table, _):
        for (place, size), cells in ordered_cells(table):
            if OURS in cells:
                yield Aim(f"{where_text(table, place, size)}: {OURS} / bound", "<=", aim, cells[OURS].of_bound())
    return aims


def two_level_over_flat(aim):
    """By medians."""
    def aims(table, _):
        for (place, size), cells in ordered_cells(table):
            if "two-level" in cells and "flat" in cells:
                yield Aim(f"{where_text(table, place, size)}: flat / two-level", ">=", aim,
                          over(cells["flat"].samples, cells["two-level"].samples),
                          f"by the bounds of both {ratio_text(flat_over_bound(table.network))}")
    return aims


def two_level_over_random(aim):
    """The mean of the means of random groupings, over the mean with probed groups. The ends: the best and the worst grouping."""
    def aims(table, _):
        for (place, size), cells in ordered_cells(table):
            if "two-level" in cells and "two-level random" in cells:
                means = [mean(samples) for samples in cells["two-level random"].groupings.values()]
                ours = mean(cells["two-level"].samples)
                yield Aim(f"{where_text(table, place, size)}: mean of {len(means)} random groupings / two-level", ">=", aim,
                          Spread(mean(means) / ours, min(means) / ours, max(means) / ours), "the ends: best and worst grouping")
    return aims


def every_gloo(table, _):
    """Than every algorithm of Gloo: than the best."""
    for (place, size), cells in ordered_cells(table):
        gloo = peers_of(cells, ("gloo",))
        if gloo and OURS in cells:
            name, best = fastest(gloo)
            yield Aim(f"{where_text(table, place, size)}: best of Gloo ({name}) / {OURS}", ">", 1.0, over(best.samples, cells[OURS].samples))


def wider_gap_than(section):
    """Than where uplinks are less scarce: by its largest size."""
    def aims(table, tables):
        for peer in ("gloo ring", "gloo halving-doubling"):
            for (place, size), cells in ordered_cells(table):
                if place != "interleaved" or peer not in cells or OURS not in cells:
                    continue
                others = [other for other in tables if other.section == section and OURS in largest_cells(other, place)
                          and peer in largest_cells(other, place)]
                reached = over(cells[peer].samples, cells[OURS].samples)
                what = f"{where_text(table, place, size)}: {peer} / {OURS}"
                if not others:
                    yield Aim(what, "", 0, reached, f"to be more than in {section}, which is not measured")
                    continue
                before = largest_cells(others[0], place)
                yield Aim(what, ">", over(before[peer].samples, before[OURS].samples).value, reached, f"the aim is what {section} reached")
    return aims


def flat_over_peers(table, _):
    for (place, size), cells in ordered_cells(table):
        if "flat" in cells:
            for name, cell in peers_of(cells).items():
                yield Aim(f"{where_text(table, place, size)}: {name} / flat", "", 0, over(cell.samples, cells["flat"].samples))


def beside_peers(flat):
    return (faster_than("gloo ring", 3.3), faster_than("gloo halving-doubling", 2.3), as_fast_as_best_peer("contiguous"),
            near_bound(1.25), two_level_over_flat(flat))


AIMS = {
    "2x4": beside_peers(2.0),
    "4x4": beside_peers(2.8),
    "2x4-8": (wider_gap_than("2x4"),),
    "4x4-8": (wider_gap_than("4x4"),),
    "2x4-small": (every_gloo,),
    "4x4-small": (every_gloo,),
    "groups-2x4": (two_level_over_flat(2.0), two_level_over_random(1.8)),
    "groups-4x4": (two_level_over_flat(2.8), two_level_over_random(1.8)),
    "uniform": (flat_over_peers,),
}


def aims_of(tables):
    return [aim for table in tables for aims in AIMS.get(table.section, ()) for aim in aims(table, tables)]


# ---- text ----

AIMS_HEAD = ["what", "aim", "reached", ""]


def size_text(size):
    for unit, name in ((MIB, "MiB"), (1_000_000, "MB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def ratio_text(ratio):
    """Near 1 a thousandth may decide."""
    if 0.99 < ratio < 1.01 and ratio != 1:
        return f"{ratio:.3f}"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def ms(microseconds):
    return f"{microseconds / 1000:.3g}" if microseconds < 1e6 else f"{microseconds / 1000:.0f}"


def as_table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def ordered_cells(table):
    """Contiguous first, large first."""
    return sorted(table.cells.items(), key=lambda item: (item[0][0], -item[0][1]))


def largest_cells(table, place):
    sizes = [size for where, size in table.cells if where == place]
    return table.cells[place, max(sizes)] if sizes else {}


def name_text(name, cell):
    """With the plans that were chosen, where the choice was free; and in how many jobs, if they differ."""
    if name.split(",")[0] not in (OURS, "blind") or not cell.plans:
        return name
    return f"{name} ({', '.join(plan if len(cell.plans) == 1 else f'{plan} {jobs}' for plan, jobs in cell.plans.items())})"


def contest_text(table):
    first = "flat" if table.network.racks == 1 else OURS
    rows, below = [], False
    for (place, size), cells in ordered_cells(table):
        for name, cell in cells.items():
            share, bound = cell.of_bound().value, mean(cell.bounds)
            counts = bound >= LATENCY_US
            below |= counts and share < 0.99
            versus = over(cell.samples, cells[first].samples).text() if first in cells and name != first else ""
            rows.append([place, size_text(size), ms(bound) if counts else "", name_text(name, cell), str(len(cell.samples)),
                         f"{ms(median(cell.samples))} ({ms(min(cell.samples))} .. {ms(max(cell.samples))})", ms(mean(cell.samples)),
                         ratio_text(share) if counts else "", versus])
    head = ["placement", "buffer", "bound", "contestant", "samples", "median (least .. most)", "mean", "of the bound", f"over {first}"]
    note = "\n\nBelow the bound: what the links' buckets hold passes at once after a pause (docs/lab.md)." if below else ""
    return as_table(head, rows) + note


GROUPED = {"two-level": "two-level, probed groups", "two-level true": "two-level, true groups",
           "two-level random": "two-level, balanced random groups", "ring by groups": "ring in the order of the probed groups"}


def groups_text(table):
    rows = []
    for (_, size), cells in ordered_cells(table):
        flat = cells.get("flat")
        for name, cell in cells.items():
            numbers = [f(cell.samples) for f in (mean, median, p95)]
            faster = [ratio_text(f(flat.samples) / number) if flat else "" for f, number in zip((mean, median, p95), numbers)]
            groupings = f", {len(cell.groupings)} groupings" if cell.groupings else ""
            rows.append([size_text(size), GROUPED.get(name, name) + groupings, str(len(cell.samples)), *map(ms, numbers),
                         f"{ms(min(cell.samples))} .. {ms(max(cell.samples))}", ratio_text(cell.of_bound().value), *faster])
    head = ["buffer", "plan", "runs", "mean", "P50", "P95", "least .. most", "P50 of the bound", "flat / it: mean", "P50", "P95"]
    return as_table(head, rows)


def p95(values):
    return quantile(values, 0.95)


def checks_text(lab):
    return "; ".join(f"{row['link']} {row['bits_per_second'] / 1e6:.1f} of {row['asked_bits_per_second'] / 1e6:g} Mbit/s, "
                     f"rtt {row['rtt_seconds'] * 1e3:.3f} ms" for row in lab["checks"])


def probes_text(document, table):
    probes = [row for row in document["probes"] if row["lab"] in table.labs]
    if not probes:
        return ""
    right = sum(row["ami"] > 0.999 for row in probes)
    seconds = median([row["seconds"] for row in probes])
    return f" Probed beforehand, the racks were found in {right} of {len(probes)}, in {seconds:.1f} s (median)."


def table_text(document, table):
    section = next((section for section in SECTIONS if section.name == table.section), None)
    labs = [checks_text(document["labs"][number]) for number in sorted(table.labs)]
    what = f"{section.title[0].upper()}{section.title[1:]}: " if section else ""
    body = contest_text(table) if not section or section.kind == CONTEST else groups_text(table)
    return (f"### {table.section}\n\n{what}{table.network.text()}. Measured: {'; and '.join(labs)}.{probes_text(document, table)}"
            f"\n\n{body}")


def sections_text(document, tables):
    """Which are there, whole or not, and which are not."""
    there = {}
    for table in tables:
        rows = [row for row in document["measured"] if row["section"] == table.section]
        rounds = 1 + max(row["round"] for row in rows)
        there.setdefault(table.section, f"{table.section} ({rounds} round{'s' if rounds > 1 else ''})")
    missing = [section.name for section in SECTIONS if section.name not in there]
    text = f"Measured: {', '.join(there.values()) or 'nothing yet'}."
    return text + (f" Not measured yet: {', '.join(missing)}." if missing else "")


def failures_text(document):
    return [f"- {Job.from_dict(row).text()}: {row['reason'].splitlines()[0]}" for row in document["failed"]]


def about_text(document):
    starts = document["starts"]
    lines = [f"    {start['command']}" for start in starts]
    facts = {name: value for start in starts for name, value in start.items() if name not in ("command", "load before", "date")}
    loads = ", ".join(start["load before"] for start in starts)
    dates = ", ".join(dict.fromkeys(start["date"] for start in starts))
    told = "; ".join(f"{name} {value}" for name, value in facts.items())
    return "\n".join(dict.fromkeys(lines)) + f"\n\n{told}; load before {loads}; {dates}." if starts else ""


def aims_text(document):
    tables = tables_of(document)
    return sections_text(document, tables) + "\n\n" + as_table(AIMS_HEAD, [aim.row() for aim in aims_of(tables)]) + "\n"


def distributions(document):
    """(section, what the picture shows, {plan: samples}) of each that is about groups: its largest buffer."""
    kinds = {section.name: section.kind for section in SECTIONS}
    for table in tables_of(document):
        if kinds.get(table.section) == GROUPS and largest_cells(table, "random"):
            size = max(size for _, size in table.cells)
            lines = {GROUPED.get(name, name): cell.samples for name, cell in largest_cells(table, "random").items()}
            yield table.section, f"{size_text(size)}, {table.network.text()}: share of the runs that took at most so long", lines


def markdown(document):
    tables = tables_of(document)
    parts = [about_text(document), sections_text(document, tables)]
    if tables:
        parts.append("Milliseconds, in place, results checked. The bound is the larger of what the link of a host and what the uplink of a rack "
                     "must carry, in frames, over its measured rate. Behind a ratio: what eight in ten of the samples span, fast ones of "
                     "one over slow ones of the other.")
    aims = aims_of(tables)
    if aims:
        parts += ["### Aims", as_table(AIMS_HEAD, [aim.row() for aim in aims])]
    parts += [table_text(document, table) for table in tables]
    if document["failed"]:
        parts += ["### What did not work", "\n".join(failures_text(document))]
    return "\n\n".join(filter(None, parts)) + "\n"
