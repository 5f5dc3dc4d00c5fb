"""Whether Selkie's answers are onnxruntime's, at random shapes of every model of the zoo and every model of full size."""

import subprocess

import numpy as np
import zoo

from .draws import Draws
from .engines import ROOT, SELKIE, Engine, Failed
from .report import progress

SHAPES = 20
MOST_ERROR, MOST_ERROR_OF_WINOGRAD = 1e-4, 1e-3
MOST_REFUSED = 40  # draws that onnxruntime does not run, after which there is nothing to compare


def may_use_winograd(path):
    done = subprocess.run([SELKIE, "disasm", str(path)], capture_output=True, text=True)
    return " or winograd" in done.stdout


def by_index(values, expected):
    """(indices, boxes, scores) with a row for each box that was picked, best first, in an order that can be compared.

    Rounding decides the order of scores that are nearly equal, and which of two such boxes hides the other: boxes are
    matched by their indices, scores are compared in their order."""
    if [v.shape for v in values] != [e.shape for e in expected]:
        return values, expected
    ours, theirs = ({tuple(row): i for i, row in enumerate(picked[0])} for picked in (values, expected))
    shared = [row for row in theirs if row in ours]
    if len(shared) < 0.9 * len(theirs):  # more than ties explain
        return values, expected
    mine, right = [ours[row] for row in shared], [theirs[row] for row in shared]
    return [values[1][mine], values[2][mine], values[2]], [expected[1][right], expected[2][right], expected[2]]


def by_box(values, expected):
    """(boxes, scores, features) likewise, without indices: each row is matched with the nearest one. Classes may pick the
    same box, with scores of their own."""
    if [v.shape for v in values] != [e.shape for e in expected] or not len(values[0]):
        return values, expected
    ours, theirs = (np.concatenate([v.reshape(len(v), -1) for v in rows], axis=1) for rows in (values, expected))
    order = np.abs(ours[:, None] - theirs[None]).sum(axis=-1).argmin(axis=0)
    if len(set(order)) < len(order):
        return values, expected
    return [*(value[order] for value in values), values[1]], [*expected, expected[1]]


ALIGNED = {"a5": by_index, "c8": by_box}


class Outcome:
    """Differences per output over all shapes. The scale of an output is its largest value at any of them: at a single one
    a probability may be nothing but a peer's rounding errors. `alone` is the largest difference relative to the scale at
    its own shape, which is shown beside."""

    def __init__(self):
        self.shapes, self.refused, self.alone, self.failures = 0, 0, 0.0, []
        self.differences, self.scales, self.at = {}, {}, {}

    def take(self, values, expected, sizes):
        self.shapes += 1
        if [v.shape for v in values] != [e.shape for e in expected]:
            self.failures.append(f"{sizes}: shapes {[v.shape for v in values]}, not {[e.shape for e in expected]}")
            return
        for i, (value, right) in enumerate(zip(values, expected)):
            if not right.size:
                continue
            difference = float(np.abs(value.astype(np.float64) - right).max())
            difference = difference if np.isfinite(difference) else float("inf")
            scale = float(np.abs(right).max())
            self.scales[i] = max(self.scales.get(i, 0.0), scale)
            self.alone = max(self.alone, difference / (scale or 1.0))
            if difference >= self.differences.get(i, 0.0):
                self.differences[i], self.at[i] = difference, sizes

    def worst(self):
        """The largest difference relative to its output's scale, and the sizes where it was."""
        found = [(d / (self.scales[i] or 1.0), i) for i, d in self.differences.items()]
        if not found:
            return None, {}
        error, output = max(found)
        return error, self.at[output]


def answers(engine, inputs):
    engine.set_inputs(inputs)
    engine.run()
    return engine.outputs()


def compare_model(id, path, count, settings):
    outcome, draws, engines = Outcome(), Draws(id, path), []
    aligned = ALIGNED.get(id, lambda values, expected: (values, expected))
    try:
        for name in ("ort", "selkie"):
            engines.append(Engine(name, path, 1, settings.limit))
            engines[-1].load()
        while outcome.shapes < count and len(outcome.failures) < count and outcome.refused < MOST_REFUSED:
            inputs, sizes = draws.draw()
            try:
                expected = answers(engines[0], inputs)
            except Failed:
                outcome.refused += 1
                continue
            try:
                outcome.take(*aligned(answers(engines[1], inputs), expected), sizes)
            except Failed as failure:
                outcome.failures.append(f"{sizes}: {failure}")
    except Failed as failure:
        outcome.failures.append(str(failure))
    finally:
        for engine in engines:
            engine.close()
    return outcome


def compare(report, full_models, paths, names, settings):
    """`names` restricts the small models, as it does those of full size."""
    report.say(
        f"The largest difference from onnxruntime at {SHAPES} random shapes, relative to the output's scale: its largest value at\n"
        "all of these shapes. Beside it the same relative to the scale at one shape alone.\n"
    )
    report.table([
        ("model", 32), ("shapes", 6), ("refused by ORT", 8), ("largest", 9), ("bar", 6), ("one shape", 9), ("at", 24), ("", 4),
    ])  # fmt: skip
    small = [m for m in zoo.models().values() if not names or any(m.id.startswith(name) for name in names)]
    cases = [(m.id, m.name, zoo.ensure, m) for m in small] + [(m.id, m.name, None, m) for m in full_models]
    for id, name, ensure, model in cases:
        progress(f"answers of {name}")
        path = ensure(model, ROOT / ".cache/bench/zoo") if ensure else paths[id]
        count = 3 if settings.quick else SHAPES
        outcome = compare_model(id, path, count, settings)
        bar = MOST_ERROR_OF_WINOGRAD if may_use_winograd(path) else MOST_ERROR
        error, at = outcome.worst()
        known = error if outcome.shapes == count and not outcome.failures else None
        passed = report.judge(f"{id} {name}, error against onnxruntime", known, bar, at_most=True)
        for failure in outcome.failures[:2]:
            report.note(f"{id} {name}: {failure}")
        shown = "–" if error is None else f"{error:.1e}"
        sizes = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in at.items())
        report.row([
            f"{id} {name}", str(outcome.shapes), str(outcome.refused), shown, f"{bar:g}", f"{outcome.alone:.1e}", sizes,
            "pass" if passed else "FAIL",
        ])  # fmt: skip
        report.keep("correct", {
            "model": id, "shapes": outcome.shapes, "refused": outcome.refused, "error": known, "bar": bar, "alone": outcome.alone,
            "failures": outcome.failures,
        })  # fmt: skip
    report.end_table()
