"""Models that quantise at run time, judged part by part, every engine in the same way: `comparison.cuts` says why.

An answer counts if two things hold. The engine's parts between quantised tensors are right by the tolerance that all models
have. And the whole is no farther from onnxruntime's answer than twice what that moves by when the inputs move by the size of
rounding errors. Where an engine does not take the parts as a model, the second alone decides, and the report says so."""

import tempfile
from pathlib import Path

import onnx
from comparison.cases import TOLERANCE
from comparison.correct import MOST_OF_NUDGED, Outcome, answers
from comparison.cuts import NUDGES, Cut, nudged, quantises
from comparison.engines import Engine, Failed, error_of

from .messages import shortened


def declare_ranks(path, values):
    """The number of dims of inputs for which the parts' file has none: peers want it."""
    model = onnx.load(path)
    for value in model.graph.input:
        kind = value.type.tensor_type
        if value.name in values and not kind.HasField("shape"):
            kind.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(values[value.name].ndim))
    onnx.save(model, path)


def asked(name, path, limit, function):
    """What the function makes of the engine with this model."""
    engine = Engine(name, path, 1, limit)
    try:
        engine.load(limit)
        return function(engine)
    finally:
        engine.close()


class Judge:
    """Onnxruntime's answers to the cases of one model, and how far they move; then the parts of each engine."""

    def __init__(self, path, cases, limit, folder):
        self.cases, self.limit, self.view = cases, limit, Cut(path, folder)
        self.expected = asked("ort", self.view.probed, limit, self.answers)
        self.moved = asked("ort", path, limit, self.most_moved)
        self.bar = max(TOLERANCE, MOST_OF_NUDGED * self.moved)
        declare_ranks(self.view.parts, self.view.inputs({}, next(iter(self.expected.values()))))

    def answers(self, engine):
        return {case: answers(engine, inputs) for case, inputs in self.cases.items()}

    def most_moved(self, engine):
        worst = 0.0
        for inputs in self.cases.values():
            right = answers(engine, inputs)
            worst = max(worst, *(error_of(answers(engine, nudged(inputs, seed)), right) for seed in range(NUDGES)))
        return worst

    def compared(self, engine):
        outcome = Outcome()
        for case, inputs in self.cases.items():
            expected = self.expected[case]
            values = answers(engine, self.view.inputs(inputs, expected))
            outcome.take(*self.view.aligned(values, expected), case)
        return outcome

    def parts(self, name):
        """The largest error of an engine's parts (None: a result of another kind or shape), or why there are none. Of the
        results of operators that quantise inside, `inside`, it is the median over the cases."""
        try:
            outcome = asked(name, self.view.parts, self.limit, self.compared)
        except Failed as error:
            return {"judged": "whole", "error": None, "inside": None, "message": shortened(error)}
        if outcome.failures:
            return {"judged": "parts", "error": None, "inside": None, "message": shortened(outcome.failures[0])}
        found = {i: [error for error, _ in outcome.errors(i)] for i in outcome.compared}
        between = max((errors[-1] for i, errors in found.items() if i not in self.view.inside), default=0.0)
        inside = max((errors[len(errors) // 2] for i, errors in found.items() if i in self.view.inside), default=0.0)
        return {"judged": "parts", "error": max(between, inside), "inside": inside, "message": None}


def verdict(case, parts, bar):
    """The record of a case with what was found about the parts. Its error is theirs, where they decide."""
    whole = case["error"]
    if parts["judged"] == "whole":
        return case | {"right": whole <= bar, "whole_error": whole}
    error = parts["error"]
    return case | {"right": whole <= bar and error is not None and error <= TOLERANCE, "error": error, "whole_error": whole}


def judge(path, cases, results, limit, say):
    """Judges the cases of all results anew, if the model quantises. What the report says of it; None otherwise."""
    if not quantises(path):
        return None
    with tempfile.TemporaryDirectory(prefix="selkie-suite-") as folder:
        say("parts in ORT")
        try:
            judge, found = Judge(path, cases, limit, Path(folder)), {}
        except Failed as error:  # then the answers stay judged as those of other models
            return {"message": shortened(error)}
        for record in results:
            name = record["engine"]
            timed = {case: r for case, r in record["cases"].items() if r["error"] is not None}
            if timed and name not in found:
                say(f"parts in {name}")
                found[name] = judge.parts(name)
            record["cases"] |= {case: verdict(r, found[name], judge.bar) for case, r in timed.items()}
    for name, parts in found.items():
        wholes = [c["whole_error"] for r in results if r["engine"] == name for c in r["cases"].values() if "whole_error" in c]
        parts["whole"] = max(wholes)
    return {"message": None, "moved": judge.moved, "bar": judge.bar, "engines": found}
