"""selkie.compile and what it gives."""
import inspect
import io
import mmap
import os
import resource
import sys
import threading
import time

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import models
import selkie
from selkie import ort


@pytest.fixture
def text(tmp_path):
    def make(content, **options):
        path = tmp_path / "model.sk"
        path.write_text(content)
        return selkie.compile(path, threads=1, **options)

    return make


def test_sources(tmp_path):
    proto = models.one_node()
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    x = np.array([-1, 2], np.float32)
    with open(path, "rb") as file:
        for source in (path, str(path), proto, proto.SerializeToString(), io.BytesIO(path.read_bytes()), file):
            assert selkie.compile(source)(x).tolist() == [0, 2]


def test_ways_to_call(text):
    m = text(models.TWO)
    a, b = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    for got in (m(a, b), m({"a": a, "b": b}), m(a, b=b), m(b=b, a=a)):
        assert [g.tolist() for g in got] == [[4, 7], [-2, -3]]
    assert m.run({"a": a, "b": b})["difference"].tolist() == [-2, -3]
    assert m([1, 2], [3, 5])[0].dtype == np.float32


def test_ports(text):
    m = text(models.ADD)
    (x,) = m.inputs
    assert (x.name, x.dtype, x.shape, repr(x)) == ("x", np.float32, ("N", 2), "x: f32[N, 2]")
    assert repr(m) == "<selkie.Model (x: f32[N, 2]) -> (y: f32[N, 2])>"
    assert m.counts["kernels"] == 1


def test_out(text):
    m = text(models.TWO)
    a = np.ones(3, np.float32)
    out = (np.zeros(3, np.float32), np.zeros(3, np.float32))
    got = m(a, a, out=out)
    assert got[0] is out[0] and out[0].tolist() == [2, 2, 2]
    with pytest.raises(selkie.InputError, match=r"out for 'difference' is f32\[2\], but the output is f32\[3\]"):
        m(a, a, out=(out[0], np.zeros(2, np.float32)))
    single = text(models.ADD)
    y = np.empty((1, 2), np.float32)
    assert single(np.zeros((1, 2), np.float32), out=y) is y and y.tolist() == [[1, 1]]


def test_layouts(text):
    m = text(models.ADD)
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    for given in (x[::2], np.asfortranarray(x), x.astype(">f4"), x[:0]):
        assert np.array_equal(m(given), given + 1)
    x.flags.writeable = False
    assert np.array_equal(m(x), x + 1)


def test_outputs_are_the_callers_own(text):
    m = text(models.SAME)
    x = np.array([5, 6], np.float32)
    for result in m(x):
        result += 1
    assert x.tolist() == [5, 6]
    assert [r.tolist() for r in m(x)] == [[5, 6], [5, 6], [1, 2]]


def test_outputs_outlive_the_model(text):
    y = text(models.ADD)(np.zeros((100_000, 2), np.float32))
    assert y.sum() == 200_000 and y.flags.writeable


def test_errors(text, tmp_path):
    m = text(models.ADD, dims={"N": "1..4"})
    x = np.zeros((2, 2), np.float32)
    cases = [
        ((x.astype(np.float64),), {}, r"input 'x' must be of type f32, but is of f64"),
        ((np.zeros((2, 3), np.float32),), {}, r"input 'x' dim 1 is 3, but must be 2"),
        ((np.zeros(2, np.float32),), {}, r"input 'x' must have rank 2"),
        ((np.zeros((5, 2), np.float32),), {}, r"do not satisfy the model's constraints"),
        ((), {}, r"input 'x' \(f32\[N, 2\]\) is missing"),
        ((x, x), {}, r"takes 1 inputs, but 2 are given"),
        ((), {"z": x}, r"no input 'z'; its inputs are 'x'"),
        ((x,), {"x": x}, r"input 'x' is given twice"),
        (([[1.5, "a"]],), {}, r"input 'x'"),
        ((None,), {}, r"input 'x' .* is None"),
    ]
    for args, kwargs, message in cases:
        with pytest.raises(selkie.InputError, match=message):
            m(*args, **kwargs)
    assert m(x).tolist() == [[1, 1], [1, 1]]
    with pytest.raises(selkie.NotFoundError, match="No such file"):
        selkie.compile(tmp_path / "none.onnx")
    with pytest.raises(FileNotFoundError):
        selkie.load(tmp_path / "none.selkie")
    with pytest.raises(selkie.ModelError):
        selkie.compile(b"no model")
    with pytest.raises(selkie.ModelError, match="dims 'M == 3': no input has a size 'M'; there are: N"):
        text(models.ADD, dims={"M": 3})
    with pytest.raises(selkie.ModelError, match="a path, bytes"):
        selkie.compile(3)


