"""What planning saves of memory: bytes of intermediate results with more and more of it, and how close plans come to
their lower bound."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import zoo

from .engines import ROOT, SELKIE
from .report import number, progress

MIB = 1 << 20
# What the published system reaches of no planning.
ABLATION = {"a1": 0.32, "a4": 0.52, "a9": 0.21, "a10": 0.41}
NEAR, FAR = 1.05, 1.15
LEAST_NEAR = 0.8


def plan(path, arrays, *options):
    """What `selkie plan` says of a model, at the sizes of these inputs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(SELKIE), "plan", str(path), "--json", *options]
        for i, (name, array) in enumerate(arrays.items()):
            file = Path(folder) / f"{i}.npy"
            np.save(file, array)
            command += ["--input", f"{name}={file}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return json.loads(done.stdout)


def largest_example(path):
    """The example inputs of most elements; sizes are samples where there is none."""
    examples = [dict(np.load(file)) for file in zoo.examples(path)]
    return max(examples, key=lambda arrays: sum(a.size for a in arrays.values()), default={})


def stages(path):
    """Bytes without planning; with fusion; with steps in the order that needs least, each tensor where there is room
    when it is made; and with offsets that are planned."""
    arrays = largest_example(path)
    plain, ordered = plan(path, arrays, "--plain-order"), plan(path, arrays)
    return {
        "none": ordered["own_bytes"]["model"]["bytes"],
        "fusion": ordered["own_bytes"]["stored"]["bytes"],
        "reuse": plain["in_order_bytes"],
        "order": ordered["in_order_bytes"],
        "offsets": ordered["arena_bytes"],
        "bound": ordered["lower_bound_bytes"],
        "open": ordered["own_bytes"]["model"]["open"],
        "regions": ordered["regions"],
        "best": ordered["best_at_all_sizes"],
    }


def ablation(report, names):
    small = zoo.models()
    chosen = [m for m in small.values() if not names or any(m.id.startswith(name) for name in names)]
    report.say(
        "Bytes of intermediate results as shares of no planning: each result of a node has memory of its own (of the"
        " arms of a branch the larger one). With fusion, each stored tensor has; then each lies where there is room when"
        " it is made, in the order of the nodes and in the order that needs least; at last offsets are planned.\n"
    )
    report.table([
        ("model", 20), ("none MiB", 9), ("+ fusion", 8), ("+ reuse", 8), ("+ order (SEP)", 8), ("+ offsets (DMP)", 8), ("÷ bound", 7),
        ("bar", 5), ("", 4),
    ])  # fmt: skip
    regions, best, planned = [], 0, 0
    for model in chosen:
        progress(f"plans of {model.id}")
        bar = ABLATION.get(model.id)
        try:
            path = zoo.ensure(model, ROOT / ".cache/bench/zoo")
            found = stages(path)
        except Exception as error:  # one model that has no plan must not hide the others
            report.note(f"{model.id}: {error}")
            if bar:
                report.judge(f"{model.id}, planned ÷ not planned", None, bar, at_most=True)
            continue
        planned += 1
        best += found["best"]
        regions += [r["alone_bytes"] / r["lower_bound_bytes"] for r in found["regions"] if r["lower_bound_bytes"]]
        report.keep("ablation", {"model": model.id} | {k: v for k, v in found.items() if k != "regions"})
        if found["none"] == 0:
            continue
        shares = {k: found[k] / found["none"] for k in ("fusion", "reuse", "order", "offsets")}
        verdict = ""
        if bar:
            passed = report.judge(f"{model.id}, planned ÷ not planned", shares["offsets"], bar, at_most=True)
            verdict = "pass" if passed else "FAIL"
        report.row([
            f"{model.id} {model.name}"[:20], f"{found['none'] / MIB:.2f}", *(f"{s:.3f}" for s in shares.values()),
            number(found["offsets"] / found["bound"] if found["bound"] else None), f"{bar:g}" if bar else "", verdict,
        ])  # fmt: skip
    report.end_table()
    if not regions:
        return
    near = sum(r <= NEAR for r in regions) / len(regions)
    report.say(
        f"{len(regions)} regions of {planned} models: {near:.1%} within {NEAR}× of their lower bound, the worst at"
        f" {max(regions):.3f}×; {best} models have one arrangement that reaches it at all sizes."
    )
    report.judge(f"share of regions within {NEAR}× of their lower bound", near, LEAST_NEAR)
    report.judge("worst region ÷ lower bound", max(regions), FAR, at_most=True)
