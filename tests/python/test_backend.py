"""ONNX's own tests of backends, on selkie.backend: what `selkie verify` passes must pass here."""
import pathlib
import re

import numpy as np
import onnx
import onnx.backend.test
import pytest

import selkie.backend

LEDGER = pathlib.Path(__file__).parents[1] / "corpus/onnx-1.22.0.ledger"



class Runner(onnx.backend.test.BackendTest):
    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        """ONNX's own takes items of a sequence apart, which scalars among them do not stand."""
        if isinstance(outputs, np.ndarray):
            ref_outputs, outputs = [ref_outputs], [outputs]
        super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir)


runner = Runner(selkie.backend, __name__)
for line in LEDGER.read_text().splitlines():
    name = re.match(r"\w+/(test_\w+): ", line)
    if name:
        runner.xfail(f"^{name[1]}_cpu$")
globals().update(runner.test_cases)


def test_a_node():
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    (c,) = selkie.backend.run_node(node, [np.ones(2, np.float32), np.ones(2, np.float32)])
    assert c.tolist() == [2, 2]


def test_devices():
    assert selkie.backend.supports_device("CPU") and not selkie.backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="CUDA"):
        selkie.backend.prepare(onnx.ModelProto(), "CUDA")
