"""selkie.ort against what onnxruntime's API promises."""
import collections
import json
import pathlib
import re
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import models
import selkie
from selkie import ort
from selkie.ort.capi import onnxruntime_pybind11_state as state


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
    for wrong in (3, bytearray(b""), models.one_node()):
        with pytest.raises(TypeError, match="Unable to load from type '<class '"):
            ort.InferenceSession(wrong)
    with pytest.raises(TypeError):
        session.run(["y"], {"x": x}, {})
    with pytest.raises(AttributeError, match="keys"):
        session.run(None, [x])


def one(inputs, *nodes, outputs=("y",), opset=21, **types) -> bytes:
    ports = [models.tensor(name, ["N"]) for name in inputs]
    results = [models.tensor(name, ["N"], types.get(name, TensorProto.FLOAT)) for name in outputs]
    return models.model(list(nodes), ports, results, opset).SerializeToString()


# What onnxruntime 1.31.1 raises for each.
@pytest.mark.parametrize(("model", "kind"), [
    (b"", ort.InvalidArgument), (b"\xff\xff\xff", ort.InvalidProtobuf), (b"hello world", ort.InvalidProtobuf),
    (onnx.ModelProto(ir_version=8).SerializeToString(), ort.InvalidArgument),
    (one("x", helper.make_node("NoSuchOperator", ["x"], ["y"])), ort.InvalidGraph),
    (one("x", helper.make_node("Add", ["x", "q"], ["y"])), ort.InvalidArgument),
    (one("x", helper.make_node("Concat", ["x", "x"], ["y"])), ort.InvalidGraph),
    (one("x", helper.make_node("Relu", ["x"], ["y"], foo=3)), ort.InvalidGraph),
    (one("x", helper.make_node("Relu", ["x", "x"], ["y"])), ort.InvalidGraph),
    (one("x", helper.make_node("And", ["x", "x"], ["y"]), y=TensorProto.BOOL), ort.InvalidGraph),
    (one("x", helper.make_node("Relu", ["x"], ["z"])), ort.Fail),
    (one("x", helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["y"])), ort.Fail),
    (one("x", helper.make_node("Add", ["x", "z"], ["y"]), helper.make_node("Relu", ["y"], ["z"])), ort.Fail),
    (one("x", helper.make_node("Relu", ["x"], ["y"]), opset=99), ort.Fail),
    (one("x", helper.make_node("Relu", ["x"], ["y"]), y=TensorProto.INT64), ort.Fail),
])
def test_models_that_are_refused(model, kind):
    with pytest.raises(selkie.Error) as error:
        ort.InferenceSession(model)
    assert type(error.value) is kind, error.value


def test_files_that_are_refused(tmp_path):
    for content, kind in [(b"", ort.InvalidArgument), (b"\xff\xff", ort.InvalidProtobuf), (b"\0\0\0\0ORTM", ort.NotImplemented)]:
        (tmp_path / "m.onnx").write_bytes(content)
        with pytest.raises(kind, match="Load model from .*m.onnx failed:"):
            ort.InferenceSession(tmp_path / "m.onnx")
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(tmp_path)


@pytest.mark.parametrize("quickly", [True, False])
def test_runs_that_fail(quickly):
    """The same classes whether a feed is a dict, which is taken as it is, or another mapping."""
    feed = dict if quickly else collections.UserDict
    x = np.zeros(2, np.float32)
    session = ort.InferenceSession(models.one_node().SerializeToString())
    assert session.run(None, feed(x=x))[0].tolist() == [0, 0]
    with pytest.raises(ort.InvalidArgument, match="Unexpected input data type"):
        session.run(None, feed(x=x.astype(float)))
    with pytest.raises(ValueError, match="Required inputs"):
        session.run(None, feed())
    reshape = models.model([helper.make_node("Reshape", ["x", "i"], ["y"])],
                           [models.tensor("x", ["N"]), models.tensor("i", ["M"], TensorProto.INT64)], [models.tensor("y", None)])
    with pytest.raises(ort.Fail, match="do not fit shape"):
        ort.InferenceSession(reshape.SerializeToString()).run(None, feed(x=x, i=np.array([5])))