def test_integers_are_not_cut(text):
    proto = models.one_node("Abs", TensorProto.INT64)
    with pytest.raises(selkie.InputError, match="must be of type i64"):
        selkie.compile(proto)([1.5])
    assert selkie.compile(proto)([-3]).tolist() == [3]


@pytest.mark.parametrize("dtype, onnx_type", [
    (np.float16, TensorProto.FLOAT16), (ml_dtypes.bfloat16, TensorProto.BFLOAT16), (np.float64, TensorProto.DOUBLE),
    (np.int8, TensorProto.INT8), (np.uint8, TensorProto.UINT8), (np.int32, TensorProto.INT32),
    (np.bool_, TensorProto.BOOL), (np.complex64, TensorProto.COMPLEX64), (ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E4M3FN)])
def test_dtypes(dtype, onnx_type):
    x = np.array([0, 1, 1, 0]).astype(dtype)
    y = selkie.compile(models.one_node("Identity", onnx_type))(x)
    assert y.dtype == dtype and np.array_equal(x, y)


def test_bits_stand_for_bfloat16():
    m = selkie.compile(models.one_node("Relu", TensorProto.BFLOAT16))
    x = np.array([-1, 2], ml_dtypes.bfloat16)
    assert m(x.view(np.uint16)).tolist() == [0, 2]


def test_strings():
    m = selkie.compile(models.one_node("Identity", TensorProto.STRING))
    for x in (np.array(["a", "bär", ""]), np.array(["a", "bär", ""], object), ["a", "bär", ""]):
        assert m(x).tolist() == ["a", "bär", ""]


def test_sequences_and_optionals():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    node = helper.make_node("SequenceInsert", ["s", "x"], ["t"])
    out = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    m = selkie.compile(models.model([node], [sequence, models.tensor("x", ["N"])], [out]))
    got = m([np.zeros(1, np.float32)], np.ones(2, np.float32))
    assert [g.tolist() for g in got] == [[0], [1, 1]]
    with pytest.raises(selkie.InputError, match="a list"):
        m(np.zeros(1, np.float32), np.ones(2, np.float32))

    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N"])
    optional = helper.make_value_info("o", helper.make_optional_type_proto(inner))
    has = selkie.compile(models.model([helper.make_node("OptionalHasElement", ["o"], ["h"])], [optional],
                                      [models.tensor("h", [], TensorProto.BOOL)]))
    assert has(None) == False and has(np.ones(2, np.float32)) == True  # noqa: E712


def test_reports(text, tmp_path):
    m = text(models.ADD)
    assert "target cpu" in str(m.explain()) and m.explain().json["cpu"]
    assert "<iframe" in m.explain()._repr_html_()
    assert "dim 0 = N" in str(m.explain("y"))
    assert "<svg" in m.plan(N=3).svg and "<pre>" in m.plan(N=3)._repr_html_()
    with pytest.raises(selkie.ModelError, match="no input has a size 'Q'; there are: N"):
        m.plan(Q=3)
    profile = m.profile(np.zeros((3, 2), np.float32), runs=2)
    profile.save(tmp_path / "trace.json")
    assert "GFLOP/s" in str(profile) and (tmp_path / "trace.json").read_text().startswith("{")


def test_save_and_load(text, tmp_path):
    m = text(models.ADD)
    m.save(tmp_path / "m.selkie")
    loaded = selkie.load(tmp_path / "m.selkie")
    assert repr(loaded) == repr(m)
    assert loaded(np.zeros((1, 2), np.float32)).tolist() == [[1, 1]]
    with pytest.raises(selkie.ModelError, match="is compiled"):
        loaded.explain()


def test_limits(tmp_path):
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["v"], ["w"])], "b",
                             [models.tensor("i", [], TensorProto.INT64), models.tensor("c", [], TensorProto.BOOL),
                              models.tensor("v", ["N"])],
                             [models.tensor("d", [], TensorProto.BOOL), models.tensor("w", ["N"])])
    node = helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)
    proto = models.model([node], [models.tensor("m", [], TensorProto.INT64), models.tensor("x", ["N"])],
                         [models.tensor("y", ["N"])])
    m = selkie.compile(models.one_node(), memory_limit=1000)
    with pytest.raises(selkie.LimitError, match="1000"):
        m(np.zeros(1000, np.float32))
    assert selkie.compile(proto)(3, [1.0]).tolist() == [1]


