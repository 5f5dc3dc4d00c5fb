"""Lets `import onnxruntime` find selkie.ort, for programs that cannot be changed, and for the processes that they start."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence

from selkie import ort
from selkie.ort.capi import build_and_package_info, onnxruntime_inference_collection, onnxruntime_validation  # noqa: F401

# A package `onnxruntime` that installs the alias: first on the path of the processes that a program starts.
SHIM = os.path.join(os.path.dirname(__file__), "shim")
_CAPI = "selkie.ort.capi"


def install() -> None:
    """For the rest of the process; what was imported before keeps what it has."""
    package = _copy(ort, "onnxruntime")
    package.__file__ = ort.__file__
    # Packages of onnxruntime's that are written in Python alone (transformers, quantization, tools) are its own, if it is there.
    package.__path__ = _real_package()
    package.__spec__ = importlib.machinery.ModuleSpec("onnxruntime", None, origin=ort.__file__, is_package=True)
    package.__spec__.submodule_search_locations = package.__path__
    sys.modules["onnxruntime"] = package
    for name in [_CAPI, *(name for name in sys.modules if name.startswith(_CAPI + "."))]:
        sys.modules["onnxruntime.capi" + name.removeprefix(_CAPI)] = sys.modules[name]
    if not any(isinstance(finder, _Backend) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Backend())


def install_for_children() -> None:
    """Processes that this one starts find the alias, too, whether they are forked, spawned or run another program."""
    os.environ["PYTHONPATH"] = os.pathsep.join([SHIM, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path.insert(1, SHIM)  # behind the program's own folder


def _copy(module: types.ModuleType, name: str) -> types.ModuleType:
    """What a module has, under another name."""
    own = {"__name__", "__path__", "__file__", "__spec__", "__loader__", "__package__", "__cached__", "__builtins__"}
    copy = types.ModuleType(name, module.__doc__)
    copy.__dict__.update({key: value for key, value in vars(module).items() if key not in own})
    return copy


def _real_package() -> list[str]:
    """The folder of onnxruntime itself, if it is installed."""
    elsewhere = [place for place in sys.path if os.path.abspath(place or os.getcwd()) != SHIM]
    spec = importlib.machinery.PathFinder.find_spec("onnxruntime", elsewhere)
    return list(spec.submodule_search_locations or []) if spec is not None else []


class _Backend(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """onnxruntime.backend is imported only when it is asked for, since it needs the package onnx."""

    _names = {"onnxruntime.backend", "onnxruntime.backend.backend", "onnxruntime.backend.backend_rep"}

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> (
            importlib.machinery.ModuleSpec | None):
        return importlib.util.spec_from_loader(name, self, is_package=True) if name in self._names else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _copy(importlib.import_module("selkie.ort.backend"), spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """It has all that it needs."""
