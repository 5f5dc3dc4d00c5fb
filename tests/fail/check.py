"""Wrong models and wrong inputs: each gives exit code 1 and a message that says what is wrong and where."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
SELKIE = str(ROOT / "build/release/bin/selkie")
f32, i64, bool_ = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, dtype=f32, shape=("N", 3)):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs=None, outputs=None, weights=(), opset=18, domains=()):
    graph = helper.make_graph(nodes, "g", inputs or [info("x")], outputs or [info("y")], list(weights))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def node(op, inputs, outputs, **kw):
    return helper.make_node(op, inputs, outputs, name=kw.pop("name", f"{op}_node"), **kw)


def external(location, length="4", offset="0"):
    tensor = helper.make_tensor("w", f32, [1], [1.0])
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return model([node("Add", ["x", "w"], ["y"])], weights=[tensor])


def field(number, content):
    """One length-delimited field of a protobuf message, since the Python library refuses to nest this deep."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    return varint(number << 3 | 2) + varint(len(content)) + content


def deep_model(depth):
    leaf = helper.make_graph([node("Identity", ["x"], ["v"])], "leaf", [], [info("v")]).SerializeToString()
    output = field(12, info("v").SerializeToString())
    graph = leaf
    for _ in range(depth):
        arms = b"".join(field(5, field(1, name) + field(6, arm) + b"\xa0\x01\x05") for name, arm in ((b"then_branch", graph), (b"else_branch", leaf)))
        graph = field(1, field(1, b"c") + field(2, b"v") + field(4, b"If") + arms) + output
    inputs = b"".join(field(11, i.SerializeToString()) for i in (info("x"), info("c", bool_, [])))
    return b"\x08\x09" + field(8, b"\x10\x12") + field(7, graph + inputs)


