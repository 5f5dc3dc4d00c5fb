"""The generated references of the documentation site: none is empty, and they have every command with examples of its own,
every class and function that the Python package has, and every function and type of the headers. Needs no builder of sites,
but the package `selkie`."""

import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))

import cli_reference  # noqa: E402
import header_reference  # noqa: E402
import python_reference  # noqa: E402

SELKIE = ROOT / "build/release/bin/selkie"


def headings(page):
    """{heading: what stands below it}."""
    parts = re.split(r"^#{1,4} (.+)$", page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def commands():
    found = headings(cli_reference.page(SELKIE))
    for name in cli_reference.commands(cli_reference.help_of(SELKIE)):
        text = found.get(f"selkie {name}", "")
        if f"\n  selkie {name}" not in text.partition("Examples:")[2]:
            yield f"the command line's has no example of {name}"


def is_part(name, item):
    """Classes and functions of the package; not those that only say that there is no such thing."""
    if name.startswith("_") or not (inspect.isclass(item) or inspect.isfunction(item)):
        return False
    return item.__module__.startswith(("selkie", "onnxruntime")) and not item.__module__.endswith(".unsupported")


def package():
    found = headings(python_reference.page(ROOT / "python/selkie"))
    for module in map(importlib.import_module, ("selkie", "selkie.ort")):
        names = getattr(module, "__all__", vars(module))
        for name in [name for name in names if is_part(name, getattr(module, name))]:
            if not found.get(name, "").strip():
                yield f"Python's has no {module.__name__}.{name}"
    if "json: " not in found["Report"]:
        yield "Python's does not show Report.json as a property"
    for name in ("dtype_of", "OrtError", "install"):
        if name in found:
            yield f"Python's has {name}, which is internal"


def headers():
    for path in sorted((ROOT / "include/selkie").glob("*.h*")):
        found, text = headings(header_reference.page([path])), path.read_text()
        names = set(re.findall(r"^(?:class|struct) (\w+) \{", text, re.MULTILINE)) - {"Freed"}
        if path.suffix == ".h":
            names |= set(re.findall(r"^[^/*\n]*\b(selkie_\w+)\s*\(", text, re.MULTILINE))
        for name in sorted(names):
            if not found.get(name, "").strip():
                yield f"{path.name}'s has no {name}"


def main():
    failures = [f"references: {text}" for check in (commands, package, headers) for text in check()]
    print("\n".join(failures) or "references: commands, Python package and headers are all there")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
