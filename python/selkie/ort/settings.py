"""Options of sessions and runs. Those that have no meaning for Selkie are accepted, and noted in the log."""
from __future__ import annotations

import enum
import logging
from typing import Any

log = logging.getLogger("selkie.ort")


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class _Options:
    """Attributes with defaults; others are taken too."""

    _defaults: dict[str, Any] = {}

    def __init__(self) -> None:
        self.__dict__.update(self._defaults)
        self._entries: dict[str, str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._defaults:
            log.info("%s.%s has no meaning here and is ignored", type(self).__name__, name)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Methods of other versions: they do nothing."""
        if name.startswith("_"):
            raise AttributeError(name)
        log.info("%s.%s has no meaning here and is ignored", type(self).__name__, name)
        return lambda *args, **kwargs: None


class SessionOptions(_Options):
    """Of these `intra_op_num_threads` and overridden free dimensions count; a model is always optimised."""

    _defaults = {
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0,
        "intra_op_num_threads": 0, "log_severity_level": -1, "log_verbosity_level": 0, "logid": "",
        "optimized_model_filepath": "", "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False, "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self._dims: dict[str, int] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._dims[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def has_providers(self) -> bool:
        return False

    def register_custom_ops_library(self, path: str) -> None:
        from selkie.ort.exceptions import NotImplemented

        raise NotImplemented.of(f"operators of the library {path} are code for onnxruntime, which Selkie cannot run")


class RunOptions(_Options):
    """Accepted, and without meaning."""

    _defaults = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "only_execute_path_to_fetches": False,
                 "terminate": False}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]
