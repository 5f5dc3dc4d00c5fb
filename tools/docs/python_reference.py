"""The reference of the Python package: signatures and docstrings of what is public, read from the sources."""

import ast
import inspect

MODULES = {"selkie": ["model.py", "reports.py", "errors.py"], "selkie.ort": ["ort/*.py"], "selkie.backend": ["backend.py"]}
STUB = "_core.pyi"


def is_public(name):
    return not name.startswith("_") or name in ("__call__",)


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


def signature(node):
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){result}"


def entry(node, depth, owner=""):
    """A heading, the signature and the text of a function or a class with its public methods."""
    name = f"{owner}{node.name}"
    parts = ["#" * depth + f" {name}"]
    if isinstance(node, ast.FunctionDef):
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
        shown = f"{node.name}: {ast.unparse(node.returns)}" if is_property and node.returns else signature(node)
        parts.append(f"```python\n{shown}\n```")
    if text := docstring(node):
        parts.append(text)
    if isinstance(node, ast.ClassDef):
        members = [m for m in node.body if isinstance(m, ast.FunctionDef) and is_public(m.name)]
        if plain := [signature(member) for member in members if not ast.get_docstring(member)]:
            parts.append("```python\n" + "\n".join(plain) + "\n```")
        parts += [entry(member, depth + 1, f"{node.name}.") for member in members if ast.get_docstring(member)]
    return "\n\n".join(parts)


def entries(path, exported=None, depth=3):
    """Of what is documented and public: if `exported` is given, of what it names."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and is_public(node.name) and ast.get_docstring(node):
            if exported is None or node.name in exported:
                yield entry(node, depth)


def exports(path):
    """The names in a package's __all__; None if it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def page(folder):
    parts = [
        "# Python reference\n\nGenerated from the docstrings. [The guide](../python.md) shows how the parts work together."
    ]
    for module, patterns in MODULES.items():
        parts.append(f"## {module}")
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                parts += entries(path, exports(folder / "__init__.py") if module == "selkie" else None)
    if (folder / STUB).exists():
        found = list(entries(folder / STUB))
        parts += ["## What the compiled part adds", *found] if found else []
    return "\n\n".join(parts) + "\n"
