"""Times on the paths of dynamic models: early exits, skipped blocks, trips of loops, trees, counts that only the run tells."""

from dataclasses import dataclass
from statistics import geometric_mean, median

from zoo import dynamic

from .engines import Engine, Failed
from .report import number, progress
from .steady import TITLES, cell_text, error_text, measure, ratio, ratio_text, started

# The nine programs with branches, which must also be faster than torch's eager mode.
PROGRAMS = [f"b{i}" for i in range(1, 10)]
LEAST_MEAN_OVER_EAGER = 2.5

EXITING = ["b1", "b2", "b3", "b4", "exit_mobilenet"]
LEAST_MEAN_OF_EXITS = 1.4

SKIPPING = ["b5", "b6", "b9"]
MOST_OFF_THE_LINE = 1.15
MOST_ABOVE_SHARE = 0.10

RECURRENT = ["c1_loop", "c1_scan"]
MOST_OVER_OPERATOR = 1.2


@dataclass(frozen=True)
class Least:
    """Least ratios: the faster of onnxruntime and openvino ÷ Selkie, by case where they differ, and MNN ÷ Selkie."""

    best: float
    mnn: float | None = None
    at: tuple = ()  # (beginning of a case's name, least)

    def of(self, case):
        return next((least for name, least in self.at if case.startswith(name)), self.best)


TREE = Least(2.5, at=(("127 nodes", 4.0),))
LEAST = {
    "d1_v5": Least(1.8, 1.1),
    "c1_loop": Least(1.4, 1.5), "c1_scan": Least(1.4, 1.5),
    "c2_scatter": TREE, "c2_sequence": TREE,
    **{id: Least(1.8, 1.3) for id in SKIPPING},
    **{id: Least(1.2, 1.2) for id in EXITING},
    "b7": Least(1.1), "b8": Least(1.1), "c5_greedy": Least(1.1),
    "c6": Least(3.0),
    "c8": Least(1.2), "c9": Least(1.2), "c10": Least(1.2),
}  # fmt: skip


@dataclass
class Row:
    """What one case of one model gave."""

    model: str
    case: str
    work: int
    cells: dict

    @property
    def time(self):
        own = self.cells.get("selkie")
        return own.p50 if own and own.times and own.right else None


def add_row(report, model, case, row, names):
    least, cells, verdicts = LEAST[model.id], row.cells, []
    label, found = f"{model.name}, {case}", ratio(cells, ["ort", "openvino"])
    if any(name in names for name in ("ort", "openvino")):
        verdicts.append(report.judge(f"{label}, ORT/OV ÷ Selkie", found, least.of(case)))
    if least.mnn and "mnn" in cells and cells["mnn"].right and cells["mnn"].times:
        verdicts.append(report.judge(f"{label}, MNN ÷ Selkie", ratio(cells, ["mnn"]), least.mnn))
    if model.id in PROGRAMS and "torch" in names:
        verdicts.append(report.judge(f"{label}, eager ÷ Selkie", ratio(cells, ["torch"]), 1.0))
    report.row([
        label, *(cell_text(cells.get(n)) for n in names), ratio_text(cells, ["ort", "openvino"]), ratio_text(cells, ["mnn"]),
        ratio_text(cells, ["torch"]), f"{least.of(case):g} / {number(least.mnn, 2)}",
        " ".join(error_text(cells.get(n)) for n in names if n != "ort"), "pass" if all(verdicts) else "FAIL",
    ])  # fmt: skip
    report.keep("flow", {
        "model": model.id, "case": case, "work": row.work, "ratio": found, "mnn_ratio": ratio(cells, ["mnn"]),
        "eager_ratio": ratio(cells, ["torch"]), "least": [least.of(case), least.mnn],
        "engines": {name: cell.record() for name, cell in cells.items()},
    })  # fmt: skip


def engines_for(model, path, names):
    """Eager torch takes part where there is a module to run, and a bar."""
    return [name for name in names if name != "torch" or (model.id in PROGRAMS and dynamic.module_file(path).exists())]


def measured(report, model, path, names, settings):
    engines, refused = started(model, path, engines_for(model, path, names), settings, 1)
    rows = []
    try:
        for case, given in dynamic.load_cases(path).items():
            progress(f"{model.name}, {case}")
            cells = measure(engines, refused, given.inputs, settings, settings.seconds)
            rows.append(Row(model.id, case, given.work, cells))
            add_row(report, model, case, rows[-1], names)
            for name, cell in cells.items():
                if cell.message:
                    report.note(f"† {model.name} in {TITLES[name]}: {cell.message}")
    finally:
        for engine in engines.values():
            engine.close()
    return rows


