"""The model zoo: every model by its id, and `ensure`, which writes a model's files into a cache folder once."""

from functools import cache
from pathlib import Path


@cache
def models():
    """All models by id. Their modules need torch, which takes seconds to load, so that they are imported only here."""
    from . import branching, packaged, recurrent, sequence, vision

    def order(model):
        """a1 < a2 < a10 < b1 …"""
        head = model.id.split("_")[0]
        return head[0], int(head[1:]) if head[1:].isdigit() else 0, model.id

    groups = (vision, sequence, branching, recurrent, packaged)
    return {m.id: m for m in sorted((m for group in groups for m in group.MODELS), key=order)}


def select(names):
    """The models of the given ids; `c1` also names `c1_loop`, `c1_scan`, …"""
    chosen = {n: [m for m in models().values() if m.id == n or m.id.startswith(n + "_")] for n in names}
    for name, found in chosen.items():
        if not found:
            raise SystemExit(f"no model {name}; there are: {' '.join(models())}")
    return list(dict.fromkeys(m for found in chosen.values() for m in found))


def ensure(model, folder: Path) -> Path:
    """The model's ONNX file in the folder, written now if it is missing or older than the zoo's sources."""
    path = folder / f"{model.id}.onnx"
    changed = max(source.stat().st_mtime for source in Path(__file__).parent.glob("*.py"))
    if not path.exists() or path.stat().st_mtime < changed:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{model.id}.*"):  # not written over: others may read or link them
            old.unlink()
        model.write(path)
    return path


def examples(path: Path) -> list[Path]:
    """The example inputs beside a model's file: .npz files that hold one array per input."""
    return sorted(path.parent.glob(f"{path.stem}.[0-9].npz"))
