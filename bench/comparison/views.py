"""How a model is run on both sides of a comparison, and which of the two answers belong together. `cuts.Cut` is one more."""

import numpy as np

import onnx
from onnx import TensorProto, helper


class Whole:
    """A model as it is. `probed` is onnxruntime's file, `parts` that of what is held against it."""

    def __init__(self, path):
        self.probed = self.parts = path

    def inputs(self, given, probed):
        """Of `parts`, from the model's inputs and onnxruntime's answer."""
        return given

    def aligned(self, values, probed):
        """What `parts` gave and should have given, pair by pair."""
        return values, probed


def last_sigmoids(path):
    """(operand, output) of the sigmoids that are outputs of the model."""
    graph = onnx.load(path, load_external_data=False).graph
    outputs = [value.name for value in graph.output]
    found = [node for node in graph.node if node.op_type == "Sigmoid" and node.output[0] in outputs]
    return [(node.input[0], outputs.index(node.output[0])) for node in found]


class WithLogits(Whole):
    """A model whose outputs are sigmoids, with what they are of as further outputs.

    onnxruntime's sigmoid is right to 1e-7 in absolute terms only: of the small probabilities that random inputs have
    nothing is right, up to twice their size. So the net in front is held against onnxruntime's, and the sigmoid against
    that of onnxruntime's logits in double precision."""

    def __init__(self, path, folder):
        model, self.sigmoids = onnx.load(path), last_sigmoids(path)
        for name, _ in self.sigmoids:
            model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        super().__init__(folder / path.name)
        onnx.save(model, self.probed)

    def aligned(self, values, probed):
        right = list(probed)
        logits = right[len(right) - len(self.sigmoids) :]
        for (_, output), logit in zip(self.sigmoids, logits):
            right[output] = (1 / (1 + np.exp(-logit.astype(np.float64)))).astype(logit.dtype)
        return values, right


def kinds(tensors):
    return [(t.dtype, t.shape) for t in tensors]


class Picked(Whole):
    """(indices, boxes, scores) with a row for each box that was picked, best first.

    Rounding decides the order of scores that are nearly equal, and seldom which of two such boxes hides the other: where
    rows differ, they are matched by their indices, and scores are also compared in their order."""

    def aligned(self, values, probed):
        if kinds(values) != kinds(probed) or np.array_equal(values[0], probed[0]):
            return values, probed
        ours, theirs = ({tuple(row): i for i, row in enumerate(picked[0])} for picked in (values, probed))
        shared = [row for row in theirs if row in ours]
        if len(shared) < 0.99 * len(theirs):  # more than ties explain
            return values, probed
        mine, right = [ours[row] for row in shared], [theirs[row] for row in shared]
        return [values[1][mine], values[2][mine], values[2]], [probed[1][right], probed[2][right], probed[2]]


class PickedWithoutIndices(Whole):
    """(boxes, scores, features) likewise: each row is matched with the nearest one, and no two with the same. Classes may
    pick the same box, with scores of their own."""

    def aligned(self, values, probed):
        if kinds(values) != kinds(probed) or not len(values[0]):
            return values, probed
        ours, theirs = (np.concatenate([v.reshape(len(v), -1) for v in rows], axis=1) for rows in (values, probed))
        order = np.abs(ours[:, None] - theirs[None]).sum(axis=-1).argmin(axis=0)
        if len(set(order)) < len(order):
            return values, probed
        return [*(value[order] for value in values), values[1]], [*probed, probed[1]]


PICKED = {"a5": Picked, "c8": PickedWithoutIndices}


def view_of(id, path, folder):
    if id in PICKED:
        return PICKED[id](path)
    return WithLogits(path, folder) if last_sigmoids(path) else Whole(path)