def means(report, rows):
    """Geometric means: of the early exits, and of the programs with branches over eager torch."""
    exits = [ratio(row.cells, ["ort", "openvino"]) for row in rows if row.model in EXITING]
    if exits and None not in exits:
        mean = geometric_mean(exits)
        report.judge("early exits, ORT/OV ÷ Selkie, geometric mean", mean, LEAST_MEAN_OF_EXITS)
        report.note(f"Early exits, geometric mean over {len(exits)} cases: {number(mean)}, bar {LEAST_MEAN_OF_EXITS:g}")
    eager = {id: [ratio(row.cells, ["torch"]) for row in rows if row.model == id] for id in PROGRAMS}
    eager = {id: ratios for id, ratios in eager.items() if ratios}
    if eager and all(None not in ratios for ratios in eager.values()):
        by_model = {id: geometric_mean(ratios) for id, ratios in eager.items()}
        mean = geometric_mean(by_model.values())
        report.judge(f"{' '.join(by_model)}: eager ÷ Selkie, geometric mean", mean, LEAST_MEAN_OVER_EAGER)
        shown = ", ".join(f"{id} {number(value)}" for id, value in by_model.items())
        report.note(f"Eager torch ÷ Selkie: {shown}; geometric mean {number(mean)}, bar {LEAST_MEAN_OVER_EAGER:g}")


def proportional(report, rows):
    """Time against the work on the path: half must lie near the line between few and all, few take little over its share."""
    if not any(row.model in SKIPPING for row in rows):
        return
    report.say("\nTime on a path, against all blocks\n")
    report.table([("model, path", 36), ("work", 7), ("time", 7), ("off the line", 12), ("", 4)])
    for id in SKIPPING:  # each has the cases few, half and all
        own = [row for row in rows if row.model == id]
        if len(own) != 3 or any(row.time is None for row in own):
            continue
        few, half, full = own
        slope = (full.time - few.time) / (full.work - few.work)
        line = half.time / (few.time + slope * (half.work - few.work))
        share, work = few.time / full.time, few.work / full.work
        verdicts = [
            report.judge(f"{id}, {few.case}, share of time less share of work", share - work, MOST_ABOVE_SHARE, True),
            report.judge(f"{id}, {half.case}, off the line of few and all", max(line, 1 / line), MOST_OFF_THE_LINE, True),
        ]
        for row, off, verdict in zip(own, ("", number(line), ""), ("pass" if v else "FAIL" for v in [*verdicts, True])):
            report.row([
                f"{id}, {row.case}", f"{100 * row.work / full.work:.0f} %", f"{100 * row.time / full.time:.0f} %", off, verdict,
            ])  # fmt: skip
    report.end_table(
        f"Work: multiplications on the path. Few: time's share at most work's and {100 * MOST_ABOVE_SHARE:.0f} points; "
        f"half: within {MOST_OFF_THE_LINE:g} of the line between few and all."
    )


def by_turns(engines, settings):
    """Median seconds of each engine's runs, in rotating order."""
    guess, times = [median(engine.run(3)) for engine in engines], [[] for _ in engines]
    for turn in range(settings.rounds):
        for k in range(len(engines)):
            i = (turn + k) % len(engines)
            times[i] += engines[i].run(max(1, min(2000, int(settings.seconds / settings.rounds / guess[i]))))
    return times


def against_operator(report, paths, settings):
    """The recurrences written as loops against the operator, in Selkie itself."""
    ids = ["c1_op", *(id for id in RECURRENT if id in paths)]
    if "c1_op" not in paths or len(ids) < 2:
        return
    report.say("\nRecurrences as loops, in Selkie\n")
    report.table([("LSTM", 12), ("operator ms", 11), *((f"{id} ÷ operator", 22) for id in ids[1:]), ("bar", 5), ("", 4)])
    engines = [Engine("selkie", paths[id], 1, settings.limit) for id in ids]
    try:
        for engine in engines:
            engine.load()
        for case, given in dynamic.load_cases(paths["c1_op"]).items():
            for engine in engines:
                engine.set_inputs(given.inputs)
                engine.run(3)
            own, *others = by_turns(engines, settings)
            ratios = [median(times) / median(own) for times in others]
            passed = [
                report.judge(f"{id} {case} ÷ LSTM operator, in Selkie", value, MOST_OVER_OPERATOR, True)
                for id, value in zip(ids[1:], ratios)
            ]
            least = [min(times) / min(own) for times in others]
            report.row([
                case, number(1000 * median(own)), *(f"{number(r)} ({number(m)})" for r, m in zip(ratios, least)),
                f"{MOST_OVER_OPERATOR:g}", "pass" if all(passed) else "FAIL",
            ])  # fmt: skip
    except Failed as failure:
        report.judge("LSTM as loops ÷ operator, in Selkie", None, MOST_OVER_OPERATOR, True)
        report.note(str(failure))
    finally:
        for engine in engines:
            engine.close()
    report.end_table()


def compare(report, models, paths, names, settings):
    widths = [(TITLES[n] + " ms", 9) for n in names]
    report.table([
        ("model, case", 44), *widths, ("ORT/OV ÷ Selkie", 15), ("MNN ÷ Selkie", 13), ("eager ÷ Selkie", 14), ("bars", 10),
        ("error of " + " ".join(TITLES[n] for n in names if n != "ort"), 12), ("", 4),
    ])  # fmt: skip
    rows = []
    for model in models:
        if model.id in LEAST:
            rows += measured(report, model, paths[model.id], names, settings)
    means(report, rows)
    report.end_table(
        "Ratios: of medians, which count, and in parentheses of the least times. In parentheses, too: times of wrong answers.",
        "†: has no time; the reason is below.",
    )
    if "selkie" in names:
        proportional(report, rows)
        against_operator(report, paths, settings)
