"""Compiled models, and how to have one."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from selkie import _core
from selkie.errors import Error, ModelError, NotFoundError
from selkie.reports import Explanation, Plan, Profile, Report


@dataclass(frozen=True)
class Port:
    """An input or output: `shape` has numbers and expressions in names of sizes, and is None if even the rank is open.

    `dtype` is NumPy's, or None for a sequence, an optional or a map, which `type` tells apart.
    """

    name: str
    type: str
    dtype: np.dtype | None
    shape: tuple[int | str, ...] | None

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


def _fact(name: str, given: Any) -> str:
    if isinstance(given, int):
        return f"{name} == {given}"
    if isinstance(given, range):
        given = (given.start, given.stop - 1)
    if isinstance(given, tuple):
        return f"{name} in {given[0]}..{given[1]}"
    text = str(given).strip()
    if text.lstrip("-").isdigit():
        return f"{name} == {text}"
    return f"{name} in {text}" if text[:1].isdigit() else f"{name} {text}"


def _facts(dims: Mapping[str, Any] | Iterable[str] | None) -> list[str]:
    if dims is None:
        return []
    if isinstance(dims, Mapping):
        return [_fact(name, given) for name, given in dims.items()]
    return [dims] if isinstance(dims, str) else list(dims)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _source(model: Any) -> tuple[str, bytes | None]:
    """A path, or bytes."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return "", bytes(model)
    if isinstance(model, (str, os.PathLike)):
        path = os.fsdecode(model)
        if not os.path.exists(path):
            raise NotFoundError(f"cannot open '{path}': No such file or directory")
        return path, None
    if hasattr(model, "SerializeToString"):
        return "", model.SerializeToString()
    if hasattr(model, "read"):
        content = model.read()
        if not isinstance(content, bytes):
            raise ModelError("the file object must be opened in binary mode")
        return "", content
    raise ModelError(f"a model is a path, bytes, a file object or an onnx.ModelProto, but this is a {type(model).__name__}")


class Model(_core.Model):
    """A compiled model. Made by `selkie.compile` and `selkie.load`; may be called from many threads at a time.

    Call it with arrays in the order of `inputs`, with a dict by name, or with keywords. Arrays of NumPy and of whatever
    else speaks DLPack on the CPU (torch, JAX) are read where they lie; lists and numbers become what the model declares.
    One output is returned as an array, several as a tuple. Sequences are lists, an empty optional is None, maps are
    dicts, strings are arrays of objects. With `out=` (an array, or a tuple of one for each output) results are written
    there and `out` is returned.

    >>> import numpy as np, selkie
    >>> model = selkie.compile("examples/dynamic.onnx", threads=1)
    >>> ids = np.zeros((2, 12), np.int64)
    >>> [y.shape for y in model(ids)] == [y.shape for y in model({"ids": ids})] == [y.shape for y in model(ids=ids)]
    True
    >>> out = model(ids)
    >>> model(ids, out=out) is out
    True
    """

    def __init__(self, model: Any, *, dims: Any = None, threads: int | None = None, exact: bool = False,
                 without: Iterable[str] = (), cache_dir: str | os.PathLike[str] | None = None,
                 cache_bytes: int = 256 << 20, seed: int = 0, memory_limit: int = 0, time_limit: float = 0,
                 trip_limit: int = 0, item_limit: int = 0, contexts: int | None = None, keep_source: bool = True,
                 folder: str | os.PathLike[str] = ".") -> None:
        path, content = _source(model)
        options = {
            "exact": exact, "without": list(without), "seed": seed, "memory_limit": memory_limit,
            "time_limit": float(time_limit), "trip_limit": trip_limit, "item_limit": item_limit,
            "cache_dir": "" if cache_dir is None else os.fsdecode(cache_dir), "cache_bytes": cache_bytes,
            "compile_threads": cores(), "threads": cores() if threads is None else max(int(threads), 1),
            "contexts": max(cores() if contexts is None else int(contexts), 1), "keep_source": keep_source,
            "folder": os.fsdecode(folder),
        }
        super().__init__(path, content, _facts(dims), options)
        self._title = path or "model"

    @property
    def inputs(self) -> list[Port]:
        """What the model takes, in order."""
        return [Port(*row) for row in self._ports(False)]

    @property
    def outputs(self) -> list[Port]:
        """What the model gives, in order."""
        return [Port(*row) for row in self._ports(True)]

    @property
    def counts(self) -> dict[str, int]:
        """What it was compiled to: nodes, kernels, calls of operators on the host, bytes of code."""
        return self._counts()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Runs on inputs by name; returns outputs by name.

        >>> import numpy as np, selkie
        >>> list(selkie.compile("examples/dynamic.onnx").run({"ids": np.zeros((2, 12), np.int64)}))
        ['probabilities', 'changes']
        """
        return dict(zip([name for name, *_ in self._ports(True)], self._run(dict(feeds), None)))

    def explain(self, node: str | None = None, **sizes: int) -> Report:
        """What is known of the shapes before the run, and what the model compiles to; of one node or value: why.

        >>> import selkie
        >>> model = selkie.compile("examples/dynamic.onnx")
        >>> print(str(model.explain("probabilities")).splitlines()[0])
        softmax (softmax): ISDOS
        """
        if node is not None:
            return Report(self._explain_node(node))
        return Explanation(*self._explain(list(sizes.items())), lambda: self._explain_page(self._title))

    def plan(self, **sizes: int) -> Plan:
        """What a run needs of memory at these sizes; sizes that are not given are samples.

        >>> import selkie
        >>> selkie.compile("examples/dynamic.onnx").plan(B=1, S=128).svg[:4]
        '<svg'
        """
        return Plan(*self._plan(list(sizes.items()), self._title))

    def profile(self, *args: Any, runs: int = 10, **inputs: Any) -> Profile:
        """Times of the kernels over some runs on these inputs, after one that is not counted.

        >>> import numpy as np, selkie
        >>> profile = selkie.compile("examples/dynamic.onnx").profile(np.zeros((2, 12), np.int64), runs=2)
        >>> sorted(profile.json)
        ['displayTimeUnit', 'traceEvents']
        """
        return Profile(*self._profile(args, inputs, max(runs, 1)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the compiled model to a file for `selkie.load` and the command line."""
        self._save(os.fsdecode(path))

    def __repr__(self) -> str:
        ports = [", ".join(map(repr, side)) for side in (self.inputs, self.outputs)]
        return f"<selkie.Model ({ports[0]}) -> ({ports[1]})>"


