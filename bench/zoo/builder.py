"""A small builder of ONNX graphs, for the loops, scans and trees that torch cannot export as such."""

import itertools

import numpy as np

from onnx import TensorProto, checker, helper, numpy_helper, save

from .export import OPSET, save_examples

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def sequence(name):
    return helper.make_tensor_sequence_value_info(name, FLOAT, None)


class Builder:
    """Collects nodes; a nested builder (`nest`) makes the graph of a Loop, Scan or If and shares names and weights."""

    def __init__(self, outer=None):
        self.nodes, self.inputs = [], []
        self.weights = outer.weights if outer else []
        self.count = outer.count if outer else itertools.count()
        self.random = outer.random if outer else np.random.default_rng(0)

    def nest(self):
        return Builder(self)

    def input(self, name, kind, dims=None):
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def op(self, kind, *operands, results=1, **attributes):
        names = [f"{kind.lower()}_{next(self.count)}" for _ in range(results)]
        self.nodes.append(helper.make_node(kind, operands, names, name=f"{kind}_{next(self.count)}", **attributes))
        return names[0] if results == 1 else names

    def const(self, value, kind=np.int64):
        name = f"const_{next(self.count)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def weight(self, *shape, inner=None):
        """Random weights of a product over `inner` elements, as many as there are rows unless given."""
        scale = 1 / np.sqrt(inner or shape[0])
        return self.const(self.random.standard_normal(shape) * scale, np.float32)

    def linear(self, x, rows, columns):
        return self.op("Add", self.op("MatMul", x, self.weight(rows, columns)), self.weight(columns))

    def graph(self, name, outputs):
        """The graph of the nodes so far; outputs are (name, element type), and the rank where the graph is main."""
        values = [
            helper.make_tensor_value_info(o, kind, [None] * rank[0] if rank else None) for o, kind, *rank in outputs
        ]
        return helper.make_graph(self.nodes, name, self.inputs, values)

    def write(self, path, outputs, examples):
        graph = self.graph("main", outputs)
        graph.initializer.extend(self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        checker.check_model(model)
        save(model, path)
        save_examples(path, examples)
