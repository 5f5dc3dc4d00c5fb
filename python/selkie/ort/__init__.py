"""onnxruntime's Python API, on Selkie.

    import selkie.ort as onnxruntime

or, for programs that cannot be changed, `python -m selkie.ort program.py`.
"""
from __future__ import annotations

from selkie.ort import capi
from selkie.ort.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state
from selkie.ort.devices import (OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtDeviceVendorId,
                                OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice, OrtExecutionProviderDevicePolicy,
                                OrtHardwareDevice, OrtHardwareDeviceType, OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType,
                                get_ep_devices)
from selkie.ort.exceptions import *  # noqa: F403: onnxruntime has them in capi only
from selkie.ort.module import VERSION as __version__
from selkie.ort.module import (OrtCompileApiFlags, OrtExternalInitializerInfo, OrtSparseFormat, create_and_register_allocator,
                               create_and_register_allocator_v2, disable_telemetry_events, enable_telemetry_events,
                               get_all_providers, get_available_providers, get_build_info, get_device, get_version_string,
                               has_collective_ops, preload_dlls, print_debug_info, set_default_logger_severity,
                               set_default_logger_verbosity, set_global_thread_pool_sizes)
from selkie.ort.native import ModelMetadata, NodeArg, set_seed
from selkie.ort.session import InferenceSession
from selkie.ort.settings import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from selkie.ort.unsupported import NAMES as _UNSUPPORTED
from selkie.ort.values import IOBinding, OrtValue, SessionIOBinding, copy_tensors

__author__ = "Selkie"
version = __version__
package_name = "selkie"
cuda_version = ""
import_capi_exception = None
globals().update(_UNSUPPORTED)
