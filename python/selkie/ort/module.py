"""Functions of the package itself: what it is, its log, its devices."""
from __future__ import annotations

import enum
import logging
from dataclasses import dataclass
from typing import Any

from selkie.ort.devices import PROVIDERS, NamedNumber, OrtArenaCfg, OrtMemoryInfo
from selkie.ort.settings import SessionOptions, ignored, log

# The version of onnxruntime whose API this follows.
VERSION = "1.31.1"


class OrtSparseFormat(NamedNumber):
    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtCompileApiFlags(enum.IntFlag):
    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtCompiledModelCompatibility(NamedNumber):
    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3


class OrtDeviceEpIncompatibilityReason(NamedNumber):
    NONE = 0
    DRIVER_INCOMPATIBLE = 1
    DEVICE_INCOMPATIBLE = 2
    MISSING_DEPENDENCY = 4
    UNKNOWN = -2147483648


class ArenaExtendStrategy(NamedNumber):
    kNextPowerOfTwo = 0  # noqa: N815: onnxruntime's names
    kSameAsRequested = 1  # noqa: N815


@dataclass
class OrtExternalInitializerInfo:
    """Where elements of an initializer lie."""

    filepath: str
    file_offset: int
    byte_size: int


class SessionObjectInitializer:
    """Of onnxruntime's sessions in C++."""


def get_available_providers() -> list[str]:
    return list(PROVIDERS)


get_all_providers = get_available_providers


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return VERSION


def get_build_info() -> str:
    import selkie

    return f"Build Info: selkie {selkie.__version__}"


def print_debug_info() -> None:
    print(get_build_info())


def has_collective_ops() -> bool:
    return False


def get_default_session_options() -> SessionOptions:
    return SessionOptions()


def get_session_initializer() -> SessionObjectInitializer:
    return SessionObjectInitializer()


def set_default_logger_severity(severity: int) -> None:
    """0 (all) … 4 (fatal): of the log 'selkie.ort'."""
    if not 0 <= severity <= 4:
        raise RuntimeError("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    log.setLevel([logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL][severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    ignored("set_default_logger_verbosity")


def disable_telemetry_events() -> None:
    """There are none."""


enable_telemetry_events = disable_telemetry_events


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """There are none."""


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Each session has threads of its own: SessionOptions.intra_op_num_threads says how many."""
    ignored("set_global_thread_pool_sizes")


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Each model has an arena of the size that it needs."""
    ignored("create_and_register_allocator")


def create_and_register_allocator_v2(provider_type: str, mem_info: OrtMemoryInfo, options: dict[str, str],
                                     arena_cfg: Any) -> None:
    ignored("create_and_register_allocator_v2")
