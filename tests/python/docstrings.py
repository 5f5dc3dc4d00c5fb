"""Runs the examples in the docstrings of all modules of the package."""
import doctest
import importlib
import pkgutil
import sys

import selkie

names = ["selkie", *(m.name for m in pkgutil.walk_packages(selkie.__path__, "selkie.") if not m.name.endswith("__main__"))]
results = [doctest.testmod(importlib.import_module(name)) for name in names]
examples = sum(result.attempted for result in results)
print(f"{examples} examples in docstrings of {len(names)} modules")
sys.exit(sum(result.failed for result in results) or examples == 0)