def test_threads(text):
    m = text(models.ADD, contexts=3)
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(300):
            x = random.random((random.integers(0, 400), 2), np.float32)
            if not np.array_equal(m(x), x + 1):
                failures.append(x.shape)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_fork():
    m = selkie.compile(models.one_node(), threads=2)
    x = np.linspace(-1, 1, 200_000, dtype=np.float32)
    expected = m(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(m(x), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_other_arrays(text):
    torch = pytest.importorskip("torch")
    m = text(models.ADD)
    x = torch.zeros(3, 2)
    y = torch.from_dlpack(m(x))
    assert y.sum() == 6
    assert np.array_equal(m(x.t().contiguous().t()), np.ones((3, 2)))
    bits = selkie.compile(models.one_node("Relu", TensorProto.BFLOAT16))(torch.tensor([-1.0, 2.0], dtype=torch.bfloat16))
    assert bits.tolist() == [0, 2]


class Producer:
    """An array of another library than NumPy, as far as anybody can see."""

    def __init__(self, array):
        self.array, self.asked = array, 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_by_dlpack(text):
    m = text(models.ADD)
    given = Producer(np.arange(6, dtype=np.float32).reshape(3, 2))
    assert np.array_equal(m(given), given.array + 1) and given.asked == 1
    assert np.array_equal(m(Producer(given.array[::2])), given.array[::2] + 1)  # not dense: copied
    with pytest.raises(selkie.InputError, match="must be of type f32, but is of f64"):
        m(Producer(given.array.astype(np.float64)))
    assert ort.OrtValue.from_dlpack(given).data_ptr() == given.array.ctypes.data


@pytest.mark.parametrize("kind", [np.asarray, Producer])
def test_inputs_are_read_where_they_lie(kind):
    """Of pages that nobody has written, a copy would take memory, but reading some of them does not."""
    size = 1 << 30
    pages = np.frombuffer(mmap.mmap(-1, size), np.float32).reshape(-1, 4)
    part = helper.make_node("Slice", ["x", "from", "to"], ["y"])
    bounds = [onnx.numpy_helper.from_array(np.array([at]), name) for name, at in (("from", 7), ("to", 9))]
    m = selkie.compile(models.model([part], [models.tensor("x", ["N", 4])], [models.tensor("y", None)], initializer=bounds))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert m(kind(pages)).tolist() == [[0] * 4] * 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < size >> 12  # kilobytes: a quarter


def test_other_threads_go_on_during_a_run():
    """The interpreter's lock is not taken away from the running thread: the other one has it only if a run lets go of it."""
    product = helper.make_node("MatMul", ["x", "x"], ["y"])
    m = selkie.compile(models.model([product], [models.tensor("x", ["N", "N"])], [models.tensor("y", ["N", "N"])]), threads=1)
    x = np.zeros((1000, 1000), np.float32)
    m(x)
    count, stop, interval = 0, threading.Event(), sys.getswitchinterval()

    def work():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0)

    other = threading.Thread(target=work)
    other.start()
    try:
        sys.setswitchinterval(1000)
        advanced = False
        for _ in range(50):
            before = count
            m(x)
            advanced = advanced or count > before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()
    assert advanced


def test_weights_beside_a_model_of_bytes(tmp_path):
    weights = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    proto = models.model([helper.make_node("Add", ["x", "w"], ["y"])], [models.tensor("x", [2])], [models.tensor("y", [2])],
                         initializer=[weights])
    onnx.save_model(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    m = selkie.compile((tmp_path / "m.onnx").read_bytes(), folder=tmp_path)
    assert m(np.zeros(2, np.float32)).tolist() == [1, 2]
    with pytest.raises(selkie.ModelError, match="m.bin"):
        selkie.compile((tmp_path / "m.onnx").read_bytes())


def test_signatures():
    """What compile and load take is what a model takes, with the same defaults."""
    model = inspect.signature(selkie.Model.__init__).parameters
    for function in (selkie.compile, selkie.load):
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
            assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default == model[name].default
            assert parameter.annotation not in (inspect.Parameter.empty, "Any")
    assert list(inspect.signature(selkie.compile).parameters)[1:] == list(model)[2:]


def test_dlpack_of_results(text):
    y = text(models.ADD)(np.zeros((2, 2), np.float32))
    assert np.from_dlpack(y).ctypes.data == y.ctypes.data
