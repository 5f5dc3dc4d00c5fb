"""The copy of a model that all tools see: dims of inputs named, tensor names unique, no stored shapes."""

import re
from dataclasses import dataclass

from zoo.graphs import forget_shapes, subgraphs

import onnx


@dataclass(frozen=True)
class Tensor:
    name: str
    node: str
    op: str
    nested: bool


@dataclass(frozen=True)
class Prepared:
    nodes: int  # in all graphs, but Constants
    tensors: list[Tensor]  # the results of all nodes but Constants, in the order of the file
    symbols: set[str]  # the names of the inputs' dims


def name_dims(graph):
    """Names every dim of an input that has neither a size nor a usable name; returns all names."""
    weights = {w.name for w in graph.initializer}
    names = set()
    for value in graph.input:
        if value.name in weights:
            continue
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value > 0:
                continue
            # Expressions are read back by their identifiers, so that names must be such.
            dim.dim_param = re.sub(r"\W", "_", dim.dim_param or f"dim_{value.name}_{i}")
            names.add(dim.dim_param)
    return names


def unique_names(graph, taken, renamed):
    """Gives nested tensors a name of their own where two graphs share one, and every node a name."""
    renamed = dict(renamed)

    def claim(name):
        fresh, i = name, 0
        while fresh in taken:
            i += 1
            fresh = f"{name}__{i}"
        taken.add(fresh)
        renamed[name] = fresh
        return fresh

    for value in graph.input:
        value.name = claim(value.name)
    listed = {value.name for value in graph.input}  # old models list their weights as inputs too
    for weight in graph.initializer:
        weight.name = weight.name if weight.name in listed else claim(weight.name)
    for i, node in enumerate(graph.node):
        node.name = node.name or f"{node.op_type}_{i}"
        node.input[:] = [renamed.get(n, n) for n in node.input]
        for inner in subgraphs(node):
            unique_names(inner, taken, renamed)
        node.output[:] = [claim(n) if n else n for n in node.output]
    for value in graph.output:
        value.name = renamed.get(value.name, value.name)


def nodes_of(graph, nested=False):
    """All nodes but Constants, each with whether it is in a nested graph."""
    for node in graph.node:
        if node.op_type != "Constant":
            yield node, nested
        for inner in subgraphs(node):
            yield from nodes_of(inner, nested=True)


def prepare(source, target):
    """Writes the shared copy and says what is in it."""
    model = onnx.load(source)
    symbols = name_dims(model.graph)
    unique_names(model.graph, set(), {})
    forget_shapes(model.graph)
    onnx.save(model, target)
    nodes = list(nodes_of(model.graph))
    tensors = [Tensor(name, n.name, n.op_type, nested) for n, nested in nodes for name in n.output if name]
    return Prepared(len(nodes), tensors, symbols)
