"""The session that onnxruntime's extension module has, on a compiled model: what `InferenceSession` has as `_sess`."""
from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from selkie.errors import Error, InputError, LimitError, ModelError, RunError
from selkie.model import Model
from selkie.ort import exceptions, protobuf, sources
from selkie.ort.devices import (CPU_DEVICE, CPU_MEMORY, PROVIDERS, OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice,
                                OrtMemoryInfo)
from selkie.ort.profiling import Profiler
from selkie.ort.settings import ASSIGNMENT_ENTRY, RunOptions, SessionOptions, ignored, log
from selkie.ort.values import OrtValue, OrtValueVector, SessionIOBinding, _check_place, element_of

_seed = 0


def set_seed(seed: int) -> None:
    """Of random operators in sessions that are made later."""
    global _seed
    _seed = seed


@dataclass(frozen=True)
class NodeArg:
    name: str
    type: str
    shape: list[Any]


@dataclass(frozen=True)
class ModelMetadata:
    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


# What Selkie's errors of a model are in onnxruntime's classes, by their texts; any other is a Fail.
_LOAD_FAILURES: list[tuple[str, type[exceptions.OrtError]]] = [
    ("unknown operator '.*' of domain 'ai.onnx'", exceptions.InvalidGraph),
    ("operand '.*' is of type .*, but must be", exceptions.InvalidGraph),
    ("attribute '.*' is required", exceptions.InvalidGraph),
    ("the operator has no attribute", exceptions.InvalidGraph),
    ("operands given, but at (most|least)", exceptions.InvalidGraph),
    ("operand '.*' is not defined by any node", exceptions.InvalidArgument),
    ("the model has no graph", exceptions.InvalidArgument),
]


def _load_failure(error: Error) -> exceptions.OrtError:
    kind = next((kind for mark, kind in _LOAD_FAILURES if re.search(mark, str(error))), exceptions.Fail)
    return kind.of(f"Load model failed:{error}")


def run_failure(error: Error) -> exceptions.OrtError:
    kind = exceptions.Fail if isinstance(error, (RunError, LimitError)) else exceptions.RuntimeException
    return kind.of(error)


