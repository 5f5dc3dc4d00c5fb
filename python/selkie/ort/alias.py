"""Lets `import onnxruntime` find selkie.ort, for programs that cannot be changed."""
import sys
import types

from selkie import ort
from selkie.ort import exceptions


def install() -> None:
    """For the rest of the process; what was imported before keeps what it has."""
    state = types.ModuleType("onnxruntime.capi.onnxruntime_pybind11_state")
    for name in exceptions.NAMES:
        setattr(state, name, getattr(exceptions, name))
    for name in ort.__all__:
        setattr(state, name, getattr(ort, name))
    collection = types.ModuleType("onnxruntime.capi.onnxruntime_inference_collection")
    for name in ("InferenceSession", "IOBinding", "OrtValue", "OrtDevice"):
        setattr(collection, name, getattr(ort, name))
    capi = types.ModuleType("onnxruntime.capi")
    capi.__path__ = []  # a package
    capi.onnxruntime_pybind11_state = capi._pybind_state = state
    capi.onnxruntime_inference_collection = collection
    ort.capi = capi
    sys.modules.update({
        "onnxruntime": ort, "onnxruntime.capi": capi, "onnxruntime.capi.onnxruntime_pybind11_state": state,
        "onnxruntime.capi._pybind_state": state, "onnxruntime.capi.onnxruntime_inference_collection": collection})