def test_providers():
    model = models.one_node().SerializeToString()
    for providers, options in [([3], None), (["CPUExecutionProvider"], [{}, {}]), ({"CPUExecutionProvider"}, None)]:
        with pytest.raises(ValueError, match="provider"):
            ort.InferenceSession(model, providers=providers, provider_options=options, enable_fallback=0)
        assert ort.InferenceSession(model, None, providers, options).get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="Duplicate provider"):
        ort.InferenceSession(model, providers=["CPUExecutionProvider"] * 2)
    session = ort.InferenceSession(model, providers=[("CPUExecutionProvider", {"a": 1})], disabled_optimizers=["b"])
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Unknown Provider Type: Foo"):
        session.set_providers(["Foo"])
    options = ort.SessionOptions()
    options.add_provider_for_devices(ort.get_ep_devices(), {})
    assert options.has_providers()
    with pytest.raises(ort.InvalidArgument, match="CUDAExecutionProvider"):
        options.add_provider("CUDAExecutionProvider", {})


def test_options():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    assert str(options.execution_mode) == "ExecutionMode.ORT_SEQUENTIAL" and options.log_severity_level == -1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError, match="does not have configuration with key: q"):
        options.get_session_config_entry("q")
    for kind in (ort.SessionOptions, ort.RunOptions):
        for use in (lambda o: o.intra_op_num_thread, lambda o: setattr(o, "intra_op_num_thread", 1), lambda o: o.ad_initializer()):
            with pytest.raises(AttributeError, match="has no attribute"):
                use(kind())
    inherited = type("Mine", (ort.SessionOptions,), {})()
    inherited.intra_op_num_threads = 1
    for name, wrong in [("intra_op_num_threads", "a"), ("intra_op_num_threads", 1.5), ("logid", 3)]:
        with pytest.raises(TypeError):
            setattr(options, name, wrong)
    with pytest.raises(NotImplementedError, match="custom"):
        options.register_custom_ops_library("custom.so")
    with pytest.raises(ort.NotImplemented, match="ep.context_enable"):
        options.add_session_config_entry("ep.context_enable", "1")
    options.add_free_dimension_override_by_name("N", 2)
    options.add_free_dimension_override_by_name("Q", 7)
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not"):
        session = ort.InferenceSession(models.one_node().SerializeToString(), options, [("CUDAExecutionProvider", {})])
    assert session.get_inputs()[0].shape == session.get_outputs()[0].shape == [2]
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]
    with pytest.raises(ort.InvalidArgument, match="index: 0 Got: 3 Expected: 2"):
        session.run(None, {"x": np.ones(3, np.float32)})
    assert session.get_session_options() is options


def test_what_is_ignored_is_in_the_log(caplog):
    with caplog.at_level("INFO", "selkie.ort"):
        options = ort.SessionOptions()
        options.enable_mem_pattern = False
        options.enable_cpu_mem_arena = True  # as it is anyway
        options.enable_profiling = False
        options.add_session_config_entry("session.disable_prepacking", "1")
        providers = [("CPUExecutionProvider", {"use_arena": 1})]
        ort.InferenceSession(models.one_node().SerializeToString(), options, providers, disabled_optimizers=["ConstantFolding"])
    said = ["SessionOptions.enable_mem_pattern", "SessionOptions' entry session.disable_prepacking", "CPUExecutionProvider's use_arena",
            "disabled_optimizers' ConstantFolding"]
    assert [record.message for record in caplog.records] == [f"{what} has no meaning here and is ignored" for what in said]


def test_canceling():
    options, run_options = ort.SessionOptions(), ort.RunOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(ort.ModelLoadCanceled):
        ort.InferenceSession(models.one_node().SerializeToString(), options)
    options.set_load_cancellation_flag(False)
    session = ort.InferenceSession(models.one_node().SerializeToString(), options)
    run_options.terminate = True
    with pytest.raises(ort.Fail, match="Exiting due to terminate flag being set to true"):
        session.run(None, {"x": np.ones(3, np.float32)}, run_options)
    run_options.add_run_config_entry("a", "b")
    assert run_options.get_run_config_entry("a") == "b"
    with pytest.raises(RuntimeError, match="RunOptions does not have configuration with key: c"):
        run_options.get_run_config_entry("c")


WEIGHTS = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")
PRODUCT = models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], [models.tensor("x", ["N", 3])], [models.tensor("y", None)],
                       initializer=[onnx.numpy_helper.from_array(np.ones((3, 5), np.float32), "w")])
