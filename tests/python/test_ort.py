"""selkie.ort against what onnxruntime's API promises."""
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import models
import selkie
from selkie import ort


@pytest.fixture
def session():
    return ort.InferenceSession(models.one_node().SerializeToString(), providers=["CPUExecutionProvider"])


def test_run(session):
    x = np.array([-1, 2], np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [0, 2]
    assert session.run(["y"], {"x": x}, ort.RunOptions())[0].tolist() == [0, 2]
    assert session.run([], {"x": [-1.0, 2.0]})[0].tolist() == [0, 2]
    assert session.run(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})[0].tolist() == [0, 2]


def test_what_it_says_of_itself():
    dims = [models.tensor("x", [None, "N", 3])]
    proto = models.model([helper.make_node("Relu", ["x"], ["y"])], dims, [models.tensor("y", [None, "N", 3])])
    proto.producer_name, proto.doc_string, proto.model_version = "someone", "what for", 7
    helper.set_model_props(proto, {"labels": "a,b"})
    session = ort.InferenceSession(proto.SerializeToString())
    (x,) = session.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", [None, "N", 3])
    assert repr(x) == "NodeArg(name='x', type='tensor(float)', shape=[None, 'N', 3])"
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.description, meta.version, meta.graph_name) == ("someone", "what for", 7, "g")
    assert meta.custom_metadata_map == {"labels": "a,b"}
    assert session.get_providers() == ["CPUExecutionProvider"] == ort.get_available_providers()
    assert ort.get_device() == "CPU" and session.get_overridable_initializers() == []


def test_errors(session, tmp_path):
    x = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match=r"Required inputs \(\['x'\]\) are missing from input feed \(\[\]\)"):
        session.run(None, {})
    cases = [(None, {"x": x.astype(float)}, r"Unexpected input data type. Actual: \(tensor\(double\)\) , expected"),
             (None, {"x": np.zeros((2, 2), np.float32)}, "Invalid rank for input: x Got: 2 Expected: 1"),
             (["q"], {"x": x}, "Invalid output name:q"), (None, {"x": x, "z": x}, "Invalid input name: z")]
    for names, feeds, message in cases:
        with pytest.raises(ort.InvalidArgument, match=message) as error:
            session.run(names, feeds)
        assert str(error.value).startswith("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : ")
        assert isinstance(error.value, selkie.Error)
    with pytest.raises(ort.NoSuchFile, match="File doesn't exist"):
        ort.InferenceSession(str(tmp_path / "none.onnx"))
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(b"\xff\xff\xff")
    with pytest.raises(ort.Fail):
        ort.InferenceSession(models.one_node("NoSuchOperator").SerializeToString())
    with pytest.raises(TypeError, match="Unable to load from type '<class 'int'>'"):
        ort.InferenceSession(3)


def test_options():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.some_attribute_of_a_later_version = 3
    options.some_method_of_a_later_version("a")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    options.add_free_dimension_override_by_name("N", 2)
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not"):
        session = ort.InferenceSession(models.one_node().SerializeToString(), options, [("CUDAExecutionProvider", {})])
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]
    with pytest.raises(ort.InvalidArgument, match="constraints"):
        session.run(None, {"x": np.ones(3, np.float32)})
    assert session.get_session_options() is options


def test_bindings(session):
    binding = session.io_binding()
    x, y = np.array([-1, 2], np.float32), np.zeros(2, np.float32)
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [0, 2]
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    assert y.tolist() == [0, 2]
    given = ort.OrtValue.ortvalue_from_shape_and_type([2], np.float32)
    binding.bind_ortvalue_output("y", given)
    session.run_with_iobinding(binding)
    assert given.numpy().tolist() == [0, 2] and given.data_type() == "tensor(float)" and given.shape() == [2]
    binding.bind_output("y", "cpu", 0, np.float32, (3,), np.zeros(3, np.float32).ctypes.data)
    with pytest.raises(ort.InvalidArgument, match="memory bound"):
        session.run_with_iobinding(binding)


def test_run_async(session):
    done, got = threading.Event(), []

    def finished(results, user_data, error):
        got.extend([results, user_data, error])
        done.set()

    session.run_async(None, {"x": np.ones(1, np.float32)}, finished, "mine")
    assert done.wait(10) and got[0][0].tolist() == [1] and got[1:] == ["mine", ""]


def test_maps():
    node = helper.make_node("ZipMap", ["x"], ["m"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])
    value = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    out = helper.make_value_info("m", helper.make_sequence_type_proto(value))
    graph = helper.make_graph([node], "g", [models.tensor("x", ["N", 2])], [out])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)],
                              ir_version=10)
    session = ort.InferenceSession(proto.SerializeToString())
    assert session.get_outputs()[0].type == "seq(map(string,tensor(float)))"
    assert session.run(None, {"x": np.array([[1, 2]], np.float32)})[0] == [{"a": 1.0, "b": 2.0}]


@pytest.mark.parametrize("how", ["script", "module"])
def test_alias(tmp_path, how):
    onnx.save(models.one_node(), tmp_path / "m.onnx")
    (tmp_path / "program.py").write_text("""
import sys
import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import onnxruntime.capi._pybind_state
session = ort.InferenceSession(sys.argv[1], ort.SessionOptions(), providers=ort.get_available_providers())
try:
    session.run(None, {"x": np.zeros((1, 1), np.float32)})
except InvalidArgument:
    print(ort.__name__, session.run(None, {"x": np.ones(1, np.float32)})[0])
""")
    program = ["program.py"] if how == "script" else ["-m", "program"]
    run = subprocess.run([sys.executable, "-m", "selkie.ort", *program, "m.onnx"], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout == "selkie.ort [1.]\n", run.stderr
