"""Pictures of a run: times over shapes as curves, memory as bars, what planning saves as stacked bars."""

import math
import re

from comparison.engines import TITLES

from .svg import Svg

MIB = 1 << 20
# Middle tones, which stand out from white and from black.
COLOURS = {
    "selkie": "#e4572e", "ort": "#3b82c4", "openvino": "#8d6cc9", "mnn": "#2f9e6e", "torch": "#b98a1d", "compile": "#c2559b",
    "tract": "#5b9aa0", "iree": "#8a8f3c", "tvm": "#7d8590",
}  # fmt: skip
STAGES = [  # key, label, colour of what a stage saves; the last is what is left
    ("none", "fusion saves", "#9aa0a8"), ("fusion", "reuse saves", "#5b9aa0"), ("reuse", "order saves", "#3b82c4"),
    ("order", "offsets save", "#8d6cc9"), ("offsets", "arena", "#e4572e"),
]  # fmt: skip
PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 300, 190, 3


def legend(svg, x, y, entries):
    for label, colour in entries:
        svg.box(x, y - 8, 10, 10, colour)
        svg.text(x + 14, y + 1, label)
        x += 26 + 6.6 * len(label)


def places(cases):
    """Where cases stand on the axis, from 0 to 1, and short labels: by their number if that is all they differ in."""
    found = [re.fullmatch(r"(\D*?)(\d+)", case) for case in cases]
    if all(found) and len({match[1] for match in found}) == 1:
        logs = [math.log(max(1, int(match[2]))) for match in found]
        span = (logs[-1] - logs[0]) or 1.0
        if logs == sorted(logs):
            return [(x - logs[0]) / span for x in logs], [match[2] for match in found], found[0][1].strip(" =")
    return [i / max(1, len(cases) - 1) for i in range(len(cases))], [case.split(", ")[-1] for case in cases], ""


def decades(low, high):
    """Round figures for an axis of logarithms: at most five."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks[:: max(1, math.ceil(len(ticks) / 5))]


def panel(svg, run, subject, left, top):
    cases = subject["cases"]
    lines = {
        e: [(i, record["p50_ms"]) for i, case in enumerate(cases) if (record := run.right(subject, e, case))] for e in run.engines
    }
    lines = {engine: points for engine, points in lines.items() if points}
    times = [ms for points in lines.values() for _, ms in points]
    low, high = min(times) / 1.2, max(times) * 1.2
    x0, y0, width, height = left + 44, top + 24, PANEL_WIDTH - 60, PANEL_HEIGHT - 62

    def y_of(ms):
        return y0 + height * (1 - math.log(ms / low) / math.log(high / low))

    svg.text(left + 8, top + 14, subject["title"], kind="title")
    for tick in decades(low, high):
        svg.line(x0, y_of(tick), x0 + width, y_of(tick), "grid")
        svg.text(x0 - 4, y_of(tick) + 3, f"{tick:g}", "end", "small")
    positions, labels, axis = places(cases)
    for position, label in zip(positions, labels):
        svg.text(x0 + position * width, y0 + height + 12, label[:14], "middle", "small")
    svg.line(x0, y0 + height, x0 + width, y0 + height, "axis")
    caption = f"{axis} (ms, both axes logarithmic)" if axis else "ms, logarithmic"
    svg.text(x0 + width / 2, y0 + height + 25, caption, "middle", "small")
    for engine, points in reversed(lines.items()):
        shown = [(x0 + positions[i] * width, y_of(ms)) for i, ms in points]
        svg.curve(shown, COLOURS[engine], 2.2 if engine == "selkie" else 1.3, TITLES[engine])


def curves(run):
    """A picture for each group, with a panel for each model of at least three cases."""
    found = {}
    for group in run.data["groups"]:
        timed = [s for s in run.ran(group) if any(run.right(s, e, c) for e in run.engines for c in s["cases"])]
        chosen = [s for s in timed if len(s["cases"]) > 2]
        if chosen:
            columns = min(COLUMNS, len(chosen))
            rows = -(-len(chosen) // columns)
            svg = Svg(max(columns, 2) * PANEL_WIDTH, rows * PANEL_HEIGHT + 30)
            legend(svg, 10, 18, [(TITLES[e], COLOURS[e]) for e in run.engines])
            for i, subject in enumerate(chosen):
                panel(svg, run, subject, (i % columns) * PANEL_WIDTH, 28 + (i // columns) * PANEL_HEIGHT)
            found[f"latency_{group}"] = str(svg)
    return found


def peaks(run, subject):
    """(engine, bytes) of those that ran the model."""
    found = [(e, (run.result(subject, e) or {}).get("peak_bytes")) for e in run.engines]
    return [(engine, value) for engine, value in found if value]


def memory(run):
    """Peak memory above the empty process, a group of bars for each model."""
    chosen = [(s["title"], peaks(run, s)) for s in run.ran() if s["group"] != "matmul"]
    chosen = [(title, found) for title, found in chosen if found]
    if not chosen:
        return {}
    bar, gap, left, width = 6, 7, 190, 620
    svg = Svg(900, 58 + sum(bar * len(found) + gap for _, found in chosen))
    legend(svg, 10, 18, [(TITLES[e], COLOURS[e]) for e in run.engines])
    low, most = MIB, max(value for _, found in chosen for _, value in found)

    def x_of(value):
        return left + width * math.log(max(value, low) / low) / math.log(max(most / low, 2))

    for tick in decades(1, most / MIB):
        svg.line(x_of(tick * MIB), 28, x_of(tick * MIB), svg.height - 26, "grid")
        svg.text(x_of(tick * MIB), svg.height - 15, f"{tick:g}", "middle", "small")
    svg.text(left + width / 2, svg.height - 3, "MiB above the empty process, logarithmic", "middle", "small")
    top = 32
    for title, found in chosen:
        svg.text(left - 6, top + bar * len(found) / 2 + 3, title[:32], "end", "small")
        for k, (engine, value) in enumerate(found):
            hint = f"{TITLES[engine]}: {value / MIB:.1f} MiB"
            svg.box(left, top + k * bar, x_of(value) - left, bar - 1, COLOURS[engine], hint)
        top += bar * len(found) + gap
    return {"memory": str(svg)}


def planning(run):
    """One bar for each model: no planning is the whole of it, parts are what each stage takes away, the last is what is left."""
    chosen = [s for s in run.ran() if (s.get("plan") or {}).get("none")]
    if not chosen:
        return {}
    left, width, row, most = 190, 620, 16, 1.06
    svg = Svg(900, 50 + row * len(chosen))
    legend(svg, 10, 18, [(label, colour) for _, label, colour in STAGES])
    for i, subject in enumerate(chosen):
        plan, top, done = subject["plan"], 30 + i * row, 0.0
        svg.text(left - 6, top + 9, subject["title"][:32], "end", "small")
        values = [plan[key] / plan["none"] for key, _, _ in STAGES]
        parts = [*(max(0, a - b) for a, b in zip(values, values[1:])), values[-1]]
        for (_, label, colour), part in reversed(list(zip(STAGES, parts))):
            shown = min(part, max(0.0, most - done))
            svg.box(left + done * width, top, shown * width, row - 4, colour, f"{label}: {100 * part:.1f} %")
            done += shown
        if sum(parts) > most:  # a pass stores more than the model's nodes make
            svg.text(left + most * width + 4, top + 9, f"{100 * sum(parts):.0f} %", kind="small")
    for share in (0, 0.25, 0.5, 0.75, 1):
        svg.text(left + share * width, svg.height - 5, f"{100 * share:.0f} %", "middle", "small")
    return {"planning": str(svg)}
