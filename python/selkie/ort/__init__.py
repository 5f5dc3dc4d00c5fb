"""onnxruntime's Python API, on Selkie.

    import selkie.ort as onnxruntime

or, for programs that cannot be changed, `python -m selkie.ort program.py`.
"""
from __future__ import annotations

from selkie.ort.capi._pybind_state import *  # noqa: F403: what onnxruntime takes from there, and the exceptions
from selkie.ort.capi.onnxruntime_inference_collection import (AdapterFormat, InferenceSession, IOBinding, ModelCompiler,
                                                              OrtDevice, OrtDeviceVendorId, OrtValue, SparseTensor,
                                                              copy_tensors)
from selkie.ort.module import VERSION as __version__
from selkie.ort.module import preload_dlls, print_debug_info

__author__ = "Selkie"
version = __version__
package_name = "selkie"
cuda_version = ""
import_capi_exception = None
