"""Which paths random inputs of a model take, and whether Selkie's final answers there are onnxruntime's."""

import time

from comparison.correct import answers
from comparison.paths_taken import Coverage, Outcome
from comparison.views import PICKED, Whole
from zoo import dynamic

from .messages import shortened

BRANCHING = {model.id for model in dynamic.MODELS}
LEAST_INPUTS = 12  # though the time of a row be spent
MOST_SECONDS = 60  # for one model, however many inputs are asked for


def take_paths(subject, path, engines, count, end):
    """A record of the inputs that there was time for; None of a model that has one path, or without both engines."""
    if subject.id not in BRANCHING or not {"ort", "selkie"} <= set(engines):
        return None
    outcome, coverage, draw = Outcome(), Coverage(path), subject.draw(path)
    view, message = PICKED.get(subject.id, Whole)(path), None
    last = min(end or float("inf"), time.monotonic() + MOST_SECONDS)
    try:
        for i in range(count):
            if i >= LEAST_INPUTS and time.monotonic() > last:
                break
            inputs = draw()
            expected, values = (answers(engines[name], inputs) for name in ("ort", "selkie"))
            outcome.take(*view.aligned(values, expected))
            coverage.take(inputs, expected)
    except Exception as error:  # the model has its other rows
        message = shortened(error)
    has_torch = coverage.net is not None and subject.id not in PICKED  # torch has no operator that picks boxes
    return {
        "inputs": outcome.inputs, "different": outcome.different, "error": outcome.error, "paths": len(coverage.paths),
        "decisions": coverage.text(), "torch_different": coverage.different if has_torch else None, "message": message,
    }  # fmt: skip
