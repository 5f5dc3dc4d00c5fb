"""Small models for the tests of the Python package, as text IR and as ONNX."""
import onnx
from onnx import TensorProto, helper

ADD = """
const @one: f32[] = {1}
func @main(%x: f32[N, 2]) -> (y: f32[N, 2]) {
  %y = add(%x, @one)
  return %y
}
"""

TWO = """
func @main(%a: f32[N], %b: f32[N]) -> (sum: f32[N], difference: f32[N]) {
  %s = add(%a, %b)
  %d = sub(%a, %b)
  return %s, %d
}
"""

SAME = """
const @w: f32[2] = {1, 2}
func @main(%x: f32[N]) -> (x: f32[N], again: f32[N], w: f32[2]) {
  return %x, %x, @w
}
"""


def model(nodes, inputs, outputs, opset=21, **more) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def one_node(op="Relu", dtype=TensorProto.FLOAT, **attributes) -> onnx.ModelProto:
    return model([helper.make_node(op, ["x"], ["y"], **attributes)], [tensor("x", ["N"], dtype)], [tensor("y", ["N"], dtype)])
