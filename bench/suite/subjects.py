"""What the suite runs: the models of each group of the zoo, of full size or small, and the inputs that each is timed on."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
import zoo
from comparison.cases import CASES
from comparison.draws import Draws
from comparison.engines import ROOT
from zoo import dynamic, full, sized
from zoo.export import Model, integers, normal
from zoo.vision import images, prompts

GROUPS = {
    "a": "A. Vision, speech and text",
    "b": "B. Programs with branches",
    "c": "C. Sequences and structures",
    "d": "D. Trained weights from packages",
    "matmul": "Matrix products, and one LSTM",
}
FULL, SMALL = ROOT / ".cache/bench/full", ROOT / ".cache/bench/zoo"
ROWS = (1, 3, 8, 24, 64, 128, 512)  # of matrix products
STEPS = 4  # shapes of a model whose ranges of sizes are all that is known


@dataclass(frozen=True)
class Subject:
    """One row of every table. `cases(path)` are the inputs by name, in the order of a curve; `draw(path)` makes a function
    for inputs of other shapes. In a subject that is `broad`, peers that compile for long take part in a quick run, too."""

    group: str
    model: Model
    folder: Path
    cases: Callable
    draw: Callable
    broad: bool = False

    @property
    def id(self):
        return self.model.id

    @property
    def title(self):
        size = " (small)" if self.folder == SMALL and self.group in "abc" else ""
        return f"{self.id} {self.model.name}{size}" if self.group != "matmul" else self.model.name


def drawn_by(id):
    def draw(path):
        draws = Draws(id, path)
        return lambda: draws.draw()[0]

    return draw


def drawn_by_model(model):
    def draw(path):
        random = np.random.default_rng(3)
        return lambda: model.draw(random)

    return draw


def swept(id):
    """Cases at equal steps through the ranges of all named sizes; of a model without such sizes, its examples."""

    def cases(path):
        draws, found = Draws(id, path), {}
        for step in range(STEPS):
            inputs, sizes = draws.at(step / (STEPS - 1))
            found[", ".join(f"{name.split('.')[-1]} {size}" for name, size in sizes.items()) or "as it is"] = inputs
        return found

    return cases


def of_shapes(model, rows=None):
    """Cases of a model of `zoo.full`: its shapes, of products some."""

    def cases(_):
        chosen = {k: v for k, v in CASES[model.id].shapes.items() if rows is None or v[0] in rows}
        return {name: model.inputs(*sizes) for name, sizes in chosen.items()}

    return cases


def cases_on_paths(path):
    return {name: case.inputs for name, case in dynamic.load_cases(path).items()}


def texts(*lengths):
    return {f"S {n}": {"ids": integers(50265, 1, n, low=2), "mask": integers(1, 1, n) + 1} for n in lengths}


SWEEPS = {  # of the models of full size whose path is fixed
    "a1": lambda _: {f"H = W = {n}": images((n, n))[0] for n in (64, 128, 256, 512)},
    "a2": lambda _: {f"P {n}": prompts(n, 512, 512, 256, 64) for n in (1, 4, 16)},
    "a3": lambda _: {f"T {n}": {"frames": normal(1, n, 80)} for n in (50, 200, 800, 1600)},
    "a4": lambda _: texts(8, 64, 128, 512),
    "a5": lambda _: {f"H = W = {n}": images((n, n))[0] for n in (224, 416, 640)},
}  # fmt: skip
# Ids of models of full size under the zoo's own.
FULL_NAMES = {"c3": "bert_base", "c5": "gpt2", "d4": "minilm", "d2_det": "ppocr_det", "d2_rec": "ppocr_rec"}
# What a quick run takes in full size: exports of seconds, small weights. Of the others it takes small variants.
QUICK_FULL = {
    "b5", "b6", "b9", "c1_op", "c1_loop", "c2_scatter", "c2_sequence", "c4_rnn", "c6", "c8", "c10", "c11", "d1_v5",
}  # fmt: skip
# Variants of what it has, and what takes long.
QUICK_LEAVES_OUT = {
    "b8", "c1_op1", "c1_op2", "c1_scan", "c1_loop2", "c1_scan2", "c2", "c4_fc", "c4_mv", "c4_dag", "c4_gru", "c5", "d1_legacy", "d1_v6",
    "d2_cls", "d3_det", "d4", "d5_half", "d5_ifless", "d5_op15", "d5_openvino", "d5_sequence",
}  # fmt: skip
BROAD = {"a4", "b6", "c1_op", "d5_magika", "matmul_768"}


def small_subjects():
    for model in zoo.models().values():
        if isinstance(model, dynamic.DynamicModel):
            yield Subject(model.id[0], model, SMALL, cases_on_paths, drawn_by_model(model), model.id in BROAD)
        elif model.id[0] in "abcd":
            yield Subject(model.id[0], model, SMALL, swept(model.id), drawn_by(model.id), model.id in BROAD)


def full_subjects():
    for model in sized.MODELS:
        yield Subject("a", model, FULL, SWEEPS[model.id], drawn_by(model.id), model.id in BROAD)
    for model in dynamic.MODELS:
        if model.id != "exit_mobilenet":
            yield Subject(model.id[0], model, FULL, cases_on_paths, drawn_by_model(model), model.id in BROAD)
    by_id = {model.id: model for model in full.MODELS}
    for id, name in FULL_NAMES.items():
        found = by_id[name]
        renamed = full.FullModel(found.id, f"{id} {found.name}", found.write, found.inputs)
        yield Named(id[0], renamed, FULL, of_shapes(found), drawn_by(found.id), zoo_id=id)


@dataclass(frozen=True)
class Named(Subject):
    """A model of full size whose file has another name than the zoo's id."""

    zoo_id: str = ""

    @property
    def id(self):
        return self.zoo_id

    @property
    def title(self):
        return self.model.name


def micro_subjects():
    for model in full.MODELS:
        if model.id.startswith("matmul") or model.id == "lstm":
            rows = ROWS if model.id.startswith("matmul") else None
            yield Subject("matmul", model, FULL, of_shapes(model, rows), drawn_by(model.id), model.id in BROAD)


def order(subject):
    head = subject.id.split("_")[0]
    return head[:1], int(head[1:]) if head[1:].isdigit() else 0, subject.id


def subjects(groups, quick, names=None):
    """Those of these groups, group by turns, so that a run that ends early has some of each; what may take long is last."""
    small, large = ({s.id: s for s in found} for found in (small_subjects(), full_subjects()))
    if quick:
        large = {id: s for id, s in large.items() if id in QUICK_FULL}
        small = {id: s for id, s in small.items() if id not in QUICK_LEAVES_OUT}
    chosen = [*(small | large).values(), *micro_subjects()]
    if names:
        chosen = [s for s in chosen if any(s.id == name or s.id.startswith(f"{name}_") for name in names)]
    by_group = [sorted((s for s in chosen if s.group == group), key=order) for group in groups]
    if not any(by_group):
        raise SystemExit("no model of these groups has such an id; bench/README.md says where ids are")
    by_turns = [subject for subject in chain(*zip_longest(*by_group)) if subject]
    return sorted(by_turns, key=lambda subject: quick and subject.broad)


def shape_of(inputs):
    return tuple(value.shape for value in inputs.values())


def new_shapes(subject, path, seen, count):
    """Up to so many inputs of shapes that differ from each other and from those seen; none for a model of one shape."""
    draw, found = subject.draw(path), {}
    for _ in range(4 * count):
        if len(found) == count:
            break
        inputs = draw()
        if shape_of(inputs) not in seen:
            found.setdefault(shape_of(inputs), inputs)
    return list(found.values())