SUM = models.model([helper.make_node("Add", ["x", "w"], ["y"])], [models.tensor("x", ["N", 2])], [models.tensor("y", ["N", 2])],
                   initializer=[WEIGHTS])


# Declared shapes of inputs and outputs, what onnxruntime 1.31.1 says of the output, and the operator.
@pytest.mark.parametrize(("x", "y", "said", "node"), [
    (["N", 3], None, ["N", 5], PRODUCT.graph.node[0]), (["N", 3], [None, None], ["N", 5], PRODUCT.graph.node[0]),
    (["N", 3], ["A", "B"], ["A", 5], PRODUCT.graph.node[0]), ([None, 3], None, [None, 5], PRODUCT.graph.node[0]),
    (["N", 3], None, [None, 3], helper.make_node("Concat", ["x", "x"], ["y"], axis=0)),
    (["N", 3], ["M", None], ["M", 3], helper.make_node("Concat", ["x", "x"], ["y"], axis=0)),
    (["N", "M"], None, [1, None], helper.make_node("Flatten", ["x"], ["y"], axis=0)),
    ([], None, [], helper.make_node("Relu", ["x"], ["y"])), (None, None, [], helper.make_node("Relu", ["x"], ["y"])),
])
def test_shapes_of_outputs(x, y, said, node):
    proto = models.model([node], [models.tensor("x", x)], [models.tensor("y", y)], initializer=PRODUCT.graph.initializer)
    session = ort.InferenceSession(proto.SerializeToString())
    assert session.get_outputs()[0].shape == said and session.get_inputs()[0].shape == (x or [])


def test_types_of_outputs_that_are_not_declared():
    proto = onnx.ModelProto.FromString(PRODUCT.SerializeToString())
    del proto.graph.output[:]
    proto.graph.output.append(onnx.ValueInfoProto(name="y"))
    (y,) = ort.InferenceSession(proto.SerializeToString()).get_outputs()
    assert (y.type, y.shape) == ("tensor(float)", ["N", 5])


def run_sum(options, proto=SUM):
    return ort.InferenceSession(proto.SerializeToString(), options).run(None, {"x": np.zeros((1, 2), np.float32)})[0].tolist()


def test_initializers_are_replaced():
    def replaced(name, array):
        options = ort.SessionOptions()
        options.add_initializer(name, ort.OrtValue.ortvalue_from_numpy(array))
        return run_sum(options)

    assert replaced("w", np.array([5, 6], np.float32)) == [[5, 6]]
    assert replaced("w", np.array([5], np.float32)) == [[5, 5]]
    assert replaced("q", np.array([5, 6], np.float32)) == [[1, 2]]
    with pytest.raises(ort.InvalidArgument, match="initializer w has elements"):
        replaced("w", np.array([5, 6]))
    options = ort.SessionOptions()
    with pytest.raises(RuntimeError, match="must be an OrtValue"):
        options.add_initializer("w", np.zeros(2))
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32)))
    with pytest.raises(RuntimeError, match="already been added: w"):
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32)))


