"""ONNX's interface for backends, so that ONNX's own tests run against Selkie.

    import onnx.backend.test, selkie.backend
    tests = onnx.backend.test.BackendTest(selkie.backend, __name__)
"""
from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from selkie.model import Model


class SelkieRep(BackendRep):
    """A compiled model with its outputs by position and by name.

    >>> import numpy as np, onnx, selkie.backend
    >>> rep = selkie.backend.prepare(onnx.load("examples/dynamic.onnx"))
    >>> outputs = rep.run([np.zeros((2, 12), np.int64)])
    >>> outputs.probabilities.shape, outputs[1].dtype
    ((2, 4), dtype('float32'))
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._names = [port.name for port in model.outputs]

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        if isinstance(inputs, dict):
            outputs = self.model._run(inputs, None)
        else:
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            feeds = {port.name: value for port, value in zip(self.model.inputs, given, strict=False)}
            outputs = self.model._run(feeds, None)
        return namedtupledict("Outputs", self._names)(*outputs)


class SelkieBackend(Backend):
    """Models on the CPU."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> SelkieRep:
        if not cls.supports_device(device):
            raise ValueError(f"there is no device '{device}': Selkie runs on the CPU")
        return SelkieRep(Model(model, keep_source=False, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
                 **kwargs: Any) -> Any:
        """A node by itself; empty names stand for operands that are left out.

        >>> import numpy as np, onnx, selkie.backend
        >>> selkie.backend.run_node(onnx.helper.make_node("Add", ["a", "b"], ["c"]), [np.array([1.0]), np.array([2.0])]).c
        array([3.])
        """
        names = [name for name in node.input if name]
        values = [np.asarray(value) for value in inputs]
        ports = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                 for name, value in zip(names, values, strict=True)]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", ports, outputs)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        imports = [onnx.helper.make_opsetid(node.domain, opset)]
        return cls.run_model(onnx.helper.make_model(graph, opset_imports=imports), values, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU


is_compatible = SelkieBackend.is_compatible
prepare = SelkieBackend.prepare
run_model = SelkieBackend.run_model
run_node = SelkieBackend.run_node
supports_device = SelkieBackend.supports_device
