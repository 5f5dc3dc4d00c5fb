"""Whether Selkie's answers are onnxruntime's on random inputs of dynamic models, and which paths these inputs take."""

import json
import subprocess

import numpy as np
import torch
from zoo import dynamic
from zoo.decisions import decisions, observe

from .correct import answers
from .engines import SELKIE, Engine, Failed, error_of
from .report import progress
from .views import PICKED, Whole

INPUTS = 100
REGIONS = {"if", "loop", "scan", "sequence_map", "call"}


def regions_on_host(path):
    """Names of regions that run as one host call, and how many other host calls the program has; None if it is no program."""
    done = subprocess.run([SELKIE, "explain", str(path), "--json", "--summary"], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    said = json.loads(done.stdout)
    calls = said["cpu"].get("host_calls", [])
    return said["summary"]["compilations"], [c["node"] for c in calls if c["op"] in REGIONS], len(calls)


def final_answer(outputs):
    """What a user reads off: integers as they are, and of floats the place of the largest in each row."""
    return [v if v.dtype.kind != "f" else v.argmax(axis=-1) if v.size and v.ndim else np.array(v.shape) for v in outputs]


def same_answer(values, expected):
    return len(values) == len(expected) and all(
        np.array_equal(a, b) for a, b in zip(final_answer(values), final_answer(expected))
    )


class Coverage:
    """Outcomes of each decision and different paths over all inputs, as the torch module takes them; of a graph that is not
    torch's, the shapes of its inputs and outputs are its path."""

    def __init__(self, path):
        self.net, self.paths, self.different = dynamic.load_module(path), set(), 0
        self.outcomes = {name: set() for name in decisions(self.net)} if self.net else {}

    def take(self, inputs, expected):
        shapes = tuple(value.shape for value in [*inputs.values(), *expected])
        if self.net is None:
            self.paths.add(shapes)
            return
        seen = observe(self.net, inputs)
        self.paths.add((seen.path, tuple(value.shape for value in expected)))  # a loop's trips show in its output
        for name, outcome in seen.outcomes.items():
            self.outcomes.setdefault(name, set()).add(outcome)
        self.different += not same_answer([value.numpy() for value in seen.outputs], expected)

    def text(self):
        both = sum(len(found) == 2 for found in self.outcomes.values())
        return f"{both} of {len(self.outcomes)}" if self.outcomes else "–"

    @property
    def complete(self):
        return all(len(found) == 2 for found in self.outcomes.values())


class Outcome:
    def __init__(self):
        self.inputs, self.different, self.error, self.failures = 0, 0, 0.0, []

    def take(self, values, expected):
        self.inputs += 1
        self.different += not same_answer(values, expected)
        self.error = max(self.error, error_of(values, expected))


def run_model(model, path, count, settings):
    """The outcome and the coverage; what fails is in the outcome."""
    outcome, coverage, random, engines = Outcome(), Coverage(path), np.random.default_rng(7), []
    view = PICKED.get(model.id, Whole)(path)
    try:
        for name in ("ort", "selkie"):
            engines.append(Engine(name, path, 1, settings.limit))
            engines[-1].load()
        for i in range(count):
            progress(f"{model.name}: input {i + 1} of {count}")
            inputs = model.draw(random)
            expected, values = (answers(engine, inputs) for engine in engines)
            outcome.take(*view.aligned(values, expected))
            coverage.take(inputs, expected)
    except Failed as failure:
        outcome.failures.append(str(failure))
    finally:
        for engine in engines:
            engine.close()
    return outcome, coverage


def add_row(report, model, outcome, coverage, regions, count):
    label = f"{model.id} {model.name}"
    whole = outcome.inputs == count
    verdicts = [
        report.judge(f"{label}, inputs with another answer than onnxruntime's", outcome.different if whole else None, 0, True),
        report.judge(f"{label}, decisions with both outcomes", 1.0 if coverage.complete and whole else 0.0, 1.0),
        report.judge(f"{label}, regions that are host calls", len(regions[1]) if regions else None, 0, True),
        report.judge(f"{label}, compilations", regions[0] if regions else None, 1, True),
    ]
    report.row([
        label, str(outcome.inputs), str(outcome.different), f"{outcome.error:.1e}", str(len(coverage.paths)), coverage.text(),
        str(len(regions[1])) if regions else "–", str(regions[2]) if regions else "–", "pass" if all(verdicts) else "FAIL",
    ])  # fmt: skip
    for failure in outcome.failures:
        report.note(f"{label}: {failure}")
    if coverage.different and model.id not in PICKED:  # torch has no operator that picks boxes
        report.note(f"{label}: eager torch has another answer than onnxruntime for {coverage.different} inputs")
    if regions and regions[1]:
        report.note(f"{label}: regions on the host: {', '.join(regions[1][:4])}")
    report.keep("paths", {
        "model": model.id, "inputs": outcome.inputs, "different": outcome.different, "error": outcome.error,
        "paths": len(coverage.paths), "decisions": coverage.text(), "regions_on_host": regions[1] if regions else None,
        "failures": outcome.failures, "torch_different": coverage.different,
    })  # fmt: skip


def compare(report, models, paths, settings):
    count = 10 if settings.quick else INPUTS
    torch.set_num_threads(1)
    report.say(f"{count} random inputs each, of different sizes where these are dynamic; held against onnxruntime's answers.\n")
    report.table([
        ("model", 28), ("inputs", 6), ("other answers", 8), ("largest error", 8), ("paths", 5), ("both outcomes", 10),
        ("regions on host", 6), ("host calls", 6), ("", 4),
    ])  # fmt: skip
    for model in models:
        path = paths[model.id]
        outcome, coverage = run_model(model, path, count, settings)
        add_row(report, model, outcome, coverage, regions_on_host(path), count)
    report.end_table(
        "Answers: integers, and of floats the place of the largest in each row. Errors: relative to the output's largest value.",
        "Paths: different ones among the inputs. Both outcomes: decisions that some input takes and some other does not.",
    )