def test_initializers_in_other_files(tmp_path):
    proto = onnx.ModelProto.FromString(SUM.SerializeToString())
    onnx.save_model(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    content = (tmp_path / "m.bin").read_bytes()
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    five = ort.OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32))

    def with_call(method, *arguments, proto=proto):
        options = ort.SessionOptions()
        getattr(options, method)(*arguments)
        return run_sum(options, proto)

    assert with_call("add_external_initializers", ["w"], [five]) == [[5, 6]]
    assert with_call("add_session_config_entry", "session.model_external_initializers_file_folder_path", str(tmp_path)) == [[1, 2]]
    in_memory = "add_external_initializers_from_files_in_memory"
    assert with_call(in_memory, ["m.bin"], [memoryview(content)], [len(content)]) == [[1, 2]]
    for wrong, message in [((["z.bin"], [content], [8]), "External file: m.bin not found"), ((["m.bin"], [content], [4]), "out of bounds")]:
        with pytest.raises(ort.Fail, match=message):
            with_call(in_memory, *wrong)
    for names, wrong in [(["w", "u"], [5, 6]), (["w"], [5]), (["w"], [[5, 6]])]:
        values = [ort.OrtValue.ortvalue_from_numpy(np.array(wrong, np.float32)) for _ in names]
        with pytest.raises(ort.Fail, match="Failed to find existing initializer with name u|do not match: w"):
            with_call("add_external_initializers", names, values)
    with pytest.raises(RuntimeError, match="already been added: w"):
        ort.SessionOptions().add_external_initializers(["w", "w"], [five, five])
    with pytest.raises(ort.Fail, match="non-external initializer"):
        with_call("add_external_initializers", ["w"], [five], proto=SUM)
    with pytest.raises(ort.Fail, match="m.bin"):
        run_sum(None, proto)
    with pytest.raises(RuntimeError, match="equal length"):
        ort.SessionOptions().add_external_initializers(["w", "u"], [five])
    # Others than those replaced are still found beside the model's file.
    two = models.model([helper.make_node("Sum", ["x", "w", "v"], ["y"])], SUM.graph.input, SUM.graph.output,
                       initializer=[WEIGHTS, onnx.numpy_helper.from_array(np.array([10, 20], np.float32), "v")])
    onnx.save_model(two, tmp_path / "two.onnx", save_as_external_data=True, location="two.bin", size_threshold=0)
    options = ort.SessionOptions()
    options.add_initializer("w", five)
    session = ort.InferenceSession(tmp_path / "two.onnx", options)
    assert session.run(None, {"x": np.zeros((1, 2), np.float32)})[0].tolist() == [[15, 26]]
    # What is written as the optimised model needs no other files.
    options.optimized_model_filepath = str(tmp_path / "elsewhere.onnx")
    ort.InferenceSession(tmp_path / "two.onnx", options)
    (tmp_path / "two.bin").unlink()
    assert run_sum(None, onnx.load(tmp_path / "elsewhere.onnx")) == [[15, 26]]


def test_sizes_by_denotation():
    proto = onnx.ModelProto.FromString(SUM.SerializeToString())
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 1)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 9)
    session = ort.InferenceSession(proto.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [1, 2]
    with pytest.raises(ort.InvalidArgument, match="index: 0 Got: 3 Expected: 1"):
        session.run(None, {"x": np.zeros((3, 2), np.float32)})


def test_the_optimized_model_is_the_model(tmp_path, caplog):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32)))
    assert run_sum(options) == [[5, 6]] == run_sum(None, onnx.load(tmp_path / "optimized.onnx"))
    assert "is the model as it was given" in caplog.text
    options.optimized_model_filepath = str(tmp_path / "none" / "optimized.onnx")
    with pytest.raises(ort.InvalidArgument, match="optimized_model_filepath"):
        run_sum(options)


def test_compiled_models_are_not_changed(tmp_path):
    selkie.compile(SUM).save(tmp_path / "m.selkie")
    session = ort.InferenceSession(tmp_path / "m.selkie")
    assert session.run(None, {"x": np.zeros((1, 2), np.float32)})[0].tolist() == [[1, 2]]
    assert session.get_inputs()[0].shape == ["N", 2] and session.get_modelmeta().graph_name == ""
    for change in (lambda o: o.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32))),
                   lambda o: o.add_free_dimension_override_by_name("N", 2)):
        options = ort.SessionOptions()
        change(options)
        with pytest.raises(ort.NotImplemented, match="too late for a compiled model"):
            ort.InferenceSession(tmp_path / "m.selkie", options)


def test_initializers_that_are_inputs():
    proto = onnx.ModelProto.FromString(SUM.SerializeToString())
    proto.graph.input.append(models.tensor("w", [2]))
    session = ort.InferenceSession(proto.SerializeToString())
    assert [i.name for i in session.get_inputs()] == ["x"] and [i.name for i in session.get_overridable_initializers()] == ["w"]
    x, w = np.zeros((1, 2), np.float32), np.array([5, 6], np.float32)
    for given, result in [({}, [[1, 2]]), ({"w": w}, [[5, 6]]), ({"w": w + 1}, [[6, 7]]), ({}, [[1, 2]])]:
        assert session.run(None, {"x": x, **given})[0].tolist() == result
    with pytest.raises(ort.InvalidArgument, match="Unexpected input data type"):
        session.run(None, {"x": x, "w": w.astype(int)})
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_input("w", w)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[5, 6]]