def recursive_function():
    f = helper.make_function("local", "f", ["a"], ["b"], [helper.make_node("f", ["a"], ["b"], domain="local")],
                             [helper.make_opsetid("local", 1)])
    graph = helper.make_graph([node("f", ["x"], ["y"], domain="local")], "g", [info("x")], [info("y")])
    return helper.make_model(graph, functions=[f], opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local", 1)])


def int_weights(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


ADD = model([node("Add", ["x", "z"], ["y"])], [info("x"), info("z")])
ONE = model([node("Relu", ["x"], ["y"])])

# name, model (or bytes), inputs, parts of the message
CASES = [
    ("unknown operator", model([node("Frobnicate", ["x"], ["y"], domain="acme")], domains=["acme"]), None, ["'Frobnicate'", "'acme'", "Frobnicate_node"]),
    ("unknown operator of ONNX", model([node("Frobnicate", ["x"], ["y"])]), None, ["'Frobnicate'", "'ai.onnx'"]),
    ("cycle", model([node("Add", ["x", "b"], ["a"], name="first"), node("Neg", ["a"], ["b"], name="second"), node("Neg", ["b"], ["y"])]), None, ["cycle", "first", "second"]),
    ("duplicate result", model([node("Neg", ["x"], ["y"], name="one"), node("Abs", ["x"], ["y"], name="two")]), None, ["'y' is defined twice", "two"]),
    ("duplicate input", model([node("Neg", ["x"], ["y"])], [info("x"), info("x")]), None, ["two inputs named 'x'"]),
    ("result named as an input", model([node("Neg", ["x"], ["x"]), node("Neg", ["x"], ["y"])]), None, ["'x' is defined twice", "as an input"]),
    ("result named as an initialiser", model([node("Neg", ["x"], ["w"]), node("Neg", ["w"], ["y"])], weights=[int_weights("w", [1])]), None, ["'w' is defined twice", "as an initialiser"]),
    ("undefined operand", model([node("Neg", ["ghost"], ["y"])]), None, ["'ghost' is not defined", "Neg_node"]),
    ("undefined output", model([node("Neg", ["x"], ["z"])]), None, ["'y' is not defined"]),
    ("wrong dtype in the model", model([node("Exp", ["x"], ["y"])], [info("x", i64)]), None, ["Exp_node", "i64", "must be one of"]),
    ("dtypes differ in the model", model([node("Add", ["x", "z"], ["y"])], [info("x"), info("z", i64)]), None, ["Add_node", "i64", "must be f32"]),
    ("unknown attribute", model([node("Relu", ["x"], ["y"], volume=11)]), None, ["Relu_node", "no attribute 'volume'"]),
    ("attribute of a wrong kind", model([node("Concat", ["x"], ["y"], axis="one")]), None, ["Concat_node", "'axis' must be an integer"]),
    ("missing attribute", model([node("Concat", ["x"], ["y"])]), None, ["Concat_node", "'axis' is required"]),
    ("missing operand", model([node("Add", ["x"], ["y"])]), None, ["Add_node", "at least 2"]),
    ("opset of the future", model([node("Relu", ["x"], ["y"])], opset=99), None, ["opset 99"]),
    ("operator of a later opset", model([node("Gelu", ["x"], ["y"])], opset=7), None, ["Gelu", "opset 20", "opset 7"]),
    ("external data outside the folder", external("../secret"), None, ["'../secret'", "outside the model's folder"]),
    ("external data that is not there", external("weights.bin"), None, ["weights.bin", "cannot open"]),
    ("external data of a negative offset", external("model.onnx", offset="-4"), None, ["offset"]),
    ("external data beyond the file", external("model.onnx", length="99999999"), None, ["too few"]),
    ("tensor with too little data", model([node("Add", ["x", "w"], ["y"])], weights=[TensorProto(name="w", data_type=f32, dims=[3], raw_data=b"1234")]), None, ["'w'", "needs 12"]),
    ("tensor with absurd dims", model([node("Add", ["x", "w"], ["y"])], weights=[TensorProto(name="w", data_type=f32, dims=[2**40, 2**40])]), None, ["'w'", "too many elements"]),
    ("deep nesting", deep_model(200), None, ["nested more than 100 deep"]),
    ("very deep nesting", deep_model(1000), None, ["nested too deeply"]),
    ("recursive function", recursive_function(), None, ["'f' calls itself"]),
    ("empty file", b"", None, ["no graph"]),
    ("not a model", b"hello, world\n" * 100, None, ["not an ONNX model"]),
    ("missing input", ADD, ["x=random:2x3"], ["'z'", "missing"]),
    ("unknown input", ONE, ["q=random:2x3"], ["no input 'q'", "'x'"]),
    ("input given twice", ONE, ["x=random:2x3", "x=random:2x3"], ["'x' is given twice"]),
    ("wrong rank", ONE, ["x=random:2x3x4"], ["'x'", "rank 2", "[2, 3, 4]"]),
    ("wrong dim", ONE, ["x=random:2x4"], ["'x' dim 1 is 4, but must be 3"]),
    ("dims disagree", ADD, ["x=random:2x3", "z=random:5x3"], ["'z' dim 0 is 5", "dim 0 of 'x' (2)"]),
    ("dims do not broadcast", model([node("Add", ["x", "z"], ["y"])], [info("x"), info("z", f32, ["M", 3])]), ["x=random:2x3", "z=random:5x3"], ["Add_node", "do not broadcast", "2", "5"]),
    ("wrong dtype", ONE, ["x=ints.npy"], ["'x' must be of type f32, but is of i64"]),
    ("bad spec", ONE, ["x=random:2xx3"], ["'random:2xx3'"]),
    ("no such file", ONE, ["x=nowhere.npy"], ["nowhere.npy"]),
    ("absurd Expand", model([node("Expand", ["x", "s"], ["y"])], [info("x", f32, [1])], [info("y", f32, None)], [int_weights("s", [2**62])]), ["x=random:1"], ["too many elements", "Expand_node"]),
    ("absurd ConstantOfShape", model([node("ConstantOfShape", ["s"], ["y"])], weights=[int_weights("s", [2**31, 2**31])]), ["x=random:1x3"], ["ConstantOfShape_node"]),
    ("absurd Range", model([node("Range", ["a", "b", "d"], ["y"])], [info("x")], [info("y", i64, ["K"])], [int_weights("a", 0), int_weights("b", 2**62), int_weights("d", 1)]), ["x=random:1x3"], ["Range_node"]),
    ("absurd Tile", model([node("Tile", ["x", "s"], ["y"])], weights=[int_weights("s", [2**40, 2**40])]), ["x=random:1x3"], ["Tile_node"]),
    ("absurd Pad", model([node("Pad", ["x", "s"], ["y"])], weights=[int_weights("s", [0, 0, 2**62, 2**62])]), ["x=random:1x3"], ["Pad_node"]),
    ("index outside", model([node("Gather", ["x", "i"], ["y"])], outputs=[info("y", f32, None)], weights=[int_weights("i", 7)]), ["x=random:2x3"], ["Gather_node", "index 7 is outside"]),
    ("integer division by zero", model([node("Div", ["x", "x"], ["y"])], [info("x", i64)], [info("y", i64)]), ["x=zeros:1x3"], ["Div_node", "division by zero"]),
]


def targets(runs: bool) -> list[str | None]:
    if not runs:
        return [None]
    return ["ref", "cpu"]


def main() -> int:
    failed = 0
    cases = [(*case, target) for case in CASES for target in targets(case[2] is not None)]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/ints.npy", np.zeros((2, 3), np.int64))
        for name, content, inputs, parts, target in cases:
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
            command = [SELKIE, "check", "model.onnx"]
            if target is not None:
                command = [SELKIE, "run", "model.onnx", "--output", "out", "--target", target]
            for item in inputs or []:
                command += ["--input", item]
            run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
            missing = [part for part in parts if part not in run.stderr]
            partial = (pathlib.Path(folder) / "out").exists()
            if run.returncode != 1 or missing or run.stdout or partial:
                failed += 1
                print(f"FAILED {name} ({target or 'check'}): exit code {run.returncode}, not in the message: {missing}"
                      f"{', output was written' if partial or run.stdout else ''}\n  {run.stderr.strip()}")
    print(f"bad input: {len(cases) - failed} of {len(cases)} cases as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