def compile(model: Any, *, dims: Mapping[str, Any] | Iterable[str] | None = None, threads: int | None = None,
            exact: bool = False, without: Iterable[str] = (), cache_dir: str | os.PathLike[str] | None = None,
            cache_bytes: int = 256 << 20, seed: int = 0, memory_limit: int = 0, time_limit: float = 0, trip_limit: int = 0,
            item_limit: int = 0, contexts: int | None = None, keep_source: bool = True,
            folder: str | os.PathLike[str] = ".") -> Model:
    """Compiles a model once, for all shapes.

    `model`: a path (ONNX, or text IR ending in .sk), bytes, a file object, or an onnx.ModelProto.

    - `dims`: facts about sizes, which inputs must then satisfy: {"S": "1..512"}, {"S": 128}, {"H": "% 32 == 0"}
    - `threads`: that share the work of a kernel (all cores)
    - `exact`: no faster algorithm whose error is larger; `without`: names of passes to leave out
    - `cache_dir`, `cache_bytes`: where machine code is kept between processes (the user's cache folder), and how much of
      it; 0 keeps none
    - `memory_limit` (bytes), `time_limit` (seconds), `trip_limit`, `item_limit`: what a run may use at most
    - `contexts`: how many threads can run the model at the same time (one per core); more wait
    - `seed`: of random operators; `keep_source`: hold the bytes of a model that is no file, for `explain` and `plan`
    - `folder`: of weights that lie beside a model that is no file

    >>> import numpy as np, selkie
    >>> model = selkie.compile("examples/dynamic.onnx", threads=1)
    >>> model.inputs
    [ids: i64[B, S]]
    >>> probabilities, changes = model(np.zeros((2, 12), np.int64))
    >>> probabilities.shape
    (2, 4)
    """
    return Model(model, dims=dims, threads=threads, exact=exact, without=without, cache_dir=cache_dir, cache_bytes=cache_bytes,
                 seed=seed, memory_limit=memory_limit, time_limit=time_limit, trip_limit=trip_limit, item_limit=item_limit,
                 contexts=contexts, keep_source=keep_source, folder=folder)


def load(path: str | os.PathLike[str], *, threads: int | None = None, seed: int = 0, memory_limit: int = 0,
         time_limit: float = 0, trip_limit: int = 0, item_limit: int = 0, contexts: int | None = None) -> Model:
    """A model that `Model.save` or `selkie compile` wrote; options are as for `compile`.

    >>> import tempfile, selkie
    >>> with tempfile.NamedTemporaryFile(suffix=".selkie") as file:
    ...     selkie.compile("examples/dynamic.onnx").save(file.name)
    ...     selkie.load(file.name).inputs
    [ids: i64[B, S]]
    """
    if os.path.exists(path) and not _core.is_artifact(os.fsdecode(path)):
        raise ModelError(f"'{os.fsdecode(path)}' is not a compiled model: selkie.compile takes models")
    return Model(path, threads=threads, seed=seed, memory_limit=memory_limit, time_limit=time_limit, trip_limit=trip_limit,
                 item_limit=item_limit, contexts=contexts)


__all__ = ["Error", "Model", "Port", "compile", "cores", "load"]