def test_profiling(tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(PRODUCT.SerializeToString(), options)
    for _ in range(3):
        session.run(None, {"x": np.ones((2, 3), np.float32)})
    path = session.end_profiling()
    assert re.fullmatch(r"profile_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{3}\.json", pathlib.Path(path).name)
    events = json.loads(pathlib.Path(path).read_text())
    kernels = [event for event in events if event["cat"] == "Node"]
    runs = [event for event in events if event["name"] == "model_run"]
    assert len(kernels) == 3 == len(runs) and all(event["ph"] == "X" and event["dur"] > 0 for event in kernels)
    assert kernels[0]["name"].endswith("_kernel_time") and kernels[0]["args"]["provider"] == "CPUExecutionProvider"
    assert kernels[0]["args"]["op_name"] == "product" and "MatMul_0" in kernels[0]["name"]
    for run, kernel in zip(runs, kernels, strict=True):
        assert run["ts"] <= kernel["ts"] and kernel["ts"] + kernel["dur"] <= run["ts"] + run["dur"]
    assert session.end_profiling() == "" and session.run(None, {"x": np.ones((2, 3), np.float32)})[0].shape == (2, 5)
    assert ort.InferenceSession(PRODUCT.SerializeToString()).end_profiling() == ""


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
    for name, memory in [("y", np.zeros(3, np.float32)), ("y", np.zeros(2, np.int32))]:
        binding.bind_output(name, "cpu", 0, memory.dtype, memory.shape, memory.ctypes.data)
        with pytest.raises(RuntimeError, match="memory bound"):
            session.run_with_iobinding(binding)
    with pytest.raises(ValueError, match="`element_type` and `shape`"):
        binding.bind_output("y", buffer_ptr=y.ctypes.data)
    with pytest.raises(ValueError, match="the session that created it"):
        ort.InferenceSession(models.one_node().SerializeToString()).run_with_iobinding(binding)
    for use in (lambda: binding.bind_cpu_input("q", x), lambda: binding.bind_ortvalue_input("q", given),
                lambda: binding.bind_cpu_input("x", [1.0]), lambda: binding.bind_output("y", "cuda")):
        with pytest.raises(RuntimeError):
            use()
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="At least one output"):
        session.run_with_iobinding(binding)
    binding.bind_output("q")
    with pytest.raises(RuntimeError, match="Invalid output name:q"):
        session.run_with_iobinding(binding)


def test_what_packages_read_of_the_inner_objects(session):
    x = np.array([-1, 2], np.float32)
    assert session._sess.run(["y"], {"x": x}, None)[0].tolist() == [0, 2]
    assert session._model_path is None and session._model_bytes == models.one_node().SerializeToString()
    assert session._inputs_meta == session._sess.inputs_meta == session.get_inputs()
    assert session._outputs_meta == session.get_outputs() and session._providers == session.get_providers()
    assert session._sess_options is session.get_session_options()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    binding = session.io_binding()
    binding._iobinding.bind_input("x", x)
    binding._iobinding.bind_ortvalue_output("y", value._ortvalue)
    session._sess.run_with_iobinding(binding._iobinding, None)
    assert binding._iobinding.get_outputs()[0].numpy().tolist() == [0, 2] == x.tolist()
    device = ort.OrtDevice.make("cpu", 0)
    binding._iobinding.bind_output("y", device._get_c_device())
    session.run_with_iobinding(binding)
    assert binding.get_outputs_as_ortvaluevector().to_dlpacks(None)
    assert ort.OrtValue(binding.get_outputs_as_ortvaluevector()[0]).shape() == [2]
    fetches = state.OrtValueVector()
    session.run_with_ortvaluevector(ort.RunOptions(), ["x"], [value._get_c_value()], ["y"], fetches, [device._get_c_device()])
    assert fetches[0].numpy().tolist() == [0, 2]
    assert session.run_with_ort_values(None, {"x": value})[0].data_type() == "tensor(float)"


def test_what_runs_where(session):
    assert [info.name for info in session.get_input_memory_infos()] == ["Cpu"]
    assert [device.ep_name for device in session.get_input_epdevices()] == ["CPUExecutionProvider"]
    with pytest.raises(ort.Fail, match="record_ep_graph_assignment_info"):
        session.get_provider_graph_assignment_info()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    (part,) = ort.InferenceSession(models.one_node().SerializeToString(), options).get_provider_graph_assignment_info()
    assert part.ep_name == "CPUExecutionProvider" and [node.op_type for node in part.get_nodes()] == ["Relu"]


