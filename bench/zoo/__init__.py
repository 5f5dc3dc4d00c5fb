"""The model zoo: every model by its id, and `ensure`, which writes a model's files into a cache folder once."""

import sys
from pathlib import Path

from . import caption, exits, gated, packaged, recurrent, sequence, vision
from .export import Model

GROUPS = (vision, sequence, gated, exits, caption, recurrent, packaged)


def order(model):
    """a1 < a2 < a10 < b1 …"""
    head = model.id.split("_")[0]
    return head[0], int(head[1:]) if head[1:].isdigit() else 0, model.id


MODELS = {model.id: model for model in sorted((m for group in GROUPS for m in group.MODELS), key=order)}


def select(names):
    """The models of the given ids; `c1` also names `c1_loop`, `c1_scan`, …"""
    chosen = [m for m in MODELS.values() if any(m.id == n or m.id.startswith(n + "_") for n in names)]
    for name in names:
        if not any(m.id == name or m.id.startswith(name + "_") for m in chosen):
            raise SystemExit(f"no model {name}; there are: {' '.join(MODELS)}")
    return chosen


def ensure(model: Model, folder: Path) -> Path:
    """The model's ONNX file in the folder, written now if it is missing or older than the source that defines it."""
    path = folder / f"{model.id}.onnx"
    source = Path(sys.modules[model.write.__module__].__file__)
    if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        model.write(path)
    return path


def examples(path: Path) -> list[Path]:
    """The example inputs beside a model's file: .npz files that hold one array per input."""
    return sorted(path.parent.glob(f"{path.stem}.[0-9].npz"))
