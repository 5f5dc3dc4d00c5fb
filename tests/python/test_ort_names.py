"""Every public name of onnxruntime 1.31.1 (ort_names.txt, which ort_names.py writes) is there under the alias, with the same
parameters, or stands here with the reason why not."""
import inspect
import pathlib
import re
import sys
import types

import pytest

from selkie import ort
from selkie.ort import alias, unsupported

# Names, and those that begin with them and a dot.
MISSING = {
    "onnxruntime.capi.onnxruntime_pybind11_state.opkernel": "schemas of onnxruntime's kernels, of which there are none",
    "onnxruntime.capi.onnxruntime_pybind11_state.schemadef": "schemas of operators as C++ objects; `selkie ops` lists operators",
    "onnxruntime.capi.onnxruntime_inference_collection.make_get_initializer_location_func_wrapper": "a helper of ModelCompiler",
}
NAMES = (pathlib.Path(__file__).parent / "ort_names.txt").read_text().splitlines()
MODULES = ["onnxruntime.capi.onnxruntime_inference_collection", "onnxruntime.capi.onnxruntime_pybind11_state",
           "onnxruntime.capi.onnxruntime_validation", "onnxruntime.backend", "onnxruntime"]


@pytest.fixture(scope="module")
def aliased():
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "onnxruntime"}
    alias.install()
    import onnxruntime
    import onnxruntime.backend

    yield onnxruntime
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
        del sys.modules[name]
    sys.modules.update(before)


def find(name: str):
    module = next(module for module in MODULES if name.startswith(module + "."))
    found = sys.modules[module]
    for part in name.removeprefix(module + ".").split("."):
        # Some members are there when an object is: its class declares them.
        declared = inspect.get_annotations(found) if isinstance(found, type) else {}
        found = declared[part] if part in declared else getattr(found, part)
    return found


@pytest.mark.parametrize("row", NAMES)
def test_name(aliased, row):
    name, parameters = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", row).groups()
    if any(name == missing or name.startswith(missing + ".") for missing in MISSING):
        with pytest.raises(AttributeError):
            find(name)
        return
    found = find(name)
    is_refused = any(part in unsupported.NAMES for part in name.split("."))
    if parameters is not None and not is_refused and isinstance(found, (types.FunctionType, types.MethodType)):
        ours = [p.name for p in inspect.signature(found).parameters.values() if p.kind is not p.POSITIONAL_ONLY and p.name != "self"]
        wanted = parameters.split(", ") if parameters else []
        assert wanted == ours[: len(wanted)]


@pytest.mark.parametrize("name", sorted(unsupported.NAMES))
def test_what_is_unsupported_says_so(name):
    refused = getattr(ort, name)
    with pytest.raises(ort.NotImplemented, match=name):
        refused()
    if isinstance(refused, type):
        with pytest.raises(NotImplementedError, match=f"{name}.some_member"):
            refused.some_member()
