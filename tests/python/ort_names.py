"""Writes the public names of the installed onnxruntime, for test_ort_names.py: with the parameters of what is in Python.

    python tests/python/ort_names.py > tests/python/ort_names.txt
"""
import inspect
import types

import onnxruntime
import onnxruntime.backend
from onnxruntime.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state, onnxruntime_validation

MODULES = [onnxruntime, onnxruntime_pybind11_state, onnxruntime_inference_collection, onnxruntime_validation, onnxruntime.backend]


def parameters(value) -> str:
    if not isinstance(value, types.FunctionType):
        return ""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [p.name for p in inspect.signature(value).parameters.values() if p.kind in kinds]
    return f"({', '.join(name for name in named if name not in ('self', 'cls'))})"


def rows(scope, name, shown):
    own = [base for base in getattr(scope, "__mro__", [scope]) if getattr(base, "__module__", "onnxruntime").startswith("onnxruntime")]
    for member in sorted({member for base in own for member in vars(base)}):
        value = inspect.getattr_static(scope, member)
        # What a module only imports from Python's library or NumPy is not its own.
        foreign = isinstance(scope, types.ModuleType) and not getattr(value, "__module__", "onnxruntime").startswith("onnxruntime")
        of_enum = hasattr(scope, "__members__") and member in ("name", "value")
        if member.startswith("_") or foreign or of_enum or isinstance(value, types.ModuleType):
            continue
        inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        yield f"{name}.{member}{parameters(inner)}"
        if isinstance(value, type) and value not in shown:
            shown.add(value)
            yield from rows(value, f"{name}.{member}", shown)


if __name__ == "__main__":
    shown: set[type] = set()
    for module in MODULES:
        print("\n".join(rows(module, module.__name__, shown)))
