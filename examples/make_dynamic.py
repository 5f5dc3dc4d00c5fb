"""Makes examples/dynamic.onnx: a small model whose shapes, branch and loop depend on the input.

It embeds a text of any length, repeatedly mixes the tokens until they change little (a Loop whose trip count depends on
the values), and answers with a cheap head for short texts and a deeper one for long ones (an If on the length).
Needs onnx and numpy: `.venv/bin/python examples/make_dynamic.py`.
"""
import pathlib

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

WIDTH, VOCABULARY, CLASSES = 16, 64, 4


def constant(rng, name, *shape, gain=1.0):
    return numpy_helper.from_array((gain * rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), name)


def scalar(name, value, dtype):
    return numpy_helper.from_array(np.array(value, dtype), name)


def mixing_loop():
    """state, change → one step of h = tanh(h·W + 0.3·mean(h)); goes on while the change is above the threshold."""
    nodes = [
        helper.make_node("ReduceMean", ["h", "axis1"], ["mean"], keepdims=1),
        helper.make_node("MatMul", ["h", "mix"], ["mixed"]),
        helper.make_node("Mul", ["mean", "share"], ["shared"]),
        helper.make_node("Add", ["mixed", "shared"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_next"]),
        helper.make_node("Sub", ["h_next", "h"], ["delta"]),
        helper.make_node("Abs", ["delta"], ["abs_delta"]),
        helper.make_node("ReduceMax", ["abs_delta"], ["change"], keepdims=0),
        helper.make_node("Greater", ["change", "threshold"], ["go_on"]),
    ]
    inputs = [helper.make_tensor_value_info("trip", TensorProto.INT64, []),
              helper.make_tensor_value_info("go", TensorProto.BOOL, []),
              helper.make_tensor_value_info("h", TensorProto.FLOAT, ["B", "S", WIDTH])]
    outputs = [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
               helper.make_tensor_value_info("h_next", TensorProto.FLOAT, ["B", "S", WIDTH]),
               helper.make_tensor_value_info("change", TensorProto.FLOAT, [])]
    return helper.make_graph(nodes, "mix", inputs, outputs)


def arm(name, nodes, result):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["B", CLASSES])])


def main():
    rng = np.random.default_rng(7)
    short = arm("short_text", [
        helper.make_node("ReduceMean", ["settled", "axis1"], ["pooled_short"], keepdims=0),
        helper.make_node("MatMul", ["pooled_short", "head"], ["short_scores"])], "short_scores")
    long = arm("long_text", [
        helper.make_node("MatMul", ["settled", "deep1"], ["d1"]), helper.make_node("Relu", ["d1"], ["d2"]),
        helper.make_node("MatMul", ["d2", "deep2"], ["d3"]),
        helper.make_node("ReduceMax", ["d3", "axis1"], ["pooled_long"], keepdims=0),
        helper.make_node("MatMul", ["pooled_long", "head"], ["long_scores"])], "long_scores")
    nodes = [
        helper.make_node("Gather", ["embedding", "ids"], ["embedded"], name="embed"),
        helper.make_node("Loop", ["most_trips", "yes", "embedded"], ["settled", "changes"], name="mix", body=mixing_loop()),
        helper.make_node("Shape", ["ids"], ["length"], name="length", start=1, end=2),
        helper.make_node("Greater", ["length", "long_from"], ["is_long"], name="is_long"),
        helper.make_node("Squeeze", ["is_long"], ["is_long_scalar"], name="squeeze"),
        helper.make_node("If", ["is_long_scalar"], ["scores"], name="head", then_branch=long, else_branch=short),
        helper.make_node("Softmax", ["scores"], ["probabilities"], name="softmax", axis=-1),
    ]
    weights = [constant(rng, "embedding", VOCABULARY, WIDTH), constant(rng, "mix", WIDTH, WIDTH, gain=0.6),
               constant(rng, "deep1", WIDTH, 4 * WIDTH), constant(rng, "deep2", 4 * WIDTH, WIDTH),
               constant(rng, "head", WIDTH, CLASSES), scalar("threshold", 0.01, np.float32), scalar("share", 0.3, np.float32),
               scalar("most_trips", 50, np.int64), scalar("yes", True, np.bool_),
               numpy_helper.from_array(np.array([8], np.int64), "long_from"),
               numpy_helper.from_array(np.array([1], np.int64), "axis1")]
    graph = helper.make_graph(
        nodes, "dynamic", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["B", "S"])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["B", CLASSES]),
         helper.make_tensor_value_info("changes", TensorProto.FLOAT, ["trips"])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, producer_name="selkie")
    checker.check_model(model)
    save(model, str(pathlib.Path(__file__).with_name("dynamic.onnx")))


if __name__ == "__main__":
    main()