class NativeSession:
    """`InferenceSession` of onnxruntime's extension module."""

    session_options: SessionOptions
    inputs_meta: list[NodeArg]
    outputs_meta: list[NodeArg]
    overridable_initializers: list[NodeArg]
    _most_variants = 4

    def __init__(self, session_options: SessionOptions, model: str | bytes, is_path: bool, read_config: bool = False) -> None:
        if not isinstance(session_options, SessionOptions):
            raise TypeError(f"the options of a session are a SessionOptions, not a {type(session_options).__name__}")
        self.session_options = session_options
        self._start = time.time_ns()
        self._profiler = Profiler(session_options.profile_file_prefix) if session_options.enable_profiling else None
        self._source = sources.read(model, session_options)

    def initialize_session(self, providers: Sequence[str] = (), provider_options: Any = (), disabled_optimizers: Any = ()) -> None:
        for name in providers:
            if name not in PROVIDERS:
                raise RuntimeError(f"Unknown Provider Type: {name}")
        for name, options in zip(providers, provider_options or ()):
            for option in options:
                ignored(f"{name}'s {option}")
        for optimizer in disabled_optimizers or ():
            ignored(f"disabled_optimizers' {optimizer}")
        header = self._source.header
        known = {dim for _, _, shape in header.get("inputs", ()) for dim in shape if isinstance(dim, str)}
        self._sizes = {name: size for name, size in self.session_options._sizes.items() if name in known and size >= 0}
        self._model = self._compile(self._source)
        self._variants: dict[frozenset[str], Model] = {}
        self._varying = threading.Lock()
        self.overridable_initializers = [NodeArg(*row) for row in header.get("overridable", ())]
        self.inputs_meta = self._inputs()
        self.outputs_meta = self._outputs()
        if self.session_options.optimized_model_filepath:
            sources.write(self._source, self.session_options.optimized_model_filepath)
        self._run: Callable[..., list[Any]] = self._model._run
        if self._profiler is not None:
            self._profiler.loaded(self._model)
            self._run = self._profiler.run

    def _compile(self, source: sources.Source) -> Model:
        try:
            return Model(source.model, dims=self._sizes, threads=self.session_options.intra_op_num_threads or None, seed=_seed,
                         keep_source=False, folder=source.folder)
        except ModelError as error:
            raise _load_failure(error) from None

    def _with_inputs(self, names: frozenset[str]) -> Model:
        """The model in which these initializers are inputs: compiled when they are first given."""
        with self._varying:
            if names not in self._variants:
                log.info("a variant of the model is compiled in which %s are inputs", ", ".join(sorted(names)))
                if len(self._variants) == self._most_variants:
                    del self._variants[next(iter(self._variants))]
                self._variants[names] = self._compile(sources.without_initializers(self._source, names))
            return self._variants[names]

    def _inputs(self) -> list[NodeArg]:
        if not self._source.header:
            return [self._of_port(port) for port in self._model.inputs]
        return [NodeArg(name, kind, [self._sizes.get(dim, dim) for dim in shape])
                for name, kind, shape in self._source.header["inputs"]]

    def _outputs(self) -> list[NodeArg]:
        """As declared; what is not declared, as the analysis has it in names that the model has."""
        found = [self._of_port(port) for port in self._model.outputs]
        if not self._source.header:
            return found
        names = {dim for port in self.inputs_meta for dim in port.shape if isinstance(dim, str)}
        out = []
        for (name, kind, declared), port in zip(self._source.header["outputs"], found):
            known = [dim if isinstance(dim, int) or dim in names else None for dim in port.shape]
            shape = known
            if len(declared) == len(known):
                shape = [there if isinstance(there, int) or said is None else self._sizes.get(said, said)
                         for said, there in zip(declared, known)]
            out.append(NodeArg(name, kind or port.type, shape))
        return out

    @staticmethod
    def _of_port(port: Any) -> NodeArg:
        kind = port.type if port.dtype is None else f"tensor({element_of(port.dtype)[1]})"
        return NodeArg(port.name, kind, list(port.shape or ()))

    @property
    def model_meta(self) -> ModelMetadata:
        names = ModelMetadata.__dataclass_fields__
        defaults = {"version": 0, "custom_metadata_map": {}}
        return ModelMetadata(**{name: self._source.header.get(name, defaults.get(name, "")) for name in names})

    @property
    def input_meminfos(self) -> list[OrtMemoryInfo]:
        return [CPU_MEMORY] * len(self.inputs_meta)

    @property
    def output_meminfos(self) -> list[OrtMemoryInfo]:
        return [CPU_MEMORY] * len(self.outputs_meta)

    @property
    def input_epdevices(self) -> list[OrtEpDevice]:
        return [CPU_DEVICE] * len(self.inputs_meta)

    def get_providers(self) -> list[str]:
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in PROVIDERS}

    @property
    def get_profiling_start_time_ns(self) -> int:
        return self._start

    def end_profiling(self) -> str:
        if self._profiler is None:
            return ""
        profiler, self._profiler, self._run = self._profiler, None, self._model._run
        return profiler.end()

    def run(self, output_names: Any, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """With checks and errors as onnxruntime has them."""
        if isinstance(output_names, str):
            raise TypeError("run(): output names are a list, not a string")
        if run_options is not None:
            if not isinstance(run_options, RunOptions):
                raise TypeError(f"the options of a run are a RunOptions, not a {type(run_options).__name__}")
            if run_options.terminate:
                raise exceptions.Fail.of("Exiting due to terminate flag being set to true.")
        self._check_names(list(input_feed.keys()))
        feeds = {name: _plain(value) for name, value in input_feed.items()}
        given = frozenset(port.name for port in self.overridable_initializers if port.name in feeds)
        run = self._with_inputs(given)._run if given else self._run
        try:
            return run(feeds, output_names or None)
        except InputError as error:
            raise exceptions.InvalidArgument.of(self._complaint(error, output_names, feeds)) from None
        except Error as error:
            raise run_failure(error) from None

    def _check_names(self, names: list[str]) -> None:
        missing = [i.name for i in self.inputs_meta if i.name not in names and not i.type.startswith("optional")]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({names}).")

    def _complaint(self, error: InputError, output_names: Any, feeds: dict[str, Any]) -> str:
        """The text that onnxruntime has for the same, where it has one."""
        inputs = {i.name: i for i in [*self.inputs_meta, *self.overridable_initializers]}
        outputs = {o.name for o in self.outputs_meta}
        for name in output_names or []:
            if name not in outputs:
                return f"Invalid output name:{name}"
        for name, value in feeds.items():
            if name not in inputs:
                return f"Invalid input name: {name}"
            text = _misfit(inputs[name], value)
            if text:
                return text
        return str(error)

    def run_async(self, output_names: Any, input_feed: Any, callback: Callable[..., Any], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        def work() -> None:
            try:
                results, text = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # noqa: BLE001: it is handed to the callback
                results, text = [], str(error)
            callback(results, user_data, text)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, input_feed: Mapping[str, OrtValue], output_names: Any,
                            run_options: RunOptions | None = None) -> OrtValueVector:
        feeds = {name: value._get_c_value() for name, value in input_feed.items()}
        return OrtValueVector(OrtValue._of(value) for value in self.run(output_names, feeds, run_options))

    def run_with_ortvaluevector(self, run_options: RunOptions | None, feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: OrtValueVector, fetch_devices: Sequence[Any]) -> None:
        for device in fetch_devices:
            _check_place(device, 0, -1)
        fetches[:] = self.run_with_ort_values(dict(zip(feed_names, feeds)), fetch_names, run_options)

    def run_with_iobinding(self, iobinding: SessionIOBinding, run_options: RunOptions | None = None) -> None:
        try:
            iobinding.run(run_options)
        except (Error, ValueError, RuntimeError) as error:
            raise RuntimeError(f"Error in execution: {error}") from None

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device: Any) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device)

    create_ortvalue_from_shape_and_onnx_type = create_ortvalue_from_shape_and_type

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """All nodes, each in a subgraph of the CPU's."""
        if self.session_options._entries.get(ASSIGNMENT_ENTRY) != "1":
            raise exceptions.Fail.of(f"Session configuration entry '{ASSIGNMENT_ENTRY}' must be set to \"1\" to retrieve EP graph "
                                     "assignment information.")
        return [OrtEpAssignedSubgraph(PROVIDERS[0], (OrtEpAssignedNode(*row),)) for row in protobuf.nodes(self._source.bytes())]

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """Kernels are chosen by a model of their costs, not by trials."""
        return []

    def set_tuning_results(self, results: Sequence[dict[str, Any]], error_on_invalid: bool = False) -> None:
        ignored("set_tuning_results")

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        if not options:
            raise RuntimeError("No options were provided")
        ignored("set_ep_dynamic_options")

    def is_webgpu_graph_capture_enabled(self) -> bool:
        return False

    def webgpu_context_id(self) -> int:
        return -1

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """No graphs are captured."""


