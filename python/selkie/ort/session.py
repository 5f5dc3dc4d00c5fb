"""InferenceSession as onnxruntime has it in Python."""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from selkie.errors import Error, InputError
from selkie.ort.devices import PROVIDERS, OrtEpAssignedSubgraph, OrtEpDevice, OrtMemoryInfo
from selkie.ort.native import ModelMetadata, NativeSession, NodeArg, run_failure
from selkie.ort.settings import RunOptions, SessionOptions, ignored
from selkie.ort.values import IOBinding, OrtValue, OrtValueVector


def check_and_normalize_provider_args(providers: Any, provider_options: Any,
                                      available_provider_names: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Names of providers, and options of each."""
    if providers is None:
        return [], []
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        providers = list(zip(providers, provider_options))
    found: dict[str, dict[str, str]] = {}
    for provider in providers:
        name, options = (provider, {}) if isinstance(provider, str) else _provider_with_options(provider)
        if name not in available_provider_names:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(available_provider_names)}'", stacklevel=4)
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def _provider_with_options(given: Any) -> tuple[str, dict[Any, Any]]:
    match given:
        case (str(), dict()) if isinstance(given, tuple):
            return given
    raise ValueError("'providers' values must be either strings or (string, dict) tuples.")


class InferenceSession:
    """A model made ready to run.

    >>> from selkie import ort
    >>> import numpy as np
    >>> session = ort.InferenceSession("examples/dynamic.onnx", providers=["CPUExecutionProvider"])
    >>> [(i.name, i.type, i.shape) for i in session.get_inputs()]
    [('ids', 'tensor(int64)', ['B', 'S'])]
    >>> session.run(["probabilities"], {"ids": np.zeros((2, 12), np.int64)})[0].shape
    (2, 4)
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str], sess_options: SessionOptions | None = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any) -> None:
        if not isinstance(path_or_bytes, (str, os.PathLike, bytes)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._model_path = None if isinstance(path_or_bytes, bytes) else os.fsdecode(path_or_bytes)
        self._model_bytes = path_or_bytes if isinstance(path_or_bytes, bytes) else None
        self._enable_fallback = int(kwargs.pop("enable_fallback", 1)) == 1
        self._fallback_providers = list(PROVIDERS)
        self._sess_options_initial = sess_options
        disabled_optimizers = kwargs.pop("disabled_optimizers", None)
        for name in kwargs:
            ignored(f"InferenceSession's {name}")
        try:
            self._create_inference_session(providers, provider_options, disabled_optimizers)
        except (ValueError, RuntimeError) as error:
            if not self._enable_fallback or isinstance(error, Error):
                raise
            print(f"EP Error {error} when using {providers}\nFalling back to {self._fallback_providers} and retrying.")
            self._create_inference_session(self._fallback_providers, None)
            self.disable_fallback()

    def _create_inference_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
        names, options = check_and_normalize_provider_args(providers, provider_options, PROVIDERS)
        model = self._model_bytes if self._model_path is None else self._model_path
        assert model is not None
        native = NativeSession(self._sess_options_initial or SessionOptions(), model, self._model_path is not None)
        native.initialize_session(names, options, disabled_optimizers)
        self._sess = native
        self._sess_options = native.session_options
        self._inputs_meta, self._outputs_meta = native.inputs_meta, native.outputs_meta
        self._overridable_initializers, self._model_meta = native.overridable_initializers, native.model_meta
        self._input_meminfos, self._output_meminfos = native.input_meminfos, native.output_meminfos
        self._input_epdevices = native.input_epdevices
        self._providers, self._provider_options = native.get_providers(), native.get_provider_options()
        self._profiling_start_time_ns = native.get_profiling_start_time_ns
        self._run = native._run

    def _reset_session(self, providers: Any, provider_options: Any) -> None:
        self._create_inference_session(providers, provider_options)

    def run(self, output_names: Any, input_feed: Any, run_options: RunOptions | None = None) -> list[Any]:
        if run_options is not None:
            return self._sess.run(output_names, input_feed, run_options)
        try:
            return self._run(input_feed, output_names or None)
        except (InputError, TypeError):  # once more, with what the quick way does not take, and onnxruntime's errors
            return self._sess.run(output_names, input_feed)
        except Error as error:
            raise run_failure(error) from None

    def _validate_input(self, feed_input_names: Sequence[str]) -> None:
        self._sess._check_names(list(feed_input_names))

    def run_async(self, output_names: Any, input_feed: Any, callback: Callable[..., Any], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        self._validate_input(list(input_feed.keys()))
        self._sess.run_async(output_names, input_feed, callback, user_data, run_options)

    def run_with_ort_values(self, output_names: Any, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        return list(self._sess.run_with_ort_values(input_dict_ort_values, output_names, run_options))

    def run_with_ortvaluevector(self, run_options: RunOptions | None, feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: OrtValueVector, fetch_devices: Sequence[Any]) -> None:
        self._sess.run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        if iobinding._session is not self._sess:
            raise ValueError("IOBinding must be used with the session that created it.")
        self._sess.run_with_iobinding(iobinding._iobinding, run_options)

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str,
                                            device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def get_inputs(self) -> list[NodeArg]:
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Selkie compiles initializers in: a run that is given some compiles the model again, once for each set of them."""
        return self._overridable_initializers

    def get_modelmeta(self) -> ModelMetadata:
        return self._model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        return self._input_meminfos

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        return self._output_meminfos

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        return self._input_epdevices

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_providers(self) -> list[str]:
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return self._provider_options

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        return self._sess.get_provider_graph_assignment_info()

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """The model is not compiled anew: there is one provider."""
        names, _ = check_and_normalize_provider_args(providers, provider_options, PROVIDERS)
        for name in names:
            if name not in PROVIDERS:
                raise RuntimeError(f"Unknown Provider Type: {name}")

    def disable_fallback(self) -> None:
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        self._enable_fallback = True

    def get_profiling_start_time_ns(self) -> int:
        return self._profiling_start_time_ns

    def end_profiling(self) -> str:
        """Writes what was recorded since the session was made, if its options enable that, and returns the file's name."""
        name = self._sess.end_profiling()
        self._run = self._sess._run
        return name

    def get_tuning_results(self) -> list[dict[str, Any]]:
        return self._sess.get_tuning_results()

    def set_tuning_results(self, results: Sequence[dict[str, Any]], *, error_on_invalid: bool = False) -> None:
        self._sess.set_tuning_results(results, error_on_invalid)

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        self._sess.set_ep_dynamic_options(options)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """No graphs are captured."""
