"""_core.pyi says of the extension module what the module says of itself: names, parameters, and types as far as it knows them."""
import ast
import importlib.resources

import pytest

from selkie import _core

STUBS = ast.parse((importlib.resources.files("selkie") / "_core.pyi").read_text())
MODEL = next(node for node in STUBS.body if isinstance(node, ast.ClassDef))
# model(…) is the type's own slot, which has no signature.
SLOTS = {"__call__"}


def bound(scope) -> dict[str, ast.FunctionDef]:
    """What the module has, read from the signatures that nanobind keeps."""
    functions = {}
    for name in dir(scope):
        overloads = getattr(getattr(scope, name), "__nb_signature__", ())
        assert len(overloads) <= 1, f"{name} is overloaded: its stubs need @overload, and this test to know it"
        if overloads:
            functions[name] = ast.parse(overloads[0][0] + ": ...").body[0]
    return functions


def stubbed(scope) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in scope.body if isinstance(node, ast.FunctionDef) and node.name not in SLOTS}


def parts(annotation: ast.expr | None) -> tuple[str, bool, ast.expr | None]:
    """A type's name without its folder, whether it may be None, and what stands in its brackets."""
    if isinstance(annotation, ast.BinOp):
        return parts(annotation.left)[0], True, None
    if isinstance(annotation, ast.Subscript):
        return parts(annotation.value)[0], False, annotation.slice
    return ("" if annotation is None else ast.unparse(annotation).rsplit(".", 1)[-1]), False, None


def is_refined(bound_type: ast.expr | None, stub_type: ast.expr | None) -> bool:
    """Whether a stub's type is what is bound, or says more than that."""
    wide, wide_is_optional, inside = parts(bound_type)
    narrow, narrow_is_optional, narrow_inside = parts(stub_type)
    if wide_is_optional != narrow_is_optional or wide not in ("object", narrow):
        return False
    return inside is None or ast.unparse(inside) == ast.unparse(narrow_inside)


PAIRS = [(scope, name) for scope in ("module", "Model") for name in
         sorted({**bound(_core if scope == "module" else _core.Model), **stubbed(STUBS if scope == "module" else MODEL)})]


@pytest.mark.parametrize(("scope", "name"), PAIRS)
def test_signature(scope, name):
    there, said = (bound(_core), stubbed(STUBS)) if scope == "module" else (bound(_core.Model), stubbed(MODEL))
    assert name in there, f"_core.pyi has {name}, but the module has not"
    assert name in said, f"the module has {name}, but _core.pyi has not"
    given, stub = there[name].args, said[name].args
    assert [a.arg for a in given.args] == [a.arg for a in stub.args]
    assert not (stub.vararg or stub.kwarg or stub.kwonlyargs) and len(given.defaults) == len(stub.defaults)
    for argument, declared in zip(given.args, stub.args, strict=True):
        if argument.arg != "self":
            assert is_refined(argument.annotation, declared.annotation), argument.arg
    assert is_refined(there[name].returns, said[name].returns)


def test_names():
    """What is no function: the version and the class."""
    public = {name for name in dir(_core) if not name.startswith("__")} | {"__version__"}
    declared = {node.name for node in STUBS.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    declared |= {node.target.id for node in STUBS.body if isinstance(node, ast.AnnAssign)}
    assert public == declared
    assert callable(_core.Model.__call__) and isinstance(_core.__version__, str)
