"""Options of sessions and runs. Those without meaning for Selkie are noted in the log when they are set; others that it
cannot follow are refused by name."""
from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from selkie.ort import exceptions
from selkie.ort.devices import PROVIDERS, NamedNumber, OrtEpDevice
from selkie.ort.values import OrtValue

log = logging.getLogger("selkie.ort")


# Entries of sessions that count.
FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"
ASSIGNMENT_ENTRY = "session.record_ep_graph_assignment_info"


class GraphOptimizationLevel(NamedNumber):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(NamedNumber):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(NamedNumber):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string is expected, but this is a {type(value).__name__}")
    return value


def ignored(what: str) -> None:
    log.info("%s has no meaning here and is ignored", what)


class _Options:
    """Attributes that are declared with their defaults, whose types they keep, and entries by keys."""

    _attributes: frozenset[str] = frozenset()
    _meaningful: set[str] = set()

    def __init_subclass__(cls) -> None:
        cls._attributes |= {name for name in cls.__annotations__ if not name.startswith("_")}

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            if name not in self._attributes:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            default = getattr(type(self), name)
            value = {int: operator.index, str: _text}.get(type(default), type(default))(value)
            if name not in self._meaningful and value != default:
                ignored(f"{type(self).__name__}.{name}")
        super().__setattr__(name, value)

    def _add_entry(self, key: str, value: str) -> None:
        if not 0 < len(_text(key)) <= 1024:
            raise RuntimeError("Config key is empty or longer than maximum length 1024")
        self._entries[key] = _text(value)
        if key not in self._meaningful:
            ignored(f"{type(self).__name__}' entry {key}")

    def _get_entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Options):
    """What a session is to be like. Misspelt attributes raise AttributeError; a model is always optimised.

    >>> from selkie import ort
    >>> options = ort.SessionOptions()
    >>> options.intra_op_num_threads = 1
    >>> options.add_free_dimension_override_by_name("S", 12)
    >>> ort.InferenceSession("examples/dynamic.onnx", options).get_inputs()[0].shape
    ['B', 12]
    """

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    _meaningful = {"enable_profiling", "intra_op_num_threads", "optimized_model_filepath", "profile_file_prefix", FOLDER_ENTRY,
                   ASSIGNMENT_ENTRY}
    # Entries that would make a session do something that Selkie does not.
    _refused_entries = {"ep.context_enable": "compiled subgraphs of execution providers",
                        "session.save_model_format": "models in ORT's own format"}

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[str, int] = {}
        self._sizes_by_denotation: dict[str, int] = {}
        self._initializers: dict[str, np.ndarray] = {}
        self._external_initializers: dict[str, np.ndarray] = {}
        self._external_files: dict[str, bytes] = {}
        self._has_providers = False
        self._is_canceled = False

    @property
    def _changes_model(self) -> bool:
        changes = (self._initializers, self._external_initializers, self._external_files, self._sizes_by_denotation)
        return any(changes)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """A size of inputs becomes a number. Names that no input has are ignored, as in onnxruntime."""
        self._sizes[_text(name)] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        self._sizes_by_denotation[_text(denotation)] = operator.index(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """The model is compiled with this in the place of its initializer. Names that it has not are ignored."""
        if not isinstance(value, OrtValue):
            raise RuntimeError("The provided Python object must be an OrtValue")
        if name in self._initializers:
            raise RuntimeError(f"An OrtValue for this name has already been added: {name}")
        self._initializers[_text(name)] = value.numpy()

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Of initializers whose elements lie in other files, which are then not read."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and ort_values lists to have equal length")
        for name, value in zip(names, values):
            if name in self._external_initializers:
                raise RuntimeError(f"An OrtValue for this name has already been added: {name}")
            self._external_initializers[_text(name)] = value.numpy()

    def add_external_initializers_from_files_in_memory(self, names: Sequence[str], buffers: Sequence[Any],
                                                       lengths: Sequence[int]) -> None:
        """Contents of the files in which elements of initializers lie."""
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError("Expecting names, buffers and lengths to have equal length")
        for name, buffer, length in zip(names, buffers, lengths):
            self._external_files[_text(name)] = bytes(memoryview(buffer).cast("B")[:length])

    def add_session_config_entry(self, key: str, value: str) -> None:
        if key in self._refused_entries and value not in ("0", "ONNX"):
            raise exceptions.NotImplemented.of(f"{key}: Selkie has no {self._refused_entries[key]}")
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        return self._get_entry(key)

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        if name not in PROVIDERS:
            raise exceptions.InvalidArgument.of(f"Failed to add provider of type '{name}' to SessionOptions. Provider "
                                                "configuration is not supported.")
        self._has_providers = True

    def add_provider_for_devices(self, devices: Sequence[OrtEpDevice], options: Mapping[str, str]) -> None:
        for device in devices:
            self.add_provider(device.ep_name, options)

    def set_provider_selection_policy(self, policy: Any) -> None:
        """There is one provider to select."""
        self._has_providers = True

    def set_provider_selection_policy_delegate(self, delegate: Callable[..., Any]) -> None:
        self.set_provider_selection_policy(delegate)

    def has_providers(self) -> bool:
        return self._has_providers

    def set_load_cancellation_flag(self, canceled: bool) -> None:
        self._is_canceled = bool(canceled)

    def register_custom_ops_library(self, path: str) -> None:
        raise exceptions.NotImplemented.of(f"operators of the library {path} are code for onnxruntime, which Selkie cannot run")

    def set_ep_context_data_read_func(self, read_func: Callable[..., Any], max_data_size: int) -> None:
        """Called for models with compiled subgraphs, which no session takes."""
        ignored("SessionOptions.set_ep_context_data_read_func")

    def clear_ep_context_data_read_func(self) -> None:
        """See set_ep_context_data_read_func."""


class RunOptions(_Options):
    """Of these `terminate` counts, at the beginning of a run."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    _meaningful = {"terminate"}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        return self._get_entry(key)

    def add_active_adapter(self, adapter: Any) -> None:
        raise exceptions.NotImplemented.of("add_active_adapter: LoRA adapters in onnxruntime's format are not read")
