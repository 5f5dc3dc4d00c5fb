"""Runs one peer's shape inference in this process and prints the shapes it found: peers.py onnx|ort|ort_merge MODEL.

The output is JSON: {"shapes": {tensor: [size, "expression" or null for each dim]}, "others": [values that are no
tensors], "error": why the analysis stopped, or null}."""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from zoo.graphs import subgraphs

import onnx


def collect(graph, shapes, others):
    for value in [*graph.value_info, *graph.output]:
        kind = value.type.WhichOneof("value")
        if kind == "tensor_type" and value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]
        elif kind not in ("tensor_type", None):
            others.append(value.name)
    for node in graph.node:
        for inner in subgraphs(node):
            collect(inner, shapes, others)


def infer_ort(model, merge):
    """ONNX Runtime's result; where it gives up in the end, what it had found by then, which it leaves in a file."""
    sys.modules["torch"] = None  # onnxruntime.tools would load it, for nothing that is needed here
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    # It calls a function by a name that onnx has since dropped.
    onnx.helper.make_sequence_value_info = onnx.helper.make_tensor_sequence_value_info
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found = SymbolicShapeInference.infer_shapes(
                model, auto_merge=merge, int_max=2**31 - 1, guess_output_rank=False
            )
            return found, None
        except Exception as error:
            left = Path("sym_shape_infer_temp.onnx")
            found = onnx.load(left) if left.exists() else None
            place = traceback.extract_tb(error.__traceback__)[-1].name
            return found, f"{type(error).__name__} in {place}: {error}".splitlines()[0]
        finally:
            os.chdir("/")


def main(tool, path):
    model, error = onnx.load(path), None
    if tool == "onnx":
        model = onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=False)
    else:
        model, error = infer_ort(model, merge=tool == "ort_merge")
    shapes, others = {}, []
    if model is not None:
        collect(model.graph, shapes, others)
    json.dump({"shapes": shapes, "others": others, "error": error}, sys.stdout)


main(sys.argv[1], sys.argv[2])
