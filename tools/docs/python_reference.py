"""The reference of the Python package: what a program may name, with signatures and docstrings, read from the sources."""

import ast
import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MODULES = ("selkie", "selkie.ort", "selkie.backend")
# Where programs make objects themselves; elsewhere functions do.
WITH_CONSTRUCTORS = ("selkie.ort",)
COMPILED = "_core.pyi"


def is_public(name):
    return not name.startswith("_") or name == "__call__"


@cache
def parsed(path):
    return ast.parse(path.read_text()).body


@dataclass(frozen=True)
class Defined:
    """A class, a function, or an assignment that makes a class, and the file that has it."""

    node: ast.stmt
    path: Path


def file_of(module, folder):
    """The source of `selkie.…`; None where there is none, as for the compiled part."""
    place = folder.joinpath(*module.split(".")[1:])
    found = [path for path in (place / "__init__.py", place.with_suffix(".py")) if path.exists()]
    return found[0] if found else None


def exports(path):
    """The names in a module's __all__; None if it has none."""
    for node in parsed(path):
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            return ast.literal_eval(node.value)
    return None


def made_class(value, path):
    """The class that is the base of what a call makes: of `f(…)` where `def f(…) -> type[Base]`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        for node in parsed(path):
            if isinstance(node, ast.FunctionDef) and node.name == value.func.id and isinstance(node.returns, ast.Subscript):
                return ast.unparse(node.returns.slice)
    return None


def imported_from(node, folder):
    """The source that an import of the package's own names takes them from; None for other imports."""
    is_own = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("selkie.")
    return file_of(node.module, folder) if is_own else None


def names_of(path, folder):
    """Public names of a module in their order, its own and those that it imports from the package."""
    found = []
    for node in parsed(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.append(node.targets[0].id)
        elif source := imported_from(node, folder):
            is_all = node.names[0].name == "*"
            found += (exports(source) or names_of(source, folder)) if is_all else [a.asname or a.name for a in node.names]
    return [name for name in dict.fromkeys(found) if is_public(name)]


def lookup(name, path, folder):
    """What a name of a module stands for; None for what is neither a class nor a function."""
    for node in reversed(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return Defined(node, path)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            if isinstance(node.value, ast.Name):
                return lookup(node.value.id, path, folder)
            return Defined(node, path) if made_class(node.value, path) else None
        if source := imported_from(node, folder):
            for alias in node.names:
                is_module = file_of(f"{node.module}.{alias.name}", folder) is not None
                if (alias.asname or alias.name) == name and not is_module:
                    return lookup(alias.name, source, folder)
            if node.names[0].name == "*" and (found := lookup(name, source, folder)):
                return found
    return None


def public(module, folder):
    """What users may name in a module: of a package its __all__, if it has one, and exceptions; of a file what it defines."""
    path = file_of(module, folder)
    listed = exports(path)
    found = {name: item for name in names_of(path, folder) if (item := lookup(name, path, folder))}
    if path.name != "__init__.py":
        return {name: item for name, item in found.items() if item.path == path}
    return {n: item for n, item in found.items() if listed is None or n in listed or isinstance(item.node, ast.Assign)}


def docstring(node):
    """As Markdown: examples become code."""
    lines, code = [], False
    for line in inspect.cleandoc(ast.get_docstring(node) or "").splitlines():
        if line.startswith(">>>") and not code:
            lines += ["", "```pycon"]
            code = True
        if code and not line:
            lines.append("```")
            code = False
        lines.append(line)
    return "\n".join(lines + ["```"] if code else lines).strip()


def arguments(node):
    """Without `self`, which a caller does not write."""
    text = ast.unparse(node.args)
    first, _, rest = text.partition(", ")
    return rest if first in ("self", "cls") else text


def signature(node, name=None, owner=""):
    """Of a function; of a property its type. A method that needs no object is shown with its class."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    returns = ast.unparse(node.returns) if node.returns and node.name != "__init__" else ""
    if "property" in decorators:
        return f"{node.name}: {returns}" if returns else node.name
    prefix = f"{owner}." if {"staticmethod", "classmethod"} & set(decorators) else ""
    return f"{prefix}{name or node.name}({arguments(node)})" + (f" -> {returns}" if returns else "")


def fields(node):
    """Attributes of a record, or members of an enumeration."""
    for item in node.body:
        target = item.target if isinstance(item, ast.AnnAssign) else item.targets[0] if isinstance(item, ast.Assign) else None
        if isinstance(target, ast.Name) and is_public(target.id):
            yield ast.unparse(item)


def methods(node, folder):
    """Public ones, each once; of a class on a compiled one those of the latter, too."""
    found = {}
    if "_core.Model" in map(ast.unparse, node.bases) and (folder / COMPILED).exists():
        compiled = next(n for n in parsed(folder / COMPILED) if isinstance(n, ast.ClassDef) and n.name == "Model")
        found = {item.name: item for item in compiled.body if isinstance(item, ast.FunctionDef)}
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and not any(ast.unparse(d).endswith(".setter") for d in item.decorator_list):
            found[item.name] = item
    return [item for name, item in found.items() if is_public(name)]


def declaration(name, item, module, folder):
    """What stands in the code block of a class: its bases that are not internal, how it is made, and its fields."""
    if isinstance(item.node, ast.Assign):
        base = lookup(made_class(item.node.value, item.path), item.path, folder)  # an internal class: its bases are shown
        return [f"class {name}({', '.join(map(ast.unparse, base.node.bases))})" if base else f"class {name}"]
    bases = [base for base in map(ast.unparse, item.node.bases) if "_" not in (base[0], base.split(".")[-1][0])]
    lines = [f"class {name}({', '.join(bases)})" if bases else f"class {name}"]
    made = next((m for m in item.node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    if made and module in WITH_CONSTRUCTORS:
        lines.append(signature(made, name))
    return lines + list(fields(item.node))


def code(lines):
    return "```python\n" + "\n".join(lines) + "\n```"


def entry(name, item, module, folder):
    """A heading, the declaration and the text of a function or a class with its public methods."""
    node, parts = item.node, [f"### {name}"]
    if isinstance(node, ast.FunctionDef):
        return "\n\n".join(filter(None, [*parts, code([signature(node, name)]), docstring(node)]))
    parts.append(code(declaration(name, item, module, folder)))
    if isinstance(node, ast.ClassDef):
        members = methods(node, folder)
        parts += filter(None, [docstring(node)])
        if plain := [signature(member, owner=name) for member in members if not ast.get_docstring(member)]:
            parts.append(code(plain))
        for member in filter(ast.get_docstring, members):
            parts.append(f"#### {name}.{member.name}\n\n{code([signature(member, owner=name)])}\n\n{docstring(member)}")
    return "\n\n".join(parts)


def page(folder):
    parts = [
        "# Python reference\n\nGenerated from the sources. [The guide](../python.md) shows how the parts work together."
    ]
    for module in MODULES:
        parts.append(f"## {module}")
        shown = {}
        for name, item in public(module, folder).items():
            if item in shown.values():
                other = next(n for n, o in shown.items() if o == item)
                parts.append(f"### {name}\n\nThe same as `{other}`.")
            else:
                shown[name] = item
                parts.append(entry(name, item, module, folder))
    return "\n\n".join(parts) + "\n"
