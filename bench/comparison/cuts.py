"""Models that quantise at run time, cut where they do, so that every part can be held against a peer's answer.

Quantising is a step: of two tensors that differ in the last place, one element may become 137 here and 138 there, and the
layers behind make a hundredth of the answer's scale of that. Nobody is wrong then: onnxruntime's own answer moves as far
when its input moves by a millionth of its largest element (`nudged`). So each quantised tensor becomes an input, which is given
as onnxruntime computed it, and what was quantised becomes an output. Nothing between two cuts has steps, and is held to
the same bar as any model. A quantised tensor is right if it is what was quantised, to half a step."""

import numpy as np

import onnx
from onnx import TensorProto, helper

QUANTISER = "DynamicQuantizeLinear"  # its results: bytes, their scale, their zero point
# Operators that quantise inside, at each step of a sequence, where no cut reaches: a step that is taken the other way, at
# some of the shapes, is no error there. One at most of them is.
INSIDE = ("DynamicQuantizeLSTM",)

NUDGED_BY = 1e-6  # of the largest element: rounding errors of some layers
NUDGES = 8  # of each case, since a step is not crossed each time


def is_cut(node):
    return node.op_type == QUANTISER or node.op_type in INSIDE


def quantises(path):
    return any(is_cut(node) for node in onnx.load(path, load_external_data=False).graph.node)


def nudged(inputs, seed):
    """The inputs with noise of the size of rounding errors."""
    random = np.random.default_rng(seed)

    def move(value):
        if value.dtype.kind != "f" or not value.size:
            return value
        noise = NUDGED_BY * np.abs(value).max() * random.standard_normal(value.shape)
        return (value + noise).astype(value.dtype)

    return {name: move(value) for name, value in inputs.items()}


def results_of(node):
    return [name for name in node.output if name]


def values_of(node, shapes):
    """The types of a cut's results, for inputs and outputs of these names."""
    if node.op_type in INSIDE:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results_of(node)]
    kinds = (TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)
    values = [helper.make_tensor_value_info(*named, []) for named in zip(node.output, kinds)]
    if node.input[0] in shapes:
        values[0].type.tensor_type.shape.CopyFrom(shapes[node.input[0]])
    else:
        values[0].type.tensor_type.ClearField("shape")
    return values


def add_outputs(graph, cuts):
    """What goes into each cut, by an identity since it may be an input of the model, and what comes out."""
    for i, node in enumerate(cuts):
        graph.node.append(helper.make_node("Identity", [node.input[0]], [f"cut.{i}"]))
        graph.output.append(helper.make_tensor_value_info(f"cut.{i}", TensorProto.FLOAT, None))
        graph.output.extend(values_of(node, {}))


class Cut:
    """Two models: `probed` also gives what goes into the cuts and what comes out; `parts` takes the latter, too."""

    def __init__(self, path, folder):
        model = onnx.load(path)
        self.cuts = [node for node in model.graph.node if is_cut(node)]
        self.answers = len(model.graph.output)
        self.inside = set()  # outputs, as `aligned` counts them, of operators that quantise inside
        self.probed, self.parts = folder / "probed.onnx", folder / "parts.onnx"
        add_outputs(model.graph, self.cuts)
        onnx.save(model, self.probed)
        self.write_parts(onnx.load(path))

    def write_parts(self, model):
        known = [*onnx.shape_inference.infer_shapes(model).graph.value_info, *model.graph.input]
        shapes = {v.name: v.type.tensor_type.shape for v in known if v.type.tensor_type.HasField("shape")}
        cuts = [node for node in model.graph.node if is_cut(node)]
        for node in cuts:
            model.graph.input.extend(values_of(node, shapes))
            node.output[:] = [f"own.{name}" if name else "" for name in node.output]
        add_outputs(model.graph, cuts)
        onnx.save(model, self.parts)

    def at_cuts(self, outputs):
        """For each cut its node, what goes in and the list of what comes out."""
        rest = iter(outputs[self.answers :])
        return [(node, next(rest), [next(rest) for _ in results_of(node)]) for node in self.cuts]

    def inputs(self, given, probed):
        """Of the parts, from the model's inputs and the answers of `probed`."""
        found = ((results_of(node), results) for node, _, results in self.at_cuts(probed))
        return given | {name: value for names, results in found for name, value in zip(names, results)}

    def aligned(self, values, probed):
        """What the parts gave and should have given."""
        mine, right = list(values[: self.answers]), list(probed[: self.answers])
        for (node, x, own), (_, expected, results) in zip(self.at_cuts(values), self.at_cuts(probed)):
            mine.append(x)
            right.append(expected)
            if node.op_type in INSIDE:
                self.inside |= set(range(len(mine), len(mine) + len(own)))
                mine += own
                right += results
            elif x.shape == expected.shape:  # if not, that is told of `x`
                mine += [own[1], restored(own, expected, results[1])]
                right += [results[1], expected]
        return mine, right


def restored(quantised, expected, step):
    """What was quantised; the value that was expected wherever it is less than half a step away."""
    elements, scale, zero = quantised
    away = (elements.astype(np.float64) - zero) * scale - expected
    return (expected + np.sign(away) * np.maximum(np.abs(away) - step / 2, 0)).astype(expected.dtype)
