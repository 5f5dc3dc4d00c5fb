"""The extension module, as onnxruntime's own Python code imports it."""
from selkie.ort.capi.onnxruntime_pybind11_state import *  # noqa: F403
