"""Times at repeated shapes: every engine runs in turn, in rounds, and its median over all of them counts."""

import math
from statistics import geometric_mean, median

from .cases import CASES, TOLERANCE
from .engines import ENGINES, TITLES, Engine, Failed, error_of, selkie_accepts
from .report import number, progress


def started(model, path, names, settings, threads):
    """The engines that load the model, and what the others said."""
    engines, refused = {}, {}
    for name in names:
        progress(f"{model.name}: loading {TITLES[name]}")
        engine = None
        try:
            engine = Engine(name, path, threads, settings.limit)
            engine.load()
            engines[name] = engine
        except Failed as error:
            refused[name] = str(error)
            if engine:
                engine.close()
    return engines, refused


class Cell:
    """One engine at one shape: seconds of its runs, how wrong it is, and why there are no runs."""

    def __init__(self, message=None):
        self.times, self.error, self.message = [], None, message
        self.first = None  # seconds of the first run at this shape
        self.guess = 0.0  # seconds of a run, from the warm-up

    @property
    def p50(self):
        return median(self.times) if self.times else None

    def record(self):
        known = self.error is not None and math.isfinite(self.error)
        return {
            "p50_ms": 1000 * self.p50 if self.times else None, "least_ms": 1000 * min(self.times) if self.times else None,
            "first_ms": None if self.first is None else 1000 * self.first, "runs": len(self.times),
            "error": self.error if known else None, "right": self.right, "message": self.message,
        }  # fmt: skip

    @property
    def right(self):
        return self.error is not None and self.error <= TOLERANCE


def warm_up(engines, cells, inputs):
    """A few runs of each engine, and how far its answer is from onnxruntime's, or that of the first peer there is."""
    expected = None
    by_trust = [name for name in ENGINES if name != "selkie"] + ["selkie"]
    for name in sorted(engines, key=by_trust.index):
        try:
            engine = engines[name]
            engine.set_inputs(inputs)
            first = cells[name].first = engine.run()[0]
            outputs = engine.outputs()
            expected = expected or outputs
            cells[name].error = error_of(outputs, expected)
            cells[name].guess = first if first > 1 else median(engine.run(3))
        except Failed as error:
            cells[name].message = str(error)


def measure(engines, refused, inputs, settings, budget):
    """A cell per engine. Each gets `budget` seconds, split over the rounds, but at least a run in the first."""
    cells = {name: Cell(refused.get(name)) for name in [*engines, *refused]}
    warm_up(engines, cells, inputs)
    order = [name for name in engines if not cells[name].message]
    for _ in range(settings.rounds):
        for name in list(order):
            cell = cells[name]
            if sum(cell.times) >= budget:
                continue
            count = max(1, min(2000, int(budget / settings.rounds / cell.guess)))
            try:
                cell.times += engines[name].run(count)
            except Failed as error:
                cell.message = str(error)
                order.remove(name)
        order = order[1:] + order[:1]
    for name in [name for name in engines if engines[name].process.poll() is not None]:
        refused[name] = cells[name].message
        del engines[name]
    return cells


def ratio(cells, peers, figure=lambda cell: cell.p50):
    """The fastest of these peers whose answer is right, over Selkie; None where there is no such figure."""
    own = cells.get("selkie")
    times = [figure(cells[p]) for p in peers if p in cells and cells[p].times and cells[p].right]
    return min(times) / figure(own) if times and own and own.times and own.right else None


def ratio_text(cells, peers):
    """The ratio of medians, and in parentheses that of the least times, which other work on the machine disturbs less."""
    if (middle := ratio(cells, peers)) is None:
        return "–"
    return f"{number(middle)} ({number(ratio(cells, peers, lambda cell: min(cell.times)))})"


def cell_text(cell):
    if cell is None:
        return "–"
    if cell.p50 is None:
        return "†"
    text = number(1000 * cell.p50)
    return text if cell.right or cell.error is None else f"({text})"


def error_text(cell):
    return "–" if cell is None or cell.error is None else f"{cell.error:.0e}"


def threads_text(threads):
    return f"{threads} thread" + ("s" if threads > 1 else "")


def shape_row(report, model, shape, cells, names, bars, threads):
    best = [p for p in ("ort", "openvino", "torch") if p in names]
    least = (bars.best, bars.mnn) if threads == 1 else (1.0, 1.0)
    found = ratio(cells, best), ratio(cells, ["mnn"])
    label = f"{model.name} {shape}, {threads_text(threads)}"
    verdicts = []
    if "selkie" in names and any(p in cells and cells[p].right for p in best):
        verdicts.append(report.judge(f"{label}, {'/'.join(TITLES[p] for p in best)} ÷ Selkie", found[0], least[0]))
    if "selkie" in names and "mnn" in cells and cells["mnn"].right and cells["mnn"].p50:
        verdicts.append(report.judge(f"{label}, MNN ÷ Selkie", found[1], least[1]))
    report.row([
        f"{model.name} {shape}", *(cell_text(cells.get(n)) for n in names), ratio_text(cells, best), ratio_text(cells, ["mnn"]),
        f"{least[0]:g} / {least[1]:g}", " ".join(error_text(cells.get(n)) for n in names if n != "ort"),
        "–" if not verdicts else "pass" if all(verdicts) else "FAIL",
    ])  # fmt: skip
    report.keep("steady", {
        "model": model.id, "shape": shape, "threads": threads, "ratio": found[0], "mnn_ratio": found[1], "bars": least,
        "engines": {name: cell.record() for name, cell in cells.items()},
    })  # fmt: skip
    return found[0]


def mean_row(report, model, ratios, bars, names, threads):
    if bars.mean is None or None in ratios:
        return
    bar = bars.mean if threads == 1 else 1.0
    mean = geometric_mean(ratios)
    passed = report.judge(f"{model.name}, {threads_text(threads)}, geometric mean", mean, bar)
    empty = [""] * len(names)
    report.row([f"{model.name} mean", *empty, number(mean), "", f"{bar:g}", "", "pass" if passed else "FAIL"])


def compare(report, models, paths, names, settings, threads):
    """A table of all these models."""
    widths = [(TITLES[n] + " ms", 9) for n in names]
    errors = "error of " + " ".join(TITLES[n] for n in names if n != "ort")
    best = "/".join(TITLES[n] for n in names if n in ("ort", "openvino", "torch"))
    report.table([
        ("model", 28), *widths, (f"{best} ÷ Selkie", 13), ("MNN ÷ Selkie", 13), ("bars", 10), (errors, 12), ("", 4),
    ])  # fmt: skip
    for model in models:
        engines, refused = started(model, paths[model.id], names, settings, threads)
        bars, ratios, shapes = CASES[model.id].bars, [], settings.shapes(model)
        for i, (shape, sizes) in enumerate(shapes.items()):
            progress(f"{model.name} {shape}, {i + 1} of {len(shapes)} shapes")
            cells = measure(engines, refused, model.inputs(*sizes), settings, settings.budget(model))
            ratios.append(shape_row(report, model, shape, cells, names, bars, threads))
            for name, cell in cells.items():
                if cell.message:
                    report.note(f"† {model.name} in {TITLES[name]}: {cell.message}")
        for engine in engines.values():
            engine.close()
        mean_row(report, model, ratios, bars, names, threads)
    if "selkie" in names and threads > 1 and not selkie_accepts("--threads"):
        report.note("Selkie has no option --threads: it ran with one.")
    report.end_table(
        f"Errors: against ORT, relative to the output's scale; over {TOLERANCE:g}, times are in parentheses and do not count.",
        "Ratios: of medians, which count, and in parentheses of the least times.",
    )
