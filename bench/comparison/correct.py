"""Whether Selkie's answers are onnxruntime's, at random shapes of every model of the zoo and every model of full size."""

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zoo

from .cuts import Cut, nudged, quantises
from .draws import Draws
from .engines import ROOT, SELKIE, Engine, Failed
from .report import progress

SHAPES = 20
MOST_ERROR, MOST_ERROR_OF_WINOGRAD = 1e-4, 1e-3
MOST_OF_NUDGED = 2  # times what onnxruntime's answer moves by when its input moves a little, where a model has steps
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


class Whole:
    """A model as it is, on both sides. `Cut` is the other view."""

    def __init__(self, id, path):
        self.probed = self.parts = path
        self.aligned = ALIGNED.get(id, lambda values, expected: (values, expected))

    def inputs(self, given, _):
        return given


@dataclass(frozen=True)
class Subject:
    """What is held against onnxruntime."""

    engine: str = "selkie"
    options: tuple = ()
    change: Callable = lambda inputs: inputs


class Outcome:
    """Differences per output over all shapes. The scale of an output is its largest value at any of them: at a single one
    a probability may be nothing but a peer's rounding errors. `alone` is the largest difference relative to the scale at
    its own shape, which is shown beside."""

    def __init__(self):
        self.shapes, self.alone, self.failures = 0, 0.0, []
        self.differences, self.scales = {}, {}

    def take(self, values, expected, sizes):
        self.shapes += 1
        kinds, right = ([f"{v.dtype} {v.shape}" for v in side] for side in (values, expected))
        if kinds != right:
            differing = [f"{found}, not {wanted}" for found, wanted in zip(kinds, right) if found != wanted]
            self.failures.append(f"{sizes}: {differing[0] if differing else f'{len(kinds)} outputs, not {len(right)}'}")
            return
        for i, (value, right) in enumerate(zip(values, expected)):
            if not right.size:
                continue
            difference = float(np.abs(value.astype(np.float64) - right).max())
            difference = difference if np.isfinite(difference) else float("inf")
            scale = float(np.abs(right).max())
            self.scales[i] = max(self.scales.get(i, 0.0), scale)
            self.alone = max(self.alone, difference / (scale or 1.0))
            self.differences.setdefault(i, []).append((difference, sizes))

    def worst(self, at_most_shapes=()):
        """The largest difference relative to its output's scale, and the sizes where it was; of the outputs `at_most_shapes`
        their median counts."""
        found = []
        for i, differences in self.differences.items():
            ordered = sorted(differences, key=lambda pair: pair[0])
            difference, sizes = ordered[len(ordered) // 2 if i in at_most_shapes else -1]
            found.append((difference / (self.scales[i] or 1.0), sizes))
        return max(found, key=lambda pair: pair[0], default=(None, {}))


def answers(engine, inputs):
    engine.set_inputs(inputs)
    engine.run()
    return engine.outputs()


def take_answer(outcome, view, engine, inputs, expected, sizes):
    try:
        outcome.take(*view.aligned(answers(engine, view.inputs(inputs, expected)), expected), sizes)
    except Failed as failure:
        outcome.failures.append(f"{sizes}: {failure}")


def compare_model(id, path, view, subjects, count, settings):
    """The outcome of each subject, and how many draws onnxruntime refused."""
    outcomes, draws, engines, refused = [Outcome() for _ in subjects], Draws(id, path), [], 0
    try:
        for subject, model in [(Subject("ort"), view.probed), *((s, view.parts) for s in subjects)]:
            engines.append(Engine(subject.engine, model, 1, settings.limit, subject.options))
            engines[-1].load()
        for _ in range(count + MOST_REFUSED):
            if all(outcome.shapes + len(outcome.failures) >= count for outcome in outcomes):
                break
            inputs, sizes = draws.draw()
            try:
                expected = answers(engines[0], inputs)
            except Failed:
                refused += 1
                continue
            for outcome, subject, engine in zip(outcomes, subjects, engines[1:]):
                take_answer(outcome, view, engine, subject.change(inputs), expected, sizes)
    except Failed as failure:
        for outcome in outcomes:
            outcome.failures.append(str(failure))
    finally:
        for engine in engines:
            engine.close()
    return outcomes, refused


class Table:
    """One row for each comparison, judged by its bar."""

    def __init__(self, report, count):
        self.report, self.count = report, count
        report.table([
            ("model", 40), ("shapes", 6), ("refused by ORT", 8), ("largest", 9), ("bar", 7), ("one shape", 9), ("at", 24), ("", 4),
        ])  # fmt: skip

    def add(self, id, name, outcome, refused, bar, at_most_shapes=()):
        error, at = outcome.worst(at_most_shapes)
        known = error if outcome.shapes == self.count and not outcome.failures else None
        passed = self.report.judge(f"{id} {name}, error against onnxruntime", known, bar, at_most=True)
        for failure in outcome.failures[:2]:
            self.report.note(f"{id} {name}: {failure}")
        shown = "–" if error is None else f"{error:.1e}"
        sizes = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in at.items())
        self.report.row([
            f"{id} {name}", str(outcome.shapes), str(refused), shown, f"{bar:.2g}", f"{outcome.alone:.1e}", sizes,
            "pass" if passed else "FAIL",
        ])  # fmt: skip
        self.report.keep("correct", {
            "model": id, "name": name, "shapes": outcome.shapes, "refused": refused, "error": known, "bar": bar,
            "alone": outcome.alone, "failures": outcome.failures,
        })  # fmt: skip


