"""How the runs of a section are distributed, as a picture: what share of them took at most so long, for each contestant."""
import math
from html import escape

COLOURS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7", "#555555", "#e69f00")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 60, 40, 20, 60


def steps(samples, x, y):
    """The path of an empirical distribution: up by the same share at each sample."""
    ordered = sorted(samples)
    points = [f"M{x(ordered[0]):.1f} {y(0):.1f}"]
    for number, sample in enumerate(ordered, 1):
        points.append(f"H{x(sample):.1f}V{y(number / len(ordered)):.1f}")
    return "".join(points)


def round_step(most):
    """1, 2 or 5 and zeros, so that at most ten of them are as much."""
    step = 10 ** math.floor(math.log10(most / 10))
    return next(step * factor for factor in (1, 2, 5, 10) if most / (step * factor) <= 10)


def distribution_svg(title, lines):
    """lines: {name: microseconds}"""
    most = max(max(samples) for samples in lines.values()) * 1.02
    step = round_step(most)

    def x(microseconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * microseconds / most

    def y(share):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>']
    for share in (0, 0.25, 0.5, 0.75, 0.95, 1):
        out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}" stroke="#dddddd"/>',
                f'<text x="{LEFT - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{share * 100:.0f} %</text>']
    for tick in range(int(most / step) + 1):
        out.append(f'<text x="{x(tick * step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick * step / 1000:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 40}" text-anchor="middle">milliseconds</text>')
    left, top = WIDTH - RIGHT - 300, HEIGHT - BOTTOM - 18 * len(lines) - 8  # where all lines are above
    for number, (name, samples) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        out += [f'<path d="{steps(samples, x, y)}" fill="none" stroke="{colour}" stroke-width="2"/>',
                f'<rect x="{left}" y="{top + 6 + 18 * number}" width="12" height="3" fill="{colour}"/>',
                f'<text x="{left + 18}" y="{top + 12 + 18 * number}">{escape(name)}</text>']
    return "\n".join([*out, "</svg>"]) + "\n"