def test_values():
    x = np.array([1, 2], np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(x)
    assert np.shares_memory(np.asarray(value), x) and np.asarray(value, np.float64).tolist() == [1, 2]
    assert (value.element_type(), value.data_type(), value.tensor_size_in_bytes()) == (1, "tensor(float)", 8)
    value.update_inplace(ort.OrtValue.ortvalue_from_numpy(np.array([[3], [4]], np.float32)))
    assert x.tolist() == [3, 4]
    for wrong, kind in [(np.zeros(3, np.float32), RuntimeError), (np.zeros(2, np.int32), RuntimeError), ([1, 2], TypeError)]:
        with pytest.raises(kind):
            value.update_inplace(wrong)
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32))], [value])
    assert x.tolist() == [5, 6]
    bits = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.uint16), TensorProto.BFLOAT16)
    assert bits.data_type() == "tensor(bfloat16)" and bits.element_type() == TensorProto.BFLOAT16
    with pytest.raises(RuntimeError, match="Items size"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.uint8), TensorProto.BFLOAT16)
    for device in ("cuda", "npu", "gpu", "dml"):
        with pytest.raises(RuntimeError, match=f"no memory of a device '{device}'"):
            ort.OrtValue.ortvalue_from_numpy(x, device)
    with pytest.raises(Exception, match="Unsupported device type: foo"):
        ort.OrtDevice.make("foo", 0)
    with pytest.raises(ValueError, match="OrtValue"):
        ort.OrtValue(x)
    for name in ("as_sparse_tensor", "ort_value_from_sparse_tensor"):
        with pytest.raises(ort.NotImplemented, match=name):
            getattr(value, name)(*[None][: name.startswith("ort")])
    device = ort.OrtDevice.make("cuda", 1)
    assert (device.device_type(), device.device_id(), device.device_vendor_id()) == (1, 1, 0x10DE) == (
        state.OrtDevice.cuda(), 1, ort.OrtDeviceVendorId.NVIDIA)


def test_bytes_without_a_type_are_texts():
    session = ort.InferenceSession(models.one_node("Identity", TensorProto.STRING).SerializeToString())
    assert session.run(None, {"x": np.array([b"must", b"have"], np.void)})[0].tolist() == ["must", "have"]
    binding = session.io_binding()
    with pytest.raises(RuntimeError, match="Only binding non-string Tensors"):
        binding.bind_input("x", "cpu", 0, np.dtype("U1"), [1], np.zeros(4, np.uint8).ctypes.data)


def test_dlpack_of_values():
    x = np.array([1, 2], np.float32)
    assert not state.is_dlpack_uint8_tensor(x.__dlpack__()) and state.is_dlpack_uint8_tensor(np.zeros(2, np.uint8).__dlpack__())
    value = ort.OrtValue.ortvalue_from_numpy(x)
    for capsule in (value.__dlpack__(), value._ortvalue.to_dlpack()):
        again = ort.OrtValue.from_dlpack(capsule)
        assert again.data_ptr() == x.ctypes.data
    assert ort.OrtValue.from_dlpack(value).data_ptr() == np.from_dlpack(value).ctypes.data == x.ctypes.data
    assert ort.OrtValue.from_dlpack(np.ones(2, bool)).data_type() == "tensor(bool)"
    assert state.OrtValue.from_dlpack(np.ones(2, np.uint8).__dlpack__(), True).data_type() == "tensor(bool)"
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(value._ortvalue.to_dlpack()).data_ptr() == x.ctypes.data
    assert ort.OrtValue.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2))).numpy().tolist() == [1, 1]


def test_sequences_as_values():
    out = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
    proto = models.model([helper.make_node("SequenceConstruct", ["x", "x"], ["y"])], [models.tensor("x", ["N"])], [out])
    session = ort.InferenceSession(proto.SerializeToString())
    x = ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32))
    (y,) = session.run_with_ort_values(None, {"x": x})
    assert y.is_tensor_sequence() and not y.is_tensor() and y.data_type() == "seq(tensor(float))" and y.element_type() == 1
    with pytest.raises(RuntimeError, match="Tensors"):
        y.numpy()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert [item.tolist() for item in binding.copy_outputs_to_cpu()[0]] == [[1, 1], [1, 1]]


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
