"""Selkie: a compiler and runtime for dynamic neural networks.

    import selkie
    model = selkie.compile("model.onnx", dims={"S": "1..512"})
    y = model(x)
"""
import os as _os

from selkie import _core
from selkie.errors import Error, InputError, LimitError, ModelError, NotFoundError, RunError
from selkie.model import Model, Port, compile, load
from selkie.reports import Explanation, Plan, Profile, Report

__version__ = _core.__version__
__all__ = ["Error", "Explanation", "InputError", "LimitError", "Model", "ModelError", "NotFoundError", "Plan", "Port",
           "Profile", "Report", "RunError", "compile", "load"]

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_core.forget_contexts)
