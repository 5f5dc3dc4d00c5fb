"""onnxruntime.backend: ONNX's interface for backends with onnxruntime's options, on Selkie's sessions."""
from __future__ import annotations

import os
from typing import Any

from onnx import ModelProto
from onnx.backend.base import BackendRep

from selkie.backend import SelkieBackend
from selkie.ort.session import InferenceSession
from selkie.ort.settings import RunOptions, SessionOptions

# Options that write files, or end runs.
_NOT_PERMITTED = {"enable_profiling", "optimized_model_filepath", "profile_file_prefix", "terminate"}


def _with_options(options: Any, given: dict[str, Any]) -> Any:
    """Names that are no options are ignored, as in onnxruntime."""
    for name, value in given.items():
        if name in _NOT_PERMITTED and hasattr(options, name):
            raise RuntimeError(f"{type(options).__name__} attribute '{name}' is not permitted via the backend API.")
        if name in options._attributes:
            setattr(options, name, value)
    return options


class OnnxRuntimeBackendRep(BackendRep):
    """A session that takes a list of inputs, or its only one."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        names = [port.name for port in self._session.get_inputs()]
        given = inputs if isinstance(inputs, list) else [inputs]
        if len(given) < len(names):
            raise RuntimeError(f"Model expect {len(names)} inputs")
        return self._session.run(None, dict(zip(names, given)), _with_options(RunOptions(), kwargs))


class OnnxRuntimeBackend(SelkieBackend):
    """Models as paths, bytes or protos, and sessions.

    >>> import numpy as np
    >>> from selkie.ort import backend
    >>> [y.shape for y in backend.run("examples/dynamic.onnx", [np.zeros((2, 12), np.int64)], intra_op_num_threads=1)][0]
    (2, 4)
    """

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs: Any) -> bool:
        return cls.supports_device(device or "CPU")

    @classmethod
    def is_opset_supported(cls, model: ModelProto) -> tuple[bool, str]:
        """What is not known is refused when it is compiled."""
        return True, ""

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **kwargs: Any) -> Any:
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(f"Incompatible device expected '{device}', got 'CPU'")
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        source = model if isinstance(model, (str, bytes, os.PathLike)) else model.SerializeToString()
        return OnnxRuntimeBackendRep(InferenceSession(source, _with_options(SessionOptions(), kwargs)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> Any:
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)


is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
