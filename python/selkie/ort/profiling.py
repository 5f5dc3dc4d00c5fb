"""Profiles of sessions as onnxruntime writes them: Chrome's trace events in a list, those of kernels under "Node"."""
from __future__ import annotations

import datetime
import json
import os
import threading
import time
from typing import Any

from selkie.model import Model


class Profiler:
    """From when it is made until `end`."""

    def __init__(self, prefix: str) -> None:
        now = datetime.datetime.now()
        self._path = f"{prefix}_{now:%Y-%m-%d_%H-%M-%S}_{now.microsecond // 1000:03}.json"
        self._begin = time.monotonic_ns()
        self._events: list[dict[str, Any]] = []
        self._model: Model | None = None

    def loaded(self, model: Model) -> None:
        self._event("Session", "session_initialization", self._begin, time.monotonic_ns())
        self._model = model
        model._record()

    def run(self, feeds: Any, names: Any) -> list[Any]:
        assert self._model is not None
        begin = time.monotonic_ns()
        try:
            return self._model._run(feeds, names)
        finally:
            self._event("Session", "model_run", begin, time.monotonic_ns())

    def _event(self, category: str, name: str, begin: int, end: int, **arguments: Any) -> None:
        self._events.append({"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(),
                             "dur": (end - begin) / 1000, "ts": (begin - self._begin) / 1000, "ph": "X", "name": name,
                             "args": arguments})

    def end(self) -> str:
        """Writes the file and returns its name. Numbers are texts, as in onnxruntime's; operations and bytes are the
        definition's."""
        assert self._model is not None
        for begin, end, kind, node, shape, operations, size in self._model._recorded():
            self._event("Node", f"{node}_kernel_time", begin, end, op_name=kind, provider="CPUExecutionProvider",
                        shape=shape, operations=f"{operations:.0f}", bytes=f"{size:.0f}")
        self._events.sort(key=lambda event: event["ts"])
        with open(self._path, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n")
        return self._path
