"""The commonly used part of onnxruntime's Python API, on Selkie.

    import selkie.ort as onnxruntime

or, for programs that cannot be changed, `python -m selkie.ort program.py`.
"""
from __future__ import annotations

import logging as _logging

from selkie.ort import exceptions
from selkie.ort.exceptions import *  # noqa: F403: onnxruntime has them here, too
from selkie.ort.session import PROVIDERS, InferenceSession, ModelMetadata, NodeArg, set_seed
from selkie.ort.settings import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtMemType,
                                 RunOptions, SessionOptions, log)
from selkie.ort.values import IOBinding, OrtDevice, OrtValue, SessionIOBinding

# The version of onnxruntime whose API this follows.
__version__ = "1.31.1"
version = __version__
package_name = "selkie"
cuda_version = ""


def get_available_providers() -> list[str]:
    return list(PROVIDERS)


get_all_providers = get_available_providers


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    import selkie

    return f"selkie {selkie.__version__}"


def set_default_logger_severity(severity: int) -> None:
    """0 (all) … 4 (fatal): of the log 'selkie.ort'."""
    log.setLevel([_logging.DEBUG, _logging.INFO, _logging.WARNING, _logging.ERROR, _logging.CRITICAL][max(0, min(severity, 4))])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without meaning here."""


def disable_telemetry_events() -> None:
    """There are none."""


enable_telemetry_events = disable_telemetry_events


def preload_dlls(*_: object, **__: object) -> None:
    """There are none."""


def print_debug_info() -> None:
    print(get_build_info())


__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata",
           "NodeArg", "OrtAllocatorType", "OrtDevice", "OrtMemType", "OrtValue", "RunOptions", "SessionIOBinding",
           "SessionOptions", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
           "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]
