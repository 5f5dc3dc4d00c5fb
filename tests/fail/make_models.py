"""Makes tests/fail/models: small valid models that use every part of the format, for mutation and fuzzing.

Needs onnx: `.venv/bin/python tests/fail/make_models.py`. The files also seed the importer's fuzz target.
"""
import pathlib

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
f32, i64, bool_, str_ = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def value(name, dtype=f32, shape=("N", 2)):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(name, graph, functions=(), opset=18, extra=()):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *extra], functions=list(functions), ir_version=9)
    checker.check_model(model)
    for folder in (HERE / "models", HERE.parent / "fuzz/seeds/import_fuzz"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


def arithmetic():
    weights = [numpy_helper.from_array(np.ones((2, 3), np.float32), "w"),
               helper.make_tensor("b", f32, [3], [1.0, 2.0, 3.0]),
               helper.make_tensor("half", TensorProto.FLOAT16, [3], np.ones(3, np.float16).view(np.uint16).tobytes(), raw=True),
               helper.make_tensor("packed", TensorProto.INT4, [3], [1, -2, 3])]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["c"]),
             helper.make_node("Cast", ["half"], ["h"], to=f32), helper.make_node("Mul", ["c", "h"], ["d"]),
             helper.make_node("Cast", ["packed"], ["p"], to=f32), helper.make_node("Sub", ["d", "p"], ["e"]),
             helper.make_node("Reshape", ["e", "shape"], ["y"])]
    weights.append(helper.make_tensor("shape", i64, [1], [-1]))
    save("arithmetic", helper.make_graph(nodes, "g", [value("x")], [value("y", f32, ["M"])], weights), opset=21)


def control():
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["n"])], "t", [], [value("n")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "e", [], [value("o")])
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["s2"]), helper.make_node("ReduceSum", ["s2"], ["r"], keepdims=0),
         helper.make_node("Identity", ["c"], ["c2"])], "b",
        [value("i", i64, []), value("c", bool_, []), value("s")], [value("c2", bool_, []), value("s2"), value("r", f32, [])])
    nodes = [helper.make_node("If", ["cond"], ["y"], then_branch=then, else_branch=other),
             helper.make_node("Loop", ["trips", "", "y"], ["z", "sums"], body=body)]
    graph = helper.make_graph(nodes, "g", [value("x"), value("cond", bool_, [])], [value("z"), value("sums", f32, ["T"])],
                              [helper.make_tensor("trips", i64, [], [3])])
    save("control", graph)


def structures():
    sequence = helper.make_tensor_sequence_value_info("seq", f32, None)
    optional = helper.make_value_info("opt", helper.make_optional_type_proto(helper.make_tensor_type_proto(f32, [2])))
    nodes = [helper.make_node("SequenceInsert", ["seq", "x"], ["s1"]), helper.make_node("SequenceAt", ["s1", "last"], ["y"]),
             helper.make_node("OptionalHasElement", ["opt"], ["has"]),
             helper.make_node("Constant", [], ["words"], value_strings=["a", "bc"]),
             helper.make_node("Concat", ["words", "more"], ["text"], axis=0)]
    graph = helper.make_graph(nodes, "g", [value("x"), sequence, optional],
                              [value("y"), value("has", bool_, []), value("text", str_, ["K"])],
                              [helper.make_tensor("last", i64, [], [-1]), helper.make_tensor("more", str_, [1], [b"def"])])
    save("structures", graph)


def functions():
    inner = helper.make_function("local", "scale", ["a"], ["b"],
                                 [helper.make_node("Constant", [], ["k"]), helper.make_node("Mul", ["a", "k"], ["b"])],
                                 [helper.make_opsetid("", 18)], ["factor"])
    reference = inner.node[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "factor", 1
    outer = helper.make_function("local", "twice", ["a"], ["c"],
                                 [helper.make_node("scale", ["a"], ["b"], domain="local", factor=2.0),
                                  helper.make_node("scale", ["b"], ["c"], domain="local", factor=3.0)],
                                 [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)])
    sparse = helper.make_sparse_tensor(helper.make_tensor("sp", f32, [2], [1.0, 2.0]), helper.make_tensor("idx", i64, [2], [0, 3]), [4])
    nodes = [helper.make_node("twice", ["x"], ["t"], domain="local"), helper.make_node("Reshape", ["sp", "s"], ["m"]),
             helper.make_node("MatMul", ["t", "m"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], [helper.make_tensor("s", i64, [2], [2, 2])],
                              sparse_initializer=[sparse])
    save("functions", graph, [inner, outer], extra=[helper.make_opsetid("local", 1)])


if __name__ == "__main__":
    arithmetic()
    control()
    structures()
    functions()
