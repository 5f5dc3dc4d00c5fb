"""How compile time, code and program grow with the number of Ifs and Loops in a model: both must grow linearly."""

import json
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from zoo.builder import BOOL, FLOAT, INT64, Builder

from .engines import SELKIE
from .report import number, progress

COUNTS = (250, 500, 1000, 2000)
WIDTH = 16

# Per region, from the fewest to the most regions: what is linear stays, what is quadratic grows eightfold.
MOST_GROWTH = 1.5


def affine(b, x, i):
    """x · w + v, with factors of its own for each i, so that no two regions are the same."""
    scaled = b.op("Mul", x, b.const(1 + 1e-3 * (i % 97), np.float32))
    return b.op("Add", scaled, b.const(1e-3 * (i % 89), np.float32))


def branch(b, x, i):
    """An If whose condition the data decides."""
    condition = b.op("Greater", b.op("ReduceMax", x, keepdims=0), b.const(1e-2 * (i % 83), np.float32))
    then, other = b.nest(), b.nest()
    arms = {
        "then_branch": then.graph("then", [(affine(then, x, i), FLOAT)]),
        "else_branch": other.graph("else", [(other.op("Tanh", affine(other, x, i + 1)), FLOAT)]),
    }
    return b.op("If", condition, **arms)


def loop(b, x, i):
    """A Loop of three trips."""
    body = b.nest()
    body.input(f"step_{i}", INT64, [])
    go, state = body.input(f"go_{i}", BOOL, []), body.input(f"state_{i}", FLOAT)
    outputs = [(body.op("Identity", go), BOOL), (body.op("Tanh", affine(body, state, i)), FLOAT)]
    return b.op("Loop", b.const(3), b.const(True, np.bool_), x, body=body.graph("body", outputs))


KINDS = {"Ifs": branch, "Loops": loop}


def write_model(path, kind, count):
    """A chain of `count` regions."""
    b = Builder()
    x = b.input("x", FLOAT, ["N", WIDTH])
    for i in range(count):
        x = KINDS[kind](b, x, i)
    b.write(path, [(x, FLOAT, 2)], [])


def compiled(path):
    """Seconds of processor time, bytes of code, and bytes of the rest of the program: bytecode, tables, constants."""
    command = [SELKIE, "compile", str(path), "-o", str(path.with_suffix(".selkie")), "--no-cache", "--threads", "1", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1]
    said = json.loads(done.stdout)
    return {"seconds": seconds, "code": said["code_bytes"], "program": said["bytes"] - said["code_bytes"]}, None


def compare(report, settings):
    report.table([
        ("model", 12), ("compile s", 9), ("ms per region", 9), ("code KB", 9), ("bytes per region", 9), ("bytecode KB", 9),
        ("bytes per region", 9), ("growth per region", 20), ("", 4),
    ])  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="selkie-growth-") as folder:
        for kind in KINDS:
            first = None
            for count in COUNTS[:2] if settings.quick else COUNTS:
                progress(f"{count} {kind}")
                path = Path(folder) / f"{count}.onnx"
                write_model(path, kind, count)
                found, failure = compiled(path)
                if failure:
                    report.judge(f"{count} {kind}, compiled", None, MOST_GROWTH, True)
                    report.note(f"{count} {kind}: {failure}")
                    continue
                first = first or {key: value / count for key, value in found.items()}
                growth = {key: found[key] / count / first[key] for key in found}
                passed = [
                    report.judge(f"{count} {kind}, {key} per region against the fewest", value, MOST_GROWTH, True)
                    for key, value in growth.items()
                ]
                report.row([
                    f"{count} {kind}", number(found["seconds"]), number(1000 * found["seconds"] / count),
                    number(found["code"] / 1000), number(found["code"] / count), number(found["program"] / 1000),
                    number(found["program"] / count), " ".join(number(value) for value in growth.values()),
                    "pass" if all(passed) else "FAIL",
                ])  # fmt: skip
                report.keep("growth", {"kind": kind, "count": count, **found})
    report.end_table(f"Growth: of seconds, code and bytecode per region, against the smallest model; bar {MOST_GROWTH:g}.")