def compare_quantised(table, id, name, path, settings):
    """The parts between the quantised tensors, and the whole: it may move as far as onnxruntime's own answer does."""
    with tempfile.TemporaryDirectory(prefix="selkie-compare-") as folder:
        view = Cut(path, Path(folder))
        (parts,), refused = compare_model(id, path, view, [Subject()], table.count, settings)
    table.add(id, f"{name}, parts", parts, refused, MOST_ERROR, view.inside)
    subjects = [Subject(), Subject("ort", change=nudged)]
    (whole, moved), refused = compare_model(id, path, Whole(id, path), subjects, table.count, settings)
    own = moved.worst()[0] or 0.0
    table.add(id, f"{name}, whole", whole, refused, max(MOST_ERROR, MOST_OF_NUDGED * own))
    table.report.note(f"{id} {name}: the whole may move by {MOST_OF_NUDGED} times what onnxruntime's answer does, {own:.1e}")


def compare_continuous(table, id, name, path, settings):
    """A model without steps, and once more without Winograd's algorithm, which has a bar of its own."""
    winograd = may_use_winograd(path)
    subjects = [Subject(), Subject(options=("--exact",))] if winograd else [Subject()]
    (usual, *exact), refused = compare_model(id, path, Whole(id, path), subjects, table.count, settings)
    table.add(id, name, usual, refused, MOST_ERROR_OF_WINOGRAD if winograd else MOST_ERROR)
    for outcome in exact:
        table.add(id, f"{name}, --exact", outcome, refused, MOST_ERROR)


def compare(report, full_models, paths, names, settings):
    """`names` restricts the small models, as it does those of full size."""
    report.say(
        f"The largest difference from onnxruntime at {SHAPES} random shapes, relative to the output's scale: its largest value at\n"
        "all of these shapes. Beside it the same relative to the scale at one shape alone.\n"
    )
    table = Table(report, 3 if settings.quick else SHAPES)
    small = [m for m in zoo.models().values() if not names or any(m.id.startswith(name) for name in names)]
    cases = [(m.id, m.name, zoo.ensure, m) for m in small] + [(m.id, m.name, None, m) for m in full_models]
    for id, name, ensure, model in cases:
        progress(f"answers of {name}")
        path = ensure(model, ROOT / ".cache/bench/zoo") if ensure else paths[id]
        (compare_quantised if quantises(path) else compare_continuous)(table, id, name, path, settings)
    report.end_table()
