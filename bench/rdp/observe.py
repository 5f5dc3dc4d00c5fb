"""Runs a model on one example and prints the shapes its tensors really have: observe.py MODEL EXAMPLE.npz.

The output is JSON: {"symbols": {dim of an input: size}, "shapes": {tensor: [a list of sizes per shape seen]}}.
"""

import contextlib
import json
import sys

import numpy as np
import onnxruntime
from onnx.reference import ReferenceEvaluator
from zoo.graphs import subgraphs

import onnx


def symbols_of(graph, feeds):
    """The sizes of the named dims of inputs."""
    return {
        dim.dim_param: size
        for value in graph.input
        if value.name in feeds
        for dim, size in zip(value.type.tensor_type.shape.dim, feeds[value.name].shape)
        if dim.dim_param
    }


def run_main(model, feeds, seen):
    """All tensors of the main graph, by ONNX Runtime."""
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for name, value in zip(names, session.run(names, feeds)):
        if isinstance(value, np.ndarray):
            seen.setdefault(name, set()).add(value.shape)


def run_nested(model, feeds, seen):
    """All tensors, nested ones at every trip, by the reference evaluator, which reports each result to its log."""

    def note(self, level, pattern, *values):
        if len(values) == 2 and isinstance(values[0], str) and isinstance(values[1], np.ndarray):
            seen.setdefault(values[0], set()).add(values[1].shape)

    ReferenceEvaluator._log = note
    ReferenceEvaluator(model).run(None, feeds)


def observe(model, feeds):
    """Shapes by tensor; those of nested graphs only where both evaluators agree on the main graph.

    The reference evaluator stacks the results of loops wrongly in some cases, and lacks some results of LSTM."""
    main, everything = {}, {}
    if any(list(subgraphs(node)) for node in model.graph.node):
        with contextlib.suppress(Exception):  # what was seen until then counts
            run_nested(model, feeds, everything)
    run_main(model, feeds, main)
    agree = all(everything.get(name, shapes) == shapes for name, shapes in main.items())
    return everything | main if agree else main


def main(path, example):
    model, feeds = onnx.load(path), dict(np.load(example))
    symbols = symbols_of(model.graph, feeds)
    seen = observe(model, feeds)
    json.dump({"symbols": symbols, "shapes": {name: sorted(shapes) for name, shapes in seen.items()}}, sys.stdout)


main(sys.argv[1], sys.argv[2])
