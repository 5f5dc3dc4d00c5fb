"""Whether Selkie's answers are onnxruntime's, at random shapes of every model of the zoo and every model of full size."""

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import zoo

from .cuts import NUDGES, Cut, nudged, quantises
from .draws import Draws
from .engines import ROOT, SELKIE, Engine, Failed
from .report import progress
from .views import Whole, view_of

SHAPES = 20
MOST_ERROR, MOST_ERROR_OF_WINOGRAD = 1e-4, 1e-3
MOST_OF_NUDGED = 2  # times what onnxruntime's answer moves by when its input moves a little, where a model has steps
MOST_REFUSED = 40  # draws that onnxruntime does not run, after which there is nothing to compare


def may_use_winograd(path):
    done = subprocess.run([SELKIE, "disasm", str(path)], capture_output=True, text=True)
    return " or winograd" in done.stdout


@dataclass(frozen=True)
class Subject:
    """What is held against onnxruntime."""

    engine: str = "selkie"
    options: tuple = ()
    change: Callable = lambda inputs: inputs


class Outcome:
    """Differences per output at all shapes, relative to the output's scale there: its largest value; integers are exact.

    The scale of a probability is its largest value at any of the shapes: at a single one all may be so small that they are
    nothing but the errors of a peer's sigmoid. What is between 0 and 1 at all shapes is taken for one."""

    def __init__(self):
        self.shapes, self.failures, self.compared = 0, [], {}

    def take(self, values, expected, sizes):
        self.shapes += 1
        kinds, right = ([f"{v.dtype} {v.shape}" for v in side] for side in (values, expected))
        if kinds != right:
            differing = [f"{found}, not {wanted}" for found, wanted in zip(kinds, right) if found != wanted]
            self.failures.append(f"{sizes}: {differing[0] if differing else f'{len(kinds)} outputs, not {len(right)}'}")
            return
        for i, (value, wanted) in enumerate(zip(values, expected)):
            if wanted.size:
                difference = float(np.abs(value.astype(np.float64) - wanted).max())
                if not np.isfinite(difference) or (difference and wanted.dtype.kind != "f"):
                    difference = float("inf")
                self.compared.setdefault(i, []).append((difference, float(wanted.min()), float(wanted.max()), sizes))

    def errors(self, output):
        """Of each shape, with its sizes; the smallest first."""
        compared = self.compared[output]
        highest = max(high for _, _, high, _ in compared)
        is_probability = highest <= 1 and all(low >= 0 for _, low, _, _ in compared)
        scales = [highest if is_probability else max(-low, high) for _, low, high, _ in compared]
        return sorted(((c[0] / (scale or 1.0), c[3]) for c, scale in zip(compared, scales)), key=lambda pair: pair[0])

    def worst(self, at_most_shapes=()):
        """The largest error, and the sizes where it was; of the outputs `at_most_shapes` their median counts."""
        ordered = {i: self.errors(i) for i in self.compared}
        found = (e[len(e) // 2 if i in at_most_shapes else -1] for i, e in ordered.items())
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
            ("model", 40), ("shapes", 6), ("refused by ORT", 8), ("largest", 9), ("bar", 7), ("at", 24), ("", 4),
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
            f"{id} {name}", str(outcome.shapes), str(refused), shown, f"{bar:.2g}", sizes, "pass" if passed else "FAIL",
        ])  # fmt: skip
        self.report.keep("correct", {
            "model": id, "name": name, "shapes": outcome.shapes, "refused": refused, "error": known, "bar": bar,
            "failures": outcome.failures,
        })  # fmt: skip


def compare_quantised(table, id, name, path, settings):
    """The parts between the quantised tensors, and the whole: it may move as far as onnxruntime's own answer does."""
    with tempfile.TemporaryDirectory(prefix="selkie-compare-") as folder:
        view = Cut(path, Path(folder))
        (parts,), refused = compare_model(id, path, view, [Subject()], table.count, settings)
    table.add(id, f"{name}, parts", parts, refused, MOST_ERROR, view.inside)
    subjects = [Subject(), *(Subject("ort", change=partial(nudged, seed=seed)) for seed in range(NUDGES))]
    (whole, *moved), refused = compare_model(id, path, Whole(path), subjects, table.count, settings)
    own = max(outcome.worst()[0] or 0.0 for outcome in moved)
    table.add(id, f"{name}, whole", whole, refused, max(MOST_ERROR, MOST_OF_NUDGED * own))
    table.report.note(f"{id} {name}: the whole may move by {MOST_OF_NUDGED} times what onnxruntime's answer does, {own:.1e}")


def compare_continuous(table, id, name, path, settings):
    """A model without steps, and once more without Winograd's algorithm, which has a bar of its own."""
    winograd = may_use_winograd(path)
    subjects = [Subject(), Subject(options=("--exact",))] if winograd else [Subject()]
    with tempfile.TemporaryDirectory(prefix="selkie-compare-") as folder:
        view = view_of(id, path, Path(folder))
        (usual, *exact), refused = compare_model(id, path, view, subjects, table.count, settings)
    table.add(id, name, usual, refused, MOST_ERROR_OF_WINOGRAD if winograd else MOST_ERROR)
    for outcome in exact:
        table.add(id, f"{name}, --exact", outcome, refused, MOST_ERROR)


def compare(report, full_models, paths, names, settings):
    """`names` restricts the small models, as it does those of full size."""
    report.say(f"The largest difference from onnxruntime at {SHAPES} random shapes, relative to the output's largest value.\n")
    table = Table(report, 3 if settings.quick else SHAPES)
    small = [m for m in zoo.models().values() if not names or any(m.id.startswith(name) for name in names)]
    cases = [(m.id, m.name, zoo.ensure, m) for m in small] + [(m.id, m.name, None, m) for m in full_models]
    for id, name, ensure, model in cases:
        progress(f"answers of {name}")
        path = ensure(model, ROOT / ".cache/bench/zoo") if ensure else paths[id]
        (compare_quantised if quantises(path) else compare_continuous)(table, id, name, path, settings)
    report.end_table()
