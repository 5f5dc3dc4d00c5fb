"""Peak memory of the models that papers on dynamic networks were judged on: load and runs at the largest shape, in a fresh
process each, above the empty process."""

import re
import subprocess
import tempfile
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import zoo
from zoo import dynamic, sized

from .costs import MIB, memory_of
from .engines import ROOT, SELKIE, Failed
from .plans import largest_example
from .report import number, progress
from .steady import TITLES

PEERS = ("ort", "openvino")
STARTS = ("first", "again", "compiled")
MOST, MOST_MEAN = 1.0, 0.7
GROUPS = re.compile(r"[ab]\d+$")
DRAWN = 64


def elements(inputs):
    return sum(value.size for value in inputs.values())


def largest_inputs(model, path):
    """Of a model without decisions its largest example; else all its cases, which take different paths, unless there are
    larger ones among random inputs."""
    if model in sized.MODELS:
        return [largest_example(path)]
    random = np.random.default_rng(0)
    cases = [case.inputs for case in dynamic.load_cases(path).values()]
    drawn = [model.draw(random) for _ in range(DRAWN)]
    most = max(map(elements, cases + drawn))
    return [i for i in cases if elements(i) == most] or [i for i in drawn if elements(i) == most]


def peak_of(report, model, path, name, inputs, settings, start="first", options=()):
    """None where an engine does not run the model."""
    progress(f"peak memory of {model.id} in {TITLES[name]}")
    try:
        found = memory_of(name, path, inputs, settings, options)
    except Failed as error:
        report.note(f"{model.id} in {TITLES[name]}: {error}")
        return None
    report.keep("peaks", {"model": model.id, "engine": name, "start": start} | found)
    return max(found["load_peak"], found["run_peak"])


def own_peaks(report, model, path, inputs, settings):
    """Selkie's, by start: the first one, which compiles all code; a later one, which finds it in the cache; and one of the
    model compiled to a file."""
    with tempfile.TemporaryDirectory(prefix="selkie-compare-") as folder:
        kept = ["--cache-dir", f"{folder}/cache"]
        peaks = {
            start: peak_of(report, model, path, "selkie", inputs, settings, start, kept) for start in ("first", "again")
        }
        file = Path(folder) / "model.selkie"
        done = subprocess.run([SELKIE, "compile", str(path), "-o", str(file), *kept], capture_output=True, text=True)
        if done.returncode == 0:
            peaks["compiled"] = peak_of(report, model, file, "selkie", inputs, settings, "compiled", kept)
        else:
            report.note(f"{model.id} does not compile to a file: {done.stderr.strip()[:200]}")
        return peaks


def chosen(names, report):
    """The models of both groups that could be made, with their files."""
    for model in sorted([*sized.MODELS, *dynamic.MODELS], key=lambda m: (m.id[0], len(m.id), m.id)):
        if GROUPS.match(model.id) and (not names or any(model.id.startswith(name) for name in names)):
            progress(f"exporting {model.name}")
            try:
                yield model, zoo.ensure(model, ROOT / ".cache/bench/full")
            except Exception as error:  # one model that cannot be made must not hide the others
                report.missed.append(f"{model.name} could not be made: {type(error).__name__}: {error}")


def in_mib(peak):
    return "–" if peak is None else f"{peak / MIB:.0f}"


def add_row(report, model, own, peers):
    """Ratios to the smaller peer, by start; the first start is judged."""
    least = min((peak for peak in peers.values() if peak), default=None)
    ratios = {start: own[start] / least if own.get(start) and least else None for start in STARTS}
    verdict = "–"
    if least:
        passed = report.judge(f"{model.id}, peak memory ÷ smaller peer", ratios["first"], MOST, at_most=True)
        verdict = "pass" if passed else "FAIL"
    report.row([
        f"{model.id} {model.name}", *(in_mib(own.get(start)) for start in STARTS), *map(in_mib, peers.values()),
        *(number(ratios[start], 2) for start in STARTS), verdict,
    ])  # fmt: skip
    return ratios


def compare(report, names, settings):
    engines = [name for name in PEERS if name in settings.engines]
    report.say(
        "MiB above the empty process, the most in load and runs at the largest shape, one thread. Selkie three times: the"
        " first start of an ONNX file, which compiles all code; a later start, which finds the code in the cache; and a"
        " start of the model compiled to a file. The first one is judged.\n"
    )
    report.table([
        ("model", 22), ("Selkie, first", 8), ("again", 6), (".selkie", 6), *((TITLES[name], 6) for name in engines),
        ("first ÷ smaller peer", 8), ("again ÷", 6), (".selkie ÷", 6), ("", 4),
    ])  # fmt: skip
    rows = []
    for model, path in chosen(names, report):
        inputs = largest_inputs(model, path)
        peers = {name: peak_of(report, model, path, name, inputs, settings) for name in engines}
        rows.append(add_row(report, model, own_peaks(report, model, path, inputs, settings), peers))
    report.end_table()
    means = {}
    for start in STARTS:
        known = [row[start] for row in rows if row[start]]
        means[start] = geometric_mean(known) if known else None
    if means["first"]:
        report.say(
            f"Geometric means of {len(rows)} models: {number(means['first'], 2)}×, again {number(means['again'], 2)}×,"
            f" compiled to a file {number(means['compiled'], 2)}×."
        )
        report.judge("peak memory ÷ smaller peer, geometric mean", means["first"], MOST_MEAN, at_most=True)