def _plain(value: Any) -> Any:
    """What a model takes: NumPy's untyped bytes are texts, as in onnxruntime."""
    if isinstance(value, OrtValue):
        return value._value
    if isinstance(value, np.ndarray) and value.dtype.type is np.void and value.dtype.names is None:
        return np.array([item.tobytes() for item in value.ravel()], object).reshape(value.shape)
    return value


def _misfit(declared: NodeArg, value: Any) -> str:
    """How an array is not what is declared, in onnxruntime's words."""
    if not isinstance(value, np.ndarray) or not declared.type.startswith("tensor"):
        return ""
    actual = f"tensor({element_of(value.dtype)[1]})"
    if actual != declared.type:
        return f"Unexpected input data type. Actual: ({actual}) , expected: ({declared.type})"
    advice = " Please fix either the inputs/outputs or the model."
    if declared.shape and len(declared.shape) != value.ndim:
        return f"Invalid rank for input: {declared.name} Got: {value.ndim} Expected: {len(declared.shape)}{advice}"
    wrong = [f" index: {i} Got: {got} Expected: {expected}\n" for i, (got, expected) in enumerate(zip(value.shape, declared.shape))
             if isinstance(expected, int) and got != expected]
    return (f"Got invalid dimensions for input: {declared.name} for the following indices\n{''.join(wrong)}{advice}"
            if wrong else "")
