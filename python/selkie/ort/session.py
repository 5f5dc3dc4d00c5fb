"""InferenceSession as onnxruntime has it, on a compiled model."""
from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from selkie import _core
from selkie.errors import Error, InputError, LimitError, ModelError
from selkie.model import Model
from selkie.ort import exceptions
from selkie.ort.settings import RunOptions, SessionOptions, log
from selkie.ort.values import IOBinding, OrtValue, element_of

PROVIDERS = ["CPUExecutionProvider"]
_seed = 0


def set_seed(seed: int) -> None:
    """Of random operators in sessions that are made later."""
    global _seed
    _seed = seed


@dataclass
class NodeArg:
    name: str
    type: str
    shape: list[Any]


@dataclass
class ModelMetadata:
    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


def _check_providers(given: Any) -> None:
    for provider in given or []:
        name = provider if isinstance(provider, str) else provider[0]
        if name not in PROVIDERS:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(PROVIDERS)}'", stacklevel=3)


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, OrtValue) else value


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

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any) -> None:
        if not isinstance(path_or_bytes, (str, os.PathLike, bytes)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        for name in kwargs:
            log.info("InferenceSession's %s has no meaning here and is ignored", name)
        _check_providers(providers)
        self._options = sess_options or SessionOptions()
        self._start = time.time_ns()
        self._header = self._read(path_or_bytes)
        self._model = self._compile(path_or_bytes)
        self._run = self._model._run

    @staticmethod
    def _read(source: Any) -> dict[str, Any]:
        if isinstance(source, bytes):
            path, content, place = "", source, "bytes"
        else:
            path, content, place = os.fsdecode(source), None, os.fsdecode(source)
            if not os.path.exists(path):
                raise exceptions.NoSuchFile.of(f"Load model from {path} failed:Load model {path} failed. File doesn't exist")
            if _core.is_artifact(path):
                return {}
        try:
            return _core.header(path, content)
        except Error as error:
            raise exceptions.InvalidProtobuf.of(f"Load model from {place} failed:Protobuf parsing failed: {error}") from None

    def _compile(self, source: Any) -> Model:
        try:
            return Model(source, dims=self._options._dims, threads=self._options.intra_op_num_threads or None, seed=_seed,
                         keep_source=False)
        except ModelError as error:
            raise exceptions.Fail.of(f"Load model failed:{error}") from None

    def run(self, output_names: Any, input_feed: Any, run_options: RunOptions | None = None) -> list[Any]:
        try:
            return self._run(input_feed, output_names or None)
        except (InputError, TypeError):
            return self._run_slowly(output_names, input_feed)
        except LimitError as error:
            raise exceptions.Fail.of(error) from None
        except Error as error:
            raise exceptions.RuntimeException.of(error) from None

    def _run_slowly(self, output_names: Any, input_feed: Any) -> list[Any]:
        """Once more, with what the quick way does not take, and with onnxruntime's errors."""
        feeds = {name: _array(value) for name, value in dict(input_feed).items()}
        missing = [i.name for i in self.get_inputs() if i.name not in feeds and not i.type.startswith("optional")]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feeds)}).")
        try:
            return self._run(feeds, output_names or None)
        except InputError as error:
            raise exceptions.InvalidArgument.of(self._complaint(error, output_names, feeds)) from None

    def _complaint(self, error: InputError, output_names: Any, feeds: dict[str, Any]) -> str:
        """The text that onnxruntime has for the same, where it has one."""
        inputs = {i.name: i for i in self.get_inputs()}
        outputs = {o.name for o in self.get_outputs()}
        for name in output_names or []:
            if name not in outputs:
                return f"Invalid output name:{name}"
        for name, value in feeds.items():
            if name not in inputs:
                return f"Invalid input name: {name}"
            declared = inputs[name]
            if not isinstance(value, np.ndarray) or not declared.type.startswith("tensor"):
                continue
            actual = f"tensor({element_of(value.dtype)[1]})"
            if actual != declared.type:
                return f"Unexpected input data type. Actual: ({actual}) , expected: ({declared.type})"
            if declared.shape and len(declared.shape) != value.ndim:
                return (f"Invalid rank for input: {name} Got: {value.ndim} Expected: {len(declared.shape)} "
                        "Please fix either the inputs/outputs or the model.")
            wrong = [f" index: {i} Got: {got} Expected: {expected}\n"
                     for i, (got, expected) in enumerate(zip(value.shape, declared.shape))
                     if isinstance(expected, int) and got != expected and expected >= 0]
            if wrong:
                return (f"Got invalid dimensions for input: {name} for the following indices\n{''.join(wrong)} "
                        "Please fix either the inputs/outputs or the model.")
        return str(error)

    def run_async(self, output_names: Any, input_feed: Any, callback: Any, user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        import threading

        def work() -> None:
            try:
                results, text = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # noqa: BLE001: it is handed to the callback
                results, text = None, str(error)
            callback(results, user_data, text)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names: Any, input_dict_ort_values: Any, run_options: Any = None) -> list[OrtValue]:
        return [OrtValue(value) for value in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding.run()

    def _ports(self, which: str) -> list[NodeArg]:
        if self._header:
            return [NodeArg(*row) for row in self._header[which]]
        rows = self._model.inputs if which == "inputs" else self._model.outputs
        return [NodeArg(p.name, f"tensor({element_of(p.dtype)[1]})" if p.dtype is not None else p.type, list(p.shape or []))
                for p in rows]

    def get_inputs(self) -> list[NodeArg]:
        return self._ports("inputs")

    def get_outputs(self) -> list[NodeArg]:
        return self._ports("outputs")

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Selkie compiles initializers in, so that none can be overridden."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        names = ModelMetadata.__dataclass_fields__
        defaults = {"version": 0, "custom_metadata_map": {}}
        return ModelMetadata(**{name: self._header.get(name, defaults.get(name, "")) for name in names})

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in PROVIDERS}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        _check_providers(providers)

    def disable_fallback(self) -> None:
        """There is nothing to fall back to."""

    enable_fallback = disable_fallback

    def get_profiling_start_time_ns(self) -> int:
        return self._start

    def end_profiling(self) -> str:
        """Profiles come from `selkie.Model.profile`; no file is written here."""
        log.warning("profiles are not written through this interface: use selkie.compile(...).profile(...)")
        return ""
